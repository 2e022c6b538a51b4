"""Bi-directional iteration (semi-supervised training; paper section 6.3, after MRAEA): the model's own confident pairs become seed links.

After the basic epochs come rounds. Each begins by selecting pairs from a pool of entities and continues training, with the optimiser's state kept,
on the seed links and the selected pairs together. Test links are never consulted; where there are any they only show, afterwards, how many of
the selected pairs were right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from engine.config import SemiConfig
from engine.data.knowledge_graph import AlignmentTask, empty_links
from engine.decoding import Candidates, GraphEvidence, get_decoder
from engine.decoding.base import NONE, Decoder, best_pairs
from engine.decoding.candidates import list_length, listed_candidates, with_pairs
from engine.decoding.matchings import Matchings
from engine.decoding.propagation import PropagationDecoder
from engine.decoding.sinkhorn import SinkhornDecoder
from engine.errors import ConfigError
from engine.evaluation.metrics import Selectable
from engine.search import UnscaledEmbeddings, csls_topk
from engine.search.similarity import accepting_matrices
from engine.util.arrays import FloatArray, IntArray, link_keys

DRAWN = 30
"""Candidates of each entity that matchings are drawn from."""
DISTINCTIVE = 0.5
"""What two entities have to share for draws to begin with their pair; 1 is a value that no others have, or several of which others have some."""
KNOWN_COUNTERPARTS = "rounds chose among entities known to have a counterpart"


@dataclass(frozen=True)
class Selection:
    """Pairs that a round trains on besides the seed links.

    Attributes:
        pairs: (n, 2) source and target entity.
        scores: (n,) of each: CSLS ("mutual"), the plan's weight ("sinkhorn", "propagation") or the share of the matchings ("matchings").
    """

    pairs: IntArray  # (n, 2)
    scores: npt.NDArray[np.float32]  # (n,)

    def __len__(self) -> int:
        return len(self.pairs)


def no_selection() -> Selection:
    return Selection(np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.float32))


@dataclass(frozen=True)
class Round:
    """What is known of a round when it begins.

    Attributes:
        number, rounds: 1 .. rounds; 0 is what training starts with, before the first.
        selected: pairs that this round trains on besides the seed links.
        new: how many of them no earlier round trained on.
        known: how many have an end whose counterpart is known from test links; None without test links.
        right: how many of those are right.
        pool: the entities that pairs were selected from, for people.
        parent: the run that the pairs of round 0 were carried over from; "" where the facts imply them.
    """

    number: int
    rounds: int
    selected: int
    new: int
    known: int | None
    right: int | None
    pool: str
    parent: str = ""

    def to_dict(self) -> dict[str, object]:
        """One line of a run's trace."""
        return {"round": self.number, "selected": self.selected, "new": self.new, "known": self.known, "right": self.right}


@dataclass(frozen=True)
class Pool:
    """The entities that pairs may be selected from, what to call them, and the pairs that never are: those known to be no links."""

    sources: IntArray
    targets: IntArray
    name: str
    rejected: IntArray = field(default_factory=empty_links)  # (n, 2)


@dataclass(frozen=True)
class SharedWorth:
    """What rounds look at besides similarity and triples where training started from names and other values.

    Attributes:
        shared: pairs of the pool that share values; how much is in place of their similarity, 1 for a value that no others have.
        begin: the pairs that training is on.
    """

    shared: Candidates
    begin: Selection


def selects_among_all(config: SemiConfig, *, own: bool, test_links: int) -> bool:
    """Whether rounds select among all entities, or among those that are known to have a counterpart because a test link names them.

    Args:
        config: of the rounds.
        own: whether the links are a user's own (:attr:`engine.data.AlignmentTask.own_links`).
        test_links: how many there are.
    """
    return config.pool == "all" or (config.pool == "auto" and (own or not test_links))


def rounds_protocol(manifest: Mapping[str, Any]) -> str:
    """What belongs next to every figure of a finished run whose rounds used the test links' entities, from its manifest; "" for all others."""
    try:
        variant, links, own = manifest["variant"], manifest["data"]["links"], bool(manifest["data"].get("own_links"))
        pool, rounds = manifest["config"]["semi"]["pool"], int(manifest["config"]["semi"]["rounds"])
        config = SemiConfig(pool=pool)
        everyone = selects_among_all(config, own=own, test_links=int(links["test"]))
    except (KeyError, TypeError, ValueError, AttributeError, ConfigError):
        return ""
    return "" if variant not in ("semi", "literal") or not rounds or everyone else KNOWN_COUNTERPARTS


def selection_pool(task: AlignmentTask, config: SemiConfig) -> Pool:
    """Entities that pairs are selected from; those of the seed links never are.

    "test": the entities of the test links, as the paper has it: each is known to have a counterpart, only not which. "all": every entity.
    "auto": "test" on benchmarks with test links, "all" on a user's own data. Entities whose test link was set aside because reviewers rejected a
    pair of theirs stay in the pool.
    """
    if not selects_among_all(config, own=task.own_links, test_links=len(task.test_links)):
        aside = [np.intersect1d(task.rejected_links[:, side], task.unsure_links[:, side]) for side in range(2)]
        chosen, name = [np.union1d(task.test_links[:, side], aside[side]) for side in range(2)], "entities of the test links"
    else:
        chosen, name = [np.arange(graph.num_entities) for graph in (task.source, task.target)], "entities without a seed link"
    sources, targets = (np.setdiff1d(entities, task.train_links[:, side]) for side, entities in enumerate(chosen))
    return Pool(sources, targets, name, task.rejected_links)


@accepting_matrices(UnscaledEmbeddings)
@torch.no_grad()
def select_pairs(
    similarity: Selectable,
    pool: Pool,
    config: SemiConfig,
    csls_k: int,
    earlier: Selection,
    evidence: Callable[[], GraphEvidence] | None = None,
    seed: tuple[int, ...] = (0,),
    values: SharedWorth | None = None,
) -> Selection:
    """The pairs of the next round.

    Args:
        similarity: of all source and all target entities; in its place, two matrices (E1, D) and (E2, D) of embeddings of any length.
        pool: where pairs may come from.
        config: how to select.
        csls_k: neighbours in CSLS's hubness terms.
        earlier: what the round before trained on.
        evidence: gives the graphs and seed links; called for "propagation" and "matchings", which need it.
        seed: of the draws.
        values: what draws look at besides; None where training did not start from values.

    Returns:
        With "mutual" (paper): the earlier pairs, and those of entities not yet used that are each other's nearest by CSLS. With "sinkhorn":
        a new selection from the whole pool, of pairs that are each other's best in the Sinkhorn plan and weigh more than the threshold;
        "propagation" does the same with the plan of similarity and neighbours' agreement. "matchings" begins with these pairs and draws whole
        matchings by the same evidence (:mod:`engine.decoding.matchings`).
    """
    if config.selection == "sinkhorn":
        return confident_pairs(similarity, pool, config.threshold, csls_k, SinkhornDecoder(config.temperature))
    if config.selection in ("propagation", "matchings"):
        if evidence is None:
            raise ConfigError(f"semi.selection={config.selection} needs the graphs, which were not given; use sinkhorn or mutual.")
        graphs = evidence().within(pool.sources, pool.targets)
        if config.selection == "matchings":
            return probable_pairs(similarity, pool, config, csls_k, graphs, seed, values)
        return confident_pairs(similarity, pool, config.threshold, csls_k, PropagationDecoder(graphs, temperature=config.temperature))
    rest = Pool(np.setdiff1d(pool.sources, earlier.pairs[:, 0]), np.setdiff1d(pool.targets, earlier.pairs[:, 1]), pool.name, pool.rejected)
    found = mutual_pairs(similarity, rest, csls_k)
    return Selection(np.concatenate([earlier.pairs, found.pairs]), np.concatenate([earlier.scores, found.scores]))


@accepting_matrices(UnscaledEmbeddings)
def mutual_pairs(similarity: Selectable, pool: Pool, csls_k: int) -> Selection:
    """Pairs of the pool that are each other's nearest by CSLS."""
    if not len(pool.sources) or not len(pool.targets):
        return no_selection()
    decoding = get_decoder("mutual").decode(pool_candidates(similarity, pool, csls_k, top=2))
    return taken(decoding.chosen_by_source, decoding.candidates.targets, decoding.candidates.csls, pool)


@accepting_matrices(UnscaledEmbeddings)
def confident_pairs(similarity: Selectable, pool: Pool, threshold: float, csls_k: int, decoder: Decoder) -> Selection:
    """Pairs of the pool that are each other's best in the decoder's plan (its scores are logarithms), with a weight above the threshold."""
    if not len(pool.sources) or not len(pool.targets):
        return no_selection()
    candidates = pool_candidates(similarity, pool, csls_k)
    decoding = decoder.decode(candidates)
    weights = np.exp(decoding.scores)
    return taken(sure_choices(decoding.chosen_by_source, decoding.chosen_by_target, weights, threshold), candidates.targets, weights, pool)


def sure_choices(by_source: IntArray, by_target: IntArray, weights: npt.NDArray[np.floating], threshold: float) -> IntArray:
    """(n,) each source's choice where the chosen target chooses the same pair and its weight is above the threshold, else -1."""
    agreed = np.intersect1d(by_source, by_target)
    sure = agreed[(agreed != NONE) & (weights[agreed] > threshold)]
    return np.where(np.isin(by_source, sure), by_source, NONE)


@accepting_matrices(UnscaledEmbeddings)
def probable_pairs(
    similarity: Selectable,
    pool: Pool,
    config: SemiConfig,
    csls_k: int,
    graphs: GraphEvidence,
    seed: tuple[int, ...] = (0,),
    values: SharedWorth | None = None,
) -> Selection:
    """Pairs of the pool that most drawn one-to-one matchings have. Draws begin with the confident pairs of propagation.

    Where training started from values, what two entities share adds to their CSLS, and draws begin with the pairs that training is on and that share
    much, then those of propagation. Structure does not distinguish the siblings of a class with few triples: rounds without their names would lose
    what names implied.
    """
    if not len(pool.sources) or not len(pool.targets):
        return no_selection()
    candidates = pool_candidates(similarity, pool, csls_k, DRAWN, None if values is None else values.shared)
    decoding = PropagationDecoder(graphs, temperature=config.temperature).decode(candidates)
    begin = sure_choices(decoding.chosen_by_source, decoding.chosen_by_target, np.exp(decoding.scores), config.threshold)
    if values is not None:
        begin = with_more(choices_of(distinctive_pairs(values, pool), candidates, pool), begin, candidates.targets)
    if (begin == NONE).all():
        return no_selection()
    chosen, probabilities = drawn_choices(Matchings(graphs), candidates, begin, config.threshold, seed)
    return taken(chosen, candidates.targets, probabilities, pool)


def choices_of(selection: Selection, candidates: Candidates, pool: Pool) -> IntArray:
    """(n,) the position of each source's selected pair among the candidates, -1 where it is none: the reverse of :func:`taken`."""
    sources, targets = (np.searchsorted(entities, selection.pairs[:, side]) for side, entities in enumerate((pool.sources, pool.targets)))
    chosen = np.full(candidates.shape[0], NONE, dtype=np.int64)
    chosen[sources] = candidates.positions(sources, targets)
    return chosen


def distinctive_pairs(values: SharedWorth, pool: Pool) -> Selection:
    """Those pairs that training is on whose entities share what few others do."""
    shared = values.shared.kept(values.shared.similarity >= DISTINCTIVE)
    return taken(choices_of(values.begin, shared, pool), shared.targets, shared.similarity, pool)


def with_more(chosen: IntArray, more: IntArray, targets: IntArray) -> IntArray:
    """(n,) the chosen candidates, and of others those whose source and target are free."""
    free = (chosen == NONE) & (more != NONE)
    free[free] = ~np.isin(targets[more[free]], targets[chosen[chosen != NONE]])
    return np.where(free, more, chosen)


def drawn_choices(
    matchings: Matchings, candidates: Candidates, begin: IntArray, threshold: float, seed: tuple[int, ...]
) -> tuple[IntArray, FloatArray]:
    """(n,) each source's candidate that more than a share of the drawn matchings have, -1 for none; (P,) the share of each candidate."""
    probabilities = matchings.probabilities(candidates, begin, seed)
    by_source, by_target = (best_pairs(lists, probabilities)[0] for lists in (candidates.by_source, candidates.by_target))
    return sure_choices(by_source, by_target, probabilities, threshold), probabilities


def pool_candidates(similarity: Selectable, pool: Pool, csls_k: int, top: int | None = None, shared: Candidates | None = None) -> Candidates:
    """Candidates of the pool, without pairs that are known to be no links.

    Args:
        similarity, pool, csls_k: as for :func:`select_pairs`.
        top: candidates of each entity; None: as many as :func:`engine.decoding.candidates.list_length` says.
        shared: pairs that are candidates in any case; what they share adds to their CSLS.
    """
    chosen = similarity.select(torch.from_numpy(pool.sources), torch.from_numpy(pool.targets))
    top = list_length(chosen.shape, top)
    found = csls_topk(chosen, csls_k, top)
    candidates = listed_candidates(chosen, found, top)
    if shared is not None:
        candidates = with_pairs(candidates, shared.codes, chosen, found.hubness)
        csls = candidates.csls.copy()
        csls[np.searchsorted(candidates.codes, shared.codes)] += shared.similarity
        candidates = replace(candidates, csls=csls)
    return without_rejected(candidates, pool)


def without_rejected(candidates: Candidates, pool: Pool) -> Candidates:
    """The candidates of a pool that are not known to be no links."""
    if not len(pool.rejected):
        return candidates
    width = int(max(pool.targets.max(), pool.rejected[:, 1].max())) + 1
    codes = pool.sources[candidates.sources] * width + pool.targets[candidates.targets]
    return candidates.kept(~np.isin(codes, link_keys(pool.rejected, width)))


def taken(chosen: IntArray, targets: IntArray, scores: npt.NDArray[np.floating], pool: Pool) -> Selection:
    """The chosen candidate of each source of the pool (-1: none), in the graphs' own indices."""
    at = np.flatnonzero(chosen != NONE)
    pairs = np.stack([pool.sources[at], pool.targets[targets[chosen[at]]]], axis=1)
    return Selection(pairs, scores[chosen[at]].astype(np.float32))


def describe_round(number: int, rounds: int, selection: Selection, earlier: Selection, task: AlignmentTask, pool: Pool) -> Round:
    """Counts for people; the truth is looked at here and nowhere else."""
    before = set(map(tuple, earlier.pairs.tolist()))
    new = sum(tuple(pair) not in before for pair in selection.pairs.tolist())
    known = right = None
    if len(task.test_links):
        truth = set(map(tuple, task.test_links.tolist()))
        ends = [set(task.test_links[:, side].tolist()) for side in range(2)]
        known = sum(source in ends[0] or target in ends[1] for source, target in selection.pairs.tolist())
        right = sum(tuple(pair) in truth for pair in selection.pairs.tolist())
    return Round(number, rounds, len(selection), new, known, right, f"{len(pool.sources):,} and {len(pool.targets):,} {pool.name}")
