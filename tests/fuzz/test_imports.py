"""The import with files of any content under any name: archives are unpacked, forms are found out, and each problem is one sentence."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data import load_task
from engine.errors import EngineError
from engine.importing import Corrections, Limits, Material, SourceFile, folder_material, understand, write
from engine.importing.archives import packing, unpack
from engine.importing.detect import sniff
from engine.importing.preview import Understood
from tests.data.test_round_trip import attributes_of, pairs_of, triples_of
from tests.data.writers import WRITERS, small_sample
from tests.fuzz.effort import cases, in_time
from tests.fuzz.mutators import Change, changed, changes
from tests.fuzz.oracles import a_folder, assert_sentence, rows
from tests.fuzz.test_links import FILES as LINKS
from tests.fuzz.valid_files import forms
from tests.importing.conftest import GRAPH_1, GRAPH_2
from tests.importing.conftest import LINKS as LINK_TABLE

GRAPHS = {
    f"{form}-{number}-{name}": (name, data)
    for form, kind in forms().items()
    for number, files in enumerate(kind.every)
    for name, data in files.items()
}
ENDINGS = (
    "csv",
    "tsv",
    "txt",
    "nt",
    "ttl",
    "trig",
    "nq",
    "rdf",
    "owl",
    "xml",
    "jsonld",
    "json",
    "jsonl",
    "obo",
    "ofn",
    "omn",
    "owx",
    "graphml",
    "gexf",
    "db",
    "",
)
ROLES = ("", "graph 1", "graph 2", "links", "links train", "attributes 1", "declared entities 1")
SMALL = Limits(file_bytes=2**20, unpacked_bytes=2**18, files=20, ratio=50, ratio_from=2**14)


@pytest.mark.timeout(1800)
@cases(15)
@given(
    form=st.sampled_from(sorted(GRAPHS)),
    other=st.sampled_from(sorted(GRAPHS)),
    several=changes(),
    ending=st.sampled_from(ENDINGS),
    role=st.sampled_from(ROLES),
)
def test_sniffing(form: str, other: str, several: list[Change], ending: str, role: str) -> None:
    name, content = GRAPHS[form]
    name = f"a.{ending}" if several[0].bit % 2 and ending else name.rsplit("/", 1)[-1]
    with a_folder() as folder:
        path = folder / "file"
        path.write_bytes(changed(content, several, GRAPHS[other][1]))
        try:
            with in_time():
                found = sniff(path, name, role)
        except EngineError as error:
            assert_sentence(error, name)
            return
        assert found.words.isprintable()


@pytest.mark.timeout(1800)
@cases(15)
@given(
    form=st.sampled_from(sorted(GRAPHS)), link=st.sampled_from(sorted(LINKS)), several=changes(), victim=st.sampled_from(["graph", "links", "both"])
)
def test_understanding(form: str, link: str, several: list[Change], victim: str) -> None:
    name, content = GRAPHS[form]
    name = name.rsplit("/", 1)[-1]
    link_name, link_content = ("links.csv", LINK_TABLE.encode()) if victim == "graph" else LINKS[link]
    if victim != "links":
        content = changed(content, several)
    if victim != "graph":
        link_content = changed(link_content, several)
    with a_folder() as folder:
        files = []
        for role, title, data in (("graph 1", name, content), ("graph 2", "other.csv", GRAPH_2.encode()), ("links", link_name, link_content)):
            place = folder / role
            place.mkdir()
            (place / title).write_bytes(data)
            files.append(SourceFile(place / title, title, role))  # type: ignore[arg-type]
        try:
            with in_time():
                found = understand(Material(tuple(files)), Corrections())
        except EngineError as error:
            assert_sentence(error)
            return
        for finding in found.preview.findings:
            assert finding.message.encode()
            assert "\n" not in finding.message
        assert_stored_as_understood(found, Material(tuple(files)), folder)


def assert_stored_as_understood(found: Understood, material: Material, folder: Path) -> None:
    """What an import accepts is stored, can be loaded, and is the same graphs then."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("DUAL_AMN_DATA", str(folder / "data"))
        try:
            stored = write(found, material, Corrections(), "stored")
        except EngineError as error:
            assert_sentence(error)
            return
        task = load_task(stored.path)
    raw = found.raw
    for graph, read in ((task.source, raw.source), (task.target, raw.target)):
        assert triples_of(graph) == set(rows((read.heads, read.relations, read.tails)))
        assert attributes_of(graph) == {row for row in rows(read.attributes) if row[2].strip()}
    known = {pair for part in raw.links.values() for pair in zip(part.sources, part.targets, strict=True)}
    assert {pair for part in ("train", "valid", "test") for pair in pairs_of(task, part)} <= known


@pytest.mark.timeout(1800)
@cases(15)
@given(form=st.sampled_from(sorted(WRITERS)), several=changes(), victim=st.integers(0, 99), rename=st.booleans())
def test_folders(form: str, several: list[Change], victim: int, rename: bool) -> None:
    """A whole folder, with one of its files changed or under another's name."""
    with a_folder() as folder:
        WRITERS[form][1](folder, small_sample())
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        path = files[victim % len(files)]
        if rename:
            path.rename(path.with_name(files[several[0].share % len(files)].name))
        else:
            path.write_bytes(changed(path.read_bytes(), several, files[0].read_bytes()))
        try:
            with in_time():
                understand(folder_material(folder), Corrections())
        except EngineError as error:
            assert_sentence(error)


# Archives

CONTENTS = {"kg1.csv": GRAPH_1.encode(), "sub/kg2.csv": GRAPH_2.encode(), "links.csv": LINK_TABLE.encode()}


def zipped(compression: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in CONTENTS.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return buffer.getvalue()


def tarred(mode: str, form: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=form) as archive:  # type: ignore[call-overload]
        for name, content in CONTENTS.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("a-link")
        link.type, link.linkname = tarfile.SYMTYPE, "kg1.csv"
        if form == tarfile.PAX_FORMAT:
            archive.addfile(tarfile.TarInfo(f"{'long' * 30}.csv"))
    return buffer.getvalue()


ARCHIVES = {
    "zip": zipped(zipfile.ZIP_DEFLATED),
    "stored": zipped(zipfile.ZIP_STORED),
    "lzma": zipped(zipfile.ZIP_LZMA),
    "tar": tarred("w:", tarfile.PAX_FORMAT),
    "gnu": tarred("w:", tarfile.GNU_FORMAT),
    "tar.gz": tarred("w:gz", tarfile.USTAR_FORMAT),
}


@pytest.mark.parametrize("form", ARCHIVES)
@pytest.mark.timeout(1800)
@cases(15)
@given(several=changes(), other=st.sampled_from(sorted(ARCHIVES)), at=st.integers(0, 511), value=st.binary(min_size=1, max_size=12))
def test_archives(form: str, several: list[Change], other: str, at: int, value: bytes) -> None:
    whole = ARCHIVES[form]
    content = changed(whole, several, ARCHIVES[other])
    if several[0].bit % 2:  # a header of one of its members
        begin = len(whole) * several[0].share // 1000 // 512 * 512
        content = whole[: begin + at] + value + whole[begin + at + len(value) :]
    with a_folder() as folder:
        path, into = folder / "archive", folder / "into"
        path.write_bytes(content)
        try:
            with in_time():
                packing(path)
                unpack(path, "archive", into, SMALL)
        except EngineError as error:
            assert_sentence(error, "archive")
        written = [found for found in folder.rglob("*") if found != path]
        assert not any(found.is_symlink() for found in written)
        assert sum(found.stat().st_size for found in written if found.is_file()) <= SMALL.unpacked_bytes + 2**18
        assert {found.relative_to(folder).parts[0] for found in written} <= {"into"}


def test_archives_are_valid_at_first(tmp_path: Path) -> None:
    for form, content in ARCHIVES.items():
        (tmp_path / form).write_bytes(content)
        unpack(tmp_path / form, form, tmp_path / f"into-{form}", SMALL)
        found = {name: (tmp_path / f"into-{form}" / name).read_bytes() for name in CONTENTS}
        assert found == CONTENTS
