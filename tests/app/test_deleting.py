"""Deleting runs from the home page: who may, after which question, and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import sign_in
from app.sign_in import at_this_machine
from engine.config import RunConfig
from engine.jobs import JobQueue, plan_training, summarise
from engine.runs import RunStore
from tests.app.conftest import OpenPage, assert_no_crash, words
from tests.app.test_sign_in import ANA, ONE, opened
from tests.run_fixture import MemoryRun, sample_run, write_run

ADMINISTRATOR = {"emails": ["@example.org"], "administrators": ["ana@example.org"]}


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in, "may_delete", lambda: True)


def press(app: AppTest, label: str, number: int = 0) -> AppTest:
    return [button for button in app.button if button.label == label][number].click().run()


def chosen(app: AppTest, run: str) -> AppTest:
    """With this run chosen among those that can be deleted."""
    return next(box for box in app.selectbox if box.label == "Run to delete").set_value(run).run()


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def ids(models: Path) -> list[str]:
    return sorted(one.id for one in RunStore(models).list())


@pytest.mark.usefixtures("allowed")
def test_a_run_is_deleted_after_a_question(whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    kept = write_run(whole_run, models, run_id="literal-s0", variant="literal", training={"structure_run": "towns/semi-s0"})
    gone = write_run(whole_run, models, run_id="semi-s0", variant="semi", created="2026-10-30T12:00:00+00:00")
    app = press(chosen(open_page("home"), gone), "Delete run")
    assert ids(models) == [kept, gone], "nothing goes before the answer"
    message = words(app).replace("\\", "")
    assert "Delete \u2068towns/semi-s0\u2069 permanently?" in message
    assert "towns/literal-s0\u2069 was built on it and remains complete" in message
    assert press(app, "Keep run").button
    assert ids(models) == [kept, gone]
    app = press(press(app, "Delete run"), "Delete permanently")
    assert_no_crash(app)
    assert ids(models) == [kept]
    assert "was deleted" in app.success[0].value
    assert "Delete permanently" not in labels(app)


@pytest.mark.usefixtures("allowed")
def test_a_run_that_was_replaced_since_the_question_stays(whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    run = write_run(whole_run, models)
    app = press(open_page("home"), "Delete run")
    (listed,) = RunStore(models).list()
    RunStore(models).delete(listed)
    write_run(whole_run, models, seed=7)
    app = press(app, "Delete permanently")
    assert_no_crash(app)
    assert "has changed in the meantime" in app.error[0].value
    assert ids(models) == [run]


@pytest.mark.usefixtures("allowed")
def test_interrupted_and_damaged_runs_can_be_deleted(models: Path, open_page: OpenPage) -> None:
    RunStore(models).create("towns", "basic-s1").close()
    (models / "towns" / "damaged").mkdir()
    app = open_page("home")
    assert labels(app).count("Delete run") == 2
    for _ in range(2):
        app = press(press(app, "Delete run"), "Delete permanently")
        assert_no_crash(app)
        assert not app.error
    assert not ids(models)


@pytest.mark.usefixtures("allowed")
def test_what_is_trained_or_waits_to_be_resumed_stays(models: Path, open_page: OpenPage) -> None:
    config = RunConfig()
    plan = plan_training(summarise((Path("sample_data") / "europe").resolve(), config.data, 0), config, models)
    JobQueue(models).submit(plan)
    RunStore(models).create(plan.dataset, plan.run_id).close()
    app = press(press(open_page("home"), "Delete run"), "Delete permanently")
    assert_no_crash(app)
    assert "Cancel or stop it" in app.error[0].value
    assert ids(models) == [plan.name]
    with RunStore(models).create("towns", "basic-s1"):
        app.run()
        assert labels(app).count("Delete run") == 1, "one that is being trained right now is not offered"


@pytest.mark.parametrize(
    ("secrets", "user", "here", "offered"),
    [
        ({}, None, True, True),
        ({}, None, False, False),
        ({"auth": ONE, "access": ADMINISTRATOR}, ANA, False, True),
        ({"auth": ONE, "access": {**ADMINISTRATOR, "administrators": []}}, ANA, True, False),
        ({"auth": ONE, "access": {"emails": ["@example.org"]}}, ANA, True, False),
        ({"auth": ONE}, ANA, True, False),
        ({"auth": ONE, "access": ADMINISTRATOR}, {**ANA, "email": "bo@example.org"}, True, False),
    ],
)
def test_only_those_who_may_are_offered_it(
    models: Path, secrets: dict[str, Any], user: dict[str, Any] | None, here: bool, offered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in, "at_this_machine", lambda *_: here)
    app = opened(models, secrets, user)
    assert_no_crash(app)
    assert ("Delete run" in labels(app)) == offered


@pytest.mark.parametrize(
    ("listens_at", "headers", "expected"),
    [
        ("127.0.0.1", {"Host": "localhost:8501"}, True),
        ("localhost", {"Host": "127.0.0.1:8501"}, True),
        ("::1", {"Host": "[::1]:8501"}, True),
        (None, {"Host": "localhost:8501"}, False),
        ("0.0.0.0", {"Host": "localhost:8501"}, False),
        ("127.0.0.1", {"Host": "tools.example.org"}, False),
        ("127.0.0.1", {"Host": "localhost", "X-Forwarded-For": "203.0.113.7"}, False),
        ("127.0.0.1", {"Host": "localhost", "x-real-ip": "203.0.113.7"}, False),
    ],
)
def test_who_sits_at_the_machine(listens_at: str | None, headers: dict[str, str], expected: bool) -> None:
    assert at_this_machine(listens_at, headers) == expected


def test_permission_is_asked_again_at_the_last_click(models: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(sample_run(), models)
    monkeypatch.setattr(sign_in, "may_delete", lambda: True)
    app = press(open_page("home"), "Delete run")
    monkeypatch.setattr(sign_in, "may_delete", lambda: False)
    app = press(app, "Delete permanently")
    assert "Only administrators" in app.error[0].value
    assert ids(models) == [run]
