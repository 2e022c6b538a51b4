"""Settings of the form ``kind:argument``, parsed in one place: who uses such a setting, who guards it and who identifies a run by it read the same.

Each kind of name encoder and each origin of names declares which paths its argument holds (``NAME_ENCODERS``, ``NAME_ORIGINS``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PathsOf = Callable[[str], tuple[str, ...]]
"""The paths that an argument holds."""


@dataclass(frozen=True)
class Spec:
    """A setting, taken apart at its first colon; ``argument`` is "" where nothing follows it."""

    kind: str
    argument: str

    @classmethod
    def parse(cls, text: str) -> Spec:
        kind, _, argument = text.partition(":")
        return cls(kind, argument)


def no_path(argument: str) -> tuple[str, ...]:
    return ()


def one_path(argument: str) -> tuple[str, ...]:
    return (argument,)


def one_or_two_paths(argument: str) -> tuple[str, ...]:
    """One path, or two with a comma between them.

    A file whose own name holds a comma is found first, then two files that exist; where nothing exists, a single comma separates.
    """
    if os.path.isfile(argument):
        return (argument,)
    commas = [place for place, letter in enumerate(argument) if letter == ","]
    halves = [(argument[:place], argument[place + 1 :]) for place in commas]
    there = next((pair for pair in halves if all(map(os.path.isfile, pair))), None)
    return there or (halves[0] if len(halves) == 1 else (argument,))


def absolute_argument(argument: str, paths_of: PathsOf) -> str:
    """The same argument with its paths from the root of the disk, links followed; one without paths is unchanged.

    Raises:
        ValueError, OSError, RuntimeError: something in it cannot be a path.
    """
    paths = paths_of(argument) if argument else ()
    return ",".join(str(Path(path).resolve()) for path in paths) if paths else argument
