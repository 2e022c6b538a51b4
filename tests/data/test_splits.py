from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import DataConfig
from engine.data import AlignmentTask, load_task
from engine.data.splits import divide
from tests.data.writers import put, small_sample, tabbed, write_csv, write_dbp15k, write_openea, write_rdf

HERE = Path("data")
keys = st.lists(st.integers(0, 500), max_size=60, unique=True).map(lambda values: np.array(sorted(values), dtype=np.int64))


def pairs(task: AlignmentTask, part: str) -> set[str]:
    return {task.source.labels[left] for left, _ in getattr(task, f"{part}_links")}


@given(keys.filter(len), st.floats(0.01, 1), st.floats(0, 0.9), st.integers(0, 5))
def test_a_drawn_split_is_a_partition(known: np.ndarray, ratio: float, valid_ratio: float, seed: int) -> None:
    config = DataConfig(train_ratio=ratio, valid_ratio=valid_ratio)
    split = divide({"all": known}, "", config, seed, HERE)
    together = np.concatenate([split.train, split.valid, split.test])
    assert np.array_equal(np.sort(together), known)
    assert len(split.train) >= 1
    assert len(split.train) + len(split.valid) == max(round(ratio * len(known)), 1)
    again = divide({"all": known}, "", config, seed, HERE)
    assert all(np.array_equal(getattr(split, part), getattr(again, part)) for part in ("train", "valid", "test"))


@given(keys.filter(len), keys, keys, keys, keys, st.sampled_from(["hold-out", "train"]), st.floats(0, 0.9))
def test_a_given_split_never_leaks(
    train: np.ndarray, valid: np.ndarray, test: np.ndarray, rest: np.ndarray, unsure: np.ndarray, use: str, valid_ratio: float
) -> None:
    parts = {"train": train, "valid": valid, "test": test, "all": rest, "unsure": unsure}
    split = divide(parts, "given: here", DataConfig(use_valid_links=use, valid_ratio=valid_ratio), 0, HERE)  # type: ignore[arg-type]
    sets = [set(part.tolist()) for part in (split.train, split.valid, split.test, split.unsure)]
    assert sum(map(len, sets)) == len(set().union(*sets))
    assert set().union(*sets) == {key for part in parts.values() for key in part.tolist()}
    assert sets[0] | sets[1] == set(train.tolist()) | (set(valid.tolist()))


def test_another_seed_draws_another_split() -> None:
    known = np.arange(100)
    drawn = {tuple(divide({"all": known}, "", DataConfig(), seed, HERE).train) for seed in range(5)}
    assert len(drawn) == 5
    assert all(len(train) == 30 for train in drawn)


def test_validation_leaves_the_test_alone() -> None:
    known = np.arange(100)
    plain, held = (divide({"all": known}, "", DataConfig(valid_ratio=ratio), 3, HERE) for ratio in (0.0, 0.2))
    assert np.array_equal(plain.test, held.test)
    assert len(held.valid) == 6
    assert set(held.valid) < set(plain.train)


class TestOpenEA:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Fold 1: Rome and Paris train, Berlin valid, the rest test. Fold 2: only Oslo trains, Bern is in no part."""
        sample = small_sample()
        write_openea(tmp_path, sample)
        rome, paris, berlin, oslo, bern, wien = sample.links
        put(tmp_path / "721_5fold/1/valid_links", tabbed([berlin]))
        put(tmp_path / "721_5fold/1/test_links", tabbed([oslo, bern, wien]))
        put(tmp_path / "721_5fold/2/train_links", tabbed([oslo]))
        put(tmp_path / "721_5fold/2/test_links", tabbed([rome, paris, berlin, wien]))
        return tmp_path

    def test_first_fold(self, folder: Path) -> None:
        task = load_task(folder)
        assert (pairs(task, "train"), pairs(task, "valid"), pairs(task, "test")) == ({"Rome", "Paris"}, {"Berlin"}, {"Oslo", "Bern", "Wien"})
        assert task.split == "given: 721_5fold/1"
        assert task.findings == ()

    def test_another_fold(self, folder: Path) -> None:
        task = load_task(folder, DataConfig(fold="2"))
        assert pairs(task, "train") == {"Oslo"}
        assert pairs(task, "unsure") == {"Bern"}
        assert [finding.code for finding in task.findings] == ["links-outside-split"]

    def test_validation_links_as_seeds(self, folder: Path) -> None:
        task = load_task(folder, DataConfig(use_valid_links="train"))
        assert pairs(task, "train") == {"Rome", "Paris", "Berlin"}
        assert len(task.valid_links) == 0
        assert "validation links used as seeds" in task.split

    def test_given_validation_links_go_before_a_ratio(self, folder: Path) -> None:
        assert pairs(load_task(folder, DataConfig(valid_ratio=0.5)), "valid") == {"Berlin"}

    def test_a_ratio_redraws_everything(self, folder: Path) -> None:
        task = load_task(folder, DataConfig(train_ratio=0.5, valid_ratio=0.34), seed=7)
        assert (len(task.train_links), len(task.valid_links), len(task.test_links)) == (2, 1, 3)
        assert task.split == "random 50/50, seed 7; 34 % of the training links held out, seed 7"

    def test_fingerprint_does_not_depend_on_the_split(self, folder: Path) -> None:
        assert load_task(folder).fingerprint == load_task(folder, DataConfig(train_ratio=0.5), seed=3).fingerprint

    def test_a_training_pair_in_the_test_is_taken_out(self, folder: Path) -> None:
        path = folder / "721_5fold/1/test_links"
        put(path, path.read_text() + tabbed(small_sample().links[:2]))
        task = load_task(folder)
        assert pairs(task, "test") == {"Oslo", "Bern", "Wien"}
        assert {finding.code: finding.count for finding in task.findings} == {"train-test-leakage": 2}

    def test_links_without_folds(self, folder: Path) -> None:
        for path in sorted((folder / "721_5fold").rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        (folder / "721_5fold").rmdir()
        task = load_task(folder)
        assert (len(task.train_links), len(task.test_links)) == (6, 0)  # without its folds it is no benchmark
        assert task.split == "all known links train"


class TestSeedsInsideOfTheReference:
    """srprs_dbp_*: ``ref_ent_ids`` holds all links, the training ones included."""

    def test_they_do_not_leak(self, tmp_path: Path) -> None:
        write_dbp15k(tmp_path, small_sample())
        task = load_task(tmp_path)
        assert pairs(task, "train") == {"Rome", "Paris"}
        assert pairs(task, "test") == {"Berlin", "Oslo", "Bern", "Wien"}
        assert [finding.code for finding in task.findings] == ["train-test-leakage"]


@pytest.mark.parametrize(
    ("count", "train", "words"),
    [
        (12, 12, "all known links train"),
        (499, 499, "all known links train"),
        (500, 400, "random 80/20, seed 3"),
        (2000, 1600, "random 80/20, seed 3"),
    ],
)
def test_known_links_of_a_users_own_train_all_or_most(count: int, train: int, words: str) -> None:
    known = np.arange(count, dtype=np.int64)
    split = divide({"all": known}, "", DataConfig(), 3, HERE, own=True)
    assert (len(split.train), len(split.test), split.description) == (train, count - train, words)
    asked = divide({"all": known}, "", DataConfig(train_ratio=0.5), 3, HERE, own=True)
    assert len(asked.train) == round(count / 2)
    held = divide({"all": known}, "", DataConfig(valid_ratio=0.25), 3, HERE, own=True)
    assert len(held.valid) == round(train / 4)
    given = divide({"train": known[:4], "test": known[4:]}, "given: here", DataConfig(), 3, HERE, own=True)
    assert len(given.train) == 4


def test_benchmarks_keep_their_protocol(tmp_path: Path) -> None:
    sample = small_sample()
    for write, own in ((write_dbp15k, False), (write_csv, True), (write_rdf, True), (write_openea, False)):
        write(tmp_path / write.__name__, sample)
        assert load_task(tmp_path / write.__name__).own_links is own, write.__name__
    assert not load_task(Path("sample_data") / "europe").own_links  # OpenEA's layout with its folds
    assert not load_task(Path("sample_data") / "europe", DataConfig(train_ratio=0.1)).own_links
