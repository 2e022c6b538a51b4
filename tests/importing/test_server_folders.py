"""Only what lies in the import folders can be asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import DataImportError
from engine.importing import find, offered
from tests.data.writers import WRITERS, small_sample
from tests.importing.test_archives import pack_tgz


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "allowed"
    WRITERS["csv"][1](folder / "cities", small_sample())
    WRITERS["openea"][1](folder / "deep" / "openea", small_sample())
    pack_tgz(folder / "packed.tar.gz", {"a": b"x"})
    (folder / "empty").mkdir()
    WRITERS["csv"][1](tmp_path / "secret", small_sample())
    monkeypatch.setenv("DUAL_AMN_IMPORT", str(folder))
    return folder


def test_folders_with_data_and_archives_are_offered(allowed: Path) -> None:
    assert [one.name for one in offered()] == ["allowed/cities", "allowed/deep/openea", "allowed/packed.tar.gz"]
    assert find("allowed/cities") == (allowed / "cities").resolve()


def test_links_are_not_followed(allowed: Path) -> None:
    (allowed / "way-out").symlink_to(allowed.parent / "secret")
    assert "allowed/way-out" not in {one.name for one in offered()}


@pytest.mark.parametrize(
    "name", ["", "..", "allowed/../secret", "/etc", "secret", "allowed/cities/", "allowed/cities/../../secret", "\0", "x" * 9999]
)
def test_nothing_else_can_be_named(name: str, allowed: Path) -> None:
    with pytest.raises(DataImportError, match="is not in the folders that may be imported from"):
        find(name)


def test_without_folders_nothing_is_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DUAL_AMN_IMPORT", str(tmp_path / "none"))
    assert not offered()
