"""Zero vectors: nothing is known of these entities, so they never win, and nothing wins for them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from engine.analysis.run_tables import match_table
from engine.decoding import DECODERS, GRAPH_DECODERS, NONE, find_candidates, get_decoder
from engine.evaluation.metrics import evaluate_links
from engine.search import LiteralSimilarity, SparseSimilarity, StructuralSimilarity, csls_query, csls_topk, true_ranks
from tests.search.graphs import clustered

ZEROS = [3, 17, 40]


def with_zeros(n: int = 60) -> tuple[Tensor, Tensor]:
    """Two pools around common centres; some rows are zero, and one source entity is far from everything, so that a zero row would be its nearest."""
    source, target = clustered(n, 16, clusters=4)
    source, target = torch.cat([source, torch.zeros(n, 1)], dim=1), torch.cat([target, torch.zeros(n, 1)], dim=1)
    source[5] = torch.eye(17)[16]
    source[5, :16] = -0.1
    source[5] /= source[5].norm()
    source[ZEROS], target[ZEROS] = 0.0, 0.0
    return source, target


def test_zero_vectors_come_last_in_every_list(index: str) -> None:
    source, target = with_zeros()
    found = csls_topk(source, target, 10, 60, index)
    known = np.setdiff1d(np.arange(60), ZEROS)
    for matches in (found.source_to_target, found.target_to_source):
        order = matches.indices.numpy()[known]
        assert not np.isin(order[:, : 60 - len(ZEROS)], ZEROS).any()
    assert not np.isin(csls_topk(source, target, 10, 1, index).source_to_target.indices[known], ZEROS).any()
    terms = found.hubness
    asked = csls_query(StructuralSimilarity(source[5:6], target), terms.source[5:6], terms.target, 3, index)
    assert not np.isin(asked.indices, ZEROS).any()


@pytest.mark.parametrize("decoder", sorted(set(DECODERS) - set(GRAPH_DECODERS)))
def test_no_decoder_chooses_a_zero_vector(decoder: str) -> None:
    source, target = with_zeros()
    candidates = find_candidates(StructuralSimilarity(source, target), 10, 60)
    assert not np.isin(candidates.sources, ZEROS).any()
    assert not np.isin(candidates.targets, ZEROS).any()
    decoding = get_decoder(decoder).decode(candidates)
    for chosen in (decoding.chosen_by_source, decoding.chosen_by_target):
        assert (chosen[ZEROS] == NONE).all()


def test_tables_of_matches_leave_them_out() -> None:
    table = match_table(csls_topk(*with_zeros(), 10, 60))
    assert not table["entity"].isin(ZEROS).any()
    assert not table["match"].isin(ZEROS).any()
    assert table.groupby(["graph", "entity"]).size().eq(57).all()


def test_a_link_of_a_zero_vector_is_last() -> None:
    source, target = with_zeros()
    target[3] = target[4]  # only the source entity is unknown
    links = torch.arange(60)[:, None].expand(60, 2)
    ranks = true_ranks(source, target, links, csls_topk(source, target, 10).hubness)
    assert (ranks.source_to_target.ranks[ZEROS] == 60).all()
    assert (ranks.target_to_source.ranks[ZEROS] == 60).all()
    assert (ranks.source_to_target.ranks[:3] < 10).all()


def test_pools_of_nothing_but_zero_vectors() -> None:
    nothing = torch.zeros(12, 4)
    links = np.arange(12, dtype=np.int64).repeat(2).reshape(-1, 2)
    found = evaluate_links(nothing, nothing, links)
    assert found.target_to_source.hits_at_1 == 0
    assert len(find_candidates(StructuralSimilarity(nothing, nothing))) == 0
    assert len(match_table(csls_topk(nothing, nothing, 10, 5))) == 0


def test_a_name_is_enough_to_be_known() -> None:
    source, target = with_zeros()
    names = torch.zeros(60, 3)
    names[3, 0] = 1.0
    both = LiteralSimilarity(StructuralSimilarity(source, target), SparseSimilarity(sparse.csr_array(names), sparse.csr_array(names)))
    rows, columns = both.zero_rows()
    assert rows.nonzero().flatten().tolist() == columns.nonzero().flatten().tolist() == ZEROS[1:]
    assert int(csls_topk(both, 10, 1).source_to_target.indices[3]) == 3
