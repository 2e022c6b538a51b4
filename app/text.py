"""Texts from other people's files, made harmless; numbers with sense."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from engine.util import paths
from engine.util.text import count as count
from engine.util.text import duration as duration

T = TypeVar("T")

LONGEST_LABEL = 120
_FIGURE_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "%": "&#37;", "{": "&#123;"})
_NEGATIVE = re.compile(r"(?<![\w.\-])-(?=\d)")
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_DIRECTIVE = re.compile(r"(?<!\\):[a-z-]+\[((?:\\.|[^\]\\])*)\]")
_EMPHASIS = re.compile(r"\\([!-/:-@\[-`{-~])|\*\*|`")
_DIRECTION_MARKS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"


def clip(text: str, length: int = LONGEST_LABEL) -> str:
    """One line of at most ``length`` characters, without control characters or marks that reorder what follows."""
    if len(text) <= length and text.isprintable():  # most labels: no other character than a space is to be looked at
        return " ".join(text.split())
    kept = "".join(char for char in text[: 4 * length] if char.isspace() or not _is_unwanted(char))
    line = " ".join(kept.split())
    return line if len(line) <= length and len(text) <= 4 * length else f"{line[: length - 1]}…"


def _is_unwanted(char: str) -> bool:
    return char in _DIRECTION_MARKS or unicodedata.category(char) in ("Cc", "Cs")


def plain(text: str, length: int = LONGEST_LABEL) -> str:
    """For Markdown: every punctuation mark escaped, and an island for its writing direction, so that a right-to-left name moves nothing else."""
    escaped = _PUNCTUATION.sub(r"\\\1", clip(text, length))
    return f"{_FIRST_STRONG_ISOLATE}{escaped}{_POP_ISOLATE}" if escaped else ""


def unmarked(markdown: str) -> str:
    """A sentence of ours in Markdown as plain text, for a name that screen readers use: what :func:`plain` escaped is as it was."""
    without_colours = _DIRECTIVE.sub(r"\1", markdown)
    return _EMPHASIS.sub(lambda found: found.group(1) or "", without_colours).replace(_FIRST_STRONG_ISOLATE, "").replace(_POP_ISOLATE, "")


def cell(text: str, length: int = 200) -> str:
    """For tables and charts, which show plain text."""
    return clip(text, length)


def distinct_labels(labels: Mapping[T, str]) -> dict[T, str]:
    """The same labels, with a number behind those that would be alike: long names that differ in what was cut off, say. The number goes by what is
    named, not by its place in the list.
    """
    alike: dict[str, list[T]] = {}
    for named, label in labels.items():
        alike.setdefault(label, []).append(named)
    taken, result = set(alike), dict(labels)
    for label, several in alike.items():
        for named in sorted(several, key=repr) if len(several) > 1 else ():
            result[named] = next(one for one in (f"{label} ({number})" for number in itertools.count(1)) if one not in taken)
            taken.add(result[named])
    return result


def figure_label(text: str, length: int = 60) -> str:
    """For Plotly, which reads a part of HTML, TeX between dollars, and templates: everything is shown as it is written."""
    return clip(text, length).translate(_FIGURE_ESCAPES)


def without_places(words: str) -> str:
    """The engine's words with paths as they are within the folders of this server, which are not shown: ``world/basic-s0/manifest.json``."""
    return paths.without_folders(words, _places())


def _places() -> Iterator[tuple[str, str, str]]:
    """Absolute folders of the server: the replacement before a path in it, and alone."""
    kept = ((paths.models_folder(), "the models folder"), (paths.data_folder(), "the data folder"), (paths.PROJECT, "the project's folder"))
    named = [(folder, "", whole) for folder, whole in kept]
    named += [(folder, f"{folder.name}/", folder.name) for folder in paths.import_folders()]
    for folder, start, whole in named:
        yield from ((str(form), start, whole) for form in {folder.absolute(), folder.resolve()} if form.name)


def file_name(*parts: str) -> str:
    """A name for a download: letters, digits, dots and hyphens, whatever the parts are."""
    return "-".join(word for part in parts for word in re.findall(r"[\w.]+", part, re.ASCII))[:120].strip(".-") or "download"


def score(value: float) -> str:
    """'0.643', '−0.065': three decimals."""
    return minus(f"{value:.3f}")


def signed(value: float) -> str:
    """'+0.032', '−0.004': three decimals."""
    return minus(f"{value:+.3f}")


def minus(number: str) -> str:
    """A number as text with a minus sign in place of a hyphen."""
    return number.replace("-", "−")


def with_minus(words: str) -> str:
    """The same with a minus sign in front of each negative number: 'margin −0.004'."""
    return _NEGATIVE.sub("−", words)


def share_with_interval(value: float, interval: Sequence[float] | None) -> str:
    """'0.643 (0.624-0.662)'."""
    return score(value) if interval is None else f"{score(value)} ({score(interval[0])}–{score(interval[1])})"


def rate_interval(interval: Sequence[float], n: int) -> str:
    """'95% interval 86.5%–90.1%, n = 1,200', for a rate in per cent."""
    return f"95% interval {interval[0]:.1%}–{interval[1]:.1%}, n = {n:,}"


def percent(share: float) -> str:
    """'34%'; what is not quite nothing or everything says so."""
    if 0 < share < 0.01:
        return "under 1%"
    return "over 99%" if 0.99 < share < 1 else f"{share:.0%}"


def moment(created: str) -> str:
    """'2026-11-01 12:00 UTC' for an ISO time; the text itself where it is none. Says the same for ever, as the option of a list must."""
    try:
        then = datetime.fromisoformat(created)
    except ValueError:
        return created
    return f"{(then if then.tzinfo else then.replace(tzinfo=UTC)).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def age(created: str, now: datetime | None = None) -> str:
    """'3 hours ago' for an ISO time; the text itself where it is none."""
    try:
        then = datetime.fromisoformat(created)
    except ValueError:
        return created
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    for size, noun in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{count(int(seconds // size), noun)} ago"
    return "just now"
