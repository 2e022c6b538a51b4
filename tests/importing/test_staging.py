"""Uploaded files: kept under a name that cannot be guessed, cleaned up, and never written elsewhere."""

from __future__ import annotations

import io
import os
import time
import zipfile
from pathlib import Path

import pytest

from engine.data.tabular import Layout
from engine.errors import DataImportError
from engine.importing import Corrections, Upload, add, clean_up, correct, discard, find_staged, preview, stage, stage_folder
from engine.importing.source import Limits
from engine.importing.staging import PARTIAL, STAGING, safe_file_name
from tests.data.writers import WRITERS, small_sample
from tests.importing.conftest import GRAPH_1, GRAPH_2, LINKS
from tests.importing.test_archives import pack_tgz


def uploaded(name: str, content: str | bytes, role: str | None = None) -> Upload:
    return Upload(name, io.BytesIO(content.encode() if isinstance(content, str) else content), role)  # type: ignore[arg-type]


def three() -> list[Upload]:
    return [uploaded("a.csv", GRAPH_1, "graph 1"), uploaded("b.csv", GRAPH_2, "graph 2"), uploaded("links.csv", LINKS, "links")]


def test_what_is_staged_is_found_again_with_its_corrections(data: Path) -> None:
    staged = stage(three())
    assert find_staged(staged.token) == staged
    said = Corrections(
        roles={"links": "links.csv"},
        tables={"graph 1": Layout(";", True, {"head": 2})},
        name_attribute="title",
        swap_links=True,
        seeds="near",
        rejected=frozenset({("a", "b")}),
    )
    changed = correct(staged, said)
    assert changed.version == 1
    assert find_staged(staged.token) == changed
    assert find_staged(staged.token).corrections == said
    discard(changed)
    assert not list(data.iterdir())


def test_links_that_come_later_take_the_place_of_earlier_ones(data: Path) -> None:
    said = Corrections(
        roles={"graph 1": "a.csv", "links": "links.csv"}, tables={"graph 1": Layout(), "links": Layout()}, swap_links=True, seeds="near"
    )
    staged = correct(stage(three()), said)
    after = add(staged, uploaded("links.csv", "source,target\na:Rome,b:Rome\n", "links"))
    assert find_staged(staged.token) == after
    assert after.version == staged.version + 1
    assert after.corrections == Corrections(roles={"graph 1": "a.csv"}, tables={"graph 1": Layout()}, seeds="near")
    assert [(file.name, file.role) for file in after.material.files] == [("a.csv", "graph 1"), ("b.csv", "graph 2"), ("links.csv", "links")]
    assert sum(preview(after.material, Corrections()).links.values()) == 1
    assert len(list(data.rglob("links.csv"))) == 1, "what made way is gone"


def test_links_that_come_later_leave_a_folder_of_the_server_alone(tmp_path: Path) -> None:
    for name, content in (("source.csv", GRAPH_1), ("target.csv", GRAPH_2)):
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / name).write_text(content, encoding="utf-8")
    after = add(stage_folder(tmp_path / "mine"), uploaded("../known.csv", LINKS, "links"))
    assert sum(preview(after.material, after.corrections).links.values()) == 8
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["source.csv", "target.csv"]


def test_later_links_that_are_refused_change_nothing(tmp_path: Path, data: Path) -> None:
    staged = stage(three())
    pack_tgz(tmp_path / "x.tgz", {"links.csv": LINKS.encode()})
    with pytest.raises(DataImportError, match="is an archive, where one file was expected as links"):
        add(staged, uploaded("x.tgz", (tmp_path / "x.tgz").read_bytes(), "links"))
    with pytest.raises(DataImportError, match="is larger than"):
        add(staged, uploaded("links.csv", LINKS, "links"), Limits(file_bytes=3))
    assert find_staged(staged.token) == staged
    assert len(list((data / f"{STAGING}{staged.token}" / "files").iterdir())) == 3


def test_the_folder_is_for_the_servers_user_alone(data: Path) -> None:
    staged = stage(three())
    assert (data / f"{STAGING}{staged.token}").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("token", ["", "..", "../x", "0" * 31, "0" * 32, "0" * 32 + "/..", "Z" * 32, "x" * 10_000, "\0"])
def test_unknown_tokens(token: str, data: Path) -> None:
    data.mkdir()
    with pytest.raises(DataImportError, match="Start again with the files"):
        find_staged(token)


def test_a_damaged_state_is_no_crash(data: Path) -> None:
    staged = stage(three())
    for content in ("", "[]", '{"files": 3}', "{"):
        (data / f"{STAGING}{staged.token}" / "staging.json").write_text(content, encoding="utf-8")
        with pytest.raises(DataImportError, match="Start again"):
            find_staged(staged.token)


@pytest.mark.parametrize(
    "name", ["../../etc/passwd.csv", "/etc/x.csv", "..\\x.csv", ".hidden.csv", "<b>x</b>.csv", "北京.csv", "a" * 300 + ".csv", ".."]
)
def test_names_are_text_and_no_paths(name: str, data: Path) -> None:
    staged = stage([uploaded(name, GRAPH_1, "graph 1"), *three()[1:]])
    assert staged.material.files[0].name == name
    inside = data / f"{STAGING}{staged.token}"
    assert all(file.path.resolve().is_relative_to(inside.resolve()) for file in staged.material.files)
    assert {path.name for path in data.iterdir()} == {inside.name}
    safe = safe_file_name(name)
    assert safe.isascii()
    assert "/" not in safe
    assert not safe.startswith(".")


def test_nothing_is_left_behind_by_what_is_refused(data: Path) -> None:
    with pytest.raises(DataImportError, match=r"large\.csv is larger than 10 bytes, the limit"):
        stage([uploaded("large.csv", b"x" * 100, "graph 1")], Limits(file_bytes=10))
    with pytest.raises(DataImportError, match="both given as source graph"):
        stage([uploaded("a.csv", GRAPH_1, "graph 1"), uploaded("b.csv", GRAPH_1, "graph 1")])
    with pytest.raises(DataImportError, match="no file was given"):
        stage([])
    assert not data.exists() or not list(data.iterdir())


def test_an_archive_is_unpacked_and_understood_as_a_whole(tmp_path: Path) -> None:
    WRITERS["openea"][1](tmp_path / "openea", small_sample())
    members = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in (tmp_path / "openea").rglob("*") if path.is_file()}
    pack_tgz(tmp_path / "a.tar.gz", members)
    staged = stage([uploaded("mine.tar.gz", (tmp_path / "a.tar.gz").read_bytes())])
    assert preview(staged.material, Corrections()).format == "openea"


def test_an_archive_within_an_archive_is_named(tmp_path: Path, data: Path) -> None:
    pack_tgz(tmp_path / "graphs.tar.gz", {"source.csv": GRAPH_1.encode(), "target.csv": GRAPH_2.encode()})
    pack_tgz(tmp_path / "all.tgz", {"all/graphs.tar.gz": (tmp_path / "graphs.tar.gz").read_bytes(), "all/links.csv": LINKS.encode()})
    staged = stage([uploaded("all.tgz", (tmp_path / "all.tgz").read_bytes())])
    with pytest.raises(DataImportError, match=r"source graph, and graphs\.tar\.gz is an archive among them; unpack it"):
        preview(staged.material, staged.corrections)


def test_an_archive_where_a_graph_was_expected(tmp_path: Path) -> None:
    pack_tgz(tmp_path / "a.tar.gz", {"a": b"x"})
    with pytest.raises(DataImportError, match="is an archive, where one file was expected as graph 1"):
        stage([uploaded("a.tar.gz", (tmp_path / "a.tar.gz").read_bytes(), "graph 1")])


def test_archives_with_nothing_to_read_are_called_by_their_own_names(tmp_path: Path, data: Path) -> None:
    zipfile.ZipFile(tmp_path / "a.zip", "w").close()
    with pytest.raises(DataImportError, match=r"^mine\.zip holds no files; choose one with two graphs"):
        stage([uploaded("mine.zip", (tmp_path / "a.zip").read_bytes())])
    with pytest.raises(DataImportError, match=r"^mine\.zip is a zip archive whose end is missing"):
        stage([uploaded("mine.zip", b"PK\x03\x04" + b"x" * 500)])
    assert not data.exists() or not list(data.iterdir())


def test_a_workbook_where_a_graph_was_expected(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as workbook:
        workbook.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(DataImportError, match="if it is an Excel workbook, save the sheet as CSV"):
        stage([uploaded("a.xlsx", (tmp_path / "a.xlsx").read_bytes(), "graph 1")])


def test_a_folder_on_the_server_stays_where_it_is(tmp_path: Path) -> None:
    WRITERS["csv"][1](tmp_path / "mine", small_sample())
    before = {path.name for path in (tmp_path / "mine").iterdir()}
    staged = stage_folder(tmp_path / "mine")
    assert find_staged(staged.token) == staged
    discard(staged)
    assert {path.name for path in (tmp_path / "mine").iterdir()} == before


def test_what_is_a_day_old_goes(data: Path) -> None:
    old, new = stage(three()), stage(three())
    (data / f"{PARTIAL}x").mkdir()
    for path in (data / f"{STAGING}{old.token}", data / f"{PARTIAL}x"):
        os.utime(path, (time.time() - 90_000,) * 2)
    (data / "kept").mkdir()
    os.utime(data / "kept", (0, 0))
    assert clean_up() == 2
    assert {path.name for path in data.iterdir()} == {"kept", f"{STAGING}{new.token}"}


def test_a_data_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "file" / "data"))
    with pytest.raises(DataImportError, match="cannot be written to"):
        stage(three())


def limited(bytes_: int) -> Limits:
    return Limits(storage_bytes=bytes_, free_bytes=0)


def test_uploads_of_all_users_share_the_storage(data: Path) -> None:
    size = sum(len(text) for text in (GRAPH_1, GRAPH_2, LINKS))
    first = stage(three(), limited(size))
    taken = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    with pytest.raises(DataImportError, match="are left for uploads"):
        stage(three(), limited(taken + size - 1))
    with pytest.raises(DataImportError, match="are left for uploads"):
        add(first, uploaded("links.csv", LINKS, "links"), limited(taken))
    assert len(list(data.iterdir())) == 1
    stage(three(), limited(taken + size))


def test_an_archive_unpacks_into_what_is_left(tmp_path: Path, data: Path) -> None:
    archive = tmp_path / "a.tgz"
    pack_tgz(archive, {"a.csv": GRAPH_1.encode() * 100, "b.csv": GRAPH_2.encode(), "links.csv": LINKS.encode()})
    content = archive.read_bytes()
    with pytest.raises(DataImportError, match="unpacks to more than"):
        stage([uploaded("a.tgz", content)], limited(len(content) + 1000))
    assert not list(data.iterdir())


def test_some_of_the_disk_stays_free(data: Path) -> None:
    with pytest.raises(DataImportError, match="0 bytes are left"):
        stage(three(), Limits(storage_bytes=2**60, free_bytes=2**62))
