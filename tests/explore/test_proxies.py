"""A run's proxies: how entities and pairs spread over them, against plain computations from the stored cosines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax

from engine.errors import EntityError
from engine.explore.proxies import ProxyView, log_histogram, relative_attention, share_below
from engine.runs.view import RunView
from tests.run_fixture import MemoryRun, analysed, sample_run


@pytest.fixture(scope="module")
def run() -> MemoryRun:
    return analysed(sample_run())


def view_of(run: MemoryRun) -> ProxyView:
    return ProxyView(RunView(run), run.table, run.tensor)


@pytest.fixture
def proxies(run: MemoryRun) -> ProxyView:
    return view_of(run)


def without_links(run: MemoryRun) -> ProxyView:
    divergence = run.tables["pair_divergence"].assign(role="")
    return view_of(replace(run, tables={**run.tables, "links": run.tables["links"].iloc[:0], "pair_divergence": divergence}))


def test_channels(run: MemoryRun, proxies: ProxyView) -> None:
    assert proxies.channels == ("entity", "relation")
    assert view_of(replace(run, tables={**run.tables, "proxy_top": run.tables["proxy_top"].iloc[:0]})).channels == ()


def test_the_distribution_counts_every_cosine_once(run: MemoryRun, proxies: ProxyView) -> None:
    table = proxies.distribution("entity")
    for side, part in table.groupby("graph"):
        values = run.tensors["proxies"][f"{side}_entity"].astype(float)
        assert part["share"].sum() == pytest.approx(1)
        below = (values < part["low"].iloc[30]).mean()
        assert part["share"].iloc[:30].sum() == pytest.approx(below, abs=0.01)


def test_use_adds_up(run: MemoryRun, proxies: ProxyView) -> None:
    for side, part in proxies.use("relation").groupby("graph"):
        attention = softmax(run.tensors["proxies"][f"{side}_relation"].astype(float), axis=1)
        assert part["nearest"].sum() == pytest.approx(1)
        np.testing.assert_allclose(part["attention"], attention.mean(axis=0) * attention.shape[1], rtol=1e-5)


def test_agreement_of_links(run: MemoryRun, proxies: ProxyView) -> None:
    links = run.tables["links"].query("role != 'unsure'")
    nearest = {side: run.tensors["proxies"][f"{side}_entity"].astype(np.float32).argmax(1) for side in ("source", "target")}
    same = [nearest["source"][link.source] == nearest["target"][link.target] for link in links.itertuples()]
    found = proxies.agreement("entity")
    assert found.links == len(links) == found.table["links"].sum()
    assert found.same == pytest.approx(np.mean(same))
    assert found.table.query("source == target")["links"].sum() == sum(same)
    assert 0 < found.chance < 1


def test_the_nearest_entities_are_the_stored_ones(run: MemoryRun, proxies: ProxyView) -> None:
    found = proxies.nearest("entity", 2)
    best = RunView(run).best
    for side, across in (("source", "target"), ("target", "source")):
        stored = run.tables["proxy_top"].query("channel == 'entity' and proxy == 2 and graph == @side").sort_values("rank")
        assert [one.entity.index for one in found[side]] == stored["entity"].tolist()
        assert [one.similarity for one in found[side]] == stored["similarity"].tolist()
        there = {one.entity.index for one in found[across]}
        for one in found[side]:
            assert one.counterpart is None or one.counterpart.index in there
            if best[side][one.entity.index] in there:
                assert one.counterpart is not None
    assert proxies.nearest("entity", 999) == {"source": [], "target": []}


def test_counterparts_that_share_a_proxy_are_the_known_ones_first(run: MemoryRun) -> None:
    known = run.tables["links"].iloc[0]
    wrong = (int(known["target"]) + 1) % 84
    top = pd.DataFrame(
        {
            "channel": "entity",
            "graph": ["source", "target", "target"],
            "proxy": 0,
            "rank": [1, 1, 2],
            "entity": [known["source"], wrong, known["target"]],
            "similarity": 0.5,
        }
    )
    found = view_of(replace(run, tables={**run.tables, "proxy_top": top})).nearest("entity", 0)
    assert found["source"][0].counterpart is not None
    assert found["source"][0].counterpart.index == known["target"]


def test_a_stored_pair_has_its_stored_divergence(run: MemoryRun, proxies: ProxyView) -> None:
    table = run.tables["pair_divergence"].query("channel == 'entity'")
    row = table.iloc[5]
    found = proxies.pair("entity", int(row["source"]), int(row["target"]))
    assert found.divergence == row["divergence"]
    known = table.loc[table["role"].isin(["train", "valid", "test"]), "divergence"]
    assert found.above_links == pytest.approx((known < row["divergence"]).mean())


def test_any_pair_has_a_divergence(run: MemoryRun, proxies: ProxyView) -> None:
    stored = {tuple(pair) for pair in run.tables["pair_divergence"][["source", "target"]].to_numpy().tolist()}
    source, target = next((one, two) for one in range(64) for two in range(84) if (one, two) not in stored)
    found = proxies.pair("relation", source, target)
    p, q = (softmax(run.tensors["proxies"][f"{side}_relation"][index].astype(float)) for side, index in (("source", source), ("target", target)))
    assert found.divergence == pytest.approx(jensenshannon(p, q, base=2) ** 2, rel=1e-3)
    table = found.table.sort_values("proxy")
    np.testing.assert_allclose(table["source"], p * len(p), rtol=1e-5)
    np.testing.assert_allclose(table["target"], q * len(q), rtol=1e-5)
    assert (found.table["source"] + found.table["target"]).is_monotonic_decreasing


def test_stored_and_computed_divergences_agree(run: MemoryRun, proxies: ProxyView) -> None:
    row = run.tables["pair_divergence"].query("channel == 'entity'").iloc[3]
    emptied = view_of(replace(run, tables={**run.tables, "pair_divergence": run.tables["pair_divergence"].iloc[:0]}))
    assert emptied.pair("entity", int(row["source"]), int(row["target"])).divergence == pytest.approx(row["divergence"], rel=0.02)


@pytest.mark.parametrize(("source", "target"), [(999, 0), (0, 999), (-1, 0)])
def test_pairs_of_entities_that_are_not_there(proxies: ProxyView, source: int, target: int) -> None:
    with pytest.raises(EntityError, match="has no entity"):
        proxies.pair("entity", source, target)


def test_without_links_a_pair_is_held_against_drawn_pairs_alone(run: MemoryRun) -> None:
    view = without_links(run)
    assert view.agreement("entity").same is None
    assert view.pair("entity", 0, 0).above_links is None
    assert view.informative_pairs("entity", 3) == ([], [])
    assert 0 <= view.pair("entity", 0, 0).above_drawn <= 1


def test_drawn_pairs_are_the_same_each_time(run: MemoryRun, proxies: ProxyView) -> None:
    drawn = proxies.drawn_divergence("entity")
    assert (np.diff(drawn) >= 0).all()
    np.testing.assert_array_equal(drawn, view_of(run).drawn_divergence("entity"))


def test_informative_pairs_are_the_extremes_of_named_links(run: MemoryRun, proxies: ProxyView) -> None:
    alike, unlike = proxies.informative_pairs("entity", 2)
    table = run.tables["pair_divergence"].query("channel == 'entity' and role in ['train', 'valid', 'test']").set_index(["source", "target"])
    values = [[table.loc[(one.index, two.index), "divergence"] for one, two in pairs] for pairs in (alike, unlike)]
    assert values[0] == sorted(values[0])
    assert values[1] == sorted(values[1], reverse=True)
    assert max(values[0]) < min(values[1])
    assert all(one.label and two.label for one, two in [*alike, *unlike])


def test_relative_attention_is_one_on_average() -> None:
    found = relative_attention(np.random.default_rng(0).uniform(-1, 1, (5, 7)).astype(np.float32))
    np.testing.assert_allclose(found.mean(axis=1), 1, rtol=1e-6)


def test_share_below() -> None:
    assert share_below(np.array([1.0, 2.0, 2.0, 3.0]), 2.0) == 0.25
    assert share_below(np.empty(0), 2.0) == 0


def test_histograms_of_equal_ratio_hold_everything() -> None:
    table = log_histogram({"a": np.array([0.0, 1e-6, 1e-3, 1e-3]), "b": np.array([1e-4])}, bins=3)
    assert table.groupby("group")["share"].sum().tolist() == [1, 1]
    assert table.query("group == 'a'")["share"].tolist() == [0.5, 0.0, 0.5]
    assert log_histogram({"a": np.zeros(3)}).empty
    assert log_histogram({"a": np.full(3, 0.5)})["share"].sum() == 1
