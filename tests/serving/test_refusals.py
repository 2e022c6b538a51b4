"""What is refused, with which status and code, and that nothing of the server shows in it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from engine.serving import guards
from engine.serving.guards import LONGEST_ADDRESS, MOST_BYTES, Guard, Message
from tests.serving.conftest import AT, BEARER, TOKEN, WEIGHED, client_of

DEEP = "[" * 100_000
WEIGHED_AT = f"/runs/{WEIGHED}"


def problem(found: Any) -> dict[str, Any]:
    """The error of an answer, which is one sentence and shows nothing of how the service is made."""
    assert found.headers["content-type"] == "application/json"
    error: dict[str, Any] = found.json()["error"]
    assert set(error) <= {"code", "message", "candidates"}
    assert error["message"].endswith(".")
    assert "Traceback" not in found.text
    assert "\n" not in error["message"]
    return error


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("/", 404, "no_such_address"),
        ("/runs/", 404, "no_such_address"),
        ("/static/../../etc/passwd", 404, "no_such_address"),
        ("/runs/towns/none", 404, "run_not_found"),
        ("/runs/none/basic-s0-0123abcd", 404, "run_not_found"),
        ("/runs/%2e%2e/basic-s0-0123abcd", 404, "run_not_found"),
        ("/runs/towns/%2e%2e", 404, "run_not_found"),
        ("/runs/.jobs/queue.sqlite3", 404, "run_not_found"),
        ("/runs/towns/basic-s0-0123abcd%00", 404, "run_not_found"),
        (f"/runs/towns/{'x' * 3000}", 404, "run_not_found"),
        (f"{AT}/match", 422, "unusable_value"),
        (f"{AT}/match?entity=", 422, "unusable_value"),
        (f"{AT}/match?entity=Atlantis", 404, "entity_not_found"),
        (f"{AT}/match?entity=Germany", 422, "entity_ambiguous"),
        (f"{AT}/match?entity=Germany&side=left", 422, "unusable_value"),
        (f"{AT}/match?entity=source:Germany&top=0", 422, "unusable_value"),
        (f"{AT}/match?entity=source:Germany&top=1001", 422, "unusable_value"),
        (f"{AT}/match?entity=source:Germany&top=1e3", 422, "unusable_value"),
        (f"{AT}/match?entity=source:Germany&pool=some", 422, "unusable_value"),
        (f"{AT}/match?entity=%00%0a%1b[31m", 404, "entity_not_found"),
        (f"{AT}/match?entity=%ff%fe", 404, "entity_not_found"),
        (f"{AT}/match?entity={'x' * 20_001}", 422, "unusable_value"),
        (f"{AT}/match?entity=" + quote("' OR 1=1 --"), 404, "entity_not_found"),
        (f"{AT}/search?text=a&limit=-1", 422, "unusable_value"),
        (f"{AT}/search?text={'x' * 501}", 422, "unusable_value"),
        (f"{AT}/pair?source=Germany", 422, "unusable_value"),
        (f"{WEIGHED_AT}/explain?source=a%202&target=b%205&remove=Atlantis", 404, "evidence_not_found"),
        (f"{WEIGHED_AT}/explain?source=a%202&target=b%205&remove=relation:none", 404, "evidence_not_found"),
        (f"{WEIGHED_AT}/explain?source=a%202&target=b%205&remove=%22open", 422, "unusable_value"),
        (f"{WEIGHED_AT}/explain?source=a%202&target=b%205&remove=p%20q%20r%20s", 422, "unusable_value"),
        (f"{WEIGHED_AT}/explain?source=a%202&target=b%205&top=-1", 422, "unusable_value"),
        (f"{AT}/reviews?offset=-1", 422, "unusable_value"),
    ],
)
def test_addresses_that_cannot_be_answered(client: TestClient, address: str, status: int, code: str) -> None:
    found = client.get(address, follow_redirects=False)
    assert (found.status_code, problem(found)["code"]) == (status, code)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, "unusable_value"),
        (b"{", 400, "not_json"),
        (b"\xff\xfe", 400, "not_json"),
        (DEEP.encode(), 400, "not_json"),
        (b"[]", 422, "unusable_value"),
        (b"{}", 422, "unusable_value"),
        (b'{"entities": []}', 422, "unusable_value"),
        (b'{"entities": "x"}', 422, "unusable_value"),
        (b'{"entities": [{"id": ""}]}', 422, "unusable_value"),
        (b'{"entities": [{"id": 5}]}', 422, "unusable_value"),
        (b'{"entities": [{"id": "x", "path": "/etc/passwd"}]}', 422, "unusable_value"),
        (b'{"entities": [{"id": "x", "triples": [["x", "r"]]}]}', 422, "unusable_value"),
        (b'{"entities": [{"id": "x", "label": NaN}]}', 422, "unusable_value"),
        (b'{"entities": [{"id": "x", "label": "\\ud800"}]}', 422, "unusable_value"),
        (b'{"entities": [{"id": "x"}, {"id": "x"}]}', 422, "unusable_record"),
        (b'{"entities": [{"id": "a 1"}]}', 422, "unusable_record"),
        (b'{"entities": [{"id": "x"}], "models": "/tmp"}', 422, "unusable_value"),
        (b'{"entities": [{"id": "x"}], "top": 100000}', 422, "unusable_value"),
        (json.dumps({"entities": [{"id": f"x{number}"} for number in range(101)]}).encode(), 422, "unusable_value"),
        (b" " * (MOST_BYTES + 1), 413, "too_large"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_bodies_that_cannot_be_used(client: TestClient, body: bytes, status: int, code: str) -> None:
    found = client.post(f"{WEIGHED_AT}/match", content=body, headers={"Content-Type": "application/json"})
    assert (found.status_code, problem(found)["code"]) == (status, code)


def test_unknown_parts_of_a_new_entity_are_named_and_the_rest_counts(client: TestClient) -> None:
    triples = [["new", "a relation 0", "a 1"], ["new", "=cmd|' /C calc'!A0", "a 1"]]
    (found,) = client.post(f"{WEIGHED_AT}/match", json={"entities": [{"id": "new", "triples": triples}]}).json()["entities"]
    assert found["used"] == 1
    assert "=cmd" in found["ignored"][0]


def test_what_may_be_meant_is_listed(client: TestClient) -> None:
    error = problem(client.get(f"{AT}/match?entity=Germany"))
    assert len(error["candidates"]) == 2
    for one in error["candidates"]:
        assert client.get(f"{AT}/match", params={"entity": one}).status_code == 200


@pytest.mark.parametrize("method", ["put", "delete", "patch"])
def test_other_methods_are_refused(client: TestClient, method: str) -> None:
    found = client.request(method, AT)
    assert (found.status_code, problem(found)["code"]) == (405, "method_not_allowed")


def test_an_address_that_is_too_long_is_refused(client: TestClient) -> None:
    found = client.get(f"{AT}/match?entity={'x' * LONGEST_ADDRESS}")
    assert (found.status_code, problem(found)["code"]) == (414, "address_too_long")


def test_messages_show_no_folder_of_the_server(own_models: Path) -> None:
    file = own_models / AT.removeprefix("/runs/") / "entities.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    client = client_of(own_models)
    found = client.get(f"{AT}/match?entity=source:Germany")
    assert (found.status_code, problem(found)["code"]) == (500, "run_damaged")
    assert str(own_models.parent) not in found.text
    assert "entities.parquet" in found.text
    assert client.get("/runs/none/none").text.count(str(own_models.parent)) == 0


def test_a_defect_gives_one_sentence(served_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(served_models)
    monkeypatch.setattr("engine.serving.answers.run_answer", lambda run: 1 / 0)
    found = client.get(AT)
    assert (found.status_code, problem(found)["code"]) == (500, "internal")
    assert "division" not in found.text


def test_no_memory_gives_one_sentence(served_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(run: object) -> None:
        raise MemoryError

    monkeypatch.setattr("engine.serving.answers.run_answer", fail)
    found = client_of(served_models).get(AT)
    assert (found.status_code, problem(found)["code"]) == (503, "out_of_memory")


# Who is let in


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": f"token={TOKEN}"},
    ],
)
@pytest.mark.parametrize("address", ["/runs", AT, f"{AT}/reviews", f"{AT}/match?entity=x&token={TOKEN}", "/nothing"])
def test_without_the_token_nothing_is_shown(served_models: Path, headers: dict[str, str], address: str) -> None:
    found = client_of(served_models, token=TOKEN).get(address, headers=headers)
    assert (found.status_code, problem(found)["code"]) == (401, "unauthorised")
    assert found.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in found.text


def test_the_token_lets_in_from_any_host(served_models: Path) -> None:
    client = client_of(served_models, token=TOKEN, host="0.0.0.0")
    for headers in (BEARER, {"Authorization": f"bearer {TOKEN}", "Host": "tools.example.org"}):
        assert client.get("/runs", headers=headers).status_code == 200
    twice = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer other")]
    assert client.get("/runs", headers=twice).status_code == 401


def test_the_token_is_compared_in_constant_time(served_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr(guards.hmac, "compare_digest", compare)
    client_of(served_models, token=TOKEN).get("/runs", headers={"Authorization": "Bearer x"})
    assert compared == [(b"x", TOKEN.encode())]


@pytest.mark.parametrize("address", ["/health", "/docs", "/openapi.json"])
def test_what_shows_nothing_of_a_run_needs_no_token(served_models: Path, address: str) -> None:
    found = client_of(served_models, token=TOKEN).get(address)
    assert found.status_code == 200
    assert "towns" not in found.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8600", "", "[::1", "2130706433x"])
def test_without_a_token_another_host_name_is_refused(client: TestClient, host: str) -> None:
    found = client.get("/runs", headers={"Host": host})
    assert (found.status_code, problem(found)["code"]) == (403, "foreign_host")


@pytest.mark.parametrize("host", ["localhost:8600", "127.0.0.1:1", "[::1]:8600", "LOCALHOST"])
def test_this_machines_names_are_let_in(client: TestClient, host: str) -> None:
    assert client.get("/runs", headers={"Host": host}).status_code == 200


def test_no_page_of_another_site_may_read_answers(client: TestClient) -> None:
    found = client.get("/runs", headers={"Origin": "https://evil.example"})
    assert not [name for name in found.headers if name.startswith("access-control")]
    assert client.options("/runs", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}).status_code == 405
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["cache-control"] == "no-store"


# The guard by itself


def call(guard: Guard, scope: Message, *received: Message, wait: bool = False) -> list[Message]:
    """What the guard sends; ``wait``: after what is received, nothing comes any more."""
    sent: list[Message] = []
    waiting = list(received)

    async def receive() -> Message:
        if not waiting and wait:
            await asyncio.sleep(60)
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(guard(scope, receive, send))
    return sent


async def echo(scope: Message, receive: Any, send: Any) -> None:
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


SCOPE = {"type": "http", "path": "/x", "raw_path": b"/x", "query_string": b"", "headers": [(b"host", b"localhost")]}
PART = {"type": "http.request", "body": b"abc", "more_body": True}
END = {"type": "http.request", "body": b"d", "more_body": False}


def test_a_body_in_parts_arrives_whole() -> None:
    assert call(Guard(echo), SCOPE, PART, END)[1]["body"] == b"abcd"


def test_a_body_that_grows_beyond_the_limit_is_refused_although_it_announced_no_length() -> None:
    assert call(Guard(echo, most_bytes=5), SCOPE, PART, PART, PART)[0]["status"] == 413


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    assert call(Guard(echo, body_seconds=0.02), SCOPE, PART, wait=True)[0]["status"] == 408


def test_a_part_of_a_body_is_not_looked_at_when_the_client_has_gone() -> None:
    assert call(Guard(echo), SCOPE, PART, {"type": "http.disconnect"})[0]["status"] == 408


def test_a_crowd_has_to_wait_and_health_still_answers() -> None:
    guard = Guard(echo, most_at_once=0)
    assert call(guard, SCOPE, END)[0]["status"] == 503
    assert call(guard, {**SCOPE, "path": "/health"}, END)[0]["status"] == 200
    assert call(guard, SCOPE, END)[0]["status"] == 503


def test_websockets_are_closed() -> None:
    assert call(Guard(echo), {**SCOPE, "type": "websocket"}) == [{"type": "websocket.close", "code": 1008}]
