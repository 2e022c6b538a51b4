"""Two versions of a data set, as two monthly dumps of the same sources would be: some entities are new in the second, some are gone, some have other
triples, and some have another identifier. The same data and seed give the same versions.

    python -m benchmarks.versions sample_data/world OUT [--share 0.05] [--renamed 0.01] [--seed 0]

writes ``OUT/world-1`` and ``OUT/world-2`` in the OpenEA layout with the split of the data, and for ``update --mapping`` the identifiers that changed:
``OUT/renamed-source.tsv`` and ``OUT/renamed-target.tsv``. In each graph by itself a third of the share is dropped from the second version, a third is
left out of the first, and of a third, half of the triples differ: a quarter is in one version only, a quarter in the other.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from benchmarks.tables import print_report
from engine.data import AlignmentTask, load_task
from engine.data.knowledge_graph import SIDES, KnowledgeGraph, Side
from engine.errors import ConfigError
from engine.util.arrays import BoolArray, IntArray
from engine.util.text import count

Version = Literal[1, 2]
VERSIONS: Final[tuple[Version, Version]] = (1, 2)
FOLD: Final = "721_5fold/1"
MARK: Final = "-renamed"
"""Ends the identifiers of renamed entities in the second version."""
ONLY_FIRST, ONLY_SECOND = 0.25, 0.5
"""Of the triples of changed entities, those drawn below the first number are in the first version only, those below the second in the second."""


@dataclass(frozen=True)
class Plan:
    """What differs between the versions of a graph, as masks.

    Attributes:
        dropped, added, changed, renamed: (E,) entities.
        triples: by version, (T,) which triples it has.
    """

    dropped: BoolArray
    added: BoolArray
    changed: BoolArray
    renamed: BoolArray
    triples: Mapping[Version, BoolArray]

    def has(self, version: Version) -> BoolArray:
        """(E,) which entities a version has."""
        return ~(self.added if version == 1 else self.dropped)


def plan_graph(graph: KnowledgeGraph, share: float, renamed: float, generator: np.random.Generator) -> Plan:
    """Draw what changes."""
    size = graph.num_entities
    third, few = round(share * size / 3), round(renamed * size)
    order = generator.permutation(size)
    dropped, added, changed, other = (
        _mask(size, order[start : start + length]) for start, length in ((0, third), (third, third), (2 * third, third), (3 * third, few))
    )
    head, _, tail = graph.triples.T
    drawn = generator.random(len(graph.triples))
    touched = changed[head] | changed[tail]
    only_first, only_second = touched & (drawn < ONLY_FIRST), touched & (drawn >= ONLY_FIRST) & (drawn < ONLY_SECOND)
    triples: dict[Version, BoolArray] = {}
    for version, gone, elsewhere in ((VERSIONS[0], added, only_second), (VERSIONS[1], dropped, only_first)):
        triples[version] = ~(gone[head] | gone[tail] | elsewhere)
    return Plan(dropped, added, changed, other, triples)


def _mask(size: int, members: IntArray) -> BoolArray:
    found = np.zeros(size, dtype=bool)
    found[members] = True
    return found


def write_versions(task: AlignmentTask, folder: Path, share: float = 0.05, renamed: float = 0.0, seed: int = 0) -> tuple[Path, Path]:
    """Write both versions; returns their folders.

    Raises:
        ConfigError: shares that leave nothing, or a folder that cannot be written to.
    """
    if not 0 < share <= 0.5 or not 0 <= renamed <= 0.5:
        raise ConfigError("shares must be above 0 (renamed: from 0) and at most 0.5.")
    generator = np.random.default_rng(seed)
    plans = {side: plan_graph(task.graph(side), share, renamed, generator) for side in SIDES}
    folders = folder / f"{task.name}-1", folder / f"{task.name}-2"
    try:
        for version, place in zip(VERSIONS, folders, strict=True):
            write_version(task, plans, version, place)
        for side in SIDES:
            rows = [(one, one + MARK) for one in np.array(task.graph(side).entities, dtype=object)[plans[side].renamed]]
            _write(folder / f"renamed-{side}.tsv", [("old", "new"), *rows] if rows else [])
    except OSError as error:
        raise ConfigError(f"{folder}: the versions cannot be written there ({error.strerror or error}); name another folder.") from None
    return folders


def write_version(task: AlignmentTask, plans: Mapping[Side, Plan], version: Version, folder: Path) -> None:
    """One version in the OpenEA layout."""
    (folder / FOLD).mkdir(parents=True, exist_ok=True)
    names = {side: names_in(task.graph(side), plans[side], version) for side in SIDES}
    for number, side in enumerate(SIDES, start=1):
        graph, plan, own = task.graph(side), plans[side], names[side]
        relations = np.array(graph.relations, dtype=object)
        triples = graph.triples[plan.triples[version]]
        _write(folder / f"rel_triples_{number}", zip(own[triples[:, 0]], relations[triples[:, 1]], own[triples[:, 2]], strict=True))
        table = graph.attributes[plan.has(version)[graph.attributes["entity"].to_numpy(dtype=np.int64)]]
        _write(folder / f"attr_triples_{number}", zip(own[table["entity"]], table["attribute"], table["value"], strict=True))
    parts = {"train": task.train_links, "valid": task.valid_links, "test": task.test_links, "unsure": task.unsure_links}
    kept = {part: links[plans["source"].has(version)[links[:, 0]] & plans["target"].has(version)[links[:, 1]]] for part, links in parts.items()}
    rows = {part: list(zip(names["source"][links[:, 0]], names["target"][links[:, 1]], strict=True)) for part, links in kept.items()}
    _write(folder / "ent_links", [row for listed in rows.values() for row in listed])
    for part in ("train", "valid", "test"):
        _write(folder / FOLD / f"{part}_links", rows[part])


def names_in(graph: KnowledgeGraph, plan: Plan, version: Version) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    """(E,) identifiers of the entities in a version."""
    found = [name + MARK if version == 2 and moved else name for name, moved in zip(graph.entities, plan.renamed.tolist(), strict=True)]
    return np.array(found, dtype=object)


def _write(path: Path, rows: Iterable[Sequence[str]]) -> None:
    path.write_text("".join("\t".join(map(_cell, row)) + "\n" for row in rows), encoding="utf-8")


def _cell(text: str) -> str:
    return " ".join(str(text).split()) or "-"


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description="Write two versions of a data set.")
    parser.add_argument("data", type=Path, help="folder of the data set")
    parser.add_argument("out", type=Path, help="folder to write to")
    add_shares(parser)
    parser.add_argument("--renamed", type=float, default=0.01, help="share of entities with another identifier in the second version (default: 0.01)")
    return parser


def add_shares(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--share", type=float, default=0.05, help="share of changed entities in each graph (default: 0.05)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the changes, and of the trainings where there are any (default: 0)")


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = build_parser().parse_args(arguments)

    def study() -> str:
        task = load_task(parsed.data)
        folders = write_versions(task, parsed.out, parsed.share, parsed.renamed, parsed.seed)
        return "\n".join(f"{place}: {_sizes(load_task(place))}" for place in folders)

    return print_report(study, None)


def _sizes(task: AlignmentTask) -> str:
    graphs = " and ".join(count(task.graph(side).num_entities, "entity", "entities") for side in SIDES)
    return f"{graphs}, {len(task.train_links):,} seed and {count(len(task.test_links), 'test link')}"


if __name__ == "__main__":
    sys.exit(main())
