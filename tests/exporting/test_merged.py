"""Both graphs as one: entities are folded, statements keep their origin, values that differ are listed, and the graphs can be separated again."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cli.main import main
from engine.data import load_task
from engine.data.labels import literal_of
from engine.errors import ConfigError, DataError, ExportError
from engine.exporting import ExportSelection, ExportTable, Fold, FoldOptions, get_format, pairs_to_export, split_merged, value_conflicts, with_fold
from engine.exporting.merged.files import graph_name
from engine.exporting.reviewed import DecidedPair
from engine.runs.view import RunView
from tests.run_fixture import MemoryRun, assemble, graph_tables, write_run

XSD = "http://www.w3.org/2001/XMLSchema#"
S, T = "http://s.org/", "http://t.org/"
Attribute = tuple[Literal["source", "target"], int, str, str]
VALUES: list[Attribute] = [
    ("source", 0, S + "born", f'"1912-06-23"^^<{XSD}date>'),
    ("target", 0, T + "birth", f'"1912"^^<{XSD}gYear>'),
    ("source", 1, S + "born", "1815-12-10"),
    ("target", 1, T + "birth", "1815-12-11"),
    ("source", 2, S + "born", "1906-12-09"),
    ("target", 2, T + "birth", "1906-12-09"),
    ("source", 0, "label", '"Alan"@en'),
    ("target", 0, "label", '"Аlan"@ru'),
    ("source", 1, S + "note", "a"),
    ("source", 1, S + "note", "b"),
    ("target", 1, S + "note", "=c()"),
    ("source", 2, "plain name", '"x" and "y"\n\tz'),
    ("target", 3, T + "birth", "N/A"),
]


def correspondences(rows: Sequence[tuple[str, str, str, bool, float]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["kind", "source", "target", "turned", "source_implies_target"])
    return frame.assign(target_implies_source=frame["source_implies_target"], support=10.0 - frame.index)


def people(
    uris: tuple[Sequence[str], Sequence[str]] = ((S + "a", S + "b", S + "c", "d e"), (T + "a", T + "b", T + "c", "d e", S + "a")),
    values: Sequence[Attribute] = VALUES,
) -> MemoryRun:
    """Four and five people; the first three are linked; 'd e' and the source's first identifier mean something else in the target graph."""
    own = graph_tables("source", uris[0], ["Alan", "Ada", "Grace", ""], [(0, 0, 1), (1, 1, 2), (2, 1, 3)], [S + "knows", S + "child"])
    other = graph_tables(
        "target", uris[1], ["Alan", "Ada", "Grace", "", ""], [(0, 0, 1), (2, 1, 1), (3, 1, 2), (4, 2, 0)], [T + "knows", T + "parent", S + "child"]
    )
    draw = np.random.default_rng(0)
    near = draw.standard_normal((5, 8)).astype(np.float32)
    run = assemble(own, other, [(0, 0, "train"), (1, 1, "test"), (2, 2, "test")], (near[:4], near), values)
    run.tables["correspondences"] = correspondences(
        [
            ("relation", S + "knows", T + "knows", False, 0.9),
            ("relation", S + "child", T + "parent", True, 0.8),
            ("attribute", S + "born", T + "birth", False, 0.9),
        ]
    )
    files = {f"{name}.parquet": {} for name in run.tables}
    return MemoryRun({**run.manifest, "run_id": "r", "dataset": "d", "files": files}, run.metrics, run.tables, run.tensors)


def exported(run: MemoryRun | None = None, reviewed: Sequence[DecidedPair] = (), **selection: Any) -> ExportTable:
    return pairs_to_export(RunView(run or people()), ExportSelection(**selection), reviewed)


def written(table: ExportTable, name: str, options: FoldOptions | None = None) -> bytes:
    file = io.BytesIO()
    with_fold(get_format(name), options or FoldOptions()).write(file, table, "owl:sameAs")
    return file.getvalue()


def rows_of(table: ExportTable, options: FoldOptions | None = None) -> pd.DataFrame:
    frame: pd.DataFrame = pq.read_table(io.BytesIO(written(table, "merged-parquet", options))).to_pandas()
    return frame.astype({name: str for name in frame.columns if not name.endswith("probability")})


def originals(run: MemoryRun) -> dict[str, list[tuple[str, ...]]]:
    """What separating a merged graph must give: both graphs' rows, sorted."""
    found = {}
    for side in ("source", "target"):
        tables = {name: table[table["graph"] == side] for name, table in run.tables.items() if "graph" in table}
        uris, names = tables["entities"]["uri"].tolist(), tables["relations"]["name"].tolist()
        triples, values = tables["triples"], tables["attributes"]
        found[f"triples_{side}"] = sorted((uris[h], names[r], uris[t]) for h, r, t in triples[["head", "relation", "tail"]].to_numpy())
        found[f"attributes_{side}"] = sorted((uris[e], a, v) for e, a, v in values[["entity", "attribute", "value"]].to_numpy())
    return found


def separated(folder: Path) -> dict[str, list[tuple[str, ...]]]:
    tables = {path.stem: pd.read_parquet(path) for path in folder.glob("*.parquet")}
    return {name: sorted(map(tuple, table.to_numpy().tolist())) for name, table in tables.items()}


def test_matched_entities_become_one_and_relations_that_correspond_as_well() -> None:
    rows = rows_of(exported(decoder="mutual", known_links=True))
    found = set(zip(rows["subject"], rows["predicate"], rows["object"], rows["graph"], strict=True))
    assert (S + "a", S + "knows", S + "b", "source") in found
    assert (S + "a", S + "knows", S + "b", "target") in found, "the target's own relation has the source's name"
    assert (S + "a", S + "born", f'"1912"^^<{XSD}gYear>', "target") in found
    assert not any(name.startswith((T + "a", T + "b", T + "c", T + "knows", T + "birth")) for name in rows["subject"] + rows["predicate"])


def test_a_relation_is_not_folded_where_its_graph_has_another_of_that_name() -> None:
    """The target has ``child`` itself: were ``parent`` written as ``child``, the two would be one."""
    rows = rows_of(exported())
    target = rows[(rows["graph"] == "target") & (rows["kind"] == "relation")]
    assert set(target["predicate"]) == {S + "knows", T + "parent", S + "child"}


def test_a_relation_that_runs_the_other_way_is_written_the_other_way() -> None:
    run = people()
    relations = run.tables["relations"]
    relations.loc[relations["name"] == S + "child", "name"] = [S + "child", T + "knows2"]
    rows = rows_of(exported(run))
    turned = rows[rows["original_predicate"] == T + "parent"].iloc[0]
    assert (turned["predicate"], turned["original_subject"], turned["original_object"]) == (S + "child", T + "c", T + "b")
    assert (turned["subject"], turned["object"]) == (S + "b", S + "c")


def test_identifiers_that_both_graphs_use_for_different_entities_stay_apart() -> None:
    fold = Fold.of(exported())
    for rule in ("source", "target", "minted"):
        fold = Fold.of(exported(), FoldOptions(canonical=rule))
        names = [name for side in ("source", "target") for name in fold.entities[side]]
        assert len(set(names)) == len(names) - len(fold)
        for one, two in zip(fold.source.tolist(), fold.target.tolist(), strict=True):
            assert fold.entities["source"][one] == fold.entities["target"][two]
    assert fold.entities["source"][0].startswith("urn:dual-amn:merged:")
    assert fold.entities["source"] == Fold.of(exported(), FoldOptions(canonical="minted")).entities["source"]


def test_equal_names_that_are_no_iris_are_one_name() -> None:
    run = people()
    run.tables["relations"]["name"] = ["near", "part of", "near", "part of", "child"]
    run.tables["attributes"] = run.tables["attributes"].replace({S + "born": "born", T + "birth": "born"})
    run.tables["correspondences"] = run.tables["correspondences"].iloc[:0]
    rows = rows_of(exported(run))
    assert rows[rows["kind"] == "relation"].groupby("original_predicate")["predicate"].nunique().to_dict() == {"near": 1, "part of": 1, "child": 1}
    assert set(value_conflicts(Fold.of(exported(run)))["source_attribute"]) >= {"born"}


def test_nothing_is_written_where_one_of_two_files_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(people(), tmp_path / "models", "towns", "basic-s0")
    words = ["export", run, "--models", str(tmp_path / "models"), "--format", "merged", "--output", str(tmp_path / "a.merged.trig")]
    (tmp_path / "there.csv").touch()
    for conflicts in ("there.csv", "x.trig"):
        assert main([*words, "--conflicts", str(tmp_path / conflicts)]) == 2
        assert not (tmp_path / "a.merged.trig").exists()
    capsys.readouterr()


def test_a_graph_is_separated_wholly_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.merged.parquet"
    path.write_bytes(written(exported(), "merged-parquet"))
    before, calls = pq.write_table, []

    def full(*arguments: Any, **options: Any) -> None:
        calls.append(arguments)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        before(*arguments, **options)

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(ExportError, match="cannot be written"):
        split_merged(path, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_among_earlier_tables_leaves_no_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old and new tables side by side would be read as one."""
    path = tmp_path / "graph.merged.parquet"
    path.write_bytes(written(exported(), "merged-parquet"))
    split_merged(path, tmp_path / "out")
    before, calls = os.replace, []

    def interrupted(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) > 3:
            raise OSError(5, "Input/output error")
        before(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(ExportError, match="cannot be written"):
            split_merged(path, tmp_path / "out", force=True)
    with pytest.raises(DataError):
        load_task(tmp_path / "out")
    split_merged(path, tmp_path / "out", force=True)
    assert load_task(tmp_path / "out").source.num_entities == 4


def test_statements_say_why_their_entities_are_one() -> None:
    rows = rows_of(exported(people(), [DecidedPair(S + "b", T + "b", True, ("Ann", "Bo|b"))]))
    matches = rows[rows["kind"] == "match"].set_index("subject")["subject_basis"]
    assert matches[S + "a"] == "seed link"
    assert matches[S + "b"] == "accepted by Ann|Bo｜b"
    assert matches[S + "c"] == "known link"
    subject = rows[(rows["kind"] == "relation") & (rows["graph"] == "source")].set_index("original_subject")["subject_basis"]
    assert subject[S + "a"] == "seed link"


def test_further_pairs_of_an_entity_are_declared_and_not_folded() -> None:
    run = people()
    run.tables["links"].loc[3] = [0, 3, "train"]
    table = exported(run)
    fold = Fold.of(table)
    assert len(fold) + len(fold.more) == len(table)
    assert [0, 3] in fold.more.tolist()
    assert fold.entities["target"][3] != fold.entities["source"][0]
    store = stored(written(table, "merged"))
    same = ox.NamedNode("http://www.w3.org/2002/07/owl#sameAs")
    assert any(quad.predicate == same and quad.object.value == fold.entities["target"][3] for quad in store)


def stored(content: bytes) -> ox.Store:
    store = ox.Store()
    store.load(content, format=ox.RdfFormat.TRIG)
    return store


def test_trig_has_a_graph_for_each_source() -> None:
    store = stored(written(exported(), "merged"))
    graphs = {part: list(store.quads_for_pattern(None, None, None, ox.NamedNode(graph_name(part)))) for part in ("source", "target", "matches")}
    assert len(graphs["source"]) == 3 + 7
    assert len(graphs["target"]) == 4 + 6
    assert ox.Literal("Alan", language="en") in {quad.object for quad in graphs["source"]}
    probabilities = store.quads_for_pattern(None, ox.NamedNode("urn:dual-amn:merge#basis"), None, None)
    assert {quad.object.value for quad in probabilities} >= {"seed link", "known link"}


@pytest.mark.parametrize("name", ["merged", "merged-parquet"])
@pytest.mark.parametrize("rule", ["source", "target", "minted"])
def test_the_two_graphs_can_be_separated_again(name: str, rule: Any, tmp_path: Path) -> None:
    run = people()
    relations = run.tables["relations"]
    relations.loc[relations["name"] == S + "child", "name"] = [S + "child", "own name"]
    table = exported(run)
    path = tmp_path / f"graph{get_format(name).suffix}"
    path.write_bytes(written(table, name, FoldOptions(canonical=rule)))
    counts = split_merged(path, tmp_path / "out")
    found = separated(tmp_path / "out")
    pairs = found.pop("links")
    assert found == originals(run)
    assert len(pairs) == len(table) == counts["links.parquet"]
    assert (S + "a", T + "a", "train") in pairs
    assert {split for _, _, split in pairs} <= {"train", "unsure"}
    with pytest.raises(ExportError, match="exists"):
        split_merged(path, tmp_path / "out")


@pytest.mark.parametrize("name", ["merged", "merged-parquet"])
@pytest.mark.parametrize("rule", ["source", "target", "minted"])
def test_entities_without_any_statement_are_kept(name: str, rule: Any, tmp_path: Path) -> None:
    """Two of the source, one of which is matched with one of the target; their names are no IRIs, or mean something else in the other graph."""
    run = people((("a b", S + "b", S + "c", S + "alone"), (T + "a", T + "b", T + "c", "a b", T + "alone")), [])
    kept = {("source", 1, 2), ("target", 0, 1), ("target", 2, 1)}
    triples = run.tables["triples"]
    run.tables["triples"] = triples[[row in kept for row in zip(triples["graph"], triples["head"], triples["tail"], strict=True)]]
    for side in ("source", "target"):
        rows = run.tables["triples"][run.tables["triples"]["graph"] == side]
        chosen = run.tables["entities"]["graph"] == side
        degrees = np.bincount(rows[["head", "tail"]].to_numpy().ravel(), minlength=int(chosen.sum()))
        run.tables["entities"].loc[chosen, "degree"] = degrees
    run.tables["links"].loc[3] = [3, 4, "train"]
    table = exported(run)
    path = tmp_path / f"graph{get_format(name).suffix}"
    path.write_bytes(written(table, name, FoldOptions(canonical=rule)))
    split_merged(path, tmp_path / "out")
    found = separated(tmp_path / "out")
    found.pop("links")
    alone = {side: found.pop(f"declared_entities_{side}") for side in ("source", "target")}
    assert alone == {"source": [("a b",), (S + "alone",)], "target": [("a b",), (T + "alone",)]}
    assert found == {part: rows for part, rows in originals(run).items() if rows}
    task = load_task(tmp_path / "out")
    assert set(task.source.entities) == {"a b", S + "b", S + "c", S + "alone"}
    assert len(task.target.entities) == 5


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1, max_size=8)


@settings(max_examples=12, deadline=None)
@given(
    source=st.lists(texts, min_size=4, max_size=4, unique=True),
    target=st.lists(texts, min_size=5, max_size=5, unique=True),
    values=st.lists(st.tuples(st.sampled_from(["source", "target"]), st.integers(0, 3), texts, texts), max_size=6, unique=True),
)
def test_whatever_the_identifiers_the_graphs_come_back(source: list[str], target: list[str], values: list[Any], tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("merged")
    run = people((source, target), [(side, at, name, value) for side, at, name, value in values if literal_of(value).text == value])
    for name in ("merged", "merged-parquet"):
        path = folder / f"graph{get_format(name).suffix}"
        path.write_bytes(written(exported(run), name))
        split_merged(path, folder / name)
        found = separated(folder / name)
        found.pop("links")
        assert found == {part: rows for part, rows in originals(run).items() if rows}


def test_values_that_differ_are_listed_with_a_proposal() -> None:
    table = value_conflicts(Fold.of(exported()))
    rows = table.set_index(["source", "source_attribute"])
    assert rows.loc[(S + "a", S + "born"), "proposal"] == "1912-06-23", "a date says more than its year"
    assert "more precise" in rows.loc[(S + "a", S + "born"), "reason"]
    assert rows.loc[(S + "b", S + "born"), "proposal"] == "1815-12-10"
    assert "the source graph comes first" in rows.loc[(S + "b", S + "born"), "reason"]
    assert rows.loc[(S + "b", S + "note"), "source_value"] == "a | b"
    assert rows.loc[(S + "b", S + "note"), "proposal"] == "", "an attribute with several values has no single right one"
    assert (S + "c", S + "born") not in rows.index
    assert not any(table["source_attribute"] == "label"), "names may differ"
    other = value_conflicts(Fold.of(exported(), FoldOptions(canonical="target"))).set_index(["source", "source_attribute"])
    assert other.loc[(S + "b", S + "born"), "proposal"] == "1815-12-11"


def test_the_command_writes_and_separates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(people(), tmp_path / "models", "towns", "basic-s0")
    path, clash = tmp_path / "all.merged.trig", tmp_path / "clash.csv"
    words = ["--models", str(tmp_path / "models")]
    assert main(["export", run, *words, "--format", "merged", "--output", str(path), "--conflicts", str(clash)]) == 0
    assert ",'=c()" in clash.read_text(encoding="utf-8-sig"), "no cell that a spreadsheet would run"
    assert main(["split", str(path), "--out", str(tmp_path / "out")]) == 0
    assert "rows in triples_source.parquet" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "out")]) == 0
    again = tmp_path / "other.merged.parquet"
    assert main(["export", run, *words, "--format", "merged-parquet", "--output", str(again), "--canonical", "minted"]) == 0
    assert main(["split", str(again), "--out", str(tmp_path / "out2")]) == 0
    assert separated(tmp_path / "out") == separated(tmp_path / "out2")


@pytest.mark.parametrize("content", [b"", b"not trig {", b"<http://a> <http://b> <http://c> .", b"PAR1"])
@pytest.mark.parametrize("ending", [".trig", ".parquet"])
def test_other_files_are_refused(content: bytes, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{ending}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"this is not (a merged graph|TriG|Parquet)[:;].* give a file of export --format merged") as raised:
        split_merged(path, tmp_path / "out")
    assert raised.value.complaint.count(".") - raised.value.complaint.count(".parquet") == 1, "one sentence, without the parser's own words"
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_is_no_question_of_its_format(tmp_path: Path) -> None:
    for name in ("x.trig", "x.parquet"):
        with pytest.raises(DataError, match="no such file"):
            split_merged(tmp_path / name, tmp_path / "out")


@pytest.mark.parametrize("options", [{"canonical": "mine"}, {"least_correspondence": -0.1}, {"least_correspondence": float("nan")}])
def test_impossible_options_are_refused(options: Any) -> None:
    with pytest.raises(ConfigError):
        FoldOptions(**options)
