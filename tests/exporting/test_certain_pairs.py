"""Known links and reviewers' decisions in an export: what wins, what is counted, and how ties are reported and broken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from engine.cli.main import main
from engine.explore.alignment import stored_candidates
from engine.exporting import (
    DECODER_NAMES,
    DECODER_WORDS,
    DecidedPair,
    ExportSelection,
    ExportTable,
    default_decoder,
    export_bytes,
    get_format,
    pairs_to_export,
)
from engine.exporting.selection import tied_candidates
from engine.runs.view import RunView
from tests.exporting.test_exporting import PLAIN, frame_of, strange_run
from tests.run_fixture import MemoryRun, assemble, graph_tables, jolted, sample_run, stored_matches


@pytest.fixture(scope="module")
def view() -> RunView:
    """A run whose best matches contradict some known links: its embeddings are disturbed."""
    return RunView(rematched(jolted(strange_run(), 0.25, 5)))


def rematched(run: MemoryRun) -> MemoryRun:
    """The run with the matches that its embeddings give."""
    cosines = run.tensors["embeddings"]["source"] @ run.tensors["embeddings"]["target"].T
    terms = run.tensors["hubness"]
    scores = 2 * cosines - terms["source_all"][:, None] - terms["target_all"][None]
    matches = pd.concat([stored_matches(scores, cosines, "source"), stored_matches(scores.T, cosines.T, "target")], ignore_index=True)
    best = matches.query("rank == 1 and entity >= 12")[["graph", "entity", "match"]]
    probabilities = best.assign(probability=np.linspace(0.02, 0.98, len(best)))
    return replace(run, tables={**run.tables, "matches": matches, "probabilities": probabilities})


def ends(table: ExportTable) -> set[tuple[int, int]]:
    return set(zip(*(end.tolist() for end in table.ends), strict=True))


def known_links(view: RunView) -> set[tuple[int, int]]:
    links = view.run.table("links").query("role != 'unsure'")
    return set(zip(links["source"].tolist(), links["target"].tolist(), strict=True))


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("decoder", [None, *DECODER_NAMES])
def test_known_links_win_with_every_decoder(view: RunView, decoder: str | None, side: Any) -> None:
    table = pairs_to_export(view, ExportSelection(decoder=decoder, side=side))
    assert known_links(view) <= ends(table)
    assert not (frame_of(table)["verdict"] == "contradicts a known link").any()
    assert table.conflicts is not None
    assert table.conflicts.contradicting == 0


def test_one_to_one_is_the_default_where_the_known_links_are(view: RunView) -> None:
    assert default_decoder(view) == "one-to-one"
    table = pairs_to_export(view, ExportSelection())
    assert table.origin.decoder == "one-to-one"
    assert all(len(np.unique(end)) == len(end) for end in table.ends)
    run, links = view.run, view.run.table("links")
    assert isinstance(run, MemoryRun)
    several = RunView(replace(run, tables={**run.tables, "links": pd.concat([links, links.head(1).assign(target=60)])}))
    assert default_decoder(several) == "csls"
    assert known_links(several) <= ends(pairs_to_export(several, ExportSelection())), "both counterparts of the entity that has two"
    probable = RunView(replace(run, tables={**run.tables, "links": pd.concat([links, links.head(1).assign(target=60, role="unsure")])}))
    assert default_decoder(probable) == "one-to-one", "a probable link says nothing"


def test_whoever_loses_an_entity_to_a_known_link_gets_the_next_best(view: RunView) -> None:
    free, settled = (ends(pairs_to_export(view, ExportSelection(known_links=known))) for known in (False, True))
    lost = {source for source, target in free - settled if target in {target for _, target in known_links(view)}}
    lost -= {source for source, _ in known_links(view)}
    assert lost
    assert lost & {source for source, _ in settled}


def test_what_conflicts_is_counted(view: RunView) -> None:
    table = pairs_to_export(view, PLAIN)
    frame = frame_of(table)
    against = frame["verdict"] == "contradicts a known link"
    seeds = view.run.table("links").query("role == 'train'")
    source, target = table.ends
    touched = np.isin(source, seeds["source"]) | np.isin(target, seeds["target"])
    found = table.conflicts
    assert found is not None
    assert found.contradicting == against.sum() > 0
    assert found.contradicting_seeds == (against & touched).sum()
    assert found.shared == {"source": 0, "target": int((frame["target"].value_counts() > 1).sum())}
    assert found.shared["target"] > 0
    said = table.expectation().sentence()
    assert f"Conflicts: {found.contradicting} pairs contradict a known link ({found.contradicting_seeds} a seed link)" in said
    kept = pairs_to_export(view, ExportSelection(decoder="csls"))
    assert kept.conflicts is not None
    assert kept.conflicts.replaced == found.contradicting
    assert f"{found.contradicting} predictions replaced by known links" in kept.expectation().sentence()


def test_predictions_are_measured_before_known_links_are_put_in(view: RunView) -> None:
    table = pairs_to_export(view, ExportSelection(decoder="csls"))
    measured, plain = table.expectation().measured, pairs_to_export(view, PLAIN).expectation().measured
    assert measured is not None
    assert plain is not None
    assert 0 < measured.share < 1, "of what is exported every pair that known links tell of is right"
    assert plain.right <= measured.right, "seed links are put in, so fewer predictions stand in the way of others"
    assert "is not comparable" in table.expectation().sentence()


def test_estimates_leave_out_what_is_certain(view: RunView) -> None:
    uris = {side: view.graphs[side].uris for side in ("source", "target")}
    source, target = next(
        pair for pair in sorted(ends(pairs_to_export(view, ExportSelection())) - known_links(view)) if view.probability("source", *pair) is not None
    )
    before = pairs_to_export(view, ExportSelection()).expectation()
    table = pairs_to_export(view, ExportSelection(), [DecidedPair(uris["source"][source], uris["target"][target], True, ("Ana",))])
    after, frame = table.expectation(), frame_of(table)
    assert after.accepted == 1
    assert after.estimated == before.estimated - 1
    assert frame.loc[frame["review"] == "accepted", "probability"].isna().all(), "a person decided, so the model's guess is no news"
    assert after.links == sum(1 for role in view.run.table("links")["role"] if role in ("valid", "test"))


def test_reviewers_overrule_known_links(view: RunView) -> None:
    uris = {side: view.graphs[side].uris for side in ("source", "target")}
    links = [pair for pair in sorted(known_links(view)) if pair[0] >= 30]
    (rejected, moved), free = links[:2], max(set(range(80)) - {target for _, target in known_links(view)})
    reviewed = [
        DecidedPair(uris["source"][rejected[0]], uris["target"][rejected[1]], False),
        DecidedPair(uris["source"][moved[0]], uris["target"][free], True),
    ]
    table = pairs_to_export(view, ExportSelection(), reviewed)
    assert not {rejected, moved} & ends(table)
    assert (moved[0], free) in ends(table)
    assert table.conflicts is not None
    assert table.conflicts.overruled == 2
    assert "2 known links overruled by reviewers' decisions" in table.expectation().sentence()


# Ties


def star(order: list[int]) -> MemoryRun:
    """A hub with indistinguishable leaves, in either graph, with their numbers in some order."""
    count = len(order)
    uris = {side: [f"{side}:hub", *(f"{side}:leaf {one}" for one in order)] for side in ("source", "target")}
    hub, leaf = np.eye(4, dtype=np.float32)[:2]
    rows = np.stack([hub, *([leaf] * count)])
    triples = [(one, 0, 0) for one in range(1, count + 1)]
    tables = [graph_tables(side, uris[side], [""] * (count + 1), triples, ["in"]) for side in ("source", "target")]
    return assemble(tables[0], tables[1], [(0, 0, "train")], (rows, rows.copy()))


def identified(run: MemoryRun, **options: Any) -> list[tuple[str, str, int]]:
    frame = frame_of(pairs_to_export(RunView(run), ExportSelection(**options)))
    return sorted(zip(frame["source"], frame["target"], frame["ties"], strict=True))


def test_ties_are_reported_and_decided_by_nothing_that_depends_on_the_order_of_rows() -> None:
    one, other = (identified(star(order)) for order in ([0, 1, 2, 3], [2, 0, 3, 1]))
    assert one == other
    assert len(one) == 5
    assert [ties for source, _, ties in one if source == "source:hub"] == [0], "a known link is no choice"
    assert all(ties == 6 for source, _, ties in one if source != "source:hub"), "three others for either end"
    assert "4 pairs had an equally good candidate" in pairs_to_export(RunView(star([0, 1, 2, 3])), ExportSelection()).expectation().sentence()


def test_a_clear_choice_has_no_ties_and_every_table_says_so() -> None:
    run = sample_run()
    assert {ties for _, _, ties in identified(run)} == {0}
    assert {ties for _, _, ties in identified(star([0, 1, 2]), decoder="csls") if _ != "target:hub"} == {4}
    header = export_bytes(pairs_to_export(RunView(star([0, 1, 2])), ExportSelection()), get_format("csv")).decode("utf-8-sig").splitlines()
    assert header[0].split(",")[7] == "ties"
    assert sorted(line.split(",")[7] for line in header[1:]) == ["0", "4", "4", "4"]


@pytest.mark.parametrize("seed", range(5))
def test_ties_are_counted_as_one_would_by_hand(seed: int) -> None:
    draw, whole = np.random.default_rng(seed), stored_candidates(RunView(star([0, 1, 2])))
    candidates = whole.kept(draw.random(len(whole)) < 0.7)
    pairs, scores = draw.integers(0, 4, (6, 2)), draw.choice(candidates.csls, 6).astype(np.float32)
    expected = []
    for (source, target), score in zip(pairs.tolist(), scores.tolist(), strict=True):
        near = np.abs(candidates.csls - score) <= candidates.tolerance
        of_source = near & (candidates.sources == source) & (candidates.targets != target)
        of_target = near & (candidates.targets == target) & (candidates.sources != source)
        expected.append(int(of_source.sum() + of_target.sum()))
    assert tied_candidates(candidates, pairs[:, 0], pairs[:, 1], scores).tolist() == expected
    assert tied_candidates(whole.kept(np.zeros(len(whole), dtype=np.bool_)), pairs[:, 0], pairs[:, 1], scores).tolist() == [0] * 6


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("decoder", DECODER_NAMES)
def test_entities_that_lose_their_match_to_a_known_link_are_counted(view: RunView, decoder: str, side: Any) -> None:
    plain, kept = (pairs_to_export(view, ExportSelection(decoder=decoder, side=side, known_links=known)) for known in (False, True))
    at = 0 if side == "source" else 1
    before, after = ({int(one) for one in table.ends[at]} for table in (plain, kept))
    assert kept.conflicts is not None
    message = kept.expectation().sentence()
    if decoder != "one-to-one":  # which may also match entities otherwise that had no certain rival
        assert kept.conflicts.emptied == len(before - after)
    assert ("without a pair" in message) == bool(kept.conflicts.emptied)
    if decoder == "csls":
        assert kept.conflicts.emptied > 0


def test_every_decoder_has_its_words_and_the_same_list_serves_both_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(DECODER_WORDS) == set(DECODER_NAMES)
    for command in ("export", "evaluate"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        message = " ".join(capsys.readouterr().out.split())
        assert all(f"{name}: {DECODER_WORDS[name]}" in message for name in DECODER_NAMES if (command, name) != ("evaluate", "one-to-one")), command
    assert main(["evaluate", "no-run", "--decoder", "one-to-one"]) == 2
    assert "test links cannot measure it; use evaluate --decoder stable" in capsys.readouterr().err
