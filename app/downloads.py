"""Files that are made when a download button is pressed: they stay until the browser has had time to fetch them.

Streamlit deletes such a file when two scripts have ended since, whosever they are. With many sessions that is before the browser asks for it, and the
download ends with "not found".
"""

from __future__ import annotations

import time
from typing import Final

from streamlit.runtime.media_file_manager import MediaFileMetadata

KEPT_SECONDS: Final = 120.0


def _mark_for_delete(self: MediaFileMetadata) -> None:
    if not hasattr(self, "unused_since"):
        self.unused_since = time.monotonic()  # type: ignore[attr-defined]


def _is_marked_for_delete(self: MediaFileMetadata) -> bool:
    return time.monotonic() - getattr(self, "unused_since", float("inf")) >= KEPT_SECONDS


def keep_downloads() -> None:
    """From now on, a file is deleted only when no session has referred to it for a while."""
    MediaFileMetadata.mark_for_delete = _mark_for_delete  # type: ignore[method-assign]
    MediaFileMetadata.is_marked_for_delete = property(_is_marked_for_delete)  # type: ignore[assignment,method-assign]
