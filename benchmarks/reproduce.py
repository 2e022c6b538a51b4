"""The paper's tables and ours, over data sets, variants (or baselines) and seeds.

    python -m benchmarks.reproduce DATA [DATA ...] [--variants basic] [--seeds 0 1 2] [--set section.option=value] [--models DIR] [--out FILE]
                                   [--accuracy] [--decoders] [--calibration] [--ablations] [--losses] [--figures DIR]

Each run is a process of its own (``python -m engine train``). Runs that are finished are not trained again, and what was interrupted resumes where
it was: the same command can be given as often as one likes. Tables are printed and, with ``--out``, written after each run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import ablations, accuracy, calibration, decoders, losses
from benchmarks.plan import Plan, Report
from benchmarks.runs import Result, Train, run_all, train_in_a_process
from benchmarks.tables import write
from engine.config import VARIANTS
from engine.errors import ConfigError, EngineError
from engine.training.baselines import BASELINES

REPORTS: Mapping[str, Report] = {
    "accuracy": accuracy.REPORT,
    "decoders": decoders.REPORT,
    "calibration": calibration.REPORT,
    "ablations": ablations.REPORT,
    "losses": losses.REPORT,
}
FAILED = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None, train: Train = train_in_a_process) -> int:
    """Make the reports that were asked for; returns the exit code."""
    parsed = build_parser().parse_args(arguments)
    chosen = [report for name, report in REPORTS.items() if getattr(parsed, name)] or [REPORTS["accuracy"]]
    plan = Plan(tuple(parsed.data), tuple(parsed.variants), tuple(parsed.seeds), tuple(parsed.set))
    done: list[str] = []
    try:
        check_names(plan)
        for report in chosen:
            results: list[Result] = []
            for result in run_all(report.experiments(plan), parsed.models, train):
                results.append(result)
                keep([*done, report.table(results)], report.files(results), parsed.out, parsed.figures)
            done.append(report.table(results))
            print(f"{done[-1]}\n")
    except EngineError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from the last checkpoint.", file=sys.stderr)
        return INTERRUPTED
    return 0


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduce", description="The paper's tables and ours.")
    parser.add_argument("data", nargs="+", type=Path, help="data folders")
    parser.add_argument("--variants", nargs="+", default=["basic"], metavar="NAME", help=f"variants, or baselines: {', '.join(sorted(BASELINES))}")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.OPTION=VALUE", help="passed on to every run")
    parser.add_argument("--models", type=Path, default=Path("models"), help="where runs are kept")
    parser.add_argument("--out", type=Path, help="also write the tables here")
    parser.add_argument("--figures", type=Path, default=Path(__file__).parent, help="where CSV and SVG files go (default: benchmarks)")
    for name, report in REPORTS.items():
        parser.add_argument(f"--{name}", action="store_true", help=report.about)
    return parser


def check_names(plan: Plan) -> None:
    """
    Raises:
        ConfigError: two data folders of one name, which tables could not distinguish; no such variant.
    """
    if unknown := [name for name in plan.variants if name not in (*VARIANTS, *BASELINES)]:
        raise ConfigError(f"there is no variant or baseline '{unknown[0]}'; choose from {', '.join([*VARIANTS, *sorted(BASELINES)])}.")
    names = [data.resolve().name for data in plan.data]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"two data folders are called '{twice}'; rename one of them, or give them to a command each.")


def keep(tables: Sequence[str], files: Mapping[str, str], out: Path | None, figures: Path) -> None:
    """Write what is known so far."""
    if out is not None:
        write(out, "\n\n".join(tables))
    for name, content in files.items():
        write(figures / name, content)


if __name__ == "__main__":
    sys.exit(main())
