"""Answers: the numbers of the command line, and what the description of the service says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from engine.cli.main import main
from engine.serving.examples import EXAMPLES
from tests.serving.conftest import AT, RUN, WEIGHED

NEW = {"id": "new", "label": "City 99", "triples": [["new", "a relation 0", "a 1"], ["a 2", "a relation 1", "new"]], "values": [["A", "1"]]}
SOURCE, TARGET = "a 2", "b 5"
WEIGHED_AT = f"/runs/{WEIGHED}"
QUESTIONS = {
    "runs": "/runs",
    "run": AT,
    "metrics": f"{AT}/metrics",
    "search": f"{AT}/search?text=Germ",
    "match": f"{AT}/match?entity=source:Germany&top=3",
    "pair": f"{WEIGHED_AT}/pair?source={SOURCE}&target={TARGET}",
    "explain": f"{WEIGHED_AT}/explain?source={SOURCE}&target={TARGET}",
    "reviews": f"{AT}/reviews",
    "health": "/health",
}


def answer(client: TestClient, address: str) -> dict[str, Any]:
    found = client.get(address)
    assert found.status_code == 200, found.text
    assert found.headers["content-type"] == "application/json"
    values: dict[str, Any] = found.json()
    return values


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(list(words)) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_have_the_fields_of_their_examples(client: TestClient, name: str) -> None:
    found, example = answer(client, QUESTIONS[name]), EXAMPLES[name]
    assert set(example) <= set(found)
    if name != "explain":  # the example shows a part of it
        assert set(example) == set(found)


@pytest.mark.parametrize(
    ("entity", "top"), [("source:Germany", 3), ("http://one.example/resource/Entity_7", 4), ("target:France", 20), ("target:Q12", 1000)]
)
def test_a_match_is_the_command_lines(client: TestClient, served_models: Path, capsys: pytest.CaptureFixture[str], entity: str, top: int) -> None:
    shown = printed(capsys, "match", RUN, entity, "--top", str(top), "--models", str(served_models), "--json")
    found = answer(client, f"{AT}/match?entity={entity}&top={top}")
    assert found["matches"] == shown["matches"]
    assert {name: found["entity"][name] for name in shown["entity"]} == shown["entity"]


def test_a_match_among_the_test_entities(client: TestClient, served_models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entity = "http://one.example/resource/Entity_20"
    shown = printed(capsys, "match", RUN, entity, "--pool", "test", "--top", "5", "--models", str(served_models), "--json")
    assert answer(client, f"{AT}/match?entity={entity}&pool=test")["matches"] == shown["matches"]


def test_new_entities_are_placed_as_by_the_command_line(
    client: TestClient, served_models: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text(json.dumps(NEW), encoding="utf-8")
    shown = printed(capsys, "match", WEIGHED, "--new", str(file), "--top", "3", "--models", str(served_models), "--json")
    found = client.post(f"{WEIGHED_AT}/match", json={"entities": [NEW], "top": 3})
    assert found.status_code == 200, found.text
    assert found.json() == shown
    assert set(found.json()["entities"][0]) == set(EXAMPLES["new matches"]["entities"][0])
    assert set(found.json()["entities"][0]["matches"][0]) == set(EXAMPLES["new matches"]["entities"][0]["matches"][0])


@pytest.mark.parametrize("words", [(), ("--remove", "top:1"), ("--side", "target"), ("--against", "b 7")])
def test_an_explanation_is_the_command_lines(
    client: TestClient, served_models: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    shown = printed(capsys, "explain", WEIGHED, SOURCE, TARGET, *words, "--models", str(served_models), "--json")
    parameters = dict(zip((word.removeprefix("--") for word in words[::2]), words[1::2], strict=True))
    if "remove" in parameters:
        parameters["remove"] = f'"{parameters["remove"]}"'
    found = client.get(f"{WEIGHED_AT}/explain", params={"source": SOURCE, "target": TARGET, **parameters})
    assert found.status_code == 200, found.text
    assert found.json() == shown


def test_a_pair_has_the_scores_of_its_explanation(client: TestClient) -> None:
    pair, shown = answer(client, QUESTIONS["pair"]), answer(client, QUESTIONS["explain"])
    same = ("cosine", "csls", "rank_from_source", "rank_from_target", "verdict", "pool_sizes", "probability")
    assert {name: pair[name] for name in same} == {name: shown[name] for name in same}


def test_search_finds_both_graphs_and_keeps_to_its_limit(client: TestClient) -> None:
    assert {one["side"] for one in answer(client, f"{AT}/search?text=Germany")["entities"]} == {"source", "target"}
    found = answer(client, f"{AT}/search?text=City&side=source&limit=3")["entities"]
    assert len(found) == 3
    assert all(one["side"] == "source" and "City" in one["label"] for one in found)


def test_labels_of_all_scripts_and_hostile_ones_come_back_as_they_are(client: TestClient) -> None:
    for text in ("دمشق", "北京市", "<script>"):
        found = answer(client, f"{AT}/search?text={text}")["entities"]
        assert found
        assert all(text in one["label"] for one in found)


def test_metrics_are_those_of_the_run(client: TestClient, served_models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = printed(capsys, "runs", "--models", str(served_models), "--json")
    shown = [{name: value for name, value in row.items() if name != "reason"} for row in listed]
    assert answer(client, "/runs")["runs"] == shown
    (hits,) = [row["hits@1"] for row in listed if row["run"] == RUN]
    assert answer(client, QUESTIONS["metrics"])["metrics"]["target_to_source"]["hits@1"] == hits
