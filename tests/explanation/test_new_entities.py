"""Entities that a run has never seen: embedded with frozen weights, scored as the run scores, and refused or explained where they do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import engine
from engine.cli.main import main
from engine.data.knowledge_graph import Side
from engine.errors import ConfigError, DataError, EntityError
from engine.explanation import Explainer
from engine.explanation.new_entities import NewEntities, NewEntity, read_new_entities
from engine.names.values import key_texts
from engine.runs.entities import other
from engine.runs.view import RunView
from tests.explanation.runs import drawn_run
from tests.run_fixture import MemoryRun


def triples_of(view: RunView, side: Side, index: int, name: str) -> tuple[tuple[str, str, str], ...]:
    """An entity's triples, with another name for it."""
    table = view.run.table("triples", ["head", "relation", "tail"], {"graph": side})
    names = view.run.table("relations", ["name"], {"graph": side})["name"].tolist()
    uris = [name if at == index else uri for at, uri in enumerate(view.graphs[side].uris)]
    rows = table[(table["head"] == index) | (table["tail"] == index)].to_numpy().tolist()
    return tuple((uris[head], names[relation], uris[tail]) for head, relation, tail in rows)


def with_mean_feature(run: MemoryRun, side: Side, index: int) -> tuple[RunView, Explainer]:
    """The run as if training had given an entity the mean of its neighbours' feature vectors."""
    view = RunView(run)
    explainer = Explainer(view)
    stacked = explainer.stacked(side, index)
    neighbours = [one for one in {entry.neighbour for entry in explainer.encoder.graph.entries(stacked)} if one != stacked]
    features = run.tensors["model"]["entity_features"].copy()
    features[stacked] = features[neighbours].mean(axis=0)
    changed = MemoryRun(run.manifest, run.metrics, run.tables, {**run.tensors, "model": {**run.tensors["model"], "entity_features": features}})
    return RunView(changed), Explainer(RunView(changed))


def lonely(view: RunView, side: Side) -> int:
    """An entity with triples, and none with itself."""
    table = view.run.table("triples", ["head", "tail"], {"graph": side})
    loops = set(table.loc[table["head"] == table["tail"], "head"])
    degrees = view.graphs[side].degrees
    return next(index for index in np.argsort(-degrees).tolist() if index not in loops)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"message_unit": "edge"},
    {"relation_input": "opposite"},
    {"channels": "entity"},
    {"channels": "relation", "multi_hop": False},
    {"relational_projection": False, "proxy_matching": False},
    {"layers": 0},
]


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_copy_of_an_entity_is_embedded_as_that_entity(options: dict[str, Any], side: Side) -> None:
    """Exactly, where its own feature vector is what a new entity gets."""
    run = drawn_run(3, **options)
    index = lonely(RunView(run), side)
    view, explainer = with_mean_feature(run, side, index)
    newcomers = NewEntities(view, explainer, side)
    copy = NewEntity("copy", triples=triples_of(view, side, index, "copy"))
    (vector,) = newcomers.embed(newcomers._records([copy]))
    final = explainer.encoder.snapshot([explainer.stacked(side, index)]).final.reshape(-1)
    np.testing.assert_allclose(vector, final / np.linalg.norm(final), atol=1e-6)
    placed = newcomers.place([copy])[0]
    assert placed.used == len(explainer.encoder.graph.entries(explainer.stacked(side, index)))
    assert not placed.ignored


def test_csls_is_that_of_the_run() -> None:
    run = drawn_run(4)
    view = RunView(run)
    newcomers = NewEntities(view, Explainer(view))
    copy = NewEntity("copy", triples=triples_of(view, "source", 0, "copy"))
    (vector,) = newcomers.embed(newcomers._records([copy]))
    found = newcomers.place([copy], top=1000)[0].matches
    target = view.run.tensor("embeddings", "target").astype(np.float64)
    cosine = target @ vector
    own = np.sort(cosine)[-newcomers.explainer.config.search.csls_k :].mean()
    expected = 2 * cosine - own - view.hubness("target")
    ranked = np.argsort(-expected, kind="stable")
    assert found["uri"].tolist() == [view.graphs["target"].uris[one] for one in ranked]
    np.testing.assert_allclose(found["csls"], expected[ranked], atol=1e-5)
    assert found["rank"].tolist() == list(range(1, len(found) + 1))
    best = view.best["target"]
    assert found["matched_with"].tolist() == [view.graphs["source"].uris[best[one]] for one in ranked.tolist()]


def test_new_entities_may_know_each_other() -> None:
    view = RunView(drawn_run(5))
    newcomers = NewEntities(view, Explainer(view))
    relation = next(iter(newcomers.relations))
    known = view.graphs["source"].uris[0]
    pair = [NewEntity("a", triples=(("a", relation, "b"),)), NewEntity("b", triples=(("b", relation, known),))]
    placed = newcomers.place(pair)
    assert [one.used for one in placed] == [1, 2]
    alone = newcomers.place([NewEntity("b", triples=(("b", relation, known),))])[0]
    assert not np.allclose(alone.matches["cosine"], placed[1].matches["cosine"])


def test_what_the_graph_does_not_have_is_named_and_left_out() -> None:
    view = RunView(drawn_run(6))
    newcomers = NewEntities(view, Explainer(view))
    relation, known = next(iter(newcomers.relations)), view.graphs["source"].uris[0]
    triples = (("x", relation, known), ("x", "strange", known), ("x", relation, "stranger"), (known, relation, known))
    placed = newcomers.place([NewEntity("x", triples=triples)])[0]
    assert placed.used == 1
    assert [words in " ".join(placed.ignored) for words in ("relation 'strange'", "entity 'stranger'", "neither end is 'x'")] == [True] * 3
    lost, empty, found = newcomers.place([NewEntity("u", triples=(("u", "strange", known),)), NewEntity("v"), NewEntity("x", triples=triples[:1])])
    assert lost.matches.empty
    assert "the source graph does not have the relation 'strange'" in lost.ignored[0]
    assert empty.matches.columns.tolist() == found.matches.columns.tolist()
    assert "no triples" in empty.ignored[-1]
    assert empty.sentence() == "v: not placed."
    assert len(found.matches)
    with pytest.raises(EntityError, match=r"has .* already"):
        newcomers.place([NewEntity(known)])
    with pytest.raises(EntityError, match="comes twice"):
        newcomers.place([NewEntity("x", triples=triples[:1])] * 2)


@pytest.fixture(scope="module")
def literal(small_europe: Path, tmp_path_factory: pytest.TempPathFactory) -> engine.OpenRun:
    settings = {"training.epochs": 6, "encoder.dim": 16, "semi.rounds": 1, "semi.round_epochs": 1, "data.train_ratio": 0.6, "data.valid_ratio": 0.4}
    return engine.train(small_europe, variant="literal", settings=settings, models=tmp_path_factory.mktemp("models"), progress=False)


def as_new(run: engine.OpenRun, side: Side, index: int) -> dict[str, Any]:
    """An entity of the run as a record of an entity that it has not seen."""
    entity = run.view.entity(side, index)
    names = run.table("names").query("graph == @side and entity == @index")["name"].tolist()
    triples = [list(row) for row in triples_of(run.view, side, index, "new")]
    return {
        "id": "new",
        "label": entity.label,
        "names": names[1:],
        "triples": triples,
        "values": [list(row) for row in run.view.attributes(side, index)],
    }


@pytest.mark.parametrize("side", ["source", "target"])
def test_names_and_values_are_compared_as_the_run_compares_them(literal: engine.OpenRun, side: Side) -> None:
    degrees = literal.view.graphs[side].degrees
    for index in np.argsort(-degrees)[:5].tolist():
        found = literal.align_new([as_new(literal, side, index)], side=side, top=2000)[0].matches.set_index("uri")
        row = literal.view.scores(side, index)
        theirs = literal.view.graphs[other(side)].uris
        expected = pd.Series(row.names, index=[theirs[one] for one in row.candidates])
        np.testing.assert_allclose(found["names"].sort_index(), expected.sort_index(), atol=1e-5)
        if row.values is not None:
            values = pd.Series(row.values, index=[theirs[one] for one in row.candidates])
            assert (
                abs(found["values"] - values.reindex(found.index)).max() < 0.2
            )  # how many entities have a value that the graphs do not share is not known
            assert ((found["values"] > 0) == (values.reindex(found.index) > 0)).all()


def test_most_entities_find_their_counterpart_again_and_get_a_probability(literal: engine.OpenRun) -> None:
    links = literal.table("links").query("role == 'test'").head(20)
    hits, chances = 0, []
    for source, target in links[["source", "target"]].to_numpy().tolist():
        placed = literal.align_new([as_new(literal, "source", source)])[0]
        best = placed.matches.iloc[0]
        hits += best["uri"] == literal.view.graphs["target"].uris[target]
        chances.append(best["probability"])
        assert sum(placed.basis.values()) == pytest.approx(1)
    own = sum(literal.view.best["source"][source] == target for source, target in links[["source", "target"]].to_numpy().tolist())
    assert hits >= own - 2
    stored = literal.table("probabilities").query("graph == 'source'").set_index("entity")["probability"]
    assert np.corrcoef(chances, stored.reindex(links["source"]))[0, 1] > 0.5
    assert all(0 <= one <= 1 for one in chances)


def test_the_command_reads_a_file(literal: engine.OpenRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new.jsonl"
    path.write_text("\n".join(["", json.dumps(as_new(literal, "source", 0)), json.dumps({"id": "a\x1b[1m", "label": "Berlin"})]), encoding="utf-8")
    words = ["match", literal.id, "--models", str(literal.models), "--new", str(path)]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "new: " in shown
    assert "\x1b" not in shown
    assert main([*words, "--json", "--top", "2"]) == 0
    message = json.loads(capsys.readouterr().out)
    assert [len(one["matches"]) for one in message["entities"]] == [2, 2]
    assert message["entities"][1]["used"] == 0
    assert main([*words[:-2], str(path), "--new"]) == 0
    capsys.readouterr()
    assert main([*words[:-1], str(tmp_path / "missing")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_arguments_that_cannot_be_used_are_named(literal: engine.OpenRun) -> None:
    assert literal.align_new([]) == []
    wrong: Any
    for wrong in ("abc", None, {"id": "x"}, ["abc"], [{}], [{"id": "x", "triples": [1]}]):
        with pytest.raises(DataError):
            literal.align_new(wrong)
    with pytest.raises(ConfigError, match="unknown side"):
        literal.align_new([{"id": "x"}], side="x")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="top"):
        literal.align_new([{"id": "x"}], top=0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "has no entities"),
        ("[1]", r"new\.jsonl:1: a new entity needs an 'id'"),
        ('\n{"id": "x"', r"new\.jsonl:2: this is not JSON"),
        ('{"id": ""}', "needs an 'id'"),
        ('{"id": "x", "label": 3}', "'label' must be text"),
        ('{"id": "x", "triples": [["x", "r"]]}', "'triples' must be a list of lists of 3 texts"),
        ('{"id": "x", "names": "y"}', "'names' must be a list of texts"),
        ('{"id": "x", "attributes": []}', "unknown field 'attributes'"),
        ('{"id": "x", "id": "y"}', r"new\.jsonl:1: the key 'id' is twice in one object"),
        ("[" * 100_000, "this is not JSON"),
    ],
)
def test_files_that_hold_something_else_are_refused(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=words):
        read_new_entities(path)


def test_values_have_the_keys_that_the_run_stores(literal: engine.OpenRun) -> None:
    features = literal.table("value_features")
    if len(features):
        known = set(zip(features["source"].astype(str), features["key"].astype(str), strict=True))
        found = {
            key for index in range(len(literal.view.graphs["source"])) for row in literal.view.attributes("source", index) for key in key_texts(*row)
        }
        assert known <= found
