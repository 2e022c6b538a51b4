"""What the environment says of where things are kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.util import paths


@pytest.mark.parametrize(
    ("variable", "asked", "name"), [("DUAL_AMN_MODELS", paths.models_folder, "models"), ("DUAL_AMN_DATA", paths.data_folder, "data")]
)
def test_a_folder_is_the_one_that_is_named_else_the_projects_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, asked: object, name: str
) -> None:
    assert callable(asked)
    monkeypatch.setenv(variable, str(tmp_path))
    assert asked() == tmp_path
    for nothing in ("unset", ""):
        monkeypatch.setenv(variable, nothing) if nothing == "" else monkeypatch.delenv(variable)
        assert asked() == paths.PROJECT / name


def test_imports_are_allowed_from_the_named_folders_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DUAL_AMN_IMPORT", raising=False)
    assert paths.import_folders() == (paths.SAMPLES,)
    monkeypatch.setenv("DUAL_AMN_IMPORT", os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "b" / ".." / "c")]))
    assert paths.import_folders() == ((tmp_path / "a").resolve(), (tmp_path / "c").resolve())
    monkeypatch.setenv("DUAL_AMN_IMPORT", "")
    assert paths.import_folders() == ()
