"""One tree of errors for everything that a user can cause or has to see.

Each message is one clear sentence: what is wrong, where (file and line), what was expected, what to do next. The command line prints it and
exits with code 2; the app shows it in its place. Anything else that is raised is a defect of ours.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Final

_JOINERS: Final = re.compile("[\u200c\u200d]")
_JOINED_FROM: Final = "\u0590"
"""Scripts and symbols that joiners have a use in come behind Latin, Greek, Cyrillic and Armenian."""
_WITHOUT_JOINERS: Final = ("LATIN ", "GREEK ", "CYRILLIC ", "FULLWIDTH ", "HALFWIDTH ")


def printable(text: str) -> str:
    """The text with everything that a terminal could act on, or could not print, as an escape: names of files and entities may be hostile.

    Joiners stay where a writing needs them: behind a letter or a mark of Persian, Hindi and the like, and inside of an emoji.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or _joins(text, at) else ascii(one)[1:-1] for at, one in enumerate(text))


def printable_lines(text: str) -> str:
    """The same of several lines, whose ends stay."""
    return "\n".join(map(printable, text.split("\n")))


def _joins(text: str, at: int) -> bool:
    """Whether the character there is a joiner that changes how the one before it is drawn."""
    if not at or not _JOINERS.match(text[at]):
        return False
    before = text[at - 1]
    drawn = unicodedata.category(before) in ("Lo", "Lm", "Mn", "Mc", "So", "Sk")
    return drawn and before >= _JOINED_FROM and not unicodedata.name(before, "").startswith(_WITHOUT_JOINERS)


class EngineError(Exception):
    """Base of all errors that are meant for the user's eyes."""


class ConfigError(EngineError):
    """An option has a value that cannot be used."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


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


class NoRowsError(DataError):
    """A table is empty, or has nothing but a header: of known links that means that there are none."""


class DataImportError(EngineError):
    """The files cannot be imported as they are, or not under this name."""


class EntityError(EngineError):
    """An entity that was asked for is unknown, or the words fit several."""

    def __init__(self, message: str, *, candidates: tuple[str, ...] = ()) -> None:
        self.candidates = candidates
        super().__init__(message)


class AmbiguousEntityError(EntityError):
    """The words fit several entities; ``candidates`` names them."""


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
    """Training cannot start or continue (no seed links, a value that is not finite, no memory)."""


class DivergenceError(TrainingError):
    """A loss or an embedding is not finite any more. Resuming from an earlier step would end the same way."""


class LostProcessError(TrainingError):
    """One of several processes that train together has ended, or cannot be reached any more."""


class StoppedError(TrainingError):
    """Training was ended on request before it had learned anything that could be kept as a run; the same call resumes from there."""


class MachineError(EngineError):
    """Something of the machine ran out or failed: disk, permissions, memory, open files, locks. The same can be tried again."""


class JobError(EngineError):
    """A queued training cannot be found, or cannot be changed as was asked."""
