"""Random graphs through every format, plain and gzipped, come back as they were."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import DataConfig
from engine.data import AlignmentTask, KnowledgeGraph, load_task
from tests.data.writers import WRITERS, Sample, Triple
from tests.effort import examples

# Everything but control characters, lone surrogates and the byte order mark may occur in an identifier.
plain_names = st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufeff"), min_size=1, max_size=12).filter(str.strip)
iris = plain_names.map(lambda name: f"http://example.org/{quote(name, safe='')}")
literals = st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufeff"), min_size=1, max_size=20).filter(str.strip)


@st.composite
def samples(draw: st.DrawFn, names: st.SearchStrategy[str], *, attributes: bool = False) -> Sample:
    graphs, facts = [], []
    for _ in range(2):
        entities = draw(st.lists(names, min_size=2, max_size=8, unique=True))
        relations = draw(st.lists(names, min_size=1, max_size=3, unique=True))
        ends = st.sampled_from(entities)
        triples = draw(st.lists(st.tuples(ends, st.sampled_from(relations), ends), min_size=1, max_size=15, unique=True))
        graphs.append(tuple(triples))
        subject = st.sampled_from([head for head, _, _ in triples])
        facts.append(tuple(draw(st.lists(st.tuples(subject, names, literals), max_size=4, unique=True))) if attributes else ())
    left, right = ([*dict.fromkeys(end for head, _, tail in triples for end in (head, tail))] for triples in graphs)
    links = draw(st.lists(st.tuples(st.sampled_from(left), st.sampled_from(right)), min_size=1, max_size=10, unique=True))
    seeds = draw(st.integers(0, len(links) - 1))
    return Sample(graphs[0], graphs[1], tuple(links), tuple(links[:seeds]), facts[0], facts[1])


def load(sample: Sample, form: str, *, gz: bool = False, config: DataConfig | None = None) -> AlignmentTask:
    with tempfile.TemporaryDirectory() as folder:
        WRITERS[form][1](Path(folder), sample, gz=gz)
        return load_task(folder, config)


def triples_of(graph: KnowledgeGraph) -> set[Triple]:
    return {(graph.entities[head], graph.relations[relation], graph.entities[tail]) for head, relation, tail in graph.triples}


def attributes_of(graph: KnowledgeGraph) -> set[Triple]:
    table = graph.attributes
    return {(graph.entities[entity], name, value) for entity, name, value in zip(table["entity"], table["attribute"], table["value"], strict=True)}


def pairs_of(task: AlignmentTask, part: str) -> set[tuple[str, str]]:
    return {(task.source.entities[left], task.target.entities[right]) for left, right in getattr(task, f"{part}_links")}


def assert_same(task: AlignmentTask, sample: Sample) -> None:
    for graph, triples, attributes in (
        (task.source, sample.source, sample.source_attributes),
        (task.target, sample.target, sample.target_attributes),
    ):
        assert triples_of(graph) == set(triples)
        assert len(graph.triples) == len(triples)
        assert attributes_of(graph) == set(attributes)
        assert set(graph.entities) >= {end for head, _, tail in triples for end in (head, tail)}
        assert len(graph.labels) == len(graph.entities) == len(set(graph.entities))
    assert pairs_of(task, "train") | pairs_of(task, "test") == set(sample.links)
    assert not pairs_of(task, "train") & pairs_of(task, "test")
    if sample.train:
        assert pairs_of(task, "train") == set(sample.train)


@pytest.mark.parametrize("gz", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("form", [form for form in WRITERS if form not in ("rdf", "ontology", "wide")])
def test_any_identifiers_survive(form: str, gz: bool) -> None:
    @settings(max_examples=examples(15), deadline=None)
    @given(samples(plain_names))
    def check(sample: Sample) -> None:
        assert_same(load(sample, form, gz=gz), sample)

    check()


@pytest.mark.parametrize("form", ["openea", "csv", "tsv", "parquet", "rdf", "ontology", "wide", "neo4j", "xml", "jsonl", "records"])
@settings(max_examples=examples(15), deadline=None)
@given(sample=samples(iris, attributes=True))
def test_attributes_survive(form: str, sample: Sample) -> None:
    if form == "xml":  # a node has one value of a property
        one_each = ({row[:2]: row for row in rows}.values() for rows in (sample.source_attributes, sample.target_attributes))
        sample = dataclasses.replace(sample, source_attributes=tuple(next(one_each)), target_attributes=tuple(next(one_each)))
    assert_same(load(sample, form), sample)


@settings(max_examples=examples(10), deadline=None)
@given(sample=samples(iris))
def test_every_format_gives_the_same_task(sample: Sample) -> None:
    """Same fingerprint, same split, same names: only the words about where the split came from may differ."""
    config = DataConfig(train_ratio=0.5)  # by default a benchmark's links are divided otherwise than a user's own
    tasks = [load(sample, form, gz=gz, config=config) for form in WRITERS for gz in (False, True)]
    first = tasks[0]
    for task in tasks[1:]:
        assert task.fingerprint == first.fingerprint
        assert task.source.entities == first.source.entities
        assert task.source.labels == first.source.labels
        assert task.target.relations == first.target.relations
        assert pairs_of(task, "train") == pairs_of(first, "train")


@settings(max_examples=examples(15), deadline=None)
@given(sample=samples(iris, attributes=True), data=st.data())
def test_order_of_lines_does_not_matter(sample: Sample, data: st.DataObject) -> None:
    shuffled = dataclasses.replace(
        sample,
        source=tuple(data.draw(st.permutations(sample.source))),
        target_attributes=tuple(data.draw(st.permutations(sample.target_attributes))),
        links=tuple(data.draw(st.permutations(sample.links))),
    )
    one, other = load(sample, "openea"), load(shuffled, "openea")
    assert one.fingerprint == other.fingerprint
    assert one.train_links.tolist() == other.train_links.tolist()
    assert one.source.triples.tolist() == other.source.triples.tolist()


@settings(max_examples=examples(15), deadline=None)
@given(sample=samples(iris))
def test_a_changed_triple_changes_the_fingerprint(sample: Sample) -> None:
    head, relation, tail = sample.source[0]
    changed = dataclasses.replace(sample, source=((head, f"{relation}-changed", tail), *sample.source[1:]))
    assert load(sample, "openea").fingerprint != load(changed, "openea").fingerprint
