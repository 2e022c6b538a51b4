"""A tiny data set and its plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.config import RunConfig
from engine.jobs import Plan, plan_training, summarise
from tests.data.writers import small_sample, write_openea

SETTINGS = {
    "encoder.dim": 8,
    "encoder.proxies": 4,
    "semi.rounds": 1,
    "semi.round_epochs": 2,
    "training.epochs": 6,
    "training.checkpoint_seconds": 0.0,
    "training.precision": "float32",  # one process might find bfloat16 faster, and another one not
    "training.threads": 1,
}

MakePlan = Callable[..., Plan]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_openea(tmp_path / "rings", small_sample())
    return tmp_path / "rings"


@pytest.fixture
def plan(data: Path, models: Path) -> MakePlan:
    """Plans a training of the tiny data set."""

    def plan(seed: int = 0, variant: str = "basic", **settings: object) -> Plan:
        config = RunConfig.from_dict({"variant": variant, "seed": seed}).with_values({**SETTINGS, **settings})
        return plan_training(summarise(data, config.data, seed), config, models)

    return plan
