"""Ranks of known counterparts among all candidates, for Hits@k and MRR.

Scores that are equal must not count as hits, and entities with the same neighbourhood really do get the same vector. But a blocked float32 product
gives two identical columns values that differ in the last bits, depending on their place in a block. So scores within ``TIE_TOLERANCE`` of
the true pair's count as equal to it: a few times the largest error that was seen (9e-7 at D = 600), far below any difference that means something.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.search.base import ENOUGH_BUDGET, Divided, Hubness, half_csls
from engine.search.csls import CslsTopK, Matches, csls_score
from engine.search.kernels import count_columns, count_rows
from engine.search.similarity import Similarity, on_similarity
from engine.search.tiles import Terms, Tile, tiles
from engine.util.devices import has_kernels
from engine.util.threads import spread

TIE_TOLERANCE = 2e-6
"""CSLS scores of unit rows that are closer than this are equal."""

LISTED = 1e-6
"""CSLS of unit rows in lists of matches, which are rounded to float32, is known to this."""
MOST_OPEN = 0.5
"""Share of the entities that lists do not settle, from which on all scores are computed."""

LOWEST = -1e6
"""Below every score."""


@dataclass(frozen=True)
class QueryRanks:
    """Ranks of the queries of one direction.

    Attributes:
        queries: (q,) int64 rows of the entities that have a counterpart, ascending, distinct.
        ranks: (q,) int64 rank of the best-ranked counterpart; 1 is best.
    """

    queries: Tensor  # (q,)
    ranks: Tensor  # (q,)


@dataclass(frozen=True)
class LinkRanks:
    """Ranks in both directions."""

    source_to_target: QueryRanks
    target_to_source: QueryRanks


@on_similarity
@torch.no_grad()
def true_ranks(similarity: Similarity, links: Tensor, terms: Hubness, budget: int = ENOUGH_BUDGET, lists: CslsTopK | None = None) -> LinkRanks:
    """Ranks of the known counterparts among all candidates by CSLS, always by exact comparison.

    rank = 1 + number of other candidates whose score is greater than or equal to the counterpart's. An entity with several counterparts is one
    query: the rank is that of the best of them, and the others are left out of the list. A zero row finds nothing and is not found: the rank is last.

    Args:
        similarity: (n, m) of the pools; or two matrices of float32 rows of unit length.
        links: (L, 2) int64 rows of source and target; need be neither one-to-one nor distinct.
        terms: hubness of the same pools.
        budget: bytes that a block of scores may take.
        lists: the best matches of both directions by these terms, found exactly, where they are known: scores are then computed of those entities
            alone whose counterparts are not among them.

    Raises:
        TrainingError: a value is not finite.
    """
    similarity.check()
    links = torch.unique(links, dim=0) if len(links) else links.reshape(0, 2)
    half = csls_score(similarity.pairs(links[:, 0], links[:, 1]), terms.source[links[:, 0]], terms.target[links[:, 1]]) / 2
    zero_source, zero_target = similarity.zero_rows()
    half[zero_source[links[:, 0]] | zero_target[links[:, 1]]] = LOWEST
    least = half - tie_tolerance(similarity) / 2
    shifted = half_csls(similarity, terms)
    bars = link_bars(links[:, 0], least, similarity.shape[0]), link_bars(links[:, 1], least, similarity.shape[1])
    if isinstance(shifted, Divided):
        counts = shifted.count_better(links, bars)
    elif lists is not None:
        counts = count_listed(shifted, links, bars, lists, budget, LISTED * max(similarity.largest, 1.0))
    else:
        counts = count_better(shifted, links, bars, budget)
    return LinkRanks(counted(links[:, 0], counts[0]), counted(links[:, 1], counts[1]))


def counted(entities: Tensor, better: Tensor) -> QueryRanks:
    """Ranks of the (L,) entities, by how many candidates of each are better."""
    queries = torch.unique(entities)
    return QueryRanks(queries, 1 + better[queries])


def link_bars(entities: Tensor, least: Tensor, size: int) -> Tensor:
    """(size,) float64 what a candidate must reach to count as better than an entity's best counterpart; infinite where nothing is asked.

    Args:
        entities: (L,) one of each link.
        least: (L,) half the links' CSLS, less half the tolerance.
        size: number of entities.
    """
    bars = torch.full((size,), -torch.inf, dtype=torch.float64, device=entities.device)
    bars.scatter_reduce_(0, entities, least, "amax")
    return bars.masked_fill_(bars == -torch.inf, torch.inf)


def count_better(shifted: Similarity, links: Tensor, bars: tuple[Tensor, Tensor], budget: int = ENOUGH_BUDGET) -> tuple[Tensor, Tensor]:
    """(n,), (m,) how many candidates, true counterparts left out, reach the bar of each source and each target entity.

    Args:
        shifted: (n, m) half the CSLS scores, or of a part of the entities.
        links: (L, 2) of these.
        bars: of these, see :func:`link_bars`.
        budget: bytes that a block of scores may take.
    """
    own = Terms.apart(shifted)[1]
    of_source, of_target = Counter(bars[0], own.rows), Counter(bars[1], own.columns)
    for tile in tiles(shifted, budget):
        of_source.count_rows(tile)
        of_target.count_columns(tile)
        inside, of_rows, of_columns = scores_of_links(tile, links)
        of_source.exclude_true_links(links[inside, 0], of_rows)
        of_target.exclude_true_links(links[inside, 1], of_columns)
    return of_source.counts, of_target.counts


def count_listed(
    shifted: Similarity, links: Tensor, bars: tuple[Tensor, Tensor], lists: CslsTopK, budget: int, rounding: float
) -> tuple[Tensor, Tensor]:
    """The same, by lists of matches where these reach below the bar, and by the scores of the other entities."""
    n, m = shifted.shape
    by_source, open_sources = better_in_lists(lists.source_to_target, links, bars[0], m, rounding)
    by_target, open_targets = better_in_lists(lists.target_to_source, links.flip(1), bars[1], n, rounding)
    if len(open_sources) + len(open_targets) > MOST_OPEN * (n + m):
        return count_better(shifted, links, bars, budget)
    everything = torch.arange(n, device=links.device), torch.arange(m, device=links.device)
    nothing = bars[0].new_full((n,), torch.inf), bars[1].new_full((m,), torch.inf)
    if len(open_sources):
        own = renumbered(links, 0, open_sources)
        by_source[open_sources] = count_better(shifted.select(open_sources, everything[1]), own, (bars[0][open_sources], nothing[1]), budget)[0]
    if len(open_targets):
        own = renumbered(links, 1, open_targets)
        by_target[open_targets] = count_better(shifted.select(everything[0], open_targets), own, (nothing[0], bars[1][open_targets]), budget)[1]
    return by_source, by_target


def better_in_lists(matches: Matches, links: Tensor, bars: Tensor, candidates: int, rounding: float) -> tuple[Tensor, Tensor]:
    """(n,) how many of each entity's listed candidates, true counterparts left out, reach its bar, and the entities whose lists end before the bar.

    Args:
        matches: of the entities.
        links: (L, 2) entity and counterpart, distinct.
        bars: (n,) of half the CSLS, see :func:`link_bars`.
        candidates: number of them, listed or not.
        rounding: of the lists' CSLS.
    """
    scores, least = matches.csls.double(), 2 * bars
    better = (scores >= least[:, None]).sum(dim=1)
    listed = (matches.indices[links[:, 0]] == links[:, 1, None]) & (scores[links[:, 0]] >= least[links[:, 0], None])
    better.index_add_(0, links[:, 0], -listed.any(dim=1).long())
    beyond = scores[:, -1] >= least - rounding if 0 < scores.shape[1] < candidates else torch.zeros_like(better, dtype=torch.bool)
    return better, beyond.nonzero().flatten()


def renumbered(links: Tensor, column: int, entities: Tensor) -> Tensor:
    """The links of some ascending entities, which are numbered by their position among them."""
    own = links[torch.isin(links[:, column], entities)].clone()
    own[:, column] = torch.searchsorted(entities, own[:, column].contiguous())
    return own


def tie_tolerance(similarity: Similarity) -> float:
    """CSLS scores closer than this are equal: rounding errors grow with the values, so ``TIE_TOLERANCE`` does."""
    return TIE_TOLERANCE * max(similarity.largest, 1.0)


def scores_of_links(tile: Tile, links: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Positions of the links that lie in a tile, and their scores there, as their rows and as their columns see them: without their own term."""
    height, width = tile.scores.shape
    rows, columns = links[:, 0] - tile.top, links[:, 1] - tile.left
    inside = ((rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)).nonzero().flatten()
    rows, columns = rows[inside], columns[inside]
    scores = tile.scores[rows, columns]
    return inside, scores + tile.column_terms[columns], scores + tile.row_terms[rows]


class Counter:
    """Counts, for each entity of one graph, the candidates that score at least as high as its best counterpart."""

    def __init__(self, bars: Tensor, terms: Tensor) -> None:
        """
        Args:
            bars: (size,) what is to be reached.
            terms: (size,) the entities' own terms, which the scores that are counted come without.
        """
        self.bars = (bars - terms).float()
        self.counts = torch.zeros(len(terms), dtype=torch.int64, device=terms.device)

    def count_rows(self, tile: Tile) -> None:
        """Every row of the tile is a query."""
        if not has_kernels(tile.scores.device):
            part = slice(tile.top, tile.top + len(tile.scores))
            self.counts[part] += (tile.scores >= self.bars[part, None]).sum(dim=1)
            return
        arrays = tile.column_terms.numpy(), self.bars.numpy(), self.counts.numpy()
        scores = tile.scores.numpy()
        spread(lambda start, stop: count_rows(scores, start, stop, tile.top, *arrays), scores.shape[0], scores.size)

    def count_columns(self, tile: Tile) -> None:
        """Every column of the tile is a query."""
        if not has_kernels(tile.scores.device):
            part = slice(tile.left, tile.left + tile.scores.shape[1])
            self.counts[part] += (tile.scores >= self.bars[part]).sum(dim=0)
            return
        arrays = tile.row_terms.numpy(), self.bars.numpy(), self.counts.numpy()
        scores = tile.scores.numpy()
        spread(lambda start, stop: count_columns(scores, start, stop, tile.left, *arrays), scores.shape[1], scores.size)

    def exclude_true_links(self, entities: Tensor, scores: Tensor) -> None:
        """Take true counterparts out of the counts again; ``scores`` are the very values that were counted."""
        reached = scores >= self.bars[entities]
        self.counts.index_add_(0, entities, -reached.long())
