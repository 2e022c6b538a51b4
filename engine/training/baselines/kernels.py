"""Compiled loops of the baselines: weighted sums over the rows of a sparse matrix."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from engine.model.adjacency import Csr
from engine.model.kernels import stretches
from engine.util.arrays import IntArray
from engine.util.threads import kernel


@kernel
def fill_row_sums(part, bounds, offsets, columns, units, weights, x, out):  # type: ignore[no-untyped-def]
    """out_i = sum over the entries e of row i of weights[units_e, h] x[columns_e, h]; x is (n, H, m), weights (S, H)."""
    heads, width = x.shape[1], x.shape[2]
    for i in range(bounds[part], bounds[part + 1]):
        for h in range(heads):
            for k in range(width):
                out[i, h, k] = 0
        for e in range(offsets[i], offsets[i + 1]):
            j, u = columns[e], units[e]
            for h in range(heads):
                weight = weights[u, h]
                for k in range(width):
                    out[i, h, k] += weight * x[j, h, k]


def row_sums(rows: Csr, units: IntArray, weights: Tensor, x: Tensor) -> Tensor:
    """(rows, H, m) weighted sums of rows of x (n, H, m); an entry's weight in head h is ``weights[unit of the entry, h]``."""
    out = torch.empty((rows.num_rows, *x.shape[1:]), dtype=x.dtype)
    arrays = (rows.columns, units, weights.contiguous().numpy(), x.contiguous().numpy(), out.numpy())
    fill_row_sums(stretches(rows.offsets), rows.offsets, *arrays)
    return out


def plain_sums(rows: Csr, x: Tensor, weights: Tensor | None = None) -> Tensor:
    """(rows, m) sums of rows of x (n, m), each entry with its own weight (1 by default)."""
    entries = len(rows.columns)
    if weights is None:
        return row_sums(rows, np.zeros(entries, dtype=np.int64), x.new_ones((1, 1)), x.unsqueeze(1)).squeeze(1)
    return row_sums(rows, np.arange(entries, dtype=np.int64), weights.unsqueeze(1), x.unsqueeze(1)).squeeze(1)
