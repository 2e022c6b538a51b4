"""Matrices of vectors, one a row: their shape, values that are not finite, unit length."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.errors import DivergenceError


def normalise_rows(embeddings: Tensor, *, in_place: bool = False) -> Tensor:
    """(n, D) float32 rows of unit length; a zero row stays zero (its cosine with everything is 0).

    ``in_place``: the given rows are not needed any more and may be overwritten.

    Raises:
        DivergenceError: a value is not finite; the message names the first such row.
    """
    check_matrix(embeddings, "embeddings")
    norms = torch.linalg.vector_norm(embeddings, dim=1, keepdim=True, dtype=torch.float64)
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
    if not bool(torch.isfinite(matrix.sum(dtype=torch.float64))) and not bool(torch.isfinite(matrix).all()):
        raise not_finite(matrix, name)


def not_finite(matrix: Tensor, name: str) -> DivergenceError:
    """The error for a matrix with NaN or infinite values."""
    row = int((~torch.isfinite(matrix).all(dim=1)).nonzero()[0])
    return DivergenceError(
        f"the {name} contain a value that is not finite (first in row {row}); "
        "train again with a smaller training.learning_rate or another random seed."
    )
