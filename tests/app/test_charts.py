"""The figure of facing neighbourhoods, as a specification."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.charts import CENTRES, THINNEST, WIDEST, Figure, clicked_entity, clicked_more, edge_width, edge_words, facing_figure, percent, with_title
from engine.explore.neighbourhood import Edge, IncidentTriples, facing
from engine.runs.view import RunView
from tests.run_fixture import analysed, sample_run


@pytest.fixture(scope="module")
def adjacency() -> IncidentTriples:
    return IncidentTriples(RunView(sample_run()))


def counterpart(adjacency: IncidentTriples, index: int) -> int:
    return next(iter(adjacency.view.counterparts("source", index)))


def nodes(figure: Figure) -> list[dict[str, Any]]:
    return figure.option["series"][0]["data"]  # type: ignore[no-any-return]


def selected(kind: str, *indices: int) -> dict[str, Any]:
    return {"selection": {"selected": [{"series_index": 0, "data_type": kind, "data_indices": list(indices)}], "areas": []}}


def test_aligned_neighbours_have_the_same_height_and_are_joined(adjacency: IncidentTriples) -> None:
    faced = facing(adjacency, 2, counterpart(adjacency, 2))
    figure = facing_figure(faced)
    place = {node["id"]: node["value"] for node in nodes(figure)}
    links = [link for link in figure.option["series"][0]["links"] if str(link["id"]).startswith("aligned")]
    assert len(links) == len(faced.pairs) > 0
    for link in links:
        (left, row), (right, other_row) = place[link["source"]], place[link["target"]]
        assert row == other_row
        assert left < right


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("cap", [1, 3, 40])
def test_no_two_boxes_share_a_place(adjacency: IncidentTriples, hops: int, cap: int) -> None:
    for index in (0, 1, 2, 30):
        figure = facing_figure(facing(adjacency, index, counterpart(adjacency, index), hops=hops, cap=cap))
        places = [tuple(node["value"]) for node in nodes(figure)]
        boxes = places[: len(figure.entities) + len(figure.more)]  # the rest are their ports
        assert len(set(boxes)) == len(boxes)


def test_figures_of_the_same_pair_are_equal_and_json(adjacency: IncidentTriples) -> None:
    faced = facing(adjacency, 0, counterpart(adjacency, 0))
    assert json.dumps(facing_figure(faced).option) == json.dumps(facing_figure(faced).option)


def test_the_narrow_figure_has_the_same_nodes_in_the_same_order(adjacency: IncidentTriples) -> None:
    figure = facing_figure(facing(adjacency, 0, counterpart(adjacency, 0)))
    narrow = figure.option["media"][0]["option"]["series"][0]["data"]
    shown = len(figure.entities) + len(figure.more)
    assert [node["id"] for node in narrow] == [node["id"] for node in nodes(figure)][:shown]


def test_a_titled_figure_names_its_source_and_can_be_saved(adjacency: IncidentTriples) -> None:
    plain = facing_figure(facing(adjacency, 0, counterpart(adjacency, 0)))
    figure = with_title(plain, "A {b|x} title", "Data set x, run y", "neighbourhoods")
    assert figure.option["title"]["text"] == "A ❴b|x❵ title"
    assert figure.option["title"]["subtext"] == "Data set x, run y"
    assert figure.option["toolbox"]["feature"]["saveAsImage"]["name"] == "neighbourhoods"
    lowered = figure.height - plain.height
    assert figure.option["grid"]["top"] - plain.option["grid"]["top"] == lowered > 0
    narrow = [one.option["media"][0]["option"]["grid"]["top"] for one in (plain, figure)]
    assert narrow[1] - narrow[0] == lowered


def test_labels_cannot_be_templates(adjacency: IncidentTriples) -> None:
    run = sample_run()
    run.tables["entities"].loc[4, "label"] = "{b}{a|x}"
    figure = facing_figure(facing(IncidentTriples(RunView(run)), 0, counterpart(adjacency, 0)))
    assert not any("{" in node["label"]["formatter"] for node in nodes(figure) if "formatter" in node["label"])


def test_lone_entities_have_a_figure_too(adjacency: IncidentTriples) -> None:
    run = sample_run()
    empty = type(run)(run.manifest, None, {**run.tables, "triples": run.tables["triples"].iloc[:0]}, run.tensors)
    figure = facing_figure(facing(IncidentTriples(RunView(empty)), 0, 0))
    assert len(figure.entities) == CENTRES
    assert figure.height > 60


def test_a_click_leads_to_the_neighbour_it_was_on(adjacency: IncidentTriples) -> None:
    figure = facing_figure(facing(adjacency, 2, counterpart(adjacency, 2)))
    third = clicked_entity(figure, selected("node", 2))
    assert third is not None
    assert nodes(figure)[2]["id"] == f"{third.side}:{third.index}:neighbour"
    for event in (None, selected("node", 0), selected("node", 1), selected("edge", 5), selected("node", 10_000), selected("node")):
        assert clicked_entity(figure, event) is None


def test_edge_words() -> None:
    edges = (Edge("in", "out", 0.337), Edge("capital", "in"))
    assert edge_words(edges) == "→ in, ← capital"
    assert edge_words(edges, shares=True) == "→ in (34%), ← capital"


@pytest.mark.parametrize(("share", "words"), [(1.0, "100%"), (0.337, "34%"), (0.05, "5%"), (0.0123, "1.2%"), (0.0004, "<0.1%"), (0.0, "0%")])
def test_shares_in_words(share: float, words: str) -> None:
    assert percent(share) == words


def test_every_edge_starts_and_ends_at_a_node_of_the_figure(adjacency: IncidentTriples) -> None:
    for hops in (1, 2):
        figure = facing_figure(facing(adjacency, 20, counterpart(adjacency, 20), 6, hops))
        known = {node["id"] for node in nodes(figure)}
        assert len(known) == len(nodes(figure)), "ids are unique"
        for option in (figure.option, figure.option["media"][0]["option"]):
            known = {node["id"] for node in option["series"][0]["data"]}
            assert {link[end] for link in option["series"][0]["links"] for end in ("source", "target")} <= known


def test_widths_follow_the_attention() -> None:
    adjacency = IncidentTriples(RunView(analysed(sample_run())))
    faced = facing(adjacency, 4, counterpart(adjacency, 4))
    figure = facing_figure(faced)
    shares = {f"port:source:{one.entity.index}:neighbour": one.attention for one in (*(pair.source for pair in faced.pairs), *faced.source_only)}
    drawn = {link["target"]: link["lineStyle"]["width"] for link in figure.option["series"][0]["links"] if str(link["target"]) in shares}
    assert drawn.keys() == shares.keys() != set()
    assert all(drawn[port] == edge_width(share, figure.widest) for port, share in shares.items())
    assert figure.widest is not None
    assert THINNEST < edge_width(figure.widest / 2, figure.widest) < edge_width(figure.widest, figure.widest) == WIDEST


def test_what_is_not_drawn_is_counted_and_can_be_clicked(adjacency: IncidentTriples) -> None:
    faced = facing(adjacency, 0, counterpart(adjacency, 0), cap=3)
    figure = facing_figure(faced)
    assert figure.more == ("source", "target")
    first = len(figure.entities)
    assert nodes(figure)[first]["label"]["formatter"] == f"and {faced.hidden_source:,} more"
    assert clicked_more(figure, selected("node", first)) == "source"
    assert clicked_more(figure, selected("node", first + 1)) == "target"
    for event in (None, selected("node", 2), selected("node", first + 2), selected("edge", first)):
        assert clicked_more(figure, event) is None
    assert clicked_entity(figure, selected("node", first)) is None


def test_two_hops_are_drawn_below_the_pair_in_between(adjacency: IncidentTriples) -> None:
    faced = facing(adjacency, 20, counterpart(adjacency, 20), 10, hops=2)
    place = {node["id"]: node["value"] for node in nodes(facing_figure(faced))}
    assert faced.far
    for far in faced.far:
        for one, between in ((far.pair.source, faced.pairs[far.through].source), (far.pair.target, faced.pairs[far.through].target)):
            own, above = (place[f"{entity.side}:{entity.index}:neighbour"] for entity in (one.entity, between.entity))
            assert 1 <= own[1] - above[1] <= 3
