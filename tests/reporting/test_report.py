"""A run's report: one page that is complete in itself, says what the run stores, and holds hostile texts as text only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
from engine.cli.main import main
from engine.explore.alignment import alignments
from engine.reporting.drawing import Mark, bar_figure, interval_figure, reliability_figure
from engine.reporting.markup import Html, data_table, element, shown
from engine.reporting.sections import EXAMPLES, chosen_examples
from engine.runs.verdicts import KNOWN
from engine.runs.view import UNCHECKED, RunView
from tests.explanation.runs import drawn_run
from tests.explore.test_review_queue import calibrated, contested_run
from tests.run_fixture import HOSTILE_LABELS, MemoryRun, analysed, sample_run, write_run

TAGS = frozenset(
    {
        *("html", "head", "meta", "title", "style", "body", "header", "nav", "main", "section", "footer", "article"),
        *("h1", "h2", "h3", "h4", "p", "strong", "div", "ul", "li", "a", "dl", "dt", "dd", "pre", "code", "bdi", "details", "summary"),
        *("table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption"),
        *("svg", "desc", "line", "text", "circle", "path", "rect"),
    }
)
ATTRIBUTES = frozenset(
    {
        *("lang", "charset", "name", "content", "http-equiv", "aria-label", "aria-labelledby", "href", "id", "class", "tabindex", "role", "scope"),
        *("viewbox", "xmlns", "x", "x1", "y1", "x2", "y2", "y", "cx", "cy", "r", "d", "width", "height", "text-anchor"),
    }
)


class Page(HTMLParser):
    """A page as a browser reads it: elements, attributes and texts; complains where elements are not closed in order."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(content)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.found)


@pytest.fixture(scope="module")
def run() -> MemoryRun:
    """A run with every table and probabilities, some matches of which are not correct."""
    return calibrated(analysed(contested_run()))


def page_of(run: MemoryRun, models: Path, **manifest: Any) -> Page:
    return Page(engine.open_run(write_run(run, models, **manifest), models).report())


def test_the_page_is_complete_in_itself_and_does_nothing(run: MemoryRun, tmp_path: Path) -> None:
    page = page_of(run, tmp_path)
    assert {tag for tag, _ in page.found} <= TAGS
    assert {name for _, attributes in page.found for name in attributes} <= ATTRIBUTES
    links = [attributes["href"] for _, attributes in page.found if "href" in attributes]
    anchors = {attributes["id"] for _, attributes in page.found if "id" in attributes}
    assert links
    assert {link.removeprefix("#") for link in links} <= anchors
    policy = next(attributes["content"] for tag, attributes in page.found if attributes.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "url(" not in page.text
    assert "@import" not in page.text
    assert "prefers-color-scheme:dark" in page.text


def test_hostile_texts_stay_texts(run: MemoryRun, tmp_path: Path) -> None:
    hostile = '</title><script>alert(2)</script><img src=x onerror="alert(3)">\u202e\x00'
    data = {**run.manifest["data"], "path": hostile, "findings": [{"code": "x", "message": hostile}], "source": {"name": hostile, "entities": 3}}
    entities, relations = run.tables["entities"].copy(), run.tables["relations"].copy()
    entities["label"] = [HOSTILE_LABELS[place % 2] if place % 3 else hostile for place in range(len(entities))]
    relations["name"] = [f"http://x.org/{hostile}{place}" for place in range(len(relations))]
    changed = replace(run, tables={**run.tables, "entities": entities, "relations": relations})
    page = page_of(changed, tmp_path, data=data, protocol=hostile, versions={"engine": hostile})
    assert {tag for tag, _ in page.found} <= TAGS
    assert {name for _, attributes in page.found for name in attributes} <= ATTRIBUTES
    assert "<script>alert(1)</script>" in page.text, "labels are shown as they are"
    assert not {"\u202e", "\x00"} & set(page.text)


def test_it_says_what_the_run_stores(run: MemoryRun, tmp_path: Path) -> None:
    page = page_of(run, tmp_path)
    assert run.metrics is not None
    figures = run.metrics["target_to_source"]
    assert f"Hits@1 {100 * figures['hits@1']:.1f}% (95% interval" in page.text
    for words in ("GeoOne", "12 seed links, 4 validation links, 30 test links, 4 probable links", "Relation importance", "Nearest-proxy agreement"):
        assert words in page.text
    assert "python -m engine train towns --variant basic --seed 0" in page.text


def test_it_counts_the_findings_that_inspect_counts(run: MemoryRun, tmp_path: Path) -> None:
    """Most are found in the graphs and links, and are not among those that were stored when the data were read."""
    stored = [{"code": "x", "message": "One line was passed over."}]
    name = write_run(run, tmp_path, data={**run.manifest["data"], "findings": stored})
    found = engine.open_run(name, tmp_path)
    findings = found.inspection.findings
    text = Page(found.report()).text
    assert len(findings) > len(stored)
    assert f"{len(findings)} findings of the data check" in text
    assert all(finding.message in text for finding in findings)


def test_each_figure_has_a_name_and_the_same_content_as_a_table(run: MemoryRun, tmp_path: Path) -> None:
    page = page_of(run, tmp_path)
    drawings = [attributes for tag, attributes in page.found if tag == "svg"]
    assert len(drawings) == page.count("figure") >= 5
    assert all(attributes["role"] == "img" and len(attributes["aria-label"]) > 20 for attributes in drawings)
    order = [tag for tag, _ in page.found if tag in ("svg", "figcaption", "table")]
    for place, tag in enumerate(order):
        assert tag != "svg" or order[place + 1 : place + 3] == ["figcaption", "table"]


def test_each_kind_of_example_is_there(run: MemoryRun, tmp_path: Path) -> None:
    page = page_of(run, tmp_path)
    for title in ("Pairs with the highest estimated probability", "Uncertain pairs", "Incorrect pairs"):
        assert title in page.text
    assert 5 < page.count("article") <= 3 * EXAMPLES


def test_examples_are_explained_by_texts_alone(tmp_path: Path) -> None:
    drawn = drawn_run(5)
    entities = drawn.tables["entities"].assign(label="<b>x</b> ' \" & " + drawn.tables["entities"]["uri"].astype(str))
    manifest = {**sample_run().manifest, **drawn.manifest, "run_id": "r", "dataset": "d"}
    run = MemoryRun(manifest, drawn.metrics, {**drawn.tables, "entities": entities}, drawn.tensors)
    page = page_of(run, tmp_path)
    assert page.count("dl") == page.count("article") > 5
    assert "each other's best match" in page.text
    assert "'<b>x</b> ' \" &" in page.text
    assert {tag for tag, _ in page.found} <= TAGS


def with_fit(run: MemoryRun, fit: Mapping[str, Any], suggested: Mapping[str, float] | None = None) -> MemoryRun:
    files = {**run.manifest.get("files", {}), "calibration.json": {}}
    stored = {"fit": dict(fit), "suggested": suggested}
    return replace(run, manifest={**run.manifest, "files": files}, documents={**run.documents, "calibration": stored})


def test_estimated_probabilities_are_named_so(run: MemoryRun, tmp_path: Path) -> None:
    suggested = {"probability": 0.47, "precision": 0.95, "recall": 0.988}
    estimated, fitted = (page_of(with_fit(run, {"calibrated": True, "estimated": one}, suggested), tmp_path / str(one)).text for one in (True, False))
    assert f"The probabilities are estimated. {UNCHECKED}" in estimated
    assert "0.47 (estimated precision 95.0%, estimated recall 98.8%)" in estimated
    assert "Certain pairs" not in estimated
    assert "% estimated probability, CSLS" in estimated
    assert "stimated" not in fitted
    assert "0.47 (expected precision 95.0%, expected recall 98.8%)" in fitted
    assert "Certain pairs" in fitted


def test_why_there_are_no_probabilities_is_said_once_and_no_pair_is_called_certain(tmp_path: Path) -> None:
    reason = "Probabilities of this run cannot be given."
    page = page_of(with_fit(analysed(sample_run()), {"calibrated": False, "reason": reason}), tmp_path).text
    assert reason in page
    assert "This run has no probabilities" not in page
    assert "Certain pairs" not in page
    assert "Pairs with the highest CSLS" in page


@pytest.mark.parametrize("probabilities", [True, False])
def test_examples_are_of_their_kind_and_none_twice(run: MemoryRun, probabilities: bool) -> None:
    alignment = alignments(RunView(run if probabilities else contested_run()))["source"]
    kinds = {title: positions.tolist() for title, _, positions in chosen_examples(alignment, unchecked=False)}
    best = "Certain pairs" if probabilities else "Pairs with the highest CSLS"
    everything = [position for positions in kinds.values() for position in positions]
    assert len(everything) == len(set(everything))
    known = [KNOWN[code] for code in alignment.known.tolist()]
    assert {known[position] for position in kinds["Incorrect pairs"]} == {"wrong"}
    assert "seed" not in {known[position] for position in everything}
    assert alignment.rows["mutual"].to_numpy()[kinds[best]].all()
    if probabilities:
        probability = alignment.rows["probability"].to_numpy()
        sure, doubt = probability[kinds[best]], np.abs(probability - 0.5)
        possible = [place for place, word in enumerate(known) if word not in ("seed", "wrong") and alignment.rows["mutual"].iloc[place]]
        assert sure.min() >= np.sort(np.nan_to_num(probability[possible]))[-len(sure)]
        assert np.nanmax(doubt[kinds["Uncertain pairs"]]) < 0.5


def bare(run: MemoryRun, *, metrics: Mapping[str, Any] | None = None) -> MemoryRun:
    """What an older engine stored: matches and embeddings alone."""
    return replace(run, metrics=metrics)


def test_a_run_of_an_older_version_has_fewer_sections(tmp_path: Path) -> None:
    page = page_of(bare(sample_run()), tmp_path)
    assert "There are no test links, so no accuracy is measured on links." in page.text
    assert "This run has no probabilities" in page.text
    assert "This score cannot be explained" in page.text
    assert "Relation importance" not in page.text
    assert {tag for tag, _ in page.found} <= TAGS


def test_the_command_writes_it_once(run: MemoryRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = write_run(run, tmp_path / "models")
    target = tmp_path / "report.html"
    arguments = ["report", name, "--models", str(tmp_path / "models"), "--out", str(target)]
    assert main(arguments) == 0
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert main(arguments) == 2
    assert "error: " in capsys.readouterr().err
    assert main([*arguments, "--force", "--json"]) == 0
    assert '"file"' in capsys.readouterr().out


# What pages are made of


@given(st.text())
def test_whatever_is_no_html_is_text(text: str) -> None:
    for made in (element("p", text, id=text), data_table([text], [[text]], caption=text), element("p", shown(text))):
        page = Page(made)
        assert {tag for tag, _ in page.found} <= {"p", "div", "table", "caption", "thead", "tbody", "tr", "th", "td"}


def test_html_is_not_escaped_again() -> None:
    assert element("p", "a & b", element("b", "<i>")) == "<p>a &amp; b<b>&lt;i&gt;</b></p>"
    assert isinstance(element("p"), Html)


@given(st.lists(st.tuples(st.text(max_size=30), st.floats(-3, 3), st.text(max_size=5)), min_size=1, max_size=5))
def test_bars_stay_inside_of_the_drawing(rows: list[tuple[str, float, str]]) -> None:
    for tag, attributes in Page(bar_figure("a", "b", rows, "c")).found:
        if tag == "rect":
            assert 0 <= float(attributes["x"]) <= float(attributes["x"]) + float(attributes["width"]) <= 381


def test_marks_are_where_their_shares_are() -> None:
    drawn = Page(interval_figure("a", "b", [("x", [Mark(0.5, 0.25, 1.0)]), ("y", [None, Mark(1.0, 1.0, 1.0)])], "c"))
    (circle,) = [attributes for tag, attributes in drawn.found if tag == "circle"]
    (whisker,) = [attributes for tag, attributes in drawn.found if attributes.get("class") == "whisker1"]
    low, high = float(whisker["x1"]), float(whisker["x2"])
    assert float(circle["cx"]) == pytest.approx(low + (high - low) / 3, abs=0.2)
    assert len([1 for tag, attributes in drawn.found if attributes.get("class") == "series2"]) == 1
    square = Page(reliability_figure("a", "b", [(0.25, Mark(0.75, 0.5, 1.0))]))
    (circle,) = [attributes for tag, attributes in square.found if tag == "circle"]
    (diagonal,) = [attributes for tag, attributes in square.found if attributes.get("class") == "diagonal"]
    across = (float(circle["cx"]) - float(diagonal["x1"])) / (float(diagonal["x2"]) - float(diagonal["x1"]))
    up = (float(circle["cy"]) - float(diagonal["y1"])) / (float(diagonal["y2"]) - float(diagonal["y1"]))
    assert (across, up) == pytest.approx((0.25, 0.75), abs=0.01)
