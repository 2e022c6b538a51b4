"""The whole alignment as a table: the same numbers as for single pairs, and filters, orders and counts that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.data.knowledge_graph import SIDES, Side
from engine.explore.alignment import Alignment, PairFilter, alignments, incident_entities, relation_members, within
from engine.runs.verdicts import KNOWN, KNOWN_OF, NOT_ADDED, START_ROUND, VERDICTS, status_sentence, status_words, verdict_codes
from engine.runs.view import RunView
from tests.effort import examples
from tests.run_fixture import MemoryRun, sample_run

ALL = PairFilter()


def with_more(run: MemoryRun) -> MemoryRun:
    """The run, with probabilities of some best matches (and of one that is not), rounds that trained on two pairs, and two pairs to start from."""
    matches = run.tables["matches"]
    best = matches[matches["rank"] == 1]
    part = best[best["entity"] % 3 == 0][["graph", "entity", "match"]].assign(
        probability=np.linspace(0.05, 0.95, int((best["entity"] % 3 == 0).sum()))
    )
    other = pd.DataFrame({"graph": ["source"], "entity": [1], "match": [-1], "probability": [0.5]})
    first = best[best["graph"] == "source"].iloc[[20, 21, 20]]
    start = best[best["graph"] == "source"].iloc[[21, 22]]
    begun = pd.DataFrame({"source": start["entity"].to_numpy(), "target": start["match"].to_numpy(), "probability": 0.9})
    rounds = pd.DataFrame({"round": [2, 1, 1], "source": first["entity"].to_numpy(), "target": first["match"].to_numpy(), "score": 0.5})
    tables = {**run.tables, "probabilities": pd.concat([part, other], ignore_index=True), "selections": rounds, "start": begun}
    return replace(
        run, tables=tables, manifest={**run.manifest, "files": {f"{name}.parquet": {} for name in ("probabilities", "selections", "start")}}
    )


@pytest.fixture(scope="module")
def view() -> RunView:
    return RunView(with_more(sample_run()))


@pytest.fixture(scope="module")
def both(view: RunView) -> dict[Side, Alignment]:
    return alignments(view)


@pytest.mark.parametrize("side", SIDES)
def test_every_row_says_what_the_pair_itself_says(view: RunView, both: dict[Side, Alignment], side: Side) -> None:
    rows = both[side].rows
    assert rows["entity"].tolist() == list(range(len(view.graphs[side])))
    for row in rows.itertuples():
        source, target = (row.entity, row.match) if side == "source" else (row.match, row.entity)
        pair = view.pair(source, target)
        assert row.verdict == pair.verdict
        assert (row.csls, row.cosine) == pytest.approx((pair.csls, pair.cosine), abs=1e-5)
        assert row.added == (NOT_ADDED if pair.added is None else pair.added)
        expected = view.probability(side, row.entity, row.match)
        assert np.isnan(row.probability) if expected is None else row.probability == pytest.approx(expected)
        runner_up = view.matches(side, row.entity, top=2)[1]
        assert row.margin == pytest.approx(pair.csls - runner_up.csls, abs=1e-5)
        assert (row.degree, row.match_degree) == (
            (pair.source.degree, pair.target.degree) if side == "source" else (pair.target.degree, pair.source.degree)
        )


@pytest.mark.parametrize("side", SIDES)
def test_claims_and_mutual_matches_are_counted_over_the_whole_table(view: RunView, both: dict[Side, Alignment], side: Side) -> None:
    best = view.best
    across: Side = "target" if side == "source" else "source"
    claims = pd.Series(best[side]).value_counts()
    for row in both[side].rows.itertuples():
        assert row.claims == claims[row.match]
        assert row.mutual == (best[across][row.match] == row.entity)
    assert (both["target"].rows["claims"] > 1).any(), "twenty target entities too many: there must be conflicts"


links_of = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.sampled_from(["train", "valid", "test", "unsure", "strange"])), max_size=12)


@given(links_of)
@settings(max_examples=examples(60), deadline=None)
def test_verdicts_of_columns_are_those_of_single_pairs(links: list[tuple[int, int, str]]) -> None:
    table = pd.DataFrame(links, columns=["source", "target", "role"]).astype({"source": "int64", "target": "int64"})
    view = RunView(MemoryRun({}, None, {"links": table}, {}))
    source, target = (grid.ravel() for grid in np.meshgrid(np.arange(6), np.arange(5)))
    found = [VERDICTS[code] for code in verdict_codes(table, source, target, (6, 5))]
    assert found == [view.verdict(*pair) for pair in zip(source.tolist(), target.tolist(), strict=True)]


def test_names_are_shown_beside_the_cosine_of_a_literal_run_and_not_in_it(view: RunView, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = sample_run()
    literal = RunView(replace(plain, manifest={**plain.manifest, "literal": {"encoder": "ngrams", "weight": 1.0}}))
    asked: list[int] = []

    def parts(source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
        asked.append(len(source))
        return source.astype(np.float32), target.astype(np.float32)

    monkeypatch.setattr(literal, "parts", parts)
    rows = alignments(literal)["target"].rows
    assert rows["cosine"].tolist() == rows["match"].tolist()
    assert rows["names"].tolist() == rows["entity"].tolist()
    assert sum(asked) == len(view.graphs["source"]) + len(view.graphs["target"])


def test_the_parts_of_a_structural_run_are_its_cosine_alone(view: RunView) -> None:
    cosine, names = view.parts(np.array([3, 4]), np.array([5, 6]))
    assert cosine.tolist() == pytest.approx([view.pair(3, 5).cosine, view.pair(4, 6).cosine], abs=1e-6)
    assert np.isnan(names).all()


# Filters


@pytest.mark.parametrize(
    "wanted",
    [
        ALL,
        PairFilter(known=frozenset({"right", "wrong"})),
        PairFilter(probability=(0.3, None)),
        PairFilter(probability=(0.3, 0.6), known=frozenset({"right"})),
        PairFilter(csls=(None, 0.4)),
        PairFilter(degree=(1, 1)),
        PairFilter(conflicts=True),
        PairFilter(added=True),
        PairFilter(degree=(10**30, None)),
        PairFilter(csls=(-1e300, 1e300)),
    ],
    ids=["all", "known", "probable", "probable and right", "csls", "degree", "conflicts", "added", "vast degree", "vast csls"],
)
def test_filters_keep_the_rows_that_pass_all_of_their_parts(both: dict[Side, Alignment], wanted: PairFilter) -> None:
    alignment = both["target"]
    expected = [
        place
        for place, row in enumerate(alignment.rows.itertuples())
        if (not wanted.known or KNOWN_OF[row.verdict] in wanted.known)
        and all(
            (low is None or value >= low) and (high is None or value <= high)
            for value, (low, high) in ((row.probability, wanted.probability), (row.csls, wanted.csls), (row.degree, wanted.degree))
        )
        and (row.claims > 1 or not wanted.conflicts)
        and (row.added >= START_ROUND or not wanted.added)
    ]
    assert alignment.select(wanted).tolist() == expected


@pytest.mark.parametrize(
    ("text", "side", "entities"),
    [
        ("österreich", "source", [2]),
        ("OSTERREICH", "source", [2]),
        ("北京", "source", [13]),
        ("entity_5", "source", [5, *range(50, 60)]),
        ("no such", "source", []),
    ],
)
def test_texts_are_found_in_labels_and_identifiers_of_either_entity(both: dict[Side, Alignment], text: str, side: Side, entities: list[int]) -> None:
    rows = both[side].rows.iloc[both[side].select(PairFilter(text=text))]
    assert set(entities) <= set(rows["entity"])
    others = set(rows["entity"]) - set(entities)
    back = both["target"].rows.iloc[both["target"].select(PairFilter(text=text))]
    assert others <= set(rows[rows["match"].isin(back["entity"])]["entity"]), "only because of their matches"


def test_a_relation_keeps_its_heads_and_tails(view: RunView, both: dict[Side, Alignment]) -> None:
    triples = view.run.table("triples")
    incident = incident_entities(triples, "source", 2, len(view.graphs["source"]))
    assert np.flatnonzero(incident).tolist() == [0, 4, 8]
    assert both["source"].rows["entity"].iloc[both["source"].select(PairFilter(incident=incident))].tolist() == [0, 4, 8]


def test_nan_is_in_the_endless_range_alone() -> None:
    values = np.array([0.5, np.nan], dtype=np.float32)
    assert within(values, (None, None)).tolist() == [True, True]
    assert within(values, (0.0, None)).tolist() == [True, False]
    assert within(values, (None, 1.0)).tolist() == [True, False]


# Orders


@pytest.mark.parametrize("order", ["probability", "csls", "cosine", "margin", "degree", "claims"])
@pytest.mark.parametrize("reverse", [False, True])
def test_orders_are_of_all_rows_with_missing_values_last(both: dict[Side, Alignment], order: str, reverse: bool) -> None:
    alignment = both["source"]
    found = alignment.rows[order].iloc[alignment.ordered(alignment.select(ALL), order, reverse=reverse)].to_numpy(dtype=float)  # type: ignore[arg-type]
    known = found[~np.isnan(found)]
    assert np.isnan(found[len(known) :]).all()
    descending = reverse != (order == "claims")
    assert (np.diff(known) <= 0).all() if descending else (np.diff(known) >= 0).all()


def test_least_certain_first(both: dict[Side, Alignment]) -> None:
    alignment = both["source"]
    rows = alignment.rows.iloc[alignment.ordered(alignment.select(ALL))]
    seeds = (rows["verdict"] == "seed link").to_numpy()
    assert seeds.any()
    assert seeds[-seeds.sum() :].all(), "seed links at the end"
    rest = rows[~seeds]
    probability = rest["probability"].dropna()
    assert rest["probability"].head(len(probability)).notna().all()
    assert (probability - 0.5).abs().is_monotonic_increasing
    assert rest["margin"].iloc[len(probability) :].is_monotonic_increasing


def test_labels_are_sorted_whatever_their_case(view: RunView, both: dict[Side, Alignment]) -> None:
    alignment = both["source"]
    rows = alignment.rows.iloc[alignment.ordered(alignment.select(ALL), "label")]
    titles = [view.entity("source", entity).title.casefold() for entity in rows["entity"]]
    assert titles == sorted(titles)


def test_an_order_keeps_to_the_chosen_rows(both: dict[Side, Alignment]) -> None:
    chosen = both["source"].select(PairFilter(degree=(2, None)))
    assert sorted(both["source"].ordered(chosen, "cosine").tolist()) == chosen.tolist()


# What rows have in common


def test_precision_counts_what_is_known_and_no_seeds(both: dict[Side, Alignment]) -> None:
    alignment = both["target"]
    verdicts = alignment.rows["verdict"].astype(str)
    found = alignment.precision(alignment.select(ALL))
    assert found.right == int(verdicts.isin(["known test link", "known validation link"]).sum())
    assert found.wrong == int((verdicts == "contradicts a known link").sum())
    assert found.interval[0] < found.share < found.interval[1]
    assert alignment.all_counts == {known: int(verdicts.map(KNOWN_OF).eq(known).sum()) for known in KNOWN}


def test_precision_of_nothing_is_unknown(both: dict[Side, Alignment]) -> None:
    found = both["source"].precision(np.array([], dtype=np.int64))
    assert found.judged == 0
    assert np.isnan([found.share, *found.interval]).all()


@pytest.mark.parametrize("score", ["probability", "csls"])
def test_every_row_with_a_score_is_in_one_bin(both: dict[Side, Alignment], score: str) -> None:
    alignment = both["target"]
    chosen = alignment.select(PairFilter(degree=(2, None)))
    table = alignment.histogram(chosen, score)  # type: ignore[arg-type]
    values = alignment.rows[score].iloc[chosen].dropna()
    assert table[list(KNOWN)].to_numpy().sum() == len(values)
    for row in table.iloc[:-1].itertuples():
        inside = ((values >= row.low) & (values < row.high)).sum()
        assert sum(getattr(row, known) for known in KNOWN) == inside
    assert alignment.median(chosen, score) == pytest.approx(float(values.median()))  # type: ignore[arg-type]
    assert (table["low"].iloc[1:].to_numpy() == table["high"].iloc[:-1].to_numpy()).all()


# Reading


@pytest.mark.parametrize("side", SIDES)
def test_a_download_puts_source_before_target(view: RunView, both: dict[Side, Alignment], side: Side) -> None:
    alignment = both[side]
    positions = alignment.ordered(alignment.select(ALL), "csls")[:9]
    table = alignment.described(positions)
    assert list(table.columns)[:4] == ["source_label", "source_uri", "target_label", "target_uri"]
    for row, message in zip(alignment.rows.iloc[positions].itertuples(), table.itertuples(), strict=True):
        source, target = (row.entity, row.match) if side == "source" else (row.match, row.entity)
        one, two = view.entity("source", source), view.entity("target", target)
        assert (message.source_label, message.source_uri, message.source_degree) == (one.label, one.uri, one.degree)
        assert (message.target_label, message.target_uri, message.target_degree) == (two.label, two.uri, two.degree)
        assert message.verdict == row.verdict
        assert pd.isna(message.added_in_round) if row.added == NOT_ADDED else message.added_in_round == row.added


def test_a_pair_that_training_started_from_was_not_added_by_a_round(view: RunView, both: dict[Side, Alignment]) -> None:
    """Every round trains on the pairs of the start as well; that is no prediction of the model."""
    rows = both["source"].rows
    best = rows.set_index("entity")
    started, chosen = view.run.table("start")["source"].tolist(), view.run.table("selections")["source"].tolist()
    assert [best.loc[entity, "added"] for entity in started] == [START_ROUND] * 2
    assert best.loc[chosen[0], "added"] == 1
    assert (rows["added"] == NOT_ADDED).sum() == len(rows) - 3
    assert set(view.added_with(started[0])) == {best.loc[started[0], "match"]}
    assert status_words("unknown", START_ROUND) == "starting pair"
    sentence = status_sentence("unknown", START_ROUND)
    assert "started from this pair" in sentence
    assert "Round" not in sentence


def test_a_run_without_probabilities_and_rounds(both: dict[Side, Alignment]) -> None:
    plain = alignments(RunView(sample_run()))["source"]
    assert [plain.calibrated, plain.has_rounds, plain.named] == [False] * 3
    assert plain.median(plain.select(ALL), "probability") is None
    assert both["source"].calibrated
    assert both["source"].has_rounds


def test_graphs_without_entities_have_empty_tables() -> None:
    run = sample_run()
    tables = {name: table.iloc[:0] for name, table in run.tables.items()}
    for alignment in alignments(RunView(replace(run, tables=tables))).values():
        chosen = alignment.select(ALL)
        assert len(alignment) == len(alignment.ordered(chosen)) == len(alignment.described(chosen)) == 0
        assert alignment.histogram(chosen, "csls")[list(KNOWN)].to_numpy().sum() == 0


def test_entities_without_a_runner_up_have_no_margin() -> None:
    run = sample_run()
    matches = run.tables["matches"]
    alignment = alignments(RunView(replace(run, tables={**run.tables, "matches": matches[matches["rank"] == 1]})))["source"]
    assert alignment.rows["margin"].isna().all()
    assert len(alignment.ordered(alignment.select(ALL))) == len(alignment)


def test_parts_of_a_filter_and_all_but_one(both: dict[Side, Alignment]) -> None:
    alignment = both["source"]
    wanted = PairFilter(margin=(0.01, None), degree=(2, None), conflicts=True)
    parts = alignment.parts(wanted)
    assert set(parts) == {"margin", "degree", "conflicts"}
    assert alignment.passing(parts).tolist() == alignment.select(wanted).tolist()
    assert alignment.passing(parts, without="margin").tolist() == alignment.select(replace(wanted, margin=(None, None))).tolist()
    rows = alignment.rows.iloc[alignment.select(PairFilter(margin=(0.01, 0.2)))]
    assert rows["margin"].between(0.01, 0.2).all()
    assert alignment.passing({}).tolist() == list(range(len(alignment)))


def test_members_of_relations_are_those_that_are_incident(view: RunView) -> None:
    triples, size = view.run.table("triples"), len(view.graphs["target"])
    relations, entities = relation_members(triples, "target", size)
    assert len({*zip(relations.tolist(), entities.tolist(), strict=True)}) == len(relations) > 0
    for relation in range(3):
        assert sorted(entities[relations == relation]) == np.flatnonzero(incident_entities(triples, "target", relation, size)).tolist()
    assert [len(one) for one in relation_members(triples.iloc[:0], "target", 0)] == [0, 0]
