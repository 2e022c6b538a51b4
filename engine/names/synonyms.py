"""All names of an entity: besides the one that is shown, its names in other languages and its synonyms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import torch

from engine.data.knowledge_graph import SIDES, Finding, KnowledgeGraph, Side
from engine.data.labels import NAME_ATTRIBUTES, clean_label, folded_local_name, is_missing
from engine.names.encoders.base import EncodedNames, NameEncoder
from engine.search import BestNames, SparseSimilarity, StructuralSimilarity
from engine.util.arrays import IntArray, row_starts
from engine.util.text import count

EXACT: Final = frozenset(
    {
        *("altlabel", "alternativelabel", "alternativename", "alternatename", "altname", "alias", "aliases", "alsoknownas", "synonym", "synonyms"),
        *("exactsynonym", "hasexactsynonym", "hiddenlabel", "othername", "nickname", "officialname", "shortname", "longname"),
    }
)
"""Local names, folded, of attributes that hold further names of the same thing."""
LOOSE: Final = frozenset({"relatedsynonym", "hasrelatedsynonym", "broadsynonym", "hasbroadsynonym", "narrowsynonym", "hasnarrowsynonym"})
"""Those of names of something near."""
WEIGHTS: Final = {"name": 1.0, "exact": 0.95, "loose": 0.8}
"""What a name's similarity is multiplied with: a synonym counts a little less than a name, one of something near clearly less."""
MOST_NAMES: Final = 16
"""Names of an entity that are compared; the rest are left out, shortest first kept."""


@dataclass(frozen=True)
class AllNames:
    """The names of one graph's entities, an entity's next to each other, the one that is shown first.

    Attributes:
        names: (N,) "" where an entity has none.
        weights: (N,) what each counts.
        starts: (E + 1,) where each entity's names begin.
        left_out: names beyond ``MOST_NAMES``.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    starts: IntArray
    left_out: int = 0

    @property
    def several(self) -> bool:
        """Whether some entity has more than one."""
        return len(self.names) > len(self.starts) - 1

    def table(self, side: Side) -> pd.DataFrame:
        """graph, entity, name, weight, in the order of the rows."""
        counts = np.diff(self.starts)
        owners = np.repeat(np.arange(len(counts)), counts)
        graph = pd.Series([side] * len(owners), dtype="str")
        return pd.DataFrame({"graph": graph, "entity": owners, "name": pd.Series(self.names, dtype="str"), "weight": self.weights})


def kind_of(attribute: str) -> str | None:
    """ "name", "exact" or "loose"; None for an attribute that holds no names."""
    folded = folded_local_name(attribute)
    if folded in NAME_ATTRIBUTES:
        return "name"
    return "exact" if folded in EXACT else "loose" if folded in LOOSE else None


def all_names(graph: KnowledgeGraph, shown: Sequence[str]) -> AllNames:
    """A graph's names: those that are shown, then what its attributes give besides.

    Args:
        graph: whose attributes are looked at.
        shown: E names, "" where there is none.
    """
    found: list[dict[str, float]] = [{} if is_missing(name) else {name: 1.0} for name in shown]
    kinds = {attribute: kind_of(str(attribute)) for attribute in graph.attributes["attribute"].unique()}
    rows = graph.attributes[graph.attributes["attribute"].isin([attribute for attribute, kind in kinds.items() if kind is not None])]
    for entity, attribute, value in zip(rows["entity"].tolist(), rows["attribute"].tolist(), rows["value"].tolist(), strict=True):
        if not is_missing(name := clean_label(value)):
            weight = WEIGHTS[kinds[attribute] or "loose"]
            found[entity][name] = max(weight, found[entity].get(name, 0.0))
    kept = [chosen(names, first) for names, first in zip(found, shown, strict=True)]
    starts = row_starts([len(names) for names in kept])
    flat = [pair for names in kept for pair in names]
    left_out = sum(len(names) for names in found) - sum(bool(name) for name, _ in flat)
    return AllNames(tuple(name for name, _ in flat), tuple(weight for _, weight in flat), starts, left_out)


def left_out_finding(source: AllNames, target: AllNames) -> Iterator[Finding]:
    """How many names are not compared because their entity has too many."""
    counts = {side: names.left_out for side, names in zip(SIDES, (source, target), strict=True)}
    if total := sum(counts.values()):
        parts = " and ".join(f"{number:,} of {side} entities" for side, number in counts.items() if number)
        message = f"{count(total, 'name is', 'names are')} not compared ({parts}): of an entity's names at most {MOST_NAMES} are, the shortest first."
        yield Finding("names-left-out", "info", message, total, advice="literal.synonyms=no compares only the labels.")


def chosen(names: Mapping[str, float], first: str) -> list[tuple[str, float]]:
    """The names that are compared: the one that is shown, then by weight, length and characters."""
    order = sorted(names.items(), key=lambda one: (one[0] != first, -one[1], len(one[0]), one[0]))
    return order[:MOST_NAMES] or [("", 1.0)]


def encode_all(encoder: NameEncoder, source: AllNames, target: AllNames) -> EncodedNames:
    """Names made comparable: an entity's similarity is that of its best pair of names.

    Raises:
        DataError, ConfigError: of the encoder.
    """
    encoded = encoder.encode(source.names, target.names)
    if not (source.several or target.several):
        return encoded
    base = encoded.similarity
    if isinstance(base, BestNames):
        raise TypeError("an encoder gives one row a name")
    return EncodedNames(BestNames(weighted(base, source.weights, target.weights), source.starts, target.starts), encoded.findings)


def weighted(
    base: StructuralSimilarity | SparseSimilarity, source: Sequence[float], target: Sequence[float]
) -> StructuralSimilarity | SparseSimilarity:
    """With rows as long as their weight."""
    if isinstance(base, StructuralSimilarity):
        return StructuralSimilarity(*(rows * torch.tensor(weights)[:, None] for rows, weights in ((base.source, source), (base.target, target))))
    rows = (
        table.multiply(np.asarray(weights, dtype=np.float32)[:, None]).tocsr() for table, weights in ((base.source, source), (base.target, target))
    )
    return SparseSimilarity(*rows)
