"""Wall time by phase, memory, and how near both come to what the machine can do; over data folders and synthetic pairs.

    python -m benchmarks.speed [--data FOLDER ...] [--entities 10000 30000 100000] [--steps 5] [--queries 10000] [--out FILE]
                               [--precision auto] [--threads N] [--device auto] [--set section.option=value]
                               [--baseline FILE [--tolerance 1.3]] [--record FILE]

Each case is measured in a process of its own. Tables are printed and, with ``--out``, written with the measurements as JSON lines beside them. With
``--baseline`` the exit code is 1 where a phase takes more of the machine than recorded; ``--record`` writes such a file. See docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.baseline import TOLERANCE, best_of, compare, comparison_table, complaints, load, save
from benchmarks.children import Run, in_a_process
from benchmarks.growth import growth_table
from benchmarks.phases import check_place, heading, keep, phase_table, this_command
from benchmarks.synthetic import LIKE, Shape, generate, shape_like, write_pair
from benchmarks.training_phases import Case, measure, of_size
from engine.errors import ConfigError, EngineError

REGRESSION, FAILED, INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None, run: Run = in_a_process) -> int:
    """Measure, write, compare; returns the exit code."""
    parsed = build_parser().parse_args(arguments)
    command = this_command("benchmarks.speed", arguments)
    records: list[Mapping[str, Any]] = []
    try:
        check(parsed)
        for one in measured(parsed, run, command):
            records.append(one)
            keep(records, tables(records), parsed.out)
    except (EngineError, KeyboardInterrupt) as problem:
        if records:
            print(tables(records))
        return failure_code(problem)
    print(tables(records))
    return with_guard(records, parsed, lambda: list(measured(parsed, run, command)))


def failure_code(problem: BaseException) -> int:
    """One line for a mistake or an interruption; the exit code."""
    interrupted = isinstance(problem, KeyboardInterrupt)
    print("interrupted." if interrupted else f"error: {problem}", file=sys.stderr)
    return INTERRUPTED if interrupted else FAILED


def measured(parsed: argparse.Namespace, run: Run, command: str) -> Iterator[Mapping[str, Any]]:
    """Every case, one after the other."""
    for case in cases(parsed, run):
        print(f"measuring {case.name}", file=sys.stderr)
        yield {**run(measure, case, case.name), "command": command}


def tables(records: Sequence[Mapping[str, Any]]) -> str:
    parts = [heading(records), phase_table(records), growth_table(records)]
    return "\n\n".join(part for part in parts if part)


def with_guard(records: Sequence[Mapping[str, Any]], parsed: argparse.Namespace, again: Callable[[], Sequence[Mapping[str, Any]]]) -> int:
    """:func:`guarded`, with a mistake as one line."""
    try:
        return guarded(records, parsed, again)
    except (EngineError, KeyboardInterrupt) as problem:
        return failure_code(problem)


def regressions(records: Sequence[Mapping[str, Any]], parsed: argparse.Namespace, again: Callable[[], Sequence[Mapping[str, Any]]]) -> list[str]:
    """What is worse than in the baseline, by phase; prints the comparison.

    Raises:
        ConfigError: a baseline that cannot be used.
    """
    found = compare(load(parsed.baseline), records, parsed.tolerance)
    if complaints(found, parsed.tolerance):
        print("something seems to have become slower; measuring once more", file=sys.stderr)
        found = compare(load(parsed.baseline), best_of(records, again()), parsed.tolerance)
    print(f"\n{comparison_table(found)}")
    return complaints(found, parsed.tolerance)


def guarded(records: Sequence[Mapping[str, Any]], parsed: argparse.Namespace, again: Callable[[], Sequence[Mapping[str, Any]]]) -> int:
    """Compare with the baseline and record a new one, as asked for; the exit code.

    What seems worse is measured once more, and only what is worse both times counts: a neighbour on the machine does not come twice.

    Raises:
        ConfigError: a baseline that cannot be written, or used where none is to be recorded.
    """
    failed: list[str] = []
    try:
        failed = regressions(records, parsed, again) if parsed.baseline is not None else []
    except ConfigError as problem:
        if parsed.record is None:
            raise
        print(f"not compared: {problem}", file=sys.stderr)  # a new baseline is what was asked for
    if parsed.record is not None:
        save(parsed.record, records)
    for complaint in failed:
        print(complaint, file=sys.stderr)
    return REGRESSION if failed else 0


def cases(parsed: argparse.Namespace, run: Run) -> Iterator[Case]:
    """Data folders first, then synthetic pairs; each pair is made just before it is needed and removed afterwards."""
    settings = execution(parsed)
    for folder in parsed.data:
        yield Case(folder.resolve().name, folder, settings, parsed.steps, parsed.queries, seed=parsed.seed)
    template = Case("", Path(), settings, parsed.steps, parsed.queries, seed=parsed.seed)
    for entities in parsed.entities:
        with synthetic_pair(shape_like(parsed.like, entities), parsed.seed, run) as folder:
            yield of_size(template, entities, folder)


@contextmanager
def synthetic_pair(shape: Shape, seed: int, run: Run) -> Iterator[Path]:
    """A folder with a pair, for as long as it is needed; made in another process, whose memory is none of ours."""
    with tempfile.TemporaryDirectory(prefix="synthetic-") as folder:
        run(make_pair, (shape, seed, Path(folder)), f"making a pair of {shape.entities:,} entities")
        yield Path(folder)


def make_pair(wanted: tuple[Shape, int, Path]) -> None:
    shape, seed, folder = wanted
    write_pair(generate(shape, seed), folder)


def execution(parsed: argparse.Namespace) -> tuple[str, ...]:
    """Options of their own and ``--set`` as settings."""
    own = {"precision": parsed.precision, "threads": parsed.threads, "device": parsed.device}
    return (*(f"training.{name}={value}" for name, value in own.items() if value is not None), *parsed.set)


def check(parsed: argparse.Namespace) -> None:
    """Find mistakes before anything is measured.

    Raises:
        ConfigError: nothing to measure, a name twice, a number that is too small, a file that cannot be used.
    """
    names = [folder.resolve().name for folder in parsed.data]
    if not names and not parsed.entities:
        raise ConfigError("there is nothing to measure; give --data FOLDER or --entities N.")
    if twice := first_twice([*names, *parsed.entities]):
        raise ConfigError(f"'{twice}' is given twice; tables could not tell one from the other.")
    if parsed.steps < 1 or parsed.queries < 0 or not parsed.tolerance > 1:
        raise ConfigError("--steps must be at least 1, --queries at least 0 (all), --tolerance above 1.")
    for entities in parsed.entities:
        shape_like(parsed.like, entities)
    for path in (parsed.out, parsed.record):
        check_place(path)
    if parsed.baseline is not None:
        load(parsed.baseline)


def first_twice(names: Iterable[object]) -> object | None:
    seen: set[object] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description="Time by phase, memory, and the machine's ceilings.")
    parser.add_argument("--data", nargs="+", type=Path, default=[], metavar="FOLDER", help="data folders")
    parser.add_argument("--entities", nargs="+", type=int, default=[], metavar="N", help="sizes of synthetic pairs, entities a side")
    parser.add_argument("--like", default="dbp-wd", choices=sorted(LIKE), help="what synthetic pairs look like (default: dbp-wd)")
    parser.add_argument("--steps", type=int, default=5, help="training steps to time after the warm-up (default: 5)")
    parser.add_argument("--queries", type=int, default=10_000, help="most entities to search for and links to evaluate; 0: all (default: 10,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16"))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.OPTION=VALUE", help="a setting of the engine")
    parser.add_argument("--out", type=Path, help="write the tables here, and the measurements beside them (.jsonl)")
    add_guard(parser)
    return parser


def add_guard(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="compare with what was recorded; exit code 1 if a phase became worse")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help=f"how many times the recorded ratio is tolerated (default: {TOLERANCE})")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write a baseline; cases of the file that were not measured stay")


if __name__ == "__main__":
    sys.exit(main())
