"""Time and memory of the merged graph of two large graphs.

    python -m benchmarks.merging RUN --triples 10000000 [--models models] [--formats merged merged-parquet]

Makes a run with as many random triples, of a size that no training here would reach, beside a finished one whose manifest it takes, and exports it
in a process of its own. Half of the triples belong to each graph, nine of ten entities are matched, and each has two values.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.children import in_a_process
from benchmarks.tables import markdown, print_report
from engine.api import export, open_run
from engine.data.knowledge_graph import SIDES
from engine.exporting import get_format
from engine.pipeline import peak_rss_mb
from engine.runs import Run, RunStore

TRIPLES_OF_AN_ENTITY = 10
RELATIONS = 40
MATCHED = 0.9
PROJECT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = build_parser().parse_args(arguments)
    return print_report(lambda: study(parsed), parsed.out)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merging", description="Time and memory of exporting large merged graphs.")
    parser.add_argument("run", help="a finished run, for its manifest")
    parser.add_argument("--models", type=Path, default=PROJECT / "models", help="folder with runs")
    parser.add_argument("--triples", type=int, nargs="+", default=[1_000_000, 10_000_000], help="triples of both graphs together")
    parser.add_argument("--formats", nargs="+", default=["merged", "merged-parquet"], help="formats of export")
    parser.add_argument("--out", type=Path, help="also write the table here")
    return parser


def study(parsed: argparse.Namespace) -> str:
    """All measurements, as Markdown."""
    pattern = RunStore(parsed.models).find(parsed.run)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for triples in parsed.triples:
            run = large_run(pattern, Path(folder), triples)
            for name in parsed.formats:
                asked = Export(run, Path(folder), name)
                seconds, peak, size = in_a_process(exported, asked, f"the export of {triples:,} triples")
                asked.target.unlink()
                rows.append([f"{triples:,}", name, f"{seconds:.0f} s", f"{peak:,.0f} MiB", f"{size / 2**20:,.0f} MiB"])
                print(*rows[-1], file=sys.stderr, flush=True)
    return markdown(["triples", "format", "time", "peak memory", "file"], rows)


def large_run(pattern: Run, models: Path, triples: int) -> str:
    """A run of random graphs; its id."""
    draw = np.random.default_rng(triples)
    a_side, entities = triples // 2, max(triples // 2 // TRIPLES_OF_AN_ENTITY, 10)
    matched = int(entities * MATCHED)
    order = draw.permutation(entities)
    tables = {
        "entities": pd.concat([entity_table(side, entities) for side in SIDES], ignore_index=True),
        "relations": pd.concat([relation_table(side) for side in SIDES], ignore_index=True),
        "triples": pd.concat([triple_table(draw, side, entities, a_side) for side in SIDES], ignore_index=True),
        "attributes": pd.concat([value_table(side, entities) for side in SIDES], ignore_index=True),
        "links": pd.DataFrame({"source": np.arange(100), "target": order[:100], "role": "train"}),
        "matches": pd.concat([match_table(side, order, matched) for side in SIDES], ignore_index=True),
    }
    manifest: dict[str, Any] = {**pattern.manifest, "data": {**pattern.manifest["data"], "links": {"train": 100, "valid": 0, "test": 0, "unsure": 0}}}
    with RunStore(models).create("large", f"basic-s0-{triples:08x}"[-32:]) as writer:
        for name, table in tables.items():
            writer.write_table(name, table)
        writer.write_tensors("embeddings", {side: unit_rows(draw, entities) for side in SIDES})
        terms = np.full(entities, 0.5, dtype=np.float32)
        writer.write_tensors("hubness", {f"{side}_{pool}": terms for side in SIDES for pool in ("all", "test")})
        return writer.finish({key: value for key, value in manifest.items() if key not in ("files", "manifest_sha256")}).id


def unit_rows(draw: np.random.Generator, entities: int, width: int = 4) -> npt.NDArray[np.float32]:
    """(E, width) rows of unit length."""
    rows = draw.standard_normal((entities, width)).astype(np.float32)
    units: npt.NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return units


def entity_table(side: str, entities: int) -> pd.DataFrame:
    numbers = np.arange(entities)
    uris = [f"http://{side}.example/resource/entity/{number}" for number in range(entities)]
    return pd.DataFrame({"graph": side, "entity": numbers, "uri": uris, "label": [f"Entity {number}" for number in range(entities)], "degree": 20})


def relation_table(side: str) -> pd.DataFrame:
    names = [f"http://{side}.example/ontology/relation{number}" for number in range(RELATIONS)]
    return pd.DataFrame({"graph": side, "relation": np.arange(RELATIONS), "name": names})


def triple_table(draw: np.random.Generator, side: str, entities: int, triples: int) -> pd.DataFrame:
    ends = draw.integers(entities, size=(2, triples))
    return pd.DataFrame({"graph": side, "head": ends[0], "relation": draw.integers(RELATIONS, size=triples), "tail": ends[1]})


def value_table(side: str, entities: int) -> pd.DataFrame:
    twice = np.repeat(np.arange(entities), 2)
    values = [f"value {number}" for number in range(2 * entities)]
    return pd.DataFrame({"graph": side, "entity": twice, "attribute": np.tile(["size", "founded"], entities), "value": values})


def match_table(side: str, order: npt.NDArray[np.int64], matched: int) -> pd.DataFrame:
    """One match for each matched entity, the same from both sides."""
    ends = (np.arange(matched), order[:matched]) if side == "source" else (order[:matched], np.arange(matched))
    scores = np.full(matched, 0.8, dtype=np.float32)
    return pd.DataFrame({"graph": side, "entity": ends[0], "rank": 1, "match": ends[1], "cosine": scores, "csls": scores})


@dataclass(frozen=True)
class Export:
    """What is to be exported, in which format, and where to."""

    run: str
    models: Path
    name: str

    @property
    def target(self) -> Path:
        return self.models / f"merged-{self.name}{get_format(self.name).suffix}"


def exported(asked: Export) -> tuple[float, float, int]:
    """Seconds, peak memory of this process in MiB, and bytes of the file."""
    started = time.perf_counter()
    export(open_run(asked.run, asked.models), asked.target, format=asked.name, decoder="csls")
    return time.perf_counter() - started, peak_rss_mb() or float("nan"), asked.target.stat().st_size


if __name__ == "__main__":
    sys.exit(main())
