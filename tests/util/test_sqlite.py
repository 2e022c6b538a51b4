"""A database is made whole or not at all."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from engine.errors import ReviewError
from engine.reviews import Choice, ReviewStore
from engine.util import sqlite


class Unfinished(sqlite3.Connection):
    """On a failing disk: what is in the log is not taken into the file, neither when that is asked for nor, in silence, at the end."""

    def execute(self, words: str, *values: object) -> sqlite3.Cursor:  # type: ignore[override]
        return super().execute("SELECT 0, 0, 0" if words.startswith("PRAGMA wal_checkpoint") else words, *values)

    def close(self) -> None:
        """The file and its log stay as after a process that was killed."""


def test_a_new_database_is_not_put_into_its_place_without_what_its_log_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "reviews.sqlite3"
    store = ReviewStore(path)
    kept: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def failing(*words: object, **options: object) -> sqlite3.Connection:
        kept.append(connect(*words, **options, factory=Unfinished))  # type: ignore[call-overload]
        return kept[-1]

    with monkeypatch.context() as patch:
        patch.setattr(sqlite.sqlite3, "connect", failing)
        with pytest.raises(ReviewError, match="disk I/O error: the disk is failing"):
            store.claim("0" * 64, "Ann", [("a", "b")])
    for connection in kept:
        sqlite3.Connection.close(connection)
    assert [one.name for one in tmp_path.iterdir() if not one.name.endswith(".lock")] == []
    assert store.decide("0" * 64, Choice("a", "b", "accept"), "Ann", "click")
    store.close()
