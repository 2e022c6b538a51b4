"""All names of an entity, and the similarity of the best pair."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.names import get_name_encoder, name_similarity, name_tensors
from engine.names.synonyms import MOST_NAMES, WEIGHTS, all_names, encode_all, kind_of, left_out_finding
from engine.search import BestNames, StructuralSimilarity
from tests.names.graphs import graph_with

ALT, RELATED = "http://www.w3.org/2004/02/skos/core#altLabel", "http://www.geneontology.org/formats/oboInOwl#hasRelatedSynonym"


@pytest.mark.parametrize(
    ("attribute", "kind"),
    [
        *((ALT, "exact"), ("oboInOwl:hasExactSynonym", "exact"), (RELATED, "loose"), ("rdfs:label", "name"), ("exact_synonym", "exact")),
        *(("population", None), ("synonymOfType", None), ("", None)),
    ],
)
def test_kinds(attribute: str, kind: str | None) -> None:
    assert kind_of(attribute) == kind


def test_the_shown_name_comes_first_and_repeated_names_count_once() -> None:
    rows = [(0, ALT, "Colonia"), (0, "label", '"Köln"@de'), (0, "label", '"Cologne"@en'), (0, RELATED, "Colonia"), (1, RELATED, "Rhine")]
    found = all_names(graph_with(3, rows), ["Cologne", "", ""])
    assert found.names == ("Cologne", "Köln", "Colonia", "Rhine", "")
    assert found.weights == (1.0, 1.0, WEIGHTS["exact"], WEIGHTS["loose"], 1.0)
    assert found.starts.tolist() == [0, 3, 4, 5]


def test_of_very_many_names_some_are_left_out_and_counted() -> None:
    found = all_names(graph_with(2, [(0, ALT, f"name {i:03}") for i in range(100)]), ["shown", ""])
    assert len(found.names) == MOST_NAMES + 1
    assert found.names[0] == "shown"
    assert found.left_out == 101 - MOST_NAMES


def test_placeholders_are_no_names() -> None:
    rows = [(0, ALT, "n/a"), (0, "label", '"None"@en'), (0, ALT, "Köln"), (1, ALT, "-"), (2, ALT, "null")]
    found = all_names(graph_with(3, rows), ["NA", "Rome", ""])
    assert found.names == ("Köln", "Rome", "")
    assert found.left_out == 0


def test_names_that_are_left_out_are_reported() -> None:
    many, few = (all_names(graph_with(1, [(0, ALT, f"name {i:03}") for i in range(count)]), ["shown"]) for count in (40, 3))
    assert [(one.code, one.count) for one in left_out_finding(many, few)] == [("names-left-out", 41 - MOST_NAMES)]
    assert list(left_out_finding(few, few)) == []


def several() -> BestNames:
    source = all_names(
        graph_with(4, [(0, ALT, "Colonia"), (1, RELATED, "Rhine"), (3, ALT, "Bonn"), (3, ALT, "Bonna")]), ["Cologne", "River", "", "x"]
    )
    target = all_names(graph_with(3, [(0, ALT, "Rhine"), (2, ALT, "Köln"), (2, ALT, "Colonia")]), ["Rhein", "Bonn", "K"])
    similarity = encode_all(get_name_encoder("ngrams"), source, target).similarity
    assert isinstance(similarity, BestNames)
    return similarity


def slow(similarity: BestNames) -> np.ndarray:
    """Every pair of names, one after the other."""
    base, (rows, columns) = similarity.base, similarity.starts
    every = base.pairs(*(one.flatten() for one in torch.meshgrid(torch.arange(base.shape[0]), torch.arange(base.shape[1]), indexing="ij")))
    table = every.reshape(base.shape).numpy()
    return np.array(
        [[table[rows[i] : rows[i + 1], columns[j] : columns[j + 1]].max() for j in range(len(columns) - 1)] for i in range(len(rows) - 1)]
    )


def test_pairs_and_blocks_are_those_of_the_best_names() -> None:
    similarity, expected = several(), slow(several())
    grid = torch.meshgrid(torch.arange(4), torch.arange(3), indexing="ij")
    np.testing.assert_allclose(similarity.pairs(grid[0].flatten(), grid[1].flatten()).reshape(4, 3).numpy(), expected)
    np.testing.assert_allclose(similarity.block(slice(0, 4), slice(0, 3)).numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(similarity.block(slice(1, 4), slice(1, 3)).numpy(), expected[1:, 1:], atol=1e-6)
    np.testing.assert_allclose(similarity.transposed().block(slice(0, 3), slice(0, 4)).numpy(), expected.T, atol=1e-6)
    chosen = similarity.select(torch.tensor([3, 0]), torch.tensor([2, 0]))
    np.testing.assert_allclose(chosen.block(slice(0, 2), slice(0, 2)).numpy(), expected[[3, 0]][:, [2, 0]], atol=1e-6)
    assert expected[0, 2] == pytest.approx(WEIGHTS["exact"] ** 2)  # Colonia and Colonia, both synonyms
    assert expected[1, 0] == pytest.approx(WEIGHTS["loose"] * WEIGHTS["exact"])


def test_dense_rows_of_names_are_compared_alike() -> None:
    sparse = several()
    rows = [torch.from_numpy(side.toarray()) for side in (sparse.base.source, sparse.base.target)]
    dense = BestNames(StructuralSimilarity(*rows), *sparse.starts)
    np.testing.assert_allclose(dense.block(slice(1, 4), slice(0, 3)).numpy(), slow(sparse)[1:], atol=1e-6)
    weighted = torch.ones(4, 3)
    sparse.add_block(slice(0, 4), slice(0, 3), 0.5, weighted)
    np.testing.assert_allclose(weighted.numpy(), 1 + 0.5 * slow(sparse), atol=1e-6)


def test_the_two_names_that_meet_are_known() -> None:
    assert several().meeting(0, 2) == (1, 2)
    assert several().meeting(3, 1) == (1, 0)


def test_an_entity_without_a_name_has_none() -> None:
    assert [one.tolist() for one in several().named()] == [[True, True, False, True], [True, True, True]]
    assert several().zero_rows()[0].tolist() == [False, False, True, False]


def test_they_are_stored_and_read_again() -> None:
    similarity = several()
    again = name_similarity(name_tensors(similarity))
    assert isinstance(again, BestNames)
    assert torch.equal(again.block(slice(0, 4), slice(0, 3)), similarity.block(slice(0, 4), slice(0, 3)))


def test_single_names_are_compared_as_before() -> None:
    names = ["Rom", "Bonn", "Ulm"]
    single = all_names(graph_with(3, []), names)
    similarity = encode_all(get_name_encoder("ngrams"), single, single).similarity
    assert not isinstance(similarity, BestNames)


@pytest.mark.parametrize("starts", [[0, 1], [0, 2, 2, 4], [1, 4], []])
def test_beginnings_that_do_not_fit_are_refused(starts: list[int]) -> None:
    base = several().base
    with pytest.raises(ValueError, match="one or more each"):
        BestNames(base, np.array(starts, dtype=np.int64), several().starts[1])
