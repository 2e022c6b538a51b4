"""What can be reached of a running app without its pages: by WebSocket, by paths, by links alone. The server is a real one, with sign-in set up."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from streamlit import config as streamlit_config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from app.pages import PAGES
from benchmarks.served_app import served
from tests.app.conftest import OpenPage, assert_no_crash
from tests.conftest import ROOT
from tests.run_fixture import sample_run, write_run

SECRET = "a-cookie-secret-of-the-tests-0123456789"
SECRETS = f"""
[auth]
redirect_uri = "http://localhost/oauth2callback"
cookie_secret = "{SECRET}"
client_id = "a"
client_secret = "the-client-secret-of-the-tests"
server_metadata_url = "http://127.0.0.1:9/.well-known/openid-configuration"
"""
SECONDS = 60


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The host and port of an app that asks to sign in."""
    folder = tmp_path_factory.mktemp("closed")
    write_run(sample_run(), folder / "models")
    (folder / "secrets.toml").write_text(SECRETS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMLIT_SECRETS_FILES", str(folder / "secrets.toml"))
        with served(folder / "models", folder / "data") as (address, _):
            yield urlsplit(address).netloc


def get(closed: str, path: str, method: str = "GET", headers: dict[str, str] | None = None, body: bytes | None = None) -> tuple[int, str, bytes]:
    """Status, Location and body of an answer."""
    connection = http.client.HTTPConnection(closed, timeout=SECONDS)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    found = answer.status, answer.getheader("Location") or "", answer.read()
    connection.close()
    return found


def opened(closed: str, **options: object) -> ClientConnection:
    return connect(f"ws://{closed}/_stcore/stream", subprotocols=["streamlit"], open_timeout=SECONDS, max_size=None, **options)  # type: ignore


def drawn(connection: ClientConnection, page: str, query: str) -> bytes:
    """All messages that draw a page."""
    message = BackMsg()
    message.rerun_script.page_name = page
    message.rerun_script.query_string = query
    connection.send(message.SerializeToString())
    received = b""
    while True:
        data = connection.recv(timeout=SECONDS)
        assert isinstance(data, bytes)
        received += data
        found = ForwardMsg()
        found.ParseFromString(data)
        if found.WhichOneof("type") == "script_finished":
            return received


def test_a_websocket_shows_nothing_before_signing_in(closed: str) -> None:
    with opened(closed) as connection:
        for page in ("", "entity", "export", "review", "import"):
            received = drawn(connection, page, "run=towns/basic-s0-0123abcd&source=http://one.example/resource/Entity_0")
            assert b"Please sign in" in received
            for words in (b"Germany", b"basic-s0", b"GeoOne", SECRET.encode(), b"the-client-secret"):
                assert words not in received


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}, {"Host": "evil.example", "Origin": "http://evil.example"}]
)
def test_a_websocket_of_another_site_is_refused(closed: str, headers: dict[str, str]) -> None:
    connection = http.client.HTTPConnection(closed, timeout=SECONDS)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    connection.request("GET", "/_stcore/stream", headers={**upgrade, **headers})
    assert connection.getresponse().status == 403
    connection.close()
    with pytest.raises(InvalidStatus):
        opened(closed, additional_headers=[("X-Test", "1")], origin="http://evil.example")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/app/static/../main.py",
        "/app/static/main.py",
        "/app/main.py",
        "/models/reviews.sqlite3",
        "/.streamlit/secrets.toml",
        "/.streamlit/config.toml",
        "/media/../../etc/passwd",
        "/media/0123456789abcdef.csv",
        "/component/streamlit.components.v1/../../../../etc/passwd",
        "/component/x/..%2f..%2fetc%2fpasswd",
        "/_stcore/bidi-components/x/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/requirements.txt",
    ],
)
def test_no_path_serves_files_of_the_server(closed: str, path: str) -> None:
    """The page of the app, which is the same for everyone, or nothing."""
    status, _, body = get(closed, path)
    page = get(closed, "/")[2]
    assert status in (400, 403, 404) or body == page
    for words in (b"root:", b"import streamlit", SECRET.encode(), b"SQLite format", b"maxUploadSize", b"faiss"):
        assert words not in body


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/_stcore/upload_file/x/y"),
        ("POST", "/_stcore/upload_file/x/y"),
        ("DELETE", "/_stcore/upload_file/x/y"),
        ("POST", "/_stcore/agent/interact"),
        ("POST", "/_stcore/agent/mcp"),
    ],
)
def test_nothing_can_be_uploaded_or_steered_without_a_session(closed: str, method: str, path: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    status, _, found = get(closed, path, method, {"Content-Type": "application/json"}, body)
    assert status >= 400
    assert b"Germany" not in found


def test_what_streamlit_offers_besides_pages_is_off() -> None:
    for option in ("server.enableAgentApi", "server.enableStaticServing", "global.developmentMode"):
        assert streamlit_config.get_option(option) is False
    assert streamlit_config.get_option("server.headless") is True  # no visitor installs anything into the project


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "//evil.example/%2e%2e",
        "/\\evil.example",
        "/%2f%2fevil.example/",
        "/entity//evil.example",
        "/oauth2callback?next=//evil.example",
    ],
)
def test_no_path_redirects_to_another_site(closed: str, path: str) -> None:
    _, location, _ = get(closed, path, headers={"Host": closed})
    assert "evil.example" not in location
    assert not location.startswith("//")


ACTING = {
    "verdict": "accept",
    "delete": "towns/basic-s0-0123abcd",
    "deleting": "towns/basic-s0-0123abcd",
    "submit": "1",
    "start": "1",
    "stop": "1",
    "reviewer": "Eve",
    "download": "1",
    "token": "0" * 32,
    "store": "yes",
}


def digests(folder: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("page", [page.name for page in PAGES])
def test_opening_a_link_changes_nothing(page: str, run: str, models: Path, open_page: OpenPage) -> None:
    """Leases of pairs apart, which a reviewer's page takes for some minutes: they decide nothing."""
    before = digests(models / "towns")
    app = open_page(page, run=run, source="http://one.example/resource/Entity_20", target="http://two.example/q/Q3", **ACTING)
    assert_no_crash(app)
    assert digests(models / "towns") == before
    assert not (models / ".jobs").exists()
    assert not list((models.parent / "data").glob("*"))
    if (models / "reviews.sqlite3").exists():
        from engine.reviews import ReviewStore

        assert ReviewStore(models / "reviews.sqlite3").history("0" * 64) == []


def test_the_app_answers_to_this_machines_names_unless_it_is_opened() -> None:
    """Another name for 127.0.0.1, which any page may have, does not reach a WebSocket; who opens the app says which names it has."""
    kept = streamlit_config.get_option("server.allowedHosts")
    assert list(kept) == ["localhost", "127.0.0.1", "::1"]
    for name in ("Procfile", "Containerfile"):
        assert "--server.allowedHosts" in (ROOT / name).read_text(encoding="utf-8")
