"""Reading large data sets: from files on a disk to a task with its fingerprint, and to index arrays; time and memory by the number of triples.

    python -m benchmarks.ingestion [--triples 1000000 10000000] [--gz] [--like dbp-wd] [--seed 0] [--out FILE]

A synthetic pair with a given number of triples is written as an OpenEA folder and read in a process of its own. Its files were
written just before, so they come from the system's cache and not from the disk: what is timed is the work. Memory is the peak minus what the program
held before it read anything; next to it the estimate from the files' sizes, by which data sets that cannot fit are refused.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.children import Run, in_a_process
from benchmarks.growth import LEAST, above_start, exponent
from benchmarks.machine import MIB, Probe, resident_mib
from benchmarks.phases import Stopwatch, check_place, heading, keep, optional, record, this_command
from benchmarks.speed import failure_code, first_twice, synthetic_pair
from benchmarks.synthetic import LIKE, Shape, shape_like
from benchmarks.tables import markdown
from engine.config import RunConfig
from engine.data import READERS, AlignmentTask, load_task
from engine.data.assembly import expected_memory
from engine.errors import ConfigError, EngineError
from engine.training.trainer import task_adjacency

HEADER = (
    "triples",
    "entities",
    "files, MiB",
    "read, s",
    "triples/s",
    "index, s",
    "peak of reading, MiB",
    "expected, MiB",
    "peak of all, MiB",
    "bytes a triple",
)
PACKED = 6  # level of compression


@dataclass(frozen=True)
class Case:
    """A folder to read, and what tables call it."""

    name: str
    folder: Path


def measure(case: Case) -> dict[str, Any]:
    """Read and index once.

    Raises:
        EngineError: the data cannot be used, or do not fit into memory.
    """
    device = torch.device("cpu")
    watch, probe = Stopwatch(device), Probe(device)
    probe.measure()
    files = READERS["openea"].files(case.folder)
    expected, size = expected_memory(files), sum(path.stat().st_size for path in files)
    start = resident_mib()
    task = watch.run("read", lambda: load_task(case.folder))
    watch.run("index", lambda: task_adjacency(task, RunConfig()))
    probe.measure()
    return record(case.name, watch, probe, {"device": "cpu"}, start_mib=start, expected_mib=expected, files_mib=size / MIB, **about(task))


def about(task: AlignmentTask) -> dict[str, Any]:
    return {
        "triples": len(task.source.triples) + len(task.target.triples),
        "entities": task.num_entities,
        "fingerprint": task.fingerprint,
    }


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """A line a size; exponents of their growth where there are two or more."""
    text = markdown(HEADER, map(line, records))
    sizes = [float(one["triples"]) for one in records]
    if len(set(sizes)) < LEAST:
        return text
    series = {name: [one["phases"][name]["seconds"] for one in records] for name in ("read", "index")}
    series["peak memory"] = [above_start(one) for one in records]
    grown = ", ".join(f"{name} {exponent(sizes, values):.2f}" for name, values in series.items() if min(values) > 0)
    return f"{text}\n\nExponents of the growth with the triples (1 is linear): {grown}."


def line(one: Mapping[str, Any]) -> list[str]:
    """The cells of a size."""
    read, index = (one["phases"][name] for name in ("read", "index"))
    above, start = above_start(one), one["start_mib"]
    reading = None if start is None or read["peak_mib"] is None else read["peak_mib"] - start
    return [
        f"{one['triples']:,}",
        f"{one['entities']:,}",
        f"{one['files_mib']:,.0f}",
        f"{read['seconds']:.1f}",
        f"{one['triples'] / read['seconds']:,.0f}",
        f"{index['seconds']:.1f}",
        optional(reading, ",.0f"),
        f"{one['expected_mib']:,.0f}",
        f"{above:,.0f}",
        f"{above * MIB / one['triples']:.0f}",
    ]


def main(arguments: Sequence[str] | None = None, run: Run = in_a_process) -> int:
    """Measure and write; returns the exit code."""
    parsed = build_parser().parse_args(arguments)
    try:
        shapes = chosen(parsed)
        check_place(parsed.out)
        command = this_command("benchmarks.ingestion", arguments)
        records = [{**run(measure, case, case.name), "command": command} for case in cases(shapes, parsed, run)]
        text = f"{heading(records)}\n\n{table(records)}"
        keep(records, text, parsed.out)
    except (EngineError, KeyboardInterrupt) as problem:
        return failure_code(problem)
    print(text)
    return 0


def chosen(parsed: argparse.Namespace) -> list[Shape]:
    """
    Raises:
        ConfigError: a size twice, or one that no synthetic pair has.
    """
    if twice := first_twice(parsed.triples):
        raise ConfigError(f"'{twice}' is given twice; tables could not tell one from the other.")
    density = sum(LIKE[parsed.like][0])
    return [shape_like(parsed.like, round(triples / density)) for triples in parsed.triples]


def cases(shapes: Sequence[Shape], parsed: argparse.Namespace, run: Run) -> Iterator[Case]:
    """Each pair is made just before it is needed and removed afterwards."""
    for shape in shapes:
        with synthetic_pair(shape, parsed.seed, run) as folder, packed(folder, parsed.gz):
            yield Case(f"{sum(shape.triples):,} triples{', gzipped' if parsed.gz else ''}", folder)


@contextmanager
def packed(folder: Path, wanted: bool) -> Iterator[None]:
    """With gzipped files in the place of plain ones, where that is wanted."""
    for path in [path for path in folder.rglob("*") if path.is_file()] if wanted else []:
        with path.open("rb") as plain, gzip.open(path.with_name(f"{path.name}.gz"), "wb", PACKED) as zipped:
            shutil.copyfileobj(plain, zipped)
        path.unlink()
    yield


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingestion", description="Time and memory of reading and indexing large data sets.")
    parser.add_argument(
        "--triples", nargs="+", type=int, default=[1_000_000, 10_000_000], metavar="N", help="of both graphs (default: 1000000 10000000)"
    )
    parser.add_argument("--gz", action="store_true", help="read gzipped files")
    parser.add_argument("--like", default="dbp-wd", choices=sorted(LIKE), help="what the pairs look like (default: dbp-wd)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the table here, and the measurements beside it (.jsonl)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
