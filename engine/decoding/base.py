"""What every decoder offers, what it returns, and the registry of decoders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from engine.data.knowledge_graph import Side
from engine.decoding.candidates import BoolArray, Candidates, FloatArray, Lists
from engine.decoding.capacity import ONE, Capacity, capacity_of
from engine.decoding.graph_evidence import GraphEvidence
from engine.decoding.kernels import best_two, list_ranks
from engine.errors import ConfigError
from engine.util.arrays import IntArray
from engine.util.registry import Registry

ScoreArray = npt.NDArray[np.float32] | npt.NDArray[np.float64]
NONE = -1
"""No counterpart, no pair."""


@dataclass(frozen=True)
class Decoding:
    """What a decoder makes of candidates: one answer for each entity, and an order of its candidates.

    Attributes:
        decoder: its registered name.
        candidates: what was decoded.
        scores: (P,) the decoder's score of each candidate pair, in float32: lists are read in descending order of it. A pair that a one-to-one
            decoder decided on has ``inf``, so that it comes first in both lists (of several pairs of an entity, finite scores above all others).
        chosen_by_source: (n,) position of the pair that each source is matched by, -1 for none.
        chosen_by_target: (m,) the same for targets. For one-to-one decoders these are the same pairs.
        tolerance: scores closer than this are equal.
        capacity: how many counterparts a one-to-one decoder gave an entity at most.
        taken: positions of all pairs that were decided on, ascending, where an entity may be in several; the two ``chosen`` have its best one.
    """

    decoder: str
    candidates: Candidates
    scores: FloatArray  # (P,)
    chosen_by_source: IntArray  # (n,)
    chosen_by_target: IntArray  # (m,)
    tolerance: float
    capacity: Capacity = ONE
    taken: IntArray | None = None

    def chosen(self, side: Side) -> IntArray:
        """Position of the pair that each entity of one graph is matched by, -1 for none."""
        return self.chosen_by_source if side == "source" else self.chosen_by_target

    def predicted(self, side: Side) -> IntArray:
        """(n,) or (m,) predicted counterpart of each entity of one graph, -1 for none."""
        predicted: IntArray = where_chosen(self.chosen(side), self.candidates.lists(side).others, NONE)
        return predicted

    def ranking(self, side: Side, entity: int) -> tuple[IntArray, FloatArray]:
        """An entity's candidates, best first (of equals the lower index), and the decoder's scores."""
        lists = self.candidates.lists(side)
        edges = lists.edges[lists.indptr[entity] : lists.indptr[entity + 1]]
        edges = edges[np.argsort(-self.scores[edges], kind="stable")]
        return lists.others[edges], self.scores[edges]

    def pairs(self) -> IntArray:
        """Positions of the distinct pairs predicted from either end, ascending."""
        if self.taken is not None:
            return self.taken
        positions = np.concatenate([self.chosen_by_source, self.chosen_by_target])
        return np.unique(positions[positions != NONE])

    def ranks(self, side: Side, queries: IntArray, right: BoolArray) -> IntArray:
        """(q,) rank of each query's best right pair in its list, 0 where none is listed.

        Ties count against us. Where the decoder abstains, the answer "no counterpart" comes first in the list and everything else one place lower.

        Args:
            side: the graph of the queries.
            queries: (q,) entities.
            right: (P,) which pairs are right.
        """
        lists = self.candidates.lists(side)
        found = np.zeros(len(queries), dtype=np.int64)
        list_ranks(lists.indptr, lists.edges, self.scores, right, self.tolerance, queries, found)
        return np.where(found > 0, found + (self.chosen(side)[queries] == NONE), 0)


def where_chosen(chosen: IntArray, values: Any, missing: float) -> Any:
    """``values[chosen]``, ``missing`` where nothing was chosen."""
    if not len(values):
        return np.full(len(chosen), missing, dtype=values.dtype)
    return np.where(chosen == NONE, np.asarray(missing, dtype=values.dtype), values[chosen])


class Decoder(Protocol):
    """From candidate pairs to an alignment.

    Attributes:
        name: registered name.
        title: what it does, in a few words, for the command line and the app.
        one_to_one: whether no entity is in two predicted pairs.
        abstains: whether an entity with candidates may be left without a counterpart.
    """

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def one_to_one(self) -> bool: ...
    @property
    def abstains(self) -> bool: ...
    def decode(self, candidates: Candidates) -> Decoding: ...


DecoderClass = TypeVar("DecoderClass", bound=type)
DECODERS: Registry[Callable[[], Decoder]] = Registry("decoder")
"""Decoders for which scores are enough."""
GRAPH_DECODERS: Registry[Callable[[GraphEvidence], Decoder]] = Registry("decoder")
"""Decoders that also look at the graphs' triples."""
SEVERAL: Registry[Callable[[Capacity], Decoder]] = Registry("decoder")
"""Those of the first that are one-to-one, but give an entity several counterparts where the known links do."""
DECODER_TITLES: Registry[str] = Registry("decoder")
"""Name -> title of every registered decoder."""


def register_decoder(cls: DecoderClass) -> DecoderClass:
    """Class decorator: makes a decoder available under its name."""
    DECODER_TITLES.add(cls.name, cls.title)  # type: ignore[attr-defined]
    DECODERS.add(cls.name, cls)  # type: ignore[attr-defined]
    return cls


def register_decoder_of_several(cls: DecoderClass) -> DecoderClass:
    """Class decorator: the same for a one-to-one decoder that is built with a capacity."""
    SEVERAL.add(cls.name, cls)  # type: ignore[attr-defined]
    return register_decoder(cls)


def register_graph_decoder(cls: DecoderClass) -> DecoderClass:
    """Class decorator: makes a decoder that is built from the graphs' evidence available under its name."""
    DECODER_TITLES.add(cls.name, cls.title)  # type: ignore[attr-defined]
    GRAPH_DECODERS.add(cls.name, cls)  # type: ignore[attr-defined]
    return cls


def get_decoder(decoder: str | Decoder, evidence: GraphEvidence | None = None, seeds: IntArray | None = None) -> Decoder:
    """A decoder by its registered name, with its default settings; an instance is passed through.

    Args:
        decoder: name or instance.
        evidence: the graphs, for decoders that look at them; its pools must be those that are to be decoded.
        seeds: (L, 2) links that are known to be right; None: those of the evidence. One-to-one decoders learn from them how many counterparts an
            entity may have.

    Raises:
        ConfigError: no decoder has this name, or it needs graphs and there are none.
    """
    if not isinstance(decoder, str):
        return decoder
    if decoder in SEVERAL:
        known = evidence.seeds if seeds is None and evidence is not None else seeds
        return SEVERAL[decoder](ONE if known is None else capacity_of(known))
    if decoder in DECODERS:
        return DECODERS[decoder]()
    DECODER_TITLES.named(decoder)
    if evidence is None:
        raise ConfigError(f"decoder '{decoder}' needs the graphs' triples, which were not given; choose one of {', '.join(sorted(DECODERS))}.")
    return GRAPH_DECODERS[decoder](evidence)


def best_pairs(lists: Lists, scores: ScoreArray) -> tuple[IntArray, IntArray]:
    """Positions of the best and the second-best pair of each list, -1 where there is none."""
    best, second = (np.full(len(lists.indptr) - 1, NONE, dtype=np.int64) for _ in range(2))
    best_two(lists.indptr, lists.edges, scores, best, second)
    return best, second


def decided(decoder: str, candidates: Candidates, scores: FloatArray, by_source: IntArray, by_target: IntArray) -> Decoding:
    """The decoding of a one-to-one decoder: its pairs come first in both lists, the others follow by ``scores``."""
    scores = scores.copy()
    scores[by_source[by_source != NONE]] = np.inf
    return Decoding(decoder, candidates, scores, by_source, by_target, candidates.tolerance)


def decided_on_several(decoder: str, candidates: Candidates, taken: IntArray, capacity: Capacity) -> Decoding:
    """The decoding of a decoder that gives entities several counterparts: its pairs come first in both lists, by CSLS, and the others follow.

    Args:
        taken: positions of the pairs that were decided on.
    """
    taken = np.sort(taken)
    by_source, by_target = (np.full(count, NONE, dtype=np.int64) for count in candidates.shape)
    ascending = taken[np.argsort(candidates.csls[taken], kind="stable")]
    by_source[candidates.sources[ascending]] = ascending  # the last one stays: the best
    by_target[candidates.targets[ascending]] = ascending
    scores = candidates.csls.copy()
    if len(taken):
        scores[taken] += np.float32(1) + np.ptp(scores)
    return Decoding(decoder, candidates, scores, by_source, by_target, candidates.tolerance, capacity, taken)
