"""Two runs held against each other: counted by hand, tested by the formulas, refused where it would be unsound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analysis.entities import bucket_names
from engine.config import RunConfig
from engine.decoding import DECODERS
from engine.errors import ComparisonError
from engine.explore.comparison import (
    CSLS,
    Comparison,
    Outcomes,
    bootstrap_interval,
    bucket_ranks,
    compare,
    config_differences,
    decoders_of,
    newcombe_interval,
    outcomes,
    shared_links,
)
from tests.run_fixture import MemoryRun, analysed, jolted, sample_run


def with_files(run: MemoryRun, **manifest: Any) -> MemoryRun:
    """As a run folder says which tables it has."""
    return replace(run, manifest={**run.manifest, **manifest, "files": {f"{name}.parquet": {} for name in run.tables}})


@pytest.fixture(scope="module")
def main() -> MemoryRun:
    return with_files(analysed(jolted(sample_run(), 0.15, seed=3)), run_id="main")


@pytest.fixture(scope="module")
def other() -> MemoryRun:
    return with_files(analysed(jolted(sample_run(), 0.2, seed=4)), run_id="other")


def older(run: MemoryRun) -> MemoryRun:
    """As a run of an engine that stored no ranks."""
    return with_files(replace(run, tables={name: table for name, table in run.tables.items() if name != "query_ranks"}))


def resplit(run: MemoryRun, roles: Mapping[int, str]) -> MemoryRun:
    """The same run with other roles for some of its links, by position."""
    links = run.tables["links"].copy()
    for position, role in roles.items():
        links.loc[position, "role"] = role
    return older(replace(run, tables={**run.tables, "links": links}))


def comparison(main_ranks: list[int], other_ranks: list[int], queries: list[int] | None = None) -> Comparison:
    entities = np.array(queries if queries is not None else range(len(main_ranks)))
    none = np.full(len(entities), -1)
    return Comparison("source", CSLS, True, entities, np.array(main_ranks), np.array(other_ranks), none, none)


# Outcomes


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("decoder", sorted(DECODERS))
def test_stored_ranks_are_those_of_a_new_evaluation(main: MemoryRun, side: Any, decoder: str) -> None:
    stored, again = outcomes(main, side, decoder), outcomes(older(main), side, CSLS)
    assert decoder in decoders_of(main)
    assert decoders_of(older(main)) == [CSLS]
    np.testing.assert_array_equal(stored.queries, again.queries)
    if decoder == CSLS:
        np.testing.assert_array_equal(stored.ranks, again.ranks)
        np.testing.assert_array_equal(stored.answers, again.answers)


def test_an_answer_is_the_counterpart_where_the_rank_is_one(main: MemoryRun) -> None:
    found, links = outcomes(main, "source"), main.tables["links"]
    truth = dict(zip(links["source"], links["target"], strict=True))
    right = [truth[query] == answer for query, answer in zip(found.queries.tolist(), found.answers.tolist(), strict=True)]
    np.testing.assert_array_equal(found.ranks == 1, right)
    assert 0 < sum(right) < len(right)


def test_what_is_not_stored_is_said(main: MemoryRun) -> None:
    with pytest.raises(ComparisonError, match=r"has no ranks of the decoder 'best'; choose one of csls, "):
        outcomes(main, "source", "best")
    with pytest.raises(ComparisonError, match="cannot be evaluated again"):
        outcomes(older(main), "source", "propagation")
    with pytest.raises(ComparisonError, match="no test links"):
        outcomes(resplit(main, dict.fromkeys(range(16, 46), "unsure")), "source")


# Comparing


@pytest.mark.parametrize("side", ["source", "target"])
def test_flips_are_counted_query_by_query(main: MemoryRun, other: MemoryRun, side: Any) -> None:
    found = compare(main, other, side)
    ours, theirs = (dict(zip(one.queries.tolist(), one.ranks.tolist(), strict=True)) for one in (outcomes(main, side), outcomes(other, side)))
    gained = [entity for entity in ours if ours[entity] == 1 and theirs[entity] > 1]
    lost = [entity for entity in ours if ours[entity] > 1 and theirs[entity] == 1]
    assert found.queries[found.gained].tolist() == gained
    assert found.queries[found.lost].tolist() == lost
    assert gained
    assert lost
    assert found.same_split
    assert found.difference("hits@1").value == pytest.approx((len(gained) - len(lost)) / 30)
    assert found.difference("mrr").value == pytest.approx(np.mean([1 / ours[one] - 1 / theirs[one] for one in ours]))


def test_the_other_way_round_everything_is_turned(main: MemoryRun, other: MemoryRun) -> None:
    there, back = compare(main, other, "target"), compare(other, main, "target")
    np.testing.assert_array_equal(there.gained, back.lost)
    assert there.mcnemar().p_value == back.mcnemar().p_value
    for rate in ("hits@1", "hits@10", "mrr"):
        one, two = there.difference(rate), back.difference(rate)  # type: ignore[arg-type]
        assert one.value == pytest.approx(-two.value)
        if rate != "mrr" and one.interval and two.interval:
            assert one.interval == pytest.approx((-two.interval[1], -two.interval[0]))


def test_other_splits_are_compared_where_neither_has_learned(main: MemoryRun, other: MemoryRun) -> None:
    """Links 16 to 45 are tested; the second run trains on three of them and tests three seeds of the first."""
    second = resplit(other, {**dict.fromkeys(range(16, 19), "train"), **dict.fromkeys(range(3), "test")})
    links = main.tables["links"]
    assert {tuple(link) for link in shared_links(main, second).tolist()} == set(
        map(tuple, links.loc[19:45, ["source", "target"]].to_numpy().tolist())
    )
    found = compare(main, second, "source")
    assert not found.same_split
    assert found.queries.tolist() == sorted(links.loc[19:45, "source"])
    assert found.main_ranks.max() <= 27, "ranked among the shared entities"


def test_an_entity_that_one_run_has_a_seed_of_is_left_out(main: MemoryRun, other: MemoryRun) -> None:
    links = pd.concat([other.tables["links"], pd.DataFrame([{"source": 20, "target": 0, "role": "train"}])], ignore_index=True)
    second = older(replace(other, tables={**other.tables, "links": links}))
    third = resplit(main, {16: "unsure"})  # another split, so that links are shared and not equal
    assert 20 in shared_links(main, third)[:, 0]
    assert 20 not in shared_links(third, second)[:, 0]


def test_runs_that_share_nothing_are_refused(main: MemoryRun, other: MemoryRun) -> None:
    with pytest.raises(ComparisonError, match="were trained on different data"):
        compare(main, with_files(other, data={**other.manifest["data"], "fingerprint": "1" * 64}), "source")
    turned = resplit(other, {**dict.fromkeys(range(12), "test"), **dict.fromkeys(range(16, 46), "train")})
    with pytest.raises(ComparisonError, match="split the known links differently and share no test links"):
        compare(main, turned, "source")
    stale = other.tables["query_ranks"].query("entity != 20 or graph != 'source'")
    with pytest.raises(ComparisonError, match="cover different test entities"):
        compare(main, with_files(replace(other, tables={**other.tables, "query_ranks": stale})), "source")


# Statistics


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_two_sided_binomial(gained: int, lost: int) -> None:
    found = comparison([1] * gained + [2] * lost + [1, 3], [2] * gained + [1] * lost + [1, 5]).mcnemar()
    total = gained + lost
    assert (found.gained, found.lost) == (gained, lost)
    if not total:
        assert found.p_value is None
    else:
        tail = sum(comb(total, count) for count in range(min(gained, lost) + 1)) / 2**total
        assert found.p_value == pytest.approx(min(1.0, 2 * tail if gained != lost else 1.0))


def test_the_interval_of_a_difference_is_newcombes() -> None:
    """His example of 50 pairs: 36 in both, 12 and 2 in one, none in neither."""
    main = np.repeat([True, True, False], [36, 12, 2])
    other = np.repeat([True, False, True], [36, 12, 2])
    assert newcombe_interval(main, other) == pytest.approx((0.0569, 0.3404), abs=5e-5)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_the_interval_holds_the_difference_and_keeps_within_bounds(pairs: list[tuple[bool, bool]]) -> None:
    main, other = np.array(pairs).T
    low, high = newcombe_interval(main, other)
    difference = main.mean() - other.mean()
    assert -1 <= low <= difference + 1e-12
    assert difference - 1e-12 <= high <= 1
    assert high > low, "a handful of queries never says it exactly"


def test_the_bootstrap_is_about_as_wide_as_theory_says() -> None:
    values = np.random.default_rng(0).choice([-1.0, 0.0, 0.5, 1.0], size=2000)
    found = bootstrap_interval(values, 1000, 0)
    assert found is not None
    error = values.std() / np.sqrt(len(values))
    assert found[0] == pytest.approx(values.mean() - 1.96 * error, abs=0.3 * error)
    assert found[1] == pytest.approx(values.mean() + 1.96 * error, abs=0.3 * error)
    assert bootstrap_interval(np.full(30, 0.25), 1000, 0) is None


# Tables


def test_flips_by_degree_and_by_relation() -> None:
    found = comparison([1, 1, 3, 1], [2, 1, 1, 1], queries=[0, 2, 3, 5])
    degrees = np.array([1, 9, 1, 6, 0, 30])
    by_degree = found.by_degree(degrees).set_index("bucket")
    assert by_degree.index.tolist() == bucket_names()
    assert by_degree.loc["1", ["queries", "gained", "lost"]].tolist() == [2, 1, 0]
    assert by_degree.loc["5-6", ["queries", "gained", "lost"]].tolist() == [1, 0, 1]
    assert by_degree["queries"].sum() == 4
    by_relation = found.by_relation(np.array([0, 0, 0, 2, 2]), np.array([0, 1, 3, 3, 7]), num_relations=3)
    assert by_relation.to_numpy().tolist() == [[0, 2, 1, 1], [2, 1, 0, 1]]
    table = found.table(degrees)
    assert table["bucket"].tolist() == ["1", "1", "5-6", "25+"]
    assert table["entity"][table["gained"]].tolist() == [0]
    assert table["entity"][table["lost"]].tolist() == [3]


def test_a_buckets_entities_come_worst_first_with_all_runs_ranks() -> None:
    answers = np.array([7, 8, 9, 4])
    one = Outcomes("source", CSLS, np.array([0, 2, 3, 4]), np.array([1, 5, 9, 2]), answers)
    two = Outcomes("source", CSLS, np.array([0, 3]), np.array([4, 1]), answers[:2])
    degrees = np.array([2, 2, 2, 2, 3])
    misses = bucket_ranks([one, two], degrees, "2", "misses")
    assert misses["entity"].tolist() == [3, 2]
    assert misses[0].tolist() == [9, 5]
    assert misses["answer"].tolist() == [9, 8]
    assert misses[1].isna().tolist() == [False, True]
    assert bucket_ranks([one, two], degrees, "2", "hits")["entity"].tolist() == [0]
    assert len(bucket_ranks([one, two], degrees, "2", "all")) == 3
    assert bucket_ranks([one, two], degrees, "25+", "all").empty


def manifest(variant: str, *, seed: int = 0, **settings: Any) -> dict[str, Any]:
    config = RunConfig(variant=variant, seed=seed).with_values({key.replace("__", "."): value for key, value in settings.items()})  # type: ignore[arg-type]
    return {"variant": variant, "seed": seed, "config": config.to_dict(), "data": {"split": f"seed {seed}"}, "device": "cpu"}


def test_only_settings_that_differ_are_listed() -> None:
    same = config_differences([manifest("basic"), manifest("basic")])
    assert same.empty
    assert same.columns.tolist() == ["setting", 0, 1]
    found = config_differences([manifest("semi", seed=1, encoder__dim=64, semi__rounds=2), manifest("basic", semi__rounds=9), manifest("basic")])
    rows = found.set_index("setting").T.to_dict("list")
    assert rows == {
        "variant": ["semi", "basic", "basic"],
        "seed": ["1", "0", "0"],
        "encoder.dim": ["64", "100", "100"],
        "split": ["seed 1", "seed 0", "seed 0"],
    }, "rounds are of no matter to a basic run"


def test_all_settings_can_be_listed() -> None:
    both = [manifest("semi", encoder__dim=64), manifest("basic")]
    found = config_differences(both, everything=True).set_index("setting")
    assert set(found.index) > set(config_differences(both)["setting"])
    assert found.loc["seed"].nunique() == 1
    assert found.loc["encoder.dim", 0] == "64"


def test_settings_of_older_and_odd_manifests() -> None:
    found = config_differences([{"variant": "basic"}, manifest("basic", training__epochs=None)]).set_index("setting")
    assert found.loc["training.epochs"].tolist() == ["not recorded", "default"]
    assert found.loc["encoder.multi_hop"].tolist() == ["not recorded", "yes"]
