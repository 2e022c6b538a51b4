"""An inspection as plain text: 100 columns, no colours, and nothing in it that a hostile label could use to rearrange a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.data.inspection import GraphSummary, Inspection
from engine.data.knowledge_graph import FileCount, Finding
from engine.util.text import count, escape_controls, shorten

WIDTH = 100
COLUMN = 24
MARKS = {"error": "ERROR", "warning": "WARN", "info": "note"}


def render_inspection(inspection: Inspection) -> str:
    """The text that ``inspect`` prints, without a final newline."""
    return "\n".join(
        [
            *_head(inspection),
            "",
            *_table(inspection),
            "",
            *_links(inspection),
            "",
            *render_files(inspection.files),
            *render_findings(inspection.findings),
        ]
    )


def _head(inspection: Inspection) -> Iterator[str]:
    yield f"{inspection.name} (format {inspection.format})"
    yield from _wrapped("  split        ", escape_controls(inspection.split))
    yield f"  fingerprint  {inspection.fingerprint[:16]}"


def _table(inspection: Inspection) -> Iterator[str]:
    source, target = inspection.source, inspection.target
    yield _row("", shorten(source.name, COLUMN - 1), shorten(target.name, COLUMN - 1))
    for title, field in (
        ("entities", "entities"),
        ("  with a name", "named"),
        ("  without a triple", "isolated"),
        ("  without a link", "dangling"),
        ("relations", "relations"),
        ("relation triples", "triples"),
        ("  self-loops", "self_loops"),
        ("attribute triples", "attributes"),
    ):
        yield _row(title, f"{getattr(source, field):,}", f"{getattr(target, field):,}")
    for name in source.degrees:
        yield _row(f"degree {name}", _degree(source, name), _degree(target, name))


def _degree(graph: GraphSummary, name: str) -> str:
    return f"{graph.degrees[name]:,.2f}" if name == "mean" else f"{graph.degrees[name]:,}"


def _row(title: str, left: str, right: str) -> str:
    return f"  {title:<20}{left:>{COLUMN}}{right:>{COLUMN}}".rstrip()


def _links(inspection: Inspection) -> Iterator[str]:
    counts = ", ".join(f"{count:,} {part}" for part, count in inspection.links.items() if count or part != "unsure")
    yield from _wrapped("  links  ", counts)


def render_files(files: Sequence[FileCount]) -> Iterator[str]:
    """What became of the lines of each file; ends in an empty line where there is any."""
    if not files:
        return
    yield f"  {'file':<34}{'lines':>12}{'rows':>12}{'used':>12}{'left out':>12}"
    for file in files:
        numbers = file.lines, file.rows, file.used, file.rows - file.used
        yield f"  {shorten(Path(file.file).name, 22):<23}{file.what:<11}" + "".join(f"{number:>12,}" for number in numbers)
        for reason, rows in file.left_out:
            yield f"      {rows:,} {reason}"
    yield ""


def render_findings(findings: Sequence[Finding]) -> Iterator[str]:
    """Lines on what is suspicious, with what to do about each."""
    if not findings:
        yield "Nothing suspicious was found."
        return
    yield count(len(findings), "finding")
    for finding in findings:
        yield from _wrapped(f"  {MARKS[finding.severity]:<6}", f"{escape_controls(finding.message)} [{finding.code}]")
        for example in finding.examples:
            yield f"          e.g. {shorten(example, WIDTH - 15)}"
        if finding.advice:
            yield from _wrapped("        → ", escape_controls(finding.advice))


def _wrapped(start: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=" " * len(start)) or [start.rstrip()]
