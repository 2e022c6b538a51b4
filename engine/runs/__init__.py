"""Run folders: models/<data set>/<run id>/, written beside their place and renamed into it, so that a reader never sees half a run.

A run in the making lives in ``.partial-<run id>`` with its checkpoints and a lock; a process that is killed leaves it there, and the next one resumes
from the last whole checkpoint. What a finished run holds is listed with sizes and checksums in ``manifest.json``, which is written last and seals
itself with a checksum of its own.

Nothing in a folder is trusted: ids and file names are checked before a path is made of them, links that lead out of the folder are not followed,
JSON and tables are read only with the right checksum, and every way in which that can fail is a :class:`engine.errors.RunError`.
"""

from __future__ import annotations

from engine.runs.manifest import FORMAT_VERSION
from engine.runs.run import Run
from engine.runs.store import RunStore, RunSummary
from engine.runs.writer import Checkpoint, RunWriter

__all__ = ["FORMAT_VERSION", "Checkpoint", "Run", "RunStore", "RunSummary", "RunWriter"]
