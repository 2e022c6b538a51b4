"""``python -m engine update`` (its arguments) and ``reviews``: a run on a new version of its data, and the decisions that were carried over."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing
from typing import Any

from engine.api import open_run
from engine.cli.options import Commands, add_command, add_fresh, add_json, add_models, add_reviews_file, add_run, add_settings, print_json
from engine.errors import printable
from engine.reviews import Decision, ReviewStore, reason_words
from engine.reviews.decisions import VERDICT_WORDS, Pair
from engine.util.paths import reviews_file
from engine.util.text import count


def add_update(commands: Commands, run: Callable[[argparse.Namespace], int]) -> None:
    parser = add_command(
        commands,
        "update",
        run,
        help="train a run on a new version of its data",
        description="Train a run on a new version of its data, starting from what it has learned: a few epochs are enough. Entities go by their "
        "identifiers, links keep their part, and reviewers' decisions are carried over (docs/updating.md). The same command finds a finished run and "
        "resumes an unfinished one.",
    )
    add_run(parser)
    parser.add_argument("data", metavar="DATA", help="folder of the new version of the data set")
    parser.add_argument(
        "--mapping",
        action="append",
        default=[],
        metavar="[SIDE=]FILE",
        help="table with the old and new identifiers of entities that were renamed (columns old and new); for one graph source=FILE or target=FILE",
    )
    parser.add_argument("--epochs", type=int, metavar="N", help="number of epochs before the rounds (default: a share of the parent's)")
    parser.add_argument("--seed", type=int, metavar="N", help="random seed (default: that of the run)")
    add_settings(parser, "a setting that differs from the run's")
    add_fresh(parser)
    add_reviews_file(parser, "train with reviewers' decisions as they are now", "default: those that the run was trained with")
    add_models(parser)
    add_json(parser)


def add_decisions(commands: Commands) -> None:
    parser = add_command(
        commands,
        "reviews",
        reviews_command,
        help="list reviewers' decisions",
        description="List the reviewers' decisions on a run's data, with those to look at again because their evidence changed in a new version of "
        "the data, and those without effect because an entity is gone.",
    )
    add_run(parser)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--again", action="store_true", help="only decisions to look at again")
    only.add_argument("--inactive", action="store_true", help="only decisions without effect, because an entity is gone")
    add_models(parser)
    add_json(parser)


def reviews_command(parsed: argparse.Namespace) -> int:
    run = open_run(parsed.run, parsed.models)
    with closing(ReviewStore(reviews_file(parsed.models))) as store:
        again, aside = store.look_again(run.fingerprint), store.inactive(run.fingerprint)
        standing = [] if parsed.inactive else store.standing(run.fingerprint)
    rows = [decision_row(one, again=again) for one in standing if not parsed.again or one.pair in again]
    if not parsed.again:
        rows += [decision_row(one, gone=gone) for one, gone in aside]
    if parsed.json:
        print_json({"run": run.id, "decisions": rows})
        return 0
    for row in rows:
        state = (
            f"  look again: {reason_words(row['look_again'])}" if row["look_again"] else f"  inactive: {row['gone']} is gone" if row["gone"] else ""
        )
        print(printable(f"{row['verdict']:<8}  {row['reviewer']}  {row['time'][:16]}  <{row['source']}>  <{row['target']}>{state}"))
    marked = count(len(again), "pair")
    print(f"{count(len(rows), 'decision')} listed; {marked} to look at again, {count(len(aside), 'inactive decision')}.")
    return 0


def decision_row(decision: Decision, *, again: dict[Pair, tuple[str, ...]] | None = None, gone: str = "") -> dict[str, Any]:
    """A decision as JSON has it."""
    choice = decision.choice
    return {
        "verdict": VERDICT_WORDS[choice.verdict],
        "source": choice.source,
        "target": choice.target,
        "reviewer": decision.author,
        "time": decision.time,
        "note": choice.note,
        "run": choice.run,
        "look_again": list((again or {}).get(decision.pair, ())),
        "gone": gone,
    }
