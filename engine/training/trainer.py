"""The training loop: seeded steps, progress, validation, checkpoints, resume.

Everything random is a function of the seed and the step's number: the order of the pairs in an epoch, the dropout, the negatives that a loss
draws. A checkpoint therefore holds only the parameters, the optimiser's state and the position of the loop; training that resumes from one ends
where unbroken training ends, bit for bit on the same machine with as many threads.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from engine.config import RunConfig
from engine.data.knowledge_graph import AlignmentTask
from engine.decoding import Candidates, GraphEvidence
from engine.errors import ConfigError, DivergenceError, TrainingError
from engine.evaluation.metrics import Selectable, evaluate_links
from engine.model.adjacency import Adjacency, build_adjacency
from engine.model.dual_amn import DualAMN
from engine.model.exchange import with_fetched
from engine.model.losses import build_loss
from engine.model.sampling import Sample, Sampling
from engine.model.shard import Shard, make_shard, step_bytes
from engine.search import UnscaledEmbeddings
from engine.search.divided import asked_together
from engine.search.parts import make_part
from engine.training.device import EXECUTION_OPTIONS, choose_device, choose_precision, choose_threads
from engine.training.inheritance import Inheritance, inherit
from engine.training.optimiser import RmsProp
from engine.training.ownership import owned_triples
from engine.training.rows import OWN, RowKeeper, RowStore
from engine.training.schedule import batch_size, first_epochs, round_epochs, steps_of
from engine.training.semi import Pool, Round, Selection, SharedWorth, describe_round, no_selection, select_pairs, selection_pool
from engine.training.start import resolve_start, start_pairs, values_in_rounds, why_no_seeds
from engine.util.arrays import IntArray
from engine.util.devices import block_bytes, halve_blocks, has_kernels
from engine.util.distributed import ALONE, Ranks
from engine.util.memory import freed_memory_kept

Value = TypeVar("Value")

DIVIDED = "entity_features"
"""The parameter of which several processes hold parts; all others they share."""
LARGE_LAYER = 64 * 2**20
"""Bytes of a layer's output from which on each step's memory is given back."""
LATEST_STEPS = 50
"""Number of the latest steps that the time left is estimated by."""


@dataclass(frozen=True)
class Progress:
    """What is known after an epoch.

    Attributes:
        epoch, epochs: 1 .. epochs.
        loss: mean over the epoch's steps. It rises while accuracy improves (lambda z is normalised): no convergence criterion.
        seconds: of training so far, interrupted sessions included.
        remaining: estimated seconds to the last epoch; None before a second step was done: the first one may have compiled the kernels.
        validation: mean of both directions' "hits@1" and "mrr" on the validation links, after epochs that were validated.
        epoch_seconds: what an epoch like this one takes without compiling; None where ``remaining`` is.
    """

    epoch: int
    epochs: int
    loss: float
    seconds: float
    remaining: float | None
    validation: Mapping[str, float] | None = None
    epoch_seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """One line of a run's trace."""
        line: dict[str, Any] = {"epoch": self.epoch, "loss": self.loss, "seconds": round(self.seconds, 3)}
        if self.validation is not None:
            line["validation"] = dict(self.validation)
        return line


class Checkpoints(Protocol):
    """Where the loop keeps its state: what one process has of it, or what all share."""

    def save(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None: ...

    def load(self, earlier: int = 0) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """``earlier``: how many newer ones to pass over."""
        ...


@dataclass
class Trained:
    """What the loop leaves behind.

    ``epochs`` is how many were completed; ``stopped`` says that the end was requested before its time; ``selections`` has what each
    semi-supervised round trained on besides the seed links, ``start`` what was trained on
    before the first. ``seconds`` are of all sessions, ``earlier`` of those that were interrupted before.
    """

    model: DualAMN
    epochs: int
    stopped: bool
    seconds: float
    trace: list[dict[str, Any]]
    best_epoch: int | None = None
    selections: list[Selection] = field(default_factory=list)
    earlier: float = 0.0
    parts: list[dict[str, Any]] = field(default_factory=list)
    start: Selection | None = None

    @property
    def identical(self) -> bool:
        """Whether all of it was computed in one way, so that an unbroken training gives the same bits."""
        return len(self.parts) <= 1


@dataclass
class Position:
    """Position of the loop: between step ``step`` - 1 and ``step`` of epoch ``epoch`` (both from 0).

    ``parts`` says from which epoch (from 1) on what the training was computed: more than one where it was resumed on something else.
    """

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    seconds: float = 0.0
    best_mrr: float = -1.0
    best_epoch: int | None = None
    bad_validations: int = 0
    trace: list[dict[str, Any]] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)


class Trainer:
    """Trains Dual-AMN on one task.

    Args:
        task: needs at least one seed link; nothing but its graphs, seed links and validation links is looked at.
        config: all settings.
        adjacency: of the task, if it is already there; with several processes each makes its own.
        ranks: the processes that train together, all with the same task and config. The entities are divided among them.
        inheritance: what to start from instead of drawn parameters and of the pairs that the facts imply.

    Raises:
        TrainingError: no seed links, or more processes than entities.
        ConfigError: patience without validation links to be patient by; a device or threads that this machine does not have.
    """

    def __init__(
        self,
        task: AlignmentTask,
        config: RunConfig,
        adjacency: Adjacency | None = None,
        ranks: Ranks = ALONE,
        inheritance: Inheritance | None = None,
    ) -> None:
        if reason := why_no_seeds(config.variant, config.semi, len(task.train_links)):
            raise TrainingError(f"{task.name} cannot be trained on: {reason}")
        if config.training.patience is not None and not len(task.valid_links):
            hold_out = "hold some out (data.valid_ratio=0.1), or " if len(task.train_links) > 1 else ""
            raise ConfigError(f"training.patience needs validation links, and there are none; {hold_out}remove it.")
        check_processes(task, ranks.size)
        self.task, self.config, self.ranks = task, config, ranks
        self.batch_size = batch_size(config, len(task.train_links))
        self.threads = choose_threads(config.training.threads)
        self.device = choose_device(config.training.device)
        self.precision = ranks.first(lambda: choose_precision(config.training.precision, self.device))  # tried out, so others might choose otherwise
        self.shard, self.model = divided_model(task, config, ranks, self.device, adjacency)
        sizes = (task.source.num_entities, task.target.num_entities)
        self.sampling = Sampling.of(*sizes, config.loss, self.batch_size, self.shard, self.device)
        block_bytes(self.device)  # asks how much memory is free
        self.inheritance = inheritance
        if inheritance is not None:
            inherit(self.model, inheritance)
        self.optimiser = RmsProp(self.model.parameters(), config.training.learning_rate, settled=inheritance is not None)
        self.pairs = torch.from_numpy(task.stacked_links(task.train_links))  # here, where samples are drawn
        self.start: Selection | None = None
        self._found: Selection | None = None
        self.selections: list[Selection] = []
        self.at = Position()
        self.best: dict[str, Tensor] = {}
        self.unread: list[tuple[int, Tensor]] = []  # losses by step of the epoch
        self.first_step_done = False
        self.step_seconds: deque[float] = deque(maxlen=LATEST_STEPS)
        self.step_bytes: deque[int] = deque(maxlen=LATEST_STEPS)

    @property
    def seed_pairs(self) -> int:
        """Pairs that training starts with: the seed links, and those that the facts imply once they are looked for."""
        start = self._start_so_far
        return max(len(self.task.train_links) + (0 if start is None else len(start)), 1)

    @property
    def start_known(self) -> bool:
        """Whether the number of epochs is final: what the facts imply beside seed links is looked for later, and makes epochs fewer."""
        return self.config.variant == "basic" or self._start_so_far is not None

    @property
    def _start_so_far(self) -> Selection | None:
        """The pairs that training starts from, or was found to start from before it began; None where they are not known yet."""
        return self._found if self.start is None else self.start

    @property
    def basic_epochs(self) -> int:
        """Epochs before the first round."""
        return first_epochs(self.config, len(self.task.train_links), self.seed_pairs)

    @property
    def rounds(self) -> int:
        """Semi-supervised rounds that follow."""
        return 0 if self.config.variant == "basic" else self.config.semi.rounds

    @property
    def round_epochs(self) -> int:
        return round_epochs(self.config, len(self.task.train_links), self.seed_pairs)

    @property
    def epochs(self) -> int:
        return self.basic_epochs + self.rounds * self.round_epochs

    @property
    def steps_per_epoch(self) -> int:
        return steps_of(len(self.pairs), self.batch_size)

    def train(
        self,
        *,
        checkpoints: Checkpoints | None = None,
        rows: RowStore | None = None,
        on_progress: Callable[[Progress | Round], None] = lambda progress: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Trained:
        """Run to the end, from the last checkpoint where there is one.

        Args:
            checkpoints: where to save and resume; None keeps nothing. Of several processes, rank 0 has them.
            rows: where each of several processes keeps what it alone holds of a checkpoint.
            on_progress: called after each epoch, and when a semi-supervised round begins.
            should_stop: asked after each step; True ends training there, with a checkpoint.

        Raises:
            DivergenceError: the loss or an embedding is not finite.
            TrainingError: a checkpoint does not fit this task and config, or rows of it are missing.
            ConfigError: a checkpoint of a training in bfloat16, which this GPU does not have.
        """
        self.rows = self._row_keeper(rows)
        self._resume(checkpoints)
        self._start(on_progress)
        self._begin_part()
        last_save = started = time.monotonic()
        before, epochs_before = self.at.seconds, self.at.epoch
        stopped = False
        while self.at.epoch < self.epochs and not self._out_of_patience() and not stopped:
            self._begin_round_if_due(on_progress)
            with self._room_kept():
                stopped = self._train_epoch_or_save(should_stop, checkpoints)
            self.at.seconds = before + time.monotonic() - started
            if not stopped:
                self._finish_epoch(on_progress)
            due = time.monotonic() - last_save >= self.config.training.checkpoint_seconds
            if self.at.epoch < self.epochs and self._all_save(checkpoints, wanted=stopped or due):
                last_save = time.monotonic()
        if not stopped and self.at.epoch > epochs_before:
            self._all_save(checkpoints)  # what comes after (search, evaluation, writing) may fail, and is then repeated without the training
        if self.best and not stopped:
            self.model.load_state_dict(self.best)
        return Trained(
            self.model, self.at.epoch, stopped, self.at.seconds, self.at.trace, self.at.best_epoch, self.selections, before, self.at.parts, self.start
        )

    def _room_kept(self) -> AbstractContextManager[None]:
        """Let steps reuse the memory of those before, unless their arrays are so large that pieces of it that fit nothing would be missed."""
        layer = 4 * self.model.num_entities * self.config.encoder.num_channels * self.config.encoder.dim
        return freed_memory_kept() if has_kernels(self.device) and layer <= LARGE_LAYER else nullcontext()

    def _begin_part(self) -> None:
        """Note on what the epochs from here on are computed, where that is not what the epochs before were computed on."""
        if self.at.epoch >= self.epochs:
            return  # nothing is left to compute
        now = {"threads": self.threads, "device": str(self.device.type), "processes": self.ranks.size}
        last = self.at.parts[-1] if self.at.parts else {}
        if not last or any(last.get(key, value) != value for key, value in now.items()):
            self.at.parts.append({"from_epoch": self.at.epoch + 1, **now})

    def require_start(self) -> None:
        """Without seed links, look for what training starts from before anything is written. Rank 0 alone looks.

        Raises:
            TrainingError: there is nothing.
        """
        if not len(self.task.train_links):
            self._found = self._find_start()

    def _find_start(self) -> Selection:
        pool = selection_pool(self.task, self.config.semi)
        if self.inheritance is not None and len(found := self.inheritance.selected(pool)):
            return found
        return start_pairs(self.task, self.config.semi, pool, self.config.values.excluded, self.config.seed)

    def _start(self, on_progress: Callable[[Progress | Round], None]) -> None:
        """Look for the pairs that the facts imply, unless a checkpoint has them.

        Raises:
            TrainingError: there are neither seed links nor anything else to start from.
        """
        if self.config.variant == "basic" or self.start is not None or self.at.epoch or self.at.step:
            return
        pool = selection_pool(self.task, self.config.semi)
        start = self.ranks.first(lambda: self._find_start() if self._found is None else self._found)
        self._train_from(start)
        if resolve_start(self.config.semi, len(self.task.train_links)) != "seeds" or self.inheritance is not None:
            begun = describe_round(0, self.rounds, start, no_selection(), self.task, pool)
            if self.inheritance is not None and len(self.inheritance.selected(pool)):
                begun = replace(begun, parent=self.inheritance.run.id)
            self.at.trace.append(begun.to_dict())
            on_progress(begun)

    def _train_from(self, start: Selection) -> None:
        """Until the first round, the seed links and these pairs together."""
        self.start = start
        self._use(start)

    def _use(self, selection: Selection) -> None:
        links = np.concatenate([self.task.train_links, selection.pairs])
        self.pairs = torch.from_numpy(self.task.stacked_links(links))

    def _begin_round_if_due(self, on_progress: Callable[[Progress | Round], None]) -> None:
        """Select the pairs of the next round where one begins here."""
        started, at = len(self.selections), self.at
        if at.step or started == self.rounds or at.epoch != self.basic_epochs + started * self.round_epochs:
            return
        pool = selection_pool(self.task, self.config.semi)
        earlier = self.selections[-1] if self.selections else no_selection()
        selection = self._asked(lambda similarity: self._select(similarity, pool, earlier))
        self._train_on(selection)
        begun = describe_round(started + 1, self.rounds, selection, earlier, self.task, pool)
        at.trace.append(begun.to_dict())
        on_progress(begun)

    def _select(self, similarity: Selectable, pool: Pool, earlier: Selection) -> Selection:
        if isinstance(similarity, UnscaledEmbeddings):
            similarity = replace(similarity, rounded=self.rounded)
        seed = self.config.seed, len(self.selections)
        begin = self.selections[-1] if self.selections else self.start
        values = None if begin is None or self._shared_values is None else SharedWorth(self._shared_values, begin)
        return select_pairs(similarity, pool, self.config.semi, self.config.search.csls_k, earlier, lambda: self._graph_evidence, seed, values)

    @cached_property
    def _shared_values(self) -> Candidates | None:
        """Of all rounds: what entities share, where training started from names and other values."""
        config = self.config.semi
        drawn = config.selection == "matchings"
        return values_in_rounds(self.task, config, selection_pool(self.task, config), self.config.values.excluded) if drawn else None

    @cached_property
    def _graph_evidence(self) -> GraphEvidence:
        """Of all rounds: the graphs and the seed links stay as they are."""
        return GraphEvidence.of(self.task.source, self.task.target, self.task.train_links)

    def _train_on(self, selection: Selection) -> None:
        """From here on, the seed links and these pairs together."""
        self.selections.append(selection)
        self._use(selection)

    def _train_epoch_or_save(self, should_stop: Callable[[], bool], checkpoints: Checkpoints | None) -> bool:
        """Where a step cannot be done, nothing of it has been learned: what was before it is kept.

        Raises:
            LostProcessError: another process has ended, and with it the features of its entities; the last checkpoint is kept.
            TrainingError: the GPU has no memory left, or fails.
        """
        try:
            return self._train_epoch(should_stop)
        except torch.OutOfMemoryError:
            self.optimiser.zero_grad()
            self._read_losses()
            if checkpoints is not None and self.shard is None:
                self._save(checkpoints)  # of several processes each holds a part, and the others wait for a step that this one cannot do
            advice = "resume with --set training.device=cpu, or start again with a smaller loss.candidate_share or encoder.dim"
            kept = "progress" if self.shard is None else "last checkpoint"
            raise TrainingError(f"the GPU is out of memory; the {kept} is kept: {advice}.") from None
        except torch.AcceleratorError as error:  # what lies on the GPU cannot be read any more
            reason = str(error).splitlines()[0]
            raise TrainingError(f"the GPU failed ({reason}); the same command resumes from the last checkpoint.") from None

    def _train_epoch(self, should_stop: Callable[[], bool]) -> bool:
        """The rest of the current epoch. True: stopped before its end."""
        size, at, begun = self.batch_size, self.at, list[float]()
        order = np.random.default_rng([self.config.seed, 1, at.epoch]).permutation(len(self.pairs))
        for step in range(at.step, self.steps_per_epoch):
            if self.ranks.most(int(should_stop())):
                self._read_losses()
                return True
            started, sent = time.monotonic(), self.ranks.sent
            self._train_step(self.pairs[torch.from_numpy(order[step * size : (step + 1) * size])])
            at.step = step + 1
            self.step_bytes.append(self.ranks.sent - sent)
            if self.first_step_done and has_kernels(self.device):
                self.step_seconds.append(time.monotonic() - started)
            elif self.first_step_done:
                begun.append(started)
            self.first_step_done = True
        self._read_losses()
        if begun:  # a step of a GPU is not over when the next one begins, an epoch is
            self.step_seconds.append((time.monotonic() - begun[0]) / len(begun))
        return False

    def _train_step(self, pairs: Tensor) -> None:
        at = self.at
        seed = int(np.random.SeedSequence([self.config.seed, 2, at.epoch, at.step]).generate_state(1)[0])
        self.optimiser.zero_grad()
        self.unread.append((at.step, self._differentiated(self.sampling.draw(pairs, seed), seed)))
        if has_kernels(self.device):
            self._read_losses()
        self._sum_gradients()
        self.optimiser.step()

    def _differentiated(self, sample: Sample, seed: int) -> Tensor:
        """The loss of a step, whose gradient the parameters have then; in smaller blocks where a GPU's memory does not suffice."""
        while True:
            try:
                value = self.compare(self.forward(sample, seed), sample, seed)
                value.backward()  # type: ignore[no-untyped-call]
                return value.detach()
            except torch.OutOfMemoryError:
                if has_kernels(self.device) or self.shard is not None or not halve_blocks(self.device):
                    raise
            self.optimiser.zero_grad()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def _read_losses(self) -> None:
        """Of the steps since the last time: on a CPU after each, on a GPU, which would be waited for, after an epoch and before what is kept.

        Raises:
            DivergenceError: one of them is not finite.
        """
        unread, self.unread = self.unread, []
        losses = torch.stack([value for _, value in unread]).tolist() if unread else []
        for (step, _), loss in zip(unread, losses, strict=True):
            if not math.isfinite(loss):
                raise DivergenceError(
                    f"the loss became {loss} in epoch {self.at.epoch + 1}, step {step + 1}; "
                    f"use a smaller training.learning_rate (now {self.config.training.learning_rate:g})."
                )
            self.at.loss_sum += loss

    def _sum_gradients(self) -> None:
        """Each process has the whole gradient of its own entities' features, and of all else what comes from its candidates."""
        if self.shard is None:
            return
        gradients = [one.grad for name, one in self.model.named_parameters() if name != DIVIDED and one.grad is not None]
        together = self.ranks.sum(torch.cat([one.flatten() for one in gradients]))
        for one, summed in zip(gradients, torch.split(together, [one.numel() for one in gradients]), strict=True):
            one.copy_(summed.view_as(one))

    def _check_agreement(self) -> None:
        """
        Raises:
            TrainingError: the processes no longer share the same parameters, for example since their machines compute differently.
        """
        if self.shard is None:
            return
        shared = [one.detach().contiguous() for name, one in self.model.named_parameters() if name != DIVIDED]
        print_of_all = sum(int(one.view(torch.int32).sum(dtype=torch.int64)) for one in shared)
        if self.ranks.most(print_of_all) != -self.ranks.most(-print_of_all):
            raise TrainingError("the processes of this training have diverged to different parameters; run them on identical machines and software.")

    def expected_bytes(self, pairs: int) -> float:
        """Bytes that this process sends in a step with a number of pairs, by formula."""
        if self.shard is None:
            return 0.0
        shared = sum(one.numel() for name, one in self.model.named_parameters() if name != DIVIDED)
        sizes = len(self.shard.exchange.sent), len(self.shard.halo), self.ranks.size
        return step_bytes(*sizes, self.config.encoder, pairs, shared, again=self.shard.neighbours.again)

    @property
    def rounded(self) -> bool:
        """Whether the products of steps and of the searches of rounds are taken of bfloat16 values."""
        return self.precision == "bfloat16"

    def forward(self, sample: Sample, seed: int) -> Tensor:
        """(n, D) final embeddings of a step's sample, after dropout; then those that other processes have of its pairs."""
        messages = None if sample.drawn is None else self.model.graph.number_to(sample.drawn)
        embeddings = self.model(sample.rows, dropout_seed=seed, rounded=self.rounded, messages=messages)
        return with_fetched(embeddings, sample.exchange)

    def compare(self, embeddings: Tensor, sample: Sample, seed: int) -> Tensor:
        """The loss of a step's pairs."""
        loss = build_loss(self.config.loss, sample.num_source, sample.num_target, self.ranks)
        return loss(embeddings, sample.pairs, seed=seed, rounded=self.rounded)

    def _finish_epoch(self, on_progress: Callable[[Progress | Round], None]) -> None:
        self._check_agreement()
        at = self.at
        at.epoch, at.step = at.epoch + 1, 0
        mean_loss, at.loss_sum = at.loss_sum / self.steps_per_epoch, 0.0
        usual = self._usual_epoch()
        remaining = None if usual is None else usual * (self.epochs - at.epoch)
        progress = Progress(at.epoch, self.epochs, mean_loss, at.seconds, remaining, self._validate(), usual)
        at.trace.append(progress.to_dict())
        on_progress(progress)

    def _usual_epoch(self) -> float | None:
        """Seconds of an epoch by the latest steps, without the first one of this process, which may have compiled the kernels."""
        return None if not self.step_seconds else statistics.median(self.step_seconds) * self.steps_per_epoch

    def _validate(self) -> Mapping[str, float] | None:
        """Hits@1 and MRR on the validation links where it is time for them; remembers the best state if patience asks for it."""
        training, links, at = self.config.training, self.task.valid_links, self.at
        if not len(links) or (at.epoch % training.validate_every and at.epoch != self.epochs):
            return None
        scores = self._asked(self._validation_scores)
        if training.patience is not None:
            self._remember_best(scores["mrr"])
        return scores

    def _validation_scores(self, similarity: Selectable) -> dict[str, float]:
        found = evaluate_links(similarity, self.task.valid_links, k=self.config.search.csls_k, bootstrap=0, links_name="validation").to_dict()
        both = found["source_to_target"], found["target_to_source"]
        return {name: float(np.mean([one[name] for one in both])) for name in ("hits@1", "mrr")}

    def _remember_best(self, mrr: float) -> None:
        if mrr > self.at.best_mrr:
            self.at.best_mrr, self.at.best_epoch, self.at.bad_validations = mrr, self.at.epoch, 0
            self.best = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        else:
            self.at.bad_validations += 1

    def _out_of_patience(self) -> bool:
        patience = self.config.training.patience
        return patience is not None and self.at.bad_validations >= patience

    def embed(self) -> Tensor:
        """(E, D) final embeddings of the stacked graph, without dropout; of several processes, each computes those of its own entities."""
        self.optimiser.zero_grad()  # those of the last step would only take memory
        return self.model.embed()

    def _asked(self, ask: Callable[[Selectable], Value]) -> Value:
        """What is asked of the embeddings of the moment. Several processes call it together and answer together; rank 0 asks."""
        embeddings, sizes = self.embed(), (self.task.source.num_entities, self.task.target.num_entities)
        if self.shard is not None:
            return asked_together(make_part(self.ranks, self.shard.own, embeddings, *sizes), ask)
        return ask(UnscaledEmbeddings(*split_embeddings(embeddings, sizes[0])))

    def _all_save(self, checkpoints: Checkpoints | None, *, wanted: bool = True) -> bool:
        """Save a checkpoint where rank 0, which keeps them, wants one; whether it did."""
        due = bool(self.ranks.first(lambda: checkpoints is not None and wanted))
        if due:
            self._save(checkpoints)
        return due

    def _save(self, checkpoints: Checkpoints | None) -> None:
        """Each process writes the rows of its own entities, and rank 0 what all share, which makes the checkpoint whole."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        tensors |= {f"optimiser.{number}": average for number, average in self.optimiser.averages.items()}
        state = self._state()
        if self.shard is not None:
            own = {name: tensors.pop(name) for name in self._divided if name in tensors}
            state["rows"] = {"names": list(own), "digests": self.rows.save(own)}
        if checkpoints is not None:
            self._save_shared(checkpoints, tensors, state)
        if self.shard is not None:
            self.rows.settle(state["rows"]["digests"])

    def _save_shared(self, checkpoints: Checkpoints, tensors: dict[str, Tensor], state: Mapping[str, Any]) -> None:
        if self.start is not None:
            tensors |= {"start.pairs": torch.from_numpy(self.start.pairs), "start.scores": torch.from_numpy(self.start.scores)}
        for number, selection in enumerate(self.selections):
            tensors[f"selection.{number}.pairs"] = torch.from_numpy(selection.pairs)
            tensors[f"selection.{number}.scores"] = torch.from_numpy(selection.scores)
        checkpoints.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, state)

    def _row_keeper(self, store: RowStore | None) -> RowKeeper:
        entities = self.task.num_entities
        own, owners = (np.arange(entities), np.zeros(entities, dtype=np.int32)) if self.shard is None else (self.shard.own, self.shard.owners)
        return RowKeeper(self.ranks, store, own, owners)

    @cached_property
    def _divided(self) -> tuple[str, ...]:
        """Names of the tensors of a checkpoint that have a row for each entity."""
        number = [name for name, _ in self.model.named_parameters()].index(DIVIDED)
        return f"model.{DIVIDED}", f"best.{DIVIDED}", f"optimiser.{number}"

    def _loaded(self, checkpoints: Checkpoints | None) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """What this process needs of the newest checkpoint that is whole; rank 0 has what all share.

        Raises:
            TrainingError: there are checkpoints, but of other data or settings, or none that is whole.
        """
        for earlier in itertools.count():
            found = checkpoints.load(earlier) if checkpoints is not None else None
            given = self.ranks.first(lambda: None if found is None else self._shared_of(*found))  # noqa: B023  (called at once)
            if given is None:
                break
            shared, state = given
            if state.pop("purpose", None) != self._purpose():
                raise TrainingError("the unfinished run was started with other data or settings; use --fresh to train again.")
            note = state.pop("rows")
            own = self._own_rows({} if found is None else found[0], note)
            if own is not None:
                return {**shared, **own}, state
        if earlier:
            raise TrainingError(
                "rows of the last checkpoint are missing or damaged; resume where they are (the same machines and --models), "
                "or use --fresh to train again."
            )
        return None

    def _shared_of(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Of a checkpoint what all processes need, with a note on the rows: in which files they are, none if one process saved them all."""
        names = [name for name in tensors if name in self._divided]
        shared = {name: tensor for name, tensor in tensors.items() if name not in self._divided}
        return shared, {"rows": {"names": names, "digests": []}, **state}

    def _own_rows(self, whole: Mapping[str, Tensor], note: Mapping[str, Any]) -> dict[str, Tensor] | None:
        """The rows of the own entities, where ``whole`` is what rank 0 has loaded."""
        names, like = note["names"], torch.empty((0, self.config.encoder.dim))
        if note["digests"]:
            return self.rows.collect(note["digests"], names, like)
        if self.shard is None:
            return {name: whole[name] for name in names}
        found = {name: like.new_empty((len(self.shard.own), like.shape[1])) for name in names}
        everyone = torch.arange(self.task.num_entities)
        self.rows.deal(None if self.ranks.rank else {OWN: everyone, **{name: whole[name] for name in names}}, found)
        return found

    def _state(self) -> dict[str, Any]:
        # What is not finite (a best MRR that does not exist yet is -1) would not survive JSON; all of this is.
        return {**vars(self.at), "threads": self.threads, "precision": self.precision, "purpose": self._purpose()}

    def _purpose(self) -> str:
        """What a checkpoint is for; one of another task or config must not be continued."""
        values = self.config.to_dict()
        values["training"] = {key: value for key, value in values["training"].items() if key not in EXECUTION_OPTIONS}
        return f"{self.task.fingerprint} {self.task.split} {values}"

    def _resume(self, checkpoints: Checkpoints | None) -> None:
        found = self._loaded(checkpoints)
        if found is None:
            return
        tensors, state = found
        before = {"from_epoch": 1, "threads": state.pop("threads")}  # all that checkpoints without parts hold
        self.precision = choose_precision(state.pop("precision"), self.device)  # one from beginning to end; the device must have it
        self.at = Position(**{"parts": [before], **state})
        self.model.load_state_dict(part(tensors, "model."))
        self.best = {name: tensor.to(self.device) for name, tensor in part(tensors, "best.").items()}
        if started := part(tensors, "start."):
            self._train_from(Selection(started["pairs"].numpy(), started["scores"].numpy()))
        selected = part(tensors, "selection.")
        for number in range(len(selected) // 2):
            self._train_on(Selection(selected[f"{number}.pairs"].numpy(), selected[f"{number}.scores"].numpy()))
        self.optimiser.load({int(number): average for number, average in part(tensors, "optimiser.").items()})


def divided_model(
    task: AlignmentTask, config: RunConfig, ranks: Ranks, device: torch.device, adjacency: Adjacency | None = None
) -> tuple[Shard | None, DualAMN]:
    """What this one of several processes holds, and the encoder of that; with one process None, and the encoder of everything."""
    if ranks.size == 1:
        return None, build_model(task, config, device, adjacency)
    owners, triples = owned_triples(task, ranks)
    shard, local = make_shard(triples, owners, ranks, device)
    del triples
    index = encoder_adjacency(local, len(shard.own) + len(shard.halo), task.num_relations, config)
    del local  # as the others: once they are indexed, nothing needs them
    return shard, DualAMN(index, config.encoder, seed=config.seed, device=device, shard=shard)


def build_model(task: AlignmentTask, config: RunConfig, device: torch.device, adjacency: Adjacency | None = None) -> DualAMN:
    """The encoder of a whole task."""
    return DualAMN(adjacency or task_adjacency(task, config), config.encoder, seed=config.seed, device=device)


def check_processes(task: AlignmentTask, processes: int) -> None:
    """
    Raises:
        TrainingError: the entities cannot be divided among this number of processes.
    """
    fewest = min(task.source.num_entities, task.target.num_entities)
    if processes > fewest:
        raise TrainingError(
            f"{processes} processes cannot share the {fewest} entities of the smaller graph; start fewer (torchrun --nproc-per-node)."
        )


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names start with a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def task_adjacency(task: AlignmentTask, config: RunConfig) -> Adjacency:
    """The stacked graph's index arrays, as the encoder's options want them."""
    return encoder_adjacency(task.stacked_triples(), task.num_entities, task.num_relations, config)


def encoder_adjacency(triples: IntArray, num_entities: int, num_relations: int, config: RunConfig) -> Adjacency:
    """Index triples as the encoder's options want it."""
    return build_adjacency(
        triples,
        num_entities,
        num_relations,
        message_unit=config.encoder.message_unit,
        relation_input=config.encoder.relation_input,
    )


def split_embeddings(embeddings: Tensor, num_source: int) -> tuple[Tensor, Tensor]:
    """(E, D) stacked rows -> the source graph's (E1, D) and the target graph's (E2, D)."""
    return embeddings[:num_source], embeddings[num_source:]


__all__ = [
    "Checkpoints",
    "Progress",
    "Trained",
    "Trainer",
    "split_embeddings",
    "task_adjacency",
]
