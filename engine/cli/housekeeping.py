"""``runs delete``, ``runs prune`` and ``backup``: what an administrator does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.cli.options import Commands, add_command, add_json, add_models, print_json
from engine.errors import ConfigError, printable
from engine.runs import RunStore
from engine.runs.cleanup import DeletionCandidate, back_up, delete, deletion_candidate, to_prune
from engine.util import paths
from engine.util.text import count, size_text


def add_clean_up(runs: argparse.ArgumentParser) -> None:
    """What ``runs`` can do besides listing them."""
    actions = runs.add_subparsers(title="actions", metavar="ACTION", required=False)
    one = actions.add_parser("delete", help="delete a run", description="Delete a run of any state, for good. Reviews and data sets stay.")
    one.add_argument("run", metavar="RUN", help="a run's id, as 'runs' lists it")
    one.set_defaults(command=delete_run)
    many = actions.add_parser("prune", help="delete runs by a rule", description="Delete old or surplus runs, for good. Reviews and data sets stay.")
    many.add_argument("--keep", type=int, metavar="N", help="keep the newest N of each data set and variant")
    many.add_argument("--older-than", type=float, metavar="DAYS", help="only runs made longer ago than this")
    many.add_argument("--partial", action="store_true", help="interrupted trainings, too, that nobody goes on with right now")
    many.add_argument("--dry-run", action="store_true", help="only say what would go, and how much space that frees")
    many.set_defaults(command=prune)
    for parser in (one, many):
        parser.add_argument("--yes", action="store_true", help="do not ask")
        # Without defaults of their own, so that options before the action's name count as well.
        parser.add_argument("--models", type=Path, default=argparse.SUPPRESS, metavar="DIR", help="where runs are kept")
        parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the result as one line of JSON, last")


def add_backup(commands: Commands) -> None:
    parser = add_command(
        commands,
        "backup",
        backup,
        help="copy runs, reviews and imported data into one archive",
        description="Copy all that cannot be made again into one archive, while the app may be at work; docs/operations.md says how to restore it.",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE.tar.gz", help="the archive to write; .tar is not compressed")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")
    add_models(parser)
    add_json(parser)


def delete_run(parsed: argparse.Namespace) -> int:
    store = RunStore(parsed.models)
    return carry_out(parsed, store, [deletion_candidate(store, parsed.run)], dry=False)


def prune(parsed: argparse.Namespace) -> int:
    store = RunStore(parsed.models)
    going = to_prune(store, keep=parsed.keep, older_than=parsed.older_than, partial=parsed.partial)
    return carry_out(parsed, store, going, dry=parsed.dry_run)


def carry_out(parsed: argparse.Namespace, store: RunStore, going: Sequence[DeletionCandidate], *, dry: bool) -> int:
    """Say what goes, ask, and delete it."""
    total = sum(one.bytes for one in going)
    output = sys.stderr if parsed.json else sys.stdout
    for one in going:
        print(printable(line_of(one)), file=output)
    if going and not dry:
        confirm(f"Delete {count(len(going), 'run')}, {size_text(total)}, for good?", yes=parsed.yes)
        delete(store, going)
    done = "would be deleted" if dry else "deleted"
    print(
        f"{count(len(going), 'run')} {done}, {size_text(total)}{' would be freed' if dry else ' freed'}." if going else "nothing to delete.",
        file=output,
    )
    if parsed.json:
        print_json({"runs": [one.run.id for one in going], "bytes": total, "deleted": not dry})
    return 0


def line_of(one: DeletionCandidate) -> str:
    """A run in a list of what goes."""
    states = {"partial": "interrupted", "broken": "cannot be opened", "stopped": "stopped early"}
    notes = [states.get(one.run.state, ""), f"{', '.join(one.built_on)} was built on it and stays whole" if one.built_on else ""]
    return "  ".join([one.run.id, one.run.created, size_text(one.bytes), *(note for note in notes if note)])


def confirm(question: str, *, yes: bool) -> None:
    """
    Raises:
        ConfigError: the answer is no, or the question cannot be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("nothing was deleted; add --yes where nobody can be asked.")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError("nothing was deleted.")


def backup(parsed: argparse.Namespace) -> int:
    made = back_up(parsed.models, paths.data_folder(), parsed.output, force=parsed.force)
    if parsed.json:
        values = {"file": str(made.file), "runs": made.runs, "data_sets": made.data_sets, "databases": list(made.databases), "bytes": made.bytes}
        print_json(values)
        return 0
    parts = [count(made.runs, "run"), count(made.data_sets, "imported data set"), *made.databases]
    print(printable(f"{made.file}: {', '.join(parts)}; {size_text(made.bytes)}."))
    return 0
