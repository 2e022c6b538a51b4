"""Entities of a run, matched as if the run had never seen them: accuracy and time.

    python -m benchmarks.new_entities RUN [--models DIR] [--side target] [--count 300]

Each drawn test entity is described by its own triples, names and values under a new identifier. Its neighbours and its counterpart were trained with
it in the graph, so that the figures are a little better than those of entities that really came later.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import engine
from engine import OpenRun
from engine.data.knowledge_graph import SIDES, Side
from engine.explanation.new_entities import NewEntity
from engine.runs.entities import other

NEW = "urn:new"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.new_entities", description="Entities of a run matched as new ones.")
    parser.add_argument("run")
    parser.add_argument("--models", type=Path, default=Path("models"))
    parser.add_argument("--side", choices=SIDES, default="target")
    parser.add_argument("--count", type=int, default=300)
    parsed = parser.parse_args(arguments)
    print(measured(engine.open_run(parsed.run, parsed.models), parsed.side, parsed.count))


def measured(run: OpenRun, side: Side, size: int) -> str:
    """One line with Hits@1 among all entities as new ones and in the run, and the time per entity."""
    links = run.table("links").query("role == 'test'")
    drawn = links.sample(min(size, len(links)), random_state=0)
    records = {int(entity): record for entity, record in as_new(run, side, drawn[side].to_numpy(dtype=np.int64).tolist())}
    names = run.view.graphs[other(side)].uris
    best = run.view.best[side]
    run.align_new([next(iter(records.values()))], side=side)  # loads weights and names
    hits, before, seconds = 0, 0, []
    for entity, counterpart in zip(drawn[side].tolist(), drawn[other(side)].tolist(), strict=True):
        started = time.perf_counter()
        placed = run.align_new([records[entity]], side=side, top=1)[0]
        seconds.append(time.perf_counter() - started)
        hits += placed.matches["uri"].iloc[0] == names[counterpart]
        before += best.get(entity) == counterpart
    median = statistics.median(seconds)
    shares = f"Hits@1 {hits / len(drawn):.3f} as new, {before / len(drawn):.3f} in the run"
    return f"{run.id}, {len(drawn)} {side} entities: {shares}; {median * 1000:.0f} ms each"


def as_new(run: OpenRun, side: Side, entities: Sequence[int]) -> list[tuple[int, NewEntity]]:
    """The entities under a new identifier."""
    wanted, around = set(entities), defaultdict(list)
    relations = run.table("relations").query("graph == @side")["name"].tolist()
    uris = run.view.graphs[side].uris
    for head, relation, tail in run.table("triples").query("graph == @side")[["head", "relation", "tail"]].to_numpy().tolist():
        for end in {head, tail} & wanted:
            around[end].append((NEW if head == end else uris[head], relations[relation], NEW if tail == end else uris[tail]))
    literal = bool(run.manifest.get("literal"))
    values = {entity: tuple(run.view.attributes(side, entity)) if literal else () for entity in wanted}
    return [(entity, NewEntity(NEW, run.view.graphs[side].labels[entity], (), tuple(around[entity]), values[entity])) for entity in entities]


if __name__ == "__main__":
    main()
