"""What is said of graphs without seed links before anything is trained on them."""

from __future__ import annotations

import pytest

from engine.names import value_start
from engine.names.value_start import start_finding
from tests.names.tasks import attribute_rows, graph, task

SIZE = 9


def message(left: list[str], right: list[str]) -> str:
    source, target = (
        graph(side, [f"{side}{i}" for i in range(SIZE)], [""] * SIZE, attribute_rows([(i, "title", value) for i, value in enumerate(values)]))
        for side, values in (("s", left), ("t", right))
    )
    found = start_finding(task(source, target))
    assert found is not None
    assert found.code == "few-seeds"
    return found.message


def words(start: str) -> list[str]:
    return [f"{start} {i}" for i in range(SIZE)]


def test_pairs_to_start_from_are_counted() -> None:
    assert "can start from about 9 pairs of entities implied by 9 names and values of both graphs" in message(words("a"), words("A"))


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        (words("a"), words("b"), "share no name or value to start from"),
        (["same"] * SIZE, ["same"] * SIZE, "too many entities have"),
        (["..."] * SIZE, ["..."] * SIZE, "share only values without meaning"),
        (["NA"] * SIZE, ["na"] * SIZE, "share no name or value to start from"),
        ([], [], "share no name or value to start from"),
    ],
)
def test_where_there_is_nothing_to_start_from_the_reason_is_given(left: list[str], right: list[str], reason: str) -> None:
    found = message(left, right)
    assert found.startswith("Training is not possible yet: there are no known links")
    assert reason in found


def test_large_graphs_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_start, "QUICKLY_STARTED", 1)
    monkeypatch.setattr(value_start, "fixed_point", None)
    assert "can start from 9 names and values that both graphs have" in message(words("a"), words("A"))
