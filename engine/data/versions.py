"""Two versions of a graph: which entities and relations of the earlier one are in the later one, and what changed about them.

Entities are the same where their identifiers are; a mapping file lists those whose identifier changed. Relations go by their names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.data.knowledge_graph import SIDES, AlignmentTask, KnowledgeGraph, Side
from engine.data.same_entities import name_places, places_in, turned_places
from engine.data.tabular import Role, read_table
from engine.errors import DataError
from engine.util.arrays import BoolArray, IntArray, link_keys, links_of_keys
from engine.util.text import count, shorten

LEAST_CARRIED: Final = 0.5
"""Share of the larger version's entities that both versions must have, in each graph."""
RENAMED_ROLES: Final = (
    Role("old", ("old", "before", "from", "source")),
    Role("new", ("new", "after", "to", "target")),
)
HASH_SHIFT: Final = np.uint64(33)
PARTS: Final = ("train", "valid", "test")
CHANGES: Final = ("source triples", "source values", "target triples", "target values")
"""What may have changed about a pair of entities."""


@dataclass(frozen=True)
class CarriedGraph:
    """What a later version of a graph has from an earlier one.

    Attributes:
        entities: (E,) index in the earlier version of each entity, -1 for new ones.
        relations: (R,) the same of the relations.
        old_entities, old_relations: how many the earlier version has.
        renamed: old and new identifiers of entities that a mapping file lists.
    """

    entities: IntArray
    relations: IntArray
    old_entities: int
    old_relations: int
    renamed: tuple[tuple[str, str], ...] = ()

    @property
    def later(self) -> IntArray:
        """(old entities,) the index in the later version of each entity of the earlier one, -1 for those that are gone."""
        return turned_places(self.entities, self.old_entities)

    def counts(self) -> dict[str, dict[str, int]]:
        """How many entities and relations are carried over, new and gone."""
        parts = (("entities", self.entities, self.old_entities), ("relations", self.relations, self.old_relations))
        return {what: _counted(now, before) for what, now, before in parts}


def _counted(now: IntArray, before: int) -> dict[str, int]:
    carried = int(np.count_nonzero(now >= 0))
    return {"carried": carried, "new": len(now) - carried, "gone": before - carried}


def carry_over(earlier: KnowledgeGraph, later: KnowledgeGraph, renamed: Sequence[tuple[str, str]] = ()) -> CarriedGraph:
    """Find the entities and relations of the earlier version in the later one; a renamed entity goes by its new identifier alone."""
    return CarriedGraph(
        entities=turned_places(places_in(later.index, earlier.entities, dict(renamed)), later.num_entities),
        relations=name_places(earlier.relations, later.relations),
        old_entities=earlier.num_entities,
        old_relations=earlier.num_relations,
        renamed=tuple(renamed),
    )


def check_versions(carried: Mapping[Side, CarriedGraph], data: str, run: str) -> None:
    """
    Raises:
        DataError: too few entities of a graph are in both versions.
    """
    for side in SIDES:
        one = carried[side]
        number, now, before = one.counts()["entities"]["carried"], len(one.entities), one.old_entities
        if number >= LEAST_CARRIED * max(now, before):
            continue
        of_run = f"{number:,} of {count(before, 'entity', 'entities')} ({_share(number, before)}) of the {side} graph of {run} are in {data}"
        of_data = f"{number:,} of {count(now, 'entity', 'entities')} ({_share(number, now)}) of the {side} graph of {data} are in {run}"
        raise DataError(
            f"{of_run if before >= now else of_data}; a new version of the data needs at least {LEAST_CARRIED:.0%}, so train a new run instead "
            "(or list changed identifiers with --mapping)."
        )


def _share(part: int, whole: int) -> str:
    share = 100 * part / max(whole, 1)
    return f"{share:.0f}%" if share >= 1 or not part else f"{share:.1g}%"


# Mapping files: old and new identifiers of entities.


@dataclass(frozen=True)
class Renaming:
    """Old and new identifiers of the entities of each graph, ordered, and a digest of them ("" without a mapping file)."""

    pairs: Mapping[Side, tuple[tuple[str, str], ...]]
    digest: str = ""

    @property
    def size(self) -> int:
        return sum(map(len, self.pairs.values()))

    def table(self) -> pd.DataFrame:
        """``graph``, ``old``, ``new``."""
        rows = [(side, old, new) for side in SIDES for old, new in self.pairs.get(side, ())]
        return pd.DataFrame(rows, columns=["graph", "old", "new"], dtype="str")


def read_renaming(files: Mapping[Side | None, Path], earlier: Mapping[Side, KnowledgeGraph], later: Mapping[Side, KnowledgeGraph]) -> Renaming:
    """Read mapping files: tables with the columns ``old`` and ``new``.

    Args:
        files: by graph; None: a file for both graphs, whose identifiers say which one a line belongs to.
        earlier, later: the graphs of both versions.

    Raises:
        DataError: a file that cannot be read, an identifier that a version does not have, or that comes twice.
    """
    pairs: dict[Side, list[tuple[str, str]]] = {side: [] for side in SIDES}
    taken: dict[Side, tuple[set[str], set[str]]] = {side: (set(), set()) for side in SIDES}
    for side, path in files.items():
        found = read_table(path, RENAMED_ROLES)
        old, new = (list(found[role.name].columns[0]) for role in RENAMED_ROLES)
        for line, before, after in zip(found["old"].lines, old, new, strict=True):
            graph = _owner(side, before, after, earlier, later, path, int(line))
            for seen, name, what in zip(taken[graph], (before, after), ("old", "new"), strict=True):
                if name in seen:
                    raise DataError(f"the {what} identifier '{shorten(name)}' is listed twice; list each once.", path=path, line=int(line))
                seen.add(name)
            pairs[graph].append((before, after))
    ordered = {side: tuple(sorted(listed)) for side, listed in pairs.items()}
    content = json.dumps([[side, *one] for side, listed in ordered.items() for one in listed])
    return Renaming(ordered, hashlib.sha256(content.encode()).hexdigest() if files else "")


def _owner(
    side: Side | None,
    before: str,
    after: str,
    earlier: Mapping[Side, KnowledgeGraph],
    later: Mapping[Side, KnowledgeGraph],
    path: Path,
    line: int,
) -> Side:
    """The graph that a line belongs to.

    Raises:
        DataError: an identifier is unknown.
    """
    sides = SIDES if side is None else (side,)
    where = "neither graph" if side is None else f"no entity of the {side} graph"
    for name, graphs, words in ((before, earlier, "the run"), (after, later, "the new data")):
        if not any(name in graphs[one].index for one in sides):
            has = "has" if side is None else "is called"
            raise DataError(f"{where} of {words} {has} '{shorten(name)}'; correct or remove this line.", path=path, line=line)
    fitting = [one for one in sides if before in earlier[one].index and after in later[one].index]
    if not fitting:
        raise DataError(f"'{shorten(before)}' and '{shorten(after)}' belong to different graphs; correct or remove this line.", path=path, line=line)
    if len(fitting) > 1:
        raise DataError(
            f"both graphs have '{shorten(before)}' and '{shorten(after)}'; give a file for each graph (source=FILE and target=FILE).",
            path=path,
            line=line,
        )
    return fitting[0]


# What changed about the entities that both versions have.


@dataclass(frozen=True)
class ChangedGraph:
    """Of each entity of the later version, whether something about it is not as it was; new entities count as changed.

    Attributes:
        triples: (E,) it has other triples: one more, one less, or with another entity.
        values: (E,) it has other attribute values.
    """

    triples: BoolArray
    values: BoolArray


def changed_entities(earlier: KnowledgeGraph, later: KnowledgeGraph, carried: CarriedGraph) -> ChangedGraph:
    """Compare what both versions say of each entity. Sums of hashes stand for sets, so that a graph of any size takes one pass."""
    names = np.concatenate([_hashes(earlier.entities), np.zeros(1, dtype=np.uint64)])
    own = np.where(carried.entities >= 0, names[carried.entities], _hashes(later.entities, salt="new"))
    relations = [_hashes(graph.relations) for graph in (earlier, later)]
    facts = [_facts(graph, ids, kinds) for graph, ids, kinds in zip((earlier, later), (names[:-1], own), relations, strict=True)]
    values = [_values(graph) for graph in (earlier, later)]
    new = carried.entities < 0
    return ChangedGraph(*(new | (part[0][carried.entities] != part[1]) for part in (facts, values)))


def _hashes(texts: Iterable[str], salt: str = "") -> npt.NDArray[np.uint64]:
    series = pd.Series([f"{salt}{one}" for one in texts] if salt else list(texts), dtype="str")
    found: npt.NDArray[np.uint64] = pd.util.hash_array(series.to_numpy(dtype=object), categorize=False)
    return found


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each number as one that looks random (the finaliser of MurmurHash3)."""
    for factor in (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)):
        values = (values ^ (values >> HASH_SHIFT)) * factor
    return values ^ (values >> HASH_SHIFT)


def _summed(rows: npt.NDArray[np.integer[Any]], values: npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.uint64]:
    """(size,) sum of the values of each row, modulo 2^64."""
    out = np.zeros(size + 1, dtype=np.uint64)
    np.add.at(out, rows, values)
    return out[:-1] if size else out[:0]


def _facts(graph: KnowledgeGraph, names: npt.NDArray[np.uint64], relations: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    head, relation, tail = graph.triples.T
    kinds = relations[relation]
    outgoing = _summed(head, _mixed(names[tail] ^ _mixed(kinds)), graph.num_entities)
    incoming = _summed(tail, _mixed(names[head] ^ _mixed(~kinds)), graph.num_entities)
    return outgoing + incoming


def _values(graph: KnowledgeGraph) -> npt.NDArray[np.uint64]:
    table = graph.attributes
    if not len(table):
        return np.zeros(graph.num_entities, dtype=np.uint64)
    mixed = _mixed(_hashes(table["attribute"])) ^ _hashes(table["value"])
    return _summed(table["entity"].to_numpy(dtype=np.int64), _mixed(mixed), graph.num_entities)


@dataclass(frozen=True)
class Versions:
    """Both graphs in an earlier and in a later version."""

    earlier: Mapping[Side, KnowledgeGraph]
    later: Mapping[Side, KnowledgeGraph]
    carried: Mapping[Side, CarriedGraph]

    @classmethod
    def of(cls, earlier: Mapping[Side, KnowledgeGraph], later: Mapping[Side, KnowledgeGraph], renaming: Renaming) -> Versions:
        return cls(earlier, later, {side: carry_over(earlier[side], later[side], renaming.pairs.get(side, ())) for side in SIDES})

    @cached_property
    def changed(self) -> Mapping[Side, ChangedGraph]:
        """What changed about each entity of the later version."""
        return {side: changed_entities(self.earlier[side], self.later[side], self.carried[side]) for side in SIDES}

    @cached_property
    def _later(self) -> Mapping[Side, IntArray]:
        return {side: self.carried[side].later for side in SIDES}

    def place(self, side: Side, identifier: str) -> int | None:
        """The later index of an entity by its earlier identifier; of one that only the later version has, by that one's. None where it is gone."""
        before = self.earlier[side].index.get(identifier)
        if before is None:
            return self.later[side].index.get(identifier)
        after = int(self._later[side][before])
        return None if after < 0 else after

    def links(self, links: IntArray) -> IntArray:
        """(m, 2) the links of the earlier version whose ends both are still there, in the later version's indices."""
        ends = np.stack([self._later[side][links[:, at]] for at, side in enumerate(SIDES)], axis=1)
        found: IntArray = ends[(ends >= 0).all(axis=1)]
        return found

    def changes_of(self, source: int, target: int) -> tuple[str, ...]:
        """What changed about a pair of entities of the later version: of ``CHANGES``."""
        found = []
        for side, entity in zip(SIDES, (source, target), strict=True):
            changed = self.changed[side]
            found += [f"{side} {what}" for what, flags in (("triples", changed.triples), ("values", changed.values)) if flags[entity]]
        return tuple(found)


# Links of a new version stay in the part that they had.


@dataclass(frozen=True)
class LinkCounts:
    """Known links of both versions: carried over, new, and gone."""

    carried: int
    new: int
    gone: int


def with_earlier_split(task: AlignmentTask, before: Mapping[str, IntArray], versions: Versions, origin: str) -> tuple[AlignmentTask, LinkCounts]:
    """The task with links that were for training, validation or test before in that part again.

    New links are where the data's own split, or the draw, has them, unless another link of one of their entities has a part already: they follow it,
    so that no entity is trained on and tested. Where the later version names no links at all, those of the earlier one are taken.

    Args:
        task: the later version.
        before: links of the earlier one by part ("train", "valid", "test"), in its indices.
        versions: of the graphs.
        origin: names the earlier split, for the description.
    """
    width = task.target.num_entities
    now = {part: link_keys(links, width) for part, links in zip(PARTS, task.all_links()[:3], strict=True)}
    certain = np.concatenate(list(now.values()))
    mapped = {part: _measurable(versions.links(before[part]), task, part) for part in PARTS}
    listed = certain if len(certain) else np.setdiff1d(np.concatenate(list(mapped.values())), link_keys(task.unsure_links, width))
    kept = {part: np.intersect1d(keys, listed) for part, keys in mapped.items()}
    carried = np.concatenate(list(kept.values()))
    parts = {part: [keys] for part, keys in kept.items()}
    fresh = {part: np.setdiff1d(keys, carried) for part, keys in now.items()}
    for part, keys in fresh.items():
        for other in ("test", "valid", "train"):
            touched = np.isin(keys // width, kept[other] // width) | np.isin(keys % width, kept[other] % width)
            parts[other].append(keys[touched])
            keys = keys[~touched]
        parts[part].append(keys)
    links = {part: links_of_keys(np.unique(np.concatenate(keys)), width) for part, keys in parts.items()}
    total = sum(len(before[part]) for part in PARTS)
    counts = LinkCounts(len(carried), len(listed) - len(carried), total - len(carried))
    divided = replace(
        task,
        train_links=links["train"],
        valid_links=links["valid"],
        test_links=links["test"],
        split=f"{task.split}; {count(len(carried), 'link')} as in {origin}",
    )
    return divided, counts


def _measurable(links: IntArray, task: AlignmentTask, part: str) -> IntArray:
    """Keys of the links; of held-out ones without those of which an end is in no triple any more, which measure nothing."""
    idle = (task.source.degrees[links[:, 0]] == 0) | (task.target.degrees[links[:, 1]] == 0)
    return link_keys(links if part == "train" else links[~idle], task.target.num_entities)
