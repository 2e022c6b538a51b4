"""A file that is made on a click is there when the browser asks for it, however many sessions end a script in between."""

from __future__ import annotations

import time
from typing import Any

import pytest
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from app import downloads


def test_a_download_outlives_the_scripts_of_others(registered_pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = MediaFileManager(MemoryMediaFileStorage("/media"))
    button = manager.add_deferred(lambda: b"links", "text/plain", "place", file_name="links.txt")
    file = manager.execute_deferred(button).rpartition("/")[2].partition(".")[0]
    for _ in range(50):
        manager.remove_orphaned_files()
    assert manager.read_file(file) is not None
    later = time.monotonic() + downloads.KEPT_SECONDS
    monkeypatch.setattr(downloads.time, "monotonic", lambda: later)
    manager.remove_orphaned_files()
    assert manager.read_file(file) is None, "and does not stay for ever"
