"""Two versions of a small world for tests: runs whose matches, triples, values and links are given entity by entity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from engine.explore.alignment import alignments
from engine.explore.changes import VersionRun
from engine.runs.view import RunView
from tests.run_fixture import MemoryRun, assemble, graph_tables

Triple = tuple[str, str, str]
SOURCES = tuple(f"s{number}" for number in range(8))
TARGETS = tuple(f"t{number}" for number in range(8))
PLAIN: tuple[Triple, ...] = (("s0", "near", "s7"), ("s3", "near", "s5"), ("s6", "near", "s7"))
FAR: tuple[Triple, ...] = (("t0", "nahe", "t7"), ("t3", "nahe", "t5"), ("t6", "nahe", "t7"))
SEEDS = (("s0", "t0"), ("s7", "t7"))


def version(
    *,
    sources: Sequence[str] = SOURCES,
    targets: Sequence[str] = TARGETS,
    matches: Mapping[str, str] | None = None,
    triples: Sequence[Triple] = PLAIN,
    far: Sequence[Triple] = FAR,
    seeds: Sequence[tuple[str, str]] = SEEDS,
    labels: Mapping[str, str] | None = None,
    values: Sequence[tuple[str, str, str]] = (("s1", "size", "1"), ("s2", "size", "2")),
    probabilities: Mapping[str, float] | None = None,
    tables: Mapping[str, pd.DataFrame] | None = None,
    **manifest: Any,
) -> MemoryRun:
    """A run in which each source entity matches the target entity of the same number, but for ``matches``.

    Identifiers are ``http://x/s0``; labels their names in upper case but for ``labels``; ``values``: entity, attribute, value.
    """
    places = {name: at for graph in (sources, targets) for at, name in enumerate(graph)}
    named = {name: (labels or {}).get(name, name.upper()) for name in places}
    graphs = []
    for side, names, rows in (("source", sources, triples), ("target", targets, far)):
        relations = sorted({relation for _, relation, _ in rows} | {"near" if side == "source" else "nahe"})
        numbers = [(places[head], relations.index(relation), places[tail]) for head, relation, tail in rows]
        graphs.append(graph_tables(side, [f"http://x/{name}" for name in names], [named[name] for name in names], numbers, relations))
    default = {name: f"t{name[1:]}" for name in sources}
    wanted = [places.get({**default, **(matches or {})}[name], 0) for name in sources]
    theirs = np.eye(len(targets), dtype=np.float32)
    own = theirs[wanted] + 0.001 * np.arange(1, len(sources) + 1, dtype=np.float32)[:, None]
    links = [(places[one], places[two], "train") for one, two in seeds]
    attributes = [("source" if entity in sources else "target", places[entity], name, value) for entity, name, value in values]
    run = assemble(graphs[0], graphs[1], links, (own, theirs), attributes)
    more = dict(tables or {})
    if probabilities is not None:
        rows = [("source", places[name], wanted[places[name]], chance) for name, chance in probabilities.items()]
        more["probabilities"] = pd.DataFrame(rows, columns=["graph", "entity", "match", "probability"])
    held = {**run.tables, **more}
    about = {"run_id": "r", "dataset": "d", **manifest, "files": {f"{name}.parquet": {} for name in held}}
    return replace(run, tables=held, manifest={**run.manifest, **about})


def seen(run: MemoryRun, side: Any = "source") -> VersionRun:
    """A run as it is compared."""
    view = RunView(run)
    return VersionRun(view, alignments(view)[side])
