"""Whatever a file holds, loading either works or says what is wrong in one sentence."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.config import DataConfig
from engine.data import inspect_task, load_task, render_inspection
from engine.errors import EngineError
from tests.data.writers import WRITERS, small_sample
from tests.effort import examples

near_misses = st.text(st.sampled_from("01a\t\n\r ,;\"'<>_:.@#\\\x00\ufeff\u202eé"), max_size=60).map(str.encode)
contents = st.binary(max_size=80) | near_misses | st.binary(max_size=30).map(lambda tail: b"\x1f\x8b" + tail)


def outcome(folder: Path) -> str:
    """What a user sees: the report, or the message of the error. Anything else than an EngineError fails the test."""
    try:
        text = render_inspection(inspect_task(load_task(folder)))
    except EngineError as error:
        text = str(error)
        one_line = True
    else:
        one_line = False
    assert text
    assert not [character for character in text if ord(character) < 32 and (one_line or character != "\n")]
    assert text.encode()  # no lone surrogates, which no terminal could print
    return text


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {}
    for form, (_, write) in WRITERS.items():
        folders[form] = tmp_path_factory.mktemp(form)
        write(folders[form], small_sample())
    return folders


@pytest.mark.parametrize("form", WRITERS)
def test_replaced_file(form: str, originals: dict[str, Path]) -> None:
    @settings(max_examples=examples(60), deadline=None)
    @given(st.data(), contents)
    def check(data: st.DataObject, content: bytes) -> None:
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(shutil.copytree(originals[form], Path(parent) / "data"))
            victim = data.draw(st.sampled_from(sorted(path for path in folder.rglob("*") if path.is_file())))
            victim.write_bytes(content)
            outcome(folder)

    check()


@pytest.mark.parametrize("form", WRITERS)
def test_spliced_file(form: str, originals: dict[str, Path]) -> None:
    """Bytes put into, or cut out of, an otherwise good file get further into the reader than noise does."""

    @settings(max_examples=examples(60), deadline=None)
    @given(st.data(), contents, st.integers(0, 10_000), st.integers(0, 20))
    def check(data: st.DataObject, content: bytes, at: int, cut: int) -> None:
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(shutil.copytree(originals[form], Path(parent) / "data"))
            victim = data.draw(st.sampled_from(sorted(path for path in folder.rglob("*") if path.is_file())))
            whole = victim.read_bytes()
            at %= len(whole)
            victim.write_bytes(whole[:at] + content + whole[at + cut :])
            outcome(folder)

    check()


@settings(max_examples=examples(60), deadline=None)
@given(name=st.text(st.characters(exclude_categories=("Cs",), exclude_characters="/\0"), min_size=1, max_size=40))
@example(name="..")
@example(name="links_1_2.csv")
@example(name="triples_1.csv.gz")
def test_hostile_file_names(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        WRITERS["csv"][1](Path(folder), small_sample())
        if name not in (".", ".."):
            (Path(folder) / name).write_bytes(b"\x00\xff")
        outcome(Path(folder))


@settings(max_examples=examples(60), deadline=None)
@given(fold=st.text(max_size=20))
@example(fold="../../..")
@example(fold="/")
@example(fold="1/../1")
def test_fold_never_becomes_a_path(fold: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        WRITERS["openea"][1](Path(folder), small_sample())
        if fold != "1":
            with pytest.raises(EngineError, match="there is no fold"):
                load_task(folder, DataConfig(fold=fold))


@pytest.mark.parametrize("name", ["a\nb", "x" * 300, "\u202eevil", "$(reboot)", "..", "a\0b", ""])
def test_hostile_paths(name: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError):
        load_task(tmp_path / "no" / name)


def test_deeply_nested_turtle(originals: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(originals["rdf"], tmp_path / "data"))
    (folder / "target.ttl").write_text("<http://a.org/a> <http://a.org/p> " + "[ <http://a.org/p> " * 100_000)
    assert "target.ttl" in outcome(folder)


def test_gzip_bomb_is_not_unpacked_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    WRITERS["openea"][1](tmp_path, small_sample(), gz=True)
    monkeypatch.setattr("engine.data.files.MAX_BYTES", 50)
    monkeypatch.setattr("engine.data.files.MAX_RATIO", 1)
    assert "If that is correct, provide it unpacked" in outcome(tmp_path)


@pytest.mark.parametrize("name", ["triples_1.csv", "triples_1.tsv"])
def test_a_row_of_a_million_cells(name: str, tmp_path: Path) -> None:
    WRITERS[name[-3:]][1](tmp_path, small_sample())
    delimiter = "," if name.endswith("csv") else "\t"
    (tmp_path / name).write_text(delimiter.join(["a"] * 1_000_000) + "\n")
    assert f"{name}:1: there are 1,000,000 columns here, where 1,000 are the limit" in outcome(tmp_path)
