"""Exact search: tiles of the score matrix, each looked at once for both directions (:mod:`engine.search.tiles`); on CUDA torch selects.

There nothing is read back before the end: tiles, what is best so far and the hubness terms stay on the card, and each tile is begun without waiting
for the one before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from engine.search.base import (
    DEFAULT_BUDGET,
    ENOUGH_BUDGET,
    CslsNeighbours,
    Divided,
    Hubness,
    SearchIndex,
    TopK,
    check_k,
    mean_value,
    register_index,
    zero_term,
    zeros_last,
)
from engine.search.similarity import Shifted, Similarity
from engine.search.tiles import HeapBest, Terms, Tile, descending, tile_size, tiles
from engine.util.devices import block_bytes, has_kernels
from engine.util.threads import cut

# CSLS neighbours in one pass over the score matrix instead of two, and still exactly.
#
# The obvious way needs two: the hubness term of a target is known when all sources have been seen, so only a second pass can find which targets are
# best for a source. Here tiles are whole rows. What a tile needs of its own rows, it has: r(s) of each is known at once, which is all that the
# search from the target side asks for. For the search from the source side r(t) is estimated by the mean of the k best sources *so far*. That is
# too low, but by nearly the same everywhere, so each source keeps a few more targets than are wanted, best by estimate. At the end every r(t) is
# known, and with it how much each estimate was off: a target that a source did not keep scores at most the worst one that it kept, plus that. Only
# where this does not suffice as a proof is anything looked at again, and then only the targets in question: a few in a hundred pairs for trained
# embeddings, all of them at the worst.

LEAST_ROWS = 256
"""Rows of a tile below which the product would suffer."""
SPARE = 50
"""Targets that a source keeps beyond those wanted: at least this number, or half as many as those."""
RENEWED = 1.25
"""How many times as many sources make it worth while to estimate again."""
ROUNDING = 2e-6
"""Half a CSLS score of unit rows is known to this."""
ROWS_SORTED = 4096
"""Rows that are put in order at a time."""
ROWS_AGAIN = 512
LEAST_GROUP = 4
"""Columns of a group below which sorting everything is as quick."""
COLUMNS_AGAIN = 2**13
"""Pairs that are looked at again at a time."""


def fits_one_pass(similarity: Similarity, k: int, budget: int) -> bool:
    """Whether tiles of whole rows within the budget are high enough, for the product and for estimates from the first of them."""
    n, m = similarity.shape
    height = tile_size(similarity, budget, whole_rows=True)[0]
    at_hand = has_kernels(similarity.device) and not isinstance(similarity, Shifted | Divided)
    return at_hand and n > 0 < m and height >= min(n, max(k, LEAST_ROWS))


def search_in_one_pass(similarity: Similarity, k: int, top: int, budget: int) -> CslsNeighbours:
    """The ``top`` best by CSLS from either side, with hubness terms of k neighbours; see :func:`fits_one_pass` for when.

    Raises:
        TrainingError: what similarities are computed from is not finite.
    """
    similarity.check()
    scan = Scan(similarity, k, top)
    least = torch.float32.itemsize * max(k, LEAST_ROWS) * similarity.shape[1]
    scan.take_all(tiles(similarity, min(budget, max(ENOUGH_BUDGET, least)), whole_rows=True))
    terms = zeros_last(similarity, scan.hubness(k))
    of_target = scan.best_of_target.result(-terms.target / 2)
    return CslsNeighbours(terms, scan.proven(similarity, terms, top, budget), of_target)


@dataclass(frozen=True)
class Period:
    """Sources that were seen while the (m,) targets' hubness terms were taken to be so much."""

    first: int
    estimates: Tensor  # (m,)


class Scan:
    """What one pass over n x m values collects.

    Attributes:
        near_source, near_target: nearest by similarity, for the hubness terms.
        kept: targets of each source, the best by estimated CSLS.
        best_of_target: sources of each target, the best by CSLS.
        periods: the estimates, renewed when ``RENEWED`` times as many sources have been seen.
    """

    def __init__(self, similarity: Similarity, k: int, top: int) -> None:
        n, m = similarity.shape
        self.size = n
        self._zero_rows, self._zero_columns = similarity.zero_rows()
        self._zero_term = zero_term(similarity)
        self.near_source, self.near_target = HeapBest(n, min(k, m)), HeapBest(m, min(k, n))
        self.kept = HeapBest(n, min(top + max(SPARE, top // 2), m))
        self.best_of_target = HeapBest(m, min(top, n))
        self.periods: list[Period] = []
        self._seen_then = 0  # at the beginning of the last period

    def take_all(self, several: Iterator[Tile]) -> None:
        """Rows in their order; the last tile's memory is not kept beyond it."""
        for tile in several:
            self.take(tile)

    def take(self, tile: Tile) -> None:
        """The next rows, whole."""
        seen = tile.top + len(tile.scores)
        self.near_source.take_rows(tile)
        self.near_target.take_columns(tile)
        own = means(self.near_source, slice(tile.top, seen)).masked_fill(self._zero_rows[tile.top : seen], self._zero_term)
        self.best_of_target.take_columns(replace(tile, row_terms=-own / 2))
        if seen >= RENEWED * self._seen_then:
            estimates = means(self.near_target, slice(None)).masked_fill(self._zero_columns, self._zero_term)
            self.periods.append(Period(tile.top, estimates))
            self._seen_then = seen
        self.kept.take_rows(replace(tile, column_terms=-self.periods[-1].estimates / 2))

    def hubness(self, k: int) -> Hubness:
        of_source, of_target = (mean_value(best.result(torch.zeros(len(best.values))).values) for best in (self.near_source, self.near_target))
        return Hubness(of_source, of_target, k)

    def proven(self, similarity: Similarity, terms: Hubness, top: int, budget: int) -> TopK:
        """The best targets of each source."""
        kept = self.kept.result(torch.zeros(self.size))  # in order by estimate, so that little is left to sort
        values, indices = kept.values, kept.indices
        bars = torch.from_numpy(self.kept.bars) if values.shape[1] < similarity.shape[1] else torch.full((self.size,), -torch.inf)
        rounding = ROUNDING * max(similarity.largest, 1.0)
        top = min(top, values.shape[1])
        best = TopK(torch.empty(self.size, top), torch.empty((self.size, top), dtype=torch.int64))
        for rows, period in self._spans():
            gains = (period.estimates - terms.target) / 2  # (m,) what is to be added to what was compared
            for part in (slice(rows.start + some.start, rows.start + some.stop) for some in cut(rows.stop - rows.start, ROWS_SORTED)):
                found = first_ones(values[part] + gains[indices[part]], indices[part], top)
                best.values[part], best.indices[part] = found.values, found.indices
            for places, targets in in_question(best.values[rows, -1] - bars[rows] - rounding, gains):
                again = places + rows.start
                known = TopK(values[again] + gains[indices[again]], indices[again])
                improved = looked_at_again(similarity, again, targets, terms, known, top, budget)
                best.values[again], best.indices[again] = improved.values, improved.indices
        for rows in cut(self.size, ROWS_SORTED):
            ordered = first_ones(best.values[rows] - terms.source[rows, None] / 2, best.indices[rows], top)
            best.values[rows], best.indices[rows] = ordered.values, ordered.indices
        return best

    def _spans(self) -> Iterator[tuple[slice, Period]]:
        """Rows of each period."""
        ends = [period.first for period in self.periods[1:]] + [self.size]
        return ((slice(period.first, end), period) for period, end in zip(self.periods, ends, strict=True))


def means(best: HeapBest, queries: slice) -> Tensor:
    """(q,) mean of the values that some queries have so far."""
    return torch.from_numpy(best.values[queries].mean(axis=1, dtype=np.float64).astype(np.float32))


def first_ones(values: Tensor, indices: Tensor, top: int) -> TopK:
    """The ``top`` largest of each row, in order; of equals the lower index."""
    order = descending(values.double(), indices)[:, :top]
    return TopK(values.gather(1, order), indices.gather(1, order))


def in_question(slack: Tensor, gains: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows, a few at a time, whose lists may lack something, and the columns that may be lacking: those that gain at least the row's slack."""
    unproven = (slack <= gains.max()).nonzero().flatten()
    ordered = unproven[slack[unproven].argsort(stable=True)]
    for rows in (ordered[part] for part in cut(len(ordered), ROWS_AGAIN)):
        yield rows, (gains >= slack[rows[0]]).nonzero().flatten()


def looked_at_again(similarity: Similarity, rows: Tensor, targets: Tensor, terms: Hubness, known: TopK, top: int, budget: int) -> TopK:
    """The ``top`` best of what is known of some rows and of their scores with some targets, all of them recomputed."""
    best = HeapBest(len(rows), min(top, len(targets)))
    for part in cut(len(targets), COLUMNS_AGAIN):
        columns = targets[part]
        few = similarity.select(rows, columns).shifted(torch.zeros(len(rows)), -terms.target[columns] / 2)
        for tile in tiles(few, budget):
            best.take_rows(replace(tile, left=tile.left + part.start))
    again = best.result(torch.zeros(len(rows)))
    computed = torch.zeros(similarity.shape[1], dtype=torch.bool)
    computed[targets] = True
    others = known.values.masked_fill(computed[known.indices], -torch.inf)
    return first_ones(torch.cat([others, again.values], dim=1), torch.cat([known.indices, targets[again.indices]], dim=1), top)


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
        best = HeapBest if has_kernels(similarity.device) else TorchBest
        of_source = best(n, min(k, m), similarity.device)
        of_target = best(m, min(k, n) if both else 0, similarity.device)
        budget = max(self.budget, block_bytes(similarity.device)) if similarity.device.type == "cuda" else self.budget
        for tile in tiles(similarity, budget):
            of_source.take_rows(tile)
            if both:
                of_target.take_columns(tile)
        terms = Terms.apart(similarity)[1]
        return of_source.result(terms.rows), of_target.result(terms.columns)


class TorchBest:
    """Running top-k on any device: the best of a tile, merged with what was best so far."""

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
        values, indices = best_of_rows(scores, min(k, scores.shape[1]))
        values = torch.cat([self.values[queries], values], dim=1)  # (queries, <= 2k)
        indices = torch.cat([self.indices[queries], indices + offset], dim=1)
        self.values[queries], chosen = values.topk(k, dim=1)
        self.indices[queries] = indices.gather(1, chosen)


def best_of_rows(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """``scores.topk(k, dim=1)`` of (q, m) scores, most of which are read once and sorted never.

    A row's k best values lie within its k groups of neighbouring columns with the highest maxima: were one of them in another group, each of these k
    would hold a value at least as high. So only the maxima and what these groups hold are sorted.
    """
    m = scores.shape[1]
    size = math.isqrt(m // max(k, 1))
    groups = m // max(size, 1)
    if size < LEAST_GROUP or groups <= k:
        found = scores.topk(k, dim=1)
        return found.values, found.indices
    highest = scores[:, : groups * size].view(len(scores), groups, size).amax(2)
    chosen = highest.topk(k, dim=1).indices * size
    columns = (chosen.unsqueeze(2) + torch.arange(size, device=scores.device)).flatten(1)
    rest = torch.arange(groups * size, m, device=scores.device).expand(len(scores), -1)  # columns that make no whole group
    columns = torch.cat([columns, rest], dim=1)
    values, places = scores.gather(1, columns).topk(k, dim=1)
    return values, columns.gather(1, places)
