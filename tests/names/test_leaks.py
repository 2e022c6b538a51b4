"""Warnings where names or identifiers alone nearly solve a task, and never a look at the test links."""

from __future__ import annotations

import numpy as np
import pytest

from engine.data.knowledge_graph import AlignmentTask
from engine.names import get_name_encoder, leak_warning
from engine.search import NameSimilarity
from tests.names.tasks import graph, task

SIZE = 60
WORDS = ["".join(chr(97 + digit) for digit in np.random.default_rng(i).integers(0, 26, 9)) for i in range(2 * SIZE)]


def made(labels: list[list[str]], tails: list[list[str]], known: int = 40) -> tuple[AlignmentTask, NameSimilarity]:
    graphs = [graph(host, [f"http://{host}.org/{tail}" for tail in own], names) for host, own, names in zip(("a", "b"), tails, labels, strict=True)]
    links = np.stack([np.arange(SIZE)] * 2, axis=1)
    drawn = task(graphs[0], graphs[1], train=links[: known // 2], valid=links[known // 2 : known], test=links[known:])
    return drawn, get_name_encoder("ngrams").encode(*labels).similarity


def test_revealing_names_and_identifiers() -> None:
    alike, unlike = [WORDS[:SIZE], WORDS[:SIZE]], [WORDS[:SIZE], WORDS[SIZE:]]
    assert [finding.code for finding in leak_warning(*made(alike, unlike))] == ["names-nearly-solve"]
    assert [finding.code for finding in leak_warning(*made(unlike, alike))] == ["identifiers-nearly-solve"]
    both = leak_warning(*made(alike, alike))
    assert [(finding.severity, finding.count) for finding in both] == [("warning", 40)] * 2
    assert "100% of the 40 training and validation links" in both[0].message
    assert leak_warning(*made(unlike, unlike)) == ()


def test_test_links_are_never_looked_at() -> None:
    """Only the names of test entities agree: nothing to be learned from the training and validation links."""
    labels = [WORDS[:SIZE], WORDS[SIZE : SIZE + 40] + WORDS[40:SIZE]]
    assert leak_warning(*made(labels, [WORDS[:SIZE], WORDS[SIZE:]])) == ()


@pytest.mark.parametrize("same", ["", "Smith"])
def test_names_that_are_missing_or_all_the_same_solve_nothing(same: str) -> None:
    labels = [[same] * SIZE, [same] * SIZE]
    assert leak_warning(*made(labels, [WORDS[:SIZE], WORDS[SIZE:]])) == ()


def test_a_few_links_say_nothing() -> None:
    alike = [WORDS[:SIZE], WORDS[:SIZE]]
    assert leak_warning(*made(alike, alike, known=10)) == ()
