"""The import page without a browser: its three steps, what is refused, and that nothing of it trusts its address."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.data import load_task
from engine.data.library import RECORD
from engine.importing import Role, Staged, Upload, correct, find_staged, stage, stage_folder
from engine.util import paths
from tests.app.conftest import OpenPage, assert_no_crash, words
from tests.data.writers import sqlite_file
from tests.importing.conftest import GRAPH_1, GRAPH_2, LINKS, NAMES, SWAPPED
from tests.importing.test_ontologies import OBO, OWL
from tests.run_fixture import HOSTILE_LABELS

TURNED = "Wohin,Woher,Art\n" + "".join(f"a:{other},a:{one},near\n" for one, other in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))


def staged(models: Path, *, graph_1: str = GRAPH_1, links: str | None = LINKS, name: str = "one.csv") -> Staged:
    """An import at its second step; ``models`` is there so that the data folder is the test's own."""
    contents: list[tuple[str, str | None, Role]] = [(name, graph_1, "graph 1"), ("two.csv", GRAPH_2, "graph 2"), ("links.csv", links, "links")]
    return stage([Upload(called, io.BytesIO(content.encode()), role) for called, content, role in contents if content is not None])


def element(kind: Any, label: str, number: int = 0) -> Any:
    return [one for one in kind if one.label == label][number]


def message(app: AppTest) -> str:
    return words(app).translate(str.maketrans("", "", "\\\u2068\u2069*"))


def test_the_first_step_asks_for_files_and_names_the_limit(models: Path, open_page: OpenPage) -> None:
    app = open_page("import")
    assert_no_crash(app)
    assert "Maximum 200 MB per file" in words(app)
    assert element(app.button, "Check files").disabled
    assert "To continue, choose the source graph and the target graph." in words(app)
    for label, content in (("Source graph", GRAPH_1), ("Target graph", GRAPH_2)):
        (box,) = [one for one in app.file_uploader if label in one.label and "attributes" not in one.label]
        box.set_value(("graph.csv", content.encode(), "text/csv")).run()
        assert ("To continue, choose the target graph." in words(app)) == (label == "Source graph")
    assert not element(app.button, "Check files").disabled


def test_a_full_storage_refuses_uploads_in_a_sentence(models: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_STORAGE", "0.0000001")
    app = open_page("import")
    for label, content in (("Source graph", GRAPH_1), ("Target graph", GRAPH_2)):
        (box,) = [one for one in app.file_uploader if label in one.label and "attributes" not in one.label]
        box.set_value(("graph.csv", content.encode(), "text/csv")).run()
    element(app.button, "Check files").click().run()
    assert_no_crash(app)
    assert "are left for uploads and data sets on this server" in words(app)
    assert not list(paths.data_folder().glob(".staging-*"))


@pytest.mark.parametrize("come", ["archive", "server"])
def test_what_is_missing_is_named_whatever_the_data_source(come: str, models: Path, open_page: OpenPage) -> None:
    app = open_page("import", come=come)
    assert element(app.button, "Check files").disabled
    assert "To continue, choose a" in words(app)


def test_the_steps_are_shown_with_the_present_one_in_bold(models: Path, open_page: OpenPage) -> None:
    token = staged(models).token
    for parameters, shown in (({}, "**1\\. Files** › "), ({"staging": token}, "✓ 1\\. Files] › **2\\. Check** › ")):
        (progress,) = open_page("import", **parameters).get("progress")
        assert shown in progress.proto.text


def test_folders_on_the_server_are_chosen_from_a_list(models: Path, open_page: OpenPage) -> None:
    app = open_page("import", come="server")
    folders = element(app.selectbox, "Folder or archive")
    assert folders.options == ["sample_data/europe", "sample_data/world"]
    folders.set_value("sample_data/europe").run()
    element(app.button, "Check files").click().run()
    assert_no_crash(app)
    assert "1,510 entities" in words(app)
    assert "Save data set" in [button.label for button in app.button]


def test_without_folders_on_the_server_it_says_how_to_get_some(models: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_IMPORT", str(models / "none"))
    assert "No folder to import from" in words(open_page("import", come="server"))


def test_the_second_step_shows_both_graphs_and_stores(models: Path, open_page: OpenPage) -> None:
    app = open_page("import", staging=staged(models).token)
    assert_no_crash(app)
    assert message(app).count("8 entities · 1 relation · 8 triples") == 2
    element(app.text_input, "Name of the data set").set_value("cities").run()
    element(app.button, "Save data set").click().run()
    assert_no_crash(app)
    assert app.query_params == {"stored": "cities"}
    assert "cities is saved" in message(app)
    assert load_task(paths.data_folder() / "cities").num_entities == 16
    assert [path.name for path in paths.data_folder().iterdir()] == ["cities"], "what was staged is gone"
    assert "cities · not trained yet · imported just now" in message(open_page("home"))


def test_a_name_that_cannot_be_is_refused_and_nothing_is_lost(models: Path, open_page: OpenPage) -> None:
    uploaded = staged(models)
    app = open_page("import", staging=uploaded.token)
    element(app.text_input, "Name of the data set").set_value("../x").run()
    element(app.button, "Save data set").click().run()
    assert_no_crash(app)
    assert "cannot be the name of a data set" in app.error[0].value
    assert find_staged(uploaded.token) == uploaded


def test_columns_are_corrected(models: Path, open_page: OpenPage) -> None:
    uploaded = staged(models, graph_1=TURNED)
    app = open_page("import", staging=uploaded.token)
    assert "9 triples" in message(app), "the header is taken for a triple"
    app.toggle[0].set_value(True).run()
    element(app.selectbox, "Head").set_value(1).run()
    element(app.selectbox, "Relation").set_value(2).run()
    assert_no_crash(app)
    assert dict(find_staged(uploaded.token).corrections.tables["graph 1"].columns) == {"head": 1, "relation": 2, "tail": 0}
    assert message(app).count("8 entities · 1 relation · 8 triples") == 2
    again = open_page("import", staging=uploaded.token)
    assert element(again.selectbox, "Head").value == 1, "a reload keeps what was corrected"


def test_what_cannot_be_read_is_said_and_can_be_fixed(models: Path, open_page: OpenPage) -> None:
    app = open_page("import", staging=staged(models, graph_1=GRAPH_1.replace("relation", "x1").replace("near", "x")).token)
    assert_no_crash(app)
    assert "no column is known to hold the relation" in message(app)
    element(app.selectbox, "Relation").set_value(1).run()
    assert_no_crash(app)
    assert not app.error


def test_links_the_wrong_way_round_are_swapped(models: Path, open_page: OpenPage) -> None:
    app = open_page("import", staging=staged(models, links=SWAPPED).token)
    assert "not used until the errors below" in words(app)
    assert "cannot be saved yet" in words(app)
    assert "--" not in message(app), "options are of the command line"
    element(app.button, "Swap the links' columns").click().run()
    assert_no_crash(app)
    assert "Save data set" in [button.label for button in app.button]


def test_seeds_from_names_are_taken_and_recorded(models: Path, open_page: OpenPage) -> None:
    uploaded = staged(models, links=None)
    app = open_page("import", staging=uploaded.token)
    assert "8 pairs of entities have a name that is unique in both graphs" in words(app)
    assert "Save data set" in [button.label for button in app.button], "training can start from names and values in common"
    element(app.button_group, "Use as seed links").set_value("exact").run()
    assert_no_crash(app)
    element(app.text_input, "Name of the data set").set_value("seeded").run()
    element(app.button, "Save data set").click().run()
    record = json.loads((paths.data_folder() / "seeded" / RECORD).read_text(encoding="utf-8"))
    assert len(record["seed from names"]) == 8


def test_links_can_be_added_in_the_second_step(models: Path, open_page: OpenPage) -> None:
    nameless = GRAPH_1
    for number, name in enumerate(NAMES):
        nameless = nameless.replace(f"a:{name}", f"a:{100 + number}")
    known = "source,target\n" + "".join(f"a:{100 + number},b:{name}\n" for number, name in enumerate(NAMES))
    uploaded = staged(models, graph_1=nameless, links=None)
    app = open_page("import", staging=uploaded.token)
    assert "Seed links from names" not in words(app)
    assert "cannot be saved yet" in words(app)
    assert element(app.button, "Use these links").disabled
    element(app.file_uploader, "Known links").set_value(("known.csv", known.encode(), "text/csv")).run()
    element(app.button, "Use these links").click().run()
    assert_no_crash(app)
    assert app.query_params["staging"] == uploaded.token
    assert "Save data set" in [button.label for button in app.button]
    assert not app.file_uploader, "there are links now"


@pytest.mark.parametrize("wrong", [LINKS.replace("a:", "c:"), "only one column\n", "\x00"])
def test_links_that_fit_nothing_are_replaced(wrong: str, models: Path, open_page: OpenPage) -> None:
    app = open_page("import", staging=staged(models, links=wrong).token)
    assert_no_crash(app)
    assert "Save data set" not in [button.label for button in app.button]
    element(app.file_uploader, "Replace the known links").set_value(("links.csv", LINKS.encode(), "text/csv")).run()
    element(app.button, "Use these links").click().run()
    assert_no_crash(app)
    assert "Save data set" in [button.label for button in app.button]


def test_files_of_a_folder_are_given_roles(models: Path, open_page: OpenPage, tmp_path: Path) -> None:
    for name, content in (("x.csv", GRAPH_1), ("y.csv", GRAPH_2), ("z.csv", GRAPH_1)):
        (tmp_path / "mine" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "mine" / name).write_text(content, encoding="utf-8")
    app = open_page("import", staging=stage_folder(tmp_path / "mine").token)
    assert "none of the files is recognised as the source graph" in message(app)
    element(app.selectbox, "Source graph").set_value("x.csv").run()
    element(app.selectbox, "Target graph").set_value("y.csv").run()
    assert_no_crash(app)
    assert "8 entities" in words(app)


def test_which_of_two_files_holds_the_links_is_chosen(models: Path, open_page: OpenPage, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    contents = {"kg1.csv": GRAPH_1, "kg2.csv": GRAPH_2, "links.csv": LINKS, "reference_alignment.csv": "\n".join(LINKS.splitlines()[:4])}
    for name, content in contents.items():
        (tmp_path / "mine" / name).write_text(content, encoding="utf-8")
    app = open_page("import", staging=stage_folder(tmp_path / "mine").token)
    assert "could each be the known links; say which one" in message(app)
    element(app.selectbox, "Known links").set_value("reference_alignment.csv").run()
    assert_no_crash(app)
    assert "3 seed" in words(app)


@pytest.mark.parametrize("token", ["../..", "0" * 32, "<b>x</b>", "x" * 5000])
def test_imports_that_are_not_there(token: str, models: Path, open_page: OpenPage) -> None:
    app = open_page("import", staging=token)
    assert_no_crash(app)
    assert "Start again with the files" in words(app)
    app = element(app.button, "Start again with other files").click().run()
    assert not app.error
    assert app.query_params == {}


@pytest.mark.parametrize("name", ["none", "../..", "<b>x</b>", ".staging-0"])
def test_data_sets_that_are_not_there(name: str, models: Path, open_page: OpenPage) -> None:
    app = open_page("import", stored=name)
    assert_no_crash(app)
    assert "There is no data set" in words(app)
    assert "<b>" not in words(app)


def test_hostile_names_and_cells_stay_text(models: Path, open_page: OpenPage) -> None:
    label = HOSTILE_LABELS[0]
    quoted = label.replace('"', '""')
    hostile = GRAPH_1 + f'"{quoted}",near,a:Rome\n'
    app = open_page("import", staging=staged(models, graph_1=hostile, name=f"{label}.csv").token)
    assert_no_crash(app)
    assert label not in words(app)


def in_tongues(*tongues: str, graph: str) -> str:
    rows = [f'<{graph}:{name}> <http://www.w3.org/2000/01/rdf-schema#label> "{name} {tongue}"@{tongue} .\n' for name in NAMES for tongue in tongues]
    return "".join(f"<{graph}:{one}> <x:near> <{graph}:{other}> .\n" for one, other in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True)) + "".join(rows)


def test_the_language_of_names_is_chosen_for_each_graph(models: Path, open_page: OpenPage) -> None:
    contents: list[tuple[str, str, Role]] = [
        ("one.nt", in_tongues("de", "fr", graph="a"), "graph 1"),
        ("two.nt", in_tongues("en", "fr", graph="b"), "graph 2"),
        ("links.csv", LINKS, "links"),
    ]
    found = stage([Upload(called, io.BytesIO(content.encode()), role) for called, content, role in contents])
    app = open_page("import", staging=found.token)
    assert_no_crash(app)
    source, target = (one for one in app.selectbox if "Preferred language of names" in one.label)
    assert source.options == ["no preference (now fr)", "de (8 entities)", "fr (8 entities)"]
    assert target.options == ["no preference (now fr)", "en (8 entities)", "fr (8 entities)"]
    source.set_value("de").run()
    assert_no_crash(app)
    assert find_staged(found.token).corrections.name_language_source == "de"
    source, target = (one for one in app.selectbox if "Preferred language of names" in one.label)
    assert (source.value, target.value) == ("de", "")
    element(app.button, "Save data set").click().run()
    assert_no_crash(app)
    record = json.loads(next(paths.data_folder().glob(f"*/{RECORD}")).read_text(encoding="utf-8"))
    assert record["settings"] == {"data.name_language_source": "de"}


def test_a_language_that_is_gone_can_be_reset(models: Path, open_page: OpenPage) -> None:
    found = staged(models)
    correct(found, dataclasses.replace(found.corrections, name_language_source="de"))
    app = open_page("import", staging=found.token)
    assert_no_crash(app)
    assert "does not have names in the language" in message(app)
    element(app.button, "Reset the name settings").click().run()
    assert_no_crash(app)
    assert find_staged(found.token).corrections.naming == {}
    assert "Save data set" in [button.label for button in app.button]


def test_what_of_an_ontology_is_aligned_is_chosen(models: Path, open_page: OpenPage) -> None:
    contents: list[tuple[str, str, Role]] = [("one.obo", OBO, "graph 1"), ("two.owl", OWL, "graph 2")]
    one = stage([Upload(called, io.BytesIO(content.encode()), role) for called, content, role in contents])
    app = open_page("import", staging=one.token)
    assert_no_crash(app)
    assert "2 classes, 2 individuals" in message(app)
    assert any("never fetched" in one.label for one in app.expander)
    element(app.selectbox, "Part of the ontology to align").set_value("individuals").run()
    assert_no_crash(app)
    assert find_staged(one.token).corrections.ontology == "individuals"
    assert "individuals are aligned" in message(app)


def test_a_wide_table_and_a_database(models: Path, open_page: OpenPage) -> None:
    """What a row is, and what of a database is the graph, can be corrected; a wrong query is an error with the way back."""
    wide = "key,name,near\n" + "".join(f"a:{one},{one},a:{other}\n" for one, other in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))
    base = sqlite_file([(f"b:{one}", "nah", f"b:{other}") for one, other in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True)])
    contents: list[tuple[str, bytes, Role]] = [
        ("one.csv", wide.encode(), "graph 1"),
        ("two.sqlite", base, "graph 2"),
        ("links.csv", LINKS.encode(), "links"),
    ]
    uploaded = stage([Upload(called, io.BytesIO(content), role) for called, content, role in contents])
    app = open_page("import", staging=uploaded.token)
    assert_no_crash(app)
    element(app.toggle, "Each row is an entity").set_value(True).run()
    assert_no_crash(app)
    assert "8 entities · 1 relation · 8 triples · 8 attribute triples" in message(app)
    assert find_staged(uploaded.token).corrections.tables["graph 1"].columns == {"identifier": 0}
    element(app.text_area, "Query").set_value("DROP TABLE facts").run()
    assert_no_crash(app)
    assert "does something else than read" in message(app)
    element(app.text_area, "Query").set_value("SELECT h, r, t FROM facts").run()
    assert "Save data set" in [button.label for button in app.button]
