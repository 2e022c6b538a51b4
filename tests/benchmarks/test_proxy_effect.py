"""The study of proxy matching: its parts add up to the run's embeddings, its scores are the evaluation's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.proxy_effect import csls, hits_at_1, main, taken_apart, variants
from engine.config import RunConfig
from engine.data import AlignmentTask, load_task
from engine.pipeline import train_run
from engine.runs import Run, RunStore
from engine.search import normalise_rows
from tests.benchmarks.conftest import QUICK


@pytest.fixture(scope="module")
def trained(small_world: Path, models: Path) -> tuple[Run, AlignmentTask, RunConfig]:
    config = RunConfig().with_assignments(QUICK[1::2])
    return train_run(small_world, config, RunStore(models)).run, load_task(small_world, config.data, config.seed), config


def test_the_parts_give_the_embeddings_of_the_run(trained: tuple[Run, AlignmentTask, RunConfig]) -> None:
    run, _, _ = trained
    with torch.no_grad():
        hidden, correction, weights = taken_apart(*trained)
    found = normalise_rows(variants(hidden, correction)["final"])
    np.testing.assert_allclose(found, np.concatenate([run.tensor("embeddings", side) for side in ("source", "target")]), atol=1e-5)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)


def test_hits_are_those_of_the_evaluation(trained: tuple[Run, AlignmentTask, RunConfig]) -> None:
    run, task, config = trained
    links = torch.as_tensor(task.test_links)
    source, target = (torch.from_numpy(run.tensor("embeddings", side)) for side in ("source", "target"))
    scores = csls(target[links[:, 1]] @ source[links[:, 0]].T, config.search.csls_k)
    assert hits_at_1(scores) == pytest.approx(run.metrics["target_to_source"]["hits@1"], abs=1.5 / len(links))  # ties are no hits there


def test_the_command_prints_both_tables(
    trained: tuple[Run, AlignmentTask, RunConfig], small_world: Path, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(small_world), trained[0].id, "--models", str(models)]) == 0
    message = capsys.readouterr().out
    assert message.count("\n\n|") == 1  # two tables
    assert "h alone" in message
    assert main([str(small_world), "no-such-run", "--models", str(models)]) == 2
