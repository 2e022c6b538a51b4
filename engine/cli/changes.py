"""``python -m engine changes NEW [OLD]``: what changed between two runs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, get_args

from engine.api import open_run
from engine.cli.options import Commands, add_command, add_json, add_models, print_json
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ConfigError, printable
from engine.explore.changes import CAUSE_WORDS, CHANGES, MatchChanges
from engine.exporting import check_plain, write_plain


def add_changes(commands: Commands) -> None:
    parser = add_command(
        commands,
        "changes",
        changes_command,
        help="show what changed between two runs",
        description="Compare the matches of a run with those of a run on an earlier version of the data, or on the same data: gained, lost, changed "
        "and kept, each with its reason.",
    )
    parser.add_argument("run", metavar="NEW", help="run id of the newer run, as listed by 'runs'")
    parser.add_argument("old", metavar="OLD", nargs="?", help="run id of the older run (default: the run that NEW was updated from)")
    parser.add_argument("--side", choices=get_args(Side), default="source", help="graph whose entities' matches are compared (default source)")
    least = "minimum probability of a match (default 0.5 if both runs have probabilities; 0: all matches)"
    parser.add_argument("--min-probability", type=float, metavar="P", help=least)
    parser.add_argument(
        "--only", choices=CHANGES, action="append", default=[], help="list only these changes; may be repeated (default: all but kept)"
    )
    parser.add_argument("--top", type=int, default=10, metavar="N", help="number of rows to show (default 10)")
    parser.add_argument("--output", type=Path, metavar="FILE", help=".csv or .tsv file for all listed rows")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_models(parser)
    add_json(parser)


def changes_command(parsed: argparse.Namespace) -> int:
    if not 0 <= parsed.top <= 1000:
        raise ConfigError(f"--top must lie between 0 and 1000; got {parsed.top}.")
    if parsed.output is not None:  # before anything is computed
        check_plain(parsed.output, force=parsed.force)
    new = open_run(parsed.run, parsed.models)
    found = new.compared_with(parsed.old, side=parsed.side, least=parsed.min_probability)
    listed = found.select(parsed.only or [one for one in CHANGES if one != "kept"])
    if parsed.output is not None:
        write_plain(found.described(listed), parsed.output, force=parsed.force)
    rows = found.described(listed[: parsed.top]).to_dict("records")
    if parsed.json:
        print_json(changes_summary(found, len(listed)) | {"rows": [{name: null_for_nan(value) for name, value in row.items()} for row in rows]})
        return 0
    print(printable(f"{found.new.name} compared with {found.old.name}"))
    for side in SIDES:
        print(printable(found.entity_sentence(side)))
    print(found.sentence())
    reasons = [f"{CAUSE_WORDS[cause]} {number:,}" for cause, number in found.cause_counts().items() if number]
    if reasons:
        print(f"reasons: {', '.join(reasons)}")
    for row in rows:
        print(printable(row_words(row)))
    if len(listed) > len(rows):
        print(f"and {len(listed) - len(rows):,} more; --output writes all, --top shows more.")
    if parsed.output is not None:
        print(printable(f"written to {parsed.output}"))
    return 0


def changes_summary(found: MatchChanges, listed: int) -> dict[str, Any]:
    """Counts for JSON."""
    entities = {
        side: {"both": numbers.common, "added": int(numbers.fresh.sum()), "removed": int(numbers.gone.sum())}
        for side, numbers in found.numbers.items()
    }
    reasons = {CAUSE_WORDS[cause]: number for cause, number in found.cause_counts().items() if number}
    about = {"new": found.new.name, "old": found.old.name, "side": found.side, "min_probability": found.least}
    return about | {"entities": entities, "changes": found.counts(), "reasons": reasons, "listed": listed}


def null_for_nan(value: Any) -> Any:
    """A cell for JSON: what is missing is null."""
    return None if isinstance(value, float) and math.isnan(value) else value


def row_words(row: Mapping[Hashable, Any]) -> str:
    """'changed  Sweden: Norwegen 62% → Schweden 91%; triples added: 2 triples added, e.g. Norway'."""
    alike = row["old_match"] != row["match"] and row["old_match_label"] == row["match_label"]
    before, now = (side_of_change(row, prefix, identified=alike) for prefix in ("old_", ""))
    reason = f"; {row['reason']}{': ' + row['detail'] if row['detail'] else ''}" if row["reason"] else ""
    return f"{row['change']:<8} {row['label'] or row['entity']}: {before if before == now else f'{before} → {now}'}{reason}"


def side_of_change(row: Mapping[Hashable, Any], prefix: str, *, identified: bool = False) -> str:
    """The match before or now with its probability, in parentheses where it does not count; '–' for none. ``identified``: by its identifier, where
    another entity of the same label took its place.
    """
    name = row[f"{prefix}match"]
    if not name:
        return "–"
    probability = null_for_nan(row[f"{prefix}probability"])
    label = name if identified else row[f"{prefix}match_label"] or name
    words = f"{label}{'' if probability is None else f' {probability:.0%}'}"
    return f"({words})" if row["change"] == ("gained" if prefix else "lost") else words
