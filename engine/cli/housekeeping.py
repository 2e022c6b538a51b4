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
    one = actions.add_parser("delete", help="delete a run", description="Delete a run of any state, permanently. Reviews and data sets are kept.")
    one.add_argument("run", metavar="RUN", help="run id, as listed by 'runs'")
    one.set_defaults(command=delete_run)
    many = actions.add_parser(
        "prune", help="delete runs by age or number", description="Delete old or surplus runs, permanently. Reviews and data sets are kept."
    )
    many.add_argument("--keep", type=int, metavar="N", help="keep the newest N of each data set and variant")
    many.add_argument("--older-than", type=float, metavar="DAYS", help="delete only runs older than DAYS")
    many.add_argument("--partial", action="store_true", help="include interrupted runs that are not active")
    many.add_argument("--dry-run", action="store_true", help="only list what would be deleted and how much space it would free")
    many.set_defaults(command=prune)
    for parser in (one, many):
        parser.add_argument("--yes", action="store_true", help="delete without asking")
        # Without defaults of their own, so that options before the action's name count as well.
        parser.add_argument("--models", type=Path, default=argparse.SUPPRESS, metavar="DIR", help="folder with the runs")
        parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the result as one line of JSON, last")


def add_backup(commands: Commands) -> None:
    parser = add_command(
        commands,
        "backup",
        backup,
        help="back up runs, reviews and imported data into one archive",
        description="Back up runs, reviews and imported data into one archive. The app may be running. docs/operations.md shows how to restore it.",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE.tar.gz", help="archive to write; .tar: not compressed")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
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
        confirm(f"Delete {count(len(going), 'run')}, {size_text(total)}, permanently?", yes=parsed.yes)
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
    notes = [states.get(one.run.state, ""), f"{', '.join(one.built_on)} was built on it and remains complete" if one.built_on else ""]
    return "  ".join([one.run.id, one.run.created, size_text(one.bytes), *(note for note in notes if note)])


def confirm(question: str, *, yes: bool) -> None:
    """
    Raises:
        ConfigError: the answer is no, or the question cannot be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("nothing was deleted; add --yes to delete without a question (there is no terminal to ask at).")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError("nothing was deleted.")


def backup(parsed: argparse.Namespace) -> int:
    made = back_up(parsed.models, paths.data_folder(), parsed.output, force=parsed.force)
    if made.broken:
        print(printable(f"warning: left out, since they cannot be opened: {', '.join(made.broken)}; 'runs' lists the reasons."), file=sys.stderr)
    if parsed.json:
        values = {
            "file": str(made.file),
            "runs": made.runs,
            "broken": list(made.broken),
            "data_sets": made.data_sets,
            "databases": list(made.databases),
            "bytes": made.bytes,
        }
        print_json(values)
        return 0
    parts = [count(made.runs, "run"), count(made.data_sets, "imported data set"), *made.databases]
    print(printable(f"{made.file}: {', '.join(parts)}; {size_text(made.bytes)}."))
    return 0
