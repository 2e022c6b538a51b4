"""The samples that come with the project load with the counts that their makers wrote down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.config import DataConfig
from engine.data import AlignmentTask, inspect_task, load_task
from engine.data.knowledge_graph import Side

SAMPLES = Path(__file__).parents[2] / "sample_data"
SIDES: list[tuple[Side, str]] = [("source", "kg1"), ("target", "kg2")]


@pytest.fixture(scope="module", params=["europe", "world"])
def sample(request: pytest.FixtureRequest) -> tuple[AlignmentTask, dict[str, Any]]:
    folder = SAMPLES / request.param
    return load_task(folder), json.loads((folder / "STATS.json").read_text(encoding="utf-8"))


def test_links(sample: tuple[AlignmentTask, dict[str, Any]]) -> None:
    task, stats = sample
    counts = {f"{part}_links": len(getattr(task, f"{part}_links")) for part in ("train", "valid", "test")}
    assert counts == stats["split"]
    assert len(task.unsure_links) == stats["unsure_links"]
    assert task.split == "given: 721_5fold/1"
    assert task.findings == ()


@pytest.mark.parametrize(("side", "key"), SIDES)
def test_graphs(side: Side, key: str, sample: tuple[AlignmentTask, dict[str, Any]]) -> None:
    task, stats = sample
    graph, expected = task.graph(side), stats[key]
    assert graph.num_entities == expected["entities"]
    assert len(graph.triples) == expected["relation_triples"]
    assert len(graph.attributes) == expected["attribute_triples"]
    assert sum(not label for label in graph.labels) == expected["entities_without_name"]
    counts = np.bincount(graph.triples[:, 1], minlength=graph.num_relations)
    assert dict(zip(graph.relations, counts.tolist(), strict=True)) == expected["relations"]
    column = SIDES.index((side, key))
    linked = np.unique(np.concatenate([task.train_links, task.valid_links, task.test_links])[:, column])
    assert len(linked) == expected["linked_entities"]
    degrees = graph.degrees[linked]
    assert (degrees.min(), degrees.max()) == (expected["degree_of_linked"]["min"], expected["degree_of_linked"]["max"])
    assert round(float(degrees.mean()), 2) == expected["degree_of_linked"]["mean"]


def test_identifiers_that_give_the_answer_away(sample: tuple[AlignmentTask, dict[str, Any]]) -> None:
    task, _ = sample
    (finding,) = [finding for finding in inspect_task(task).findings if finding.code == "telling-identifiers"]
    assert all("currency/" in example for example in finding.examples)
    languages_and_currencies = [
        left for left, _ in task.test_links if task.source.entities[left].startswith(("geonames:currency/", "geonames:language/"))
    ]
    assert finding.count == pytest.approx(len(languages_and_currencies), rel=0.05)


def test_validation_links_as_seeds() -> None:
    task = load_task(SAMPLES / "europe", DataConfig(use_valid_links="train"))
    assert (len(task.train_links), len(task.valid_links)) == (351, 0)
