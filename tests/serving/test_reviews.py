"""Decisions over HTTP: only where the service may store them, all or none, each once."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from engine.serving.examples import EXAMPLES
from tests.serving.conftest import AT, BEARER, TOKEN, client_of

ONE, TWO = "http://one.example/resource/Entity_", "http://two.example/q/Q"
GOOD = {"source": f"{ONE}20", "target": f"{TWO}3", "verdict": "accept"}
BODY = {"author": "Ann", "decisions": [GOOD], "click": "c1"}


@pytest.fixture
def writer(own_models: Path) -> TestClient:
    found = client_of(own_models, token=TOKEN, allow_reviews=True)
    found.headers.update(BEARER)
    return found


def stored(client: TestClient) -> list[dict[str, Any]]:
    decisions: list[dict[str, Any]] = client.get(f"{AT}/reviews").json()["decisions"]
    return decisions


def digests(folder: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def test_a_service_is_read_only_unless_started_otherwise(own_models: Path) -> None:
    before = digests(own_models)
    for client in (client_of(own_models), client_of(own_models, token=TOKEN)):
        found = client.post(f"{AT}/reviews", json=BODY, headers=BEARER)
        assert (found.status_code, found.json()["error"]["code"]) == (403, "read_only")
        for address in ("/runs", AT, f"{AT}/metrics", f"{AT}/reviews", f"{AT}/match?entity=source:Germany"):
            assert client.get(address, headers=BEARER).status_code == 200
    assert digests(own_models) == before


def test_a_decision_is_stored_with_what_the_run_says_of_the_pair(writer: TestClient) -> None:
    found = writer.post(f"{AT}/reviews", json=BODY)
    assert found.status_code == 200, found.text
    (decision,) = stored(writer)
    assert found.json()["decisions"] == [decision]
    assert set(decision) == set(EXAMPLES["reviews"]["decisions"][0])
    assert {name: decision[name] for name in ("source", "target", "verdict", "author", "note")} == {**GOOD, "author": "Ann", "note": ""}
    pair = writer.get(f"{AT}/pair", params={"source": GOOD["source"], "target": GOOD["target"]}).json()
    assert decision["seen"] == {"run": AT.removeprefix("/runs/"), "csls": pair["csls"], "probability": pair["probability"]}


def test_the_same_request_is_stored_once(writer: TestClient) -> None:
    answers = [writer.post(f"{AT}/reviews", json=BODY).json() for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert len(stored(writer)) == 1
    other = writer.post(f"{AT}/reviews", json={**BODY, "author": "Bo"})
    assert (other.status_code, other.json()["error"]["code"]) == (422, "review_refused")


def test_decisions_come_in_pages(writer: TestClient) -> None:
    many = [{**GOOD, "target": f"{TWO}{number}"} for number in range(7)]
    assert writer.post(f"{AT}/reviews", json={"author": "Ann", "decisions": many}).status_code == 200
    pages = [writer.get(f"{AT}/reviews?limit=3&offset={offset}").json() for offset in (0, 3, 6, 9)]
    assert [len(page["decisions"]) for page in pages] == [3, 3, 1, 0]
    assert {page["total"] for page in pages} == {7}
    assert [one["target"] for page in pages for one in page["decisions"]] == [one["target"] for one in many]


@pytest.mark.parametrize(
    "body",
    [
        {**BODY, "author": "ana@example.org"},
        {**BODY, "author": "  "},
        {**BODY, "author": "x\u202ey"},
        {**BODY, "author": "x" * 81},
        {**BODY, "decisions": [GOOD, GOOD]},
        {**BODY, "decisions": [GOOD, {**GOOD, "source": "http://one.example/resource/none"}]},
        {**BODY, "decisions": [GOOD, {**GOOD, "source": "Germany"}]},
        {**BODY, "decisions": [GOOD, {**GOOD, "target": f"{TWO}4", "verdict": "withdraw"}]},
        {**BODY, "decisions": [{**GOOD, "note": "x" * 2001}]},
        {**BODY, "decisions": []},
        {**BODY, "click": "x" * 201},
        {**BODY, "fingerprint": "0" * 64},
    ],
    ids=lambda body: repr(body)[-60:],
)
def test_nothing_is_stored_of_a_request_with_a_mistake(writer: TestClient, body: dict[str, Any]) -> None:
    found = writer.post(f"{AT}/reviews", json=body)
    assert found.status_code == 422
    assert found.json()["error"]["code"] in ("unusable_value", "unusable_record")
    assert stored(writer) == []


def test_no_decision_without_the_token(own_models: Path) -> None:
    client = client_of(own_models, token=TOKEN, allow_reviews=True)
    assert client.post(f"{AT}/reviews", json=BODY).status_code == 401
    assert not list(own_models.glob("reviews*"))


@pytest.mark.parametrize("reason", ["database or disk is full", "disk I/O error", "attempt to write a readonly database", "database is locked"])
def test_a_decision_that_cannot_be_stored_now_can_be_sent_again(reason: str, writer: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("engine.util.sqlite.connect", lambda *_: (_ for _ in ()).throw(sqlite3.OperationalError(reason)))
        found = writer.post(f"{AT}/reviews", json=BODY)
    assert (found.status_code, found.json()["error"]["code"]) == (503, "not_possible_now")
    assert found.json()["error"]["message"].endswith(".")
    assert writer.post(f"{AT}/reviews", json=BODY).status_code == 200
    assert len(stored(writer)) == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(24, "Too many open files"), "not_possible_now"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out_of_memory"),
        (MemoryError(), "out_of_memory"),
    ],
)
def test_a_question_without_files_or_memory_is_no_defect(error: Exception, code: str, writer: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runs.RunStore.list", lambda *_: (_ for _ in ()).throw(error))
    found = writer.get("/runs")
    assert (found.status_code, found.json()["error"]["code"]) == (503, code)
