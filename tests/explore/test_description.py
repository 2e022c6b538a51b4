"""What is known of an entity without a label."""

from __future__ import annotations

import pandas as pd
import pytest

from engine.explore.description import LENGTH, is_type, known_facts
from engine.explore.neighbourhood import IncidentTriples
from engine.runs.view import RunView
from tests.run_fixture import graph_tables, sample_run


def adjacency(attributes: list[tuple[str, str]], triples: list[tuple[int, int, int]], labels: list[str], relations: list[str]) -> IncidentTriples:
    """Of a run whose source graph has these facts; entity 0 is the one that is asked about."""
    run = sample_run()
    uris = [f"http://x/{index}" for index in range(len(labels))]
    own = graph_tables("source", uris, labels, triples, relations)
    theirs = {name: run.tables[name][run.tables[name]["graph"] == "target"] for name in own}
    tables = {name: pd.concat([own[name], theirs[name]], ignore_index=True) for name in own}
    rows = pd.DataFrame({"graph": "source", "entity": 0, "attribute": [one for one, _ in attributes], "value": [value for _, value in attributes]})
    run.tables = {**run.tables, **tables, "attributes": rows}
    return IncidentTriples(RunView(run))


def facts(*of: object) -> tuple[str, ...]:
    found = adjacency(*of)  # type: ignore[arg-type]
    return known_facts(found, found.view.entity("source", 0))


def test_type_value_and_neighbour_in_this_order() -> None:
    labels, relations = ["", "City", "France"], ["http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://x/inCountry"]
    found = facts([("http://x/population", '"1200"^^<http://www.w3.org/2001/XMLSchema#int>')], [(0, 0, 1), (0, 1, 2)], labels, relations)
    assert found == ("City", "population 1200", "→ inCountry France")


def test_what_the_data_does_not_have_is_left_out() -> None:
    assert facts([("note", "n/a")], [(1, 0, 0)], ["", "France"], ["hasCity"]) == ("← hasCity France",)
    assert facts([], [(1, 0, 0)], ["", ""], ["hasCity"]) == (), "a neighbour without a label says as little"
    assert facts([], [], ["", "France"], ["hasCity"]) == ()


def test_long_facts_are_cut() -> None:
    (found,) = facts([("note", "word " * 5000)], [], [""], ["r"])
    assert len(found) <= LENGTH


@pytest.mark.parametrize(
    ("name", "expected"),
    [("rdf:type", True), ("http://x/instance_of", True), ("http://www.wikidata.org/prop/direct/P31", True), ("typeOfSoil", False), ("", False)],
)
def test_names_of_types(name: str, expected: bool) -> None:
    assert is_type(name) == expected
