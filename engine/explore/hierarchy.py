"""Matched pairs that contradict the class hierarchies of the two graphs.

Two matches (A, A') and (B, B') contradict each other where A is below B and A' above B'. A match (A, A') contradicts a declared disjointness where
the classes above A, and the counterparts of those above A', hold two that one of the graphs declares disjoint: then nothing can be both A and A'
(what repair of ontology alignments calls incoherent; Meilicke, "Alignment incoherence in ontology matching", 2011).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.data.labels import folded_local_name
from engine.runs.view import RunView
from engine.util.arrays import BoolArray, FloatArray, IntArray

BELOW: Final = frozenset({"subclassof", "isa", "broader", "broadertransitive", "subconceptof", "subpropertyof"})
"""Local names, folded, of relations from what is below to what is above."""
ABOVE: Final = frozenset({"superclassof", "narrower", "narrowertransitive", "hassubclass"})
"""Those the other way round."""
DISJOINT: Final = frozenset({"disjointwith", "disjointfrom", "alldisjointclasses"})
MOST_ANCESTORS: Final = 5_000
"""Ancestors of an entity that are looked at: more have only graphs that are no hierarchy."""

Reason = Literal["crosswise", "disjoint"]


@dataclass(frozen=True)
class Contradiction:
    """Two matched pairs that cannot both be right.

    Attributes:
        reason: "crosswise" or "disjoint".
        weaker, stronger: positions of the two pairs, by score; for "disjoint" the same pair twice where only its own hierarchy is at odds.
    """

    reason: Reason
    weaker: int
    stronger: int


class Hierarchy:
    """What is above what in one graph, and what is declared disjoint.

    Args:
        triples: (T, 3) head, relation, tail.
        relations: the relations' names.
    """

    def __init__(self, triples: IntArray, relations: Sequence[str]) -> None:
        kinds = np.array([relation_kind(name) for name in relations], dtype=object)
        kind_of = kinds[triples[:, 1]] if len(triples) else np.empty(0, dtype=object)
        self._parents: dict[int, list[int]] = {}
        for low, high in (*triples[kind_of == "below"][:, [0, 2]].tolist(), *triples[kind_of == "above"][:, [2, 0]].tolist()):
            if low != high:
                self._parents.setdefault(low, []).append(high)
        pairs = triples[kind_of == "disjoint"][:, [0, 2]].tolist()
        self.disjoint: dict[int, set[int]] = {}
        for one, other in pairs:
            if one != other:
                self.disjoint.setdefault(one, set()).add(other)
                self.disjoint.setdefault(other, set()).add(one)
        self._ancestors: dict[int, frozenset[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._parents)

    def ancestors(self, entity: int) -> frozenset[int]:
        """Everything above an entity, itself not included; entities that are above each other count as one, and so as neither."""
        if entity not in self._ancestors:
            reached = self._reached(entity)
            if entity in reached:  # a cycle
                reached = {one for one in reached if entity not in self._reached(one)}
            self._ancestors[entity] = frozenset(reached)
        return self._ancestors[entity]

    def _reached(self, entity: int) -> set[int]:
        seen: set[int] = set()
        waiting = list(self._parents.get(entity, ()))
        while waiting and len(seen) < MOST_ANCESTORS:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                waiting += self._parents.get(one, ())
        return seen


def relation_kind(name: str) -> str:
    """ "below", "above", "disjoint", or "" for a relation that says nothing of a hierarchy."""
    folded = folded_local_name(name)
    return "below" if folded in BELOW else "above" if folded in ABOVE else "disjoint" if folded in DISJOINT else ""


def hierarchies(view: RunView) -> Mapping[Side, Hierarchy]:
    """Of both graphs of a run; a hierarchy without rows is false. Only the triples of the relations that say something are read."""
    relations = view.run.table("relations")
    found = {}
    for side in SIDES:
        own = relations[relations["graph"] == side].sort_values("relation")
        names = own["name"].astype(str).tolist()
        numbers = [number for number, name in zip(own["relation"].tolist(), names, strict=True) if relation_kind(name)]
        rows = view.run.table("triples", ["head", "relation", "tail"], {"graph": side, "relation": numbers})
        found[side] = Hierarchy(rows.to_numpy(dtype=np.int64), names)
    return found


def contradictions(found: Mapping[Side, Hierarchy], source: IntArray, target: IntArray, score: FloatArray) -> list[Contradiction]:
    """The contradictions among some matched pairs, each once, in the order of the pairs.

    Args:
        found: of :func:`hierarchies`.
        source, target: (n,) the pairs.
        score: (n,) how sure each is; of two that contradict each other the weaker is the one with less. Of equals the later.
    """
    above = {side: found[side].ancestors for side in SIDES}
    pairs = list(zip(source.tolist(), target.tolist(), strict=True))
    by_source: dict[int, list[int]] = {}
    for position, (one, _) in enumerate(pairs):
        by_source.setdefault(one, []).append(position)
    rows: dict[tuple[int, int], Reason] = {}
    if found["source"] and found["target"]:
        for position, (one, two) in enumerate(pairs):
            for higher in above["source"](one):
                for across in by_source.get(higher, ()):
                    if two in above["target"](pairs[across][1]):
                        rows.setdefault((min(position, across), max(position, across)), "crosswise")
    rows |= {(position, position): "disjoint" for position in incoherent(found, pairs)}
    return [weaker_first(reason, ends, score) for ends, reason in sorted(rows.items())]


def weaker_first(reason: Reason, ends: tuple[int, int], score: FloatArray) -> Contradiction:
    """With the weaker of the two pairs first."""
    one, two = ends
    weaker = one if score[one] < score[two] else two
    return Contradiction(reason, weaker, one + two - weaker)


def incoherent(found: Mapping[Side, Hierarchy], pairs: Sequence[tuple[int, int]]) -> Iterable[int]:
    """Positions of the pairs whose two classes, taken for one, are below two disjoint classes."""
    if not found["source"].disjoint and not found["target"].disjoint:
        return
    forward = dict(pairs)
    backward = {two: one for one, two in pairs}
    for position, (one, two) in enumerate(pairs):
        own = {one, *found["source"].ancestors(one)}
        theirs = {two, *found["target"].ancestors(two)}
        joined = (
            own | {backward[across] for across in theirs if across in backward},
            theirs | {forward[across] for across in own if across in forward},
        )
        if any(disjoint_within(graph.disjoint, held) for graph, held in zip((found["source"], found["target"]), joined, strict=True)):
            yield position


def disjoint_within(disjoint: Mapping[int, set[int]], held: set[int]) -> bool:
    """Whether two of some entities are declared disjoint; ``disjoint``: entity -> those that it is disjoint with."""
    return any(not disjoint[one].isdisjoint(held) for one in held if one in disjoint)


def repaired_pairs(found: Sequence[Contradiction], count: int) -> BoolArray:
    """(count,) which pairs are kept when of each contradiction the weaker pair is dropped, unless the other one is dropped already."""
    kept = np.ones(count, dtype=np.bool_)
    for one in found:
        if kept[one.weaker] and kept[one.stronger]:
            kept[one.weaker] = False
    return kept


def contradicting_rows(found: Sequence[Contradiction], count: int) -> BoolArray:
    """(count,) which pairs take part in a contradiction."""
    marked = np.zeros(count, dtype=np.bool_)
    for one in found:
        marked[[one.weaker, one.stronger]] = True
    return marked


def contradiction_table(view: RunView, found: Sequence[Contradiction], source: IntArray, target: IntArray) -> pd.DataFrame:
    """Both pairs of each contradiction, the weaker one first, by identifiers and labels, with the reason."""
    columns = ["reason", *(f"{which}_{side}{what}" for which in ("weaker", "stronger") for side in SIDES for what in ("", "_label"))]
    rows = []
    for one in found:
        ends = [(view.entity("source", int(source[at])), view.entity("target", int(target[at]))) for at in (one.weaker, one.stronger)]
        rows.append([one.reason, *(text for pair in ends for entity in pair for text in (entity.uri, entity.label))])
    return pd.DataFrame(rows, columns=columns)
