"""A small world to train on, and training in this process."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks import machine, phases
from benchmarks.runs import Experiment
from engine.config import RunConfig
from engine.pipeline import train_run
from engine.runs import RunStore
from tests.data.writers import Sample, Triple, write_dbp15k

QUICK = ["--set", "encoder.dim=8", "--set", "encoder.proxies=4", "--set", "training.epochs=3", "--set", "training.threads=1"]


def train_here(experiment: Experiment, models: Path) -> str:
    variant, settings = experiment.config
    config = RunConfig(variant=variant, seed=experiment.seed).with_assignments(settings)  # type: ignore[arg-type]
    return train_run(experiment.data, config, RunStore(models)).run.id


@pytest.fixture(scope="session")
def small_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 entities a side, a hundred of them linked, with the same random relations on both sides."""
    draw = random.Random(5)
    edges = [(draw.randrange(120), draw.choice("abc"), draw.randrange(120)) for _ in range(500)]

    def graph(host: str) -> tuple[Triple, ...]:
        return tuple((f"http://{host}/{head}", f"http://{host}/{relation}", f"http://{host}/{tail}") for head, relation, tail in edges)

    links = tuple((f"http://left.org/{at}", f"http://right.org/{at}") for at in range(100))
    folder = tmp_path_factory.mktemp("data") / "small"
    write_dbp15k(folder, Sample(graph("left.org"), graph("right.org"), links))
    return folder


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that the tests share: what one has trained the next one finds."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def quick_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ceilings from small products and copies, and no second time for what happens once."""
    monkeypatch.setitem(machine.PRODUCT_SIDE, "cpu", 64)
    monkeypatch.setitem(machine.COPIED, "cpu", 2**20)
    monkeypatch.setattr(phases, "REPEATS", 2)
