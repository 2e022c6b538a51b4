"""Alignments between pairs of several sources, combined into clusters of entities that are the same.

Matches are joined from the most certain one down: known links and accepted pairs first, then predictions by probability. A match is left out, and
listed with its reason, where it would put two entities of one source into a cluster, or two that reviewers, or the runs' own certain pairs, keep
apart. So of A = B, B = C and A = C' the weakest gives way. Where the known links of two sources give an entity several counterparts, a cluster
may hold several entities of one source by known links; predictions never add a second one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.data.links import Spelling, to_uri
from engine.errors import ConfigError, ExportError
from engine.exporting.formats.simple import one_line_cell, write_plain
from engine.exporting.formats.sssom import MANUAL, Prefixes, metadata
from engine.exporting.merged.fold import pair_table
from engine.exporting.reviewed import DecidedPair
from engine.exporting.selection import ExportSelection, pairs_to_export
from engine.exporting.table import Origin
from engine.runs.view import RunView
from engine.util.files import new_file
from engine.util.text import shorten

SAME_SOURCE: Final = 0.5
"""Share of the smaller graph's identifiers that two different graphs must have in common to be taken for two versions of one."""
CLUSTER_COLUMNS: Final = ("cluster", "source", "entity", "label", "size", "sources", "weakest", "confirmed", "possible")
CONFLICT_COLUMNS: Final = ("run", "source", "entity", "label", "other_source", "other_entity", "other_label", "probability", "reason")
Reason = Literal["two of one source", "rejected by reviewers"]
Node = tuple[int, int]
"""Number of a source, and of an entity in it."""


@dataclass(frozen=True)
class Source:
    """One of the graphs that are combined: its name, a hash of its content, and its entities."""

    name: str
    fingerprint: str
    uris: Sequence[str]
    labels: Sequence[str]


@dataclass(frozen=True)
class MatchEdge:
    """A pair of one run.

    Attributes:
        run: its id.
        ends: the two entities.
        probability: 1 for known links and accepted pairs; NaN where the run has none.
        certain: whether it is a known link or an accepted pair.
        csls: its score in its run.
        basis: why it is a pair: "seed link", "known link", "accepted by Ann", "predicted".
    """

    run: str
    ends: tuple[Node, Node]
    probability: float
    certain: bool
    csls: float
    basis: str


@dataclass(frozen=True)
class LeftOut:
    """A pair that would put together what is kept apart."""

    edge: MatchEdge
    reason: Reason
    between: tuple[Node, Node]


@dataclass(frozen=True)
class Clusters:
    """Entities of several sources that are the same.

    Attributes:
        sources: the graphs.
        members: the clusters of two entities or more, each sorted; the largest first.
        edges: the pairs that hold them together.
        left_out: the pairs that gave way.
        linked: pairs of sources that some run aligns.
        origin: what a file says of where it comes from.
    """

    sources: Sequence[Source]
    members: Sequence[Sequence[Node]]
    edges: Sequence[MatchEdge]
    left_out: Sequence[LeftOut]
    linked: frozenset[tuple[int, int]]
    origin: Origin

    def sentence(self) -> str:
        """One line for the user."""
        sizes = [len({source for source, _ in one}) for one in self.members]
        by_size = ", ".join(f"{sizes.count(size):,} over {size} sources" for size in sorted(set(sizes), reverse=True))
        entities = sum(map(len, self.members))
        left = f"{len(self.left_out):,} pairs left out because they contradict stronger ones" if self.left_out else "no contradictions"
        return f"{len(self.members):,} clusters of {entities:,} entities ({by_size or 'none'}); {left}."

    def table(self) -> pd.DataFrame:
        """A row per member, with ``CLUSTER_COLUMNS``.

        ``weakest`` is the lowest probability of the pairs that hold the cluster together, NaN where one of them has none. Of the ``possible`` pairs
        of members whose sources some run aligns, ``confirmed`` are among the runs' pairs.
        """
        cluster_of = {node: number for number, nodes in enumerate(self.members) for node in nodes}
        weakest = [math.inf] * len(self.members)
        confirmed: list[set[frozenset[Node]]] = [set() for _ in self.members]
        for edge in self.edges:
            number = cluster_of[edge.ends[0]]
            weakest[number] = math.nan if math.isnan(edge.probability + weakest[number]) else min(weakest[number], edge.probability)
            confirmed[number].add(frozenset(edge.ends))
        rows = []
        for number, nodes in enumerate(self.members):
            possible = sum((min(a[0], b[0]), max(a[0], b[0])) in self.linked for a, b in combinations(nodes, 2))
            low = weakest[number] if math.isfinite(weakest[number]) else math.nan
            names = len({source for source, _ in nodes})
            for source, entity in nodes:
                own = self.sources[source]
                counts = (len(nodes), names, low, len(confirmed[number]), possible)
                rows.append((number + 1, own.name, own.uris[entity], own.labels[entity], *counts))
        return pd.DataFrame(rows, columns=list(CLUSTER_COLUMNS))

    def conflicts(self) -> pd.DataFrame:
        """The pairs that gave way, for review: ``CONFLICT_COLUMNS``."""
        rows = []
        for one in self.left_out:
            texts = [text for source, entity in one.edge.ends for text in self._texts(source, entity)]
            rows.append((one.edge.run, *texts, one.edge.probability, self._words(one)))
        return pd.DataFrame(rows, columns=list(CONFLICT_COLUMNS))

    def _texts(self, source: int, entity: int) -> tuple[str, str, str]:
        own = self.sources[source]
        return own.name, own.uris[entity], own.labels[entity]

    def _words(self, left_out: LeftOut) -> str:
        one, two = (f"'{shorten(self.sources[source].labels[entity] or self.sources[source].uris[entity])}'" for source, entity in left_out.between)
        if left_out.reason == "rejected by reviewers":
            return f"reviewers rejected {one} and {two}, which would be in one cluster"
        return f"{one} and {two} of {self.sources[left_out.between[0][0]].name} would be in one cluster"


def combined(runs: Sequence[tuple[RunView, Sequence[DecidedPair]]], least_probability: float | Sequence[float] | None = None) -> Clusters:
    """Combine the alignments of several runs.

    Args:
        runs: each run with the decisions on its data.
        least_probability: that predictions must have, the same for all runs or one for each; runs without probabilities are refused then.

    Raises:
        ConfigError: fewer than two runs, runs of the same two graphs, or of two versions of one graph.
        ExportError: a minimum probability for a run that has none.
    """
    if len(runs) < 2:
        raise ConfigError("clusters need two runs or more, each between two of the sources.")
    graphs = [[graph_source(view, side) for side in SIDES] for view, _ in runs]
    sources = distinct_sources([one for pair in graphs for one in pair])
    numbers = {source.fingerprint: at for at, source in enumerate(sources)}
    placed = [(numbers[own.fingerprint], numbers[theirs.fingerprint]) for own, theirs in graphs]
    check_pairs_of_sources([run_name(view) for view, _ in runs], placed)
    edges: list[MatchEdge] = []
    rejected: set[frozenset[Node]] = set()
    minima = least_probability if isinstance(least_probability, Sequence) else [least_probability] * len(runs)
    for (view, reviewed), (own, theirs), least in zip(runs, placed, minima, strict=True):
        edges += run_edges(view, reviewed, least, own, theirs)
        rejected |= rejected_pairs(view, reviewed, own, theirs)
    ordered = sorted(edges, key=lambda edge: (not edge.certain, -(0.0 if math.isnan(edge.probability) else edge.probability), -edge.csls, edge.ends))
    members, kept, left_out = joined_edges(ordered, rejected)
    linked = frozenset((min(one), max(one)) for one in placed)
    return Clusters(sources, members, kept, left_out, linked, cluster_origin([view for view, _ in runs], sources))


def run_name(view: RunView) -> str:
    return f"{view.run.manifest['dataset']}/{view.run.manifest['run_id']}"


def graph_source(view: RunView, side: Side) -> Source:
    """A graph of a run, with a hash over its entities, relations, triples and values."""
    graph, hasher = view.graphs[side], hashlib.sha256(b"source-1")
    for text in graph.uris:
        hasher.update(text.encode("utf-8", "surrogatepass") + b"\0")
    for name, columns in (("relations", ["name"]), ("triples", ["head", "relation", "tail"]), ("attributes", ["entity", "attribute", "value"])):
        hasher.update(name.encode())
        table = view.run.table(name, columns, {"graph": side})
        hasher.update(
            pd.util.hash_pandas_object(table.astype(dict.fromkeys(table.select_dtypes(exclude="number"), str)), index=False).to_numpy().tobytes()
        )
    return Source(graph.name, hasher.hexdigest(), graph.uris, graph.labels)


def distinct_sources(found: Iterable[Source]) -> list[Source]:
    """Each graph once, with names that differ.

    Raises:
        ConfigError: two of them are versions of one graph.
    """
    distinct = list({one.fingerprint: one for one in found}.values())
    for one, two in combinations(distinct, 2):
        shared = len(set(one.uris) & set(two.uris))
        if one.name == two.name and shared >= SAME_SOURCE * min(len(one.uris), len(two.uris)) > 0:
            raise ConfigError(
                f"two runs have different versions of '{shorten(one.name)}': {len(one.uris):,} and {len(two.uris):,} entities, {shared:,} of them "
                "the same; train both runs on the same version."
            )
    names = [one.name for one in distinct]
    return [
        one if names.count(one.name) == 1 else Source(f"{one.name} ({at + 1})", one.fingerprint, one.uris, one.labels)
        for at, one in enumerate(distinct)
    ]


def check_pairs_of_sources(names: Sequence[str], placed: Sequence[tuple[int, int]]) -> None:
    """
    Raises:
        ConfigError: two runs align the same two graphs.
    """
    seen: dict[frozenset[int], str] = {}
    for name, pair in zip(names, placed, strict=True):
        earlier = seen.get(frozenset(pair))
        seen[frozenset(pair)] = name
        if earlier is not None:
            raise ConfigError(f"runs {earlier} and {name} align the same two graphs; give one run for each two sources.")


def run_edges(view: RunView, reviewed: Sequence[DecidedPair], least: float | None, own: int, theirs: int) -> list[MatchEdge]:
    """The pairs that the run's export has."""
    table = pairs_to_export(view, ExportSelection(least_probability=least), reviewed)
    rows, name = pair_table(table), run_name(view)
    probability = np.where(rows["known"], 1.0, rows["probability"])
    columns = (rows["source"], rows["target"], probability, rows["known"], rows["csls"], rows["basis"])
    return [
        MatchEdge(name, ((own, int(one)), (theirs, int(two))), float(chance), bool(known), float(csls), str(basis))
        for one, two, chance, known, csls, basis in zip(*columns, strict=True)
    ]


def rejected_pairs(view: RunView, reviewed: Sequence[DecidedPair], own: int, theirs: int) -> set[frozenset[Node]]:
    index = {side: view.graphs[side].index for side in SIDES}
    return {
        frozenset({(own, index["source"][pair.source]), (theirs, index["target"][pair.target])})
        for pair in reviewed
        if not pair.accepted and pair.source in index["source"] and pair.target in index["target"]
    }


class Partition:
    """Disjoint clusters of entities that grow by joining."""

    def __init__(self) -> None:
        self._of: dict[Node, Node] = {}
        self.members: dict[Node, list[Node]] = {}

    def of(self, node: Node) -> Node:
        """The first member of the entity's cluster, which names it."""
        if node not in self._of:
            self._of[node], self.members[node] = node, [node]
        return self._of[node]

    def join(self, one: Node, two: Node) -> None:
        """Make one cluster of two, given by their first members."""
        small, large = sorted((one, two), key=lambda node: len(self.members[node]))
        for node in self.members[small]:
            self._of[node] = large
        self.members[large] += self.members.pop(small)


def joined_edges(ordered: Sequence[MatchEdge], rejected: set[frozenset[Node]]) -> tuple[list[list[Node]], list[MatchEdge], list[LeftOut]]:
    """Clusters, the pairs that hold them together, and those that were left out; the pairs come with the most certain first."""
    partition, kept, left_out = Partition(), list[MatchEdge](), list[LeftOut]()
    apart: dict[Node, set[Node]] = {}
    for pair in rejected:
        for one, two in (tuple(pair), tuple(pair)[::-1]):
            apart.setdefault(one, set()).add(two)
    for edge in ordered:
        one, two = (partition.of(end) for end in edge.ends)
        if one != two:
            if against := objection(partition, one, two, apart, edge.ends, certain=edge.certain):
                left_out.append(LeftOut(edge, *against))
                continue
            partition.join(one, two)
        kept.append(edge)
    clusters = [sorted(nodes) for nodes in partition.members.values() if len(nodes) > 1]
    return sorted(clusters, key=lambda nodes: (-len(nodes), nodes)), kept, left_out


def objection(
    partition: Partition, one: Node, two: Node, apart: Mapping[Node, set[Node]], ends: tuple[Node, Node], *, certain: bool
) -> tuple[Reason, tuple[Node, Node]] | None:
    """Why two clusters must not become one; None where they may. Certain pairs may bring a second entity of a source.

    Args:
        partition: of all entities so far.
        one, two: first members of the two clusters.
        apart: entities that reviewers keep apart.
        ends: the pair that would join them; what is at odds with it directly is named first.
        certain: whether that is a known link or an accepted pair.
    """
    own, theirs = partition.members[one], partition.members[two]
    others = set(theirs)
    for node in own:
        if against := apart.get(node, set()) & others:
            return "rejected by reviewers", (node, min(against))
    if certain:
        return None
    rivals = [(node, mate) for mate in ends for node in (*own, *theirs) if node[0] == mate[0] and node != mate]
    rivals += [(node, mate) for node in own for mate in theirs if node[0] == mate[0]]
    return next((("two of one source", pair) for pair in rivals if partition.of(pair[0]) != partition.of(pair[1])), None)


def cluster_origin(views: Sequence[RunView], sources: Sequence[Source]) -> Origin:
    origins = [Origin.of(view, "clusters", known_links=True) for view in views]
    latest = max(origins, key=lambda one: one.created)
    names = " and ".join(one.name for one in sources[1:])
    return Origin(
        " + ".join(one.run for one in origins),
        latest.created,
        latest.version,
        "clusters",
        any(one.names for one in origins),
        True,
        (sources[0].name, names),
    )


# Files


def write_clusters(clusters: Clusters, path: Path, *, force: bool = False) -> None:
    """Write the table of clusters: Parquet, TSV or CSV by the file's ending, SSSOM where it is ``.sssom.tsv``.

    Raises:
        ExportError: no clusters, another ending, or the file cannot be written.
    """
    if not clusters.members:
        raise ExportError("there are no clusters to write: no pair of any run is left; use a lower minimum probability.")
    name = path.name.lower()
    if name.endswith(".sssom.tsv"):
        write_cluster_mappings(clusters, path, force=force)
    elif name.endswith(".parquet"):
        with new_file(path, force=force) as file:
            clusters.table().to_parquet(file, index=False)
    else:
        write_plain(clusters.table(), path, force=force)


CHAINED: Final = "semapv:MappingChaining"
"""SSSOM's word for a mapping that follows from others."""


def write_cluster_mappings(clusters: Clusters, path: Path, *, force: bool = False) -> None:
    """Write every two members of different sources of each cluster as an SSSOM mapping; those that no run has itself follow from others.

    ``confidence`` of these is the lowest probability in the cluster.
    """
    spelt = [Spelling.of(dict.fromkeys(source.uris), "source" if at == 0 else "target", to_uri) for at, source in enumerate(clusters.sources)]
    direct = {frozenset(edge.ends): edge for edge in clusters.edges}
    members = clusters.table()
    weakest = dict(zip(members["cluster"], members["weakest"], strict=True))
    rows = []
    for number, nodes in enumerate(clusters.members, start=1):
        for one, two in combinations(nodes, 2):
            if one[0] == two[0]:
                continue
            edge = direct.get(frozenset({one, two}))
            ends = [spelt[source](clusters.sources[source].uris[entity]) for source, entity in (one, two)]
            labels = [one_line_cell(clusters.sources[source].labels[entity]) for source, entity in (one, two)]
            kind = (
                CHAINED
                if edge is None
                else MANUAL
                if edge.basis.startswith("accepted")
                else "semapv:UnspecifiedMatching"
                if edge.certain
                else ("semapv:CompositeMatching" if clusters.origin.names else "semapv:StructuralMatching")
            )
            rows.append((ends[0], labels[0], "skos:exactMatch", ends[1], labels[1], kind, weakest[number] if edge is None else edge.probability))
    columns = ["subject_id", "subject_label", "predicate_id", "object_id", "object_label", "mapping_justification", "confidence"]
    table = pd.DataFrame(rows, columns=columns)
    same = {side: Spelling({}) for side in SIDES}
    prefixes = Prefixes.of([(table["subject_id"].tolist(), table["object_id"].tolist())], same)
    table = table.assign(subject_id=table["subject_id"].map(prefixes.curie), object_id=table["object_id"].map(prefixes.curie))
    with new_file(path, force=force) as file:
        file.write("".join(f"#{line}\n" for line in metadata(clusters.origin, prefixes, {}, ())).encode("utf-8"))
        file.write(str(table.to_csv(sep="\t", index=False, float_format="%.6g", lineterminator="\n")).encode("utf-8", "replace"))
