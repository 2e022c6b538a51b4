"""Exact search: tiles of the score matrix, each looked at once for both directions (:mod:`engine.search.tiles`); on CUDA ``torch.topk`` selects."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.search.base import DEFAULT_BUDGET, CslsNeighbours, SearchIndex, TopK, check_k, register_index
from engine.search.one_pass import fits_one_pass, search_in_one_pass
from engine.search.similarity import Similarity
from engine.search.tiles import HeapBest, Terms, Tile, tiles


@register_index("exact")
class ExactIndex(SearchIndex):
    """Compares everything with everything, within ``budget`` bytes; for structure 2 n m D floating-point operations."""

    name = "exact"

    def __init__(self, budget: int = DEFAULT_BUDGET) -> None:
        self.budget = budget

    def search(self, similarity: Similarity, k: int) -> TopK:
        """See :meth:`engine.search.base.SearchIndex.search`."""
        return self._scan(similarity, k, both=False)[0]

    def search_both(self, similarity: Similarity, k: int) -> tuple[TopK, TopK]:
        """Both directions from one pass over the tiles."""
        return self._scan(similarity, k, both=True)

    @torch.no_grad()
    def search_csls(self, similarity: Similarity, k: int, top: int) -> CslsNeighbours:
        """One pass instead of two where that can be done."""
        check_k(k)
        check_k(top)
        if fits_one_pass(similarity, k, self.budget):
            return search_in_one_pass(similarity, k, top, self.budget)
        return super().search_csls(similarity, k, top)

    @torch.no_grad()
    def _scan(self, similarity: Similarity, k: int, *, both: bool) -> tuple[TopK, TopK]:
        check_k(k)
        similarity.check()
        n, m = similarity.shape
        best = HeapBest if similarity.device.type == "cpu" else TorchBest
        of_source = best(n, min(k, m), similarity.device)
        of_target = best(m, min(k, n) if both else 0, similarity.device)
        for tile in tiles(similarity, self.budget):
            of_source.take_rows(tile)
            if both:
                of_target.take_columns(tile)
        terms = Terms.apart(similarity)[1]
        return of_source.result(terms.rows), of_target.result(terms.columns)


class TorchBest:
    """Running top-k on any device, by ``torch.topk`` of a tile and a merge with what was best so far."""

    def __init__(self, n: int, k: int, device: torch.device) -> None:
        self.values = torch.full((n, k), -torch.inf, device=device)
        self.indices = torch.full((n, k), -1, dtype=torch.int64, device=device)

    def take_rows(self, tile: Tile) -> None:
        """Every row of the tile is a query."""
        self._merge(tile.scores, tile.top, tile.left)

    def take_columns(self, tile: Tile) -> None:
        """Every column of the tile is a query."""
        self._merge(tile.scores.T, tile.left, tile.top)

    def result(self, terms: Tensor) -> TopK:
        return TopK(self.values + terms[:, None], self.indices)

    def _merge(self, scores: Tensor, first: int, offset: int) -> None:
        queries = slice(first, first + len(scores))
        k = self.values.shape[1]
        values, indices = scores.topk(min(k, scores.shape[1]), dim=1)
        values = torch.cat([self.values[queries], values], dim=1)  # (queries, <= 2k)
        indices = torch.cat([self.indices[queries], indices + offset], dim=1)
        self.values[queries], chosen = values.topk(k, dim=1)
        self.indices[queries] = indices.gather(1, chosen)
