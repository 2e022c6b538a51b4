"""Names' vectors as plain tensors, so that a run folder can keep them (safetensors) and a page can score any pair from them.

Dense names are two matrices (``source``, ``target``). Sparse ones are CSR arrays: ``source.starts``, ``source.features``, ``source.values``, the same
for the target, and ``features``, the number of columns. Where entities have several names, rows are names, and ``source.entities`` and
``target.entities`` say where each entity's begin.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from engine.errors import RunDamagedError
from engine.search import BestNames, NameSimilarity, SparseSimilarity, StructuralSimilarity

DENSE_KEYS = ("source", "target")
ENTITIES = tuple(f"{side}.entities" for side in DENSE_KEYS)
PARTS = ("starts", "features", "values")


def name_tensors(names: NameSimilarity) -> dict[str, Tensor]:
    """The tensors that :func:`name_similarity` makes the same similarity of."""
    if isinstance(names, BestNames):
        starts = {f"{side}.entities": torch.from_numpy(begins) for side, begins in zip(DENSE_KEYS, names.starts, strict=True)}
        return {**name_tensors(names.base), **starts}
    if isinstance(names, StructuralSimilarity):
        return {"source": names.source.cpu().contiguous(), "target": names.target.cpu().contiguous()}
    tensors = {"features": torch.tensor([names.source.shape[1]])}
    for side, rows in (("source", names.source), ("target", names.target)):
        arrays = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
        tensors |= {f"{side}.{part}": torch.from_numpy(array) for part, array in zip(PARTS, arrays, strict=True)}
    return tensors


def name_similarity(tensors: Mapping[str, Tensor]) -> NameSimilarity:
    """The inverse of :func:`name_tensors`.

    Raises:
        RunDamagedError: tensors are missing or do not go together.
    """
    try:
        base = single_names(tensors)
        if not all(key in tensors for key in ENTITIES):
            return base
        return BestNames(base, *(tensors[key].numpy() for key in ENTITIES))
    except (KeyError, IndexError, ValueError) as error:
        raise RunDamagedError(f"the run's names are damaged ({error}); train the literal variant again with --fresh.") from None


def single_names(tensors: Mapping[str, Tensor]) -> StructuralSimilarity | SparseSimilarity:
    """The similarity of single names."""
    if all(key in tensors for key in DENSE_KEYS):
        return StructuralSimilarity(tensors["source"], tensors["target"])
    width = int(tensors["features"][0])
    return SparseSimilarity(*(sparse_rows(tensors, side, width) for side in DENSE_KEYS))


def sparse_rows(tensors: Mapping[str, Tensor], side: str, width: int) -> sparse.csr_array:
    """(E, width) rows of one graph; ValueError where the arrays do not fit together."""
    starts, features, values = (tensors[f"{side}.{part}"].numpy() for part in PARTS)
    rows = sparse.csr_array((values, features, starts), shape=(len(starts) - 1, width))
    rows.check_format(full_check=True)
    return rows
