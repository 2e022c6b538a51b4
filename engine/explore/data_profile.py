"""What is in the two graphs of a run: sizes, suspicious things, degrees, relations, isolated entities. From the stored tables alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from engine.analysis.relations import distinct_partners
from engine.analysis.run_tables import graph_of
from engine.data.inspection import SEVERITIES, Inspection, inspect_task
from engine.data.knowledge_graph import AlignmentTask, Finding, KnowledgeGraph, Side, empty_links
from engine.evaluation.paper import RESULTS, SIZES, recognise
from engine.runs.entities import folded_label
from engine.runs.tensors import RunLike
from engine.runs.view import RunView
from engine.util.arrays import IntArray

DATA_TABLES = ("entities", "relations", "triples", "attributes", "links")
SEED = 0  # of samples: the same ones each time


@dataclass(frozen=True)
class PaperData:
    """The paper's data set that a run's graphs are, and how far they are the same.

    Attributes:
        name: as the paper has it.
        triples: those of the paper, of source and target graph in the run's order.
        results: variant -> Hits@1, Hits@10, MRR.
    """

    name: str
    triples: tuple[int, int]
    results: Mapping[str, tuple[float, float, float]]


def task_of(run: RunLike) -> AlignmentTask:
    """The alignment task that a run was trained on, again, from its tables and its manifest.

    Raises:
        RunError: a table cannot be read.
    """
    tables = {name: run.table(name) for name in DATA_TABLES}
    data: Mapping[str, Any] = run.manifest.get("data", {})
    links = tables["links"]
    of_role = {str(role): part[["source", "target"]].to_numpy(dtype=np.int64) for role, part in links.groupby("role", sort=False)}
    return AlignmentTask(
        name=str(data.get("name", "")),
        format=str(data.get("format", "")),
        source=_graph(tables, data, "source"),
        target=_graph(tables, data, "target"),
        train_links=of_role.get("train", empty_links()),
        valid_links=of_role.get("valid", empty_links()),
        test_links=of_role.get("test", empty_links()),
        unsure_links=of_role.get("unsure", empty_links()),
        split=str(data.get("split", "")),
        fingerprint=str(data.get("fingerprint", "")),
        findings=_findings(data.get("findings", ())),
        untested=int(data.get("untested", 0)),
    )


def _graph(tables: Mapping[str, pd.DataFrame], data: Mapping[str, Any], side: Side) -> KnowledgeGraph:
    attributes = tables["attributes"]
    own = attributes.loc[attributes["graph"] == side, ["entity", "attribute", "value"]].reset_index(drop=True)
    return replace(graph_of(tables, side), name=str(data.get(side, {}).get("name") or side), attributes=own)


def _findings(stored: Sequence[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """Findings of a manifest; one that another version wrote may lack something or say more."""
    return tuple(
        Finding(
            code=str(one.get("code", "")),
            severity=one["severity"] if one.get("severity") in SEVERITIES else "info",
            message=str(one.get("message", "")),
            count=int(one.get("count", 0)),
            examples=tuple(map(str, one.get("examples", ()))),
            advice=str(one.get("advice", "")),
        )
        for one in stored
    )


def inspect_run(run: RunLike) -> Inspection:
    """What ``inspect`` reports about the run's data: findings of the reader, of the graphs themselves, and of the names.

    Raises:
        RunError: a table cannot be read.
    """
    task = task_of(run)
    names = _findings(run.manifest.get("literal", {}).get("findings", ()))
    return inspect_task(replace(task, findings=(*task.findings, *names)))


def paper_data(source: tuple[int, int], target: tuple[int, int]) -> PaperData | None:
    """The paper's data set with graphs of these sizes (entities, triples); None for other data."""
    name = recognise(source, target)
    if name is None:
        return None
    first, second = SIZES[name]
    turned = source[0] != first[0] or abs(source[1] - first[1]) > abs(source[1] - second[1])
    ordered = (second, first) if turned else (first, second)
    return PaperData(name, (ordered[0][1], ordered[1][1]), RESULTS.get(name, {}))


# Degrees


def degree_survival(degrees: IntArray) -> pd.DataFrame:
    """For each degree of at least 1 that occurs: ``degree``; ``entities`` of it; ``at_least``, how many have it or more; ``share`` of all entities.

    The complementary cumulative distribution: on logarithmic axes it shows tails of a few entities without bins, which would hide them.
    """
    values, counts = np.unique(degrees[degrees > 0], return_counts=True)
    at_least = np.cumsum(counts[::-1])[::-1]
    return pd.DataFrame({"degree": values, "entities": counts, "at_least": at_least, "share": at_least / max(len(degrees), 1)})


# Relations


def relation_profile(triples: pd.DataFrame, relations: pd.DataFrame, side: Side) -> pd.DataFrame:
    """The relations of a graph, the most frequent first.

    Args:
        triples, relations: the run's tables of these names.

    Returns:
        ``relation``, ``name``, ``triples``, ``share`` of the graph's triples, ``heads`` and ``tails`` (distinct), ``functionality`` (distinct heads
        per triple) and ``inverse_functionality`` (distinct tails per triple), both NaN without triples.
    """
    own = relations[relations["graph"] == side].sort_values("relation")
    rows = triples[triples["graph"] == side]
    relation, size = rows["relation"].to_numpy(dtype=np.int64), len(own)
    count = np.bincount(relation, minlength=size)
    ends = {end: rows[end].to_numpy(dtype=np.int64) for end in ("head", "tail")}
    distinct = {end: distinct_partners(relation, entity, int(entity.max(initial=0)) + 1, size) for end, entity in ends.items()}
    per_triple = {end: np.divide(number, count, out=np.full(size, np.nan), where=count > 0) for end, number in distinct.items()}
    table = pd.DataFrame(
        {
            "relation": own["relation"].to_numpy(),
            "name": own["name"].to_numpy(),
            "triples": count,
            "share": count / max(len(rows), 1),
            "heads": distinct["head"],
            "tails": distinct["tail"],
            "functionality": per_triple["head"],
            "inverse_functionality": per_triple["tail"],
        }
    )
    return table.sort_values("triples", ascending=False, kind="stable", ignore_index=True)


def relations_holding(profile: pd.DataFrame, text: str) -> pd.DataFrame:
    """The rows of a relation profile whose name holds a text, whatever its case and accents."""
    words = folded_label(text)
    return profile[[words in folded_label(name) for name in profile["name"]]].reset_index(drop=True) if words else profile


# Entities and triples to look at


def isolated_entities(view: RunView, side: Side) -> IntArray:
    """Entities without a triple, in their order."""
    return np.flatnonzero(view.graphs[side].degrees == 0)


def dangling_entities(view: RunView, links: pd.DataFrame, side: Side) -> IntArray:
    """Entities that no known link touches, those with the most triples first.

    Args:
        links: the run's table of that name.
    """
    degrees = view.graphs[side].degrees
    alone = np.setdiff1d(np.arange(len(degrees), dtype=np.int64), links[side].to_numpy(dtype=np.int64))
    return alone[np.argsort(-degrees[alone], kind="stable")]


def sample_triples(triples: pd.DataFrame, side: Side, count: int, relation: int | None = None) -> pd.DataFrame:
    """At most ``count`` triples (head, relation, tail) of a graph, drawn at random but the same ones each time.

    Args:
        triples: the run's table of that name.
        relation: only triples of this one.
    """
    keep = (triples["graph"] == side).to_numpy()
    if relation is not None:
        keep = keep & (triples["relation"] == relation).to_numpy()
    places = np.flatnonzero(keep)
    drawn = np.random.default_rng(SEED).choice(places, size=min(count, len(places)), replace=False)
    return triples.iloc[np.sort(drawn)][["head", "relation", "tail"]].reset_index(drop=True)
