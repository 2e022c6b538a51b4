"""Synthetic pairs of knowledge graphs, shaped like DWY100K, of any size.

    python -m benchmarks.synthetic OUT --entities 100000 --seed 0 [--like dbp-wd] [--shared 0.7]

The source graph is drawn: an entity is the head of few triples and the tail of few or very many, as in DBpedia (in-degrees have a Pareto tail, some
entities never occur at one of the ends), and relations are as uneven as words of a text. The target graph is a copy of it under other names:
entities in another order, relations renamed and merged, a share of the triples kept and the rest redrawn with the same hubs. Every entity has a
counterpart and at least one triple; 30 % of the links are seeds, the others are for the test.

What is matched: entities, triples an entity and numbers of relations are those of DWY100K; the shape of the degrees (median, quantiles, share of the
hubs) is that of DBP15K ZH-EN, whose graphs come from the same source at the same density. Time and memory grow with entities plus triples.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as arrow_csv

from benchmarks.tables import print_report
from engine.data import AlignmentTask, KnowledgeGraph
from engine.data.knowledge_graph import empty_attributes, empty_links, fingerprint
from engine.data.labels import graph_names, label_entities
from engine.errors import ConfigError
from engine.util.arrays import FloatArray, IntArray

Draw = Callable[[int], "Triples"]

LEAST, MOST = 1_000, 10_000_000
TAIL_EXPONENT, TAIL_FLOOR = 1.6, 0.05  # of the Pareto (Lomax) pull of an entity as a tail
HEAD_SPREAD = 0.9  # of the logarithm of an entity's pull as a head
NEVER_HEAD, NEVER_TAIL = 0.23, 0.05  # shares of the entities
LOYALTY = 0.7  # how often a tail is reached along the relation that is its own ("capital", "birth place")
SEED_SHARE = 0.3
FOLD = Path("721_5fold") / "1"
CHUNK = 1_000_000  # lines that are written at a time
HOSTS = ("http://one.example/", "http://two.example/")


@dataclass(frozen=True)
class Shape:
    """What a pair is to look like.

    Attributes:
        entities: of each graph.
        density: triples an entity, of source and target graph.
        relations: of source and target graph, at most: in small graphs rare ones may stay unused.
        shared: share of the target's triples that the source has as well.
    """

    entities: int
    density: tuple[float, float] = (4.63294, 4.48774)
    relations: tuple[int, int] = (330, 220)
    shared: float = 0.7

    def __post_init__(self) -> None:
        if not LEAST <= self.entities <= MOST:
            raise ConfigError(f"a synthetic graph has {LEAST:,} to {MOST:,} entities; got {self.entities:,}.")
        if not 0.0 <= self.shared <= 1.0:
            raise ConfigError(f"the share of common triples lies between 0 and 1; got {self.shared:g}.")

    @property
    def triples(self) -> tuple[int, int]:
        return round(self.density[0] * self.entities), round(self.density[1] * self.entities)


LIKE: Mapping[str, tuple[tuple[float, float], tuple[int, int]]] = {
    "dbp-wd": ((4.63294, 4.48774), (330, 220)),
    "dbp-yg": ((4.28952, 5.02563), (302, 31)),
}
"""Density and relations of the two halves of DWY100K."""


def shape_like(name: str, entities: int, shared: float = 0.7) -> Shape:
    """
    Raises:
        ConfigError: no such data set, size or share.
    """
    if name not in LIKE:
        raise ConfigError(f"there is no '{name}' to be like; known are {', '.join(LIKE)}.")
    return Shape(entities, *LIKE[name], shared)


@dataclass(frozen=True)
class Triples:
    """n triples as columns of indices."""

    heads: IntArray  # (n,)
    relations: IntArray  # (n,)
    tails: IntArray  # (n,)

    def __len__(self) -> int:
        return len(self.heads)

    def __getitem__(self, rows: IntArray) -> Triples:
        return Triples(self.heads[rows], self.relations[rows], self.tails[rows])

    def table(self) -> IntArray:
        """(n, 3)"""
        return np.stack([self.heads, self.relations, self.tails], axis=1)


@dataclass(frozen=True)
class Pair:
    """Two graphs of E entities each, and who is who.

    Attributes:
        source, target: triples, distinct and sorted.
        relations: how many relations each graph has; each occurs.
        counterparts: (E,) the target entity of each source entity.
        seeds: (E,) bool, the source entities whose links are seeds.
    """

    source: Triples
    target: Triples
    relations: tuple[int, int]
    counterparts: IntArray
    seeds: npt.NDArray[np.bool_]

    @property
    def entities(self) -> int:
        return len(self.counterparts)

    def links(self, *, seeds: bool) -> IntArray:
        """(n, 2) source and target entity of the seed links, or of the others; by source entity."""
        chosen = np.flatnonzero(self.seeds == seeds)
        return np.stack([chosen, self.counterparts[chosen]], axis=1)


@dataclass(frozen=True)
class Pull:
    """How entities are drawn for triples: cumulative weights as a head and as a tail, and the relation that it is reached along."""

    heads: FloatArray  # (E,) cumulative
    tails: FloatArray  # (E,) cumulative
    can_be_head: npt.NDArray[np.bool_]  # (E,)
    own_relation: IntArray  # (E,)
    relations: FloatArray  # (R,) cumulative

    def of(self, renamed: IntArray, relation_of: IntArray, relations: int, generator: np.random.Generator) -> Pull:
        """The same of a graph whose entities and relations have other numbers: entity e is ``renamed[e]`` there."""
        back = np.empty_like(renamed)
        back[renamed] = np.arange(len(renamed))

        def turned(cumulative: FloatArray) -> FloatArray:
            return np.cumsum(np.diff(cumulative, prepend=0.0)[back])

        own = relation_of[self.own_relation[back]]
        return Pull(turned(self.heads), turned(self.tails), self.can_be_head[back], own, uneven(relations, generator))


def drawn_pull(entities: int, relations: int, generator: np.random.Generator) -> Pull:
    """Hubs, entities that never are head or never tail, and relations for a graph."""
    ends = generator.random(entities)
    can_be_head, can_be_tail = ends >= NEVER_HEAD, ends < 1.0 - NEVER_TAIL
    as_head = np.exp(HEAD_SPREAD * generator.standard_normal(entities)) * can_be_head
    as_tail = ((1.0 - generator.random(entities)) ** (-1.0 / TAIL_EXPONENT) - 1.0 + TAIL_FLOOR) * can_be_tail
    cumulative = uneven(relations, generator)
    own = picked(cumulative, entities, generator)
    return Pull(np.cumsum(as_head), np.cumsum(as_tail), can_be_head, own, cumulative)


def uneven(relations: int, generator: np.random.Generator) -> FloatArray:
    """(R,) cumulative weights by Zipf's law, the ranks in random order."""
    return np.cumsum(1.0 / (1.0 + generator.permutation(relations)))


def picked(cumulative: FloatArray, count: int, generator: np.random.Generator) -> IntArray:
    """(count,) indices drawn by their weights."""
    found = np.searchsorted(cumulative, generator.random(count) * cumulative[-1], side="right")
    indices: IntArray = np.minimum(found, len(cumulative) - 1).astype(np.int64)
    return indices


def drawn(count: int, pull: Pull, generator: np.random.Generator) -> Triples:
    """A number of triples; some may be the same."""
    return completed(picked(pull.heads, count, generator), picked(pull.tails, count, generator), pull, generator)


def completed(heads: IntArray, tails: IntArray, pull: Pull, generator: np.random.Generator) -> Triples:
    """With a relation for each head and tail."""
    others = picked(pull.relations, len(heads), generator)
    return Triples(heads, np.where(generator.random(len(heads)) < LOYALTY, pull.own_relation[tails], others), tails)


def own_triples(entities: IntArray, pull: Pull, generator: np.random.Generator) -> Triples:
    """One triple for each entity, at the end that it can have."""
    head = pull.can_be_head[entities]
    heads = np.where(head, entities, picked(pull.heads, len(entities), generator))
    tails = np.where(head, picked(pull.tails, len(entities), generator), entities)
    return completed(heads, tails, pull, generator)


@dataclass(frozen=True)
class Keys:
    """Triples of E entities and R relations as single numbers, in the order of the triples."""

    entities: int
    relations: int

    def of(self, triples: Triples) -> IntArray:
        """(n,) sorted and distinct."""
        keys: IntArray = np.unique((triples.heads * self.relations + triples.relations) * self.entities + triples.tails)
        return keys

    def triples(self, keys: IntArray) -> Triples:
        rest, tails = np.divmod(keys, self.entities)
        return Triples(*np.divmod(rest, self.relations), tails)


def grown(known: IntArray, wanted: int, draw: Draw, keys: Keys, generator: np.random.Generator) -> IntArray:
    """Keys of the known triples and of new ones, ``wanted`` in all (all the known ones, if they are more)."""
    while (missing := wanted - len(known)) > 0:
        fresh = np.setdiff1d(keys.of(draw(missing + missing // 8 + 16)), known, assume_unique=True)
        known = np.union1d(known, generator.choice(fresh, min(missing, len(fresh)), replace=False))
    return known


def generate(shape: Shape, seed: int = 0) -> Pair:
    """Draw a pair; the same shape and seed give the same pair.

    Raises:
        ConfigError: from ``shape``, a size or share that cannot be.
    """
    generator = np.random.default_rng([seed, 20])
    everyone = np.arange(shape.entities, dtype=np.int64)
    keys = [Keys(shape.entities, relations) for relations in shape.relations]
    pull = drawn_pull(shape.entities, shape.relations[0], generator)
    first = keys[0].of(own_triples(everyone, pull, generator))
    first = grown(first, shape.triples[0], lambda count: drawn(count, pull, generator), keys[0], generator)

    counterparts = generator.permutation(shape.entities)
    relation_of = merged(*shape.relations, generator)
    other = pull.of(counterparts, relation_of, shape.relations[1], generator)
    source = keys[0].triples(first)
    second = keys[1].of(kept(source, shape, counterparts, relation_of, generator))
    alone = lonely(keys[1].triples(second), shape.entities)
    second = np.union1d(second, keys[1].of(own_triples(alone, other, generator)))
    second = grown(second, shape.triples[1], lambda count: drawn(count, other, generator), keys[1], generator)

    seeds = np.zeros(shape.entities, dtype=np.bool_)
    seeds[generator.choice(shape.entities, round(SEED_SHARE * shape.entities), replace=False)] = True
    parts = [with_used_relations(triples) for triples in (source, keys[1].triples(second))]
    return Pair(parts[0][0], parts[1][0], (parts[0][1], parts[1][1]), counterparts, seeds)


def merged(source: int, target: int, generator: np.random.Generator) -> IntArray:
    """(R1,) the target relation of each source relation; several share one where the target has fewer."""
    first = generator.permutation(target)[:source]
    rest = generator.integers(0, target, max(source - target, 0))
    return generator.permutation(np.concatenate([first, rest]))


def kept(source: Triples, shape: Shape, counterparts: IntArray, relation_of: IntArray, generator: np.random.Generator) -> Triples:
    """The source's triples that the target has as well, in its terms."""
    count = min(round(shape.shared * shape.triples[1]), len(source))
    chosen = source[generator.choice(len(source), count, replace=False)]
    return Triples(counterparts[chosen.heads], relation_of[chosen.relations], counterparts[chosen.tails])


def lonely(triples: Triples, entities: int) -> IntArray:
    """Entities without a triple."""
    seen = np.zeros(entities, dtype=np.bool_)
    seen[triples.heads] = seen[triples.tails] = True
    return np.flatnonzero(~seen)


def with_used_relations(triples: Triples) -> tuple[Triples, int]:
    """With relations numbered through, without those that no triple has; and how many they are."""
    used, numbers = np.unique(triples.relations, return_inverse=True)
    return Triples(triples.heads, numbers.astype(np.int64), triples.tails), len(used)


def identifiers(host: str, kind: str, count: int) -> list[str]:
    """Identifiers whose alphabetical order is that of their numbers."""
    digits = len(str(count - 1))
    return [f"{host}{kind}{number:0{digits}d}" for number in range(count)]


def as_task(pair: Pair, name: str = "synthetic") -> AlignmentTask:
    """The task that reading the written pair gives, without writing it; ``name`` is that of the folder."""
    entities = [tuple(identifiers(host, "e", pair.entities)) for host in HOSTS]
    labels = [label_entities(own, empty_attributes()) for own in entities]
    relations = [tuple(identifiers(host, "r", count)) for host, count in zip(HOSTS, pair.relations, strict=True)]
    triples = (pair.source.table(), pair.target.table())
    source, target = map(KnowledgeGraph, graph_names(*entities), entities, labels, relations, triples)
    seeds, test = pair.links(seeds=True), pair.links(seeds=False)
    known = np.stack([np.arange(pair.entities), pair.counterparts], axis=1)
    return AlignmentTask(
        name=name,
        format="openea",
        source=source,
        target=target,
        train_links=seeds,
        valid_links=empty_links(),
        test_links=test,
        unsure_links=empty_links(),
        split=f"given: {FOLD}",
        fingerprint=fingerprint(source, target, known, empty_links()),
    )


def write_pair(pair: Pair, folder: Path) -> None:
    """As an OpenEA folder; what is there under the same names is replaced."""
    (folder / FOLD).mkdir(parents=True, exist_ok=True)
    entities = [pa.array(identifiers(host, "e", pair.entities)) for host in HOSTS]
    for number, triples in enumerate((pair.source, pair.target)):
        relations = pa.array(identifiers(HOSTS[number], "r", pair.relations[number]))
        write_rows(folder / f"rel_triples_{number + 1}", triples.table(), (entities[number], relations, entities[number]))
    everything = np.stack([np.arange(pair.entities), pair.counterparts], axis=1)
    write_rows(folder / "ent_links", everything, entities)
    write_rows(folder / FOLD / "train_links", pair.links(seeds=True), entities)
    write_rows(folder / FOLD / "test_links", pair.links(seeds=False), entities)


def write_rows(path: Path, rows: IntArray, words: Sequence[pa.Array]) -> None:
    """Tab-separated lines of ``words[column][row's number]``, in stretches, so that memory stays small."""
    names = [str(column) for column in range(len(words))]
    options = arrow_csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    with arrow_csv.CSVWriter(path, pa.schema([(name, pa.string()) for name in names]), write_options=options) as writer:
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            columns = [column.take(pa.array(part[:, at])) for at, column in enumerate(words)]
            writer.write_table(pa.table(columns, names=names))


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthetic", description="Write a synthetic pair of knowledge graphs.")
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("--entities", type=int, default=100_000, help=f"of each graph, {LEAST:,} to {MOST:,} (default: 100,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--like", default="dbp-wd", choices=sorted(LIKE), help="density and relations to have (default: dbp-wd)")
    parser.add_argument("--shared", type=float, default=0.7, help="share of the target's triples that the source has as well (default: 0.7)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = build_parser().parse_args(arguments)

    def study() -> str:
        pair = generate(shape_like(parsed.like, parsed.entities, parsed.shared), parsed.seed)
        try:
            write_pair(pair, parsed.out)
        except OSError as error:
            raise ConfigError(f"{parsed.out}: the pair cannot be written there ({error.strerror or error}); name another folder.") from None
        sizes = f"{len(pair.source):,} and {len(pair.target):,} triples, {pair.relations[0]} and {pair.relations[1]} relations"
        return f"{parsed.out}: {pair.entities:,} entities a side, {sizes}, {pair.seeds.sum():,} seed links."

    return print_report(study, None)


if __name__ == "__main__":
    sys.exit(main())
