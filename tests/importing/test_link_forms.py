"""Confidence, cross references and mappings that say less than equality, from import to export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.data import load_task
from engine.data.library import RECORD
from engine.data.links import read_links
from engine.errors import DataImportError
from engine.importing import Corrections, folder_material, understand
from engine.importing.cross_references import entity_forms, is_called
from engine.importing.source import Corrections as Stored
from engine.importing.store import APART_FILE, write

OBO = "http://purl.obolibrary.org/obo/"
XREF = "http://www.geneontology.org/formats/oboInOwl#hasDbXref"
SKOS = "http://www.w3.org/2004/02/skos/core#"
LINKS = f"""#curie_map:
#  MA: "{OBO}MA_"
#  FMA: "{OBO}FMA_"
subject_id\tpredicate_id\tobject_id\tconfidence
MA:1\tskos:exactMatch\tFMA:1\t0.9
FMA:2\tskos:exactMatch\tMA:2\t0.3
MA:1\tskos:broadMatch\tFMA:2\t0.8
MA:2\tskos:closeMatch\tFMA:9\t
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two rings of six, with cross references from both graphs."""
    place = tmp_path / "anatomy"
    place.mkdir()
    for number, prefix in ((1, "MA"), (2, "FMA")):
        rows = [f"<{OBO}{prefix}_{at}> <http://r/part_of> <{OBO}{prefix}_{at % 6 + 1}> ." for at in range(1, 7)]
        own = {
            1: [f'<{OBO}MA_3> <{XREF}> "FMA:3" .', f'<{OBO}MA_4> <{XREF}> "UMLS:C1" .', f"<{OBO}MA_6> <{SKOS}exactMatch> <{OBO}FMA_6> ."],
            2: [f'<{OBO}FMA_5> <{XREF}> "{OBO}MA_5" .', f'<{OBO}FMA_1> <{XREF}> "MA:1" .', f'<{OBO}FMA_4> <{SKOS}closeMatch> "MA:4" .'],
        }
        (place / f"kg{number}.nt").write_text("\n".join([*rows, *own[number]]) + "\n", encoding="utf-8")
    (place / "links.sssom.tsv").write_text(LINKS, encoding="utf-8")
    return place


def links_of(folder: Path, **options: object) -> tuple[set[tuple[str, str]], dict[str, str]]:
    found = understand(folder_material(folder), Corrections(**options))  # type: ignore[arg-type]
    pairs = {
        (one.removeprefix(OBO), two.removeprefix(OBO))
        for part in found.raw.links.values()
        for one, two in zip(part.sources, part.targets, strict=True)
    }
    return pairs, {one.code: one.message for one in found.preview.findings}


def test_cross_references_are_links_on_request(folder: Path) -> None:
    own = {("MA_1", "FMA_1"), ("MA_2", "FMA_2")}
    assert links_of(folder)[0] == own
    pairs, findings = links_of(folder, links_from="oboInOwl:hasDbXref")
    assert pairs == own | {("MA_3", "FMA_3"), ("MA_5", "FMA_5")}
    assert "2 links came from" in findings["cross-references"]
    assert "1 value without an entity of the other graph" in findings["cross-references"]
    assert links_of(folder, links_from="skos:exactMatch")[0] == own | {("MA_6", "FMA_6")}
    with pytest.raises(DataImportError, match="neither graph has an attribute 'nothing'"):
        links_of(folder, links_from="nothing")


def test_cross_references_that_say_less_than_equality_are_no_links(folder: Path) -> None:
    found = understand(folder_material(folder), Corrections(links_from="closeMatch"))
    assert sum(len(part.sources) for part in found.raw.links.values()) == 2
    assert (f"{OBO}MA_4", f"{OBO}FMA_4", "skos:closeMatch") in set(
        zip(found.raw.apart.sources, found.raw.apart.targets, found.raw.apart.relations, strict=True)
    )


def test_an_abbreviation_of_two_entities_is_none_of_them() -> None:
    forms = entity_forms(["http://a/X_1", "http://b/X_1", "http://a/Y_1", "plain"])
    assert forms["X:1"] == ""
    assert forms["Y:1"] == "http://a/Y_1"
    assert forms["http://b/X_1"] == "http://b/X_1"
    assert "1" not in forms
    assert is_called(XREF, "hasDbXref")
    assert is_called(XREF, XREF)
    assert not is_called(XREF, "http://other#hasDbXref")


def test_links_below_the_least_confidence_are_left_out_and_counted(folder: Path) -> None:
    pairs, findings = links_of(folder, least_confidence=0.85)
    assert pairs == {("MA_1", "FMA_1")}
    assert "2 below the minimum confidence of 0.85" in findings["links-left-out"]


def test_corrections_are_kept_and_those_of_older_versions_read() -> None:
    corrections = Stored(least_confidence=0.5, links_from="hasDbXref")
    values = json.loads(json.dumps(corrections.to_dict()))
    assert Stored.from_dict(values) == corrections
    del values["least_confidence"], values["links_from"]
    assert Stored.from_dict(values) == Stored()


def test_from_import_to_export(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "data"))
    material, corrections = folder_material(folder), Corrections(links_from="hasDbXref")
    stored = write(understand(material, corrections), material, corrections, "anatomy").path
    assert (stored / APART_FILE).is_file()
    assert json.loads((stored / RECORD).read_text(encoding="utf-8"))["counts"]["kept apart"] == 2
    task = load_task(stored)
    expected = {(f"{OBO}MA_1", f"{OBO}FMA_2", "skos:broadMatch"), (f"{OBO}MA_2", f"{OBO}FMA_9", "skos:closeMatch")}
    assert {tuple(row[:3]) for row in task.apart.itertuples(index=False)} == expected
    assert sum(map(len, task.all_links())) == 4
    again = understand(folder_material(stored), Corrections())
    assert len(again.raw.apart) == 2
    models = str(tmp_path / "models")
    assert main(["train", str(stored), "--models", models, "--set", "training.epochs=1", "--set", "encoder.dim=4", "--json"]) == 0
    run = json.loads(capsys.readouterr().out)["run"]
    for options, number in (([], 2), (["--predictions-only"], 0)):
        file = tmp_path / f"links{number}.sssom.tsv"
        assert main(["export", run, "--models", models, "--format", "sssom", "--output", str(file), *options]) == 0
        found = read_links(file)
        assert len(found.apart) == number
        assert len(found.sources) > 0
        if number:
            assert set(zip(found.apart.sources, found.apart.targets, found.apart.relations, strict=True)) == expected
