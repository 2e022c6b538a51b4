"""The home page in all its states."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import cache
from app.cache import list_runs
from engine.config import RunConfig
from engine.data.knowledge_graph import SIDES
from engine.data.library import RECORD, data_sets
from engine.evaluation.paper import SIZES
from engine.jobs import JobQueue, plan_training, summarise
from engine.runs import RunStore
from engine.runs.writer import ResumeRecord, note_beginning
from engine.util import paths
from engine.util.paths import SAMPLES
from tests.app.conftest import OpenPage, PutRun, assert_no_crash, links, words
from tests.run_fixture import HOSTILE_LABELS, MemoryRun, sample_run, write_run


def test_without_runs_it_says_what_to_do(open_page: OpenPage) -> None:
    app = open_page("home")
    assert_no_crash(app)
    message = words(app)
    assert "No runs yet" in message
    assert "make app" in message
    assert any(link.startswith("train?") and "data=world" in link for link in links(app))
    assert not app.dataframe


def tables(app: AppTest) -> list[pd.DataFrame]:
    """One of each data set's runs."""
    return [one.value for one in app.dataframe if "variant" in one.value.columns]


def test_a_run_shows_its_figure_interval_and_pool(run: str, open_page: OpenPage) -> None:
    app = open_page("home")
    assert_no_crash(app)
    (table,) = tables(app)
    shown = table.iloc[0]
    assert (round(shown["Hits@1"], 3), shown["interval"], round(shown["MRR"], 3)) == (0.651, "0.472–0.795", 0.763)
    assert "n = 30 test entities; from source to target, the first run has 0.643" in words(app)
    assert "The paper reports" not in words(app)
    assert f"entity?run={run.replace('/', '%2F')}" in links(app)


def test_the_papers_figure_is_shown_beside_ours_on_its_data(models: Path, open_page: OpenPage) -> None:
    run = sample_run()
    sizes = [
        {"name": name, "entities": size[0], "relations": 1, "triples": size[1]}
        for name, size in zip(["zh", "en"], SIZES["DBP15K ZH-EN"], strict=True)
    ]
    write_run(run, models, data={**run.manifest["data"], "source": sizes[0], "target": sizes[1]})
    assert "The paper reports 0.731 on DBP15K ZH-EN, basic" in words(open_page("home"))


def test_the_best_run_comes_first_and_is_one_click_away(models: Path, open_page: OpenPage) -> None:
    for seed, hits in ((1, 0.5), (2, 0.75), (3, 0.25)):
        run = sample_run()
        assert run.metrics is not None
        run.metrics["target_to_source"]["hits@1"] = hits
        write_run(run, models, run_id=f"basic-s{seed}", seed=seed, created=f"2026-10-{seed:02}T00:00:00+00:00")
    unmeasured = sample_run()
    unmeasured.metrics = None
    write_run(unmeasured, models, run_id="basic-s4", seed=4)
    app = open_page("home")
    assert_no_crash(app)
    (table,) = tables(app)
    assert table["random seed"].tolist() == [2, 1, 3, 4]
    assert links(app)[0] == "entity?run=towns%2Fbasic-s2"
    assert "Some runs have no test links" in words(app)


@pytest.mark.parametrize(("measured", "shown"), [(True, "Open best run"), (False, "Open newest run")])
def test_no_run_is_the_best_where_nothing_is_measured(models: Path, open_page: OpenPage, measured: bool, shown: str) -> None:
    run = sample_run() if measured else replace(sample_run(), metrics=None)
    for place, variant in enumerate(("semi", "basic")):
        write_run(run, models, run_id=f"{variant}-s{place}", variant=variant)
    app = open_page("home")
    assert_no_crash(app)
    assert [one.proto.label for one in app.get("page_link") if one.proto.label.startswith("Open")] == [shown]


def test_an_age_is_a_time_that_the_browser_puts_into_words(run: str, open_page: OpenPage) -> None:
    """The rows must not change by themselves, and sort by time."""
    (table,) = tables(open_page("home"))
    assert pd.api.types.is_datetime64_any_dtype(table["age"])


def test_a_run_that_was_finished_or_deleted_this_moment_is_reported_at_once(models: Path) -> None:
    assert [card.run for card in list_runs(models).cards] == []
    run = write_run(sample_run(), models)
    assert [card.run for card in list_runs(models).cards] == [run]
    shutil.rmtree(models / run)
    assert [card.run for card in list_runs(models).cards] == []


def test_a_run_on_anothers_structure_does_not_claim_its_training(models: Path, open_page: OpenPage) -> None:
    training = {"seconds": 70.0, "structure_run": "towns/semi-s0-aaaaaaaa"}
    write_run(sample_run(), models, run_id="literal-s0-bbbbbbbb", variant="literal", seconds=4.0, training=training)
    (table,) = tables(open_page("home"))
    assert table["time"].tolist() == ["4 s (names)"]


def test_a_run_without_test_links_has_no_figure(models: Path, open_page: OpenPage) -> None:
    run = sample_run()
    run.metrics = None
    write_run(run, models)
    app = open_page("home")
    assert_no_crash(app)
    assert not {"Hits@1", "interval", "MRR"} & set(tables(app)[0].columns)
    assert "no test links" in words(app)
    assert any("review" in link and "kind=sample" in link for link in links(app)), "there is a way to an accuracy all the same"


def test_figures_of_null_are_no_figures(models: Path, open_page: OpenPage) -> None:
    run = sample_run()
    nothing = {"hits@1": None, "hits@5": None, "hits@10": None, "mrr": None, "mean_rank": None, "intervals": {}}
    run.metrics = {"source_to_target": nothing, "target_to_source": nothing, "pool": "test", "protocol": ""}
    write_run(run, models)
    app = open_page("home")
    assert_no_crash(app)
    assert "no test links" in words(app)


def test_a_damaged_run_is_listed_with_its_reason_beside_a_whole_one(run: str, models: Path, open_page: OpenPage) -> None:
    damaged = models / write_run(sample_run(), models, run_id="basic-s9-damaged")
    (damaged / "manifest.json").write_bytes(b"{oops")
    app = open_page("home")
    assert_no_crash(app)
    assert len(tables(app)[0]) == 1
    assert [expander.label for expander in app.expander] == ["1 run folder that cannot be opened", "Delete a run"]
    message = words(app).replace("\\", "")
    assert "towns/basic-s9-damaged" in message
    assert ": towns/basic-s9-damaged/manifest.json is not valid JSON" in message.translate(str.maketrans("", "", "\u2068\u2069*"))
    assert str(models) not in message, "where the server keeps its runs is nobody's business"
    asked = open_page("entity", run="towns/basic-s9-damaged").error[0].value.replace("\\", "")
    assert "towns/basic-s9-damaged cannot be opened: towns/basic-s9-damaged/manifest.json is not" in asked
    assert str(models) not in asked


def test_a_run_of_another_program_is_listed_as_broken(models: Path, open_page: OpenPage) -> None:
    write_run(sample_run(), models, data={"name": "strange"})
    app = open_page("home")
    assert_no_crash(app)
    assert "its manifest is incomplete" in words(app)
    assert "No runs yet" in words(app)


def test_interrupted_training_is_reported(models: Path, open_page: OpenPage) -> None:
    RunStore(models).create("towns", "basic-s1").close()
    app = open_page("home")
    assert_no_crash(app)
    assert "interrupted; the same train command resumes" in words(app)


def begun(models: Path, run_id: str) -> None:
    """An interrupted run that says how it was begun: as the one below ``run_id``."""
    with RunStore(models).create("europe", "semi-s1-0") as writer:
        note_beginning(writer, ResumeRecord(SAMPLES / "europe", RunConfig("literal", 1), run_id))


def test_an_interrupted_training_of_the_command_line_names_its_command(models: Path, open_page: OpenPage) -> None:
    begun(models, "literal-s1-0")
    app = open_page("home")
    assert_no_crash(app)
    assert [code.value for code in app.code if code.value.startswith("python")] == [
        f"python -m engine train sample_data/europe --variant literal --seed 1 --models {models}"
    ]


def test_an_interrupted_training_of_the_queue_is_resumed_at_its_job(models: Path, open_page: OpenPage) -> None:
    config = RunConfig("literal", 1)
    plan = plan_training(summarise(SAMPLES / "europe", config.data, config.seed), config, models)
    queue = JobQueue(models)
    job = queue.submit(plan).job
    begun(models, plan.run_id)
    assert not [link for link in links(open_page("home")) if link == f"train?job={job.id}"][1:], "it waits: watching it is all"
    queue.cancel(job.id)
    app = open_page("home")
    assert_no_crash(app)
    assert f"train?job={job.id}" in links(app)
    assert "same train command" not in words(app)
    assert not [code for code in app.code if code.value.startswith("python -m engine train")]


def test_a_run_stopped_early_says_so(models: Path, open_page: OpenPage) -> None:
    write_run(sample_run(), models, status="stopped")
    assert tables(open_page("home"))[0]["variant"].tolist() == ["basic (stopped early)"]


@pytest.mark.parametrize("label", HOSTILE_LABELS[:3])
def test_hostile_names_in_a_manifest_stay_text(models: Path, open_page: OpenPage, label: str) -> None:
    run = sample_run()
    data = run.manifest["data"]
    write_run(run, models, data={**data, "split": label, "source": {**data["source"], "name": label}})
    app = open_page("home")
    assert_no_crash(app)
    assert label not in words(app) or label.isalpha()


def test_data_sets_are_offered_to_be_trained_on(open_page: OpenPage) -> None:
    app = open_page("home")
    assert {link for link in links(app) if link.startswith("train?")} == {"train?data=europe", "train?data=world"}
    assert "not trained yet" in words(app)


def test_the_next_variant_of_a_trained_data_set_is_one_click_away(models: Path, open_page: OpenPage) -> None:
    run = sample_run()
    (europe,) = (one for one in data_sets() if one.name == "europe")
    assert europe.entities is not None
    assert europe.triples is not None
    sizes = {side: {**run.manifest["data"][side], "entities": europe.entities[at], "triples": europe.triples[at]} for at, side in enumerate(SIDES)}
    write_run(run, models, "europe", data={**run.manifest["data"], **sizes})
    (next_one,) = [link for link in links(open_page("home")) if "data=europe" in link]
    assert "variant=semi" in next_one


def test_a_data_set_is_trained_only_where_its_own_content_is(models: Path, open_page: OpenPage) -> None:
    """Not where other data of the same name are."""
    run = sample_run()
    record = {"fingerprint": "ab" * 32, "imported": "2026-11-01T12:00:00+00:00", "settings": {}}
    counts = {"source": {"entities": 3, "triples": 2}, "target": {"entities": 4, "triples": 5}, "links": 1}
    folder = paths.data_folder() / "towns"
    folder.mkdir(parents=True)
    (folder / RECORD).write_text(json.dumps({**record, "counts": counts}), encoding="utf-8")
    write_run(run, models, dataset="towns")
    write_run(run, models, dataset="world", run_id="basic-s0-00000001")  # another data set than the sample of this name
    app = open_page("home")
    assert_no_crash(app)
    assert {"train?data=towns", "train?data=world"} <= set(links(app))
    (folder / RECORD).write_text(json.dumps({**record, "fingerprint": run.manifest["data"]["fingerprint"], "counts": counts}), encoding="utf-8")
    cache.list_data_sets.clear()
    app = open_page("home")
    assert "train?data=towns" not in set(links(app))
    assert "train?data=world" in set(links(app))


def test_updates_name_their_parent(small_run: MemoryRun, models: Path, put_run: PutRun, open_page: OpenPage) -> None:
    put_run(small_run, models, "towns", "basic-s0-00000001", parent={"run": "towns-old/<b>basic</b>"})
    app = open_page("home")
    assert_no_crash(app)
    shown = re.sub("[\u2068\u2069]", "", words(app))
    assert r"basic\-s0\-00000001: trained from towns\-old\/\<b\>basic\<\/b\> on a new version of its data" in shown
    assert app.dataframe[0].value["time"].str.endswith("(update)").all()
