"""A run of several processes has what one process would make of the same training: every file of it, and whatever opens it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open

from engine.cli.main import main
from engine.config import RunConfig
from engine.data import load_task
from engine.errors import RunDamagedError
from engine.evaluation import assessment, calibration
from engine.pipeline import train_run
from engine.pipeline.finishing import finish_run
from engine.pipeline.making import Clock, Making
from engine.pipeline.structure import stored_structure
from engine.runs import Run, RunStore
from engine.runs.view import RunView
from engine.search import divided
from engine.training.worker import follow
from tests.cli.test_main import last_json
from tests.data.writers import Sample, write_openea
from tests.ranks import ThreadRanks, together

ENTITIES = 80  # a side
SETTINGS = {
    "data.train_ratio": 0.6,
    "data.valid_ratio": 0.3,
    "encoder.dim": 12,
    "encoder.proxies": 8,
    "training.epochs": 12,
    "training.batch_size": 64,
    "training.threads": 1,
    "training.precision": "float32",
    "training.validate_every": 2,
    "semi.rounds": 1,
    "semi.round_epochs": 1,
}


def config(variant: str) -> RunConfig:
    names = {"literal.names": "uri", "literal.weight": 0.5} if variant == "literal" else {}
    return RunConfig.from_dict({"variant": variant}).with_values({**SETTINGS, **names})


def trained(processes: int, data: Path, models: Path, variant: str) -> Run:
    def work(ranks: ThreadRanks) -> Run | None:
        if ranks.rank:
            return follow(data, config(variant), ranks, models=models)
        return train_run(data, config(variant), RunStore(models), ranks=ranks).run

    run = together(processes, work)[0]
    assert run is not None
    return run


def finished_alone(run: Run, data: Path, models: Path, variant: str) -> Run:
    """What one process makes of the run's stored embeddings."""
    if variant == "literal":
        semi = f"{run.dataset}/{run.manifest['training']['structure_run'].split('/')[1]}"
        shutil.copytree(RunStore(run.path.parent.parent).find(semi).path, models / semi)
        return train_run(data, config(variant), RunStore(models)).run
    settings, store = config(variant), RunStore(models)
    task = load_task(data, settings.data, settings.seed)
    making = Making(data, task, settings, store, Clock(), lambda event: None)
    with store.create(task.name, run.run_id) as writer:
        return finish_run(writer, making, stored_structure(run, task, settings))


def assert_equal_runs(found: Run, expected: Run) -> None:
    assert set(found.files) - {"trace.jsonl"} == set(expected.files) - {"trace.jsonl"}
    for name in expected.files:
        if name.endswith(".parquet"):
            one, other = (run.table(name.removesuffix(".parquet")) for run in (found, expected))
            pd.testing.assert_frame_equal(one, other, rtol=1e-4, atol=2e-6, obj=name)
        elif name.endswith(".safetensors"):
            assert_equal_tensors(found.path / name, expected.path / name)
        elif name.endswith(".json"):
            assert_equal_values(*(run.json(name.removesuffix(".json")) for run in (found, expected)), name)


def assert_equal_tensors(found: Path, expected: Path) -> None:
    with safe_open(found, framework="numpy") as one, safe_open(expected, framework="numpy") as other:
        assert one.keys() == other.keys()
        for key in one.keys():  # noqa: SIM118  (not a dictionary)
            np.testing.assert_allclose(
                one.get_tensor(key), other.get_tensor(key), rtol=0, atol=1e-3 if found.stem == "proxies" else 1e-6, err_msg=key
            )


def assert_equal_values(found: Any, expected: Any, where: str) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            assert_equal_values(found[key], value, f"{where}, {key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for one, other in zip(found, expected, strict=True):
            assert_equal_values(one, other, where)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-6), where
    else:
        assert found == expected, where


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two graphs with half of their facts in common, all of whose entities are linked and have a value; most names are those of others."""
    facts = np.random.default_rng(0).integers(0, [ENTITIES, 5, ENTITIES], (3 * ENTITIES, 3)).tolist()
    named = [at ^ 1 if at // 2 % 3 else at for at in range(ENTITIES)]
    left = tuple((f"a{head}", f"r{relation}", f"a{tail}") for head, relation, tail in facts[: 2 * ENTITIES])
    right = tuple((f"b{named[head]}", f"r{relation}", f"b{named[tail]}") for head, relation, tail in facts[ENTITIES:])
    values = [tuple((f"{side}{at}", "size", str(1000 + 7 * at)) for at in range(ENTITIES)) for side in "ab"]
    folder = tmp_path_factory.mktemp("graphs") / "copies"
    links = tuple((f"a{at}", f"b{named[at]}") for at in range(ENTITIES))
    write_openea(folder, Sample(left, right, links, source_attributes=values[0], target_attributes=values[1]))
    return folder


@pytest.mark.parametrize(
    ("processes", "variant"),
    [
        (2, "semi"),
        *(pytest.param(number, name, marks=pytest.mark.slow) for number, name in [(2, "basic"), (3, "semi"), (2, "literal"), (3, "literal")]),
    ],
)
def test_every_file_is_what_one_process_writes(processes: int, variant: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divided, "BLOCK_BYTES", 2**15)  # several blocks of each process
    for module, least in ((assessment, "LEAST_LINKS"), (calibration, "LEAST_LINKS"), (calibration, "LEAST_OF_EACH")):
        monkeypatch.setattr(module, least, 1)  # so that there are probabilities
    run = trained(processes, data, tmp_path / "together", variant)
    run.verify()
    assert run.json("calibration")["fit"]["calibrated"], run.json("calibration")["fit"]
    assert run.metrics["target_to_source"]["queries"]
    assert run.manifest["training"]["processes"] == processes
    assert run.manifest["training"]["fetched"] == "all at once"
    assert_equal_runs(run, finished_alone(run, data, tmp_path / "alone", variant))


def test_it_opens_is_evaluated_exported_and_checked_as_any_other(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(2, data, tmp_path, "basic")
    words = ("--models", str(tmp_path))
    assert main(["evaluate", run.id, *words, "--json"]) == 0
    measured = last_json(capsys.readouterr().out)["metrics"]
    assert measured["target_to_source"]["hits@1"] == pytest.approx(run.metrics["target_to_source"]["hits@1"])
    assert main(["export", run.id, *words, "--output", str(tmp_path / "matches.csv")]) == 0
    assert (tmp_path / "matches.csv").read_text(encoding="utf-8").count("\n") > ENTITIES // 2
    assert [one.rank for one in RunView(run).matches("source", 0, 3)] == [1, 2, 3]
    rows = run.file("embeddings.safetensors")
    rows.write_bytes(rows.read_bytes()[:-1] + b"?")
    with pytest.raises(RunDamagedError, match=r"embeddings\.safetensors"):
        run.verify()
    rows.unlink()
    capsys.readouterr()
    assert main(["evaluate", run.id, *words]) == 2
    assert "embeddings.safetensors is missing; restore it, or delete the run and train again." in capsys.readouterr().err
