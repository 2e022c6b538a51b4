"""Matrices of vectors, one a row: their shape, values that are not finite, unit length."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from engine.errors import DivergenceError

BLOCK_VALUES: Final = 2**22
"""Of a matrix, looked at together."""


def normalise_rows(embeddings: Tensor, *, in_place: bool = False) -> Tensor:
    """(n, D) float32 rows of unit length; a zero row stays zero (its cosine with everything is 0).

    ``in_place``: the given rows are not needed any more and may be overwritten.

    Raises:
        DivergenceError: a value is not finite; the message names the first such row.
    """
    check_matrix(embeddings, "embeddings")
    norms = torch.cat([torch.linalg.vector_norm(block, dim=1, keepdim=True, dtype=torch.float64) for block in row_blocks_of(embeddings)])
    check_finite(norms, "embeddings")
    # Half of the factor at a time: the whole of it need not fit float32 where the row does.
    root = torch.where(norms > torch.finfo(torch.float32).tiny, norms.rsqrt(), 0.0).to(embeddings.dtype)
    return (embeddings.mul_(root) if in_place else embeddings * root).mul_(root).float()


def check_matrix(matrix: Tensor, name: str) -> None:
    """Raise ValueError unless the tensor has two dimensions."""
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have shape (n, D); got {tuple(matrix.shape)}")


def check_finite(matrix: Tensor, name: str) -> None:
    """Raise DivergenceError if a value is NaN or infinite.

    A finite sum proves finite values at the speed of reading them once; only a suspicious sum is looked into.
    """
    if not is_finite(matrix):
        raise not_finite(matrix, name)


def is_finite(matrix: Tensor) -> bool:
    """Whether no value is NaN or infinite; see :func:`check_finite`."""
    blocks = row_blocks_of(matrix)
    sums = torch.stack([block.sum(dtype=torch.float64) for block in blocks])
    return bool(torch.isfinite(sums).all()) or all(bool(torch.isfinite(block).all()) for block in blocks)


def row_blocks_of(matrix: Tensor) -> tuple[Tensor, ...]:
    """Some rows at a time: a sum in float64 first makes a copy of what it sums."""
    return torch.split(matrix, max(BLOCK_VALUES // max(matrix[:1].numel(), 1), 1))


def not_finite(matrix: Tensor, name: str) -> DivergenceError:
    """The error for a matrix with NaN or infinite values."""
    row = int((~torch.isfinite(matrix).all(dim=1)).nonzero()[0])
    return DivergenceError(
        f"the {name} contain a value that is not finite (first in row {row}); "
        "train again with a smaller training.learning_rate or another random seed."
    )
