"""The tiny data set of the queue's tests, and folders of a test's own."""

from __future__ import annotations

import pytest

from tests.jobs.conftest import data, models, plan

__all__ = ["data", "models", "no_other_folders", "plan"]


@pytest.fixture(autouse=True)
def no_other_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stage sets itself ends with its test."""
    folder = tmp_path_factory.mktemp("own")
    monkeypatch.setenv("DUAL_AMN_MODELS", str(folder / "models"))
    monkeypatch.setenv("DUAL_AMN_DATA", str(folder / "data"))
