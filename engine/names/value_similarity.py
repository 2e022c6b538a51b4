"""How similar the attribute values of two entities are: the part that values have in the literal variant's scores.

Attributes are paired by what entities that are taken to be the same say in them. An equal value under a pair of attributes counts by how often the
pair agrees, and by how few entities have the value: that a birth date is equal says more than that a country is. Values that differ lower the
similarity of an entity's row with everything, as a missing one does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd
from scipy import sparse

from engine.config import LiteralConfig
from engine.data.knowledge_graph import SIDES, AlignmentTask, Finding, KnowledgeGraph
from engine.names.specs import Spec
from engine.names.synonyms import kind_of
from engine.names.values import LABEL, keyed_values
from engine.search import SparseSimilarity
from engine.util.arrays import FloatArray, IntArray
from engine.util.text import shorten

MOST_PAIRS: Final = 20_000
"""Pairs of entities that the agreement of attributes is measured on."""
LEAST_AGREEING: Final = 2
"""Pairs of entities that must agree in two attributes: a single one is no proof."""
LEAST_AGREEMENT: Final = 0.1
PRIOR: Final = 2
"""Disagreeing pairs that are added to those seen, so that few pairs promise little."""
MOST_OWNERS: Final = 1_000_000
"""Pairs of entities that share a value, beyond which it says nothing and costs too much to compare."""


@dataclass(frozen=True)
class ValueEvidence:
    """What the values of two graphs say of their entities.

    Attributes:
        similarity: (E1, E2) of the values, in 0 .. 1; 0 where nothing is shared.
        attributes: the pairs of attributes that are compared: ``source``, ``target``, ``agreement`` (share of the pairs of entities with both that
            agree in a value), ``support`` (how many do), ``compared`` (how many have both).
        features: the columns of the rows: ``source`` and ``target`` attribute, ``key``, and how many entities of each graph have the value.
    """

    similarity: SparseSimilarity
    attributes: pd.DataFrame
    features: pd.DataFrame

    @cached_property
    def leaks(self) -> tuple[Finding, ...]:
        """Attributes that look like an identifier that both graphs have."""
        return value_leaks(self)


def value_evidence(task: AlignmentTask, known: IntArray, excluded: frozenset[str] = frozenset()) -> ValueEvidence:
    """The values of both graphs, made comparable. Attributes that hold names are left out: names are compared as such.

    Args:
        task: its graphs are looked at, not its links.
        known: (n, 2) pairs that are taken to be the same entities: seed links, and what training added to them.
        excluded: attributes, by full or local name, that are not compared.
    """
    tables = [compared_values(graph, excluded) for graph in (task.source, task.target)]
    keys = {key: number for number, key in enumerate(sorted(set(tables[0]["key"]) & set(tables[1]["key"])))}
    attributes = paired_attributes([coded(table, keys) for table in tables], known)
    rows = [attributed(table, attributes[side].tolist()) for table, side in zip(tables, SIDES, strict=True)]
    features = shared_features(rows)
    sizes = task.source.num_entities, task.target.num_entities
    agreement = attributes["agreement"].to_numpy()
    matrices = [value_rows(table, features, agreement, size) for table, size in zip(rows, sizes, strict=True)]
    return ValueEvidence(SparseSimilarity(matrices[0], matrices[1]), attributes, described(features, attributes))


def compared_values(graph: KnowledgeGraph, excluded: frozenset[str]) -> pd.DataFrame:
    """``entity``, ``attribute`` and ``key`` of a graph's values that are no names."""
    table = keyed_values(graph, excluded)
    names = [name for name in table["attribute"].unique() if name == LABEL or kind_of(str(name)) is not None]
    return table[~table["attribute"].isin(names)].reset_index(drop=True)


def coded(table: pd.DataFrame, keys: dict[str, int]) -> pd.DataFrame:
    """With numbers for keys, -1 for those that the other graph lacks."""
    return table.assign(key=table["key"].map(keys).fillna(-1).astype(np.int64))


def name_attributes(config: LiteralConfig) -> frozenset[str]:
    """The attributes that the settings take names from; they are compared as names, and so not as values."""
    specs = (Spec.parse(origin) for origin in (config.names, config.names_source, config.names_target) if origin)
    return frozenset(spec.argument for spec in specs if spec.kind == "attribute")


LEAKING: Final = 0.9
"""Share from which on agreeing and unique values count as a common identifier."""
FEWEST: Final = 20
"""Agreeing pairs below which a share says nothing."""


def value_leaks(found: ValueEvidence) -> tuple[Finding, ...]:
    """Attributes that look like an identifier that both graphs have: almost all pairs agree, and almost each value belongs to one entity."""
    findings = []
    for at, pair in enumerate(found.attributes.to_dict("records")):
        support, compared, unique = pair["support"], pair["compared"], unique_share(found.features, found.attributes.iloc[at])
        if support < FEWEST or support < LEAKING * compared or unique < LEAKING:
            continue
        names = f"'{shorten(pair['source'])}' and '{shorten(pair['target'])}'"
        message = f"The attributes {names} agree in {support:,} of {compared:,} pairs, and nearly every value belongs to one entity only."
        advice = "If this is an identifier shared by both graphs, the results say little about the method; values.exclude leaves it out."
        findings.append(Finding("values-identify", "warning", message, support, advice=advice))
    return tuple(findings)


def unique_share(features: pd.DataFrame, pair: pd.Series) -> float:
    """The share of the values under a pair of attributes that belong to one entity of each graph."""
    own = features[(features["source"] == pair["source"]) & (features["target"] == pair["target"])]
    return float(((own["source_entities"] == 1) & (own["target_entities"] == 1)).mean()) if len(own) else 0.0


# Which attributes correspond.


def paired_attributes(tables: list[pd.DataFrame], known: IntArray) -> pd.DataFrame:
    """One-to-one pairs of attributes, those with the most agreeing entities first.

    Args:
        tables: of :func:`coded`, one a graph.
        known: (n, 2) pairs that are taken to be the same entities.
    """
    pairs = np.unique(known, axis=0) if len(known) else known.reshape(0, 2)
    if len(pairs) > MOST_PAIRS:
        pairs = pairs[np.linspace(0, len(pairs) - 1, MOST_PAIRS).astype(np.int64)]
    seen = [
        pd.DataFrame({"pair": np.arange(len(pairs)), "entity": pairs[:, side]}).merge(table, on="entity")[["pair", "attribute", "key"]]
        for side, table in enumerate(tables)
    ]
    present = [one[["pair", "attribute"]].drop_duplicates() for one in seen]
    together = pd.merge(present[0], present[1], on="pair", suffixes=("_source", "_target"))
    equal = pd.merge(seen[0][seen[0]["key"] >= 0], seen[1], on=["pair", "key"], suffixes=("_source", "_target"))
    columns = ["attribute_source", "attribute_target"]
    counts = together.groupby(columns).size().rename("compared").to_frame()
    counts["support"] = equal.drop_duplicates(["pair", *columns]).groupby(columns).size()
    found = counts.dropna().reset_index().rename(columns={"attribute_source": "source", "attribute_target": "target"})
    found["agreement"] = found["support"] / (found["compared"] + PRIOR)
    found = found[(found["support"] >= LEAST_AGREEING) & (found["agreement"] >= LEAST_AGREEMENT)]
    found = found.assign(order=-found["support"] * found["agreement"]).sort_values(["order", "source", "target"], ignore_index=True)
    return one_to_one(found)[["source", "target", "agreement", "support", "compared"]].astype({"support": np.int64, "compared": np.int64})


def one_to_one(found: pd.DataFrame) -> pd.DataFrame:
    """The rows whose two attributes no earlier row has, so that no value counts twice."""
    kept, taken = [], (set[str](), set[str]())
    for at, (source, target) in enumerate(zip(found["source"].tolist(), found["target"].tolist(), strict=True)):
        if source not in taken[0] and target not in taken[1]:
            kept.append(at)
            taken[0].add(source)
            taken[1].add(target)
    return found.iloc[kept].reset_index(drop=True)


# Rows.


def attributed(table: pd.DataFrame, attributes: list[str]) -> pd.DataFrame:
    """The values under paired attributes: ``entity``, ``pair`` (the number of the pair of attributes) and ``key``."""
    numbers = {name: number for number, name in enumerate(attributes)}
    kept = table[table["attribute"].isin(numbers)]
    return pd.DataFrame({"entity": kept["entity"], "pair": kept["attribute"].map(numbers).astype(np.int64), "key": kept["key"]})


def shared_features(rows: list[pd.DataFrame]) -> pd.DataFrame:
    """What both graphs say under a pair of attributes: ``pair``, ``key``, and the number of entities in each graph."""
    counts = [table.groupby(["pair", "key"]).size().rename(side) for table, side in zip(rows, SIDES, strict=True)]
    found = pd.concat(counts, axis=1, join="inner").reset_index().sort_values(["pair", "key"], ignore_index=True)
    return found[found["source"] * found["target"] <= MOST_OWNERS].reset_index(drop=True)


def value_rows(table: pd.DataFrame, features: pd.DataFrame, agreement: FloatArray, size: int) -> sparse.csr_array:
    """(size, F) rows of at most unit length: shorter the more an entity says that the other graph does not.

    Args:
        table: of :func:`attributed`.
        features: of :func:`shared_features`.
        agreement: by pair of attributes.
        size: entities of the graph.
    """
    own = table.groupby(["pair", "key"]).size().rename("own").reset_index()
    numbered = own.merge(features.reset_index(names="feature"), on=["pair", "key"], how="left")
    owners = numbered[["own", "source", "target"]].max(axis=1).to_numpy()
    numbered["weight"] = np.sqrt(agreement[numbered["pair"]] / owners)
    rows = table.merge(numbered[["pair", "key", "feature", "weight"]], on=["pair", "key"])
    lengths = np.maximum(np.sqrt(np.bincount(rows["entity"], rows["weight"] ** 2, minlength=size)), 1.0)  # one weak value is no certainty
    shared = rows[rows["feature"].notna() & (rows["weight"] > 0)]
    entities = shared["entity"].to_numpy(dtype=np.int64)
    values = (shared["weight"].to_numpy() / lengths[entities]).astype(np.float32)
    return sparse.csr_array((values, (entities, shared["feature"].to_numpy(dtype=np.int64))), shape=(size, len(features)))


def described(features: pd.DataFrame, attributes: pd.DataFrame) -> pd.DataFrame:
    """The features with the names of their attributes."""
    names = attributes[["source", "target"]].iloc[features["pair"]].reset_index(drop=True).astype("str")
    counts = features[["source", "target"]].rename(columns={"source": "source_entities", "target": "target_entities"})
    return pd.concat([names, features[["key"]].astype("str"), counts.astype(np.int64)], axis=1)
