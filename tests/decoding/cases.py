"""Candidates from score tables, and tables to try."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from hypothesis import strategies as st

from engine.decoding import Candidates, find_candidates
from engine.search import StructuralSimilarity
from tests.search.graphs import noisy_copies

Array = npt.NDArray[np.float64]


def from_table(scores: Any, top: int | None = None) -> Candidates:
    """All pairs of an (n, m) table as candidates, or those among the ``top`` best of their row or column; CSLS and similarity are the table's."""
    table = np.asarray(scores, dtype=np.float32)
    kept = np.ones(table.shape, dtype=bool)
    if top is not None and table.size:
        kept = (np.argsort(np.argsort(-table, axis=1), axis=1) < top) | (np.argsort(np.argsort(-table, axis=0), axis=0) < top)
    sources, targets = (part.astype(np.int64) for part in np.nonzero(kept))
    return Candidates(table.shape, sources, targets, table[kept], table[kept], max(table.shape, default=1) if top is None else top)


def from_copies(n: int, m: int, *, noise: float = 0.6, top: int = 100, seed: int = 0, width: int = 16) -> Candidates:
    """Candidates of two pools whose first min(n, m) rows belong together."""
    return find_candidates(StructuralSimilarity(*noisy_copies(n, m, width, noise=noise, seed=seed)), top=top)


def identity(count: int) -> npt.NDArray[np.int64]:
    """(count, 2) links of equal indices."""
    return np.stack([np.arange(count)] * 2, axis=1)


@st.composite
def tables(draw: st.DrawFn, largest: int = 6) -> Array:
    """(n, m) tables of few distinct values, so that there are ties, or of many."""
    n, m = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    values = draw(st.sampled_from([st.integers(-3, 3).map(float), st.floats(-2, 2, width=16)]))
    return np.array(draw(st.lists(values, min_size=n * m, max_size=n * m)), dtype=np.float64).reshape(n, m)


def pools(n: int, m: int) -> tuple[torch.Tensor, torch.Tensor]:
    return noisy_copies(n, m, 16)
