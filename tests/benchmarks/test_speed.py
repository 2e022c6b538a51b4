"""``benchmarks.speed`` and ``benchmarks.search_speed`` end to end, on tiny sizes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import search_speed, speed
from benchmarks.children import here, in_a_process
from benchmarks.growth import exponent, growth_table
from benchmarks.search_speed import SearchCase, measure_search
from benchmarks.training_phases import evenly, step_work
from engine.config import RunConfig
from engine.errors import TrainingError

PHASES = ["read", "index", "encoder", "forward", "loss", "backward", "optimiser", "search", "evaluation"]
QUICK = ["--steps", "2", "--threads", "1", "--queries", "100", "--set", "encoder.dim=8", "--set", "encoder.proxies=4"]

pytestmark = pytest.mark.usefixtures("quick_probe")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def measured(tmp_path: Path) -> Callable[..., int]:
    """Measures two synthetic sizes in this process; the tables are in ``tmp_path/out.md``."""
    return lambda *words: speed.main(["--entities", "1000", "1500", *QUICK, "--out", str(tmp_path / "out.md"), *words], here)


def test_every_phase_is_measured_and_written(measured: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert measured() == 0
    text, records = (tmp_path / "out.md").read_text(encoding="utf-8"), lines(tmp_path / "out.jsonl")
    assert capsys.readouterr().out.strip() == text.strip()
    assert [one["case"] for one in records] == ["synthetic 1,000", "synthetic 1,500"]
    for one in records:
        assert list(one["phases"]) == sorted(PHASES)
        assert all(len(one["phases"][name]["samples"]) == 2 and one["phases"][name]["seconds"] > 0 for name in PHASES)
        assert all(one["phases"][name]["gflops"] > 0 for name in ("forward", "loss", "backward", "search", "evaluation"))
        assert all(one["phases"][name]["ratio"] > 0 for name in PHASES)
        steps = sum(one["phases"][name]["seconds"] for name in ("forward", "loss", "backward", "optimiser"))
        assert one["step_seconds"] == pytest.approx(steps, rel=1e-6)
        assert {"cpu", "cores", "memory_gib"} <= set(one["machine"])
        assert {"python", "torch", "numba"} <= set(one["versions"])
        assert one["command"].startswith("python -m benchmarks.speed --entities 1000 1500")
        assert one["peak_mib"] >= one["start_mib"]
    assert [one["entities"] for one in records] == [[1000, 1000], [1500, 1500]]
    assert "100 of 1,000 source entities among all targets" in text
    assert "| step | " in text
    assert records[0]["command"] in text


def test_the_guard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "baseline.json"

    def measured(*words: str) -> int:
        return speed.main(["--entities", "1000", *QUICK, *words], here)

    assert measured("--record", str(path)) == 0
    content = json.loads(path.read_text())
    for case in content["cases"].values():
        for phase in case["phases"].values():
            phase["ratio"], phase["seconds"] = phase["ratio"] * 1000, 1.0
    path.write_text(json.dumps(content))
    assert measured("--baseline", str(path)) == 0
    content["cases"]["synthetic 1,000"]["phases"]["loss"]["ratio"] = 1e-6
    path.write_text(json.dumps(content))
    capsys.readouterr()
    assert measured("--baseline", str(path)) == 1
    said = capsys.readouterr()
    assert "regression: synthetic 1,000: loss takes" in said.err
    assert said.err.count("regression:") == 1
    assert said.err.count("measuring synthetic 1,000") == 2, "once more before it complains"
    assert "WORSE" in said.out
    assert measured("--baseline", str(path), "--set", "encoder.dim=4") == 2
    assert "other conditions: settings=" in capsys.readouterr().err
    assert measured("--baseline", str(path), "--record", str(path), "--set", "encoder.dim=4") == 0, "a new baseline is what was asked for"
    assert measured("--baseline", str(path), "--tolerance", "1000", "--set", "encoder.dim=4") == 0


def test_data_folders(small_world: Path, tmp_path: Path) -> None:
    assert speed.main(["--data", str(small_world), *QUICK, "--out", str(tmp_path / "out.md")], here) == 0
    (one,) = lines(tmp_path / "out.jsonl")
    assert (one["case"], one["synthetic"], one["seed_links"], one["test_links"]) == ("small", None, 30, 70)
    assert one["conditions"]["threads"] == 1
    assert growth_table([one]) == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to measure"),
        (["--entities", "10"], "has 1,000 to"),
        (["--entities", "1000", "1000"], "'1000' is given twice"),
        (["--entities", "1000", "--steps", "0"], "--steps must be at least 1"),
        (["--entities", "1000", "--tolerance", "1"], "--tolerance above 1"),
        (["--entities", "1000", "--baseline", "none.json"], "make one with --record"),
        (["--entities", "1000", "--out", "speed.jsonl"], "for example speed.md"),
        (["--entities", "1000", "--out", "."], "for example speed.md"),
        (["--entities", "1000", "--record", "README.md/x.json"], "name another place"),
        (["--data", "no/such/folder"], "there is no such folder"),
        (["--data", "no/such/folder", "--set", "encoder.dim"], "expects section.option=value"),
    ],
)
def test_mistakes_become_one_line(
    monkeypatch: pytest.MonkeyPatch, repository: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository)
    assert speed.main(words, here) == 2
    found = capsys.readouterr().err.splitlines()
    assert said in found[-1]
    assert found[-1].startswith("error: ")


def test_what_was_measured_is_shown_when_a_later_case_fails(small_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert speed.main(["--data", str(small_world), "no/such/folder", *QUICK], here) == 2
    said = capsys.readouterr()
    assert "| small | loss |" in said.out
    assert "there is no such folder" in said.err


def test_more_memory_than_there_is_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("benchmarks.training_phases.available_memory", lambda: 700.0)
    assert speed.main(["--entities", "5000", "--steps", "1", "--threads", "1"], here) == 2
    assert "error: this training needs about" in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_of_its_own() -> None:
    before = Path.cwd()
    in_a_process(os.chdir, os.sep, "going away")
    assert Path.cwd() == before
    assert in_a_process(len, "four", "counting") == 4
    with pytest.raises(TrainingError, match="measuring much was ended by the system"):
        in_a_process(os._exit, 9, "measuring much")


# Growth


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_an_exponent_is_that_of_the_power_law(power: float) -> None:
    sizes = [1e3, 1e4, 3e5]
    assert exponent(sizes, [7 * size**power for size in sizes]) == pytest.approx(power)


def test_an_exponent_needs_two_sizes() -> None:
    for sizes, values in (([10.0], [1.0]), ([10.0, 10.0], [1.0, 2.0]), ([10.0, 20.0], [0.0, 1.0])):
        with pytest.raises(ValueError, match="two sizes"):
            exponent(sizes, values)


# What there is to do


def test_products_are_counted_as_torch_counts_them() -> None:
    """Gates and proxies of both channels, and every candidate from both sides; a quarter of the entities are candidates."""
    config = RunConfig().with_assignments(["encoder.dim=6", "encoder.proxies=5", "encoder.layers=2"])
    entities, triples, batch, block = 40, 90, 7, 18
    work = step_work(4 * entities, entities, triples, batch, 1000, config)
    hidden, gate, proxies = torch.ones(entities, block), torch.ones(block, block), torch.ones(5, block)
    with FlopCounterMode(display=False) as products:
        for _ in range(2):
            _ = hidden @ gate, (hidden @ proxies.T) @ proxies
    messages = 8 * 2 * triples * 2 * 6 * 1.25  # of the last layer only the messages to a quarter of the entities
    assert work["forward"].operations == products.get_total_flops() + messages
    with FlopCounterMode(display=False) as products:
        for _ in range(2):
            _ = torch.ones(batch, config.encoder.output_width) @ torch.ones(entities, config.encoder.output_width).T
    assert work["loss"].operations == products.get_total_flops()


def test_work_of_a_step_is_linear_in_the_graph() -> None:
    one, two = (step_work(size, size // 4, 5 * size, 10, 100 * size, RunConfig()) for size in (1000, 2000))
    for name, work in one.items():
        assert two[name].operations == pytest.approx(2 * work.operations)
        assert two[name].bytes == pytest.approx(2 * work.bytes)


def test_rows_are_spread_evenly() -> None:
    found = evenly(10, 4, torch.device("cpu")).tolist()
    assert found == [0, 2, 5, 7]
    assert evenly(3, 9, torch.device("cpu")).tolist() == [0, 1, 2]
    assert evenly(0, 9, torch.device("cpu")).tolist() == []


# Search


def test_the_search_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--entities", "300", "--dim", "16", "--threads", "1", "--out", str(tmp_path / "search.md")]
    assert search_speed.main([*words, "--record", str(tmp_path / "baseline.json")], here) == 0
    (one,) = lines(tmp_path / "search.jsonl")
    assert (one["case"], one["recall"]) == ("search 300 x 16", 1.0)
    assert set(one["phases"]) == {"hubness", "matches"}
    assert one["embeddings_mib"] == pytest.approx(2 * 300 * 16 * 4 / 2**20)
    assert one["above_embeddings_mib"] is not None
    seconds = one["phases"]["matches"]["seconds"]
    assert one["phases"]["matches"]["gflops"] == pytest.approx(2 * 300 * 300 * 16 / seconds / 1e9)
    assert "of the product's speed" in capsys.readouterr().out
    assert "search 300 x 16" in json.loads((tmp_path / "baseline.json").read_text())["cases"]


def test_recall_of_an_index_is_measured() -> None:
    case = SearchCase(200, 8, 5, 5, "faiss", "cpu", 1, 0)
    found = measure_search(case)
    assert found["case"] == "search 200 x 8 faiss"
    assert 0.9 < found["recall"] <= 1.0


@pytest.mark.parametrize("words", [["--entities", "5"], ["--entities", "100", "--top", "0"]])
def test_a_search_that_makes_no_sense_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert search_speed.main(words, here) == 2
    assert "error: --entities must lie between" in capsys.readouterr().err
