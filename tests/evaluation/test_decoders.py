"""Figures of decoders: those of the paper's decoder are the evaluation's own, and precision and recall are counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.decoding import DECODERS, CslsDecoder, MutualDecoder, candidates
from engine.errors import ConfigError, DataError
from engine.evaluation import decoders, metrics
from engine.evaluation.decoders import decode_searched, evaluate_decoders, evaluate_decoding, with_candidates
from engine.evaluation.metrics import METRICS, Pool, evaluate_links, evaluate_searched, search_pool, with_pool
from engine.search import StructuralSimilarity, UnscaledEmbeddings, csls_topk
from engine.util.arrays import IntArray
from tests.decoding.cases import from_table, identity
from tests.search.graphs import noisy_copies

LINKS = np.array([[0, 0], [1, 1], [2, 2], [3, 3]])


def embeddings(n: int, m: int, noise: float = 1.0) -> UnscaledEmbeddings:
    source, target = noisy_copies(n, m, 16, noise=noise)
    return UnscaledEmbeddings(3 * source, 0.5 * target)


@pytest.mark.parametrize("pool", ["test", "all"])
@pytest.mark.parametrize("top", [3, 10, 100])
def test_csls_has_the_figures_of_the_evaluation(pool: str, top: int) -> None:
    similarity = embeddings(70, 80)
    links = identity(60)
    expected = evaluate_links(similarity, links, pool=pool)  # type: ignore[arg-type]
    found = evaluate_decoders(similarity, links, ["csls"], pool=pool, top=top)["csls"]  # type: ignore[arg-type]
    for direction in ("source_to_target", "target_to_source"):
        np.testing.assert_array_equal(getattr(found, direction).ranks, getattr(expected, direction).ranks)
        assert getattr(found, direction).to_dict() == getattr(expected, direction).to_dict()


@pytest.mark.parametrize("top", [2, 20])
def test_pools_that_are_searched_once_give_the_same_figures(monkeypatch: pytest.MonkeyPatch, top: int) -> None:
    """Pools that fit in memory are held there, larger ones are searched once for all that decoders and ranks need."""
    similarity, links = embeddings(300, 300), identity(280)
    held = evaluate_decoders(similarity, links, sorted(DECODERS), top=top)
    monkeypatch.setattr(metrics, "held", lambda pooled: pooled)
    assert search_pool(similarity, links, top=top).candidates is not None
    searched = evaluate_decoders(similarity, links, sorted(DECODERS), top=top)
    assert {name: one.to_dict() for name, one in searched.items()} == {name: one.to_dict() for name, one in held.items()}


@pytest.mark.parametrize("pooled_at_once", [True, False])
def test_large_pools_have_the_same_figures_with_less_memory(monkeypatch: pytest.MonkeyPatch, pooled_at_once: bool) -> None:
    """Candidates without similarities, and decoders one after the other."""
    similarity, links, names = embeddings(90, 80), identity(70), sorted(DECODERS)
    expected = evaluate_decoders(similarity, links, names, top=12)
    if not pooled_at_once:
        monkeypatch.setattr(metrics, "held", lambda pooled: pooled)
    monkeypatch.setattr(decoders, "SHARED", 0)
    kept = with_candidates(search_pool(similarity, links, top=12), 12)
    assert kept.similarity is None
    found = decode_searched(kept, names, 12)
    assert {name: one.to_dict() for name, one in found.items()} == {name: one.to_dict() for name, one in expected.items()}
    with pytest.raises(ValueError, match="lists of other than 20"):
        decode_searched(kept, names, 20)


def test_lists_of_large_pools_are_shorter_and_figures_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    similarity, links = embeddings(60, 60), identity(60)
    monkeypatch.setattr(candidates, "LEAST_TOP", 2)
    monkeypatch.setattr(candidates, "LISTED", 7 * 120)
    found = evaluate_decoders(similarity, links, ["csls", "sinkhorn"])
    assert "the 7 best candidates by CSLS" in found["sinkhorn"].protocol
    assert found["csls"].target_to_source.to_dict() == evaluate_links(similarity, links).target_to_source.to_dict()


@pytest.mark.parametrize("decoder", sorted(DECODERS))
def test_figures_of_each_decoder(decoder: str) -> None:
    similarity = embeddings(60, 60)
    result = evaluate_decoders(similarity, identity(60), [decoder], bootstrap=50)[decoder]
    values = result.to_dict()
    assert values["decoder"] == decoder
    assert values["protocol"] == result.protocol
    assert f"decoder {decoder} " in result.protocol
    assert "60 test entities a side" in result.protocol
    for direction in ("source_to_target", "target_to_source"):
        figures = values[direction]
        assert set(METRICS) | {"queries", "intervals", "precision", "recall", "f1", "predicted", "correct"} == set(figures)
        assert figures["hits@1"] == figures["recall"] == figures["correct"] / 60
        assert figures["hits@1"] <= figures["hits@5"] <= figures["hits@10"] <= 1


@pytest.mark.parametrize("decoder", sorted(DECODERS))
def test_answers_are_entities_and_not_rows_of_the_pool(decoder: str) -> None:
    links = np.stack([np.arange(20, 60), np.arange(59, 19, -1)], axis=1)  # source 20 is target 59, and so on
    source, target = noisy_copies(60, 60, 16, noise=0.3)
    turned = target[79 - np.clip(np.arange(60), 20, 59)]  # rows of the targets that are linked
    found = evaluate_decoders(UnscaledEmbeddings(source, turned), links, [decoder], bootstrap=0)[decoder]
    for direction, answers, truth in (
        (found.source_to_target, found.source_answers, dict(links.tolist())),
        (found.target_to_source, found.target_answers, {two: one for one, two in links.tolist()}),
    ):
        assert len(answers) == 40
        right = [truth[query] == answer for query, answer in zip(direction.queries.tolist(), answers.tolist(), strict=True)]
        np.testing.assert_array_equal(direction.ranks == 1, right)
        assert sum(right) > 20


def test_better_decoders_find_more() -> None:
    found = evaluate_decoders(embeddings(400, 400, 0.7), identity(400), ["csls", "stable", "sinkhorn", "assignment", "mutual"])
    hits = {name: result.source_to_target.hits_at_1 or 0 for name, result in found.items()}
    assert hits["csls"] < hits["sinkhorn"]
    assert hits["csls"] < hits["assignment"]
    assert (found["mutual"].source_pairs.precision or 0) > hits["csls"] > hits["mutual"]


def mutual_figures(links: IntArray, complete: bool = False) -> dict[str, float | int | None]:
    """Predicted are 0 - 0, 1 - 2 and 3 - 3; source 2 and target 1 get none."""
    table = np.array([[0.9, 0.1, 0.1, 0.1], [0.1, 0.3, 0.8, 0.1], [0.1, 0.2, 0.5, 0.1], [0.1, 0.1, 0.1, 0.9]])
    decoding = MutualDecoder().decode(from_table(table))
    assert decoding.predicted("source").tolist() == [0, 2, -1, 3]
    return evaluate_decoding(decoding, links, np.arange(4), np.arange(4), complete=complete).source_pairs.to_dict()


def test_precision_and_recall_by_hand() -> None:
    assert mutual_figures(LINKS) == {"predicted": 3, "correct": 2, "precision": 2 / 3, "recall": 2 / 4, "f1": 4 / 7}


def test_predictions_of_which_nothing_is_known_are_left_out_unless_the_links_are_complete() -> None:
    some = LINKS[:2]
    assert mutual_figures(some) == {"predicted": 2, "correct": 1, "precision": 1 / 2, "recall": 1 / 2, "f1": 2 / 4}
    assert mutual_figures(some, complete=True) == {"predicted": 3, "correct": 1, "precision": 1 / 3, "recall": 1 / 2, "f1": 2 / 5}


def test_no_links() -> None:
    figures = mutual_figures(LINKS[:0])
    assert figures == {"predicted": 0, "correct": 0, "precision": None, "recall": None, "f1": None}
    empty = evaluate_decoders(embeddings(5, 5), LINKS[:0], DECODERS)
    assert {result.source_to_target.hits_at_1 for result in empty.values()} == {None}


def test_any_of_several_counterparts_will_do() -> None:
    decoding = CslsDecoder().decode(from_table([[0.9, 0.8, 0.1], [0.2, 0.3, 0.1]]))
    result = evaluate_decoding(decoding, np.array([[0, 1], [0, 0], [1, 2], [0, 1]]), np.arange(2), np.arange(3))
    assert result.source_to_target.ranks.tolist() == [1, 3]
    assert result.source_pairs.correct == 1


def test_counterparts_beyond_the_lists_rank_last_where_nothing_else_is_known() -> None:
    table = np.tile(np.linspace(1, 0, 8), (8, 1))
    decoding = CslsDecoder().decode(from_table(table, top=2))
    result = evaluate_decoding(decoding, np.array([[7, 7]]), np.arange(8), np.arange(8))
    assert result.source_to_target.ranks.tolist() == [8]


def test_pools_and_links_must_fit() -> None:
    decoding = CslsDecoder().decode(from_table(np.eye(3)))
    with pytest.raises(DataError, match="the pools hold 4 source and 3 target entities"):
        evaluate_decoding(decoding, LINKS[:1], np.arange(4), np.arange(3))
    with pytest.raises(DataError, match="target entity 3 of a link is not in the pool"):
        evaluate_decoding(decoding, np.array([[0, 3]]), np.arange(3), np.arange(3))
    with pytest.raises(ConfigError, match="unknown decoder"):
        evaluate_decoders(embeddings(4, 4), LINKS, ["nearest of all"])


def test_pool_entities_keep_their_numbers() -> None:
    decoding = CslsDecoder().decode(from_table(np.eye(3)))
    pool = np.array([4, 7, 9])
    result = evaluate_decoding(decoding, np.array([[9, 9], [4, 4]]), pool, pool)
    assert result.source_to_target.queries.tolist() == [4, 9]
    assert result.source_to_target.ranks.tolist() == [1, 1]


@pytest.mark.parametrize("pool", ["test", "all"])
def test_one_search_serves_all_evaluations(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    block = StructuralSimilarity.block

    def counting(self: StructuralSimilarity, rows: slice, columns: slice, out: torch.Tensor | None = None) -> torch.Tensor:
        found = block(self, rows, columns, out)
        computed.append(found.numel())
        return found

    similarity, links, names = embeddings(70, 80), identity(60), ["csls", "sinkhorn", "assignment"]
    apart = evaluate_links(similarity, links, pool=pool), evaluate_decoders(similarity, links, names, pool=pool)
    monkeypatch.setattr(StructuralSimilarity, "block", counting)
    searched = search_pool(similarity, links, pool=pool)
    together = evaluate_searched(searched), decode_searched(searched, names)
    assert sum(computed) == (60 * 60 if pool == "test" else 70 * 80)
    assert together[0].to_dict() == apart[0].to_dict()
    assert {name: found.to_dict() for name, found in together[1].items()} == {name: found.to_dict() for name, found in apart[1].items()}
    assert list(together[1]) == names


def test_the_search_of_everything_serves_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = noisy_copies(90, 80, 16)
    similarity, links = StructuralSimilarity(source, target), np.stack([np.arange(5, 65), np.arange(64, 4, -1)], axis=1)
    everything = with_pool(similarity, links)
    csls_topk(everything, 10, 5)
    expected = evaluate_links(similarity, links)
    monkeypatch.setattr(StructuralSimilarity, "block", None)  # whoever computes something fails
    found = evaluate_searched(search_pool(everything, links))
    assert found.to_dict() == expected.to_dict()
    np.testing.assert_array_equal(found.target_to_source.ranks, expected.target_to_source.ranks)
