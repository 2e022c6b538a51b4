"""A run updated to a new version of its data: what is carried over, how it is trained, what the run says, and what becomes of reviews."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
from benchmarks.versions import write_versions
from engine.cli.main import main
from engine.config import RunConfig
from engine.data import load_task
from engine.errors import ConfigError, DataError, RunError
from engine.exporting import split_merged
from engine.pipeline import event_text, prepare_update, train_run, update_config, update_run
from engine.pipeline.updating import earlier_graphs, short_epochs
from engine.reviews import Choice, ReviewStore
from engine.runs import Run, RunStore
from engine.runs.writer import read_beginning
from engine.training.semi import Round
from engine.util.paths import reviews_file
from tests.data.writers import Sample, put, tabbed, write_openea

TOWNS = 16
SMALL: dict[str, Any] = {
    "encoder.dim": 8,
    "encoder.proxies": 4,
    "semi.rounds": 2,
    "semi.round_epochs": 2,
    "semi.threshold": 0.0,
    "training.epochs": 8,
    "training.checkpoint_seconds": 0.0,
    "training.threads": 1,
}
GONE, NEW, RENAMED = 15, 16, 3


def left(number: int) -> str:
    return f"http://left.org/town_{number:02}"


def right(number: int) -> str:
    return f"http://right.org/town_{number:02}"


def write_ring(folder: Path, numbers: Sequence[int], train: Sequence[int], name: Any = left, more: Sequence[tuple[str, str, str]] = ()) -> Path:
    """Two rings with chords of these towns, all of them linked; those of ``train`` are seeds, the others test links."""

    def ring(word: Any, relation: str) -> tuple[tuple[str, str, str], ...]:
        around = list(numbers)
        return tuple((word(around[at]), relation, word(around[(at + step) % len(around)])) for at in range(len(around)) for step in (1, 3 + at % 2))

    links = tuple((name(one), right(one)) for one in numbers)
    sample = Sample(
        (*ring(name, "http://left.org/near"), *more), ring(right, "http://right.org/nah"), links, tuple((name(one), right(one)) for one in train)
    )
    write_openea(folder, sample)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``first``: towns 0 to 15, 0 to 4 are seeds. ``second``: 15 is gone, 16 is new and a seed, 3 has another identifier, there is a new relation,
    and the split of the data has a former test link among its seeds.
    """
    folder = tmp_path_factory.mktemp("versions")
    write_ring(folder / "first", range(TOWNS), range(5))

    def later(number: int) -> str:
        return left(number) + ("_renamed" if number == RENAMED else "")

    numbers = [*(one for one in range(TOWNS) if one != GONE), NEW]
    write_ring(folder / "second", numbers, [0, 1, 2, 9, NEW], later, [(left(5), "http://left.org/by", left(6))])
    put(folder / "renamed.tsv", tabbed([("old", "new"), (left(RENAMED), later(RENAMED))]))
    write_ring(folder / "other", range(100, 140), range(100, 110))
    return folder


@pytest.fixture(scope="module")
def models(data: Path) -> Path:
    """A basic and a semi run of the first version; tests of what is kept elsewhere copy it."""
    store = RunStore(data / "models")
    for variant in ("basic", "semi"):
        train_run(data / "first", RunConfig.from_dict({"variant": variant}).with_values(SMALL), store)
    return store.root


def parent_of_kind(models: Path, variant: str) -> Run:
    store = RunStore(models)
    return store.find(next(one.id for one in store.list() if one.dataset == "first" and one.variant == variant))


def updated(models: Path, data: Path, variant: str, **options: Any) -> Run:
    parent = parent_of_kind(models, variant)
    config = update_config(parent, data / "second", **options.pop("settings", {}))
    return update_run(parent, data / "second", config, RunStore(models), mapping={None: data / "renamed.tsv"}, **options).run


def links_of(run: Run, role: str) -> set[tuple[str, str]]:
    names = {side: run.table("entities", ["uri"], {"graph": side})["uri"].tolist() for side in ("source", "target")}
    rows = run.table("links").query("role == @role")[["source", "target"]].to_numpy().tolist()
    return {(names["source"][one], names["target"][two]) for one, two in rows}


@pytest.mark.parametrize("variant", ["basic", "semi"])
def test_an_update_knows_its_parent_and_keeps_the_parts_of_links(models: Path, data: Path, variant: str) -> None:
    parent, run = parent_of_kind(models, variant), updated(models, data, variant)
    assert run.dataset == "second"
    record = run.manifest["parent"]
    assert (record["run"], record["data_set"], record["fingerprint"]) == (parent.id, "first", parent.manifest["data"]["fingerprint"])
    assert record["counts"]["source"] == {"entities": {"carried": 15, "new": 1, "gone": 1}, "relations": {"carried": 1, "new": 1, "gone": 0}}
    assert record["counts"]["target"]["entities"] == {"carried": 15, "new": 1, "gone": 1}
    assert record["counts"]["links"] == {"carried": 15, "new": 1, "gone": 1}
    assert record["mapping"]["entities"] == 1
    assert run.table("renamed").to_dict("records") == [{"graph": "source", "old": left(3), "new": left(3) + "_renamed"}]
    assert links_of(run, "train") == {(left(one) + ("_renamed" if one == RENAMED else ""), right(one)) for one in (0, 1, 2, 3, 4, NEW)}
    assert (left(9), right(9)) in links_of(run, "test"), "a test link of the parent is never trained on"
    assert not links_of(run, "train") & links_of(parent, "test")
    assert run.manifest["config"]["encoder"] == parent.manifest["config"]["encoder"]
    assert run.manifest["training"]["epochs"] < parent.manifest["training"]["epochs"]
    assert run.manifest["status"] == "finished"


def test_lists_and_reports_name_the_parent(models: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parent, run = parent_of_kind(models, "basic"), updated(models, data, "basic")
    assert main(["runs", "--models", str(models)]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith(f"{run.id} ")]
    assert line.endswith(f"update of {parent.id}")
    mapping = f"source={data / 'renamed.tsv'}"
    assert main(["update", parent.id, str(data / "second"), "--mapping", mapping, "--models", str(models), "--json"]) == 0
    printed = capsys.readouterr()
    assert (json.loads(printed.out)["run"], json.loads(printed.out)["parent"]) == (run.id, parent.id)
    assert "already exists" in printed.err
    assert f"update of {parent.id}" in engine.open_run(run.id, models).report()
    assert main(["update", parent.id, str(data / "second"), "--mapping", mapping, "--mapping", mapping, "--models", str(models)]) == 2
    assert "--mapping takes one FILE" in capsys.readouterr().err


def test_the_same_update_is_found_and_another_mapping_is_another_run(models: Path, data: Path) -> None:
    run = updated(models, data, "basic")
    parent = parent_of_kind(models, "basic")
    config = update_config(parent, data / "second")
    again = update_run(parent, data / "second", config, RunStore(models), mapping={"source": data / "renamed.tsv"})
    assert again.reused, "what a mapping says counts, not how the file is given"
    assert again.run.id == run.id
    plain = update_run(parent, data / "second", config, RunStore(models))
    assert plain.run.id != run.id
    assert plain.run.manifest["parent"]["mapping"] is None
    assert plain.run.manifest["parent"]["counts"]["source"]["entities"] == {"carried": 14, "new": 2, "gone": 2}
    assert "renamed.parquet" not in plain.run.files
    advice = {one.id: next(row["advice"] for row in one.manifest["data"]["findings"] if row["code"] == "new-version") for one in (run, plain.run)}
    assert advice[run.id] == ""
    assert advice[plain.run.id].startswith("Many entities are new"), "two of sixteen"
    fresh = updated(models, data, "basic", fresh=True)
    assert fresh.id == f"{run.id}-2"
    for key in ("entity_features", "attention", "gate_weight"):
        np.testing.assert_array_equal(fresh.tensor("model", key), run.tensor("model", key))


def test_training_starts_from_the_parent(models: Path, data: Path) -> None:
    """With a learning rate of next to nothing, the update is its parent where nothing is new."""
    run = updated(models, data, "basic", settings={"settings": {"training.learning_rate": 1e-9}})
    parent = parent_of_kind(models, "basic")
    places = prepare_update(parent, data / "second", update_config(parent, data / "second"), {None: data / "renamed.tsv"}).inheritance.entities
    known = places >= 0
    assert known.sum() == 30
    np.testing.assert_allclose(run.tensor("model", "entity_features")[known], parent.tensor("model", "entity_features")[places[known]], atol=1e-6)
    np.testing.assert_allclose(run.tensor("model", "proxies"), parent.tensor("model", "proxies"), atol=1e-6)


def test_rounds_begin_with_the_parent_s_pairs(models: Path, data: Path) -> None:
    events: list[Any] = []
    run = updated(models, data, "semi", fresh=True, on_event=events.append)
    (begun,) = [one for one in events if isinstance(one, Round) and not one.number]
    assert begun.parent == parent_of_kind(models, "semi").id
    assert event_text(begun).startswith(f"start: {begun.selected} training pairs carried over from first/semi-s0-")
    assert len(run.table("start")) == begun.selected
    assert run.table("selections")["round"].max() == 1
    assert any("source graph: 15 entities carried over, 1 new, 1 gone" in event_text(one) for one in events)


def test_a_literal_run_is_updated_by_way_of_its_structure(models: Path, data: Path) -> None:
    store = RunStore(models)
    config = RunConfig.from_dict({"variant": "literal"}).with_values({**SMALL, "literal.names": "uri", "literal.weight": 0.5})
    parent = train_run(data / "first", config, store).run
    run = update_run(parent, data / "second", update_config(parent, data / "second"), store).run
    below = store.find(run.manifest["training"]["structure_run"])
    assert (run.manifest["variant"], below.manifest["variant"]) == ("literal", "semi")
    assert run.manifest["parent"] == below.manifest["parent"]
    assert run.manifest["parent"]["run"] == parent.id
    names = run.table("names").query("graph == 'source'")
    assert "town 16" in " ".join(names["name"]), "names are those of the new data"


def test_epochs_do_not_shrink_from_update_to_update(models: Path, data: Path) -> None:
    parent = parent_of_kind(models, "semi")
    first = updated(models, data, "semi")
    assert first.manifest["parent"]["inherited"] == {"training.epochs": 8, "semi.rounds": 2, "semi.round_epochs": 2}
    assert update_config(first, data / "first") == update_config(parent, data / "second")
    basic = RunConfig().with_values({"training.epochs": 20})
    assert short_epochs(basic, parent) == {"training.epochs": 1}
    chosen = update_config(parent, data / "second", epochs=5, seed=7, assignments=["semi.rounds=0"])
    assert (chosen.training.epochs, chosen.semi.rounds, chosen.seed) == (5, 0, 7)
    assert parent.manifest["config"]["training"]["threads"] == 1
    assert chosen.training.threads is None, "the parent's machine need not be this one"


def test_what_cannot_be_updated_says_why(models: Path, data: Path, tmp_path: Path) -> None:
    parent = parent_of_kind(models, "basic")
    with pytest.raises(ConfigError, match=r"encoder\.dim stays 8"):
        update_config(parent, data / "second", settings={"encoder.dim": 16})
    before = sorted(models.rglob("*"))
    with pytest.raises(
        DataError, match=r"0 of 40 entities \(0%\) of the source graph of other are in first/basic-s0-.*; train a new run|so train a new run"
    ):
        update_run(parent, data / "other", update_config(parent, data / "other"), RunStore(models))
    wrong = put(tmp_path / "wrong.tsv", "old\tnew\nnowhere\tnothing\n")
    with pytest.raises(DataError, match=r"wrong\.tsv:2: neither graph of the run has 'nowhere'"):
        update_run(parent, data / "second", update_config(parent, data / "second"), RunStore(models), mapping={None: wrong})
    assert sorted(models.rglob("*")) == before
    files = {name: entry for name, entry in parent.files.items() if name != "model.safetensors"}
    without = Run(parent.dataset, parent.run_id, parent.path, {**parent.manifest, "files": files})
    with pytest.raises(RunError, match="no stored weights"):
        prepare_update(without, data / "second", update_config(parent, data / "second"))


def test_an_interrupted_update_shows_the_command_that_finishes_it(models: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    options: Any = {"settings": {"epochs": 3, "settings": {"training.learning_rate": 0.004}}}
    with monkeypatch.context() as patched:
        patched.setattr("engine.pipeline.finishing.csls_topk", killed)
        with pytest.raises(KeyboardInterrupt):
            updated(models, data, "basic", **options)
    (partial,) = [one for one in RunStore(models).list() if one.state == "partial"]
    begun = read_beginning(partial.path)
    assert begun is not None
    python, module, name, *words = shlex.split(begun.command(models))
    assert (python, module, name, words[0]) == ("python", "-m", "engine", "update")
    assert main(words) == 0
    run = RunStore(models).find(f"second/{begun.run_id}")
    assert run.manifest["status"] == "finished"
    whole = updated(models, data, "basic", fresh=True, settings={"epochs": 3, "settings": {"training.learning_rate": 0.004}})
    np.testing.assert_array_equal(run.tensor("model", "entity_features"), whole.tensor("model", "entity_features"))


def test_a_stopped_update_keeps_what_was_learned(models: Path, data: Path) -> None:
    answers = iter([False, True])
    stopped = updated(models, data, "basic", settings={"epochs": 4}, should_stop=lambda: next(answers))
    assert stopped.manifest["status"] == "stopped"
    assert stopped.manifest["parent"]["data_set"] == "first"
    assert updated(models, data, "basic", settings={"epochs": 4}).manifest["status"] == "finished"


# Reviews


def test_decisions_are_carried_over_and_trained_with(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = RunStore(tmp_path / "models")
    first = load_task(data / "first")
    reviews = ReviewStore(reviews_file(store.root))
    for number, verdict in ((7, "accept"), (8, "reject"), (GONE, "accept")):
        reviews.decide(first.fingerprint, Choice(left(number), right(number), verdict), "Ann", f"click {number}")  # type: ignore[arg-type]
    config = RunConfig().with_values(SMALL)
    parent = train_run(data / "first", config, store, reviews=reviews_file(store.root)).run
    assert parent.manifest["reviews"]["accepted"] == 2
    events: list[Any] = []
    run = update_run(parent, data / "second", update_config(parent, data / "second"), store, on_event=events.append).run
    assert (run.manifest["reviews"]["accepted"], run.manifest["reviews"]["rejected"]) == (1, 1)
    assert (left(7), right(7)) in links_of(run, "train")
    assert (left(8), right(8)) not in links_of(run, "test")
    fingerprint = str(run.manifest["data"]["fingerprint"])
    assert {one.pair for one in reviews.standing(fingerprint)} == {(left(7), right(7)), (left(8), right(8))}
    assert [one.pair for one, _ in reviews.inactive(fingerprint)] == [(left(GONE), right(GONE))]
    assert any("2 decisions carried over" in event_text(one) and "1 inactive" in event_text(one) for one in events)
    marked = reviews.look_again(fingerprint)
    reviews.close()
    assert main(["reviews", run.id, "--models", str(store.root), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["decisions"]
    assert [(row["source"], row["verdict"], row["gone"]) for row in rows] == [
        (left(7), "accepted", ""),
        (left(8), "rejected", ""),
        (left(GONE), "accepted", "source and target"),
    ]
    assert [tuple(row["look_again"]) for row in rows[:2]] == [marked.get((left(one), right(one)), ()) for one in (7, 8)]
    assert main(["reviews", run.id, "--models", str(store.root), "--inactive"]) == 0
    assert "inactive: source and target is gone" in capsys.readouterr().out
    with_now = update_run(parent, data / "second", update_config(parent, data / "second"), store, reviews=reviews_file(store.root))
    assert with_now.reused, "the same decisions make the same run"


# The sample data in two versions


def test_the_sample_data_in_two_versions_go_through_update_match_and_merge(small_europe: Path, tmp_path: Path) -> None:
    """Made by a script: entities added, dropped and renamed."""
    task = load_task(small_europe)
    first, second = write_versions(task, tmp_path, share=0.09, renamed=0.02)
    models = tmp_path / "models"
    settings = {"training.epochs": 20, "encoder.dim": 32}
    run = engine.train(first, settings=settings, models=models, progress=False)
    mapping = {side: tmp_path / f"renamed-{side}.tsv" for side in ("source", "target")}
    later = run.update(second, mapping=mapping, progress=False)
    counts = later.manifest["parent"]["counts"]["source"]
    planned = round(0.09 * task.source.num_entities / 3)  # an entity whose only neighbour is gone is in no file any more
    assert planned <= counts["entities"]["new"] <= planned + 2 or planned <= counts["entities"]["gone"] <= planned + 2
    assert later.manifest["parent"]["mapping"]["entities"] == 2 * round(0.02 * task.source.num_entities)
    again = engine.train(second, settings=settings, models=models, progress=False)
    hits = [one.metrics["target_to_source"]["hits@1"] for one in (later, again)]
    assert hits[0] >= hits[1] - 0.05
    entity = later.table("triples").query("graph == 'source'").iloc[0]
    names, relations = (
        later.table(name).query("graph == 'source'")[column].tolist() for name, column in (("entities", "uri"), ("relations", "name"))
    )
    placed = later.align_new([{"id": "new", "triples": [["new", relations[entity["relation"]], names[entity["tail"]]]]}], top=3)
    assert len(placed[0].matches) == 3
    engine.export(later, tmp_path / "merged.parquet", format="merged-parquet")
    rows = split_merged(tmp_path / "merged.parquet", tmp_path / "apart")
    assert rows
    graphs = earlier_graphs(later.run)
    assert graphs["source"].num_entities == len(names)
    assert engine.list_runs(models).set_index("run").loc[later.id, "parent"] == run.id
