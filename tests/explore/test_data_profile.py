"""What is in a run's graphs: the same as in the data that it was trained on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from engine.analysis.run_tables import attribute_table, both_graphs, entity_table, link_table, relation_table, triple_table
from engine.data import AlignmentTask, inspect_task
from engine.data.inspection import Inspection
from engine.evaluation.paper import SIZES
from engine.explore.data_profile import (
    dangling_entities,
    degree_survival,
    inspect_run,
    isolated_entities,
    paper_data,
    relation_profile,
    relations_holding,
    sample_triples,
    task_of,
)
from engine.runs.view import RunView
from tests.run_fixture import MemoryRun, sample_run


def stored(task: AlignmentTask) -> MemoryRun:
    """The tables and the part of the manifest that a run of this task would have."""
    graphs = {"entities": entity_table, "relations": relation_table, "triples": triple_table, "attributes": attribute_table}
    data = {
        "name": task.name,
        "format": task.format,
        "split": task.split,
        "fingerprint": task.fingerprint,
        "source": {"name": task.source.name},
        "target": {"name": task.target.name},
        "findings": [dataclasses.asdict(finding) | {"examples": list(finding.examples)} for finding in task.findings],
    }
    tables = {name: both_graphs(task, table) for name, table in graphs.items()}
    return MemoryRun({"data": data}, None, {**tables, "links": link_table(task)}, {})


def codes(inspection: Inspection) -> list[str]:
    return [finding.code for finding in inspection.findings]


def test_a_run_is_inspected_as_its_data_would_be() -> None:
    """But for the counts of files, which are of the reading and not of the run."""
    from engine.config import DataConfig
    from engine.data import load_task

    task = load_task(Path(__file__).resolve().parents[2] / "sample_data" / "europe", DataConfig(), 0)
    assert inspect_run(stored(task)) == dataclasses.replace(inspect_task(task), files=())


def test_what_reader_and_names_found_is_reported_again() -> None:
    run = sample_run()
    reader = {"code": "duplicate-triples", "severity": "error", "message": "Twice.", "count": 2, "examples": ["<b>"], "advice": "", "new_field": 1}
    names = {"message": "Names give it away.", "severity": "fatal"}
    run.manifest = {**run.manifest, "data": {**run.manifest["data"], "findings": [reader]}, "literal": {"findings": [names]}}
    found = inspect_run(run)
    assert found.findings[0].code == "duplicate-triples"
    assert found.findings[0].examples == ("<b>",)
    shown = next(finding for finding in found.findings if finding.message == "Names give it away.")
    assert shown.severity == "info", "what is not known is no reason to fail"


def test_a_run_without_links_and_triples() -> None:
    run = sample_run()
    empty = {name: run.tables[name].iloc[:0] for name in ("links", "triples", "attributes")}
    run.tables = {**run.tables, **empty}
    task = task_of(run)
    assert [len(part) for part in task.all_links()] == [0, 0, 0, 0]
    assert {"no-test-links", "isolated-entities"} <= set(codes(inspect_run(run)))


@given(arrays.arrays(np.int64, st.integers(0, 40), elements=st.integers(0, 9)))
def test_how_many_have_at_least_a_degree(degrees: np.ndarray) -> None:  # type: ignore[type-arg]
    table = degree_survival(degrees)
    assert table["degree"].tolist() == sorted(set(degrees[degrees > 0].tolist()))
    for row in table.itertuples():
        assert row.entities == int((degrees == row.degree).sum())
        assert row.at_least == int((degrees >= row.degree).sum())
        assert row.share == pytest.approx(row.at_least / len(degrees))


def test_relations_with_their_frequency_and_functionality() -> None:
    triples = pd.DataFrame(
        {
            "graph": ["source"] * 4 + ["target"] * 2,
            "head": [0, 0, 1, 2, 5, 5],
            "relation": [1, 1, 1, 0, 0, 0],
            "tail": [1, 2, 2, 0, 5, 6],
        }
    )
    relations = pd.DataFrame({"graph": ["source"] * 3 + ["target"], "relation": [0, 1, 2, 0], "name": ["Ort", "größer als", "leer", "fern"]})
    found = relation_profile(triples, relations, "source")
    assert found["name"].tolist() == ["größer als", "Ort", "leer"]
    assert found["triples"].tolist() == [3, 1, 0]
    assert found["heads"].tolist() == [2, 1, 0]
    assert found["tails"].tolist() == [2, 1, 0]
    assert found["functionality"].tolist()[:2] == pytest.approx([2 / 3, 1.0])
    assert np.isnan(found["functionality"].iloc[2])
    assert found["share"].sum() == pytest.approx(1.0)
    assert relation_profile(triples, relations, "target")["tails"].tolist() == [2]
    assert relations_holding(found, "GROSSER")["name"].tolist() == ["größer als"]
    assert len(relations_holding(found, " ")) == 3
    assert relations_holding(found, "nowhere").empty


def test_entities_on_their_own() -> None:
    run = sample_run()
    view, links = RunView(run), run.tables["links"]
    dangling = dangling_entities(view, links, "target")
    assert set(dangling.tolist()) == set(range(len(view.graphs["target"]))) - set(links["target"])
    assert (np.diff(view.graphs["target"].degrees[dangling]) <= 0).all()
    isolated = isolated_entities(view, "target")
    touched = run.tables["triples"].query("graph == 'target'")
    assert set(isolated.tolist()) == set(range(len(view.graphs["target"]))) - set(touched["head"]) - set(touched["tail"])
    assert len(isolated)


def test_samples_are_triples_of_the_graph_and_the_same_each_time() -> None:
    triples = sample_run().tables["triples"]
    rows = set(triples.query("graph == 'target'")[["head", "relation", "tail"]].itertuples(index=False, name=None))
    found = sample_triples(triples, "target", 6)
    assert len(set(found.itertuples(index=False, name=None)) & rows) == 6
    assert found.equals(sample_triples(triples, "target", 6))
    assert sample_triples(triples, "source", 5, relation=2)["tail"].tolist() == [4, 8], "fewer where there are fewer"
    assert sample_triples(triples, "source", 5, relation=99).empty


@pytest.mark.parametrize("name", SIZES)
def test_the_papers_data_is_known_whichever_graph_comes_first(name: str) -> None:
    first, second = SIZES[name]
    for source, target in ((first, second), (second, first)):
        found = paper_data((source[0], source[1] + 3), target)
        assert found is not None
        assert found.name == name
        assert found.triples == (source[1], target[1])
        assert found.results
    assert paper_data((17, 4), second) is None
