"""Entities that a run has never seen, matched with its frozen weights.

A new entity is embedded as the encoder embeds every other one (paper section 4): from its triples with entities of its graph, over the relations that
the run knows. What training would have given it, a feature vector of its own, is taken to be the mean of its neighbours'. Nothing that is known of
the other entities changes: their embeddings and hubness terms are those of the run, so that a new entity costs no more than one row of scores.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy import sparse

from engine.data.knowledge_graph import SIDES, Side
from engine.data.labels import clean_label, is_missing
from engine.errors import DataError, EntityError, RunDamagedError
from engine.evaluation.calibration import FEATURE_COLUMNS, FEATURES, MAX_MARGIN, Calibration
from engine.explanation.encoder import EditedGraph, Entry, FrozenEncoder, Row
from engine.explanation.explainer import Explainer
from engine.names.encoders import NgramEncoder, get_name_encoder
from engine.names.encoders.ngrams import RowsOf
from engine.names.synonyms import WEIGHTS, kind_of
from engine.names.values import key_texts
from engine.runs.entities import other
from engine.runs.view import RunView
from engine.search import BestNames, LiteralSimilarity, NameSimilarity, SparseSimilarity
from engine.search.csls import csls_score
from engine.util.arrays import Float32Array, FloatArray, IntArray
from engine.util.objects import with_distinct_keys
from engine.util.text import count, shorten

SIMILAR_PREDICTIONS: Final = 25
"""Stored predictions that the plan weight of a new pair is taken from."""
FIELDS: Final = frozenset({"id", "label", "names", "triples", "values"})


@dataclass(frozen=True)
class NewEntity:
    """What is known of an entity that the run has not seen.

    Attributes:
        id: its identifier.
        label: its name.
        names: further names.
        triples: head, relation, tail; one of the ends is the entity, the other one an entity of the run's graph, or another new one.
        values: attribute and value.
    """

    id: str
    label: str = ""
    names: tuple[str, ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class PlacedEntity:
    """Where a new entity belongs.

    Attributes:
        id: its identifier.
        matches: its best candidates: ``rank``, ``uri``, ``label``, ``csls``, ``cosine``, ``names`` and ``values`` (NaN where they do not count),
            ``probability`` (of the best one, NaN elsewhere and where the run has none), and ``matched_with``: the entity that the run itself gives
            the candidate to, "" for none.
        basis: share of the best candidate's similarity that comes from "structure", "names" and "values".
        used: triples that the embedding rests on.
        ignored: what was left out, in sentences.
    """

    id: str
    matches: pd.DataFrame
    basis: Mapping[str, float]
    used: int
    ignored: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no NaN."""
        rows = [
            {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
            for row in self.matches.to_dict("records")
        ]
        return {"id": self.id, "basis": dict(self.basis), "used": self.used, "ignored": list(self.ignored), "matches": rows}

    def sentence(self) -> str:
        """One line for the user."""
        if self.matches.empty:
            return f"{shorten(self.id)}: not placed."
        shares = ", ".join(f"{part} {share:.0%}" for part, share in self.basis.items() if share > 0) or "nothing"
        return f"{shorten(self.id)}: {count(self.used, 'triple')} used; the best match rests on: {shares}."


@dataclass(frozen=True)
class Incoming:
    """The messages of the new entities."""

    rows: list[Row]
    neighbours: list[list[int]]
    directions: list[list[int]]
    extra: EditedGraph


@dataclass
class Record:
    """A new entity while it is placed: its edges in the stacked index space, and what was left out."""

    entity: NewEntity
    entries: list[Entry] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


class NewEntities:
    """Places new entities of one graph of a run. Cheap to make; weights, names and values are loaded on first use and kept.

    Args:
        view, explainer: of the run.
        side: the graph that the entities belong to.
        calibration: of the run's probabilities; None where it has none.
    """

    def __init__(self, view: RunView, explainer: Explainer, side: Side = "source", calibration: Calibration | None = None) -> None:
        self.view, self.explainer, self.side, self.calibration = view, explainer, side, calibration

    @property
    def encoder(self) -> FrozenEncoder:
        return self.explainer.encoder

    @cached_property
    def literal(self) -> LiteralSimilarity | None:
        """Names and values, where the run compares them."""
        return self.view.similarity if isinstance(self.view.similarity, LiteralSimilarity) else None

    @cached_property
    def relations(self) -> Mapping[str, int]:
        """Names of the graph's relations -> their numbers in the stacked index space."""
        names = self.view.run.table("relations", ["name"], {"graph": self.side})["name"].astype(str).tolist()
        shift = 0 if self.side == "source" else self.explainer.sizes[1]
        return {name: number + shift for number, name in enumerate(names)}

    def place(self, entities: Sequence[NewEntity], top: int = 10) -> list[PlacedEntity]:
        """The best candidates of new entities, which may have triples with each other.

        Raises:
            EntityError: an identifier that the graph has, or that comes twice.
            RunError: the run has no stored weights.
        """
        if not entities:
            return []
        records = self._records(entities)
        embedded = self.embed(records)
        return [self._placed(record, vector, max(top, 0)) for record, vector in zip(records, embedded, strict=True)]

    # Triples

    def _records(self, entities: Sequence[NewEntity]) -> list[Record]:
        index = self.view.graphs[self.side].index
        numbers: dict[str, int] = {}
        for entity in entities:
            if entity.id in index:
                raise EntityError(f"the {self.side} graph has '{shorten(entity.id)}' already; match it by its identifier.")
            if entity.id in numbers:
                raise EntityError(f"'{shorten(entity.id)}' comes twice among the new entities; give each one a record of its own.")
            numbers[entity.id] = len(numbers)
        records = [Record(entity) for entity in entities]
        for record in records:
            self._read_triples(record, records, numbers)
        return records

    def _read_triples(self, record: Record, records: list[Record], numbers: Mapping[str, int]) -> None:
        """The edges of a record; those to another new entity are edges of that one as well."""
        unknown: dict[str, list[str]] = {"relation": [], "entity": []}
        own = record.entity.id
        for head, relation, tail in dict.fromkeys(record.entity.triples):
            if own not in (head, tail):
                record.ignored.append(f"a triple of '{shorten(head)}' and '{shorten(tail)}' is left out: neither end is '{shorten(own)}'.")
                continue
            if relation not in self.relations:
                unknown["relation"].append(relation)
                continue
            ends = [self._stacked(name, numbers) for name in (head, tail)]
            if None in ends:
                unknown["entity"].append(head if ends[0] is None else tail)
                continue
            self._add(records, self.relations[relation], int(ends[0] or 0), int(ends[1] or 0))
        for what, names in unknown.items():
            if names:
                listed = ", ".join(f"'{shorten(name)}'" for name in dict.fromkeys(names[:5]))
                record.ignored.append(f"{count(len(names), 'triple')} left out: the {self.side} graph does not have the {what} {listed}.")

    def _stacked(self, name: str, numbers: Mapping[str, int]) -> int | None:
        """An end of a triple in the stacked index space, where new entities follow all others."""
        if name in numbers:
            return self.encoder.graph.adjacency.num_entities + numbers[name]
        index = self.view.graphs[self.side].index.get(name)
        return None if index is None else self.explainer.stacked(self.side, index)

    def _add(self, records: list[Record], relation: int, head: int, tail: int) -> None:
        first, inverse = self.encoder.graph.adjacency.num_entities, self.encoder.graph.adjacency.num_relations
        for end, entry in ((head, Entry(tail, relation)), (tail, Entry(head, relation + inverse))):
            if end >= first and entry not in records[end - first].entries:
                records[end - first].entries.append(entry)

    # Embedding

    def embed(self, records: Sequence[Record]) -> Float32Array:
        """(n, C D) embeddings of the new entities, rows of unit length; zero rows where there is no triple."""
        encoder = self.encoder
        incoming = self._incoming(records)
        total = encoder.graph.adjacency.num_entities
        place = np.full(total + len(records), -1, dtype=np.int64)
        place[total:] = np.arange(len(records))
        vectors, scores = encoder.units_with(incoming.extra.extra)
        layers = [np.tanh(self._inputs(incoming, total))]
        for layer in range(1, encoder.config.layers + 1):
            layers.append(np.tanh(encoder.aggregate_rows(incoming.rows, layer, place, layers[-1], vectors, scores)))
        hidden: FloatArray = np.concatenate(layers if encoder.config.multi_hop else layers[-1:], axis=2)
        final = encoder.finished(hidden).reshape(len(records), -1)
        final[[not record.entries for record in records]] = 0.0
        lengths = np.linalg.norm(final, axis=1, keepdims=True)
        return np.asarray(final / np.maximum(lengths, 1e-12), dtype=np.float32)

    def _incoming(self, records: Sequence[Record]) -> Incoming:
        graph = EditedGraph(self.encoder.graph)
        rows = [graph.built(record.entries) for record in records]
        neighbours = [sorted({entry.neighbour for entry in record.entries}) for record in records]
        whole = self.encoder.graph
        received = [sorted({entry.direction for entry in record.entries}) for record in records]
        directions = [sorted(whole.flipped(one) for one in own) for own in received] if whole.opposite else received
        return Incoming(rows, neighbours, directions, graph)

    def _inputs(self, incoming: Incoming, total: int) -> FloatArray:
        """(n, C, d) what layer 0 is the tanh of."""
        encoder, size = self.encoder, len(incoming.rows)
        out = np.zeros((size, len(encoder.channels), encoder.dim))
        for c, channel in enumerate(encoder.channels):
            features = encoder.parameters[f"{channel}_features"]
            if channel == "relation":
                for at, own in enumerate(incoming.directions):
                    out[at, c] = features[own].mean(axis=0, dtype=np.float64) if own else 0.0
                continue
            known = [[one for one in own if one < total] for own in incoming.neighbours]
            new = np.stack([features[own].mean(axis=0, dtype=np.float64) if own else np.zeros(encoder.dim) for own in known]) if size else out[:, c]
            for at, own in enumerate(incoming.neighbours):
                around = [features[one].astype(np.float64) if one < total else new[one - total] for one in own if one != total + at]
                out[at, c] = np.mean([new[at], *around], axis=0)
        return out

    # Scores

    def _placed(self, record: Record, vector: Float32Array, top: int) -> PlacedEntity:
        theirs = self.view.hubness(other(self.side), "all")
        candidates = np.flatnonzero(~np.isnan(theirs))
        cosine = (self._structure @ torch.from_numpy(vector)).double().numpy()[candidates]
        names, values = self._names(record.entity, candidates), self._values(record.entity, candidates)
        if not record.entries and names is None and not values.any():
            reason = "nothing is left to place it by: it has no triples with the graph, and no name or value that the run compares."
            return PlacedEntity(record.entity.id, candidate_table([], {}), {}, 0, (*record.ignored, reason))
        weight, value_weight = (self.literal.weight, self.literal.value_weight) if self.literal else (0.0, 0.0)
        named = cosine if names is None else np.where(np.isnan(names), cosine, names)
        both = cosine + weight * named + value_weight * values
        nearest = min(self.explainer.config.search.csls_k, len(both))
        own = torch.tensor(np.sort(both)[len(both) - nearest :].mean() if nearest else 0.0)
        csls = csls_score(torch.from_numpy(both), own, torch.from_numpy(theirs[candidates])).numpy()
        order = np.argsort(-csls, kind="stable")[:top]
        graph, best = self.view.graphs[other(self.side)], self.view.best[other(self.side)]
        found = candidates[order].tolist()
        matched = [best.get(one) for one in found]
        uris = self.view.graphs[self.side].uris
        nothing = np.full(len(candidates), np.nan)
        scores = {"csls": csls, "cosine": cosine, "names": nothing if names is None else names, "values": values if value_weight else nothing}
        columns = {name: column[order] for name, column in scores.items()}
        rows = [(graph.uris[one], graph.labels[one], "" if with_it is None else uris[with_it]) for one, with_it in zip(found, matched, strict=True)]
        table = candidate_table(rows, columns)
        if len(order):
            table.loc[0, "probability"] = self._probability(record, candidates, both, csls, int(order[0]))
        basis = self._basis(cosine, names, values, int(order[0])) if len(order) else {}
        return PlacedEntity(record.entity.id, table, basis, len(record.entries), tuple(record.ignored))

    @cached_property
    def _structure(self) -> torch.Tensor:
        """(m, D) embeddings of the other graph."""
        similarity = self.literal.structure if self.literal else self.view.similarity
        return getattr(similarity, other(self.side))  # type: ignore[no-any-return]

    def _basis(self, cosine: FloatArray, names: FloatArray | None, values: FloatArray, at: int) -> dict[str, float]:
        weight, value_weight = (self.literal.weight, self.literal.value_weight) if self.literal else (0.0, 0.0)
        known = names is not None and not np.isnan(names[at])
        parts = {
            "structure": cosine[at] * (1 if known or not self.literal else 1 + weight),
            "names": weight * names[at] if known and names is not None else 0.0,
            "values": value_weight * values[at],
        }
        total = sum(max(part, 0.0) for part in parts.values())
        return {name: float(max(part, 0.0) / total) if total > 0 else 0.0 for name, part in parts.items()}

    # Names and values

    def _names(self, entity: NewEntity, candidates: IntArray) -> FloatArray | None:
        """Similarity of the best pair of names with each candidate, NaN for candidates without one; None where there is nothing to compare."""
        if self.literal is None:
            return None
        kinds = {clean_label(value): kind for attribute, value in entity.values if (kind := kind_of(attribute)) is not None}
        weighted = {name: WEIGHTS[kind] for name, kind in kinds.items()} | dict.fromkeys(map(clean_label, entity.names), WEIGHTS["exact"])
        weighted |= {clean_label(entity.label): WEIGHTS["name"]}
        own = {name: weight for name, weight in weighted.items() if name and not is_missing(name)}
        if not own:
            return None
        base, starts = name_rows(self.literal.names, other(self.side))
        rows = self._encoded_names(list(own)) * np.array(list(own.values()), dtype=np.float32)[:, None]
        scores = np.asarray((base @ rows.T).todense() if sparse.issparse(base) else base @ np.asarray(rows).T)
        best = np.maximum.reduceat(scores.max(axis=1), starts[:-1]) if len(starts) > 1 else np.zeros(0)
        named = self.literal.names.named()[SIDES.index(other(self.side))].numpy()
        return np.where(named, best, np.nan).astype(np.float64)[candidates]

    def _encoded_names(self, names: list[str]) -> Any:
        """(n, F) rows as the run's names have them."""
        encoder = get_name_encoder(self.explainer.config.literal.encoder)
        if isinstance(encoder, NgramEncoder):
            return self._ngrams(names)
        return encoder.encode(names, names).similarity.source.numpy()  # type: ignore[union-attr]

    @cached_property
    def _ngrams(self) -> RowsOf:
        """Names as rows of the run's n-grams, with weights fitted on the names that the run has.

        Raises:
            RunDamagedError: these are not the names that its stored rows were made of.
        """
        table = self.view.run.table("names")
        ordered = [name for side in SIDES for name in table.loc[table["graph"] == side, "name"].astype(str)]
        rows_of, width = NgramEncoder().fitted(ordered)
        if self.literal is None or name_rows(self.literal.names, "source")[0].shape[1] != width:
            raise RunDamagedError("the run's names do not fit their stored vectors; train the literal variant again with --fresh.")
        return rows_of

    def _values(self, entity: NewEntity, candidates: IntArray) -> FloatArray:
        """Similarity of the values with each candidate, as the run's scores have it."""
        nothing = np.zeros(len(candidates))
        if self.literal is None or self.literal.values is None or not self.literal.value_weight:
            return nothing
        row = value_row([key for attribute, value in entity.values for key in key_texts(attribute, value)], self._value_index)
        rows = self.literal.values.target if self.side == "source" else self.literal.values.source
        return np.asarray((rows @ row.T).todense()).ravel()[candidates].astype(np.float64)

    @cached_property
    def _value_index(self) -> ValueIndex:
        return ValueIndex.of(self.view.run.table("value_attributes"), self.explainer.value_features, self.side)

    # Probability

    def _probability(self, record: Record, candidates: IntArray, both: FloatArray, csls: FloatArray, at: int) -> float:
        """That the best candidate is right, by the run's calibration; NaN where it has none."""
        if self.calibration is None:
            return math.nan
        target = int(candidates[at])
        stored = self._best_csls.get(target, -math.inf)
        second = float(np.partition(csls, -2)[-2]) if len(csls) > 1 else -math.inf
        degree = int(self.view.graphs[other(self.side)].degrees[target])
        aligned, share = self._aligned(record, target)
        features = {
            "similarity": both[at],
            "csls": csls[at],
            f"{self.side} margin": min(csls[at] - second, MAX_MARGIN),
            f"{other(self.side)} margin": float(np.clip(csls[at] - stored, -MAX_MARGIN, MAX_MARGIN)),
            f"{self.side} rank": 0.0,
            f"{other(self.side)} rank": 0.0 if csls[at] >= stored else math.log(2),
            f"{self.side} degree": math.log1p(len(record.entries)),
            f"{other(self.side)} degree": math.log1p(degree),
            "aligned neighbours": math.log1p(aligned),
            "aligned share": share,
        }
        features["plan weight"] = self._plan_weight(features)
        return float(self.calibration.probabilities(np.array([[features[name] for name in FEATURES]]))[0])

    @cached_property
    def _best_csls(self) -> dict[int, float]:
        first = self.view.stored_matches({"graph": other(self.side), "rank": 1})
        return dict(zip(first["entity"].tolist(), first["csls"].tolist(), strict=True))

    def _plan_weight(self, features: Mapping[str, float]) -> float:
        """Of the stored predictions with the most similar score and margins: a plan is made for all entities together, and not again for one."""
        names = ["csls", f"{self.side} margin", f"{other(self.side)} margin"]
        table = self._predictions[[name.replace(" ", "_") for name in names]].to_numpy(dtype=np.float64)
        if not len(table):
            return 0.0
        apart = (table - [features[name] for name in names]) / np.maximum(table.std(axis=0), 1e-9)
        near = np.argsort((apart**2).sum(axis=1), kind="stable")[:SIMILAR_PREDICTIONS]
        return float(self._predictions["plan_weight"].to_numpy(dtype=np.float64)[near].mean())

    @cached_property
    def _predictions(self) -> pd.DataFrame:
        return self.view.run.table("probabilities", list(FEATURE_COLUMNS), {"graph": self.side})

    def _aligned(self, record: Record, target: int) -> tuple[int, float]:
        """How many neighbours of the candidate are aligned to a neighbour of the new entity, and their share of all neighbours of both."""
        first = 0 if self.side == "source" else self.explainer.sizes[0]
        total = self.encoder.graph.adjacency.num_entities
        own = {entry.neighbour - first for entry in record.entries if entry.neighbour < total}
        around = self.explainer.adjacency.adjacent(other(self.side), target) - {target}
        expected = {one for neighbour in own for one in self._counterparts(neighbour)}
        found = len(around & expected)
        return found, min(2 * found / max(len(own) + len(around), 1), 1.0)

    def _counterparts(self, index: int) -> list[int]:
        """By a seed link, or as mutual best matches."""
        seeds = [one for one, kind in self.view.counterparts(self.side, index).items() if kind == "seed link"]
        best = self.view.best[self.side].get(index)
        mutual = best is not None and self.view.best[other(self.side)].get(best) == index
        return seeds or ([best] if mutual and best is not None else [])


def candidate_table(rows: Sequence[tuple[str, str, str]], scores: Mapping[str, FloatArray]) -> pd.DataFrame:
    """The candidates of a new entity, best first.

    Args:
        rows: identifier, label, and the entity that the run matches the candidate with.
        scores: columns of numbers; those that are missing are NaN.
    """
    numbers = {name: scores.get(name, np.full(len(rows), np.nan)) for name in ("csls", "cosine", "names", "values", "probability")}
    texts = dict(zip(("uri", "label", "matched_with"), zip(*rows, strict=True), strict=True)) if rows else {}
    columns = {name: pd.Series(list(texts.get(name, ())), dtype="str") for name in ("uri", "label", "matched_with")}
    table = pd.DataFrame({"rank": np.arange(1, len(rows) + 1), **columns, **numbers})
    return table[["rank", "uri", "label", "csls", "cosine", "names", "values", "probability", "matched_with"]]


def name_rows(names: NameSimilarity, side: Side) -> tuple[Any, IntArray]:
    """A graph's rows of names, weighted, and where each entity's begin."""
    base = names.base if isinstance(names, BestNames) else names
    rows = getattr(base, side)
    starts = names.starts[SIDES.index(side)] if isinstance(names, BestNames) else np.arange(rows.shape[0] + 1, dtype=np.int64)
    return (rows if isinstance(base, SparseSimilarity) else rows.numpy()), starts


@dataclass(frozen=True)
class ValueIndex:
    """What a run stores of the values of one graph, to be looked up.

    Attributes:
        agreement: of each attribute that is compared.
        columns: by attribute and key, the number of the feature.
        owners: (F,) the larger number of entities that have the value.
    """

    agreement: Mapping[str, float]
    columns: Mapping[tuple[str, str], int]
    owners: FloatArray

    @classmethod
    def of(cls, attributes: pd.DataFrame, features: pd.DataFrame, side: Side) -> ValueIndex:
        """Of a run's ``value_attributes`` and ``value_features``."""
        agreement = dict(zip(attributes[side].astype(str), attributes["agreement"].astype(float), strict=True))
        names = zip(features[side].astype(str), features["key"].astype(str), strict=True)
        owners = features[["source_entities", "target_entities"]].max(axis=1).to_numpy(dtype=np.float64)
        return cls(agreement, {name: at for at, name in enumerate(names)}, owners)


def value_row(keys: Sequence[tuple[str, str]], index: ValueIndex) -> sparse.csr_array:
    """(1, F) an entity's values as the run weighs them (:func:`engine.names.value_similarity.value_rows`).

    Args:
        keys: attribute and key of each value.
        index: of the entity's graph.
    """
    wanted = {pair for pair in keys if pair[0] in index.agreement}
    shared = sorted((index.columns[pair], pair) for pair in wanted if pair in index.columns)
    columns = np.array([at for at, _ in shared], dtype=np.int64)
    strengths = np.array([index.agreement[attribute] for _, (attribute, _) in shared], dtype=np.float64)
    weights = np.sqrt(strengths / np.maximum(index.owners[columns], 1))
    alone = sum(index.agreement[pair[0]] for pair in wanted if pair not in index.columns)
    length = max(math.sqrt(float((weights**2).sum()) + alone), 1.0)
    data: npt.NDArray[np.float32] = (weights / length).astype(np.float32)
    return sparse.csr_array((data, (np.zeros(len(columns), dtype=np.int64), columns)), shape=(1, len(index.owners)))


# Files


def read_new_entities(path: Path) -> list[NewEntity]:
    """New entities from a file with one JSON object per line (docs/python.md).

    Raises:
        DataError: with file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DataError(f"cannot be read ({reason}); give a file with one JSON object per line.", path=path) from None
    found = list(_parsed_lines(text, path))
    if not found:
        raise DataError("has no entities; give one JSON object per line.", path=path)
    return found


_LINE_END: Final = re.compile(r"\r\n|\n|\r")


def _parsed_lines(text: str, path: Path) -> Iterator[NewEntity]:
    for number, line in enumerate(_LINE_END.split(text), start=1):  # not splitlines: other separators may be inside of texts
        if line.strip():
            try:
                yield new_entity(json.loads(line, object_pairs_hook=with_distinct_keys))
            except (ValueError, RecursionError) as error:
                words = "this is not JSON" if isinstance(error, json.JSONDecodeError | RecursionError) else str(error)
                raise DataError(f"{words}; expected one object like {EXAMPLE}.", path=path, line=number) from None


EXAMPLE: Final = '{"id": "x", "label": "Name", "triples": [["x", "relation", "y"]], "values": [["attribute", "value"]]}'


def new_entity(record: Any) -> NewEntity:
    """
    Raises:
        ValueError: a record that is no new entity.
    """
    if not isinstance(record, dict) or not isinstance(record.get("id"), str) or not record["id"]:
        raise ValueError("a new entity needs an 'id' with text")
    if not _is_whole(record):
        raise ValueError("there is half a character (a lone surrogate)")
    if unknown := sorted(set(record) - FIELDS):
        raise ValueError(f"unknown field '{shorten(str(unknown[0]))}'")
    label = record.get("label", "")
    if not isinstance(label, str):
        raise ValueError("'label' must be text")
    return NewEntity(record["id"], label, *(lists_of_texts(record, name, width) for name, width in (("names", 1), ("triples", 3), ("values", 2))))


def _is_whole(record: Mapping[str, Any]) -> bool:
    """Whether all texts can be written."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def lists_of_texts(record: Mapping[str, Any], name: str, width: int) -> Any:
    """A field that holds texts, or lists of as many texts."""
    rows = record.get(name, [])
    words = "a list of texts" if width == 1 else f"a list of lists of {width} texts"
    if not isinstance(rows, list):
        raise ValueError(f"'{name}' must be {words}")
    cells = [[row] if width == 1 else row for row in rows]
    if not all(isinstance(row, list) and len(row) == width and all(isinstance(cell, str) for cell in row) for row in cells):
        raise ValueError(f"'{name}' must be {words}")
    return tuple(row[0] for row in cells) if width == 1 else tuple(map(tuple, cells))
