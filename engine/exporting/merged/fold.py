"""Which entities, relations and attributes of two graphs become one, and how everything is called then.

Entities are folded one to one: where an export has several pairs of an entity, the most certain one is folded, and the others stay entities of
their own that are declared the same. So no two statements of one graph become one, and the graphs can be separated again.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.data.links import BASE, Spelling, to_uri
from engine.errors import ConfigError
from engine.exporting.table import ExportTable, listed
from engine.names.values import exact_attribute
from engine.runs.tensors import has_table
from engine.runs.verdicts import SEED
from engine.runs.view import RunView
from engine.util.arrays import BoolArray, FloatArray, IntArray

Canonical = Literal["source", "target", "minted"]
CANONICAL: Final[tuple[Canonical, ...]] = get_args(Canonical)
ALONE: Final = -1
"""Number of the pair of an entity that is in none."""


@dataclass(frozen=True)
class FoldOptions:
    """How two graphs become one.

    Attributes:
        canonical: whose identifier a folded entity gets; "minted": a new one that depends on the two identifiers only.
        least_correspondence: probability that each of two relations or attributes must imply the other with to become one; above 1: none is folded.

    Raises:
        ConfigError: an unknown rule, or a probability below 0.
    """

    canonical: Canonical = "source"
    least_correspondence: float = 0.5

    def __post_init__(self) -> None:
        if self.canonical not in CANONICAL:
            raise ConfigError(f"unknown rule '{str(self.canonical)[:40]}' for canonical identifiers; choose one of {', '.join(CANONICAL)}.")
        if not self.least_correspondence >= 0:
            raise ConfigError(f"the minimum probability of correspondences must be at least 0; got {self.least_correspondence:g}.")


@dataclass(frozen=True)
class NamedParts:
    """What a graph's relations, or its attributes, are called in the merged graph.

    Attributes:
        names: original name -> name in the merged graph; no two of a graph share one and the same direction.
        turned: original names of relations whose statements are written in the other direction.
    """

    names: Mapping[str, str]
    turned: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Fold:
    """Two graphs as one.

    Attributes:
        view: of the run.
        run: its id.
        options: how it was made.
        source, target: (n,), (n,) the folded entities.
        probability: (n,) of each pair, NaN for known links and accepted pairs.
        basis: (n,) why each pair is folded: "seed link", "known link", "accepted by Ann", "predicted".
        more: (m, 2) further pairs, whose entities stay apart.
        more_basis: (m,) why each of these is a pair.
        entities: by side, the identifier of every entity in the merged graph.
        relations, attributes: by side.
    """

    view: RunView
    run: str
    options: FoldOptions
    source: IntArray
    target: IntArray
    probability: FloatArray
    basis: Sequence[str]
    more: IntArray
    more_basis: Sequence[str]
    entities: Mapping[Side, Sequence[str]]
    relations: Mapping[Side, NamedParts]
    attributes: Mapping[Side, NamedParts]

    @classmethod
    def of(cls, table: ExportTable, options: FoldOptions | None = None) -> Fold:
        """The fold by the pairs of an export."""
        chosen = options or FoldOptions()
        rows = pair_table(table)
        kept = one_to_one_pairs(rows)
        folded = rows[kept]
        source, target = (folded[side].to_numpy(dtype=np.int64) for side in SIDES)
        names = relation_name_parts(table.view, "relation", chosen.least_correspondence)
        return cls(
            table.view,
            table.origin.run,
            chosen,
            source,
            target,
            folded["probability"].to_numpy(dtype=np.float64),
            folded["basis"].tolist(),
            rows.loc[~kept, list(SIDES)].to_numpy(dtype=np.int64),
            rows.loc[~kept, "basis"].tolist(),
            entity_names(table.view, source, target, chosen.canonical),
            names,
            relation_name_parts(table.view, "attribute", chosen.least_correspondence),
        )

    def __len__(self) -> int:
        return len(self.source)

    @cached_property
    def pair_of(self) -> Mapping[Side, IntArray]:
        """By side, (E,) the number of the pair that each entity is in, ``ALONE`` for none."""
        found = {}
        for side, ends in zip(SIDES, (self.source, self.target), strict=True):
            found[side] = np.full(len(self.entities[side]), ALONE, dtype=np.int64)
            found[side][ends] = np.arange(len(ends))
        return found


def pair_table(table: ExportTable) -> pd.DataFrame:
    """source, target, probability, basis and csls of each pair of an export."""
    source, target = table.ends
    rows = table.alignment.rows.iloc[table.positions]
    accepted = [table.accepted.get(ends) for ends in zip(source.tolist(), target.tolist(), strict=True)]
    certain = rows["settled"].to_numpy(dtype=np.bool_) if "settled" in rows else np.zeros(len(rows), dtype=np.bool_)
    basis = [
        f"accepted by {listed(by.reviewers)}" if by is not None else SEED if verdict == SEED else "known link" if known else "predicted"
        for by, verdict, known in zip(accepted, rows["verdict"].astype(str), certain, strict=True)
    ]
    known = np.array([kind != "predicted" for kind in basis], dtype=np.bool_)
    probability = np.where(known, np.nan, rows["probability"].to_numpy(dtype=np.float64))
    csls = rows["csls"].to_numpy(dtype=np.float64)
    return pd.DataFrame({"source": source, "target": target, "probability": probability, "basis": basis, "csls": csls, "known": known})


def one_to_one_pairs(rows: pd.DataFrame) -> BoolArray:
    """(n,) the pairs of :func:`pair_table` that are folded: known before predicted, then by probability, score and number; each entity once."""
    order = np.lexsort([rows["target"], rows["source"], -rows["csls"], -rows["probability"].fillna(0.0), ~rows["known"]])
    kept = np.zeros(len(rows), dtype=np.bool_)
    taken: tuple[set[int], set[int]] = (set(), set())
    source, target = rows["source"].tolist(), rows["target"].tolist()
    for at in order.tolist():
        if source[at] not in taken[0] and target[at] not in taken[1]:
            kept[at] = True
            taken[0].add(source[at])
            taken[1].add(target[at])
    return kept


def entity_names(view: RunView, source: IntArray, target: IntArray, canonical: Canonical) -> Mapping[Side, Sequence[str]]:
    """By side, what each entity is called in the merged graph: an IRI, the same for the two of a folded pair and for no others.

    An entity that is not folded keeps its identifier, unless the other graph has one of that name: then the target's (with the rule "target" the
    source's) gets a URN.
    """
    spelt = {side: spelt_identifiers(view, side) for side in SIDES}
    first, second = SIDES if canonical != "target" else SIDES[::-1]
    ends = {"source": source.tolist(), "target": target.tolist()}
    names = {side: list(spelt[side]) for side in SIDES}
    pairs = list(zip(ends[first], ends[second], strict=True))
    for one, two in pairs:
        names[first][one] = names[second][two] = minted(spelt["source"][one], spelt["target"][two]) if canonical == "minted" else spelt[first][one]
    taken, folded = set(names[first]), set(ends[second])
    reserved = taken | set(spelt[second])
    for at, name in enumerate(names[second]):
        if at not in folded and name in taken:
            names[second][at] = free_urn(name, second, reserved)
            reserved.add(names[second][at])
    return names


def spelt_identifiers(view: RunView, side: Side) -> list[str]:
    """Every identifier of a graph as an IRI."""
    spelling = Spelling.of(view.graphs[side].index, side, to_uri)
    return [spelling(one) for one in view.graphs[side].uris]


def minted(source: str, target: str) -> str:
    """A new identifier that depends on nothing but the two."""
    digest = hashlib.sha256("\n".join((source, target)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{BASE}merged:{digest[:32]}"


def free_urn(name: str, side: Side, reserved: set[str]) -> str:
    """A URN for an identifier that the other graph uses for something else."""
    first = itertools.chain([f":{name}"], (f"{number}:{name}" for number in itertools.count(2)))
    urns = (f"{BASE}{side}:{digest_of(to_uri(one, side))}" for one in first)
    return next(urn for urn in urns if urn not in reserved)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def relation_name_parts(view: RunView, kind: Literal["relation", "attribute"], least: float) -> Mapping[Side, NamedParts]:
    """What the relations or attributes of both graphs are called: one that corresponds to one of the source graph gets its name.

    Equal names are the same already. Of the others each is folded with its best counterpart, and only where no other one of
    its graph has that name.
    """
    names = {side: part_names(view, kind, side) for side in SIDES}
    spelt = {side: Spelling.of(dict.fromkeys(names[side]), side, to_uri) for side in SIDES}
    result = {side: {name: spelt[side](name) for name in names[side]} for side in SIDES}
    shared = set(names["source"]) & set(names["target"])
    result["target"] |= {name: result["source"][name] for name in shared}  # names that are no IRIs are spelt by graph
    taken = (set(shared), set(shared))
    used, turned = set(result["target"].values()), set()
    for source, target, reverse in strong_correspondences(view, kind, least):
        if source in taken[0] or target in taken[1] or source not in result["source"] or target not in result["target"]:
            continue
        if result["source"][source] in used:
            continue
        taken[0].add(source)
        taken[1].add(target)
        used.add(result["source"][source])
        result["target"][target] = result["source"][source]
        if reverse:
            turned.add(target)
    return {"source": NamedParts(result["source"]), "target": NamedParts(result["target"], frozenset(turned))}


def part_names(view: RunView, kind: Literal["relation", "attribute"], side: Side) -> list[str]:
    table, column = ("relations", "name") if kind == "relation" else ("attributes", "attribute")
    return [str(name) for name in view.run.table(table, columns=[column], where={"graph": side})[column].unique()]


def strong_correspondences(view: RunView, kind: str, least: float) -> Iterable[tuple[str, str, bool]]:
    """Source, target and whether the target runs the other way, of correspondences that hold in both directions, the best supported first."""
    if not has_table(view.run, "correspondences"):
        return []
    rows = view.run.table("correspondences")
    weaker = rows[["source_implies_target", "target_implies_source"]].min(axis=1)
    rows = rows[(rows["kind"] == kind) & (weaker >= least)].sort_values("support", ascending=False, kind="stable")
    plain = str if kind == "relation" else exact_attribute
    return [(plain(one), plain(two), bool(way)) for one, two, way in zip(rows["source"], rows["target"], rows["turned"], strict=True)]
