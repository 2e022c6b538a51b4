"""What training starts from besides the seed links."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import DataConfig, RunConfig, SemiConfig
from engine.data import AlignmentTask, load_task
from engine.data.knowledge_graph import KnowledgeGraph, empty_attributes
from engine.errors import TrainingError
from engine.training.schedule import LEAST_ROUND_EPOCHS, LEAST_ROUND_STEPS, LEAST_STARTED_EPOCHS, LEAST_STARTED_STEPS, MOST_BATCH
from engine.training.semi import Round, Selection, selection_pool
from engine.training.start import implied_pairs, resolve_start, start_pairs, values_in_rounds
from engine.training.trainer import Trainer
from engine.util.paths import SAMPLES
from tests.training.test_trainer import Memory

SETTINGS: dict[str, Any] = {"encoder.dim": 16, "training.epochs": 2, "semi.rounds": 1, "semi.round_epochs": 1}


@pytest.fixture(scope="module")
def europe() -> AlignmentTask:
    return load_task(SAMPLES / "europe", DataConfig(train_ratio=0.1), 0)


@pytest.fixture(scope="module")
def unlinked(europe: AlignmentTask) -> AlignmentTask:
    nothing = europe.train_links[:0]
    return replace(europe, train_links=nothing, valid_links=nothing, test_links=nothing, unsure_links=nothing)


def starts(task: AlignmentTask, **values: Any) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """The pairs, and those of them that are right."""
    config = SemiConfig(**values)
    pairs = {(a, b) for a, b in start_pairs(task, config, selection_pool(task, config)).pairs.tolist()}
    return pairs, pairs & {(a, b) for a, b in task.test_links.tolist()}


@pytest.mark.parametrize(
    ("start", "seeds", "means"),
    [
        ("auto", 20, "triples"),
        ("auto", 19, "values"),
        ("auto", 0, "values"),
        ("values", 3, "values"),
        ("triples", 3, "triples"),
        ("seeds", 3, "seeds"),
    ],
)
def test_what_auto_means(start: Any, seeds: int, means: str) -> None:
    assert resolve_start(SemiConfig(start=start), seeds) == means


def test_triples_bring_pairs_that_are_mostly_right_and_values_many_more(europe: AlignmentTask) -> None:
    by_triples, right = starts(europe)
    assert len(by_triples) >= 20
    assert len(right) > 0.6 * len(by_triples)
    by_values, right_by_values = starts(europe, start="values")
    assert len(right_by_values) > 2 * len(right)
    assert len(right_by_values) > 0.8 * len(by_values)
    assert starts(europe, start="seeds") == (set(), set())


def test_values_that_many_share_are_settled_by_the_triples_between_their_entities(unlinked: AlignmentTask, europe: AlignmentTask) -> None:
    """Without names little but populations to within a tenth is left: by itself that is mostly ambiguous."""
    config, names = SemiConfig(), frozenset({"name", "Name"})
    truth = {(a, b) for a, b in np.concatenate([europe.train_links, europe.test_links]).tolist()}
    pool = selection_pool(unlinked, config)
    alone, drawn = implied_pairs(unlinked, config, pool, names)[0], start_pairs(unlinked, config, pool, names)
    right = [len({(a, b) for a, b in found.pairs.tolist()} & truth) for found in (alone, drawn)]
    assert right[1] > 1.3 * right[0]
    assert right[1] / len(drawn) > right[0] / len(alone) + 0.1
    rejected = replace(pool, rejected=drawn.pairs[:5])
    assert not {(a, b) for a, b in start_pairs(unlinked, config, rejected, names).pairs.tolist()} & {(a, b) for a, b in drawn.pairs[:5].tolist()}


@pytest.mark.parametrize("links", [1, 5])
def test_a_few_links_are_no_worse_a_start_than_none(europe: AlignmentTask, unlinked: AlignmentTask, links: int) -> None:
    truth = {(a, b) for a, b in np.concatenate([europe.train_links, europe.test_links]).tolist()}
    config = SemiConfig()
    few = replace(unlinked, train_links=europe.train_links[:links])
    found, without = (start_pairs(task, config, selection_pool(task, config)).pairs.tolist() for task in (few, unlinked))
    right, right_without = ({(a, b) for a, b in pairs} & truth for pairs in (found, without))
    assert len(right) + links >= len(right_without) > 100


def test_no_test_link_is_looked_at(europe: AlignmentTask) -> None:
    config = SemiConfig(pool="all")
    blind = replace(europe, test_links=europe.test_links[:0])
    ours, theirs = (start_pairs(task, config, selection_pool(task, config)) for task in (europe, blind))
    assert np.array_equal(ours.pairs, theirs.pairs)


def test_no_seed_link_is_contradicted(europe: AlignmentTask) -> None:
    pairs, _ = starts(europe, start="values", pool="all")
    for side in range(2):
        assert not {pair[side] for pair in pairs} & set(europe.train_links[:, side].tolist())


def test_without_links_training_starts_from_values(unlinked: AlignmentTask) -> None:
    trainer, rounds = Trainer(unlinked, RunConfig(variant="semi").with_values(SETTINGS)), []
    trained = trainer.train(on_progress=lambda event: rounds.append(event) if isinstance(event, Round) else None)
    assert trained.start is not None
    assert len(trained.start) > 100
    assert (rounds[0].number, rounds[0].selected, rounds[0].known) == (0, len(trained.start), None)


def test_rounds_keep_what_names_imply_though_little_was_learned(unlinked: AlignmentTask, europe: AlignmentTask) -> None:
    """Two epochs of 16 dimensions: similarity says nearly nothing, and rounds without names would keep a tenth of the start."""
    truth = {(a, b) for a, b in np.concatenate([europe.train_links, europe.test_links]).tolist()}
    trained = Trainer(unlinked, RunConfig(variant="semi").with_values({**SETTINGS, "semi.rounds": 2})).train()
    assert trained.start is not None
    right = [len({(a, b) for a, b in found.pairs.tolist()} & truth) for found in (trained.start, *trained.selections)]
    assert min(right[1:]) > 0.8 * right[0]


@pytest.mark.parametrize("links", [0, 5])
def test_a_training_that_started_from_values_and_was_stopped_ends_in_the_same_bits(
    unlinked: AlignmentTask, europe: AlignmentTask, links: int
) -> None:
    task = replace(unlinked, train_links=europe.train_links[:links])
    config = RunConfig(variant="semi").with_values({**SETTINGS, "semi.rounds": 2, "training.batch_size": 200})
    whole = Trainer(task, config)
    whole.train()
    checkpoints, asked = Memory(), iter(range(10_000))
    broken = Trainer(task, config)
    assert broken.train(checkpoints=checkpoints, should_stop=lambda: len(broken.selections) == 1 and next(asked) >= 1).stopped
    resumed = Trainer(task, config)
    resumed.train(checkpoints=checkpoints)
    assert len(resumed.selections) == 2
    assert torch.equal(resumed.embed(), whole.embed())


def test_values_count_in_rounds_where_training_started_from_them(unlinked: AlignmentTask, europe: AlignmentTask) -> None:
    config = SemiConfig()
    of = {
        name: values_in_rounds(task, config, selection_pool(task, config), out)
        for name, task, out in (("links", europe, frozenset()), ("none", unlinked, frozenset()), ("excluded", unlinked, frozenset({"name", "Name"})))
    }
    assert of["links"] is None
    assert of["none"] is not None
    assert of["excluded"] is not None
    assert (of["none"].similarity == 1).sum() > 100 > (of["excluded"].similarity == 1).sum()
    assert 0 < of["none"].similarity.min() <= of["none"].similarity.max() == 1


def test_more_pairs_make_fewer_epochs(europe: AlignmentTask) -> None:
    config = RunConfig(variant="semi").with_values({"encoder.dim": 8, "training.batch_size": 40, "semi.rounds": 0, "semi.start": "values"})
    trainer = Trainer(europe, config)
    alone = trainer.basic_epochs
    trained = trainer.train()
    assert trained.start is not None
    assert trained.epochs == trainer.basic_epochs
    assert alone > trained.epochs == max(LEAST_STARTED_EPOCHS, -(-LEAST_STARTED_STEPS // trainer.steps_per_epoch))
    assert len([line for line in trained.trace if "epoch" in line]) == trained.epochs


def test_rounds_have_as_many_steps_where_few_pairs_make_an_epoch_short(europe: AlignmentTask) -> None:
    trainer = Trainer(europe, RunConfig(variant="semi"))
    assert trainer.round_epochs == LEAST_ROUND_STEPS
    trainer.start = Selection(np.repeat(europe.train_links, 40, axis=0), np.ones(40 * len(europe.train_links), dtype=np.float32))
    assert trainer.round_epochs == max(LEAST_ROUND_EPOCHS, -(-LEAST_ROUND_STEPS // -(-2 * 41 * len(europe.train_links) // MOST_BATCH)))
    trainer.config = trainer.config.with_values({"semi.round_epochs": 7})
    assert trainer.round_epochs == 7


def test_excluded_attributes_start_nothing(unlinked: AlignmentTask) -> None:
    names = ",".join(str(name) for side in (unlinked.source, unlinked.target) for name in side.attributes["attribute"].unique())
    config = RunConfig(variant="semi").with_values({**SETTINGS, "values.exclude": names})
    with pytest.raises(TrainingError, match=r"only in attributes that values\.exclude leaves out"):
        Trainer(unlinked, config).train()


def test_without_links_the_basic_variant_has_nothing_to_train_on(unlinked: AlignmentTask) -> None:
    with pytest.raises(TrainingError, match="the basic variant trains only on known links"):
        Trainer(unlinked, RunConfig())
    with pytest.raises(TrainingError, match=r"semi\.start=triples needs known links"):
        Trainer(unlinked, RunConfig(variant="semi").with_values({"semi.start": "triples"}))


def test_without_links_and_common_values_one_sentence_says_so(unlinked: AlignmentTask) -> None:
    def bare(graph: KnowledgeGraph) -> KnowledgeGraph:
        return replace(graph, attributes=empty_attributes(), labels=("",) * graph.num_entities)

    nameless = replace(unlinked, source=bare(unlinked.source), target=bare(unlinked.target))
    with pytest.raises(TrainingError, match="no known links, and the two graphs of europe share no name or value"):
        Trainer(nameless, RunConfig(variant="semi").with_values(SETTINGS)).train()


def test_the_basic_variant_starts_from_seed_links_alone(europe: AlignmentTask) -> None:
    trainer = Trainer(europe, RunConfig().with_values({"encoder.dim": 16, "training.epochs": 1}))
    trained = trainer.train()
    assert trained.start is None
    assert len(trainer.pairs) == len(europe.train_links)
