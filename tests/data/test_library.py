"""Which data sets the library lists, and what it reports about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.data.library import RECORD, StoredDataSet, data_sets
from engine.util import paths

WHOLE: dict[str, Any] = {
    "fingerprint": "ab" * 32,
    "imported": "2026-11-28T12:00:00+00:00",
    "counts": {"source": {"entities": 3, "triples": 2}, "target": {"entities": 4, "triples": 5}, "links": 1},
    "settings": {"data.name_attribute": "title"},
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path))
    return tmp_path


def add(data: Path, name: str, record: object | None) -> Path:
    folder = data / name
    folder.mkdir()
    if record is not None:
        (folder / RECORD).write_text(json.dumps(record), encoding="utf-8")
    return folder


def test_the_sample_data_are_listed_with_their_sizes(data: Path) -> None:
    found = {one.name: one for one in data_sets()}
    assert set(found) == {"europe", "world"}
    europe = found["europe"]
    assert (europe.entities, europe.triples, europe.links) == ((1510, 2160), (4548, 7566), 1170)
    assert europe.imported is None
    assert europe.shown_path == "sample_data/europe"
    assert (paths.PROJECT / europe.shown_path).samefile(europe.path)


def test_imports_come_first_the_newest_of_them_at_the_top(data: Path) -> None:
    older = add(data, "older", {**WHOLE, "imported": "2026-11-27T12:00:00+00:00"})
    newer = add(data, "newer", WHOLE)
    found = data_sets()
    assert [one.path for one in found[:2]] == [newer, older]
    assert found[0] == StoredDataSet("newer", newer, "ab" * 32, WHOLE["imported"], (3, 4), (2, 5), 1, {"data.name_attribute": "title"})
    assert found[0].shown_path == str(newer)


@pytest.mark.parametrize("record", [None, [], {}, {**WHOLE, "counts": 3}, {**WHOLE, "settings": None}, {**WHOLE, "counts": {"source": {}}}])
def test_a_damaged_record_hides_no_data_set(data: Path, record: object) -> None:
    folder = add(data, "torn", record)
    assert data_sets()[0] == StoredDataSet("torn", folder)


def test_staging_and_trash_are_no_data_sets(data: Path) -> None:
    add(data, ".staging-1", WHOLE)
    (data / "file").write_text("", encoding="utf-8")
    assert {one.name for one in data_sets()} == {"europe", "world"}


def test_without_a_data_folder_there_is_the_sample_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "none"))
    assert {one.name for one in data_sets()} == {"europe", "world"}


def test_without_links_the_command_names_a_variant_that_needs_none(data: Path) -> None:
    add(data, "bare", {**WHOLE, "counts": {**WHOLE["counts"], "links": 0}})
    assert "--variant semi" in data_sets()[0].train_command
    add(data, "linked", {**WHOLE, "imported": "2026-11-29T12:00:00+00:00"})
    assert "--variant" not in data_sets()[0].train_command
