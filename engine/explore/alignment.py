"""The whole alignment of a run as one table: every entity of one graph with its best match, filtered and sorted at any size.

A row holds numbers and codes only, some 50 bytes of them; texts are looked up for the rows that are shown. Everything is computed on whole
columns, so that half a million rows are filtered and sorted within a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.decoding import Candidates
from engine.evaluation.metrics import rate_interval
from engine.explore.hierarchy import Contradiction, contradicting_rows, contradictions, hierarchies
from engine.runs.entities import GraphView, other
from engine.runs.tensors import check_numbers
from engine.runs.verdicts import KNOWN, KNOWN_OF, NOT_ADDED, VERDICTS, Known, looked_up, verdict_codes
from engine.runs.view import PROBABILITY_COLUMNS, RunView
from engine.search import tie_tolerance
from engine.util.arrays import BoolArray, Float32Array, IntArray

Range = tuple[float | None, float | None]
PairOrder = Literal["doubt", "probability", "csls", "cosine", "margin", "degree", "claims", "label"]
Score = Literal["probability", "csls"]
FilterPart = Literal["known", "probability", "csls", "margin", "degree", "incident", "conflicts", "contradictions", "added", "text"]

_KNOWN_CODES = np.array([KNOWN.index(KNOWN_OF[verdict]) for verdict in VERDICTS], dtype=np.int8)
RANGES: tuple[FilterPart, ...] = ("probability", "csls", "margin", "degree")
PAIRS_AT_ONCE = 2**15
BINS = 24


@dataclass(frozen=True)
class PairFilter:
    """Which rows to keep; what is left at its default keeps all.

    Attributes:
        known: what the known links say of the pair.
        probability, csls, margin: ends of the range, both included. A row without the value is in no range of it.
        degree: of the entity whose match is looked for.
        text: part of a label, an id or a URI of either entity, in any script; case and accents do not matter.
        incident: (E,) the entities to keep, for example those of a relation.
        conflicts: only matches that several entities claim.
        contradictions: only mutual best matches that contradict the graphs' hierarchies (:mod:`engine.explore.hierarchy`).
        added: only pairs that training started from or that a semi-supervised round trained on.
    """

    known: frozenset[Known] = frozenset()
    probability: Range = (None, None)
    csls: Range = (None, None)
    margin: Range = (None, None)
    degree: Range = (None, None)
    text: str = ""
    incident: BoolArray | None = None
    conflicts: bool = False
    contradictions: bool = False
    added: bool = False


@dataclass(frozen=True)
class Precision:
    """How many of some pairs are right, of those where known links decide. Seed links are not counted: the model was given them.

    Attributes:
        right, wrong: number of pairs.
        interval: 95 % score interval (Wilson) of their share; NaN without such pairs.
    """

    right: int
    wrong: int
    interval: tuple[float, float]

    @property
    def judged(self) -> int:
        return self.right + self.wrong

    @property
    def share(self) -> float:
        return self.right / self.judged if self.judged else float("nan")


class Alignment:
    """Every entity of one graph that has a candidate, with the best one.

    Rows are addressed by their positions in ``rows``; nothing here may be changed.

    Attributes:
        side: of the entities.
        rows: ``entity``; ``match``; ``csls``; ``cosine`` of the embeddings; ``names``, similarity of the names (NaN in runs that look at none);
            ``margin``, CSLS ahead of the runner-up (NaN where there is none); ``probability`` (NaN where the run has none); ``verdict``; ``added``,
            the first semi-supervised round that trained on the pair (0: none did); ``degree``; ``match_degree``; ``claims``, how many entities
            have this match; ``mutual``, whether it is so from the other side, too.
    """

    def __init__(self, side: Side, rows: pd.DataFrame, view: RunView) -> None:
        self.side = side
        self.rows = rows
        self._graphs: tuple[GraphView, GraphView] = (view.graphs[side], view.graphs[other(side)])
        self._view = view

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def calibrated(self) -> bool:
        """Whether the run has any probabilities."""
        return bool(self.rows["probability"].notna().any())

    @cached_property
    def named(self) -> bool:
        """Whether the run compares any names."""
        return bool(self.rows["names"].notna().any())

    @cached_property
    def has_rounds(self) -> bool:
        """Whether training started from any of the pairs, or a semi-supervised round trained on it."""
        return bool((self.rows["added"] != NOT_ADDED).any())

    @cached_property
    def known(self) -> npt.NDArray[np.int8]:
        """(n,) what the known links say of each row, as a place in ``KNOWN``."""
        codes: npt.NDArray[np.int8] = _KNOWN_CODES[self.rows["verdict"].cat.codes.to_numpy()]
        return codes

    @cached_property
    def contradictions(self) -> list[Contradiction]:
        """Those of the mutual best matches with the graphs' hierarchies, by positions of the rows."""
        found = hierarchies(self._view)
        mutual = np.flatnonzero(self.rows["mutual"].to_numpy())
        if not any(found.values()) and not any(one.disjoint for one in found.values()):
            return []
        rows = self.rows.iloc[mutual]
        own, theirs = (rows[name].to_numpy(dtype=np.int64) for name in ("entity", "match"))
        ends = (own, theirs) if self.side == "source" else (theirs, own)
        listed = contradictions(found, *ends, rows["csls"].to_numpy(dtype=np.float64))
        return [Contradiction(one.reason, int(mutual[one.weaker]), int(mutual[one.stronger])) for one in listed]

    @cached_property
    def contradicting(self) -> BoolArray:
        """(n,) rows that take part in a contradiction."""
        return contradicting_rows(self.contradictions, len(self))

    # Choosing rows

    def select(self, wanted: PairFilter) -> IntArray:
        """Ascending positions of the rows that pass every part of a filter."""
        return self.passing(self.parts(wanted))

    def parts(self, wanted: PairFilter) -> dict[FilterPart, BoolArray]:
        """(n,) the rows that pass it, for each part of a filter that is set."""
        found: dict[FilterPart, BoolArray] = {}
        if wanted.known:
            found["known"] = np.isin(self.known, [KNOWN.index(one) for one in wanted.known])
        ranges: Mapping[FilterPart, Range] = {name: getattr(wanted, name) for name in RANGES}
        for name, ends in ranges.items():
            if ends != (None, None):
                found[name] = within(self.rows[name].to_numpy(), ends)
        if wanted.incident is not None:
            found["incident"] = wanted.incident[self.rows["entity"].to_numpy()]
        if wanted.conflicts:
            found["conflicts"] = self.rows["claims"].to_numpy() > 1
        if wanted.contradictions:
            found["contradictions"] = self.contradicting
        if wanted.added:
            found["added"] = self.rows["added"].to_numpy() != NOT_ADDED
        if wanted.text.strip():
            found["text"] = self._holding(wanted.text)
        return found

    def passing(self, parts: Mapping[FilterPart, BoolArray], without: FilterPart | None = None) -> IntArray:
        """Ascending positions of the rows that pass every part but one: what a choice within this one would leave."""
        keep = np.ones(len(self), dtype=bool)
        for name, passed in parts.items():
            if name != without:
                keep &= passed
        return np.flatnonzero(keep)

    def _holding(self, text: str) -> BoolArray:
        """(n,) whether the entity or its match fits a text."""
        own, theirs = (graph.fitting(text) for graph in self._graphs)
        fits: BoolArray = np.logical_or(own[self.rows["entity"].to_numpy()], theirs[self.rows["match"].to_numpy()])
        return fits

    # Sorting

    def ordered(self, positions: IntArray, order: PairOrder = "doubt", *, reverse: bool = False) -> IntArray:
        """Positions in an order; what a row has no value for comes last in both directions, and of equals the lower position first.

        "doubt" is the least certain first: the probability nearest one half, then the smallest margin to the runner-up, seed links at the end.
        "claims" starts with the most, all others with the least.
        """
        keys = [-key if reverse else key for key in self._keys(order)]
        return positions[np.lexsort([key[positions] for key in reversed(keys)])]

    def _keys(self, order: PairOrder) -> Sequence[npt.NDArray[Any]]:
        if order == "doubt":
            seeds = (self.known == KNOWN.index("seed")).astype(np.int8)
            return seeds, np.abs(self.rows["probability"].to_numpy() - 0.5), self.rows["margin"].to_numpy()
        if order == "label":
            return (self._places,)
        values = self.rows[order].to_numpy()
        return (-values if order == "claims" else values,)

    @cached_property
    def _places(self) -> IntArray:
        """(n,) place of each row in the alphabet of the entities' titles, upper and lower case alike."""
        graph = self._graphs[0]
        titles = [graph.title(entity).casefold() for entity in self.rows["entity"].tolist()]
        place = {title: number for number, title in enumerate(sorted(set(titles)))}
        return np.array([place[title] for title in titles], dtype=np.int64)

    # What some rows have in common

    @cached_property
    def all_counts(self) -> dict[Known, int]:
        """How many of all rows are seed, right, wrong, probable, unknown."""
        return self.counts(np.arange(len(self)))

    def counts(self, positions: IntArray) -> dict[Known, int]:
        """How many of some rows are seed, right, wrong, probable, unknown."""
        return dict(zip(KNOWN, np.bincount(self.known[positions], minlength=len(KNOWN)).tolist(), strict=True))

    def precision(self, positions: IntArray) -> Precision:
        """Of some rows, how many are right where that is known."""
        counts = self.counts(positions)
        right, wrong = counts["right"], counts["wrong"]
        total = right + wrong
        return Precision(right, wrong, rate_interval(right / total if total else np.nan, total))

    def median(self, positions: IntArray, score: Score) -> float | None:
        """The middle value of some rows; None where none of them has the score."""
        values = self.rows[score].to_numpy(dtype=np.float64)[positions]
        values = values[~np.isnan(values)]
        return float(np.median(values)) if len(values) else None

    @cached_property
    def csls_ends(self) -> tuple[float, float]:
        """The least and the largest CSLS of all rows, never the same."""
        return _ends(self.rows["csls"].to_numpy(dtype=np.float64))

    def histogram(self, positions: IntArray, score: Score) -> pd.DataFrame:
        """How the score of some rows is spread: ``low``, ``high`` and a count for each of ``KNOWN`` in equal bins.

        The bins are those of all rows, so that filters change counts alone. Rows without the score are in none.
        """
        values = self.rows[score].to_numpy(dtype=np.float64)
        ends = (0.0, 1.0) if score == "probability" else self.csls_ends
        edges = np.linspace(*ends, BINS + 1)
        chosen = positions[~np.isnan(values[positions])]
        bins = np.clip(np.searchsorted(edges, values[chosen], side="right") - 1, 0, BINS - 1)
        counts = np.bincount(bins * len(KNOWN) + self.known[chosen], minlength=BINS * len(KNOWN)).reshape(BINS, len(KNOWN))
        table = pd.DataFrame(counts, columns=list(KNOWN))
        table.insert(0, "low", edges[:-1])
        table.insert(1, "high", edges[1:])
        return table

    # Reading rows

    def described(self, positions: IntArray) -> pd.DataFrame:
        """Some rows with texts, source before target whichever side is looked from, as they are downloaded.

        Texts are as the data has them; a number that a row does not have is missing.
        """
        part = self.rows.iloc[positions]
        own, theirs = ((graph, part[column].tolist()) for graph, column in zip(self._graphs, ("entity", "match"), strict=True))
        ends = zip(SIDES, (own, theirs) if self.side == "source" else (theirs, own), strict=True)
        texts = {
            f"{side}_{what}": pd.Series([values[index] for index in indices], dtype="str")
            for side, (graph, indices) in ends
            for what, values in (("label", graph.labels), ("uri", graph.uris))
        }
        degrees = ("degree", "match_degree") if self.side == "source" else ("match_degree", "degree")
        numbers = part.reset_index(drop=True)
        return pd.DataFrame(
            {
                **texts,
                "verdict": numbers["verdict"].astype("str"),
                "added_in_round": numbers["added"].astype("Int64").mask(numbers["added"] == NOT_ADDED),
                **{name: numbers[name] for name in ("probability", "csls", "cosine", "names", "margin")},
                **{f"{side}_degree": numbers[name] for side, name in zip(SIDES, degrees, strict=True)},
                "claims": numbers["claims"],
                "mutual": numbers["mutual"],
            }
        )


def within(values: npt.NDArray[Any], ends: Range) -> BoolArray:
    """(n,) whether values lie in a range, ends included; NaN lies in no range but the endless one."""
    low, high = ends
    keep = np.ones(len(values), dtype=bool)
    if low is not None:
        keep &= values >= np.float64(low)  # numbers from an address may not fit the column's own type
    if high is not None:
        keep &= values <= np.float64(high)
    return keep


def _ends(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """The least and the largest value, never the same."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def incident_entities(triples: pd.DataFrame, side: Side, relation: int, entities: int) -> BoolArray:
    """(E,) the entities of a graph that are head or tail of a relation.

    Args:
        triples: the run's table of that name.
        entities: E, of this graph.
    """
    rows = triples[(triples["relation"] == relation) & (triples["graph"] == side)]
    touched = np.zeros(entities, dtype=bool)
    touched[rows["head"].to_numpy()] = True
    touched[rows["tail"].to_numpy()] = True
    return touched


def relation_members(triples: pd.DataFrame, side: Side, entities: int) -> tuple[IntArray, IntArray]:
    """Distinct (relation, entity that is its head or tail) of a graph, as two arrays (n,).

    Args:
        triples: the run's table of that name.
        entities: E, of this graph.
    """
    rows, width = triples[triples["graph"] == side], max(entities, 1)
    relation = rows["relation"].to_numpy(dtype=np.int64) * width
    distinct = np.unique(np.concatenate([relation + rows[end].to_numpy(dtype=np.int64) for end in ("head", "tail")]))
    return distinct // width, distinct % width


# Making it


def alignments(view: RunView) -> dict[Side, Alignment]:
    """The alignment of a run as seen from either graph, from its stored matches.

    Raises:
        RunError: a table or tensor of the run cannot be read.
    """
    return described_matches(view, best_matches(view))


def best_matches(view: RunView) -> dict[Side, pd.DataFrame]:
    """``entity``, ``match``, ``csls``, ``cosine`` and ``margin`` of every entity of either graph, by entity, from a run's stored matches."""
    leading = view.stored_matches({"rank": [1, 2]})
    return {side: _best(leading[leading["graph"] == side], len(view.graphs[side])) for side in SIDES}


def stored_candidates(view: RunView) -> Candidates:
    """The best matches of all entities that a run has stored, as a decoder's candidates."""
    table = view.stored_matches()
    forward = (table["graph"] == "source").to_numpy()
    entity, match = (table[name].to_numpy(dtype=np.int64) for name in ("entity", "match"))
    source, target = np.where(forward, entity, match), np.where(forward, match, entity)
    shape = len(view.graphs["source"]), len(view.graphs["target"])
    _, places = np.unique(source * shape[1] + target, return_index=True)
    cosine, csls = (table[name].to_numpy(dtype=np.float32)[places] for name in ("cosine", "csls"))
    top = int(table["rank"].max()) if len(table) else 0
    return Candidates(shape, source[places], target[places], cosine, csls, top, tie_tolerance(view.similarity))


def described_matches(view: RunView, best: Mapping[Side, pd.DataFrame]) -> dict[Side, Alignment]:
    """The alignment out of one match an entity, from both graphs' points of view.

    Args:
        best: for each side ``entity``, ``match``, ``csls``, ``cosine`` (with names: their weighted similarity added) and ``margin``, by entity.
    """
    return {side: Alignment(side, _rows(view, side, best), view) for side in SIDES}


def _best(leading: pd.DataFrame, entities: int) -> pd.DataFrame:
    """entity, match, csls, cosine, margin of one graph, by entity."""
    first, second = (leading[leading["rank"] == rank] for rank in (1, 2))
    runner_up = np.full(entities, np.nan, dtype=np.float32)
    runner_up[second["entity"].to_numpy()] = second["csls"].to_numpy()
    first = first.sort_values("entity", kind="stable")
    return pd.DataFrame(
        {
            "entity": first["entity"].to_numpy(dtype=np.int32),
            "match": first["match"].to_numpy(dtype=np.int32),
            "csls": first["csls"].to_numpy(dtype=np.float32),
            "cosine": first["cosine"].to_numpy(dtype=np.float32),
            "margin": first["csls"].to_numpy(dtype=np.float32) - runner_up[first["entity"].to_numpy()],
        }
    )


def _rows(view: RunView, side: Side, best: Mapping[Side, pd.DataFrame]) -> pd.DataFrame:
    across, rows = other(side), best[side]
    entity, match = rows["entity"].to_numpy(dtype=np.int64), rows["match"].to_numpy(dtype=np.int64)
    source, target = (entity, match) if side == "source" else (match, entity)
    back = np.full(len(view.graphs[across]), -1, dtype=np.int64)
    back[best[across]["entity"].to_numpy()] = best[across]["match"].to_numpy()
    sizes = len(view.graphs["source"]), len(view.graphs["target"])
    cosine, names = _parts(view, source, target, rows["cosine"].to_numpy())
    verdicts = verdict_codes(view.run.table("links"), source, target, sizes)
    return pd.DataFrame(
        {
            "entity": rows["entity"],
            "match": rows["match"],
            "csls": rows["csls"],
            "cosine": cosine,
            "names": names,
            "margin": rows["margin"],
            "probability": _probability(view, side, entity, match),
            "verdict": pd.Categorical.from_codes(verdicts, categories=pd.Index(VERDICTS)),
            "added": _added(view, source, target, sizes[1]),
            "degree": view.graphs[side].degrees[entity].astype(np.int32),
            "match_degree": view.graphs[across].degrees[match].astype(np.int32),
            "claims": np.bincount(match, minlength=sizes[0 if across == "source" else 1])[match].astype(np.int32),
            "mutual": back[match] == entity,
        }
    )


def _parts(view: RunView, source: IntArray, target: IntArray, stored: Float32Array) -> tuple[Float32Array, Float32Array]:
    """(n,) cosine of the embeddings and similarity of the names. Only in a run that looks at names does the stored cosine hold both."""
    if not view.run.manifest.get("literal"):
        return stored, np.full(len(source), np.nan, dtype=np.float32)
    cosine, names = np.empty(len(source), dtype=np.float32), np.empty(len(source), dtype=np.float32)
    for start in range(0, len(source), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        cosine[part], names[part] = view.parts(source[part], target[part])
    return cosine, names


def _probability(view: RunView, side: Side, entity: IntArray, match: IntArray) -> Float32Array:
    """(n,) float32; NaN for pairs that the run gives none for."""
    found = np.full(len(view.graphs[side]), np.nan, dtype=np.float32)
    of_match = np.full(len(found), -1, dtype=np.int64)
    if view.has("probabilities"):
        table = view.run.table("probabilities", PROBABILITY_COLUMNS)
        check_numbers(view.run, table, ("probability",), "probabilities")
        part = table[table["graph"] == side]
        found[part["entity"].to_numpy()] = part["probability"].to_numpy()
        of_match[part["entity"].to_numpy()] = part["match"].to_numpy()
    return np.where(of_match[entity] == match, found[entity], np.float32(np.nan))


def _added(view: RunView, source: IntArray, target: IntArray, targets: int) -> npt.NDArray[np.int16]:
    """(n,) the first round that trained on each pair, ``START_ROUND`` where training started from it, ``NOT_ADDED`` otherwise."""
    table = view.pairs_added
    keys = table["source"].to_numpy(dtype=np.int64) * targets + table["target"].to_numpy(dtype=np.int64)
    return looked_up(keys, table["round"].to_numpy(dtype=np.int16), source * targets + target, NOT_ADDED).astype(np.int16)
