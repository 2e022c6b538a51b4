"""The export page: the choices are in the address, its statements match the file, odd runs and addresses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.state import AS_TABLE
from engine.explore.alignment import PairFilter
from engine.exporting import (
    CANONICAL,
    COLUMNS,
    DECODER_NAMES,
    FORMATS,
    ExportSelection,
    FoldOptions,
    default_decoder,
    export_bytes,
    get_format,
    pairs_to_export,
    with_fold,
)
from engine.reviews import Choice, ReviewStore
from engine.runs import RunStore
from engine.runs.view import RunView
from engine.util.paths import reviews_file
from tests.app.conftest import OpenPage, assert_no_crash, links, tables, with_open, words
from tests.explore.test_review_queue import queue_of
from tests.run_fixture import HOSTILE_LABELS, MemoryRun, sample_run, write_run

Files = dict[str, Callable[[], bytes]]


def command_of(app: AppTest) -> str:
    """The command that the page shows once it is asked to."""
    return str(with_open(app, AS_TABLE, "command").code[-1].value)


def knowing() -> MemoryRun:
    """The sample run with probabilities."""
    run = sample_run()
    best = run.tables["matches"].query("rank == 1 and entity >= 12")[["graph", "entity", "match"]]
    probability = np.random.default_rng(0).permutation(np.linspace(0.02, 0.98, len(best)))
    run.tables = {**run.tables, "probabilities": best.assign(probability=probability)}
    return run


def view() -> RunView:
    run = knowing()
    run.manifest = {**run.manifest, "files": {"probabilities.parquet": {}}}
    return RunView(run)


def metrics(app: Any) -> dict[str, str]:
    return {one.label: one.value for one in app.metric}


def button(app: Any) -> Any:
    (found,) = [one for one in app.get("download_button") if one.proto.label.startswith("Download ") and " as " in one.proto.label]
    return found.proto


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    """What makes the files of the page's downloads, by their names, of the pages that are opened after this."""
    found: Files = {}
    monkeypatch.setattr(st, "download_button", lambda label, make, name, *_, **__: found.update({name: make}))
    return found


@pytest.mark.parametrize("fmt", FORMATS)
def test_every_format_shows_its_first_rows_and_offers_the_file(models: Path, open_page: OpenPage, fmt: str) -> None:
    app = open_page("export", run=write_run(knowing(), models), format=fmt)
    assert_no_crash(app)
    assert not app.error
    assert button(app).label == f"Download 64 pairs as {FORMATS[fmt].title}"
    assert "The first 5 of 64 pairs." in words(app)
    if tables(app):
        assert tables(app)[0]["source"].tolist() == [f"http://one.example/resource/Entity_{number}" for number in range(5)]
    else:
        assert "Entity_4" in app.code[0].value
        assert "Entity_5" not in app.code[0].value


def test_the_preview_has_the_labels_first_and_the_download_stands_out(models: Path, open_page: OpenPage) -> None:
    app = open_page("export", run=write_run(knowing(), models))
    assert tables(app)[0].columns[:3].tolist() == ["source_label", "target_label", "probability"]
    assert set(tables(app)[0].columns) == set(COLUMNS)
    assert button(app).type == "primary"


def test_what_the_address_asks_for_is_what_is_counted(models: Path, open_page: OpenPage) -> None:
    run = write_run(knowing(), models)
    app = open_page(
        "export", run=run, least="0.6", seeds="no", links="no", side="target", known="right", decoder="mutual", format="sssom", predicate="owl:sameAs"
    )
    assert_no_crash(app)
    selection = ExportSelection("all", "mutual", "target", 0.6, False, False, PairFilter(known=frozenset({"right"})))
    table = pairs_to_export(view(), selection)
    expected = table.expectation()
    assert metrics(app)["Pairs"] == f"{len(table)}" != "0"
    assert metrics(app)["Expected precision"] == f"{expected.precision:.1%}"
    assert "owl:sameAs" in app.code[0].value
    assert app.query_params["least"] == "0.6"


def test_widgets_write_the_address_and_the_command_says_the_same(models: Path, open_page: OpenPage) -> None:
    app = open_page("export", run=write_run(knowing(), models))
    app.slider[0].set_value(0.5).run()
    assert app.query_params["least"] == "0.5"
    app.toggle[0].set_value(False).run()
    assert app.query_params["seeds"] == "no"
    decoder = next(one for one in app.selectbox if one.label == "Decoder")
    decoder.set_value("stable").run()
    assert_no_crash(app)
    assert app.query_params["decoder"] == "stable"
    command = "python -m engine export towns/basic-s0-0123abcd --format csv --decoder stable --min-probability 0.5 --without-seeds"
    assert command_of(app) == command
    app.slider[0].set_value(0.0).run()
    app.toggle[0].set_value(True).run()
    assert not {"least", "seeds"} & set(app.query_params)


def test_the_file_is_made_when_it_is_asked_for(models: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr("engine.exporting.export_bytes", lambda *arguments: made.append(arguments))
    app = open_page("export", run=write_run(knowing(), models))
    assert_no_crash(app)
    assert button(app).label
    assert not made


def test_the_pairs_page_leads_here_with_its_filters(models: Path, open_page: OpenPage) -> None:
    app = open_page("pairs", run=write_run(knowing(), models), side="target", known=["right", "wrong"], degree_to="3", order="label", page="2")
    (link,) = [one for one in links(app) if one.startswith("export?")]
    assert "side=target" in link
    assert "known=right&known=wrong" in link
    assert "degree_to=3" in link
    assert "order" not in link
    back = [one for one in links(open_page("export", run="towns/basic-s0-0123abcd", degree_to="3")) if one.startswith("pairs?")]
    assert "degree_to=3" in back[0]


def test_filters_are_shown_as_chips_and_can_be_removed(models: Path, open_page: OpenPage) -> None:
    app = open_page("export", run=write_run(knowing(), models), search="no such thing")
    assert_no_crash(app)
    assert "No pairs to export" in words(app)
    app.button[0].click().run()
    assert "search" not in app.query_params
    assert metrics(app)["Pairs"] == "64"


def test_reviewed_pairs(models: Path, open_page: OpenPage) -> None:
    run = write_run(knowing(), models)
    app = open_page("export", run=run, part="reviewed")
    assert_no_crash(app)
    assert "No accepted pair" in words(app)
    fingerprint = str(RunStore(models).find(run).manifest["data"]["fingerprint"])
    store = ReviewStore(reviews_file(models))
    for number, verdict in ((30, "accept"), (31, "reject"), (32, "skip")):
        store.decide(
            fingerprint, Choice(f"http://one.example/resource/Entity_{number}", "http://two.example/q/Q1", verdict), "Ana", f"click-{number}"
        )  # type: ignore[arg-type]
    store.close()
    app = open_page("export", run=run, part="reviewed")
    assert_no_crash(app)
    assert metrics(app)["Pairs"] == "1"
    assert tables(app)[0]["reviewers"].tolist() == ["Ana"]


def test_what_a_reviewed_sample_says_is_shown_beside_the_export(models: Path, open_page: OpenPage) -> None:
    run = write_run(knowing(), models)
    assert "drawn at random" not in words(open_page("export", run=run))
    queue = queue_of(RunStore(models).find(run))
    store = ReviewStore(reviews_file(models))
    for row, verdict in zip(queue.order("sample")[:2].tolist(), ("accept", "reject"), strict=True):
        store.decide(queue.fingerprint, queue.choice(row, verdict), "Ana", f"click-{row}")
    store.close()
    app = open_page("export", run=run)
    assert_no_crash(app)
    assert "Of the first 2 pairs of the random sample, 1 was accepted and 1 rejected." in words(app).replace("\\", "")
    assert any("kind=sample" in link for link in links(app))


def test_a_run_without_probabilities_has_no_slider_and_says_why(run: str, open_page: OpenPage) -> None:
    app = open_page("export", run=run)
    assert_no_crash(app)
    assert not app.slider
    assert "no probabilities" in words(app)
    app = open_page("export", run=run, least="0.5")
    assert "has no calibrated probabilities" in app.error[0].value.replace("\\", "")


@pytest.mark.parametrize("fmt", [name for name, fmt in FORMATS.items() if fmt.stem == "graph"])
def test_whose_identifier_a_folded_entity_gets(models: Path, open_page: OpenPage, fmt: str) -> None:
    app = open_page("export", run=write_run(knowing(), models), format=fmt)
    assert "--canonical" not in command_of(app)
    (chosen,) = [one for one in app.get("button_group") if one.label == "Canonical identifiers"]
    chosen.set_value("target").run()
    assert_no_crash(app)
    assert app.query_params["canonical"] in ("target", ["target"])
    assert command_of(app).endswith("--canonical target")


def test_the_merged_file_has_the_identifiers_that_were_chosen(models: Path, open_page: OpenPage, files: Files) -> None:
    run = write_run(knowing(), models)
    written = {}
    for rule in CANONICAL:
        assert_no_crash(open_page("export", run=run, format="merged", canonical=rule))
        (make,) = [make for name, make in files.items() if name.startswith("graph-")]
        written[rule] = make()
        files.clear()
    asked = ExportSelection(decoder=default_decoder(view()))
    table = pairs_to_export(RunView(RunStore(models).find(run)), asked)
    for rule, content in written.items():
        assert content == export_bytes(table, with_fold(get_format("merged"), FoldOptions(canonical=rule)))
    assert len(set(written.values())) == len(CANONICAL)


def test_other_formats_have_no_canonical_identifiers(models: Path, open_page: OpenPage) -> None:
    app = open_page("export", run=write_run(knowing(), models), format="csv", canonical="minted")
    assert_no_crash(app)
    assert not [one for one in app.get("button_group") if one.label == "Canonical identifiers"]
    assert "--canonical" not in command_of(app)


def test_the_report_is_made_when_it_is_asked_for(models: Path, open_page: OpenPage, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(knowing(), models)
    app = open_page("export", run=run)
    assert_no_crash(app)
    assert files["report-towns-basic-s0-0123abcd.html"]().startswith(b"<!DOCTYPE html>")
    monkeypatch.setattr("engine.OpenRun.report", lambda run: 1 / 0)
    assert_no_crash(open_page("export", run=run))
    with pytest.raises(ZeroDivisionError):
        files["report-towns-basic-s0-0123abcd.html"]()


def test_the_report_is_offered_where_no_pair_passes(models: Path, open_page: OpenPage) -> None:
    app = open_page("export", run=write_run(knowing(), models), search="no such thing")
    assert [one.proto.label for one in app.get("download_button")] == ["Download report"]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("format", "<b>x</b>"),
        ("decoder", "../x"),
        ("part", "some"),
        ("predicate", "owl:differentFrom"),
        ("canonical", "<b>x</b>"),
        ("least", "nan"),
        ("least", "7"),
        ("seeds", "maybe"),
    ],
)
def test_addresses_that_make_no_sense(models: Path, open_page: OpenPage, parameter: str, value: str) -> None:
    app = open_page("export", run=write_run(knowing(), models), **{parameter: value})
    assert_no_crash(app)
    assert app.error
    assert "<b>" not in words(app)


def test_hostile_labels_stay_text(models: Path, open_page: OpenPage) -> None:
    run = write_run(knowing(), models)
    app = open_page("export", run=run, search=HOSTILE_LABELS[0])
    assert_no_crash(app)
    assert tables(app)[0]["source_label"].tolist()[0] == HOSTILE_LABELS[0]
    assert HOSTILE_LABELS[0] not in "\n".join(str(one.value) for one in app.markdown)


@pytest.mark.parametrize("decoder", DECODER_NAMES)
def test_every_decoder_has_words(decoder: str, models: Path, open_page: OpenPage) -> None:
    app = open_page("export", run=write_run(knowing(), models), decoder=decoder)
    assert_no_crash(app)
    assert not app.error
    assert len(export_bytes(pairs_to_export(view(), ExportSelection(decoder=decoder)), get_format("openea")).splitlines()) == int(
        metrics(app)["Pairs"]
    )


def test_known_links_win_unless_they_are_not_to(models: Path, open_page: OpenPage) -> None:
    run = write_run(knowing(), models)
    app = open_page("export", run=run)
    assert "No conflicts." in words(app).replace("\\", "")
    assert "is not comparable" in words(app)
    (toggle,) = [one for one in app.toggle if one.label == "Prefer known links"]
    toggle.set_value(False).run()
    assert app.query_params["links"] in ("no", ["no"])
    assert command_of(app).endswith("--predictions-only")


def test_filters_for_contested_pairs_export_them(models: Path, open_page: OpenPage) -> None:
    contested = knowing()
    matches = contested.tables["matches"].copy()
    rows = matches.eval("graph == 'source' and rank == 1 and entity in [50, 51]")
    matches.loc[rows, "match"] = contested.tables["links"]["target"].iloc[0]
    contested.tables = {**contested.tables, "matches": matches}
    run = write_run(contested, models)
    app = open_page("export", run=run, known="wrong")
    assert_no_crash(app)
    asked = ExportSelection(decoder="csls", known_links=False, wanted=PairFilter(known=frozenset({"wrong"})))
    expected = pairs_to_export(RunView(RunStore(models).find(run)), asked)
    assert len(expected)
    assert metrics(app)["Pairs"] == f"{len(expected)}"
    assert "1 pair contradicts" in words(app) or f"{len(expected)} pairs contradict" in words(app)
    app = open_page("export", run=run, known="wrong", links="yes")
    assert "has no pairs in conflict" in words(app)
