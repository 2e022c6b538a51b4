"""One tree of errors for everything that a user can cause or must know of.

Each message is one clear sentence: what is wrong, where (file and line), what was expected, what to do next. The command line prints it and
exits with code 2; the app shows it in its place. Anything else that is raised is a defect of ours.
"""

from __future__ import annotations

from pathlib import Path

from engine.wording import printable


class EngineError(Exception):
    """Base of all errors that are meant for the user's eyes."""


class ConfigError(EngineError):
    """An option has a value that cannot be used."""


class DataError(EngineError):
    """An input file or folder cannot be read as what it should be.

    The message starts with the place (``file:line: ``) where there is one; ``complaint`` is what it says without that.
    """

    def __init__(self, message: str, *, path: Path | str | None = None, line: int | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.line = line
        self.complaint = message
        place = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(printable(f"{place}{message}"))


class DataImportError(EngineError):
    """What was brought cannot be imported as it is, or not under this name."""


class EntityError(EngineError):
    """An entity that was asked for is unknown, or the words fit several."""

    def __init__(self, message: str, *, candidates: tuple[str, ...] = ()) -> None:
        self.candidates = candidates
        super().__init__(message)


class EvidenceError(EngineError):
    """Evidence for a pair that was to be removed is not there."""


class RunError(EngineError):
    """A run cannot be found, opened or written."""


class RunNotFoundError(RunError):
    """No run has this id."""


class RunDamagedError(RunError):
    """A run folder is incomplete, changed or unreadable."""


class RunVersionError(RunError):
    """A run folder was written by a newer version of the engine."""


class ReviewError(EngineError):
    """A reviewer's decision cannot be kept, or the decisions cannot be used."""


class ComparisonError(EngineError):
    """Runs have nothing in common that they could be compared by."""


class ExportError(EngineError):
    """There is nothing to export, or it cannot be written where it should be."""


class TrainingError(EngineError):
    """Training cannot start or go on (no seed links, a value that is not finite, no memory)."""


class DivergenceError(TrainingError):
    """A loss or an embedding is not finite any more. Going on from an earlier step would end the same way."""


class LostProcessError(TrainingError):
    """One of several processes that train together has ended, or cannot be reached any more."""


class StoppedError(TrainingError):
    """Training was ended on request before it had learned anything that could be kept as a run; the same call goes on from there."""


class JobError(EngineError):
    """A queued training cannot be found, or cannot be changed as was asked."""
