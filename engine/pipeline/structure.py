"""What training leaves to search with: from a trainer, from a finished run's folder, and as it is stored there."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from engine.analysis.run_tables import START, parameter_tensors
from engine.config import RunConfig
from engine.data import AlignmentTask
from engine.data.knowledge_graph import SIDES
from engine.model.dual_amn import DualAMN
from engine.model.exchange import fetching
from engine.pipeline.identity import device_name
from engine.runs import Run
from engine.runs.tensors import InTurn, finite_tensor, has_table
from engine.search import StructuralSimilarity, normalise_rows
from engine.search.divided import EMBEDDINGS, DividedSimilarity
from engine.training.baselines import Baseline
from engine.training.orders import Embed, FeatureRows, carried_out, kept_parts
from engine.training.semi import Selection
from engine.training.trainer import DIVIDED, Trained, Trainer, split_embeddings, task_adjacency
from engine.util.threads import cut

NOT_IDENTICAL = "resumed, not identical to an unbroken training"


@dataclass(frozen=True)
class Structure:
    """What training leaves to search with.

    Attributes:
        model: the encoder; None of a baseline. Of several processes, what process 0 holds of it.
        similarity: of the entities' rows of unit length, (E1, D) and (E2, D); where several processes hold them, process 0's side of it.
        selections: of the semi-supervised rounds.
        training: what the manifest says of how it came about.
        start: pairs that training started with besides the seed links.
        baseline: the method, where it is not Dual-AMN.
    """

    model: DualAMN | None
    similarity: StructuralSimilarity | DividedSimilarity
    selections: Sequence[Selection]
    training: Mapping[str, Any]
    start: Selection | None = None
    baseline: Baseline | None = None

    @property
    def at_hand(self) -> StructuralSimilarity:
        """Of a finished run, whose rows are read from its folder."""
        if isinstance(self.similarity, DividedSimilarity):
            raise TypeError("several processes hold this structure")
        return self.similarity

    def forget_rows(self) -> None:
        """Give back the memory of rows that have been written: what follows needs as much for the encoder's layers, and searches for nothing."""
        if isinstance(self.similarity, StructuralSimilarity):
            self.similarity.forget()

    @property
    def self_trained(self) -> bool:
        """Whether pairs that the training selected, or derived from the facts, were trained on beside the known links."""
        return any(len(one) for one in (*self.selections, *([] if self.start is None else [self.start])))


def trained_structure(trainer: Trainer, trained: Trained) -> Structure:
    training = {
        "status": "stopped" if trained.stopped else "finished",
        "epochs": trained.epochs,
        "epochs_planned": trainer.epochs,
        "best_epoch": trained.best_epoch,
        "seconds": round(trained.seconds, 3),
        "device": device_name(trainer.device),
        "threads": trainer.threads,
        "precision": trainer.precision,
        "processes": trainer.ranks.size,
        **({"fetched": fetching(trainer.shard.neighbours.again)} if trainer.shard is not None else {}),
        **({"bytes_sent_per_step": round(statistics.mean(trainer.step_bytes))} if trainer.ranks.size > 1 and trainer.step_bytes else {}),
        **({} if trained.identical else {"parts": trained.parts, "resumed": NOT_IDENTICAL}),
    }
    return Structure(trainer.model, trained_similarity(trainer), trained.selections, training, trained.start)


def trained_similarity(trainer: Trainer) -> StructuralSimilarity | DividedSimilarity:
    """The cosines of the final embeddings, which stay where they are."""
    task = trainer.task
    if trainer.shard is not None:
        return kept_parts(trainer.model, Embed(task.source.num_entities, task.target.num_entities))[EMBEDDINGS]
    halves = split_embeddings(trainer.embed(), task.source.num_entities)
    return StructuralSimilarity(*(normalise_rows(part, in_place=True) for part in halves))


def stored_model(run: Run, task: AlignmentTask, config: RunConfig) -> DualAMN:
    """The encoder with the weights of a finished run."""
    model = DualAMN(task_adjacency(task, config), config.encoder)
    model.load_state_dict({name: torch.from_numpy(finite_tensor(run, "model", name)).clone() for name in model.state_dict()})
    return model


def stored_structure(run: Run, task: AlignmentTask, config: RunConfig) -> Structure:
    """The structure of a finished run, from its folder."""
    model = stored_model(run, task, config)
    similarity = StructuralSimilarity(*(torch.from_numpy(finite_tensor(run, "embeddings", side)) for side in SIDES))
    start = stored_start(run)
    return Structure(model, similarity, stored_selections(run), {**run.manifest["training"], "structure_run": run.id}, start)


def stored_selections(run: Run) -> list[Selection]:
    """What each round of a finished run trained on besides the seed links."""
    rounds = run.table("selections").groupby("round", sort=True)
    return [Selection(part[["source", "target"]].to_numpy(dtype="int64"), part["score"].to_numpy(dtype="float32")) for _, part in rounds]


def stored_start(run: Run) -> Selection | None:
    """What the training of a finished run started from besides the seed links; None where it was nothing else."""
    if not has_table(run, START):
        return None
    table = run.table(START)
    return Selection(table[["source", "target"]].to_numpy(dtype="int64"), table["probability"].to_numpy(dtype="float32"))


def stored_parameters(model: DualAMN, num_entities: int) -> Mapping[str, Tensor | InTurn]:
    """The encoder's parameters; entities' features a number of rows at a time, for several processes may hold them."""

    def rows(step: int) -> Iterator[Tensor]:
        return (carried_out(model, FeatureRows(part.start, part.stop)) for part in cut(num_entities, step))

    return {**parameter_tensors(model), DIVIDED: InTurn((num_entities, model.config.dim), rows)}


def stored_embeddings(similarity: StructuralSimilarity | DividedSimilarity) -> Mapping[str, InTurn]:
    """The rows of both graphs, likewise."""
    return {name: InTurn((similarity.shape[side], similarity.width), partial(similarity.rows, side)) for side, name in enumerate(SIDES)}
