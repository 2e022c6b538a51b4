"""The regression guard of what a user waits for: a whole training run, and the first view of each page.

    python -m benchmarks.whole [--data sample_data/europe] [--repeats 5] [--baseline FILE [--tolerance 1.3]] [--record FILE]

Trains the basic variant on small data in a process of its own, serves the run, and measures of every page the server's share (a session without a
browser) and, where there is a Chromium, what the browser loads. Seconds are compared as multiples of what the machine does in the same minutes: of
10^12 operations of a matrix product, and of a fixed piece of Python. Bytes are compared as they are.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import sync_playwright

from benchmarks.baseline import TOLERANCE
from benchmarks.baseline import load as recorded
from benchmarks.machine import Probe, describe_machine
from benchmarks.pages import VIEWPORT, Load, loaded, server_shares, view
from benchmarks.phases import check_place, this_command
from benchmarks.runs import Experiment, Train, train_in_a_process
from benchmarks.served_app import BROWSER_OPTIONS, PROJECT, addresses, served
from benchmarks.speed import failure_code, with_guard
from benchmarks.tables import markdown
from engine.errors import EngineError
from engine.pipeline import git_commit, versions
from engine.runs import RunStore
from engine.training.device import usable_cores

PRODUCT = 1e12
"""Operations of the product that a training is compared with."""
PIECES, PIECE = 40, {"numbers": list(range(200)), "words": ["neighbour"] * 50}
"""Of Python's own work that a page is compared with: how often, and what is written and read."""
MEGABYTE = 1e6
LONG = 1.0
"""Seconds that stand for bytes, which no clock blurs."""


def main(arguments: Sequence[str] | None = None, train: Train = train_in_a_process) -> int:
    """Measure and compare; returns the exit code."""
    parsed = build_parser().parse_args(arguments)
    command = this_command("benchmarks.whole", arguments)
    try:
        check_place(parsed.record)
        if parsed.baseline is not None:
            recorded(parsed.baseline)
        records = measured(parsed, command, train)
    except (EngineError, KeyboardInterrupt) as problem:
        return failure_code(problem)
    print(table(records))
    return with_guard(records, parsed, lambda: measured(parsed, command, train))


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.whole", description="A whole run and the pages' first views, beside those recorded.")
    parser.add_argument("--data", type=Path, default=PROJECT / "sample_data" / "europe", help="data folder")
    parser.add_argument("--repeats", type=int, default=5, help="first views of each page")
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"), help="Chromium's program file")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="compare with what was recorded; exit code 1 if something became worse")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help=f"times the recorded ratio that count as the same (default: {TOLERANCE})")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write a baseline; cases of the file that were not measured stay")
    return parser


def measured(parsed: argparse.Namespace, command: str, train: Train) -> list[Mapping[str, Any]]:
    """The two cases.

    Raises:
        EngineError: data that cannot be trained on, a page that shows an exception.
    """
    about = {"machine": describe_machine(torch.device("cpu")), "versions": versions(), "commit": git_commit(), "command": command}
    name = parsed.data.resolve().name
    with tempfile.TemporaryDirectory(prefix="whole-") as folder:
        models, probe = Path(folder), Probe(torch.device("cpu"))
        probe.measure()
        print(f"training on {name}", file=sys.stderr)
        run = RunStore(models).find(train(Experiment(parsed.data, "basic", 0), models))
        probe.measure()
        seconds, product = float(run.manifest["seconds"]), PRODUCT / probe.best.product("float32")
        training = {"case": f"whole run of {name}", "conditions": {"threads": usable_cores(), "variant": "basic"}, **about}
        training["phases"] = {"basic": rated(seconds, seconds / product)}
        pages = {"case": f"first views of {name}", "conditions": {"browser": parsed.browser is not None}, **about}
        pages["phases"] = dict(first_views(models, run.id, parsed.repeats, parsed.browser))
    return [training, pages]


def rated(seconds: float, ratio: float) -> dict[str, float]:
    return {"seconds": seconds, "best_ratio": ratio}


def first_views(models: Path, run: str, repeats: int, chromium: str | None) -> Iterator[tuple[str, dict[str, float]]]:
    """The server's share of each page, then what a browser loads for it."""
    pages = addresses(models, run, "")
    with served(models) as (base, _):
        for name, address in pages.items():
            print(f"opening {name}", file=sys.stderr)
            before = piece_of_python()
            best = min(server_shares(base, address, repeats))
            yield f"server's share of {name}", rated(best, best / min(before, piece_of_python()))
        for name, load in browsed(base, pages, chromium) if chromium is not None else ():
            megabytes = (load.bytes + load.messages) / MEGABYTE
            yield f"megabytes of {name}", rated(LONG, megabytes)


def browsed(base: str, pages: Mapping[str, str], chromium: str) -> Iterator[tuple[str, Load]]:
    """What each page loads in a new tab of a browser that has seen it."""
    with sync_playwright() as playwright, closing(playwright.chromium.launch(executable_path=chromium, args=list(BROWSER_OPTIONS))) as browser:
        context = browser.new_context(viewport=VIEWPORT)
        for name, address in pages.items():
            view(context, base + address)
            yield name, loaded(context, base + address)


def piece_of_python() -> float:
    """Seconds of a fixed piece of work of the interpreter, the least of several times."""

    def once() -> float:
        began = time.perf_counter()
        json.loads(json.dumps(PIECE))
        return time.perf_counter() - began

    return min(once() for _ in range(PIECES))


def table(records: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [record["case"], name, f"{phase['seconds']:.3f}" if phase["seconds"] != LONG else "", f"{phase['best_ratio']:,.2f}"]
        for record in records
        for name, phase in record["phases"].items()
    ]
    return markdown(("case", "what", "seconds", "ratio"), rows)


if __name__ == "__main__":
    sys.exit(main())
