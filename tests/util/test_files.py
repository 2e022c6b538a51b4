"""Files for a user: whole or not there, and nothing of theirs is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import ExportError
from engine.util.files import new_file


def test_a_file_is_there_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with new_file(path) as file:
        file.write(b"x")
        assert not path.exists()
    assert path.read_bytes() == b"x"
    assert list(tmp_path.iterdir()) == [path]
    (tmp_path / "ordinary").touch()
    assert path.stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_what_fails_leaves_nothing_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"before")
    half = new_file(path, force=True)
    half.__enter__().write(b"half")
    assert not half.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None), "it goes on upwards"
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    mine = new_file(path)
    mine.__enter__().write(b"mine")
    path.write_bytes(b"theirs")
    with pytest.raises(ExportError, match="already exists"):
        mine.__exit__(None, None, None)
    assert path.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("force", [True, False])
def test_places_that_cannot_be_written_to(tmp_path: Path, force: bool) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path, words in ((tmp_path, "is a folder"), (tmp_path / "no" / "x", "does not exist"), (tmp_path / "file" / "x", "does not exist")):
        with pytest.raises(ExportError, match=words), new_file(path, force=force):
            pass
    with pytest.raises(ExportError, match="cannot write"), new_file(tmp_path / ("x" * 300), force=force) as file:
        file.write(b"x")


def test_a_link_is_a_file_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ExportError, match="already exists"), new_file(path):
        pass


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no space left"), new_file(tmp_path / "x"):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    """A file that is still being written, and one of another name, stay."""
    path = tmp_path / "a.csv"
    writing = new_file(path)
    writing.__enter__().write(b"still")
    (mine,) = tmp_path.iterdir()
    left = mine.with_name(f"{mine.name.partition('-')[0]}-left.tmp")
    others = tmp_path / ".other-left.tmp"
    for one in (left, others, mine):
        one.touch()
        os.utime(one, (1, 1))
    with new_file(path) as file:
        file.write(b"x")
        assert not left.exists()
        assert mine.exists()
    assert others.exists()
    with pytest.raises(ExportError, match="already exists"):
        writing.__exit__(None, None, None)
    assert sorted(tmp_path.iterdir()) == [others, path]


def test_a_killed_export_leaves_nothing_once_the_same_file_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = (
        "import os, signal",
        "from pathlib import Path",
        "from engine.util.files import new_file",
        f"writing = new_file(Path({str(path)!r}))",
        "writing.__enter__()",
        "os.kill(os.getpid(), signal.SIGKILL)",
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=False)
    (left,) = tmp_path.iterdir()
    os.utime(left, (1, 1))
    with new_file(path) as file:
        file.write(b"x")
    assert list(tmp_path.iterdir()) == [path]
