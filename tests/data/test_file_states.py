"""A change of a file is noticed whatever its time says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.data.files import folder_state, state_of


def edited_in_place(file: Path) -> None:
    """Same size, same time."""
    time = file.stat().st_mtime_ns
    with file.open("r+b") as opened:
        opened.write(b"B")
    os.utime(file, ns=(time, time))


def replaced_by_an_older_one(file: Path) -> None:
    other = file.with_name("older")
    other.write_bytes(b"b1\n")
    os.utime(other, (1, 1))
    other.replace(file)


CHANGES: dict[str, Callable[[Path], object]] = {
    "edited in place": edited_in_place,
    "replaced by an older one": replaced_by_an_older_one,
    "longer": lambda file: file.write_bytes(b"a1\na2\n"),
    "removed": lambda file: file.unlink(),
    "renamed": lambda file: file.rename(file.with_name("other")),
    "another beside it": lambda file: file.with_name("new").touch(),
    "an empty folder beside it": lambda file: file.with_name("new").mkdir(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_in_a_folder_below_is_noticed(change: str, tmp_path: Path) -> None:
    file = tmp_path / "721_5fold" / "1" / "train_links"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"a1\n")
    before = folder_state(tmp_path)
    assert folder_state(tmp_path) == before
    CHANGES[change](file)
    assert folder_state(tmp_path) != before


def test_a_file_behind_a_link_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "links").write_text("a", encoding="utf-8")
    (tmp_path / "data" / "links").symlink_to(tmp_path / "links")
    before = folder_state(tmp_path / "data")
    (tmp_path / "links").write_text("ab", encoding="utf-8")
    assert folder_state(tmp_path / "data") != before


def test_nothing_has_no_state(tmp_path: Path) -> None:
    assert state_of(tmp_path / "none") is None
    assert folder_state(tmp_path / "none") == folder_state(tmp_path / "neither")
