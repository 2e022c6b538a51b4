"""Structure and names combined, straight from the definition, in float64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def structure_and_names(structure: Array, source_names: Array, target_names: Array, weight: float) -> Array:
    """(n, m) s + w l, where l is s wherever a side's row of names is zero."""
    out = np.empty_like(structure)
    for i, own in enumerate(source_names):
        for j, other in enumerate(target_names):
            names = own @ other if own.any() and other.any() else structure[i, j]
            out[i, j] = structure[i, j] + weight * names
    return out


def csls(similarity: Array, k: int, zeros: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None = None, zero_term: float = 4.0) -> Array:
    """(n, m) 2 similarity - r - r, with r the mean of a row's (column's) k largest; of zero rows (columns) ``zero_term``."""
    of_rows = np.array([np.mean(sorted(row, reverse=True)[:k]) for row in similarity])
    of_columns = np.array([np.mean(sorted(column, reverse=True)[:k]) for column in similarity.T])
    if zeros is not None:
        of_rows[zeros[0]], of_columns[zeros[1]] = zero_term, zero_term
    return 2 * similarity - of_rows[:, None] - of_columns[None]
