"""``python -m engine export`` and ``report``: an alignment, or a whole run, as a file."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from engine.api import export as write_alignment
from engine.api import open_run
from engine.cli.applicable import check_export, refuse
from engine.cli.options import Commands, add_command, add_json, add_models, add_run, print_json, probability_or_suggested
from engine.data.knowledge_graph import Side
from engine.errors import printable
from engine.explore.hierarchy import hierarchies
from engine.explore.review_queue import SampleEstimate
from engine.exporting import (
    CANONICAL,
    DECODER_NAMES,
    FORMATS,
    ONE_TO_ONE,
    PREDICATES,
    STORED,
    ExportTable,
    Format,
    decoder_help,
    formats_by_ending,
    get_format,
    split_merged,
)


def add_export(commands: Commands) -> None:
    parser = add_command(
        commands,
        "export",
        export_command,
        help="write a run's alignment to a file",
        description="Write the pairs of a run to a file that other tools can read (formats: docs/exporting.md). "
        "The file can be read again as known links.",
    )
    add_run(parser)
    kinds = "; ".join(f"{one.name}: {one.does}" for one in FORMATS.values())
    by_ending = "default: by the ending of --output, csv without one"
    parser.add_argument("--format", choices=tuple(FORMATS), metavar="NAME", help=f"{kinds} ({by_ending})")
    parser.add_argument("--output", type=Path, metavar="FILE", help="output file; default: links-DATA-RUN with the format's ending, in this folder")
    least = "minimum probability of predictions (known links are always included); 'suggested': the value with the best expected F1"
    parser.add_argument("--min-probability", type=probability_or_suggested, metavar="P", help=least)
    default = f"{ONE_TO_ONE}, or {STORED} if the known links give an entity several counterparts"
    parser.add_argument("--decoder", choices=DECODER_NAMES, metavar="NAME", help=f"{decoder_help(DECODER_NAMES)} (default {default})")
    parser.add_argument("--side", choices=get_args(Side), default="source", help="graph whose entities' best matches are exported (default source)")
    parser.add_argument("--without-seeds", action="store_true", help="leave out the seed links")
    parser.add_argument("--predictions-only", action="store_true", help="export all predictions, even those that contradict known links")
    parser.add_argument("--reviewed", action="store_true", help="export only the pairs that reviewers accepted")
    parser.add_argument("--repair", action="store_true", help="leave out the weaker of two pairs that contradict the class hierarchies of the graphs")
    parser.add_argument("--predicate", choices=tuple(PREDICATES), help="predicate for sssom and ntriples (default skos:exactMatch and owl:sameAs)")
    whose = "merged formats: whose identifier a folded entity gets; minted: a new one (default source)"
    parser.add_argument("--canonical", choices=CANONICAL, help=whose)
    both = "merged formats: probability, in both directions, from which two relations or attributes become one (default 0.5; 2: never)"
    parser.add_argument("--least-correspondence", type=float, metavar="P", help=both)
    parser.add_argument("--conflicts", type=Path, metavar="FILE", help="CSV file for values of matched entities that differ, with a proposal")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_models(parser)
    add_json(parser)


def add_split(commands: Commands) -> None:
    parser = add_command(
        commands,
        "split",
        split_command,
        help="separate a merged graph into its two graphs",
        description="Write the two graphs and the pairs of a merged graph (export --format merged or merged-parquet) as a data set.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the merged graph")
    parser.add_argument("--out", "--output", type=Path, required=True, metavar="DIR", help="folder for the tables of the two graphs and the pairs")
    parser.add_argument("--force", action="store_true", help="overwrite existing tables")
    add_json(parser)


def split_command(parsed: argparse.Namespace) -> int:
    rows = split_merged(parsed.file, parsed.out, force=parsed.force)
    if parsed.json:
        print_json({"folder": str(parsed.out), "rows": rows})
    else:
        print(printable(f"{parsed.out}: " + ", ".join(f"{number:,} rows in {name}" for name, number in rows.items())))
    return 0


def add_report(commands: Commands) -> None:
    parser = add_command(
        commands,
        "report",
        report_command,
        help="write a run as one HTML page",
        description="Write figures, tables and examples of a run to one HTML file that needs no server and no network (docs/exporting.md).",
    )
    add_run(parser)
    parser.add_argument("--out", "--output", type=Path, metavar="FILE", help="output file; default: report-DATA-RUN.html in this folder")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_models(parser)
    add_json(parser)


def report_command(parsed: argparse.Namespace) -> int:
    from engine.reporting import write_report  # takes a moment, and no other command needs it

    run = open_run(parsed.run, parsed.models)
    path = parsed.out or Path(f"report-{run.id.replace('/', '-')}.html")
    write_report(run, path, force=parsed.force)
    if parsed.json:
        print_json({"run": run.id, "file": str(path)})
    else:
        print(printable(f"wrote {path}"))
    return 0


def export_command(parsed: argparse.Namespace) -> int:
    fitting = [] if parsed.output is None else formats_by_ending(parsed.output)
    fmt = get_format(parsed.format) if parsed.format else fitting[0] if fitting else get_format("csv")
    check_export(parsed, fmt)
    run = open_run(parsed.run, parsed.models)
    if parsed.repair and not any(hierarchies(run.view).values()):
        refuse(["--repair"], "neither graph of this run has a class hierarchy")
    path = parsed.output or Path(fmt.file_name(run.id))
    table = write_alignment(
        run,
        path,
        format=fmt.name,
        min_probability=parsed.min_probability,
        decoder=parsed.decoder,
        side=parsed.side,
        seeds=not parsed.without_seeds,
        known_links=not parsed.predictions_only,
        part="reviewed" if parsed.reviewed else "all",
        predicate=parsed.predicate,
        repair=parsed.repair,
        canonical=parsed.canonical or "source",
        least_correspondence=0.5 if parsed.least_correspondence is None else parsed.least_correspondence,
        conflicts=parsed.conflicts,
        force=parsed.force,
    )
    sample = run.reviewed_sample() if run.decisions() else None  # ordering all matches takes time and is not needed then
    show_result(table, fmt, path, sample if sample is not None and sample.drawn else None, as_json=parsed.json)
    return 0


def show_result(table: ExportTable, fmt: Format, path: Path, sample: SampleEstimate | None, *, as_json: bool) -> None:
    """What was written, and how right it should be; ``sample``: what reviewers found in the run's random sample."""
    expected = table.expectation()
    if not as_json:
        print(printable(f"{path}: {expected.sentence()}"))
        if sample is not None:
            print(f"reviewed sample of the best matches: {sample.sentence()}")
        return
    measured, conflicts = expected.measured, expected.conflicts
    known = {} if measured is None else {"judged": measured.judged, "right": measured.right, "interval": list(measured.interval)}
    at_odds = {} if conflicts is None else {"conflicts": asdict(conflicts)}
    counts = {"pairs": expected.pairs, "seeds": expected.seeds, "links": expected.links, "accepted": expected.accepted}
    drawn = None if sample is None else sample.to_dict()
    where = {"run": table.origin.run, "file": str(path), "format": fmt.name, "decoder": table.origin.decoder}
    print_json(
        {
            **where,
            **counts,
            "min_probability": expected.least,
            "expected_precision": expected.precision,
            "estimated": expected.estimated,
            "without_probability": expected.without_probability,
            **known,
            **at_odds,
            "reviewed_sample": drawn,
        }
    )
