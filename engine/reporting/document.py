"""The report as one document: what it begins with, its sections, and its style sheet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from engine.errors import RunError
from engine.evaluation.metrics import stored_interval
from engine.reporting.markup import Html, element, label, shown, together
from engine.reporting.sections import (
    DIRECTIONS,
    ReportedRun,
    accuracy_section,
    data_section,
    degree_section,
    example_section,
    probability_section,
    proxy_section,
    relation_section,
    settings_section,
    with_interval,
)
from engine.runs.manifest import parent_of
from engine.util.files import new_file
from engine.util.machine import is_of_machine

__all__ = ["ReportedRun", "report_html", "write_report"]

SECTIONS: Final[tuple[tuple[str, str, Callable[[ReportedRun], Iterator[object]]], ...]] = (
    ("data", "Data set", data_section),
    ("accuracy", "Accuracy", accuracy_section),
    ("degree", "Accuracy by degree", degree_section),
    ("probabilities", "Probabilities", probability_section),
    ("examples", "Examples", example_section),
    ("relations", "Relation importance", relation_section),
    ("proxies", "Proxies", proxy_section),
    ("settings", "Settings", settings_section),
)
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Nothing is fetched and no script runs, whatever is in the page."""
STYLE: Final = """
:root{color-scheme:light dark;--ground:#fff;--text:#1b1f24;--faint:#57606a;--line:#d0d7de;--panel:#f6f8fa;--one:#0b62c4;--two:#a84300}
@media (prefers-color-scheme:dark){:root{--ground:#12161c;--text:#e6edf3;--faint:#9aa7b4;--line:#39424d;--panel:#1b212a;--one:#6cb2ff;--two:#ffa257}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main,header,footer{max-width:54rem;margin:0 auto;padding:0 1rem}
header{padding-top:1.5rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .3rem;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.2rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.4rem 0 .3rem}
h4{font-size:1rem;margin:0 0 .2rem;overflow-wrap:anywhere}
p{margin:.4rem 0 .8rem;overflow-wrap:anywhere}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:0;margin:.8rem 0;list-style:none}
a{color:var(--one)}
.wide{overflow-x:auto;margin:.5rem 0 1rem}
.wide:focus-visible,summary:focus-visible,a:focus-visible{outline:2px solid var(--one);outline-offset:2px}
table{border-collapse:collapse;font-size:.92rem;min-width:min(100%,20rem)}
caption{text-align:left;color:var(--faint);padding-bottom:.3rem}
th,td{padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
tbody th{font-weight:500}
.number{text-align:right}
figure{margin:.6rem 0 1.2rem}
figcaption{color:var(--faint);font-size:.92rem;margin:.3rem 0}
svg{display:block;width:100%;max-width:35rem;height:auto}
svg text{font:11px system-ui,sans-serif;fill:var(--text)}
svg .tick{fill:var(--faint);font-size:10px}
svg .grid{stroke:var(--line);stroke-width:.7}
svg .axis{stroke:var(--faint);stroke-width:1}
svg .diagonal{stroke:var(--faint);stroke-width:1;stroke-dasharray:5 4}
svg .series1{fill:var(--one)}
svg .series2{fill:var(--two)}
svg .whisker1{stroke:var(--one);stroke-width:1.6}
svg .whisker2{stroke:var(--two);stroke-width:1.6;stroke-dasharray:4 2}
svg .bar{fill:var(--one)}
summary{cursor:pointer;color:var(--one)}
article{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.8rem 1rem;margin:.7rem 0}
article p{margin:.2rem 0}
.ids,footer,.facts{color:var(--faint);font-size:.9rem}
dl{display:grid;grid-template-columns:auto 1fr;gap:.15rem .8rem;margin:.5rem 0 0;font-size:.95rem}
dt{color:var(--faint)}
dd{margin:0;overflow-wrap:anywhere}
pre{background:var(--panel);padding:.7rem;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}
@media (max-width:30rem){svg text{font-size:12px}svg .tick{font-size:11px}dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}}
@media print{details:not([open])>*{display:block}nav{display:none}}
"""


def report_html(run: ReportedRun) -> str:
    """A run as one HTML page: data set, accuracy, probabilities, examples with their explanations, relations, proxies and settings.

    The page needs no network and no script; everything that the data says is escaped.

    Raises:
        RunError: the run has no stored alignment.
    """
    title = f"{run.manifest.get('dataset', '')}: {run.manifest.get('variant', '')} run {run.manifest.get('run_id', '')}"
    sections = [(anchor, name, _content(run, make)) for anchor, name, make in SECTIONS]
    sections = [section for section in sections if section[2]]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="referrer", content="no-referrer"),
        element("title", shown(title)),
        element("style", Html(STYLE)),
    )
    contents = element(
        "nav", element("ul", *(element("li", element("a", name, href=f"#{anchor}")) for anchor, name, _ in sections)), aria_label="Contents"
    )
    body = [
        element("section", element("h2", name, id=f"title-{anchor}"), content, id=anchor, aria_labelledby=f"title-{anchor}")
        for anchor, name, content in sections
    ]
    page = element("body", element("header", *_opening(run), contents), element("main", *body), element("footer", *_source(run)))
    return "<!DOCTYPE html>\n" + element("html", head, page, lang="en") + "\n"


def write_report(run: ReportedRun, path: Path, *, force: bool = False) -> None:
    """Write the report.

    Raises:
        ExportError: the file is there already, or cannot be written.
        RunError: as :func:`report_html`.
    """
    content = report_html(run).encode("utf-8", "replace")
    with new_file(path, force=force) as file:
        file.write(content)


def _content(run: ReportedRun, make: Callable[[ReportedRun], Iterator[object]]) -> Html:
    """A section's content; where something of the run cannot be read, the reason ends it."""
    parts: list[object] = []
    try:
        parts.extend(make(run))
    except RunError as error:
        if is_of_machine(error):  # the same report is whole once there is room
            raise
        parts.append(element("p", f"The rest of this section is missing: {error}"))
    return together(parts)


def _opening(run: ReportedRun) -> Iterator[Html]:
    manifest = run.manifest
    yield element("h1", label(manifest.get("dataset", ""), 80), f": {manifest.get('variant', '')} run")
    key, direction = DIRECTIONS[0]
    figures = run.metrics.get(key, {})
    found = stored_interval(figures, "hits@1", int(manifest.get("data", {}).get("links", {}).get("test", 0)))
    if found is not None:
        yield element("p", element("strong", f"Hits@1 {with_interval(float(figures['hits@1']), *found)}"), f", {direction}.")
    created = str(manifest.get("created", ""))[:16].replace("T", " ")
    parent = f", update of {parent_of(manifest)}" if parent_of(manifest) else ""
    yield element("p", shown(f"Run {manifest.get('run_id', '')}, random seed {manifest.get('seed', '')}, {created} UTC{parent}."), class_="facts")


def _source(run: ReportedRun) -> Iterator[Html]:
    """What to cite: run, data and version."""
    manifest = run.manifest
    version = dict(manifest.get("versions", {})).get("engine", "unknown")
    words = f"Dual-AMN Explorer {version}. Run {run.id}. Data fingerprint {manifest.get('data', {}).get('fingerprint', 'unknown')}."
    yield element("p", shown(words, 400))
