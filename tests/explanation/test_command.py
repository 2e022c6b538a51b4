"""``python -m engine explain``: the JSON that programs rely on, the lines that people read, and one sentence for each mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from tests.explanation.runs import drawn_run, lonely_task
from tests.run_fixture import write_run


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for variant in ("basic", "semi", "literal"):
        write_run(drawn_run(3, variant=variant), folder, run_id=f"{variant}-s0-01234567")
    write_run(drawn_run(0, task=lonely_task()), folder, run_id="lonely-s0-01234567")
    return folder


def ask(models: Path, capsys: pytest.CaptureFixture[str], *words: str, run: str = "semi-s0-01234567") -> tuple[int, str, str]:
    code = main(["explain", run, *words, "--models", str(models)])
    out, err = capsys.readouterr()
    return code, out, err


def asked(models: Path, capsys: pytest.CaptureFixture[str], *words: str, run: str = "semi-s0-01234567") -> dict[str, Any]:
    code, out, _ = ask(models, capsys, *words, "--json", run=run)
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize("variant", ["basic", "semi", "literal"])
def test_json_adds_up(models: Path, variant: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(models, capsys, "a 1", "b 2", "--top", "3", run=f"{variant}-s0-01234567")
    assert sum(part["value"] for part in found["parts"]) == pytest.approx(found["csls"], abs=1e-5)
    multi_hop = sum(part["value"] for part in found["parts"] if part["name"].endswith("multi-hop"))
    listed = sum(pair["value"] for pair in found["neighbours"])
    assert listed + found["neighbours_rest"] + found["own_relations"] == pytest.approx(multi_hop)
    assert {"source", "target", "source_relation", "target_relation", "value", "aligned"} <= set(found["neighbours"][0])
    assert {run["run"].split("/")[1].split("-")[0] for run in found["context"]["runs"]} == {"basic", "semi", "literal", "lonely"} - {variant}
    assert ("before" in found, "after" in found) == (False, False)
    assert sum(part["value"] for part in found["against"]["parts"]) == pytest.approx(found["against"]["difference"], abs=1e-5)
    names = [part["name"] for part in found["parts"]]
    assert ("names" in names) == (variant == "literal")


def test_removal_and_a_named_rival(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = asked(models, capsys, "a 2", "b 5")
    found = asked(models, capsys, "a 2", "b 5", "--against", "b 7", "--remove", "top:1")
    assert found["against"]["entity"]["uri"] == "b 7"
    assert found["before"]["csls"] == found["csls"] == first["csls"]
    assert found["after"]["csls"] != found["before"]["csls"]
    edge = found["removed"][0]
    again = asked(
        models, capsys, "a 2", "b 5", *(word for edge in found["removed"] for word in ("--remove", edge["head"], edge["relation"], edge["tail"]))
    )
    assert again["after"]["csls"] == pytest.approx(found["after"]["csls"], abs=1e-6)
    assert edge["graph"] in ("source", "target")


def test_lines_for_people(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ask(models, capsys, "a 1", "b 2", "--remove", "top:2", "--top", "4")
    assert code == 0
    assert re.match(r"Verdict: (Very likely|Probably|Known to be|Uncertain)\b.*: .*neighbours? match", out)
    assert "\nMatch: 'b 2' is rank " in out
    assert "\nBasis: " in out
    assert "Used as a training pair in round 1. Selection score 0.900: the share of the round's drawn" in out
    assert re.search(r"^ +[+-]\d\.\d{3}  hubness correction\n +[+-]\d\.\d{3}  hubness of the source\n.*hubness of the target$", out, re.M)
    assert "removed:" in out
    code, out, _ = ask(models, capsys, "a 0", "b 0", run="lonely-s0-01234567")
    assert code == 0
    assert "no triples" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nobody", "b 1"], "does not have an entity 'nobody'"),
        (["a 1", "a 2"], "one entity of each graph"),
        (["a 1", "b 1", "--against", "nobody"], "neither graph has"),
        (["a 1", "b 1", "--against", "b 1"], "own entity"),
        (["a 1", "b 1", "--remove", "nobody"], "is no neighbour of"),
        (["a 1", "b 1", "--remove", "a 1", "a relation 99", "a 2"], "has no triple"),
        (["a 1", "b 1", "--remove", "top:x"], "whole number"),
        (["a 1", "b 1", "--top", "-1"], "--top must lie"),
    ],
)
def test_mistakes_are_one_line(models: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ask(models, capsys, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("error: ")
