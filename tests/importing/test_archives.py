"""Archives: what is unpacked, and each way in which one can be hostile."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import DataImportError
from engine.importing.archives import is_archive, refuse_half_archive, unpack
from engine.importing.source import LIMITS, Limits

SMALL = Limits(file_bytes=2**20, unpacked_bytes=2**16, files=5, ratio=20, ratio_from=2**12)
Pack = Callable[[Path, dict[str, bytes]], None]


def pack_zip(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def pack_tar(path: Path, files: dict[str, bytes], mode: str = "w:") -> None:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def pack_tgz(path: Path, files: dict[str, bytes]) -> None:
    pack_tar(path, files, "w:gz")


PACKERS: dict[str, Pack] = {"zip": pack_zip, "tar": pack_tar, "tar.gz": pack_tgz}
every_kind = pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)


def refused(path: Path, into: Path, words: str, limits: Limits = SMALL) -> None:
    with pytest.raises(DataImportError, match=words) as caught:
        unpack(path, path.name, into, limits)
    assert "\n" not in str(caught.value)


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@every_kind
def test_files_come_out_as_they_went_in(pack: Pack, tmp_path: Path) -> None:
    files = {"data/graph 1.csv": b"a,b,c\n", "data/721_5fold/1/train_links": os.urandom(3000), "empty": b""}
    pack(tmp_path / "archive", files)
    assert is_archive(tmp_path / "archive")
    unpack(tmp_path / "archive", "archive", tmp_path / "out", SMALL)
    assert content_of(tmp_path / "out") == files


@every_kind
def test_what_programs_add_is_left_out(pack: Pack, tmp_path: Path) -> None:
    pack(tmp_path / "archive", {"__MACOSX/a/b/c/d/e/f/._a.csv": b"x", ".DS_Store": b"x", "data/Thumbs.db": b"x", "a.csv": b"y"})
    unpack(tmp_path / "archive", "archive", tmp_path / "out")
    assert content_of(tmp_path / "out") == {"a.csv": b"y"}


@every_kind
@pytest.mark.parametrize("name", ["../out.csv", "a/../../out.csv", "/etc/out.csv", "a\\..\\out.csv", "C:out.csv", "\\out.csv"])
def test_no_name_leads_out(pack: Pack, name: str, tmp_path: Path) -> None:
    pack(tmp_path / "archive", {name: b"x"})
    refused(tmp_path / "archive", tmp_path / "deep" / "er" / "out", "leads out of the archive")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "archive"]


@every_kind
def test_too_deep_and_too_long(pack: Pack, tmp_path: Path) -> None:
    pack(tmp_path / "deep", {"/".join("abcdefgh"): b"x"})
    refused(tmp_path / "deep", tmp_path / "one", "too long or too deep")
    pack(tmp_path / "long", {"x" * 250: b"x"})
    refused(tmp_path / "long", tmp_path / "two", "too long or too deep")


@every_kind
def test_too_many_files(pack: Pack, tmp_path: Path) -> None:
    pack(tmp_path / "archive", {f"{number}.csv": os.urandom(700) for number in range(6)})
    refused(tmp_path / "archive", tmp_path / "out", "more than 5 files, the limit")


@every_kind
def test_a_name_that_comes_twice(pack: Pack, tmp_path: Path) -> None:
    pack(tmp_path / "archive", {"a.csv": b"1", "./a.csv": b"2"})
    refused(tmp_path / "archive", tmp_path / "out", "archive holds 'a.csv' twice; pack each file once")


@every_kind
@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a"), ("a/b/c", "a")])
def test_a_name_that_is_a_file_and_a_folder(pack: Pack, names: tuple[str, str], tmp_path: Path) -> None:
    pack(tmp_path / "archive", dict.fromkeys(names, b"1"))
    refused(tmp_path / "archive", tmp_path / "out", f"holds '{names[1]}' as a file and as a folder")


@every_kind
def test_backslashes_separate_folders(pack: Pack, tmp_path: Path) -> None:
    pack(tmp_path / "archive", {"data\\": b"", "data\\kg1.csv": b"1", "data\\sub\\kg2.csv": b"2"} if pack is pack_zip else {"data\\kg1.csv": b"1"})
    unpack(tmp_path / "archive", "archive", tmp_path / "out")
    found = content_of(tmp_path / "out")
    assert found == ({"data/kg1.csv": b"1", "data/sub/kg2.csv": b"2"} if pack is pack_zip else {"data/kg1.csv": b"1"})


@every_kind
def test_a_colon_in_a_name(pack: Pack, tmp_path: Path) -> None:
    pack(tmp_path / "archive", {"kg1: of 2024.csv": b"1", "data/wd:links.csv": b"2"})
    unpack(tmp_path / "archive", "archive", tmp_path / "out")
    assert content_of(tmp_path / "out") == {"kg1: of 2024.csv": b"1", "data/wd:links.csv": b"2"}


@every_kind
def test_control_characters_in_names(pack: Pack, tmp_path: Path) -> None:
    pack(tmp_path / "archive", {"a\nb.csv": b"x"})
    refused(tmp_path / "archive", tmp_path / "out", "holds 'a.nb.csv', a name with a control character; rename")


def test_a_password(tmp_path: Path) -> None:
    """The flag is what readers go by; nothing is decrypted here."""
    path = tmp_path / "archive.zip"
    pack_zip(path, {"a.csv": b"x"})
    content = bytearray(path.read_bytes())
    content[6] |= 1  # of the file
    content[content.find(b"PK\x01\x02") + 8] |= 1  # and in the list of files
    path.write_bytes(content)
    refused(path, tmp_path / "out", r"^archive\.zip is protected by a password; pack it again without one\.$")


@pytest.mark.parametrize("pack", [pack_tar, pack_tgz])
def test_a_tar_that_ends_in_a_zip_is_a_tar(pack: Pack, tmp_path: Path) -> None:
    pack_zip(tmp_path / "inner.zip", {"inside.csv": b"x"})
    files = {"a.csv": b"y", "inner.zip": (tmp_path / "inner.zip").read_bytes()}
    pack(tmp_path / "archive", files)
    unpack(tmp_path / "archive", "archive", tmp_path / "out")
    assert content_of(tmp_path / "out") == files


def test_a_zip_whose_end_is_missing_is_not_read_as_the_zip_inside_of_it(tmp_path: Path) -> None:
    pack_zip(tmp_path / "inner.zip", {"inside.csv": b"x"})
    with zipfile.ZipFile(tmp_path / "whole.zip", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a.csv", b"y")
        archive.writestr("inner.zip", (tmp_path / "inner.zip").read_bytes())
    whole = (tmp_path / "whole.zip").read_bytes()
    (tmp_path / "half.zip").write_bytes(whole[: whole.rfind(b"PK\x01\x02", 0, whole.rfind(b"PK\x01\x02"))])
    refused(tmp_path / "half.zip", tmp_path / "out", "a zip archive whose end is missing, or is damaged")


@pytest.mark.parametrize("end", [b"PK\x05\x06", b"PK\x05\x06" + bytes(18)])
def test_a_table_with_the_bytes_of_a_zip_near_its_end_is_a_table(end: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b,c\n" + end)
    assert not is_archive(tmp_path / "a.csv")
    refuse_half_archive(tmp_path / "a.csv", "a.csv")


@pytest.mark.parametrize("pack", [pack_tar, pack_tgz])
def test_several_tars_in_one_file_are_not_read_in_part(pack: Pack, tmp_path: Path) -> None:
    for name in "ab":
        pack(tmp_path / name, {f"{name}.csv": b"x"})
    (tmp_path / "both").write_bytes((tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes())
    refused(tmp_path / "both", tmp_path / "out", "both contains data after its end, as several archives in one file do", LIMITS)


def test_a_gzipped_tar_of_several_members_is_read_whole(tmp_path: Path) -> None:
    pack_tar(tmp_path / "plain", {"a.csv": os.urandom(2000), "b.csv": b"y"})
    plain = (tmp_path / "plain").read_bytes()
    (tmp_path / "archive").write_bytes(b"".join(gzip.compress(piece) for piece in (b"", plain[:100], plain[100:700], b"", plain[700:])))
    assert is_archive(tmp_path / "archive")
    unpack(tmp_path / "archive", "archive", tmp_path / "out")
    assert set(content_of(tmp_path / "out")) == {"a.csv", "b.csv"}


@every_kind
def test_a_place_without_room_is_not_the_archives_fault(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(tmp_path / "archive", {"a.csv": b"x"})

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda path, mode="r", _open=Path.open: full() if "x" in mode else _open(path, mode))
    refused(tmp_path / "archive", tmp_path / "out", r"cannot be unpacked here \(no space left on device\); free some space")


@every_kind
def test_too_much_content(pack: Pack, tmp_path: Path) -> None:
    pack(tmp_path / "archive", {"a": os.urandom(40_000), "b": os.urandom(40_000)})
    refused(tmp_path / "archive", tmp_path / "out", "unpacks to more than 64 KiB, the limit")


@pytest.mark.parametrize("pack", [pack_zip, pack_tgz])
def test_a_bomb(pack: Pack, tmp_path: Path) -> None:
    pack(tmp_path / "archive", {"zeros": bytes(60_000)})
    refused(tmp_path / "archive", tmp_path / "out", "more than 20 times its size")


def test_sizes_are_counted_and_not_believed(tmp_path: Path) -> None:
    """The list of files says 10 bytes, the content is 60,000."""
    path = tmp_path / "archive.zip"
    pack_zip(path, {"zeros": bytes(60_000)})
    packed = path.read_bytes()
    lie = packed.replace((60_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert lie != packed
    path.write_bytes(lie)
    with pytest.raises(DataImportError):
        unpack(path, path.name, tmp_path / "out", SMALL)
    assert sum(map(len, content_of(tmp_path / "out").values())) < 60_000


def test_a_tar_header_of_enormous_size_is_not_read(tmp_path: Path) -> None:
    """Extended headers are read into memory whole by the tarfile module."""
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 2**33
    path = tmp_path / "archive.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf(tarfile.USTAR_FORMAT) if info.size < 2**33 else info.tobuf(tarfile.GNU_FORMAT)))
    assert is_archive(path)
    refused(path, tmp_path / "out", "times its size")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar(kind: bytes, tmp_path: Path) -> None:
    path = tmp_path / "archive.tar"
    with tarfile.open(path, "w:") as archive:
        info = tarfile.TarInfo("graph.csv")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    refused(path, tmp_path / "out", "a link or a device")


def test_links_in_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "archive.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("graph.csv")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    refused(path, tmp_path / "out", "a link or a device")


def test_a_zip_with_an_enormous_list_of_files_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "archive.zip"
    pack_zip(path, {"a.csv": b"x"})
    content = bytearray(path.read_bytes())
    at = content.rfind(b"PK\x05\x06")
    content[at + 12 : at + 16] = (2**31).to_bytes(4, "little")
    path.write_bytes(content)
    refused(path, tmp_path / "out", "more than 5 files")


@every_kind
def test_damaged_archives(pack: Pack, tmp_path: Path) -> None:
    path = tmp_path / "archive"
    pack(path, {"a.csv": os.urandom(5000), "b.csv": os.urandom(5000)})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 8] + whole[len(whole) // 8 + 700 :])
    if is_archive(path):
        refused(path, tmp_path / "out", ".")


def test_a_zip_that_did_not_arrive_whole_is_distinguished_from_files_that_are_none(tmp_path: Path) -> None:
    pack_zip(tmp_path / "archive", {"a.csv": os.urandom(5000)})
    whole = (tmp_path / "archive").read_bytes()
    for content in (whole, b"a,b,c\n", b""):
        (tmp_path / "file").write_bytes(content)
        refuse_half_archive(tmp_path / "file", "mine.zip")
    for size in (4, len(whole) // 2, len(whole) - 30):
        (tmp_path / "file").write_bytes(whole[:size])
        with pytest.raises(DataImportError, match=r"mine\.zip is a zip archive whose end is missing"):
            refuse_half_archive(tmp_path / "file", "mine.zip")


@settings(deadline=None)
@given(content=st.binary(max_size=600))
def test_anything_else_is_no_archive_or_is_refused_in_a_sentence(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "file").write_bytes(b"PK\x03\x04" + content)
    if is_archive(folder / "file"):
        refused(folder / "file", folder / "out", ".")
