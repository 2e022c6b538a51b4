"""The figure of facing neighbourhoods, as a specification."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.charts import CENTRES, Figure, clicked_entity, edge_words, facing_figure
from engine.matching import RunView
from engine.neighbourhood import Adjacency, Edge, facing
from tests.run_fixture import sample_run


@pytest.fixture(scope="module")
def adjacency() -> Adjacency:
    return Adjacency(RunView(sample_run()))


def counterpart(adjacency: Adjacency, index: int) -> int:
    return next(iter(adjacency.view.counterparts("source", index)))


def nodes(figure: Figure) -> list[dict[str, Any]]:
    return figure.option["series"][0]["data"]  # type: ignore[no-any-return]


def selected(kind: str, *indices: int) -> dict[str, Any]:
    return {"selection": {"selected": [{"series_index": 0, "data_type": kind, "data_indices": list(indices)}], "areas": []}}


def test_aligned_neighbours_stand_at_the_same_height_and_are_joined(adjacency: Adjacency) -> None:
    faced = facing(adjacency, 2, counterpart(adjacency, 2))
    figure = facing_figure(faced)
    place = {node["id"]: node["value"] for node in nodes(figure)}
    links = [link for link in figure.option["series"][0]["links"] if str(link["id"]).startswith("aligned")]
    assert len(links) == len(faced.pairs) > 0
    for link in links:
        (left, row), (right, other_row) = place[link["source"]], place[link["target"]]
        assert row == other_row
        assert left < right


def test_no_two_boxes_share_a_place(adjacency: Adjacency) -> None:
    for index in (0, 1, 2, 30):
        places = [tuple(node["value"]) for node in nodes(facing_figure(facing(adjacency, index, counterpart(adjacency, index))))]
        boxes = places[: len(places) // 2]  # the rest are their ports
        assert len(set(boxes)) == len(boxes)


def test_figures_of_the_same_pair_are_equal_and_json(adjacency: Adjacency) -> None:
    faced = facing(adjacency, 0, counterpart(adjacency, 0))
    assert json.dumps(facing_figure(faced).option) == json.dumps(facing_figure(faced).option)


def test_the_narrow_figure_has_the_same_nodes_in_the_same_order(adjacency: Adjacency) -> None:
    figure = facing_figure(facing(adjacency, 0, counterpart(adjacency, 0)))
    narrow = figure.option["media"][0]["option"]["series"][0]["data"]
    assert [node["id"] for node in narrow] == [node["id"] for node in nodes(figure)][: len(figure.entities)]


def test_labels_cannot_be_templates(adjacency: Adjacency) -> None:
    run = sample_run()
    run.tables["entities"].loc[4, "label"] = "{b}{a|x}"
    figure = facing_figure(facing(Adjacency(RunView(run)), 0, counterpart(adjacency, 0)))
    assert not any("{" in node["label"]["formatter"] for node in nodes(figure) if "formatter" in node["label"])


def test_lone_entities_have_a_figure_too(adjacency: Adjacency) -> None:
    run = sample_run()
    empty = type(run)(run.manifest, None, {**run.tables, "triples": run.tables["triples"].iloc[:0]}, run.tensors)
    figure = facing_figure(facing(Adjacency(RunView(empty)), 0, 0))
    assert len(figure.entities) == CENTRES
    assert figure.height > 60


def test_a_click_leads_to_the_neighbour_it_was_on(adjacency: Adjacency) -> None:
    figure = facing_figure(facing(adjacency, 2, counterpart(adjacency, 2)))
    third = clicked_entity(figure, selected("node", 2))
    assert third is not None
    assert nodes(figure)[2]["id"] == f"{third.side}:{third.index}:neighbour"
    for event in (None, selected("node", 0), selected("node", 1), selected("edge", 5), selected("node", 10_000), selected("node")):
        assert clicked_entity(figure, event) is None


def test_edge_words() -> None:
    assert edge_words((Edge("in", "out"), Edge("capital", "in"))) == "→ in, ← capital"
