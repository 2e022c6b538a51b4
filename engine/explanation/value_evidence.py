"""Attribute values that both entities of a pair have, and what each adds to the score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.data.labels import literal_of, local_name
from engine.errors import EvidenceError
from engine.explanation.explainer import Explainer
from engine.names.values import exact_attribute, key_texts
from engine.runs.tensors import has_table
from engine.search import LiteralSimilarity, SparseSimilarity
from engine.util.arrays import FloatArray, IntArray
from engine.util.text import count, shortened

CSLS_SHARE = 2.0
"""CSLS counts the similarity twice."""
VALUE_FORM = "value:ATTRIBUTE"
SHOWN = 60
"""Characters of a value in a sentence."""


@dataclass(frozen=True, order=True)
class ValueFact:
    """A value as evidence that can be removed: a column of the run's value rows."""

    feature: int


@dataclass(frozen=True)
class PairValue:
    """A value that both entities have.

    Attributes:
        source_attribute, target_attribute: under which they have it; with "(within 10 %)" and the like where the values are only near each other.
        source_text, target_text: as the two graphs write it.
        source_entities, target_entities: how many entities of each graph have it: the fewer, the more it says.
        value: its share of the CSLS score.
        facts: what is removed with it.
    """

    source_attribute: str
    target_attribute: str
    source_text: str
    target_text: str
    source_entities: int
    target_entities: int
    value: float
    facts: tuple[ValueFact, ...]

    @property
    def words(self) -> str:
        """For example "born: 1912-06-23 = 1912-06-23 (1 and 1 entity have it)", or with ≈ between values that are only near each other."""
        texts = (shortened(one, SHOWN) for one in (self.source_text, self.target_text))
        owners = f"{self.source_entities:,} and {count(self.target_entities, 'entity', 'entities')} have it"
        near = exact_attribute(self.source_attribute) != self.source_attribute and self.source_text != self.target_text
        return f"{shortened(local_name(self.source_attribute), SHOWN)}: {(' ≈ ' if near else ' = ').join(texts)} ({owners})"


def pair_values(explainer: Explainer, source: int, target: int) -> tuple[PairValue, ...]:
    """The values that a pair shares, the one that adds most first; their shares add up to what values add to the CSLS score."""
    similarity, run = explainer.view.similarity, explainer.view.run
    if not isinstance(similarity, LiteralSimilarity) or similarity.values is None or not has_table(run, "value_features"):
        return ()
    features, products = shared_products(similarity.values, source, target)
    table = explainer.value_features.iloc[features]
    texts = [texts_by_key(explainer, side, index) for side, index in zip(SIDES, (source, target), strict=True)]
    found: dict[tuple[str, str, str, str], list[int]] = {}
    for at, (left, right, key) in enumerate(zip(*(table[name].astype(str) for name in ("source", "target", "key")), strict=True)):
        found.setdefault((left, right, texts[0].get((left, key), ""), texts[1].get((right, key), "")), []).append(at)
    rows = [one_value(names, table.iloc[at], features[at], CSLS_SHARE * similarity.value_weight * products[at]) for names, at in found.items()]
    return tuple(sorted(rows, key=lambda one: (-one.value, one.source_attribute, one.source_text)))


def one_value(names: tuple[str, str, str, str], table: pd.DataFrame, features: IntArray, values: FloatArray) -> PairValue:
    """One value out of the features that it gave."""
    owners = int(table["source_entities"].min()), int(table["target_entities"].min())
    return PairValue(*names, *owners, float(values.sum()), tuple(ValueFact(one) for one in features.tolist()))


def shared_products(values: SparseSimilarity, source: int, target: int) -> tuple[IntArray, FloatArray]:
    """(n,) the features that two entities share, and what each adds to their similarity."""
    own, theirs = values.source[[source]], values.target[[target]]
    features, left, right = np.intersect1d(own.indices, theirs.indices, assume_unique=True, return_indices=True)
    return features.astype(np.int64), own.data[left].astype(np.float64) * theirs.data[right].astype(np.float64)


def texts_by_key(explainer: Explainer, side: Side, index: int) -> dict[tuple[str, str], str]:
    """(attribute, key) -> the value as an entity's graph writes it."""
    return {named: literal_of(value).text for attribute, value in explainer.view.attributes(side, index) for named in key_texts(attribute, value)}


def without_values(similarity: SparseSimilarity, side: Side, index: int, gone: Iterable[ValueFact], candidates: IntArray) -> FloatArray:
    """(n,) what an entity's similarity with candidates loses where it does not have some values."""
    own, others = (similarity.source, similarity.target) if side == "source" else (similarity.target, similarity.source)
    row = own[[index]]
    kept = np.isin(row.indices, [fact.feature for fact in gone])
    weights = np.zeros(own.shape[1])
    weights[row.indices[kept]] = row.data[kept]
    lost: FloatArray = others[candidates].astype(np.float64) @ weights
    return lost


def named_values(explainer: Explainer, source: int, target: int, attribute: str) -> frozenset[ValueFact]:
    """The values that a pair shares under an attribute of either graph, by its full or local name.

    Raises:
        EvidenceError: it shares none.
    """
    shared = pair_values(explainer, source, target)
    names = [{name for full in (one.source_attribute, one.target_attribute) for name in (full, local_name(full))} for one in shared]
    found = frozenset(fact for one, known in zip(shared, names, strict=True) if attribute in known for fact in one.facts)
    if not found:
        known = sorted({local_name(one.source_attribute) for one in shared})
        hint = f"; shared are values of {', '.join(shortened(name) for name in known[:8])}" if known else ""
        raise EvidenceError(f"the two entities share no value of '{shortened(attribute)}' that this run compares{hint}.")
    return found
