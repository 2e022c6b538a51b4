"""Two entities next to each other, as a reviewer compares them: values by attribute, neighbours by relation, each row with a mark."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.data.labels import identifier_tail, is_missing, literal_of, local_name
from engine.explore.neighbourhood import Edge, Facing, Neighbour, NeighbourPair
from engine.names.encoders.base import romanised
from engine.names.synonyms import kind_of
from engine.names.values import ROUGH, exact_attribute, fold_text, value_keys
from engine.runs.entities import Entity
from engine.runs.view import RunView

Mark = Literal["same", "similar", "different", "source only", "target only"]
MARKS: Final[tuple[Mark, ...]] = ("same", "similar", "different", "source only", "target only")
"""In the order of rows: what both have comes first."""
ALIKE: Final = 0.6
"""Share of common characters from which on two texts are similar."""
LONGEST: Final = 200
"""Characters of a text that are compared character by character."""
MOST_VALUES: Final = 4
"""Values of an attribute that a row lists."""
MOST_COMPARED: Final = 6
"""Values of an attribute that are compared character by character with those of its counterpart."""
NAME: Final = "name"


@dataclass(frozen=True)
class ValueRow:
    """An attribute of either entity, and what the other one says of the same.

    Attributes:
        source_attribute, target_attribute: "" where the entity has no such attribute.
        source_text, target_text: its values, the decisive one first.
        mark: what comparing them gives.
        note: how similar, where that is a number; else "".
    """

    source_attribute: str
    target_attribute: str
    source_text: str
    target_text: str
    mark: Mark
    note: str = ""


Values = Mapping[str, Sequence[str]]
"""Attribute -> its values, as the data have them."""


def attribute_counterparts(correspondences: pd.DataFrame) -> dict[str, str]:
    """Which attribute of the target graph corresponds to each of the source graph's, by a run's table of that name.

    Rough attributes ("born (year)") count for the attribute itself. Where several correspond, the one with the most support is taken.
    """
    rows = correspondences[correspondences["kind"] == "attribute"].sort_values("support", ascending=False, kind="stable")
    found: dict[str, str] = {}
    for source, target in zip(rows["source"].astype(str), rows["target"].astype(str), strict=True):
        found.setdefault(exact_attribute(source), exact_attribute(target))
    return found


def compare_values(view: RunView, source: Entity, target: Entity, counterparts: Mapping[str, str]) -> tuple[ValueRow, ...]:
    """The values of a pair: its names first, then what both have, then what only one has.

    Args:
        view: of the run.
        source, target: the pair.
        counterparts: of :func:`attribute_counterparts`.
    """
    facts = {side: values_of(view, side, entity.index) for side, entity in zip(SIDES, (source, target), strict=True)}
    names = name_row(source, target, facts["source"], facts["target"])
    own, theirs = ({name: texts for name, texts in facts[side].items() if kind_of(name) is None} for side in SIDES)
    together = dict(paired_attribute_names(own, theirs, counterparts))
    rows = [compared_row(left, right, own[left], theirs[right]) for left, right in together.items()]
    rows += [ValueRow(name, "", value_list(texts), "", "source only") for name, texts in own.items() if name not in together]
    taken = set(together.values())
    rows += [ValueRow("", name, "", value_list(texts), "target only") for name, texts in theirs.items() if name not in taken]
    order = sorted(rows, key=lambda row: (MARKS.index(row.mark), local_name(row.source_attribute or row.target_attribute).casefold()))
    return tuple([names, *order] if names is not None else order)


def values_of(view: RunView, side: Side, index: int) -> dict[str, list[str]]:
    """An entity's values by attribute, each once."""
    found: dict[str, dict[str, None]] = {}
    for attribute, value in view.attributes(side, index):
        found.setdefault(attribute, {}).setdefault(value)
    return {attribute: list(values) for attribute, values in found.items()}


def name_row(source: Entity, target: Entity, own: Values, theirs: Values) -> ValueRow | None:
    """The two names that are most alike; None where neither entity has any."""
    names = [all_names_of(source, own), all_names_of(target, theirs)]
    if not names[0] and not names[1]:
        return None
    if not names[0] or not names[1]:
        return ValueRow(NAME, NAME, value_list(names[0]), value_list(names[1]), "target only" if not names[0] else "source only")
    return compared_row(NAME, NAME, names[0], names[1])


def all_names_of(entity: Entity, values: Values) -> list[str]:
    """The label, then the other names."""
    others = (literal_of(value).text for attribute, own in values.items() if kind_of(attribute) is not None for value in own)
    return list(dict.fromkeys(text for text in (entity.label, *others) if text and not is_missing(text)))


def paired_attribute_names(own: Values, theirs: Values, counterparts: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Attributes that belong together: as the run says, then by equal local names, then by an equal value; each in one pair at most."""
    left, right = dict.fromkeys(own), dict.fromkeys(theirs)

    def take(one: str, two: str) -> tuple[str, str]:
        del left[one], right[two]
        return one, two

    for one in list(left):
        if (two := counterparts.get(one)) in right and two is not None:
            yield take(one, two)
    by_name = {local_name(name).casefold(): name for name in reversed(right)}
    for one in list(left):
        if (two := by_name.get(local_name(one).casefold())) in right and two is not None:
            yield take(one, two)
    keys = {name: exact_keys(theirs[name]) for name in right}
    for one in list(left):
        mine = exact_keys(own[one])
        two = next((name for name in right if mine & keys[name]), None)
        if two is not None:
            yield take(one, two)


def exact_keys(texts: Iterable[str]) -> frozenset[str]:
    """What values are compared_row by, where they must be equal."""
    return frozenset(str(key) for text in texts for key in value_keys(text) if key.kind not in ROUGH)


def compared_row(left: str, right: str, own: Sequence[str], theirs: Sequence[str]) -> ValueRow:
    """The most alike of two attributes' values first, with the mark of these two."""
    if equal := first_equal(own, theirs):
        return ValueRow(left, right, value_list(own, equal[0]), value_list(theirs, equal[1]), "same")
    ends = [(at, to) for at in range(min(len(own), MOST_COMPARED)) for to in range(min(len(theirs), MOST_COMPARED))]
    found = {end: value_likeness(own[end[0]], theirs[end[1]]) for end in ends}
    at, to = max(ends, key=lambda end: found[end].value)
    return ValueRow(left, right, value_list(own, at), value_list(theirs, to), found[at, to].mark, found[at, to].note)


def first_equal(own: Sequence[str], theirs: Sequence[str]) -> tuple[int, int] | None:
    """The places of the first two values that are equal however they are written."""
    places: dict[str, int] = {}
    for to, text in enumerate(theirs):
        for key in exact_keys([text]):
            places.setdefault(key, to)
    return next(((at, places[key]) for at, text in enumerate(own) for key in sorted(exact_keys([text])) if key in places), None)


@dataclass(frozen=True)
class Likeness:
    """How alike two values are, from 0 to 1, and the same in words."""

    value: float
    note: str = ""

    @property
    def mark(self) -> Mark:
        return "same" if self.value >= 1 else "similar" if self.value >= ALIKE else "different"


def value_likeness(one: str, two: str) -> Likeness:
    """Of two values: equal whatever the spelling, near numbers and dates, or texts with common characters."""
    keys = [{key.kind: key for key in value_keys(text)} for text in (one, two)]
    if exact_keys([one]) & exact_keys([two]) or (not keys[0] and not keys[1] and one == two):
        return Likeness(1.0)
    if "number" in keys[0] and "number" in keys[1]:
        return near_numbers(float(keys[0]["number"].text), float(keys[1]["number"].text))
    if {str(key) for key in keys[0].values()} & {str(key) for key in keys[1].values()}:
        return Likeness(0.9, "same year" if "year" in keys[0] else "near")
    if any(key.kind != "text" for own in keys for key in own.values()):
        return Likeness(0.0)
    texts = [literal_of(value).text for value in (one, two)]
    plain = [fold_text(romanised(text[:LONGEST])) for text in texts]
    if plain[0] and plain[0] == plain[1] and max(map(len, texts)) <= LONGEST:
        return Likeness(1.0)
    share = difflib.SequenceMatcher(None, plain[0], plain[1], autojunk=False).ratio()
    return Likeness(min(share, 0.99), f"similarity {share:.0%}" if share >= ALIKE else "")


def near_numbers(one: float, two: float) -> Likeness:
    """Numbers of one sign are the more alike the smaller their relative difference."""
    if one * two <= 0:
        return Likeness(0.0)
    apart = abs(one - two) / max(abs(one), abs(two))
    note = f"{apart:.1%} apart" if apart < 0.1 else f"{apart:.0%} apart"
    return Likeness(0.99 - apart if apart <= 0.15 else max(0.0, ALIKE - math.sqrt(apart)) / 2, note)


def value_list(texts: Sequence[str], first: int = 0) -> str:
    """At most ``MOST_VALUES`` values, that at ``first`` before the others."""
    ordered = [literal_of(text).text for text in (*texts[first : first + 1], *texts[:first], *texts[first + 1 :])]
    more = len(ordered) - MOST_VALUES
    return " · ".join(ordered[:MOST_VALUES]) + (f" · and {more:,} more" if more > 0 else "")


# Neighbours


@dataclass(frozen=True)
class NeighbourRow:
    """Two aligned neighbours, or those of one entity that have no counterpart among the other's neighbours.

    Attributes:
        source_relation, target_relation: the relations, seen from the entity; "" where the row is of one entity only.
        source, target: the neighbours; several only in rows of one entity.
        mark: "same" for pairs that a link or a training round ties, "similar" for predicted ones, else whose neighbours they are.
        pair: of aligned neighbours.
    """

    source_relation: str
    target_relation: str
    source: tuple[Entity, ...]
    target: tuple[Entity, ...]
    mark: Mark
    pair: NeighbourPair | None = None


def compare_neighbours(faced: Facing) -> tuple[NeighbourRow, ...]:
    """The neighbours of a pair by relation: aligned ones first, known before predicted; then, for each relation, those of one entity only."""
    rows = [
        NeighbourRow(
            relation_words(pair.source.edges),
            relation_words(pair.target.edges),
            (pair.source.entity,),
            (pair.target.entity,),
            "similar" if pair.evidence == "predicted" else "same",
            pair,
        )
        for pair in faced.pairs
    ]
    ordered = sorted(rows, key=lambda row: (MARKS.index(row.mark), row.source_relation, row.target_relation))
    alone = [NeighbourRow(relation, "", entities, (), "source only") for relation, entities in neighbours_by_relation(faced.source_only)]
    alone += [NeighbourRow("", relation, (), entities, "target only") for relation, entities in neighbours_by_relation(faced.target_only)]
    return (*ordered, *alone)


def neighbours_by_relation(neighbours: Iterable[Neighbour]) -> list[tuple[str, tuple[Entity, ...]]]:
    """Neighbours that share their relations together."""
    found: dict[str, list[Entity]] = {}
    for one in neighbours:
        found.setdefault(relation_words(one.edges), []).append(one.entity)
    return [(relation, tuple(entities)) for relation, entities in found.items()]


def relation_words(edges: Iterable[Edge]) -> str:
    """The relations between an entity and a neighbour, with an arrow for the direction: "← borders" where the neighbour is the head."""
    return ", ".join(dict.fromkeys(f"{'→' if edge.direction == 'out' else '←'} {identifier_tail(edge.relation)}" for edge in edges))
