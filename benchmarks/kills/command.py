"""The command: spreads the kills over the places, and prints what became of them."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.kills.places import PLACES, spread
from benchmarks.kills.victims import Tally
from benchmarks.parts import write_part


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description="Kill processes at random moments, and look for what is lost.")
    parser.add_argument("data", type=Path, help="a small data set")
    parser.add_argument("--kills", type=int, default=20, help="in all (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the moments (default: 0)")
    parser.add_argument("--links", type=int, metavar="N", help="take a part of the data with this number of links (OpenEA layout; default: all)")
    parser.add_argument(
        "--only", action="append", choices=tuple(PLACES), metavar="NAME", help=f"only this place, may be repeated: {', '.join(PLACES)}"
    )
    return parser


def study(data: Path, folder: Path, kills: int, seed: int, names: Sequence[str] = tuple(PLACES)) -> dict[str, Tally]:
    """Kill in one place after the other; each has a folder and a draw of its own."""
    tallies = {}
    for name, number in spread(kills, list(names)).items():
        if number:
            started = time.monotonic()
            (folder / name).mkdir(parents=True)
            tallies[name] = PLACES[name].kill(data.resolve(), folder / name, number, random.Random(f"{seed} {name}"))
            print(f"{name}: {tallies[name].kills} kills, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return tallies


def table(tallies: Mapping[str, Tally]) -> str:
    """Markdown."""
    rows = [["killed", "kills", "where they fell", "acknowledged and looked for", "resumed to the end", "the same bits"]]
    for name, one in tallies.items():
        fell = ", ".join(f"{number} {where}" for where, number in one.moments.most_common())
        resumed = [f"{number:,}" if one.finished else "" for number in (one.finished, one.same)]
        rows.append([PLACES[name].what, str(one.kills), fell, f"{one.acknowledged:,}", *resumed])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "| --- " * len(rows[0]) + "|", *lines[1:]])


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = build_parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        data = parsed.data if parsed.links is None else write_part(parsed.data, Path(folder) / "part" / parsed.data.name, parsed.links)
        tallies = study(data, Path(folder), parsed.kills, parsed.seed, parsed.only or tuple(PLACES))
    problems = [f"PROBLEM ({name}): {problem}" for name, one in tallies.items() for problem in one.problems]
    print(table(tallies))
    total = sum(one.kills for one in tallies.values())
    print(f"\n{total} kills. " + ("\n".join(problems) if problems else "Nothing lost, nothing half-written."))
    return 1 if problems else 0
