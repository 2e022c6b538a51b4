"""Several processes, as a user starts them: the same run as one process makes, and clear words where one is lost or is not like the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.config import RunConfig
from engine.data import AlignmentTask, load_task
from engine.errors import ConfigError, TrainingError
from engine.pipeline import train_run
from engine.runs import Run, RunStore
from engine.runs.row_files import RowFiles
from engine.training import trainer as training
from engine.training.sharding import make_shards
from engine.training.trainer import Trainer
from engine.training.worker import Order, check_data, follow, lead, leading
from engine.util.distributed import ALONE, joined
from tests.data.writers import Sample, write_openea
from tests.ranks import ThreadRanks, together
from tests.training.test_trainer import Memory

ENTITIES = 150  # a side
SETTINGS = {
    "encoder.dim": 12,
    "encoder.proxies": 8,
    "training.batch_size": 20,
    "training.threads": 1,
    "training.precision": "float32",
    "training.checkpoint_seconds": 0.0,
    "loss.least_candidates": 120,  # a sample is divided, too
    "semi.rounds": 1,
    "semi.round_epochs": 2,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random graph and its copy, all of whose entities are linked."""
    random = np.random.default_rng(0)
    facts = [(int(head), int(relation), int(tail)) for head, relation, tail in random.integers(0, [ENTITIES, 5, ENTITIES], (600, 3))]
    left, right = (tuple((f"{side}{head}", f"r{relation}", f"{side}{tail}") for head, relation, tail in facts) for side in "ab")
    links = tuple((f"a{at}", f"b{at}") for at in range(ENTITIES))
    folder = tmp_path_factory.mktemp("graphs") / "copies"
    write_openea(folder, Sample(left, right, links, links[:50]))
    return folder


@pytest.fixture(scope="module")
def task(data: Path) -> AlignmentTask:
    return load_task(data)


def config(variant: str, epochs: int) -> RunConfig:
    return RunConfig.from_dict({"variant": variant}).with_values({**SETTINGS, "training.epochs": epochs})


def command(processes: int, data: Path, models: Path, wanted: RunConfig) -> Sequence[str]:
    assignments = [word for one in wanted.assignments() for word in ("--set", one)]
    run = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m", "engine", "train", str(data))
    return (sys.executable, *run, "--variant", wanted.variant, "--models", str(models), *assignments)


def environment() -> dict[str, str]:
    within = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}  # whatever the machine's own name leads to
    return {**os.environ, **within, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}


def finished(processes: int, data: Path, models: Path, wanted: RunConfig) -> Run:
    """The run that a number of processes leave."""
    done = subprocess.run(command(processes, data, models, wanted), capture_output=True, text=True, env=environment(), timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (summary,) = RunStore(models).list()
    return RunStore(models).find(f"{summary.dataset}/{summary.run_id}")


@pytest.mark.parametrize(("processes", "variant"), [(2, "semi"), pytest.param(3, "basic", marks=pytest.mark.slow)])
def test_several_processes_leave_the_run_that_one_leaves(processes: int, variant: str, data: Path, tmp_path: Path) -> None:
    wanted = config(variant, epochs=4)
    alone = train_run(data, wanted, RunStore(tmp_path / "alone")).run
    run = finished(processes, data, tmp_path / "together", wanted)
    assert run.manifest["training"]["processes"] == processes
    assert run.id == alone.id
    for side in ("source", "target"):
        assert np.abs(run.tensor("embeddings", side) - alone.tensor("embeddings", side)).max() < 1e-4
    for direction in ("source_to_target", "target_to_source"):
        for name in ("hits@1", "hits@10", "mrr"):
            assert run.metrics[direction][name] == pytest.approx(alone.metrics[direction][name], abs=1e-4)


def worker(launcher: int, rank: int) -> int:
    """The process of a rank, by its environment (Linux)."""
    for child in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        if f"\0RANK={rank}\0" in f"\0{Path(f'/proc/{child}/environ').read_text()}":
            return int(child)
    raise AssertionError("no such process")


def says_why(output: str) -> bool:
    """Whether processes say why they end where another one has died: they miss it, or torchrun, which may be first, ends them."""
    noticed = "error: another process of this training has ended", "ended by a termination signal; run the same command to resume"
    return any(words in output for words in noticed)


@pytest.mark.slow
@pytest.mark.skipif(not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="finds processes in /proc")
def test_a_process_that_dies_ends_the_training_with_what_was_learned(data: Path, tmp_path: Path) -> None:
    wanted, whole = config("basic", epochs=30), data
    data = make_shards(whole, wanted, 2, tmp_path / "shards").path
    said = []
    with subprocess.Popen(command(2, data, tmp_path / "models", wanted), stderr=subprocess.PIPE, text=True, env=environment()) as launched:
        assert launched.stderr is not None
        for line in launched.stderr:
            said.append(line)
            if line.startswith("epoch   3/"):
                os.kill(worker(launched.pid, rank=1), signal.SIGKILL)
    assert launched.returncode != 0
    assert says_why("".join(said))
    assert [one.state for one in RunStore(tmp_path / "models").list()] == ["partial"]
    events: list[object] = []
    run = train_run(data, wanted, RunStore(tmp_path / "models"), on_event=events.append).run
    epochs = [event.epoch for event in events if hasattr(event, "epoch")]
    assert epochs[0] > 2, "it goes on, by one process, and does not start at the beginning"
    assert epochs[-1] == 30
    assert [line["epoch"] for line in run.trace() if "epoch" in line] == list(range(1, 31))
    assert train_run(whole, wanted, RunStore(tmp_path / "models")).reused, "the same run as on the data"


DYING = """
import os, signal, sys
from engine.search import divided
answer = divided.Nearest.answer
def die(self, part):
    if part.ranks.rank:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(self, part)
divided.Nearest.answer = die
from engine.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def command_of(program: str, folder: Path, data: Path, wanted: RunConfig, processes: int = 2) -> Sequence[str]:
    """Processes that run a program in place of the command."""
    (folder / "program.py").write_text(program)
    words = list(command(processes, data, folder / "models", wanted))
    at = words.index("-m", words.index("--nproc-per-node"))
    words[at : at + 2] = [str(folder / "program.py")]
    return words


def with_this_source(variables: dict[str, str]) -> dict[str, str]:
    return {**variables, "PYTHONPATH": str(Path(training.__file__).parents[2])}


@pytest.mark.slow
def test_a_process_that_dies_while_searching_costs_no_training(data: Path, tmp_path: Path) -> None:
    wanted = config("basic", epochs=4)
    words, env = command_of(DYING, tmp_path, data, wanted), with_this_source(environment())
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=240, check=False)
    assert says_why(done.stderr)
    assert [one.state for one in RunStore(tmp_path / "models").list()] == ["partial"]
    events: list[object] = []
    run = train_run(data, wanted, RunStore(tmp_path / "models"), on_event=events.append).run
    assert not [event for event in events if hasattr(event, "epoch")], "all epochs were done"
    assert run.manifest["training"]["epochs"] == 4


AMONG_PIECES = """
import os, signal, sys
from engine.model import exchange
exchange.FEW_ROWS, exchange.MANY, exchange.PIECE_ROWS = -1, -1.0, 16
calls, work = [], exchange.Exchange.{name}
def die(self, *arguments):
    calls.append(self)
    if self.ranks.rank == 1 and len(calls) == 100:
        os.kill(os.getpid(), signal.SIGKILL)
    return work(self, *arguments)
exchange.Exchange.{name} = die
from engine.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fetch", "give_back"])
def test_a_process_that_dies_while_rows_are_fetched_in_pieces_ends_the_training(name: str, data: Path, tmp_path: Path) -> None:
    words = command_of(AMONG_PIECES.format(name=name), tmp_path, data, config("basic", epochs=30), processes=3)
    done = subprocess.run(words, capture_output=True, text=True, env=with_this_source(environment()), timeout=240, check=False)
    assert done.returncode != 0
    assert says_why(done.stderr)
    assert "epoch  30/" not in done.stderr


IMPATIENT = """
import sys
from datetime import timedelta
from engine.util import distributed
distributed.STEP_PATIENCE = timedelta(seconds=4)
from engine.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
BETWEEN_STEPS = """
import os, signal
from engine.training.trainer import Trainer
save = Trainer._all_save
def halt(self, *arguments, **options):
    if self.ranks.rank and self.at.epoch == 3:
        os.kill(os.getpid(), signal.SIGSTOP)
    return save(self, *arguments, **options)
Trainer._all_save = halt
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize("program", [IMPATIENT, BETWEEN_STEPS + IMPATIENT], ids=["anywhere", "where an order is awaited"])
def test_a_process_that_hangs_is_not_waited_for_forever(program: str, data: Path, tmp_path: Path) -> None:
    wanted = config("basic", epochs=30)
    said, halted = [], 0
    with subprocess.Popen(
        command_of(program, tmp_path, data, wanted), stderr=subprocess.PIPE, text=True, env=with_this_source(environment())
    ) as launched:
        assert launched.stderr is not None
        for line in launched.stderr:
            said.append(line)
            if line.startswith("epoch   3/"):
                halted = worker(launched.pid, rank=1)
                os.kill(halted, signal.SIGSTOP)
            if line.startswith("error:"):
                os.kill(halted, signal.SIGKILL)
    assert launched.returncode != 0
    assert "error: another process of this training has ended, cannot be reached or no longer answers" in "".join(said)
    assert [one.state for one in RunStore(tmp_path / "models").list()] == ["partial"]


def test_more_processes_than_entities_are_refused(task: AlignmentTask) -> None:
    class Crowd(type(ALONE)):  # type: ignore[misc]
        size = 5000

    with pytest.raises(TrainingError, match=r"5000 processes cannot share the \d+ entities of the smaller graph; start fewer"):
        Trainer(task, config("basic", 1), ranks=Crowd())


def test_a_process_that_reads_other_data_is_named_by_all(task: AlignmentTask) -> None:
    order = Order(config("basic", 1), task.fingerprint, task.split, task.train_links, task.valid_links)

    def shown(ranks: ThreadRanks) -> str:
        with pytest.raises(TrainingError) as caught:
            check_data(replace(task, fingerprint="another") if ranks.rank == 2 else task, order, ranks)
        return str(caught.value)

    assert together(3, shown) == ["process 2 reads other data than process 0; use the same, unchanged folder for all processes."] * 3


@pytest.mark.parametrize("kind", ["truncated", "triplet"])
def test_losses_that_cannot_be_divided_are_refused(kind: str, task: AlignmentTask) -> None:
    def shown(ranks: ThreadRanks) -> str:
        with pytest.raises(ConfigError) as caught:
            Trainer(task, config("basic", 1).with_values({"loss.kind": kind}), ranks=ranks).train()
        return str(caught.value)

    assert together(2, shown) == [f"loss.kind={kind} trains in one process only; use one, or loss.kind=nhsm."] * 2


def test_all_take_the_precision_that_the_first_one_found_faster(task: AlignmentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying out may end differently in each process."""
    tried = iter(["bfloat16", "float32", "float32"])
    monkeypatch.setattr(training, "choose_precision", lambda wanted, device: next(tried))
    assert together(3, lambda ranks: Trainer(task, config("basic", 1), ranks=ranks).precision) == ["bfloat16"] * 3


def test_the_others_train_on_what_reviewers_left(data: Path, task: AlignmentTask, tmp_path: Path) -> None:
    """Rank 0 alone has reviews and checkpoints; the others take its links, and resume from its checkpoint."""
    reviewed = replace(task, split=f"{task.split}, reviewed", train_links=task.train_links[:30])
    wanted, memory = config("basic", 3), Memory()

    def trained(ranks: ThreadRanks) -> None:
        if ranks.rank:
            follow(data, wanted, ranks, models=tmp_path)
            return
        with leading(ranks):
            for _ in range(2):
                lead(reviewed, wanted, ranks, "some-run")
                Trainer(reviewed, wanted, ranks=ranks).train(checkpoints=memory, rows=RowFiles.of_run(tmp_path, reviewed.name, "some-run"))

    together(2, trained)
    assert memory.saves == 3, "the second training went on from the first one's last checkpoint"


def test_drifting_apart_is_noticed(task: AlignmentTask) -> None:
    """As on machines that compute differently."""

    def shown(ranks: ThreadRanks) -> str:
        trainer = Trainer(task, config("basic", 2), ranks=ranks)
        if ranks.rank:
            trainer.model.proxies.data[0, 0, 0] += 1e-3
        with pytest.raises(TrainingError) as caught:
            trainer.train()
        return str(caught.value)

    for message in together(2, shown):
        assert "have diverged to different parameters" in message


def test_one_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    with joined() as ranks:
        assert ranks is ALONE


def test_an_address_that_leads_nowhere_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "not a number"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=r"cannot reach the other processes at 127.0.0.1:not a number .*; start them with torchrun"), joined():
        pass
