"""``python -m engine clusters``: alignments of several sources combined."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path

from engine.api import open_run, suggested_probability
from engine.cli.options import Commands, add_command, add_json, add_models, print_json, probability_or_suggested
from engine.errors import printable
from engine.exporting import check_plain, combined, reviewed_pairs, write_clusters, write_plain
from engine.reviews import ReviewStore
from engine.util.paths import reviews_file


def add_clusters(commands: Commands) -> None:
    parser = add_command(
        commands,
        "clusters",
        clusters_command,
        help="combine runs between several sources into clusters",
        description="Combine the alignments of runs between pairs of three or more sources. "
        "Pairs that contradict stronger ones are left out and listed.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run IDs, one for each two sources")
    least = "minimum probability of predictions (known links are always included); 'suggested': for each run the value with the best expected F1"
    parser.add_argument("--min-probability", type=probability_or_suggested, metavar="P", help=least)
    parser.add_argument("--output", type=Path, metavar="FILE", help="table of clusters: .csv, .tsv, .parquet or .sssom.tsv (default clusters.csv)")
    parser.add_argument("--conflicts", type=Path, metavar="FILE", help=".csv or .tsv file for the pairs that were left out, with the reason")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    add_models(parser)
    add_json(parser)


def clusters_command(parsed: argparse.Namespace) -> int:
    opened = [open_run(name, parsed.models) for name in parsed.runs]
    with closing(ReviewStore(reviews_file(parsed.models))) as store:
        reviewed = [(run.view, reviewed_pairs(store, run.fingerprint)) for run in opened]
    least = parsed.min_probability
    found = combined(reviewed, [suggested_probability(run) for run in opened] if least == "suggested" else least)
    path = parsed.output or Path("clusters.csv")
    if parsed.conflicts is not None:  # before anything is written
        check_plain(parsed.conflicts, force=parsed.force)
    write_clusters(found, path, force=parsed.force)
    if parsed.conflicts is not None:
        write_plain(found.conflicts(), parsed.conflicts, force=parsed.force)
    if parsed.json:
        sizes = [len(one) for one in found.members]
        print_json(
            {
                "file": str(path),
                "clusters": len(sizes),
                "entities": sum(sizes),
                "left_out": len(found.left_out),
                "sources": [one.name for one in found.sources],
            }
        )
    else:
        print(printable(f"{path}: {found.sentence()}"))
    return 0
