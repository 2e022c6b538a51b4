"""The train page: what is asked for, what is watched, what is refused."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Radio

from app import state
from app.training_figures import curve_figure, curve_sentence, curve_table
from app.training_form import METHOD, METHOD_WORDS, SECTION_WORDS, offered_sections
from engine.config import PRESETS, SECTIONS, VARIANTS, RunConfig, section_options
from engine.data import load_task
from engine.importing import expectation
from engine.jobs import JobQueue, News, Point, RoundNews, plan_training, summarise
from engine.jobs.progress import Reporter, read_news
from engine.pipeline import Phase
from engine.reviews import Choice, ReviewStore
from engine.training.semi import Round
from engine.training.trainer import Progress
from engine.util.paths import data_folder, reviews_file, trainer_lock
from tests.app.conftest import OpenPage, assert_no_crash, figures, links, with_open, words
from tests.data.writers import small_sample, write_openea
from tests.run_fixture import sample_run, write_run

EUROPE = Path("sample_data") / "europe"


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """No trainer is started; where one would have been."""
    found: list[Path] = []

    def start(models: Path) -> bool:
        found.append(models)
        return True

    monkeypatch.setattr("engine.jobs.start_trainer", start)
    monkeypatch.setattr("engine.jobs.launch.start_trainer", start)
    return found


@pytest.fixture
def trainer(models: Path) -> Iterator[None]:
    """Somebody holds the trainer's lock, as a live trainer does."""
    trainer_lock(models).parent.mkdir(parents=True, exist_ok=True)
    with FileLock(trainer_lock(models)):
        yield


def queued(models: Path, variant: str = "basic", seed: int = 0) -> str:
    """A job in the queue; its id."""
    config = RunConfig.from_dict({"variant": variant, "seed": seed})
    return JobQueue(models).submit(plan_training(summarise(EUROPE.resolve(), config.data, seed), config, models), "Ann").job.id


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run()


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def test_it_says_what_to_expect_before_anything_starts(open_page: OpenPage) -> None:
    app = open_page("train", data="europe", variant="semi")
    assert_no_crash(app)
    assert not app.error
    assert "1,510 and 2,160 entities with 12,114 triples; 234 seed links" in words(app)
    assert "GiB" in metrics(app)["Memory"]
    assert metrics(app)["Time"].endswith("s")
    assert expectation(234, 1510).sentence in words(app)
    assert "Start training" in labels(app)


def test_starting_puts_a_job_into_the_queue_and_the_address_leads_to_it(models: Path, open_page: OpenPage, started: list[Path]) -> None:
    app = press(open_page("train", data="europe", variant="semi", seed="3", set=["encoder.dim=12"]), "Start training")
    assert_no_crash(app)
    (job,) = JobQueue(models).jobs()
    assert (job.dataset, job.variant, job.seed, job.config.encoder.dim, job.state) == ("europe", "semi", 3, 12, "queued")
    assert started == [models]
    assert app.query_params["job"] == job.id
    again = open_page("train", job=job.id)
    assert "Number 1 in the queue. You can close this page" in words(again)


def test_a_full_queue_refuses_in_a_sentence(models: Path, open_page: OpenPage, started: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    queued(models, seed=2)
    monkeypatch.setenv("DUAL_AMN_QUEUE", "1")
    app = press(open_page("train", data="europe"), "Start after 1 other job")
    assert_no_crash(app)
    assert "1 training run is waiting, the limit of this server" in words(app).replace("\\", "")
    assert (len(JobQueue(models).jobs()), started) == (1, [])


def test_the_same_training_twice_is_one_job(models: Path, open_page: OpenPage) -> None:
    queued(models, seed=2)
    app = open_page("train", data="europe", seed="2")
    assert "already in the queue" in words(app)
    assert not [label for label in labels(app) if label.startswith("Start ") and "worker" not in label]
    assert f"train?job={JobQueue(models).jobs()[0].id}" in links(app)


def test_one_that_started_the_same_a_moment_before_us_is_joined(models: Path, open_page: OpenPage) -> None:
    first = open_page("train", data="europe")
    job = queued(models)
    app = press(first, "Start training")
    assert_no_crash(app)
    assert [one.id for one in JobQueue(models).jobs()] == [job]


def test_the_form_is_about_the_data_of_the_page(models: Path, open_page: OpenPage) -> None:
    chosen = [
        {box.label: box.value for box in open_page("train", **asked).selectbox}["Data set"] for asked in ({}, {"run": "world/semi-s0-00000000"})
    ]
    assert chosen[1] == "world" != chosen[0]


def test_a_training_that_was_done_is_opened_and_not_repeated(models: Path, open_page: OpenPage) -> None:
    config = RunConfig()
    plan = plan_training(summarise(EUROPE.resolve(), config.data, 0), config, models)
    write_run(sample_run(), models, plan.dataset, plan.run_id)
    app = open_page("train", data="europe")
    assert "already exists" in words(app)
    assert "Start training" not in labels(app)


def test_live_progress_curve_and_rounds(models: Path, open_page: OpenPage, trainer: None) -> None:
    job = queued(models, "semi")
    JobQueue(models).take()
    reporter = Reporter(models, job)
    reporter.event(Phase("train", "Training it on cpu, 80 epochs"))
    for epoch in (1, 2):
        reporter.event(Progress(epoch, 80, 100.0 + epoch, float(epoch), 65.0, {"hits@1": 0.4 + epoch / 10, "mrr": 0.5}))
    reporter.event(Round(1, 4, 500, 400, 300, 270, "pool"))
    app = open_page("train", job=job)
    assert_no_crash(app)
    reported = words(app)
    assert [element.proto.text for element in app.get("progress")] == ["Epoch 2 of 80 · about 1 min 5 s left"]
    assert "Loss 101.000 → **102.000** in 2 epochs; Hits@1 on the validation links 0.500 → **0.600**" in reported
    assert len(figures(app)) == 1
    other = open_page("train", job=job, run="europe/basic-s0-00000000")  # of the page, not of the figure
    source = figures(other)[0]["layout"]["title"]["subtitle"]["text"]
    assert source == f"Data set europe, run {JobQueue(models).find(job).run_id}"
    assert app.dataframe[0].value["right"].tolist() == [0.9]
    press(app, "Stop training")
    assert JobQueue(models).find(job).state == "stopping"


def test_a_dead_trainer_is_said_and_its_training_can_be_resumed(models: Path, open_page: OpenPage, started: list[Path]) -> None:
    job = queued(models)
    JobQueue(models).take()
    app = open_page("train", job=job)
    assert "The worker ended unexpectedly" in words(app).replace("\\", "")
    press(app, "Resume")
    assert JobQueue(models).find(job).state == "queued"
    assert started == [models]


def test_the_queue_is_shown_although_the_form_cannot_be(models: Path, open_page: OpenPage) -> None:
    job = queued(models)
    app = open_page("train", data="no such data")
    assert "There is no data set" in app.error[0].value
    assert f"train?job={job}" in links(app)


def test_a_waiting_training_can_be_cancelled(models: Path, open_page: OpenPage) -> None:
    job = queued(models)
    app = open_page("train", job=job)
    assert "Jobs are queued, but no worker is running" in words(app)
    app = press(app, "Cancel")
    assert_no_crash(app)
    assert JobQueue(models).find(job).state == "cancelled"


def test_how_a_training_ended(models: Path, open_page: OpenPage) -> None:
    failed, done = queued(models, seed=1), queued(models, seed=2)
    queue = JobQueue(models)
    run = write_run(sample_run(), models)
    queue.end(failed, "failed", message="the loss became nan <b>in</b> epoch 4.")
    queue.end(done, "finished", run=run)
    app = open_page("train", job=failed)
    assert "The loss became nan" in app.error[0].value
    assert "<b>" not in words(app)
    app = open_page("train", job=done)
    assert_no_crash(app)
    assert "0.651" in metrics(app).values()
    assert next(metric.delta for metric in app.metric if metric.value == "0.651").endswith("n = 30")
    assert f"entity?run={run.replace('/', '%2F')}" in links(app)


def test_home_shows_the_training(models: Path, open_page: OpenPage) -> None:
    job = queued(models)
    queued(models, seed=1)
    app = open_page("home")
    assert "is queued · 1 more in the queue" in words(app)
    assert f"train?job={job}" in links(app)


@pytest.mark.parametrize(
    ("parameters", "reported"),
    [
        ({"job": "../../etc"}, "there is no job"),
        ({"job": "0" * 8}, "there is no job"),
        ({"data": "../../etc"}, "There is no data set"),
        ({"variant": "none"}, "Expected 'basic'"),
        ({"seed": "x"}, "Expected a whole number"),
        ({"seed": "-1"}, "must lie between 0"),
        ({"set": "encoder.dim=0"}, "encoder.dim must lie between 1 and 4096; got 0"),
        ({"set": "encoder.dim=many"}, "encoder.dim must be a whole number; got 'many'"),
        ({"set": "nothing.here=1"}, "unknown option 'nothing.here'"),
        ({"set": "<b>x</b>"}, "expects section.option=value"),
        ({"variant": "literal", "set": "literal.names=file:/etc/passwd"}, "names a file outside the folders of this server"),
        ({"variant": "literal", "set": "literal.encoder=vectors:../../etc/passwd"}, "names a file outside the folders of this server"),
        ({"set": "data.fold=../../etc"}, "fold"),
        ({"set": "encoder.dim=4096", "variant": "semi"}, ""),
    ],
)
def test_bad_addresses_and_settings_are_reported_in_a_sentence(models: Path, open_page: OpenPage, parameters: dict[str, str], reported: str) -> None:
    app = open_page("train", **{"data": "europe", **parameters})
    assert_no_crash(app)
    said = " ".join(str(error.value) for error in app.error).replace("\\", "")
    assert reported in said
    assert "<b>" not in words(app)
    assert not JobQueue(models).jobs()
    assert not reported or "Start training" not in labels(app)


def test_more_memory_than_there_is_is_refused(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.util.memory.available_memory", lambda: 1500.0)
    app = open_page("train", data="europe", set=["encoder.dim=1000"])
    said = app.error[0].value.replace("\\", "")
    assert "needs about" in said
    assert "encoder.dim=" in said
    assert "Start training" not in labels(app)


@pytest.mark.parametrize("variant", [*VARIANTS, "lightea"])
def test_the_form_has_a_widget_for_every_setting_of_the_method(variant: str, open_page: OpenPage) -> None:
    asked = {"variant": variant} if variant in VARIANTS else {"set": f"{METHOD}={variant}"}
    app = with_open(open_page("train", data="europe", **asked), state.ADVANCED)
    offered = " ".join(str(widget.help) for kind in (app.text_input, app.selectbox, app.checkbox) for widget in kind)
    for name, section in SECTIONS.items():
        keys = {option.key for option in section_options(section)}
        assert keys == {f"{name}.{field.name}" for field in dataclasses.fields(section)}
        shown = {key for key in keys if f"`{key}`" in offered}
        usual = {option.key for option in section_options(section) if not option.expert} - {METHOD}  # which has a list of its own
        assert shown == (usual if name in offered_sections(variant) else set())
    assert set(SECTION_WORDS) == set(SECTIONS)


def test_a_baseline_takes_the_place_of_the_variants(models: Path, open_page: OpenPage, started: list[Path]) -> None:
    app = open_page("train", data="europe", variant="semi", set=["encoder.dim=7", "search.top=5"])
    method = next(box for box in app.selectbox if box.label == "Method")
    assert list(method.options) == list(METHOD_WORDS.values())
    method.set_value(METHOD_WORDS["lightea"]).run()
    assert_no_crash(app)
    assert app.query_params["set"] == [f"{METHOD}=lightea", "search.top=5"]
    assert "variant" not in app.query_params
    assert_no_crash(press(app, "Start training"))
    (job,) = JobQueue(models).jobs()
    assert (job.variant, job.config.baseline.method, job.config.search.top) == ("lightea", "lightea", 5)
    assert started == [models]
    assert job.run_id.startswith("lightea-s0-")


def test_every_setting_says_in_words_what_it_is(open_page: OpenPage) -> None:
    pages = [
        with_open(open_page("train", data="europe", **asked), state.ADVANCED) for asked in ({"variant": "literal"}, {"set": f"{METHOD}=lightea"})
    ]
    shown = " ".join(words(app) for app in pages).translate(str.maketrans("", "", "\\\u2068\u2069"))
    for section in SECTIONS.values():
        for option in section_options(section):
            assert len(option.help.split()) >= 3, f"{option.key} says too little"
            assert option.expert or f"{option.help[:1].upper()}{option.help[1:]}." in shown, option.key


def test_what_is_set_is_kept_in_the_address_and_leaves_it_when_taken_back(open_page: OpenPage) -> None:
    app = with_open(open_page("train", data="europe"), state.ADVANCED)
    next(box for box in app.text_input if box.label == "dim").set_value("64").run()
    assert app.query_params["set"] == "encoder.dim=64"
    next(box for box in app.checkbox if box.label == "multi hop").uncheck().run()
    next(box for box in app.selectbox if box.label == "initializer").set_value("he").run()
    assert app.query_params["set"] == ["encoder.dim=64", "encoder.multi_hop=no", "encoder.initializer=he"]
    next(box for box in app.text_input if box.label == "dim").set_value("").run()
    next(box for box in app.checkbox if box.label == "multi hop").check().run()
    next(box for box in app.selectbox if box.label == "initializer").set_value("uniform").run()
    assert "set" not in app.query_params


def test_a_curve_without_validation_links(models: Path) -> None:
    trainer_lock(models).parent.mkdir(parents=True)
    reporter = Reporter(models, "0" * 8)
    reporter.event(Progress(1, 3, 5.0, 1.0, 2.0))
    news = read_news(models, "0" * 8)
    assert news is not None
    assert "no value yet" in curve_sentence(news)
    assert "every few epochs" not in curve_sentence(news, over=True)
    assert "accuracy is not measured during training" in curve_sentence(news, over=True)
    assert len(curve_figure(news, "basic").data) == 1
    assert curve_table(news.points)["loss"].tolist() == [5.0]


@pytest.mark.parametrize(("first", "each", "labels"), [(86, 2, ["start", "round 1"]), (4, 4, ["start", "round 2", "round 4", "round 6", "round 8"])])
def test_labels_of_rounds_do_not_overlap_on_narrow_screens(first: int, each: int, labels: list[str]) -> None:
    begun = [0, *range(first, first + 8 * each, each)]
    rounds = tuple(RoundNews(number, 8, epoch, 50, 5, None, None) for number, epoch in enumerate(begun))
    epochs = first + 8 * each
    figure = curve_figure(News(0.0, epochs=epochs, points=tuple(Point(epoch, 1.0) for epoch in range(1, epochs + 1)), rounds=rounds), "semi")
    assert [one.text for one in figure.layout.annotations] == labels
    assert len(figure.layout.shapes) == len(rounds), "each has its line"
    hovered = [words.removeprefix("<br>") for words in figure.data[0].customdata]
    assert hovered == ["" if epoch <= first else f"round {1 + (epoch - first - 1) // each}" for epoch in range(1, epochs + 1)]


def test_a_training_without_links_says_that_nothing_measures_it(models: Path, open_page: OpenPage, trainer: None) -> None:
    own_data(0)
    for side in "12":
        rows = "".join(f"{'ab'[int(side) - 1]}{one},title,word {one}\n" for one in range(20))
        (data_folder() / "mine" / f"attributes_{side}.csv").write_text(f"entity,attribute,value\n{rows}", encoding="utf-8")
    config = RunConfig.from_dict({"variant": "literal", "seed": 0})
    job = JobQueue(models).submit(plan_training(summarise(data_folder() / "mine", config.data, 0), config, models), "Ann").job.id
    JobQueue(models).take()
    reporter = Reporter(models, job)
    reporter.event(Round(0, 4, 50, 50, None, None, "pool"))
    reporter.event(Progress(1, 3, 5.0, 1.0, 2.0))
    reporter.event(Round(1, 4, 60, 10, None, None, "pool"))
    app = open_page("train", job=job)
    assert_no_crash(app)
    assert "no value yet" not in words(app)
    assert "accuracy is not measured during training" in words(app)
    assert figures(app)[0]["layout"]["title"]["text"] == "Training curve"
    rounds = app.dataframe[0].value
    assert rounds["round"].tolist() == ["start", "1"]
    assert "right" not in rounds


def test_a_curve_that_was_validated_once_does_not_rise_from_itself(models: Path) -> None:
    trainer_lock(models).parent.mkdir(parents=True)
    reporter = Reporter(models, "0" * 8)
    for epoch, reported in ((1, "validation links **0.500**."), (2, "validation links 0.500 → **0.750**.")):
        reporter.event(Progress(epoch, 3, 5.0, 1.0, 2.0, {"hits@1": 0.25 * (epoch + 1), "mrr": 0.8}))
        news = read_news(models, "0" * 8)
        assert news is not None
        assert reported in curve_sentence(news)


def test_a_queue_that_is_damaged_is_reported(models: Path, open_page: OpenPage) -> None:
    os.makedirs(models / ".jobs")
    (models / ".jobs" / "queue.sqlite3").write_bytes(b"no database at all" * 100)
    app = open_page("train")
    assert_no_crash(app)
    assert "cannot be used" in app.error[0].value
    assert_no_crash(open_page("home"))


def test_what_reviewers_decided_can_be_trained_with(models: Path, open_page: OpenPage) -> None:
    assert not open_page("train", data="europe").toggle
    task = load_task(EUROPE.resolve(), RunConfig().data, 0)
    models.mkdir(exist_ok=True)
    store = ReviewStore(reviews_file(models))
    for link, verdict in zip(task.test_links[:3], ("accept", "accept", "reject"), strict=True):
        pair = task.source.entities[link[0]], task.target.entities[link[1]]
        store.decide(task.fingerprint, Choice(*pair, verdict), "Ann", f"click-{link[0]}")  # type: ignore[arg-type]
    store.close()
    app = open_page("train", data="europe")
    assert app.toggle[0].label == "Train with reviews: 2 accepted, 1 rejected"
    assert "234 seed links" in words(app)
    app.toggle[0].set_value(True).run()
    assert_no_crash(app)
    assert "yes" in app.query_params["reviews"]
    assert "236 seed links" in words(app)


def test_seed_links_are_held_out_for_probabilities(open_page: OpenPage) -> None:
    app = open_page("train", data="europe", set=["data.train_ratio=0.3"])
    assert "fewer than 50 validation links" in words(app)
    press(app, "Hold out 15% of the seed links")
    assert app.query_params["set"] == ["data.train_ratio=0.3", "data.valid_ratio=0.15"]
    assert "fewer than 50" not in words(app)
    assert "53 validation" in words(app)


def test_a_fast_training_is_a_choice_and_its_settings_stand_below(models: Path, open_page: OpenPage, started: list[Path]) -> None:
    full, fast = (open_page("train", data="europe", preset=preset, set=["loss.scale=20"]) for preset in ("full", "fast"))
    assert_no_crash(fast)
    assert any("Hits@1 about 1 point lower" in words for one in fast.radio for words in one.proto.captions)
    assert seconds(metrics(fast)["Time"]) < seconds(metrics(full)["Time"])
    press(fast, "Start training")
    (job,) = JobQueue(models).jobs()
    assert job.config == RunConfig().with_values({**PRESETS["fast"], "loss.scale": 20.0})


def seconds(duration: str) -> float:
    """Of '1 min 05 s'."""
    return sum(float(number) * {"h": 3600, "min": 60, "s": 1}[unit] for number, unit in re.findall(r"([\d.]+) (h|min|s)", duration))


def links_replaced_by_older_ones(file: Path, content: str) -> None:
    """As when a folder is copied with its times."""
    other = file.with_name("other")
    other.write_text(content, encoding="utf-8")
    os.utime(other, (1, 1))
    other.replace(file)


def links_edited_in_place(file: Path, content: str) -> None:
    time = file.stat().st_mtime_ns
    file.write_text(content, encoding="utf-8")
    os.utime(file, ns=(time, time))


@pytest.mark.parametrize("change", [links_replaced_by_older_ones, links_edited_in_place])
def test_a_data_set_that_was_changed_is_read_again(change: Callable[[Path, str], None], models: Path, open_page: OpenPage) -> None:
    """In a folder below the data set's, whose own time says nothing of it; and the run of the former links is not offered for these."""
    folder = data_folder() / "mine"
    write_openea(folder, small_sample())
    config = RunConfig()
    plan = plan_training(summarise(folder, config.data, 0), config, models)
    write_run(sample_run(), models, plan.dataset, plan.run_id)
    before = words(open_page("train", data="mine"))
    assert "2 seed links" in before
    assert "already exists" in before
    (links_file,) = folder.rglob("train_links")
    change(links_file, links_file.read_text(encoding="utf-8").splitlines(keepends=True)[0])
    after = words(open_page("train", data="mine"))
    assert "1 seed link" in after
    assert "2 seed links" not in after
    assert "already exists" not in after


def test_the_queue_says_which_run_each_training_makes(models: Path, open_page: OpenPage) -> None:
    job = JobQueue(models).find(queued(models))
    assert job.run_id in words(open_page("train")).replace("\\", "")


def own_data(links: int) -> None:
    """A data set of a user's own: two rings with a number of known links that no file divides."""
    folder = data_folder() / "mine"
    folder.mkdir(parents=True)
    size = links + 20
    for number, letter in (("1", "a"), ("2", "b")):
        rows = "".join(f"{letter}{one},near,{letter}{(one + 1) % size}\n" for one in range(size))
        (folder / f"triples_{number}.csv").write_text(f"head,relation,tail\n{rows}", encoding="utf-8")
    if links:
        (folder / "links.csv").write_text("source,target\n" + "".join(f"a{one},b{one}\n" for one in range(links)), encoding="utf-8")


def known_links_choice(app: AppTest) -> list[Radio[str]]:
    return [one for one in app.radio if one.label.startswith("Use of the")]


def test_a_few_known_links_of_ones_own_all_train_and_the_page_says_so(open_page: OpenPage) -> None:
    own_data(12)
    app = open_page("train", data="mine", variant="semi")
    assert_no_crash(app)
    assert "12 seed links, 0 validation and 0 test links" in words(app)
    assert "All 12 known links are used for training: too few to hold some out" in words(app)
    assert not known_links_choice(app)
    assert expectation(12, 32).sentence in words(app)


@pytest.mark.parametrize(("links", "default", "other", "setting"), [(200, "all", "test", "0.8"), (600, "test", "all", "1")])
def test_where_both_are_reasonable_the_page_asks(open_page: OpenPage, links: int, default: str, other: str, setting: str) -> None:
    own_data(links)
    app = open_page("train", data="mine")
    assert_no_crash(app)
    kept = {"all": 0, "test": links // 5}
    assert f"{links - kept[default]} seed links, 0 validation and {kept[default]} test links" in words(app)
    assert known_links_choice(app)[0].value == default
    known_links_choice(app)[0].set_value(other).run()
    assert_no_crash(app)
    assert app.query_params["set"] in (f"data.train_ratio={setting}", [f"data.train_ratio={setting}"])
    assert f"{links - kept[other]} seed links, 0 validation and {kept[other]} test links" in words(app)
    known_links_choice(app)[0].set_value(default).run()
    assert "set" not in app.query_params


def test_links_that_a_file_divides_are_not_asked_about(open_page: OpenPage) -> None:
    assert not known_links_choice(open_page("train", data="europe"))


def test_without_links_semi_is_offered_and_what_cannot_start_says_why(open_page: OpenPage) -> None:
    own_data(0)
    for asked, shown, reason in (
        ({}, "semi", "share no name or value to start from"),
        ({"variant": "basic"}, "basic", "trains only on known links"),
    ):
        app = open_page("train", data="mine", **asked)
        assert_no_crash(app)
        assert next(one for one in app.radio if one.label == "Variant").value == shown
        assert [one.value for one in app.warning if reason in one.value]
        assert next(button for button in app.button if button.label == "Start training").disabled
        assert "0 known links" not in words(app)
        assert "only the literal variant can give probabilities. They are estimated" in words(app)
    for side in "12":
        rows = "".join(f"{'ab'[int(side) - 1]}{one},title,word {one}\n" for one in range(20))
        (data_folder() / "mine" / f"attributes_{side}.csv").write_text(f"entity,attribute,value\n{rows}", encoding="utf-8")
    app = open_page("train", data="mine")
    assert not next(button for button in app.button if button.label == "Start training").disabled
