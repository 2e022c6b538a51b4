"""What every format offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Final, Literal

from engine.exporting.table import ExportTable

Predicate = Literal["owl:sameAs", "skos:exactMatch"]
PREDICATES: Final[dict[Predicate, str]] = {
    "owl:sameAs": "http://www.w3.org/2002/07/owl#sameAs",
    "skos:exactMatch": "http://www.w3.org/2004/02/skos/core#exactMatch",
}


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: in commands and addresses.
        title: for people.
        suffix: that its files end in.
        media_type: for a browser.
        does: one line on what it is for.
        write: writes the pairs; the predicate is what it says of each of them, where it says anything.
        predicate: what it says unless asked otherwise; None: the format has no predicates.
        readable: whether its first lines are readable text.
    """

    name: str
    title: str
    suffix: str
    media_type: str
    does: str
    write: Callable[[IO[bytes], ExportTable, Predicate], None]
    predicate: Predicate | None = None
    readable: bool = True

    def file_name(self, run: str) -> str:
        """'links-europe-basic-s0.csv': a name that says what is in it, and that makes the file the links of a data set's folder."""
        return f"links-{run.replace('/', '-')}{self.suffix}"
