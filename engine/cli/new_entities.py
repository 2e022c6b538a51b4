"""``python -m engine match RUN --new FILE``: entities that the run has not seen."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from engine.api import open_run
from engine.cli.options import print_json
from engine.errors import printable
from engine.explanation.new_entities import read_new_entities


def match_new(parsed: argparse.Namespace) -> int:
    """Show the best matches of the entities of a file."""
    run = open_run(parsed.run, parsed.models)
    placed = run.align_new(read_new_entities(Path(parsed.entity)), side=parsed.side or "source", top=parsed.top)
    if parsed.json:
        print_json({"run": run.id, "entities": [one.to_dict() for one in placed]})
        return 0
    for one in placed:
        print(printable(one.sentence()))
        for sentence in one.ignored:
            print(printable(f"  warning: {sentence}"))
        if one.matches.empty:
            continue
        print(f"{'rank':>4} {'CSLS':>7} {'cosine':>7} {'probability':>11}  match")
        for row in one.matches.to_dict("records"):
            chance = "" if math.isnan(row["probability"]) else f"{row['probability']:.0%}"
            taken = f"; the run matches it with <{row['matched_with']}>" if row["matched_with"] else ""
            name = f"{row['label'] or row['uri']}  <{row['uri']}>{taken}"
            print(printable(f"{row['rank']:>4} {row['csls']:>7.3f} {row['cosine']:>7.3f} {chance:>11}  {name}"))
    return 0
