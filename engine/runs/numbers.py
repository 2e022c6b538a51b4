"""Stored numbers that are none: NaN or infinite values in a run whose files all have the checksums that its manifest gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.errors import RunDamagedError
from engine.runs.manifest import RESTORE


class TensorSource(Protocol):
    """What is needed of :class:`engine.runs.Run`."""

    def tensor(self, name: str, key: str) -> npt.NDArray[Any]: ...


def damaged(run: object, what: str) -> RunDamagedError:
    """The error for such a number; ``what`` says which."""
    path = getattr(run, "path", None)
    return RunDamagedError(f"{f'{path}: ' if path else ''}{what} is not a finite number, so nothing can be computed with it; {RESTORE}.")


def finite_tensor(run: TensorSource, name: str, key: str) -> npt.NDArray[Any]:
    """A tensor of the run.

    Raises:
        RunDamagedError: a value is not finite, or the tensor cannot be read.
    """
    values = run.tensor(name, key)
    finite = np.isfinite(values)
    if not finite.all():
        place = ", ".join(str(axis) for axis in np.argwhere(~finite)[0].tolist())
        raise damaged(run, f"the value at [{place}] of the tensor '{key}' in {name}.safetensors")
    return values


def check_numbers(run: object, table: pd.DataFrame, columns: Iterable[str], name: str) -> None:
    """
    Raises:
        RunDamagedError: a value of these columns is not finite.
    """
    for column in columns:
        finite = np.isfinite(table[column].to_numpy(dtype=np.float64))
        if not finite.all():
            raise damaged(run, f"the value in row {int(np.flatnonzero(~finite)[0])}, column '{column}' of {name}.parquet")
