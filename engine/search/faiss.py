"""Search with faiss: exact (flat) for pools below ``APPROXIMATE_FROM`` keys, inverted lists (IVF) above; on GPUs where faiss sees some.

IVF sorts the keys into about 4 sqrt(m) clusters and looks only at the ``PROBED_SHARE`` of them that lie nearest to a query, which leaves out few
true neighbours on trained embeddings and many on vectors without any structure. Ranks in the evaluation never depend on it: they
are counted exactly, only the hubness terms and the lists of matches come from the index.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.errors import ConfigError
from engine.search.base import SearchIndex, TopK, check_k, register_index
from engine.search.exact import ExactIndex
from engine.search.similarity import Shifted, Similarity, StructuralSimilarity
from engine.search.tiles import HeldSimilarity, RecordingSimilarity
from engine.util.arrays import Float32Array, IntArray

APPROXIMATE_FROM = 50_000
PROBED_SHARE = 1 / 12
LEAST_PROBED = 16
TRAINING_KEYS_PER_LIST = 64
"""Keys sampled per list for the clustering."""


def load_faiss() -> Any:
    """The faiss module, loaded on first use: exact search works without it, and starts sooner.

    Raises:
        ConfigError: faiss is not installed.
    """
    try:
        return importlib.import_module("faiss")
    except ImportError:
        raise ConfigError("search.index=faiss needs faiss, which is not installed; run 'make install', or use search.index=exact.") from None


@register_index("faiss")
class FaissIndex(SearchIndex):
    """faiss behind the common interface. It copies the keys (4 m D bytes) while it searches."""

    name = "faiss"

    def __init__(self, approximate_from: int = APPROXIMATE_FROM) -> None:
        self.approximate_from = approximate_from

    def search(self, similarity: Similarity, k: int) -> TopK:
        """See :meth:`engine.search.base.SearchIndex.search`.

        Raises:
            ConfigError: a similarity that is no inner product of dense rows, or faiss is not installed.
        """
        check_k(k)
        rows = as_inner_products(similarity)
        if rows is None:
            raise ConfigError("search.index=faiss supports embeddings only, not embeddings with names; use search.index=exact.")
        similarity.check()
        queries, keys = rows.source, rows.target
        k = min(k, len(keys))
        if not k or not len(queries):
            return TopK(queries.new_empty((len(queries), k)), torch.empty((len(queries), k), dtype=torch.int64, device=queries.device))
        values, indices = self._build(as_array(keys)).search(as_array(queries), k)
        return self._completed(ordered(values, indices, queries.device), queries, keys, k)

    def search_both(self, similarity: Similarity, k: int) -> tuple[TopK, TopK]:
        """One search in each direction."""
        return self.search(similarity, k), self.search(similarity.transposed(), k)

    def _build(self, keys: Float32Array) -> Any:
        faiss = load_faiss()
        approximate = len(keys) >= self.approximate_from
        index = on_gpus(inverted_lists(len(keys), keys.shape[1]) if approximate else faiss.IndexFlatIP(keys.shape[1]))
        index.train(keys)
        index.add(keys)
        return index

    @staticmethod
    def _completed(best: TopK, queries: Tensor, keys: Tensor, k: int) -> TopK:
        """Queries whose lists held fewer than k keys are searched exactly."""
        short = (best.indices < 0).any(dim=1)
        if bool(short.any()):
            again = ExactIndex().top_k(queries[short], keys, k)
            best.values[short], best.indices[short] = again.values, again.indices
        return best


def as_inner_products(similarity: Similarity) -> StructuralSimilarity | None:
    """The same as inner products of rows, where it is that: terms become two more columns. None for everything else."""
    if isinstance(similarity, HeldSimilarity | RecordingSimilarity):
        return as_inner_products(similarity.base)
    if not isinstance(similarity, Shifted):
        return similarity if isinstance(similarity, StructuralSimilarity) else None
    base = as_inner_products(similarity.base)
    if base is None:
        return None
    rows, columns = similarity.row_terms[:, None], similarity.column_terms[:, None]
    return StructuralSimilarity(
        torch.cat([base.source, rows, torch.ones_like(rows)], dim=1), torch.cat([base.target, torch.ones_like(columns), columns], dim=1)
    )


def inverted_lists(count: int, width: int) -> Any:
    """An untrained IVF index for ``count`` keys."""
    faiss = load_faiss()
    lists = max(round(4 * count**0.5), 1)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, lists, faiss.METRIC_INNER_PRODUCT)
    index.nprobe = min(max(round(lists * PROBED_SHARE), LEAST_PROBED), lists)
    index.cp.max_points_per_centroid = TRAINING_KEYS_PER_LIST
    index.cp.min_points_per_centroid = 1  # fewer keys than faiss would like are no reason to write to the terminal
    return index


def on_gpus(index: Any) -> Any:
    """The index on all GPUs that faiss can use; unchanged where there are none."""
    faiss = load_faiss()
    if hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0:
        return faiss.index_cpu_to_all_gpus(index)
    return index


def as_array(matrix: Tensor) -> Float32Array:
    return np.ascontiguousarray(matrix.detach().cpu().numpy(), dtype=np.float32)


def ordered(values: Float32Array, indices: IntArray, device: torch.device) -> TopK:
    """Best first, the lower index among equals; missing entries (index -1, lowest value) last."""
    order = np.lexsort((indices, -values), axis=1)
    return TopK(
        torch.from_numpy(np.take_along_axis(values, order, axis=1)).to(device),
        torch.from_numpy(np.take_along_axis(indices, order, axis=1)).to(device),
    )
