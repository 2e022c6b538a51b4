"""The tables of ``benchmarks.reproduce``: their figures are those of the runs, and what exists is not trained again."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import ablations, accuracy, calibration, losses, reproduce
from benchmarks.runs import Experiment, Result, train_in_a_process
from engine.decoding import DECODERS, GRAPH_DECODERS
from engine.errors import TrainingError
from engine.evaluation.paper import ABLATION, SIZES
from engine.runs import Run, RunStore
from tests.benchmarks.conftest import QUICK, train_here
from tests.cli.test_main import EUROPE
from tests.run_fixture import sample_run, write_run


def report(models: Path, tmp_path: Path, data: Path, *words: str) -> str:
    out = tmp_path / "tables" / "out.md"
    arguments = [str(data), "--models", str(models), "--out", str(out), "--figures", str(tmp_path / "figures"), *QUICK, *words]
    assert reproduce.main(arguments, train_here) == 0
    return out.read_text(encoding="utf-8")


def rows(text: str) -> list[dict[str, str]]:
    """The rows of the first table by column; of two columns with one name the second has a number appended."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    names = [name if name not in lines[0][:at] else f"{name} 2" for at, name in enumerate(lines[0])]
    return [dict(zip(names, line, strict=True)) for line in lines[2:]]


def runs_of(models: Path) -> dict[str, Run]:
    store = RunStore(models)
    return {summary.id: store.find(summary.id) for summary in store.list()}


def metric(runs: Sequence[Run], name: str) -> str:
    values = [run.metrics["target_to_source"][name] for run in runs]
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values):.3f}"


def test_accuracy_has_mean_and_deviation_over_the_seeds(models: Path, tmp_path: Path, small_world: Path) -> None:
    (row,) = rows(report(models, tmp_path, small_world, "--seeds", "0", "1"))
    found = [run for run in runs_of(models).values() if run.manifest["data"]["name"] == "small" and run.manifest["data"]["links"]["valid"] == 0]
    chosen = [run for run in found if all(run.manifest["config"]["encoder"][part] for part in ablations.PARTS)]
    assert len(chosen) == 2
    assert (row["data"], row["variant"], row["seeds"]) == ("small", "basic", "0 1")
    assert row["Hits@1"] == metric(chosen, "hits@1")
    assert row["MRR"] == metric(chosen, "mrr")
    assert row["paper"] == row["difference"] == "-"


@pytest.mark.slow
def test_ablations_switch_one_part_off_at_a_time(models: Path, tmp_path: Path, small_world: Path) -> None:
    text = report(models, tmp_path, small_world, "--seeds", "0", "1", "--ablations")
    table = {row["encoder"]: row for row in rows(text)}
    assert set(table) == {"full", *(f"without {part}" for part in ablations.PARTS)}
    assert set(ablations.PARTS) == set(ABLATION["DBP15K ZH-EN"])
    runs = list(runs_of(models).values())
    for part in ablations.PARTS:
        off = [run for run in runs if not run.manifest["config"]["encoder"][part]]
        assert len(off) == 2
        for run in off:
            assert all(run.manifest["config"]["encoder"][other] for other in ablations.PARTS if other != part)
        row = table[f"without {part}"]
        drop = float(table["full"]["Hits@1"].split()[0]) - float(row["Hits@1"].split()[0])
        assert float(row["drop"].split()[0]) == pytest.approx(drop, abs=0.0015)
        assert row["paper"] == "-"


def test_what_is_finished_is_not_trained_again(models: Path, tmp_path: Path, small_world: Path) -> None:
    report(models, tmp_path, small_world, "--seeds", "0", "--ablations")
    before = set(runs_of(models))
    again: list[Experiment] = []

    def train(experiment: Experiment, folder: Path) -> str:
        again.append(experiment)
        return train_here(experiment, folder)

    words = [str(small_world), "--models", str(models), *QUICK, "--seeds", "0", "--accuracy", "--ablations"]
    assert reproduce.main(words, train) == 0
    assert len(again) == 6
    assert set(runs_of(models)) == before


def on_the_papers_data(tmp_path: Path, hits: float, part: str = "", variant: str = "basic", **links: int) -> Result:
    """A finished run that looks as if it were of DBP15K ZH-EN."""
    sizes = [{"name": "", "entities": size[0], "relations": 1, "triples": size[1]} for size in SIZES["DBP15K ZH-EN"]]
    known = {"train": 4500, "valid": 0, "test": 10500, "unsure": 0, **links}
    run = sample_run(manifest={"data": {"source": sizes[0], "target": sizes[1], "links": known}})
    direction = {"hits@1": hits, "hits@10": 0.9, "mrr": hits + 0.05}
    run.metrics = {"target_to_source": direction, "source_to_target": direction}
    run_id = write_run(run, tmp_path, "zh_en", f"{variant}-{part or 'full'}-{hits}")
    return Result(Experiment(Path("zh_en"), variant, 0, label=part), RunStore(tmp_path).find(run_id))


def test_the_papers_figure_and_the_difference(tmp_path: Path) -> None:
    (row,) = rows(accuracy.table([on_the_papers_data(tmp_path, 0.735)]))
    assert (row["paper"], row["difference"]) == ("0.731 0.923 0.799", "+0.004")
    (row,) = rows(accuracy.table([on_the_papers_data(tmp_path, 0.7, valid=450, train=4050)]))
    assert row["paper"] == "-", "another split cannot be compared"


def test_the_papers_drops_and_the_difference_of_drops(tmp_path: Path) -> None:
    results = [on_the_papers_data(tmp_path, 0.730, "full"), on_the_papers_data(tmp_path, 0.650, "multi_hop")]
    full, without = rows(ablations.table(results))
    assert (full["paper"], full["drop"]) == ("0.731 0.799", "-")
    assert (without["paper"], without["paper's drop"]) == ("0.656 0.743", "+0.075")
    assert (without["drop"], without["difference of drops"]) == ("+0.080", "+0.005")
    (alone,) = rows(ablations.table(results[1:]))
    assert alone["drop"] == "-", "while the full encoder is still to come"
    assert rows(ablations.table([on_the_papers_data(tmp_path, 0.8, "full", "semi")]))[0]["paper"] == "-"


@pytest.mark.slow
def test_losses_become_a_table_points_and_a_chart(models: Path, tmp_path: Path, small_world: Path) -> None:
    text = report(models, tmp_path, small_world, "--seeds", "0", "1", "--losses")
    table = {row["loss"]: row for row in rows(text)}
    assert set(table) == set(losses.KINDS) == {"nhsm", "truncated", "softmax", "triplet"}
    assert "validation links" in text
    with (tmp_path / "figures" / "losses-small-basic.csv").open(encoding="utf-8", newline="") as file:
        points = list(csv.DictReader(file))
    assert len(points) == 4 * 2 * 3
    last = [float(point["validation_hits@1"]) for point in points if point["loss"] == "nhsm" and point["epoch"] == "3"]
    assert float(table["nhsm"]["validation Hits@1"]) == pytest.approx(statistics.mean(last), abs=0.0006)
    best = max(max(float(row["best"]) for row in table.values()) * losses.NEAR, 0)
    for row in table.values():
        assert (row["epochs to 0.95 of the best loss"] == "-") == (float(row["best"]) < best - 0.0006)
    chart = (tmp_path / "figures" / "losses-small-basic.svg").read_text(encoding="utf-8")
    assert chart.count("<polyline") == 8
    assert all(f">{kind}</text>" in chart for kind in losses.KINDS)


def test_calibration_and_decoders_are_those_that_the_run_stores(models: Path, tmp_path: Path) -> None:
    words = ["--seeds", "0", "--set", "training.epochs=12", "--set", "encoder.dim=16"]
    (row,) = rows(report(models, tmp_path, EUROPE, *words, "--calibration"))
    (run,) = [run for run in runs_of(models).values() if run.dataset == "europe"]
    stored = run.json("calibration")
    assert row["validation links"] == "117"
    assert row["calibration error"] == f"{stored['test']['calibration_error']:.3f}"
    assert row["cross-validated"] == f"{stored['fit']['calibration_error']:.3f}"
    table = {line["decoder"]: line for line in rows(report(models, tmp_path, EUROPE, *words, "--set", "data.valid_ratio=0.1", "--decoders"))}
    assert set(table) == {*DECODERS, *GRAPH_DECODERS}
    decoders = run.json("decoders")
    for name, line in table.items():
        assert line["Hits@1"] == f"{decoders[name]['target_to_source']['hits@1']:.3f}"
        assert line["source to target Hits@1"] == f"{decoders[name]['source_to_target']['hits@1']:.3f}"
    assert table["mutual"]["precision"] == f"{decoders['mutual']['target_to_source']['precision']:.3f}"
    assert table["csls"]["precision"] == "-"


def test_the_thresholds_promise_is_shown_beside_what_was_found() -> None:
    threshold = {"probability": 0.7, "promised": {"precision": 0.91, "recall": 0.5}, "found": {"precision": 0.93, "recall": 0.55}}
    test = {"calibration_error": 0.04, "linked_calibration_error": 0.06, "threshold": threshold}
    stored = {"fit": {"links": 450, "calibration_error": 0.03}, "unlinked_dangling": 0.25, "test": test}
    expected = ["450", "0.040", "0.030", "0.060", "0.250", "0.700", "0.910", "0.930", "+0.020", "0.500", "0.550"]
    assert calibration.figures([stored]) == expected
    assert calibration.figures([{**stored, "test": {**test, "threshold": None}}])[5:] == ["-"] * 6


def test_runs_without_probabilities_say_why(models: Path, tmp_path: Path, small_world: Path) -> None:
    text = report(models, tmp_path, small_world, "--seeds", "0", "--calibration")
    assert rows(text) == []
    assert "only 3 validation links" in text


def test_a_stopped_run_counts_for_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stopped = write_run(sample_run(), tmp_path / "models", status="stopped")
    assert reproduce.main(["towns", "--models", str(tmp_path / "models"), "--seeds", "0"], lambda *_: stopped) == 2
    assert "stopped before its end" in capsys.readouterr().err


def test_two_data_sets_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main(["a/zh_en", "b/zh_en"], train_here) == 2
    assert "'zh_en'" in capsys.readouterr().err


@pytest.mark.slow
def test_each_run_is_a_process_and_its_failure_is_reported(tmp_path: Path, small_world: Path) -> None:
    settings = tuple(QUICK[1::2])
    run = train_in_a_process(Experiment(small_world, "basic", 0, settings), tmp_path)
    assert RunStore(tmp_path).find(run).manifest["config"]["encoder"]["dim"] == 8
    with pytest.raises(TrainingError, match="code 2"):
        train_in_a_process(Experiment(small_world / "nothing", "basic", 0, settings), tmp_path)


def test_reports_of_unlabelled_results_do_not_mix(tmp_path: Path) -> None:
    """Calibration adds settings of its own; the plan's go before them."""
    plan = reproduce.Plan((Path("a"),), ("basic",), (0, 1), ("data.valid_ratio=0.3",))
    for experiment in calibration.experiments(plan):
        assert experiment.settings == ("data.valid_ratio=0.1", "data.valid_ratio=0.3")


def test_a_baseline_is_trained_like_a_variant(models: Path, tmp_path: Path, small_world: Path) -> None:
    (row,) = rows(report(models, tmp_path, small_world, "--seeds", "0", "--variants", "lightea"))
    (run,) = [run for run in runs_of(models).values() if run.manifest["variant"] == "lightea"]
    assert row["variant"] == "lightea"
    assert row["Hits@1"] == f"{run.metrics['target_to_source']['hits@1']:.3f}"
    assert row["paper"] == row["difference"] == "-", "the publication has no such data"


def test_a_variant_that_there_is_not_is_one_line(tmp_path: Path, small_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main([str(small_world), "--models", str(tmp_path), "--variants", "lightae"], train_here) == 2
    assert (
        "there is no variant or baseline 'lightae'; choose from basic, semi, literal, gcn-align, lightea, mtranse, paris." in capsys.readouterr().err
    )
