"""A models folder with one run, and the service in front of it, without a port."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from engine.serving.application import guarded_application
from engine.serving.settings import Settings
from tests.explanation.runs import drawn_run
from tests.run_fixture import analysed, sample_run, write_run

RUN = "towns/basic-s0-0123abcd"
AT = f"/runs/{RUN}"
WEIGHED = "drawn/semi-s0-01234567"
"""A run with weights that fit its embeddings, so that pairs are explained and new entities placed."""
TOKEN = "a-token-of-the-tests-0123456789"
BEARER = {"Authorization": f"Bearer {TOKEN}"}

Serve = Callable[..., TestClient]


@pytest.fixture(scope="session")
def served_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not to be changed."""
    folder = tmp_path_factory.mktemp("served") / "models"
    assert write_run(analysed(sample_run()), folder) == RUN
    dataset, run_id = WEIGHED.split("/")
    assert write_run(drawn_run(3, variant="semi"), folder, dataset, run_id) == WEIGHED
    return folder


def client_of(models: Path, **settings: Any) -> TestClient:
    """A client on this machine."""
    return TestClient(guarded_application(Settings(models, **settings)), base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture(scope="session")
def client(served_models: Path) -> TestClient:
    """Of a read-only service without a token."""
    return client_of(served_models)


@pytest.fixture
def own_models(served_models: Path, tmp_path: Path) -> Path:
    """A models folder that a test may change."""
    return shutil.copytree(served_models, tmp_path / "models")
