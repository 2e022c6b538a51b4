"""JSON that the project wrote itself, with other values in it: the record of an import, an import in progress, settings, corrections."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import RunConfig
from engine.data import load_task
from engine.data.library import RECORD, data_sets, starting_config, stored_settings
from engine.errors import EngineError
from engine.explanation.new_entities import read_new_entities
from engine.importing import Corrections, Upload, correct, find_staged, preview, stage, store
from tests.fuzz.effort import cases, in_time
from tests.fuzz.oracles import assert_sentence
from tests.importing.conftest import GRAPH_1, GRAPH_2, LINKS

ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        "",
        "x",
        "\x1b",
        "\u202e",
        "\ud800",
        "../..",
        "9" * 5000,
        0,
        -1,
        10**400,
        1e308,
        float("nan"),
        float("inf"),
        [],
        [[]],
        {},
        {"a": 1},
    ),
    *([None], ["a", "b"], "a" * 50, {"": {}}, "\0"),
)
"""What is of another kind than expected, or out of every range."""


def places(value: Any) -> list[tuple[Any, ...]]:
    """Where in a value something can be replaced: the keys that lead there."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(), *((key, *below) for key, part in parts for below in places(part))]


def replaced(value: Any, place: tuple[Any, ...], other: Any) -> Any:
    """The value with something else at a place."""
    if not place:
        return other
    if isinstance(value, dict):
        return {key: replaced(part, place[1:], other) if key == place[0] else part for key, part in value.items()}
    return [replaced(part, place[1:], other) if at == place[0] else part for at, part in enumerate(value)]


def without(value: Any, place: tuple[Any, ...]) -> Any:
    """The value without what is at a place."""
    if len(place) == 1:
        return {key: part for key, part in value.items() if key != place[0]} if isinstance(value, dict) else value[: place[0]] + value[place[0] + 1 :]
    if isinstance(value, dict):
        return {key: without(part, place[1:]) if key == place[0] else part for key, part in value.items()}
    return [without(part, place[1:]) if at == place[0] else part for at, part in enumerate(value)]


def other_values(value: Any) -> st.SearchStrategy[Any]:
    """The value with one part replaced or missing."""
    every = places(value)
    one = st.tuples(st.sampled_from(every), st.sampled_from(ODD)).map(lambda drawn: replaced(value, *drawn))
    return one | st.sampled_from(every[1:]).map(lambda place: without(value, place))


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with an import, and one in progress that was corrected."""
    folder = tmp_path_factory.mktemp("imports")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("DUAL_AMN_DATA", str(folder))
        uploads = [
            Upload(name, io.BytesIO(content.encode()), role)  # type: ignore[arg-type]
            for name, content, role in (("one.csv", GRAPH_1, "graph 1"), ("two.csv", GRAPH_2, "graph 2"), ("links.csv", LINKS, "links"))
        ]
        staged = stage(uploads)
        store(staged.material, Corrections(), "stored")
        said = preview(staged.material, Corrections())
        assert said.files
        correct(staged, Corrections(least_confidence=0.5))
    return folder


def staged_file(folder: Path) -> tuple[Path, str]:
    """The file of the import in progress, and its token."""
    (path,) = folder.rglob("staging.json")
    return path, path.parent.name[-32:]


def test_they_are_valid_at_first(imports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(imports))
    assert find_staged(staged_file(imports)[1]).corrections.least_confidence == 0.5
    assert next(one for one in data_sets() if one.name == "stored").links == 8


@contextmanager
def changed_json(imports: Path, path: Path, data: st.DataObject) -> Iterator[None]:
    """A file of JSON with another value somewhere, and the folder of imports where the app looks for it, for as long as a case may take."""
    whole = path.read_text(encoding="utf-8")
    value = data.draw(other_values(json.loads(whole)))
    try:
        path.write_text(json.dumps(value), encoding="utf-8")
        with pytest.MonkeyPatch.context() as monkeypatch, in_time():
            monkeypatch.setenv("DUAL_AMN_DATA", str(imports))
            yield
    finally:
        path.write_text(whole, encoding="utf-8")


@pytest.mark.timeout(1800)
@cases(12)
@given(data=st.data())
def test_the_record_of_an_import(imports: Path, data: st.DataObject) -> None:
    path = imports / "stored" / RECORD
    with changed_json(imports, path, data):
        assert "stored" in [one.name for one in data_sets()]
        for use in (lambda: stored_settings(path.parent), lambda: starting_config(path.parent), lambda: load_task(path.parent)):
            try:
                use()
            except EngineError as error:
                assert_sentence(error)


@pytest.mark.timeout(1800)
@cases(12)
@given(data=st.data())
def test_an_import_in_progress(imports: Path, data: st.DataObject) -> None:
    path, token = staged_file(imports)
    with changed_json(imports, path, data):
        try:
            assert find_staged(token).token
        except EngineError as error:
            assert_sentence(error)


@pytest.mark.timeout(1800)
@cases(12)
@given(value=other_values(RunConfig().to_dict()))
def test_settings(value: Any) -> None:
    if not isinstance(value, dict):
        return
    try:
        config = RunConfig.from_dict(value)
    except EngineError as error:
        assert_sentence(error)
        return
    assert RunConfig.from_dict(config.to_dict()) == config


NEW = {"id": "x", "label": "Name", "names": ["one"], "triples": [["x", "near", "Rome"]], "values": [["year", "1999"]]}


@pytest.mark.timeout(1800)
@cases(12)
@given(value=other_values(NEW))
def test_new_entities(value: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("new") / "new.jsonl"
    path.write_text(json.dumps(value) + "\n", encoding="utf-8")
    try:
        (found,) = read_new_entities(path)
    except EngineError as error:
        assert_sentence(error, str(path))
        return
    assert [found.id, found.label, list(found.names)] == [value["id"], value.get("label", ""), value.get("names", [])]
    assert repr(found).encode()
