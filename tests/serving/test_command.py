"""``python -m engine serve``: what it refuses to start with, and how it stops."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.serving.settings import TOKEN_VARIABLE, is_loopback
from tests.conftest import ROOT
from tests.processes import Forked
from tests.serving.conftest import RUN, TOKEN


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["serve", *words]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.count("\n") == 1
    return found.err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "tools.example.org", ""])
def test_other_machines_need_a_token(capsys: pytest.CaptureFixture[str], served_models: Path, host: str) -> None:
    assert TOKEN_VARIABLE in refusal(capsys, "--host", host, "--models", str(served_models))


def test_storing_decisions_needs_a_token(capsys: pytest.CaptureFixture[str], served_models: Path) -> None:
    assert TOKEN_VARIABLE in refusal(capsys, "--allow-reviews", "--models", str(served_models))


@pytest.mark.parametrize("token", ["short", "with spaces in between", "schlüssel-schlüssel", "line\nbreak-line-break"])
def test_a_token_that_is_easily_guessed_or_no_header_is_refused_and_not_repeated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, token)
    assert token not in refusal(capsys)


def test_a_folder_or_port_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path, served_models: Path) -> None:
    assert "does not exist" in refusal(capsys, "--models", str(tmp_path / "none"))
    assert "65535" in refusal(capsys, "--port", "70000")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "choose another one with --port" in refusal(capsys, "--port", str(taken.getsockname()[1]), "--models", str(served_models))


def test_without_the_packages_one_sentence_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, served_models: Path) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "fastapi" else find(name, *rest))
    assert "'fastapi'" in (message := refusal(capsys, "--models", str(served_models)))
    assert "requirements-extras.txt" in message


def test_only_three_modules_need_the_optional_packages() -> None:
    needing = set()
    for path in (ROOT / "engine").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if {name.partition(".")[0] for name in names} & {"fastapi", "uvicorn", "pydantic", "starlette"}:
                needing.add(path.relative_to(ROOT / "engine").as_posix())
    assert needing == {"serving/application.py", "serving/routes.py", "serving/server.py"}


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.7", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_what_this_machine_alone_can_reach(host: str, loopback: bool) -> None:
    assert is_loopback(host) == loopback


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_answers_over_a_port_and_stops_when_asked(served_models: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    process = Forked(["serve", "--port", "0", "--models", str(served_models)])
    try:
        line = process.stderr.readline()
        (address,) = re.findall(r"at (http://127\.0\.0\.1:\d+);", line)
        assert TOKEN not in line
        with urllib.request.urlopen(f"{address}/health", timeout=30) as found:
            assert json.load(found)["status"] == "ok"
            assert "server" not in found.headers
        asked = urllib.request.Request(f"{address}/runs/{RUN}/match?entity=source:Germany", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(asked, timeout=60) as found:
            assert len(json.load(found)["matches"]) == 5
        process.send_signal(number)
        assert process.end(60) == (0, "", "Stopped.\n")
    except BaseException:
        process.kill()
        raise
