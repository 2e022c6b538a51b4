"""Experiments and the runs that come of them: found where they are finished, trained where they are not."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import RunError, TrainingError
from engine.evaluation.paper import Size
from engine.runs import Run, RunStore
from engine.training.baselines import BASELINES

METRICS = ("hits@1", "hits@10", "mrr")
DIRECTION = "target_to_source"  # the published one
PAPERS_SHARE = 0.3
SHARE_TOLERANCE = 0.005


@dataclass(frozen=True)
class Experiment:
    """One training.

    Attributes:
        variant: or the name of a baseline.
        settings: ``section.option=value``; of several for one option the last counts.
        label: what distinguishes it from the others of its table ("proxy_matching"); "" where data, variant and seed do.
    """

    data: Path
    variant: str
    seed: int
    settings: tuple[str, ...] = ()
    label: str = ""

    @property
    def name(self) -> str:
        """What tables call the data."""
        return self.data.resolve().name

    @property
    def config(self) -> tuple[str, tuple[str, ...]]:
        """The engine's variant, and all settings: a baseline is a setting of the basic variant's."""
        if self.variant in BASELINES:
            return "basic", (f"baseline.method={self.variant}", *self.settings)
        return self.variant, self.settings

    def __str__(self) -> str:
        return " ".join([self.name, self.variant, f"seed {self.seed}", *self.settings])


@dataclass(frozen=True)
class Result:
    """An experiment and its finished run."""

    experiment: Experiment
    run: Run

    @property
    def group(self) -> tuple[str, str, str]:
        """Data, variant and label: the key of a line of a table, seeds taken together."""
        return self.experiment.name, self.experiment.variant, self.experiment.label

    @property
    def sizes(self) -> tuple[Size, Size]:
        """Entities and triples of the source and the target graph."""
        source, target = (self.run.manifest["data"][side] for side in ("source", "target"))
        return (source["entities"], source["triples"]), (target["entities"], target["triples"])

    @property
    def papers_split(self) -> bool:
        """Whether 30 % of the links trained and the others were tested, as in the paper: its figures are of no other split."""
        links = self.run.manifest["data"]["links"]
        known = links["train"] + links["valid"] + links["test"]
        return not links["valid"] and abs(links["train"] / known - PAPERS_SHARE) < SHARE_TOLERANCE

    def metric(self, name: str, direction: str = DIRECTION) -> float:
        """
        Raises:
            RunError: the run has no test links.
        """
        if direction not in self.run.metrics:
            raise RunError(f"run {self.run.id} has no test links, so it has no {name}; divide the links with --set data.train_ratio=0.3.")
        value: float = self.run.metrics[direction][name]
        return value


Train = Callable[[Experiment, Path], str]
"""Trains an experiment, or finds it finished, and returns the run's id; the path is the models folder."""


def run_all(experiments: Sequence[Experiment], models: Path, train: Train) -> Iterator[Result]:
    """The results one by one, with a line of progress before each.

    Raises:
        EngineError: a run cannot be trained or opened, or was stopped before its end.
    """
    store = RunStore(models)
    for number, experiment in enumerate(experiments, start=1):
        print(f"[{number}/{len(experiments)}] {experiment}", file=sys.stderr, flush=True)
        run = store.find(train(experiment, models))
        if run.manifest["status"] != "finished":
            raise TrainingError(f"{run.id} was stopped before its end, so that it stands for nothing; the same command goes on with it.")
        yield Result(experiment, run)


def train_in_a_process(experiment: Experiment, models: Path) -> str:
    """By ``python -m engine train``, so that its memory is its own; its progress goes to our standard error.

    Raises:
        TrainingError: it failed; why is on standard error.
    """
    variant, settings = experiment.config
    words = [sys.executable, "-m", "engine", "train", str(experiment.data), "--variant", variant, "--seed", str(experiment.seed)]
    words += ["--models", str(models), "--json", *(word for setting in settings for word in ("--set", setting))]
    finished = subprocess.run(words, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False)
    if finished.returncode:
        raise TrainingError(f"this command ended with code {finished.returncode}: {shlex.join(words[1:])}; mend what it says and start again.")
    last: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    run_id: str = last["run"]
    return run_id
