"""Training with reviews: which links move, what is never selected, and that a run can be made again from what it keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.cli.main import main
from engine.config import RunConfig
from engine.data import AlignmentTask, load_task
from engine.errors import ReviewError
from engine.pipeline import train_run
from engine.reviews import Choice, ReviewStore, Snapshot, describe_reviews, with_reviews
from engine.reviews.snapshot import ReviewedPair
from engine.runs import RunStore
from engine.training.trainer import Trainer
from engine.util.paths import reviews_file
from tests.data.writers import Sample, put, tabbed, write_openea

TOWNS = 14
SMALL = RunConfig(variant="semi").with_values(
    {
        "encoder.dim": 8,
        "encoder.proxies": 4,
        "semi.rounds": 2,
        "semi.round_epochs": 2,
        "semi.threshold": 0.0,
        "training.epochs": 6,
        "training.checkpoint_seconds": 0.0,
        "training.threads": 1,
    }
)


def left(number: int) -> str:
    return f"http://left.org/town_{number:02}"


def right(number: int) -> str:
    return f"http://right.org/town_{number:02}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two rings with chords, all towns linked: 0 to 3 are seeds, 4 and 5 validation, the others test links."""

    def ring(name: Any, relation: str) -> tuple[tuple[str, str, str], ...]:
        return tuple((name(one), relation, name((one + step) % TOWNS)) for one in range(TOWNS) for step in (1, 3 + one % 2))

    links = tuple((left(one), right(one)) for one in range(TOWNS))
    write_openea(tmp_path / "rings", Sample(ring(left, "http://left.org/near"), ring(right, "http://right.org/nah"), links, links[:4]))
    fold = next((tmp_path / "rings").rglob("test_links")).parent
    put(fold / "valid_links", tabbed(links[4:6]))
    put(fold / "test_links", tabbed(links[6:]))
    return tmp_path / "rings"


@pytest.fixture
def task(data: Path) -> AlignmentTask:
    return load_task(data)


def snapshot(task: AlignmentTask, accepted: Sequence[tuple[int, int]] = (), rejected: Sequence[tuple[int, int]] = ()) -> Snapshot:
    pairs = [ReviewedPair(left(one), right(two), 1, 0) for one, two in accepted] + [
        ReviewedPair(left(one), right(two), 0, 1) for one, two in rejected
    ]
    return Snapshot(task.fingerprint, tuple(sorted(pairs, key=lambda one: one.pair)), 1)


def pairs(links: Any) -> list[tuple[int, int]]:
    return [tuple(link) for link in links.tolist()]


def test_the_fixture_is_split_as_it_says(task: AlignmentTask) -> None:
    assert pairs(task.train_links) == [(one, one) for one in range(4)]
    assert pairs(task.valid_links) == [(4, 4), (5, 5)]
    assert pairs(task.test_links) == [(one, one) for one in range(6, TOWNS)]


def test_an_accepted_test_link_is_a_seed_and_leaves_the_test(task: AlignmentTask) -> None:
    found, effect = with_reviews(task, snapshot(task, accepted=[(6, 6), (4, 4), (0, 0)]))
    assert pairs(found.train_links) == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (6, 6)]
    assert pairs(found.valid_links) == [(5, 5)]
    assert pairs(found.test_links) == [(one, one) for one in range(7, TOWNS)]
    assert not len(found.unsure_links)
    assert (effect.accepted, effect.new_seeds, effect.test_to_seeds, effect.valid_to_seeds) == (3, 2, 1, 1)
    assert (effect.test_set_aside, effect.contested) == (0, 0)
    assert found.fingerprint == task.fingerprint
    assert found.split.startswith(task.split)
    assert effect.digest[:8] in found.split


def test_a_rejected_pair_takes_the_test_links_of_both_its_entities_out_of_the_test(task: AlignmentTask) -> None:
    found, effect = with_reviews(task, snapshot(task, rejected=[(7, 8), (9, 4)]))
    assert pairs(found.rejected_links) == [(7, 8), (9, 4)]
    assert pairs(found.train_links) == pairs(task.train_links)
    assert pairs(found.test_links) == [(one, one) for one in (6, 10, 11, 12, 13)]
    assert pairs(found.valid_links) == [(5, 5)]
    assert pairs(found.unsure_links) == [(4, 4), (7, 7), (8, 8), (9, 9)]
    assert (effect.test_set_aside, effect.valid_set_aside, effect.test_to_seeds) == (3, 1, 0)


def test_no_entity_of_a_reviewed_pair_is_evaluated_on(task: AlignmentTask) -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        drawn = [(int(one), int(two)) for one, two in {tuple(pair) for pair in draw.integers(0, TOWNS, (5, 2)).tolist()}]
        found, _ = with_reviews(task, snapshot(task, accepted=drawn[:2], rejected=drawn[2:]))
        for links in (found.test_links, found.valid_links):
            assert not set(links[:, 0].tolist()) & {source for source, _ in drawn}
            assert not set(links[:, 1].tolist()) & {target for _, target in drawn}
        parts = [pairs(part) for part in found.all_links()]
        assert sum(len(part) for part in parts) == len({pair for part in parts for pair in part}), "each link has one role"
        known = {pair for part in task.all_links() for pair in pairs(part)}
        assert known <= {pair for part in parts for pair in part}, "no known link is lost"
        assert set(drawn[:2]) <= set(parts[0])
        assert not set(drawn[2:]) & set(parts[0])


def test_a_rejected_seed_link_is_not_trained_on(task: AlignmentTask) -> None:
    found, effect = with_reviews(task, snapshot(task, rejected=[(0, 0)]))
    assert (0, 0) not in pairs(found.train_links)
    assert (0, 0) in pairs(found.unsure_links)
    assert effect.seeds_rejected == 1
    with pytest.raises(ReviewError, match="reject all seed links"):
        with_reviews(task, snapshot(task, rejected=[(one, one) for one in range(4)]))


def test_an_accepted_pair_beside_another_seed_is_warned_of(task: AlignmentTask) -> None:
    found, effect = with_reviews(task, snapshot(task, accepted=[(0, 9), (10, 10)]))
    assert effect.contested == 1
    assert [finding.code for finding in found.findings if "review" in finding.code] == ["reviews", "contested-reviews"]


def test_reviews_of_other_data_are_refused(task: AlignmentTask) -> None:
    with pytest.raises(ReviewError, match="belong to other data"):
        with_reviews(task, dataclasses.replace(snapshot(task, [(6, 6)]), fingerprint="0" * 64))
    strange = Snapshot(task.fingerprint, (ReviewedPair("http://nowhere", right(1), 1, 0),))
    with pytest.raises(ReviewError, match="'http://nowhere', which is not an entity"):
        with_reviews(task, strange)


@pytest.mark.parametrize("selection", ["mutual", "sinkhorn", "propagation", "matchings"])
def test_a_rejected_pair_is_never_selected_and_its_entities_may_be(task: AlignmentTask, selection: str) -> None:
    config = SMALL.with_values({"semi.selection": selection})
    chosen = [pair for one in Trainer(task, config).train().selections for pair in pairs(one.pairs)]
    assert chosen
    rejected = sorted(set(chosen))
    found, _ = with_reviews(task, snapshot(task, rejected=rejected))
    again = [pair for one in Trainer(found, config).train().selections for pair in pairs(one.pairs)]
    assert again
    assert not set(again) & set(rejected)
    assert {source for source, _ in again} & {source for source, _ in rejected}


# Runs


def decided(data: Path, models: Path) -> ReviewStore:
    store, fingerprint = ReviewStore(reviews_file(models)), load_task(data).fingerprint
    store.decide(fingerprint, [Choice(left(6), right(6), "accept"), Choice(left(7), right(8), "reject")], "Ann", "1")
    store.decide(fingerprint, Choice(left(9), right(9), "accept"), "Ann", "2")
    store.decide(fingerprint, Choice(left(9), right(9), "reject"), "Bob", "3")
    return store


def test_a_run_keeps_its_reviews_and_can_be_made_again_from_them(data: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    store = decided(data, models)
    plain = train_run(data, SMALL, RunStore(models)).run
    run = train_run(data, SMALL, RunStore(models), reviews=reviews_file(models)).run
    assert run.run_id != plain.run_id
    assert run.manifest["data"]["fingerprint"] == plain.manifest["data"]["fingerprint"]
    effect = run.manifest["reviews"]
    assert (effect["votes"], effect["authors"], effect["accepted"], effect["rejected"], effect["undecided"]) == (4, 2, 1, 1, 1)
    assert (effect["test_to_seeds"], effect["test_set_aside"]) == (1, 2)
    assert describe_reviews(plain.manifest) is None
    message = describe_reviews(run.manifest)
    assert message is not None
    assert "4 decisions by 2 reviewers" in message
    assert "3 test links removed from the test set" in message
    links = run.table("links")
    assert int((links["role"] == "test").sum()) == int((plain.table("links")["role"] == "test").sum()) - 3
    assert train_run(data, SMALL, RunStore(models), reviews=reviews_file(models)).reused
    store.decide(load_task(data).fingerprint, Choice(left(10), right(10), "accept"), "Ann", "4")
    again = train_run(data, SMALL, RunStore(tmp_path / "elsewhere"), reviews=run.path / "reviews.parquet").run
    assert again.run_id == run.run_id
    assert again.manifest["reviews"]["digest"] == effect["digest"]
    assert torch.equal(*(torch.from_numpy(one.tensor("embeddings", "source").copy()) for one in (run, again)))
    assert not train_run(data, SMALL, RunStore(models), reviews=reviews_file(models)).reused, "another decision, another run"
    store.close()


def test_an_interrupted_run_resumes_to_the_same_bits(data: Path, tmp_path: Path) -> None:
    store = decided(data, tmp_path / "models")
    reviews, asked = reviews_file(tmp_path / "models"), iter(range(10_000))
    whole = train_run(data, SMALL, RunStore(tmp_path / "one"), reviews=reviews).run
    stopped = train_run(data, SMALL, RunStore(tmp_path / "two"), reviews=reviews, should_stop=lambda: next(asked) >= 8).run
    assert stopped.manifest["status"] == "stopped"
    partial = stopped.path.with_name(f".partial-{whole.run_id}")
    store.decide(load_task(data).fingerprint, Choice(left(11), right(11), "accept"), "Ann", "late")
    resumed = train_run(data, SMALL, RunStore(tmp_path / "two"), reviews=partial / "reviews.parquet").run
    assert resumed.run_id == whole.run_id
    for side in ("source", "target"):
        assert np.array_equal(resumed.tensor("embeddings", side), whole.tensor("embeddings", side))
    assert resumed.metrics == whole.metrics
    store.close()


def test_the_command_trains_with_reviews(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = tmp_path / "models"
    words = ["train", str(data), "--models", str(models), "--epochs", "2", "--set", "encoder.dim=8"]
    assert main([*words, "--with-reviews"]) == 2
    assert "there are no reviews in" in capsys.readouterr().err
    decided(data, models).close()
    assert main([*words, "--with-reviews"]) == 0
    assert "1 pair accepted as seed links (1 new), 1 rejected" in capsys.readouterr().err
    assert main([*words, "--with-reviews", str(reviews_file(models))]) == 0
    assert "already exists" in capsys.readouterr().err


def test_literal_runs_are_built_on_the_reviewed_structure(data: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    decided(data, models).close()
    run = train_run(
        data, dataclasses.replace(SMALL, variant="literal").with_values({"literal.names": "uri"}), RunStore(models), reviews=reviews_file(models)
    ).run
    below = RunStore(models).find(run.manifest["training"]["structure_run"])
    assert below.manifest["reviews"] == run.manifest["reviews"]
    assert below.table("reviews").equals(run.table("reviews"))
