"""Shard folders: a task from one is the task of the data, and so is the training; whatever is wrong with a folder is reported in a sentence."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from engine.cli.main import main
from engine.config import RunConfig
from engine.data import AlignmentTask, load_task
from engine.data.shards import ShardFolder, open_shards
from engine.errors import ConfigError, DataError, EngineError, ExportError, TrainingError
from engine.model.partition import partition_entities, shown_pairs
from engine.pipeline import make_run_id
from engine.training.estimate import Share, Sizes, memory_needed, task_sizes
from engine.training.ownership import part_sizes
from engine.training.sharding import make_shards
from engine.training.trainer import Trainer
from engine.training.worker import Order, check_data, shards_of
from tests.data.writers import Sample, write_openea
from tests.ranks import ThreadRanks, together

SMALL = RunConfig().with_values(
    {
        "encoder.dim": 8,
        "encoder.proxies": 4,
        "training.epochs": 2,
        "training.batch_size": 40,
        "training.threads": 1,
        "training.precision": "float32",
        "loss.least_candidates": 150,
    }
)


@pytest.fixture(scope="module")
def sharded(small_europe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small sample in four parts."""
    out = tmp_path_factory.mktemp("shards") / "four"
    make_shards(small_europe, RunConfig(), 4, out)
    return out


@pytest.fixture
def copied(sharded: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(sharded, tmp_path / "copy"))


def same(left: object, right: object) -> bool:
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right)  # type: ignore[arg-type]
    if isinstance(left, pd.DataFrame):
        return left.equals(right) and left.dtypes.equals(right.dtypes)  # type: ignore[attr-defined]
    return left == right


def test_a_task_from_shards_is_the_task_of_the_data(small_europe: Path, sharded: Path) -> None:
    task, stored = load_task(small_europe), load_task(sharded)
    for one in dataclasses.fields(AlignmentTask):
        if one.name not in ("source", "target"):
            assert same(getattr(task, one.name), getattr(stored, one.name)), one.name
    for graph, other in ((task.source, stored.source), (task.target, stored.target)):
        sizes = "num_entities", "num_relations", "num_triples", "num_attributes"
        assert [getattr(graph, name) for name in sizes] == [getattr(other, name) for name in sizes]
        assert not {"entities", "labels", "triples", "attributes"} & set(vars(other)), "counts alone read none of it"
        for one in dataclasses.fields(graph):
            assert same(getattr(graph, one.name), getattr(other, one.name)), one.name
    fewer = dataclasses.replace(stored.source, attributes=stored.source.attributes[:1])
    assert (fewer.num_attributes, fewer.num_entities) == (1, task.source.num_entities)
    assert make_run_id(stored, SMALL) == make_run_id(task, SMALL)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_data_give_the_same_shards_also_by_way_of_other_shards(small_europe: Path, sharded: Path, tmp_path: Path) -> None:
    make_shards(small_europe, RunConfig(), 4, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(sharded)
    make_shards(small_europe, RunConfig(), 2, tmp_path / "two")
    make_shards(tmp_path / "two", RunConfig(), 4, tmp_path / "by way of two")
    assert contents(tmp_path / "by way of two") == contents(sharded)


def test_the_command_says_what_it_does(small_europe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "shards"
    assert main(["shard", str(small_europe), "--parts", "2", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "into 2 parts" in printed.err
    assert "part 2/2: " in printed.err
    assert " from others, all at once; " in printed.out
    assert f"next: torchrun --standalone --nproc-per-node 2 -m engine train {out}" in printed.out
    assert main(["shard", str(small_europe), "--parts", "3", "--out", str(out)]) == 2
    assert "already exists; choose another folder with --out, or overwrite it with --force." in capsys.readouterr().err
    assert main(["shard", str(small_europe), "--parts", "3", "--out", str(out), "--force", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert len(made["parts"]) == 3
    assert made["fetched"] == "all at once"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shards"], "nothing is left beside it"
    assert main(["shard", str(small_europe), "--parts", "2", "--out", str(tmp_path / "other"), "--set", "encoder.dim=4"]) == 2
    assert "--set encoder.dim has no effect here: shard reads the data and trains nothing" in capsys.readouterr().err


def test_what_cannot_be_divided_or_written_is_said(small_europe: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--parts and --memory expect a number from 1 on; got 0 and 1000"):
        make_shards(small_europe, RunConfig(), 0, tmp_path / "out")
    with pytest.raises(TrainingError, match=r"5000 parts are more than the 300 entities of the smaller graph; use fewer \(--parts\)"):
        make_shards(small_europe, RunConfig(), 5000, tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    for force in (False, True):
        with pytest.raises(ExportError, match="mine already exists; choose another folder with --out, or remove it, since it is no shard folder"):
            make_shards(small_europe, RunConfig(), 2, tmp_path / "mine", force=force)
    with pytest.raises(ExportError, match=r"cannot write .*thesis\.txt/out"):
        make_shards(small_europe, RunConfig(), 2, tmp_path / "mine" / "thesis.txt" / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


def test_what_a_killed_process_left_is_written_again(small_europe: Path, sharded: Path, tmp_path: Path) -> None:
    left = tmp_path / ".out.unfinished"
    left.mkdir()
    (left / "part-0007.npy").write_bytes(b"torn")
    make_shards(small_europe, RunConfig(), 4, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(sharded)


def test_an_interrupted_division_leaves_nothing_and_what_was_there_before(sharded: Path, copied: Path) -> None:
    def interrupt(text: str) -> None:
        if text.startswith("part 1/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_shards(sharded, RunConfig(), 3, copied, force=True, say=interrupt)
    assert [path.name for path in copied.parent.iterdir()] == ["copy"]
    assert contents(copied) == contents(sharded)


def test_two_processes_do_not_write_the_same_folder(small_europe: Path, tmp_path: Path) -> None:
    def meanwhile(text: str) -> None:
        with pytest.raises(ExportError, match="out is being written by another process; wait for it"):
            make_shards(small_europe, RunConfig(), 3, tmp_path / "out")

    assert make_shards(small_europe, RunConfig(), 2, tmp_path / "out", say=meanwhile).parts == 2


def used(folder: Path) -> None:
    """Look at everything."""
    task = load_task(folder)
    for graph in (task.source, task.target):
        assert len(graph.entities) == len(graph.labels) == graph.num_entities
        assert len(graph.relations) == graph.num_relations
        assert len(graph.attributes) == graph.num_attributes
        assert len(graph.triples) == graph.num_triples


NAMES = [
    *("owners.npy", "part-0000.npy", "part-0003.npy", "links.parquet", "apart.parquet", "shards.json"),
    *(f"{side}_{what}.parquet" for side in ("source", "target") for what in ("entities", "relations", "attributes")),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_or_damaged_file_is_named(name: str, copied: Path) -> None:
    path = copied / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DataError, match=rf"{name}: this file of a shard folder is damaged; divide the data again"):
        used(copied)
    path.unlink()
    with pytest.raises(DataError, match="this folder fits no known format" if name == "shards.json" else f"{name}: this file .* is missing"):
        used(copied)


def changed_manifest(folder: Path, change: Callable[[dict[str, object]], object]) -> None:
    manifest = json.loads((folder / "shards.json").read_text())
    change(manifest)
    (folder / "shards.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.pop("graphs"),
        lambda manifest: manifest["data"].update(name=5),
        lambda manifest: manifest["graphs"]["source"].update(entities=-1),
        lambda manifest: manifest["graphs"]["target"].update(relations="many"),
        lambda manifest: manifest.update(parts=[]),
        lambda manifest: manifest.update(files=[]),
        lambda manifest: manifest["parts"][0].pop("halo"),
        lambda manifest: manifest["data"].update(files={"a": 1}),
        lambda manifest: manifest["graphs"]["source"].update(entities=7),
        lambda manifest: manifest["graphs"]["source"].update(relations=0),
        lambda manifest: manifest["data"]["links"].update(test=3),
        lambda manifest: manifest["findings"].append({"code": "x"}),
    ],
)
def test_a_manifest_that_makes_no_sense_is_damaged(change: Callable[[dict[str, object]], object], copied: Path) -> None:
    changed_manifest(copied, change)
    with pytest.raises(DataError, match="of a shard folder is damaged; divide the data again"):
        used(copied)


def test_another_version_of_the_format_is_refused(copied: Path) -> None:
    changed_manifest(copied, lambda manifest: manifest.update(format=99))
    with pytest.raises(DataError, match="has format 99, where this version reads 1; divide the data again"):
        load_task(copied)


def test_data_that_changed_since_are_noticed(small_europe: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(small_europe, tmp_path / "data"))
    make_shards(data, RunConfig(), 2, tmp_path / "out")
    triples = data / "rel_triples_1"
    os.utime(triples)
    load_task(tmp_path / "out")  # another time, the same content
    triples.write_bytes(triples.read_bytes()[:-1] + b"x")
    with pytest.raises(DataError, match="rel_triples_1 has changed since this data set was divided; divide the data again"):
        load_task(tmp_path / "out")
    triples.unlink()
    with pytest.raises(DataError, match="rel_triples_1 has changed"):
        load_task(tmp_path / "out")
    shutil.rmtree(data)
    load_task(tmp_path / "out")  # shards alone suffice


def test_settings_are_those_that_the_data_were_divided_with(small_europe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, models = tmp_path / "out", tmp_path / "models"
    assert main(["shard", str(small_europe), "--parts", "2", "--out", str(out), "--train-ratio", "0.5", "--seed", "3"]) == 0
    capsys.readouterr()
    train = ["train", str(out), "--models", str(models), "--epochs", "1", "--set", "encoder.dim=4", "--set", "training.threads=1"]
    assert main([*train, "--seed", "3", "--train-ratio", "0.4"]) == 2
    assert "was divided with data.train_ratio=0.5, and data.train_ratio=0.4 is not that; omit it" in capsys.readouterr().err
    assert main(train) == 2
    assert "has links that were divided with seed 3; use --seed 3" in capsys.readouterr().err
    assert main([*train, "--seed", "3"]) == 0
    run = next(path.name for path in (models / "europe").iterdir() if not path.name.startswith("."))
    wanted = SMALL.with_values({"data.train_ratio": 0.5, "encoder.dim": 4, "encoder.proxies": 64, "training.epochs": 1})
    wanted = dataclasses.replace(RunConfig(), seed=3, data=wanted.data).with_values({"encoder.dim": 4, "training.epochs": 1})
    assert run == make_run_id(load_task(small_europe, wanted.data, 3), wanted), "the id that training on the data gives"


# Training


def learned(task: AlignmentTask, ranks: ThreadRanks, config: RunConfig = SMALL) -> tuple[list[float], Tensor]:
    """The losses, and parameters that all entities have a say in."""
    trainer = Trainer(task, config, ranks=ranks)
    trained = trainer.train()
    return [line["loss"] for line in trained.trace if "loss" in line], trainer.model.relation_features.detach()


def check_learned(data: Path, folder: Path, processes: int) -> None:
    trainer = Trainer(load_task(data), SMALL)
    losses = [line["loss"] for line in trainer.train().trace]
    for found, features in together(processes, lambda ranks: learned(load_task(folder), ranks)):
        assert found == pytest.approx(losses, rel=1e-5)
        torch.testing.assert_close(features, trainer.model.relation_features.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("processes", [2, 4, 8])
def test_training_on_shards_is_training_on_the_data(processes: int, small_europe: Path, sharded: Path) -> None:
    """Two take two of the four parts each, eight take half a part."""
    check_learned(small_europe, sharded, processes)


def test_a_process_reads_its_part_alone(sharded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[int, str]] = []
    array = ShardFolder._array

    def part(ranks: ThreadRanks) -> None:
        task = load_task(sharded)
        vars(task.shards)["rank"] = ranks.rank  # type: ignore[attr-defined]
        Trainer(task, SMALL, ranks=ranks)
        assert not {"entities", "triples", "attributes"} & set(vars(task.source))

    def noted(self: ShardFolder, name: str) -> object:
        opened.append((vars(self)["rank"], name))
        return array(self, name)

    monkeypatch.setattr(ShardFolder, "_array", noted)
    together(4, part)
    assert sorted(opened) == sorted((rank, name) for rank in range(4) for name in ("owners.npy", f"part-{rank:04}.npy"))


def test_what_each_process_would_hold_is_known_without_reading(small_europe: Path, sharded: Path) -> None:
    stored = load_task(sharded)
    assert part_sizes(stored, 4) == part_sizes(load_task(small_europe), 4)
    assert "triples" not in vars(stored.source)
    assert part_sizes(stored, 2) == part_sizes(load_task(small_europe), 2)


def test_a_process_of_a_shard_folder_needs_memory_for_its_part_alone(small_europe: Path, sharded: Path) -> None:
    whole, stored = load_task(small_europe), load_task(sharded)
    sizes = dataclasses.replace(task_sizes(whole), triples=(5_000_000, 5_000_000), attributes=(0, 0))
    mine = Share.of(stored, 4)
    assert mine is not None
    assert mine.own == max(part["own"] for part in stored.shards.manifest["parts"])
    assert "triples" not in vars(stored.source), "the manifest says it"
    other = Share.of(stored, 2)
    assert other is not None
    assert mine.triples < other.triples < whole.source.num_triples + whole.target.num_triples  # type: ignore[operator]
    assert memory_needed(sizes, SMALL, share=mine) < memory_needed(sizes, SMALL, share=Share.of(whole, 4)) - 1000, "which reads everything"
    assert Share.of(stored, 1) is None


def test_many_rows_of_others_take_no_more_memory_than_a_few() -> None:
    sizes = Sizes((10**6, 10**6), (5 * 10**6, 5 * 10**6), (100, 100), (0, 0), 10**5, 0, 0)
    held, pieces = (memory_needed(sizes, RunConfig(), share=Share(16, 125_000, 10**6, way)) for way in (False, True))
    more = memory_needed(sizes, RunConfig(), share=Share(16, 125_000, 10**7, True))
    assert pieces == more < held - 1000


def test_all_end_where_one_cannot_read_its_part(copied: Path) -> None:
    (copied / "part-0002.npy").write_bytes(b"torn")

    def shown(ranks: ThreadRanks) -> str:
        with pytest.raises(EngineError) as caught:
            Trainer(load_task(copied), SMALL, ranks=ranks)
        return str(caught.value).replace(f"{copied}", "DIR")

    first, second = together(2, shown)
    assert first == "process 1 cannot read its part of DIR; its own message says why."
    assert second == "DIR/part-0002.npy: this file of a shard folder is damaged; divide the data again with python -m engine shard."


def test_processes_that_cannot_share_the_parts_evenly_end_with_a_sentence(sharded: Path) -> None:
    def shown(ranks: ThreadRanks) -> str:
        with pytest.raises(TrainingError) as caught:
            Trainer(load_task(sharded), SMALL, ranks=ranks)
        return str(caught.value)

    for message in together(3, shown):
        assert "has 4 parts, which 3 processes cannot share evenly; start 1 or 2 or 4 or a multiple of 4 of them, or divide the data again" in message


def test_processes_with_different_shards_end_with_a_sentence(small_europe: Path, sharded: Path, tmp_path: Path) -> None:
    make_shards(small_europe, RunConfig(), 2, tmp_path / "two")
    task, other = load_task(sharded), load_task(tmp_path / "two")
    order = Order(SMALL, task.fingerprint, task.split, task.train_links, task.valid_links, shards_of(task))

    def shown(ranks: ThreadRanks) -> str:
        with pytest.raises(TrainingError) as caught:
            check_data(other if ranks.rank else task, order, ranks)
        return str(caught.value)

    assert together(2, shown) == ["process 1 reads other data than process 0; use the same, unchanged folder for all processes."] * 2


def copies(facts: list[tuple[int, int]], links: int) -> Sample:
    """A graph by heads and tails, and its copy."""
    left, right = (tuple((f"{side}{head:03}", "r", f"{side}{tail:03}") for head, tail in facts) for side in "ab")
    every = tuple((f"a{at:03}", f"b{at:03}") for at in sorted({one for fact in facts for one in fact}))
    return Sample(left, right, every, every[:links])


ODD = {
    "islands": copies([(at, at + 1) for at in range(0, 120, 2)], 20),
    "hub": copies([(0, at) for at in range(1, 120)], 20),
    "one seed": copies([(at, (at * 7 + 1) % 120) for at in range(120)], 1),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_graphs_train_as_in_one_process(name: str, tmp_path: Path) -> None:
    """Components without a path between them, a neighbour of everything, parts without a seed link."""
    write_openea(tmp_path / "data", ODD[name])
    made = make_shards(tmp_path / "data", RunConfig(), 3, tmp_path / "out")
    assert all(part["own"] for part in made.manifest["parts"])
    check_learned(tmp_path / "data", tmp_path / "out", 3)


def test_metis_may_be_shown_a_part_of_the_pairs() -> None:
    """A hub beside communities: what is left out is mostly the hub's, and the parts are as good as by all pairs."""
    random = np.random.default_rng(0)
    within = np.concatenate([50 * part + random.integers(0, 50, (400, 2)) for part in range(4)])
    hub = np.stack([np.zeros(199, dtype=np.int64), np.arange(1, 200)], axis=1)
    ends = np.concatenate([within, hub])
    first, second = shown_pairs(ends[:, 0], ends[:, 1], 200, 1500)
    assert len(first) == len(second) == 1500
    assert ((first == 0) | (second == 0)).sum() < 150
    triples = np.stack([ends[:, 0], np.zeros(len(ends), dtype=np.int64), ends[:, 1]], axis=1)
    owners = partition_entities(triples, 200, np.empty((0, 2), dtype=np.int64), 4, 1500)
    assert (owners[within[:, 0]] != owners[within[:, 1]]).sum() <= 20


def test_a_shard_folder_is_opened_by_other_commands(sharded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(sharded)]) == 0
    assert "300" in capsys.readouterr().out
    assert open_shards(sharded).parts == 4
    assert isinstance(load_task(sharded).shards.digest, str)  # type: ignore[attr-defined]
    with pytest.raises(EngineError):
        load_task(sharded, seed=0, config=RunConfig().with_values({"data.valid_ratio": 0.5}).data)
