"""What every search index offers, the registry of indexes, and the checks that they share.

An index finds, for each row of one matrix, the rows of another with the largest inner products. On L2-normalised rows that is cosine; CSLS
becomes an inner product too once each row carries two more columns (see :mod:`engine.search.csls`), so one interface serves both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from engine.errors import ConfigError, TrainingError

DEFAULT_BUDGET = 256 * 2**20
"""Bytes that a block of scores may take."""


@dataclass(frozen=True)
class TopK:
    """The k best keys of each query, best first; among equal scores the lower index comes first.

    Attributes:
        values: (n, k) float32 inner products, descending along a row.
        indices: (n, k) int64 rows of the keys.
    """

    values: Tensor  # (n, k)
    indices: Tensor  # (n, k)


class SearchIndex(Protocol):
    """Inner-product search. Implementations take and return tensors on the queries' device."""

    @property
    def name(self) -> str: ...

    def top_k(self, queries: Tensor, keys: Tensor, k: int) -> TopK:
        """The k largest inner products of each query.

        Args:
            queries: (n, D) float32, finite.
            keys: (m, D) float32, finite.
            k: at least 1; clipped to m.

        Returns:
            (n, min(k, m)) values and indices.

        Raises:
            TrainingError: a value is not finite.
        """
        ...

    def top_k_both(self, source: Tensor, target: Tensor, k: int) -> tuple[TopK, TopK]:
        """``top_k(source, target, k)`` and ``top_k(target, source, k)``, in one pass where the index can do that."""
        ...


IndexClass = TypeVar("IndexClass", bound=type)
INDEXES: dict[str, Callable[[], SearchIndex]] = {}


def register_index(name: str) -> Callable[[IndexClass], IndexClass]:
    """Class decorator: makes an index available under a name."""

    def add(cls: IndexClass) -> IndexClass:
        INDEXES[name] = cls
        return cls

    return add


def get_index(index: str | SearchIndex) -> SearchIndex:
    """An index by its registered name; an instance is passed through.

    Raises:
        ConfigError: no index has this name.
    """
    if not isinstance(index, str):
        return index
    if index not in INDEXES:
        raise ConfigError(f"unknown search index '{index}'; known are {', '.join(sorted(INDEXES))}.")
    return INDEXES[index]()


def normalise_rows(embeddings: Tensor) -> Tensor:
    """(n, D) float32 rows of unit length; a zero row stays zero (its cosine with everything is 0).

    Raises:
        TrainingError: a value is not finite; the message names the first such row.
    """
    check_matrix(embeddings, "embeddings")
    norms = torch.linalg.vector_norm(embeddings, dim=1, keepdim=True, dtype=torch.float64)
    check_finite(norms, "embeddings")
    # Half of the factor at a time: the whole of it need not fit float32 where the row does.
    root = torch.where(norms > torch.finfo(torch.float32).tiny, norms.rsqrt(), 0.0).to(embeddings.dtype)
    return (embeddings * root).mul_(root).float()


def check_matrix(matrix: Tensor, name: str) -> None:
    """Raise ValueError unless the tensor has two dimensions."""
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have shape (n, D); got {tuple(matrix.shape)}")


def check_operands(queries: Tensor, keys: Tensor, k: int) -> None:
    """Raise unless both are finite (n, D) float32 matrices of one width on one device, and k is at least 1.

    Raises:
        TrainingError: a value is not finite (that can happen to a user).
        ValueError: anything else (that is a defect of the caller).
    """
    for matrix, name in ((queries, "queries"), (keys, "keys")):
        check_matrix(matrix, name)
        if matrix.dtype != torch.float32:
            raise ValueError(f"{name} must be float32; got {matrix.dtype}")
        check_finite(matrix, name)
    if queries.shape[1] != keys.shape[1]:
        raise ValueError(f"queries {tuple(queries.shape)} and keys {tuple(keys.shape)} differ in width")
    if queries.device != keys.device:
        raise ValueError(f"queries are on {queries.device}, keys on {keys.device}")
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}")


def check_finite(matrix: Tensor, name: str) -> None:
    """Raise TrainingError if a value is NaN or infinite.

    A finite sum proves finite values at the speed of reading them once; only a suspicious sum is looked into.
    """
    if not bool(torch.isfinite(matrix.sum(dtype=torch.float64))) and not bool(torch.isfinite(matrix).all()):
        raise not_finite(matrix, name)


def not_finite(matrix: Tensor, name: str) -> TrainingError:
    """The error for a matrix with NaN or infinite values."""
    row = int((~torch.isfinite(matrix).all(dim=1)).nonzero()[0])
    return TrainingError(
        f"the {name} hold a value that is not finite (first in row {row}), so no distances can be computed; "
        "train again with a smaller training.learning_rate, or another seed."
    )
