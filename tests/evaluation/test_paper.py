"""The paper's figures, and recognising its data sets."""

from __future__ import annotations

from dataclasses import fields

import pytest

from engine.config import VARIANTS, EncoderConfig
from engine.evaluation.paper import ABLATION, RESULTS, SECONDS, SIZES, paper_ablation, paper_figure, recognise


@pytest.mark.parametrize("name", SIZES)
def test_each_data_set_is_recognised_whichever_graph_comes_first(name: str) -> None:
    first, second = SIZES[name]
    assert recognise(first, second) == recognise(second, first) == name
    assert recognise((first[0], first[1] - 10), second) == name, "a few duplicate triples more or less"


@pytest.mark.parametrize("name", SIZES)
def test_figures_are_complete_and_plausible(name: str) -> None:
    assert set(RESULTS[name]) <= set(SECONDS[name.split()[0]])
    assert set(VARIANTS) <= {"basic", "semi", "literal"}
    for variant, (hits_at_1, hits_at_10, mrr) in RESULTS[name].items():
        assert 0 < hits_at_1 < mrr < hits_at_10 < 1, variant
    assert RESULTS[name]["basic"][0] < RESULTS[name]["semi"][0]


def test_other_data_has_no_figure() -> None:
    assert recognise((4_908, 13_499), (5_450, 18_021)) is None
    assert recognise((15_000, 40_000), (15_000, 40_000)) is None
    assert paper_figure((0, 0), (0, 0), "basic") is None
    assert paper_figure(*SIZES["SRPRS DBP-WD"], "literal") is None


def test_the_figure_of_the_first_data_set() -> None:
    figure = paper_figure(*SIZES["DBP15K ZH-EN"], "basic")
    assert figure is not None
    assert (figure.dataset, figure.hits_at_1, figure.hits_at_10, figure.mrr, figure.seconds) == ("DBP15K ZH-EN", 0.731, 0.923, 0.799, 35)


def test_the_ablation_names_the_encoders_switches_and_each_part_helps() -> None:
    switches = {spec.name for spec in fields(EncoderConfig) if spec.type == "bool"}
    for name, parts in ABLATION.items():
        assert set(parts) == switches
        assert paper_ablation(*SIZES[name]) == parts
        for hits_at_1, mrr in parts.values():
            assert hits_at_1 < RESULTS[name]["basic"][0]
            assert hits_at_1 < mrr < RESULTS[name]["basic"][2]
    assert paper_ablation((1, 1), (1, 1)) == {}
