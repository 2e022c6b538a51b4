"""Semi-supervised rounds: what is selected, that the truth plays no part, and that stopping and resuming change nothing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import RunConfig, SemiConfig
from engine.data import AlignmentTask, load_task
from engine.decoding import Candidates, GraphEvidence
from engine.decoding.graph_evidence import Incidence
from engine.decoding.sinkhorn import SinkhornDecoder
from engine.errors import ConfigError
from engine.evaluation.metrics import evaluate_links
from engine.pipeline import make_run_id
from engine.training.schedule import first_epochs, round_epochs
from engine.training.semi import (
    Pool,
    Round,
    Selection,
    SharedWorth,
    choices_of,
    confident_pairs,
    mutual_pairs,
    no_selection,
    rounds_protocol,
    select_pairs,
    selection_pool,
    taken,
    with_more,
)
from engine.training.trainer import Trainer, split_embeddings
from tests.training.test_trainer import Memory, every_epoch

EUROPE = Path(__file__).resolve().parents[2] / "sample_data" / "europe"
SMALL = RunConfig(variant="semi").with_values(
    {
        "encoder.dim": 12,
        "encoder.proxies": 8,
        "training.epochs": 6,
        "training.batch_size": 25,  # three steps an epoch before the rounds
        "training.validate_every": 100,
        "semi.rounds": 3,
        "semi.round_epochs": 2,
    }
)
SELECTIONS = ["matchings", "propagation", "sinkhorn", "mutual"]


@pytest.fixture(scope="module")
def task() -> AlignmentTask:
    return load_task(EUROPE)


@pytest.fixture(scope="module")
def small_task(small_europe: Path) -> AlignmentTask:
    return load_task(small_europe)


def noisy_pair(n: int, noise: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Row i of one side is row i of the other, with noise."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.randn(n, 16, generator=generator)
    return source, source + noise * torch.randn(n, 16, generator=generator)


def everyone(n: int, m: int) -> Pool:
    return Pool(np.arange(n), np.arange(m), "entities")


def bare(n: int) -> GraphEvidence:
    """Two graphs of n entities without a triple."""
    nothing = Incidence.of(np.empty((0, 3), dtype=np.int64), n)
    return GraphEvidence(nothing, nothing, np.empty((0, 2), dtype=np.int64), np.arange(n), np.arange(n))


def brute_force_mutual(source: torch.Tensor, target: torch.Tensor, k: int) -> set[tuple[int, int]]:
    unit = [torch.nn.functional.normalize(one.double(), dim=1) for one in (source, target)]
    cosine = unit[0] @ unit[1].T
    r = [cosine.topk(min(k, cosine.shape[dim]), dim).values.mean(dim) for dim in (1, 0)]
    csls = 2 * cosine - r[0][:, None] - r[1][None]
    forward, backward = csls.argmax(1).tolist(), csls.argmax(0).tolist()
    return {(i, j) for i, j in enumerate(forward) if backward[j] == i}


@pytest.mark.parametrize("k", [1, 10])
def test_mutual_pairs_are_each_others_nearest(k: int) -> None:
    source, target = noisy_pair(60, 0.8)
    found = mutual_pairs(source, target[:50], everyone(60, 50), k)
    assert set(map(tuple, found.pairs.tolist())) == brute_force_mutual(source, target[:50], k)


def test_confident_pairs_are_right_where_it_is_easy_and_few_where_it_is_hard() -> None:
    decoder, threshold = SinkhornDecoder(), 0.5
    easy, hard = (confident_pairs(*noisy_pair(80, noise), everyone(80, 80), threshold, 10, decoder) for noise in (0.1, 5.0))
    assert (easy.pairs[:, 0] == easy.pairs[:, 1]).all()
    assert len(easy) == 80
    assert (easy.scores > threshold).all()
    assert len(hard) < len(easy)
    surer = confident_pairs(*noisy_pair(80, 0.8), everyone(80, 80), 0.9, 10, decoder)
    assert len(surer) < len(confident_pairs(*noisy_pair(80, 0.8), everyone(80, 80), threshold, 10, decoder))


@pytest.mark.parametrize("selection", SELECTIONS)
def test_no_pair_is_selected_from_an_empty_pool(selection: str) -> None:
    source, target = noisy_pair(5, 0.1)
    config = SemiConfig(selection=selection)  # type: ignore[arg-type]
    for pool in (everyone(0, 5), everyone(5, 0), everyone(0, 0)):
        assert len(select_pairs(source, target, pool, config, 10, no_selection(), lambda: bare(5))) == 0


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_pool_smaller_than_k(selection: str) -> None:
    source, target = noisy_pair(3, 0.01)
    config = SemiConfig(selection=selection)  # type: ignore[arg-type]
    found = select_pairs(source, target, everyone(3, 3), config, 10, no_selection(), lambda: bare(3))
    assert len(found) <= 3


def test_propagation_needs_the_graphs() -> None:
    with pytest.raises(ConfigError, match="needs the graphs"):
        select_pairs(*noisy_pair(5, 0.1), everyone(5, 5), SemiConfig(selection="propagation"), 10, no_selection())


def test_mutual_keeps_what_was_selected_and_adds(task: AlignmentTask) -> None:
    source, target = noisy_pair(40, 0.3)
    config, pool = SemiConfig(selection="mutual"), everyone(40, 40)
    first = select_pairs(source, target, Pool(pool.sources[:20], pool.targets[:20], ""), config, 5, no_selection())
    second = select_pairs(source, target, pool, config, 5, first)
    assert second.pairs[: len(first)].tolist() == first.pairs.tolist()
    assert len(second) > len(first)
    for side in range(2):
        assert len(np.unique(second.pairs[:, side])) == len(second)


def diagonal(n: int, first: int = 0) -> Selection:
    """Pairs (i, i) from ``first`` on."""
    numbers = np.arange(first, n)
    return Selection(np.stack([numbers, numbers], axis=1), np.ones(len(numbers), dtype=np.float32))


def shared_values(n: int, pairs: list[tuple[int, int]], worth: float = 1.0) -> Candidates:
    """A value for each pair: 1 if only the two have it."""
    sources, targets = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    scores = np.full(len(pairs), worth, dtype=np.float32)
    return Candidates((n, n), sources, targets, scores, scores, 30)


def as_set(selection: Selection) -> set[tuple[int, int]]:
    return {(source, target) for source, target in selection.pairs.tolist()}


def test_draws_begin_with_pairs_that_share_distinctive_values() -> None:
    config = SemiConfig(selection="matchings", temperature=10.0)  # so flat a plan that propagation is sure of no pair
    choose = partial(select_pairs, *noisy_pair(40, 0.1), everyone(40, 40), config, 10, no_selection(), lambda: bare(40))
    assert not len(choose())
    assert not len(choose(values=SharedWorth(shared_values(40, []), diagonal(40))))
    common = shared_values(40, [(39, 39)], worth=0.1)
    assert not len(choose(values=SharedWorth(common, diagonal(40))))
    assert as_set(choose(values=SharedWorth(shared_values(40, [(39, 39)]), diagonal(40)))) == {(i, i) for i in range(40)}


def test_the_pairs_of_a_start_are_dropped_where_similarity_contradicts_them() -> None:
    wrong = [(i, (i + 1) % 40) for i in range(0, 40, 2)]
    choose = partial(select_pairs, *noisy_pair(40, 0.02), everyone(40, 40), SemiConfig(), 10, no_selection(), lambda: bare(40))
    begin = Selection(np.array(wrong), np.ones(len(wrong), dtype=np.float32))
    assert as_set(choose(values=SharedWorth(shared_values(40, wrong, worth=0.5), begin))) == {(i, i) for i in range(40)}


def test_shared_values_distinguish_what_structure_does_not() -> None:
    """Siblings: rows of one graph are all alike, and so are those of the other."""
    source = torch.ones(12, 16) + 0.001 * noisy_pair(12, 0)[0]
    order = np.random.default_rng(1).permutation(12)
    choose = partial(select_pairs, source, source.flip(0), everyone(12, 12), SemiConfig(), 3, no_selection(), lambda: bare(12))
    assert len(as_set(choose()) & set(enumerate(order.tolist()))) < 4
    named = list(enumerate(order.tolist()))
    found = as_set(choose(values=SharedWorth(shared_values(12, named), Selection(np.array(named), np.ones(12, dtype=np.float32)))))
    assert len(found & set(named)) >= 10


def test_rejected_pairs_that_share_values_are_not_selected() -> None:
    rejected = dataclasses.replace(everyone(40, 40), rejected=np.array([[3, 3], [5, 6]]))
    values = SharedWorth(shared_values(40, [(3, 3), (5, 6), (7, 8)]), diagonal(40))
    found = as_set(select_pairs(*noisy_pair(40, 0.1), rejected, SemiConfig(), 10, no_selection(), lambda: bare(40), values=values))
    assert not found & {(3, 3), (5, 6)}
    assert (7, 7) in found


def test_choices_of_pairs_that_are_no_candidates_are_none() -> None:
    pool = Pool(np.array([2, 5, 7]), np.array([1, 4]), "entities")
    sources, targets, scores = np.array([0, 0, 2]), np.array([0, 1, 1]), np.ones(3, dtype=np.float32)
    candidates = Candidates((3, 2), sources, targets, scores, scores, 2)
    selection = Selection(np.array([[7, 4], [5, 1], [2, 1]]), np.ones(3, dtype=np.float32))
    assert choices_of(selection, candidates, pool).tolist() == [0, -1, 2]
    assert choices_of(no_selection(), candidates, pool).tolist() == [-1, -1, -1]
    assert taken(choices_of(selection, candidates, pool), targets, scores, pool).pairs.tolist() == [[2, 1], [7, 4]]


def test_more_choices_take_no_target_twice() -> None:
    targets = np.array([0, 1, 1, 2])
    assert with_more(np.array([0, -1, -1]), np.array([1, 2, 3]), targets).tolist() == [0, 2, 3]
    assert with_more(np.array([1, -1, -1]), np.array([0, 2, 3]), targets).tolist() == [1, -1, 3]


def test_pools_leave_out_seeds(task: AlignmentTask) -> None:
    for name in ("auto", "test", "all"):
        pool = selection_pool(task, SemiConfig(pool=name))  # type: ignore[arg-type]
        assert not np.intersect1d(pool.sources, task.train_links[:, 0]).size
        assert not np.intersect1d(pool.targets, task.train_links[:, 1]).size
    assert len(selection_pool(task, SemiConfig(pool="auto")).sources) == len(task.test_links)
    without_test = dataclasses.replace(task, test_links=task.test_links[:0])
    assert len(selection_pool(without_test, SemiConfig()).sources) == task.source.num_entities - len(task.train_links)


LEARNING = RunConfig(variant="semi").with_values({"encoder.dim": 32, "training.epochs": 25, "semi.rounds": 2, "semi.round_epochs": 5})


def hits_of(trainer: Trainer, task: AlignmentTask) -> float:
    source, target = split_embeddings(trainer.embed(), task.source.num_entities)
    return evaluate_links(source, target, task.test_links, bootstrap=0).target_to_source.hits_at_1


@pytest.fixture(scope="module")
def hits_without_rounds(task: AlignmentTask) -> float:
    trainer = Trainer(task, dataclasses.replace(LEARNING, variant="basic"))
    trainer.train()
    return hits_of(trainer, task)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_rounds_help_and_are_reported(task: AlignmentTask, hits_without_rounds: float, selection: str) -> None:
    rounds: list[Round] = []
    trainer = Trainer(task, LEARNING.with_values({"semi.selection": selection}))
    trained = trainer.train(on_progress=lambda event: rounds.append(event) if isinstance(event, Round) else None)
    assert hits_of(trainer, task) > hits_without_rounds + 0.03
    assert [one.number for one in rounds] == [0, 1, 2]
    assert all(0 < one.right <= one.known <= one.selected for one in rounds)
    assert trained.epochs == 35
    assert [len(selection) for selection in trained.selections] == [one.selected for one in rounds[1:]]
    assert [line["round"] for line in trained.trace if "round" in line] == [0, 1, 2]


def final(task: AlignmentTask, config: RunConfig, **options: Any) -> torch.Tensor:
    trainer = Trainer(task, config)
    trainer.train(**options)
    return trainer.embed()


@pytest.fixture(scope="module")
def unbroken(small_task: AlignmentTask) -> Callable[[str], torch.Tensor]:
    """The embeddings of a training by a selection that nothing interrupts."""
    return cache(lambda selection: final(small_task, SMALL.with_values({"semi.selection": selection})))


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("after_steps", [17, *(pytest.param(steps, marks=pytest.mark.slow) for steps in (18, 19, 22, 30))])
def test_stopped_within_and_between_rounds_and_resumed_equals_unbroken(
    small_task: AlignmentTask, unbroken: Callable[[str], torch.Tensor], selection: str, after_steps: int
) -> None:
    config = SMALL.with_values({"semi.selection": selection})
    checkpoints, asked = Memory(), iter(range(10_000))
    assert Trainer(small_task, config).train(checkpoints=checkpoints, should_stop=lambda: next(asked) >= after_steps).stopped
    assert torch.equal(final(small_task, config, checkpoints=checkpoints), unbroken(selection))


@pytest.mark.parametrize("kill", [6, *(pytest.param(kill, marks=pytest.mark.slow) for kill in (7, 8, 9))])
def test_killed_between_rounds_and_resumed_equals_unbroken(small_task: AlignmentTask, unbroken: Callable[[str], torch.Tensor], kill: int) -> None:
    checkpoints = Memory(die_at=kill)
    with pytest.raises(RuntimeError, match="killed"):
        final(small_task, every_epoch(SMALL), checkpoints=checkpoints)
    checkpoints.die_at = None
    trainer = Trainer(small_task, every_epoch(SMALL))
    trained = trainer.train(checkpoints=checkpoints)
    assert torch.equal(trainer.embed(), unbroken(SMALL.semi.selection))
    assert [line["round"] for line in trained.trace if "round" in line] == [0, 1, 2, 3]
    assert len(trained.selections) == 3


def test_test_links_choose_nothing(small_task: AlignmentTask) -> None:
    """The same pool, another truth: the same training."""
    turned = small_task.test_links.copy()
    turned[:, 1] = np.roll(turned[:, 1], 1)
    other = dataclasses.replace(small_task, test_links=turned)
    assert torch.equal(final(small_task, SMALL), final(other, SMALL))


@pytest.mark.parametrize(
    ("links", "pairs", "epochs"), [(4500, 4500, 2), (30_000, 90_000, 2), (710, 710, 9), (1, 1, 9), (2000, 2000, 3), (45, 4669, 2)]
)
def test_the_rule_for_epochs_of_a_round(links: int, pairs: int, epochs: int) -> None:
    semi = RunConfig(variant="semi")
    assert round_epochs(semi, links, pairs) == epochs
    assert round_epochs(semi.with_values({"training.effort": 0.4}), links, pairs) == math.ceil(0.4 * epochs)
    assert round_epochs(semi.with_values({"training.effort": 0.4, "semi.round_epochs": 3}), links, pairs) == 3


def test_many_pairs_to_start_with_take_fewer_epochs() -> None:
    semi = RunConfig(variant="semi")
    assert first_epochs(semi, 4500, 10_646) == 6
    assert first_epochs(semi, 45, 12_000) == 6
    assert first_epochs(semi, 45, 6000) == 7
    assert first_epochs(semi, 45, 3000) == 15
    assert first_epochs(semi, 45, 500) == 30


def test_on_data_of_a_users_own_rounds_select_among_all_entities(task: AlignmentTask) -> None:
    own = dataclasses.replace(task, own_links=True)
    assert len(own.test_links)
    assert len(selection_pool(own, SemiConfig()).sources) == own.source.num_entities - len(own.train_links)
    assert len(selection_pool(own, SemiConfig(pool="test")).sources) == len(own.test_links)
    assert make_run_id(own, RunConfig(variant="semi")) != make_run_id(task, RunConfig(variant="semi"))
    assert make_run_id(own, RunConfig()) == make_run_id(task, RunConfig())


@pytest.mark.parametrize(
    ("variant", "pool", "own", "test", "said"),
    [
        ("semi", "auto", None, 9, True),
        ("semi", "auto", False, 9, True),
        ("literal", "auto", False, 9, True),
        ("semi", "test", True, 9, True),
        ("semi", "auto", True, 9, False),
        ("semi", "auto", False, 0, False),
        ("semi", "all", False, 9, False),
        ("basic", "auto", False, 9, False),
    ],
)
def test_figures_say_what_rounds_chose_among(variant: str, pool: str, own: bool | None, test: int, said: bool) -> None:
    """Manifests without the key are of runs before own data had a policy of their own."""
    data = {"links": {"test": test}, **({} if own is None else {"own_links": own})}
    manifest = {"variant": variant, "data": data, "config": {"semi": {"pool": pool, "rounds": 4}}}
    assert rounds_protocol(manifest) == ("rounds chose among entities known to have a counterpart" if said else "")
    assert rounds_protocol({}) == ""
