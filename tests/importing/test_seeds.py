"""Seed links from names: unique, alike, mutual, and of entities without a link."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine.data.knowledge_graph import AlignmentTask, KnowledgeGraph, empty_links
from engine.importing.seeds import SeedPair, suggest_seeds


def graph(labels: Sequence[str], start: str) -> KnowledgeGraph:
    triples = np.array([[number, 0, (number + 1) % len(labels)] for number in range(len(labels))], dtype=np.int64)
    return KnowledgeGraph("", tuple(f"{start}{number}" for number in range(len(labels))), tuple(labels), ("r",), triples)


def task(source: Sequence[str], target: Sequence[str], links: Sequence[tuple[int, int]] = ()) -> AlignmentTask:
    known = np.array(links, dtype=np.int64).reshape(-1, 2)
    none = empty_links()
    return AlignmentTask("t", "tables", graph(source, "a"), graph(target, "b"), known, none, none, none, "", "")


def pairs(found: Sequence[SeedPair]) -> set[tuple[str, str, str]]:
    return {(pair.source, pair.target, pair.likeness) for pair in found}


def test_equal_but_for_case_accents_script_and_punctuation() -> None:
    found = suggest_seeds(task(["Málaga", "BEIJING", "Saint-Denis", "Only here"], ["malaga", "北京", "Saint Denis", "Only there at all"]))
    assert {one for one in pairs(found.pairs) if one[2] == "exact"} == {("a0", "b0", "exact"), ("a1", "b1", "exact"), ("a2", "b2", "exact")}


def test_a_name_that_two_entities_have_is_no_seed() -> None:
    assert not suggest_seeds(task(["Springfield", "Springfield"], ["Springfield"])).pairs
    assert not suggest_seeds(task(["Springfield"], ["Springfield", "springfield"])).pairs


def test_missing_names_and_codes_are_none() -> None:
    assert not suggest_seeds(task(["", "A1", "x"], ["", "A1", "x"])).pairs


def test_entities_in_links_are_left_alone() -> None:
    found = suggest_seeds(task(["Rome", "Paris", "Oslo"], ["Rome", "Paris", "Oslo"], links=[(0, 2)]))
    assert pairs(found.pairs) == {("a1", "b1", "exact")}


def test_nearly_equal_names_need_to_be_each_others_best_by_far() -> None:
    found = suggest_seeds(
        task(["Constantinopolis", "Route 12 north", "Whitehorse Yukon"], ["Constantinopoli", "Route 13 north", "Whitehorse Yukonn"])
    )
    assert pairs(found.pairs) == {("a0", "b0", "near"), ("a2", "b2", "near")}, "other numbers are another thing"
    rivals = suggest_seeds(task(["Constantinopolis"], ["Constantinopoli", "Constantinopolia"]))
    assert not rivals.pairs
    assert not suggest_seeds(task(["Constantinopolis"], ["Constantinopoli"]), nearly=False).pairs


def test_choices_and_rejections() -> None:
    found = suggest_seeds(task(["Rome", "New Constantinopolis", "Oslo"], ["Rome", "New Constantinopoliss", "Oslo"]))
    assert not found.chosen("none")
    assert pairs(found.chosen("exact")) == {("a0", "b0", "exact"), ("a2", "b2", "exact")}
    assert len(found.chosen("near")) == 3
    assert pairs(found.chosen("exact", {("a0", "b0")})) == {("a2", "b2", "exact")}


def test_too_many_names_for_a_comparison_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.importing.seeds.MOST_COMPARED", 3)
    found = suggest_seeds(task(["Rome", "Constantinopolis", "Madrid"], ["Rome", "Constantinopoli", "Lisbon"]))
    assert pairs(found.pairs) == {("a0", "b0", "exact")}
    assert found.too_many
