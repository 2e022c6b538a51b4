"""CSLS straight from its formula, in float64, one pair at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def cosine_matrix(source: Array, target: Array) -> Array:
    """(n, m) cosines; a zero row has cosine 0 with everything."""
    out = np.zeros((len(source), len(target)))
    for i, s in enumerate(source):
        for j, t in enumerate(target):
            lengths = np.linalg.norm(s) * np.linalg.norm(t)
            out[i, j] = s @ t / lengths if lengths > 0 else 0.0
    return out


def hubness(cosines: Array, k: int) -> tuple[Array, Array]:
    """(n,), (m,) means of each row's and each column's k largest cosines."""
    of_rows = [np.mean(sorted(row, reverse=True)[:k]) if len(row) else 0.0 for row in cosines]
    of_columns = [np.mean(sorted(column, reverse=True)[:k]) if len(column) else 0.0 for column in cosines.T]
    return np.array(of_rows, dtype=np.float64), np.array(of_columns, dtype=np.float64)


def with_zeros_last(terms: tuple[Array, Array], source: Array, target: Array) -> tuple[Array, Array]:
    """The terms of zero rows put so high that no other pair scores as low."""
    pairs = zip(terms, (source, target), strict=True)
    of_rows, of_columns = (np.where(rows.any(axis=1), part, 4.0) if len(rows) else part for part, rows in pairs)
    return of_rows, of_columns


def unknown_lowest(scores: Array, source: Array, target: Array) -> Array:
    """Scores for ranks: of a zero row nothing is known, so its pairs are all alike and below all others."""
    return np.where(source.any(axis=1)[:, None] & target.any(axis=1), scores, -1e6)


def csls_matrix(source: Array, target: Array, k: int) -> Array:
    """(n, m) CSLS scores."""
    cosines = cosine_matrix(source, target)
    of_source, of_target = with_zeros_last(hubness(cosines, k), source, target)
    out = np.zeros_like(cosines)
    for i in range(len(source)):
        for j in range(len(target)):
            out[i, j] = 2 * cosines[i, j] - of_source[i] - of_target[j]
    return out
