"""What an export holds, that other tools take it, and that it can be read again as known links."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest

from engine.data.dialects import FORMULA_STARTS
from engine.data.links import read_links, resolve_links
from engine.decoding import find_candidates, get_decoder
from engine.errors import ConfigError, ExportError, RunDamagedError
from engine.explore.alignment import PairFilter, alignments
from engine.exporting import (
    COLUMNS,
    DECODER_NAMES,
    FORMATS,
    PREDICATES,
    SEARCHING,
    DecidedPair,
    ExportSelection,
    ExportTable,
    Format,
    export_bytes,
    get_format,
    lay_groundwork,
    pairs_to_export,
    prepare,
    preview_lines,
    reviewed_pairs,
    search_run,
    searched,
    write_export,
)
from engine.exporting.reviewed import all_hubness
from engine.exporting.selection import tied_candidates
from engine.importing import Corrections, folder_material, understand
from engine.reviews import Choice, ReviewStore
from engine.runs import RunStore
from engine.runs.manifest import SEAL
from engine.runs.view import RunView
from engine.util.apart import Helper
from engine.util.paths import reviews_file
from tests.run_fixture import MemoryRun, sample_run, write_run

PLAIN = ExportSelection(decoder="csls", known_links=False)
"""Each source's nearest, as the run has stored it."""
LINK_FORMATS = {name: one for name, one in FORMATS.items() if one.stem == "links"}
every_format = pytest.mark.parametrize("fmt", LINK_FORMATS.values(), ids=LINK_FORMATS)
# Each is a hair's breadth from another one: what an export of one may not turn into.
HOSTILE = (
    *("http://x/a b", "http://x/a%20b", "http://x/a%20b%20", "http://x/a b%20", "http://x/a%20b "),
    *("http://x/é", "http://x/%C3%A9", "http://x/%c3%a9", "http://x/e\u0301", "http://x/é b", "http://x/%C3%A9 b"),
    *(
        "Q",
        "urn:dual-amn:source:2:Q",
        "urn:dual-amn:source:3:Q",
        "2:Q",
        "urn:dual-amn:source:Q",
        "urn:dual-amn:target:Q",
        "urn:dual-amn:source:urn%3Adual-amn%3Asource%3AQ",
    ),
    *("é", "urn:dual-amn:source:é", "urn:dual-amn:target:é", "urn:dual-amn:source:%C3%A9", "urn:dual-amn:target:%C3%A9"),
    *("a\u2028b", "a\u2029b", "a\x85b", "a b", "a\u00a0b", "a\u3000b", "ab", "a\u200bb", "a\u200db"),
    *("\ufefff", "f", "'=1", "=1", "''=1", "＝1", "'＝1", " =1", "' =1", "\u200b=1", "'\u200b=1", "#x", '"q"', '""q""', "'q'"),
    *("http://x/#a:b", "http://x/#a", "x:a:b", "x:a", "http://x", "http://x/", "HTTP://x/", "http://[x", "http://x/100%", "http://x/100%25"),
    *("a,b", "a;b", "a|b", "a\\b", "_:b0", "<x>", "{x}", "%41", "A", "山", "山\u3000", "k", "K", "ﬁ", "fi", "-", "NaN", "null"),
    *("skos:x", "sssom:NoTermFound"),
)
STRANGE = (
    "=1+1",
    "'=1+1",
    "@x",
    "-5",
    "_:b0",
    "Q 90",
    'say "hi", you',
    "a;b,c",
    "http://one.example/100% #x#y",
    "http://one.example/ü|é",
    "Alien: Covenant",
    "#x",
    "北京",
)
LABELS = ("=HYPERLINK(1)", '"W" Al', "tab\there", "line\nend", "دمشق", "+49", "", "a|b", "x" * 3000)


def strange_run() -> MemoryRun:
    """The sample run with identifiers and labels that no format likes, and with probabilities."""
    run = sample_run()
    entities = run.tables["entities"].copy()
    for side, offset in (("source", 0), ("target", 3)):
        rows = entities.index[entities["graph"] == side]
        entities.loc[rows[14 : 14 + len(STRANGE)], "uri"] = [f"{one}{offset or ''}" if one != "_:b0" else f"_:b{offset}" for one in STRANGE]
        entities.loc[rows[14 : 14 + len(LABELS)], "label"] = list(LABELS)
    best = run.tables["matches"].query("rank == 1 and entity >= 12")[["graph", "entity", "match"]]
    tables = {
        **run.tables,
        "entities": entities,
        "probabilities": best.assign(probability=np.random.default_rng(0).permutation(np.linspace(0.02, 0.98, len(best)))),
    }
    return replace(run, tables=tables, manifest={**run.manifest, "files": {"probabilities.parquet": {}}})


@pytest.fixture(scope="module")
def view() -> RunView:
    return RunView(strange_run())


@pytest.fixture(scope="module")
def table(view: RunView) -> ExportTable:
    return pairs_to_export(view, PLAIN)


def pairs_of(table: ExportTable) -> list[tuple[str, str]]:
    return [pair for sources, targets in table.identifiers() for pair in zip(sources, targets, strict=True)]


def frame_of(table: ExportTable) -> pd.DataFrame:
    return pd.concat(list(table.chunks()), ignore_index=True)


def hostile_table(identifiers: Sequence[str] = HOSTILE) -> ExportTable:
    """Each identifier of the source graph with one of the target graph, which are the same; first comes the byte order mark."""
    run = sample_run()
    count = len(identifiers)
    both = {"source": sorted(identifiers, key=lambda one: one != "\ufefff"), "target": sorted(identifiers, reverse=True)}
    entities = pd.DataFrame(
        [{"graph": side, "entity": number, "uri": uri, "label": "", "degree": 1} for side, uris in both.items() for number, uri in enumerate(uris)]
    )
    one_side = pd.DataFrame({"entity": range(count), "rank": 1, "match": range(count), "cosine": 0.5, "csls": 0.5})
    matches = pd.concat([one_side.assign(graph=side) for side in both], ignore_index=True)
    tables = {**run.tables, "entities": entities, "matches": matches, "links": run.tables["links"].head(0)}
    return pairs_to_export(RunView(replace(run, tables=tables)), ExportSelection())


# Formats


@every_format
def test_no_two_identifiers_are_written_alike(fmt: Format, tmp_path: Path) -> None:
    table = hostile_table()
    assert len(table) == len(set(HOSTILE)) == len(HOSTILE)
    path = tmp_path / fmt.file_name(table.origin.run)
    write_export(path, table, fmt)
    found = resolve_links(read_links(path), set(HOSTILE), set(HOSTILE))
    assert list(zip(found.sources, found.targets, strict=True)) == pairs_of(table)


@every_format
def test_an_export_can_be_imported_again(fmt: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "data"))
    table = hostile_table()
    (tmp_path / "brought").mkdir()
    for name, around in (("kg1", HOSTILE), ("kg2", HOSTILE[::-1])):
        triples = pd.DataFrame({"head": around, "relation": name, "tail": [*around[1:], around[0]]})
        triples.to_parquet(tmp_path / "brought" / f"{name}.parquet")
    write_export(tmp_path / "brought" / fmt.file_name(table.origin.run), table, fmt)
    material = folder_material(tmp_path / "brought")
    found = understand(material, Corrections())
    message = {finding.code for finding in found.preview.findings}
    assert not message & {"links-unknown", "links-partly-unknown", "links-swapped", "unknown-link-entities", "links-turned", "links-left-out"}
    (links,) = found.raw.links.values()
    assert list(zip(links.sources, links.targets, strict=True)) == pairs_of(table)


def test_hostile_identifiers_are_valid_sssom(tmp_path: Path) -> None:
    table = hostile_table()
    write_export(tmp_path / "links.sssom.tsv", table, get_format("sssom"))
    assert sssom_problems(tmp_path / "links.sssom.tsv") == [str(len(table))]


@pytest.mark.parametrize("name", ["csv", "tsv", "openea"])
def test_identifiers_that_no_line_can_hold_are_named(name: str) -> None:
    with pytest.raises(ExportError, match=r"2 pairs cannot be written as .*'a\\tb' = 'x'"):
        export_bytes(hostile_table(["a\tb", "x"]), get_format(name))


@every_format
def test_an_export_can_be_read_again_as_known_links(fmt: Format, table: ExportTable, tmp_path: Path) -> None:
    path = tmp_path / fmt.file_name(table.origin.run)
    write_export(path, table, fmt)
    graphs = table.view.graphs
    found = resolve_links(read_links(path), set(graphs["source"].uris), set(graphs["target"].uris))
    assert list(zip(found.sources, found.targets, strict=True)) == pairs_of(table)
    assert [one.name for one in tmp_path.iterdir()] == [path.name], "nothing is left beside it"


@every_format
def test_many_chunks_are_one_file(fmt: Format, table: ExportTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = export_bytes(table, fmt)
    monkeypatch.setattr("engine.exporting.table.ROWS_AT_ONCE", 7)
    if fmt.name == "parquet":
        assert pq.read_table(io.BytesIO(export_bytes(table, fmt))).equals(pq.read_table(io.BytesIO(whole)))
    else:
        assert export_bytes(table, fmt) == whole


def test_csv_says_what_is_known_of_every_pair_and_runs_nothing(table: ExportTable) -> None:
    text = export_bytes(table, get_format("csv")).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert list(rows[0]) == list(COLUMNS)
    numbers = {"csls", "cosine", "probability"}
    assert not [cell for row in rows for name, cell in row.items() if name not in numbers and cell.startswith(FORMULA_STARTS)]
    for row, (source, target) in zip(rows, zip(*(end.tolist() for end in table.ends), strict=True), strict=True):
        pair = table.view.pair(source, target)
        assert (float(row["csls"]), float(row["cosine"])) == pytest.approx((pair.csls, pair.cosine), abs=1e-4)
        assert row["verdict"] == pair.verdict
        assert row["run"] == "towns/20261101-120000-basic-s0"
        assert row["ties"] == "0"
        assert row["probability"] == "" if pair.probability is None else float(row["probability"]) == pytest.approx(pair.probability, abs=1e-5)


def test_tsv_has_one_line_a_pair_and_no_quotation_marks_of_its_own(table: ExportTable) -> None:
    lines = export_bytes(table, get_format("tsv")).decode().splitlines()
    assert len(lines) == len(table) + 1
    assert {line.count("\t") for line in lines} == {len(COLUMNS) - 1}
    assert '"W" Al' in "\n".join(lines)


def test_parquet_has_types_and_texts_as_they_are(table: ExportTable) -> None:
    found = pq.read_table(io.BytesIO(export_bytes(table, get_format("parquet"))))
    assert [str(kind) for kind in found.schema.types[:5]] == ["string"] * 4 + ["float"]
    pd.testing.assert_frame_equal(found.to_pandas(), frame_of(table), check_dtype=False)
    assert "line\nend" in found["source_label"].to_pylist()


@pytest.mark.parametrize(("predicate", "iri"), PREDICATES.items())
def test_ntriples_are_taken_by_an_rdf_parser(table: ExportTable, predicate: Any, iri: str) -> None:
    triples = list(ox.parse(export_bytes(table, get_format("ntriples"), predicate), format=ox.RdfFormat.N_TRIPLES))
    assert len(triples) == len(table)
    assert {triple.predicate.value for triple in triples} == {iri}


def sssom_problems(path: Path) -> list[str]:
    """What the sssom package finds wrong, and how many mappings it takes, asked in a process of its own."""
    program = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from sssom.parsers import parse_sssom_table; from sssom.validators import validate\n"
        "found = parse_sssom_table(sys.argv[1])\n"
        "print(len(found.df))\n"
        "for report in validate(found, fail_on_error=False).values():\n"
        "    for result in report.results: print(result.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, encoding="utf-8")
    return done.stdout.splitlines()


def test_sssom_is_valid_by_its_own_package(view: RunView, tmp_path: Path) -> None:
    reviewed = [DecidedPair(view.graphs["source"].uris[20], view.graphs["target"].uris[5], True, ("Ana | Bo", "Cyd"))]
    table = pairs_to_export(view, ExportSelection(), reviewed)
    path = tmp_path / "links.sssom.tsv"
    write_export(path, table, get_format("sssom"))
    assert sssom_problems(path) == [str(len(table))]


def test_sssom_says_who_or_what_found_each_pair(view: RunView) -> None:
    accepted = DecidedPair(view.graphs["source"].uris[20], view.graphs["target"].uris[5], True, ("Ann, the | reviewer", "Cyd"))
    table = pairs_to_export(view, PLAIN, [accepted])
    lines = [line for line in export_bytes(table, get_format("sssom"), "owl:sameAs").decode().splitlines() if not line.startswith("#")]
    rows = pd.read_csv(io.StringIO("\n".join(lines)), sep="\t", keep_default_na=False)
    shown = frame_of(table)
    assert set(rows["predicate_id"]) == {"owl:sameAs"}
    by_hand = rows[rows["mapping_justification"] == "semapv:ManualMappingCuration"]
    assert by_hand["author_label"].tolist() == ["Ann, the ｜ reviewer|Cyd"]
    assert frame_of(table).query("review == 'accepted'")["reviewers"].tolist() == ["Ann, the ｜ reviewer|Cyd"]
    assert (rows["mapping_justification"] == "semapv:UnspecifiedMatching").sum() == (shown["verdict"] == "seed link").sum() > 0
    assert (rows["confidence"] == "").tolist() == shown["probability"].isna().tolist()
    assert rows["similarity_score"].between(0, 1).all()
    assert rows["ext_csls"].to_numpy() == pytest.approx(shown["csls"].to_numpy(), abs=1e-4)


def test_names_make_it_a_composite_matching(table: ExportTable) -> None:
    named = replace(table, origin=replace(table.origin, names=True))
    assert b"semapv:CompositeMatching" in export_bytes(named, get_format("sssom"))
    assert b"semapv:CompositeMatching" not in export_bytes(table, get_format("sssom"))


# Choosing


def test_the_whole_alignment_is_the_stored_best_matches(view: RunView, table: ExportTable) -> None:
    assert len(table) == len(view.graphs["source"])
    assert dict(zip(*(end.tolist() for end in table.ends), strict=True)) == view.best["source"]
    other = pairs_to_export(view, replace(PLAIN, side="target"))
    assert {target: source for source, target in zip(*(end.tolist() for end in other.ends), strict=True)} == view.best["target"]


def test_a_least_probability_keeps_seed_links(view: RunView) -> None:
    kept = frame_of(pairs_to_export(view, replace(PLAIN, least_probability=0.7)))
    seeds = kept["verdict"] == "seed link"
    assert seeds.any()
    assert (kept.loc[~seeds, "probability"] >= 0.7).all()
    without = frame_of(pairs_to_export(view, replace(PLAIN, least_probability=0.7, seeds=False)))
    pd.testing.assert_frame_equal(without, kept[~seeds].reset_index(drop=True))


def test_filters_of_the_page_of_pairs(view: RunView) -> None:
    wanted = PairFilter(known=frozenset({"right"}), degree=(None, 2))
    kept = pairs_to_export(view, replace(PLAIN, wanted=wanted))
    assert kept.positions.tolist() == alignments(view)["source"].select(wanted).tolist() != []


def test_what_is_to_be_expected(view: RunView) -> None:
    table = pairs_to_export(view, replace(PLAIN, least_probability=0.5))
    frame = frame_of(table)
    expected = table.expectation()
    assert expected.precision == pytest.approx(frame["probability"].mean(), abs=1e-5)
    right, wrong = ((frame["verdict"].isin(kinds)).sum() for kinds in (["known test link", "known validation link"], ["contradicts a known link"]))
    assert (expected.measured.right, expected.measured.wrong) == (right, wrong)
    assert f"{len(frame)} pairs, among them {(frame['verdict'] == 'seed link').sum()} seed links." in expected.sentence()


def test_probabilities_that_no_held_out_link_checks_are_marked(view: RunView) -> None:
    expected = pairs_to_export(view, PLAIN).expectation()
    assert expected.unchecked, "the run has four validation links"
    assert "No held-out links check these probabilities" in expected.sentence()
    assert "can be too high where the graphs share few names or values" in expected.sentence()
    assert "No held-out links check" not in replace(expected, unchecked=False).sentence()


@pytest.mark.parametrize("estimated", [True, False])
def test_predictions_without_a_probability_are_counted_with_the_reason(view: RunView, estimated: bool) -> None:
    run = view.run
    assert isinstance(run, MemoryRun)
    table = run.tables["probabilities"]
    gone = table[table["graph"] == "source"].index[:3]
    fit = {"calibration": {"fit": {"calibrated": True, "estimated": estimated}}}
    manifest = {**run.manifest, "files": {**run.manifest.get("files", {}), "calibration.json": {}}}
    lacking = replace(run, tables={**run.tables, "probabilities": table.drop(gone)}, documents={**run.documents, **fit}, manifest=manifest)
    before, after = (pairs_to_export(one, PLAIN).expectation() for one in (view, RunView(lacking)))
    assert (after.without_probability, after.estimated) == (before.without_probability + 3, before.estimated - 3)
    reason = "pairs that are each other's best match get one" if estimated else "the best match of an entity without a seed link gets one"
    assert f"{after.without_probability} further predictions have no probability, as only {reason}" in after.sentence()
    assert "no probability" not in replace(after, without_probability=0).sentence()
    assert "1 further prediction has no probability" in replace(after, without_probability=1).sentence()
    alone = replace(after, estimated=0, precision=None, measured=None)
    assert "no known links measure them: review a random sample" in alone.sentence()
    assert "review" not in replace(alone, without_probability=0).sentence(), "only known links are written"


def test_the_minimum_probability_is_in_the_summary(view: RunView) -> None:
    assert " Minimum probability 0.512." in pairs_to_export(view, replace(PLAIN, least_probability=0.5123)).expectation().sentence()
    assert "Minimum probability" not in pairs_to_export(view, PLAIN).expectation().sentence()


@pytest.mark.parametrize("decoder", DECODER_NAMES)
def test_every_decoder_gives_pairs_with_the_scores_that_are_shown_everywhere(view: RunView, decoder: str) -> None:
    for side, alignment in prepare(view, decoder, known_links=False).found.items():
        rows = alignment.rows
        assert 0 < len(rows) <= len(view.graphs[side])
        assert rows["entity"].is_unique
        if decoder == "one-to-one" or (decoder not in ("csls", "propagation") and get_decoder(decoder).one_to_one):
            assert rows["match"].is_unique
        for row in rows.sample(5, random_state=0).itertuples():
            pair = view.pair(*((row.entity, row.match) if side == "source" else (row.match, row.entity)))
            assert (row.csls, row.cosine, row.verdict) == (pytest.approx(pair.csls, abs=1e-4), pytest.approx(pair.cosine, abs=1e-4), pair.verdict)


@pytest.mark.parametrize("decoder", ["one-to-one", "csls", "mutual"])
def test_groundwork_that_is_kept_while_reviewers_decide_changes_nothing(view: RunView, decoder: str) -> None:
    groundwork = lay_groundwork(view, decoder)
    first = alignments(view)["source"].rows
    source, target = view.graphs["source"].uris, view.graphs["target"].uris
    decided = [DecidedPair(source[row.entity], target[row.match], accepted=number % 2 == 0) for number, row in enumerate(first.head(6).itertuples())]
    for number in range(0, 7, 3):
        alone, kept = prepare(view, decoder, True, decided[:number]), prepare(view, decoder, True, decided[:number], groundwork)
        for one, other in ((alone.found, kept.found), (alone.trial, kept.trial)):
            for side, alignment in one.items():
                pd.testing.assert_frame_equal(alignment.rows, other[side].rows)
        assert (alone.replaced, alone.emptied, alone.decoder) == (kept.replaced, kept.emptied, kept.decoder)


@pytest.mark.parametrize("decoder", SEARCHING)
def test_candidates_that_cannot_tie_are_not_needed(decoder: str) -> None:
    """The predictions of a searching decoder are kept without them; here many scores are equal."""
    run = sample_run()
    tied = replace(run, tensors={**run.tensors, "embeddings": {name: one.round(1) for name, one in run.tensors["embeddings"].items()}})
    view = RunView(tied)
    terms = all_hubness(view)
    every, kept = find_candidates(view.similarity, terms.k, terms=terms), searched(view, decoder)
    assert len(kept.candidates) <= len(every)
    for side, rows in kept.of.items():
        ends = [rows[name].to_numpy(dtype=np.int64) for name in (("entity", "match") if side == "source" else ("match", "entity"))]
        asked = (*ends, rows["csls"].to_numpy(dtype=np.float32))
        assert np.array_equal(tied_candidates(kept.candidates, *asked), tied_candidates(every, *asked))


def test_a_search_in_another_process_finds_the_same(tmp_path: Path) -> None:
    run = write_run(sample_run(), tmp_path)
    opened = RunStore(tmp_path).find(run)
    helper, here = Helper(), searched(RunView(opened), "mutual")
    apart = helper.run(search_run, tmp_path, run, str(opened.manifest[SEAL]), "mutual")
    helper.close()
    for side, rows in here.of.items():
        pd.testing.assert_frame_equal(apart.of[side], rows)
    assert np.array_equal(apart.candidates.codes, here.candidates.codes)
    with pytest.raises(RunDamagedError, match="is being replaced"):
        search_run(tmp_path, run, "another", "mutual")


def test_the_margin_of_a_decoders_choice_is_its_lead_over_the_best_other_one(view: RunView) -> None:
    for row in prepare(view, "assignment", known_links=False).found["source"].rows.itertuples():
        rivals = [match.csls for match in view.matches("source", row.entity, 3) if match.entity != row.match]
        assert row.margin == pytest.approx(row.csls - rivals[0], abs=1e-4)


# Reviewers have the last word


def test_accepted_pairs_replace_others_and_rejected_ones_are_gone(view: RunView) -> None:
    before = dict(zip(*(end.tolist() for end in pairs_to_export(view, PLAIN).ends), strict=True))
    uris = {side: view.graphs[side].uris for side in ("source", "target")}
    stolen = next(target for source, target in before.items() if source == 30)
    reviewed = [
        DecidedPair(uris["source"][20], uris["target"][stolen], True, ("Ana",)),
        DecidedPair(uris["source"][25], uris["target"][before[25]], False),
        DecidedPair("nobody", uris["target"][0], True),
    ]
    table = pairs_to_export(view, replace(PLAIN, least_probability=1.0), reviewed)
    assert (20, stolen) in set(zip(*(end.tolist() for end in table.ends), strict=True)), "whatever the least probability"
    table = pairs_to_export(view, PLAIN, reviewed)
    after = dict(zip(*(end.tolist() for end in table.ends), strict=True))
    assert after[20] == stolen
    assert 25 not in after
    assert [source for source, target in after.items() if target == stolen] == [20]
    expected = {source: target for source, target in before.items() if source not in (20, 25) and target != stolen}
    assert {source: target for source, target in after.items() if source != 20} == expected
    frame = frame_of(table)
    (row,) = frame[frame["review"] == "accepted"].itertuples()
    pair = view.pair(20, stolen)
    assert (row.source, row.reviewers, row.verdict) == (uris["source"][20], "Ana", pair.verdict)
    assert (row.csls, row.cosine) == pytest.approx((pair.csls, pair.cosine), abs=1e-4)


def test_the_reviewed_part_is_what_was_accepted(view: RunView) -> None:
    uris = {side: view.graphs[side].uris for side in ("source", "target")}
    reviewed = [DecidedPair(uris["source"][number], uris["target"][number + 2], number % 2 == 0) for number in range(14, 24)]
    for side in ("source", "target"):
        table = pairs_to_export(view, ExportSelection("reviewed", side=side), reviewed)  # type: ignore[arg-type]
        assert sorted(pairs_of(table)) == sorted((pair.source, pair.target) for pair in reviewed if pair.accepted)
    assert not len(pairs_to_export(view, ExportSelection("reviewed")))


# What cannot be


@pytest.mark.parametrize("least", [-0.1, 1.1, float("nan")])
def test_a_probability_that_is_none(view: RunView, least: float) -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        pairs_to_export(view, ExportSelection(least_probability=least))


def test_a_run_without_probabilities_gives_its_own_reason() -> None:
    run = sample_run()
    assert RunView(run).why_no_probabilities == "This run has no probabilities."
    run.documents = {**run.documents, "calibration": {"fit": {"calibrated": False, "reason": "There are only 7 mutual matches."}}}
    run.manifest = {**run.manifest, "files": {"calibration.json": {}}}
    with pytest.raises(ExportError, match=r"has no calibrated probabilities; .* There are only 7 mutual matches\."):
        pairs_to_export(RunView(run), ExportSelection(least_probability=0.5))


@pytest.mark.parametrize("name", ["", "xlsx", "../x"])
def test_unknown_names(view: RunView, name: str) -> None:
    with pytest.raises(ConfigError, match="unknown format"):
        get_format(name)
    with pytest.raises(ConfigError, match="unknown decoder"):
        prepare(view, name)


def test_nothing_is_no_export_and_a_predicate_needs_a_format_that_has_one(table: ExportTable) -> None:
    with pytest.raises(ExportError, match="there are no pairs to export"):
        export_bytes(table.head(0), get_format("csv"))
    with pytest.raises(ExportError, match="has no predicate"):
        export_bytes(table, get_format("csv"), "owl:sameAs")


@every_format
def test_a_preview_is_the_first_lines(fmt: Format, table: ExportTable) -> None:
    lines = preview_lines(table, fmt, rows=3)
    assert bool(lines) == fmt.readable
    if fmt.name == "openea":
        assert lines == export_bytes(table, fmt).decode().splitlines()[:3]


def test_reviews_are_the_majority_with_those_who_made_it(tmp_path: Path) -> None:
    votes = [
        ("Bo", "x", "accept"),
        ("Ana", "x", "accept"),
        ("Cyd", "x", "reject"),
        ("Ana", "y", "reject"),
        ("Ana", "z", "accept"),
        ("Bo", "z", "reject"),
    ]
    store = ReviewStore(reviews_file(tmp_path))
    assert reviewed_pairs(store, "data") == ()
    for number, (author, target, verdict) in enumerate(votes):
        store.decide("data", Choice("s", target, verdict), author, f"click-{number}")  # type: ignore[arg-type]
    store.decide("other data", Choice("s", "w", "accept"), "Ana", "click-w")
    assert reviewed_pairs(store, "data") == (DecidedPair("s", "x", True, ("Ana", "Bo")), DecidedPair("s", "y", False, ("Ana",)))
    store.close()
