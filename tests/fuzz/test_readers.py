"""Every reader with files that were changed: a graph that can be written and read again, or one sentence that names the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError
from tests.fuzz.effort import cases, in_time
from tests.fuzz.mutators import BINARY_TOO, HARMLESS, Change, changed, changes
from tests.fuzz.oracles import a_folder, assert_round_trip, assert_sentence, content, meaning
from tests.fuzz.valid_files import Form, forms

every_form = pytest.mark.parametrize("form", forms())


def put_all(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def judge(form: Form, files: Mapping[str, bytes]) -> None:
    """Reads the files, twice, and compares with what comes back from other files."""
    with a_folder() as folder:
        put_all(folder, files)
        try:
            with in_time():
                graphs = form.read(folder)
        except EngineError as error:
            assert_sentence(error, str(folder), *files)
            return
        assert [content(graph) for graph in form.read(folder)] == [content(graph) for graph in graphs]
        for graph in graphs:
            assert_round_trip(graph, folder)


@every_form
@pytest.mark.timeout(1800)
@cases(15)
@given(which=st.integers(0, 99), victim=st.integers(0, 99), several=changes())
def test_changed_files(form: str, which: int, victim: int, several: list[Change]) -> None:
    kind = forms()[form]
    files = dict(kind.every[which % len(kind.every)])
    name = sorted(files)[victim % len(files)]
    other = kind.every[(which + 1) % len(kind.every)]
    files[name] = changed(files[name], several, other.get(name, b""))
    judge(kind, files)


@every_form
@pytest.mark.parametrize("harmless", HARMLESS)
def test_what_changes_nothing(form: str, harmless: str) -> None:
    kind = forms()[form]
    if not kind.text and (harmless not in BINARY_TOO or form in ("parquet", "sqlite")):
        pytest.skip("no text")
    for files in kind.folders:
        assert_same_graph(kind, files, {name: HARMLESS[harmless](data) for name, data in files.items()})


@pytest.mark.parametrize("form", [name for name, one in forms().items() if one.comment])
def test_comments_change_nothing(form: str) -> None:
    kind = forms()[form]
    for files in kind.folders:
        assert_same_graph(kind, files, {name: data + kind.comment for name, data in files.items()})


@pytest.mark.parametrize("form", [name for name, one in forms().items() if one.rows])
@cases(3)
@given(data=st.data())
def test_the_order_of_lines_changes_nothing(form: str, data: st.DataObject) -> None:
    kind = forms()[form]
    files = kind.folders[data.draw(st.integers(0, len(kind.folders) - 1))]
    shuffled = {}
    for name, whole in files.items():
        first = 1 if name.endswith(".tsv") else 0
        lines = whole.splitlines(keepends=True)
        shuffled[name] = b"".join([*lines[:first], *data.draw(st.permutations(lines[first:]))])
    assert_same_graph(kind, files, shuffled)


def assert_same_graph(kind: Form, files: Mapping[str, bytes], others: Mapping[str, bytes]) -> None:
    with a_folder() as folder:
        put_all(folder / "one", files)
        put_all(folder / "other", others)
        graphs = kind.read(folder / "one")
        assert [meaning(graph) for graph in kind.read(folder / "other")] == [meaning(graph) for graph in graphs]
        for graph in graphs:
            assert_round_trip(graph, folder)
