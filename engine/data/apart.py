"""Mappings that say less than equality (broader, narrower, close, related): kept apart from links, so that nothing is trained or measured on them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from engine.util.text import count

SKOS: Final = "http://www.w3.org/2004/02/skos/core#"
EQUAL: Final = frozenset({"sameAs", "exactMatch", "equivalentClass", "equivalentProperty"})
"""Local names of the predicates that make a mapping a link."""
RELATIONS: Final[Mapping[str, str]] = {
    "broadMatch": "skos:broadMatch",
    "narrowMatch": "skos:narrowMatch",
    "closeMatch": "skos:closeMatch",
    "relatedMatch": "skos:relatedMatch",
    "subClassOf": "skos:broadMatch",
    "subPropertyOf": "skos:broadMatch",
}
"""Local name of a predicate -> how such a mapping is kept: ``A skos:broadMatch B`` says that B is the broader one."""
INVERSE: Final[Mapping[str, str]] = {"skos:broadMatch": "skos:narrowMatch", "skos:narrowMatch": "skos:broadMatch"}
WORDS: Final[Mapping[str, str]] = {
    "skos:broadMatch": "broader",
    "skos:narrowMatch": "narrower",
    "skos:closeMatch": "close",
    "skos:relatedMatch": "related",
}
COLUMNS: Final = ("source", "target", "relation", "confidence")
FILE_WORD: Final = "apart"
"""In the name of a links file: it holds such mappings and no links (``links_apart.parquet``)."""


def local_predicate(name: str) -> str:
    """'exactMatch' of ``skos:exactMatch`` and of the whole IRI."""
    return re.split(r"[:#/]", name.strip())[-1]


def confidence_of(text: str) -> float:
    """A number from 0 to 1; NaN for anything else."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if 0 <= value <= 1 else math.nan


@dataclass(frozen=True)
class Apart:
    """Mappings that are no links, by identifier.

    Attributes:
        sources, targets: n identifiers each.
        relations: (n,) values of ``RELATIONS``, as said of the source: ``skos:broadMatch`` where the target is the broader one.
        confidences: (n,) NaN where none is given.
    """

    sources: Sequence[str] = ()
    targets: Sequence[str] = ()
    relations: Sequence[str] = ()
    confidences: Sequence[float] = ()

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def swapped(self) -> Apart:
        """The same seen from the other graph."""
        return Apart(self.targets, self.sources, [INVERSE.get(one, one) for one in self.relations], self.confidences)

    def oriented(self, knows_source: Iterable[str], knows_target: Iterable[str]) -> Apart:
        """Each mapping with its ends in the order of the graphs, where only the other order fits them.

        Args:
            knows_source, knows_target: identifiers of each graph; sets, so that looking one up is quick.
        """
        source, target = frozenset(knows_source), frozenset(knows_target)
        rows = []
        for left, right, relation, confidence in zip(self.sources, self.targets, self.relations, self.confidences, strict=True):
            turned = (right in source) + (left in target) > (left in source) + (right in target)
            rows.append((right, left, INVERSE.get(relation, relation), confidence) if turned else (left, right, relation, confidence))
        return Apart.of(rows)

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str, float]]) -> Apart:
        """Of rows in the order of the fields."""
        columns = list(zip(*rows, strict=True))
        return cls(*columns) if columns else cls()

    @classmethod
    def joined(cls, parts: Iterable[Apart]) -> Apart:
        """All of them, each mapping once."""
        rows: dict[tuple[str, str, str], float] = {}
        for part in parts:
            for source, target, relation, confidence in zip(part.sources, part.targets, part.relations, part.confidences, strict=True):
                known = rows.get((source, target, relation))
                rows[source, target, relation] = confidence if known is None or math.isnan(known) else max(known, confidence)
        return cls.of((*key, confidence) for key, confidence in rows.items())

    def table(self) -> pd.DataFrame:
        """source, target, relation, confidence."""
        values = (list(self.sources), list(self.targets), list(self.relations))
        texts = {name: pd.Series(column, dtype="str") for name, column in zip(COLUMNS, values, strict=False)}
        return pd.DataFrame({**texts, "confidence": np.asarray(self.confidences, dtype=np.float64)})

    @property
    def words(self) -> str:
        """'3 broader, 1 close'."""
        counts = Counter(self.relations)
        return ", ".join(f"{counts[relation]:,} {word}" for relation, word in WORDS.items() if counts[relation])


def apart_sentence(apart: Apart) -> str:
    """What a report says of them."""
    verb = "says" if len(apart) == 1 else "say"
    kept = "It is" if len(apart) == 1 else "They are"
    return f"{count(len(apart), 'mapping')} {verb} less than equality ({apart.words}). {kept} kept apart: neither trained nor measured on."
