"""Unpacking what other people packed: zip, tar and tar.gz. What a file begins with decides what it is; sizes are counted while reading, never taken
from a header."""

from __future__ import annotations

import gzip
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Literal

from engine.data.files import GZIP_MAGIC, is_by_product
from engine.errors import DataImportError
from engine.importing.source import LIMITS, Limits
from engine.util.machine import os_advice, os_reason
from engine.util.text import shorten, size_text

PIECE: Final = 2**18
LONGEST_PATH: Final = 200  # bytes of a name inside of an archive
DEEPEST: Final = 6
MOST_AT_ONCE: Final = 2**22
LONGEST_DIRECTORY: Final = 2**20
ZIP_MAGIC: Final = b"PK\x03\x04"
EMPTY_ZIP: Final = b"PK\x05\x06"
ENCRYPTED: Final = 0x1
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DRIVE = re.compile(r"[A-Za-z]:")
_UNREADABLE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError, RuntimeError, ValueError)


@dataclass(frozen=True)
class _Member:
    """A name, and the content of a regular file; None for links, devices and the like."""

    name: str
    content: IO[bytes] | None


Packing = Literal["zip", "tar", "tar.gz"]


def packing(path: Path) -> Packing | None:
    """What kind of archive the file is, by what it begins with; None for anything else."""
    try:
        with path.open("rb") as file:
            start = file.read(tarfile.BLOCKSIZE)
            if start.startswith((ZIP_MAGIC, EMPTY_ZIP)):
                return "zip"
            if not start.startswith(GZIP_MAGIC):
                return "tar" if _is_tar_header(start) else None
            file.seek(0)
            return "tar.gz" if _is_tar_header(gzip.GzipFile(fileobj=file).read(tarfile.BLOCKSIZE)) else None
    except (OSError, EOFError, zlib.error):
        return None


def is_archive(path: Path) -> bool:
    """Whether the file is a zip or tar archive, plain or gzipped."""
    return packing(path) is not None


def _is_tar_header(block: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")  # compares the checksum, which archives older than POSIX have as well
    except tarfile.HeaderError:
        return False
    return True


def refuse_half_archive(path: Path, name: str) -> None:
    """Notice what is left of a zip archive whose end, which holds its list of files, did not arrive.

    Raises:
        DataImportError: it is one; ``name`` is what its owner calls it.
    """
    if packing(path) == "zip" and not zipfile.is_zipfile(path):
        raise _half_archive(name)


def _half_archive(name: str) -> DataImportError:
    return DataImportError(f"{shorten(name)} is a zip archive whose end is missing, or is damaged; copy or pack it again.")


def unpack(archive: Path, name: str, into: Path, limits: Limits = LIMITS) -> None:
    """Write an archive's regular files into a new folder.

    Args:
        archive: the file.
        name: what its owner calls it, for messages.
        into: where the files go; nothing is ever written elsewhere.
        limits: what is accepted.

    Raises:
        DataImportError: a name that leads out of the folder, a link or device, an encrypted or damaged archive, too many files, too much content, or
            so much from so little that it is a bomb. What was unpacked until then is the caller's to remove.
    """
    into.mkdir(parents=True)
    meter = _Meter(name, archive.stat().st_size, limits)
    written: set[PurePosixPath] = set()
    try:
        with ExitStack() as stack:
            members = (_zip_members if packing(archive) == "zip" else _tar_members)(archive, meter, stack)
            for member in members:
                meter.file()
                relative = _checked(name, member)
                if relative is not None and member.content is not None:
                    _check_place(name, relative, written)
                    _write(into / relative, member.content, meter)
                    written.add(relative)
    except _UNREADABLE as error:
        words = shorten(getattr(error, "strerror", None) or str(error) or type(error).__name__, 100)
        raise DataImportError(f"{shorten(name)} cannot be unpacked ({words}); pack it again as .zip or .tar.gz, without a password.") from None


class _Meter:
    """Counts what comes out of an archive."""

    def __init__(self, name: str, packed: int, limits: Limits) -> None:
        self.name, self.packed, self.limits = shorten(name), packed, limits
        self.files = self.unpacked = 0

    def file(self) -> None:
        self.files += 1
        if self.files > self.limits.files:
            raise self.too_many()

    def too_many(self) -> DataImportError:
        return DataImportError(f"{self.name} holds more than {self.limits.files:,} files, the limit; pack the graphs and links alone.")

    def add(self, size: int) -> None:
        self.unpacked += size
        self.reach(self.unpacked)

    def reach(self, unpacked: int) -> None:
        """
        Raises:
            DataImportError: so much content is too much, or too much for the archive's size.
        """
        if unpacked > self.limits.unpacked_bytes:
            limit = size_text(self.limits.unpacked_bytes)
            raise DataImportError(f"{self.name} unpacks to more than {limit}, the limit; thin out the graphs, or import them from a folder.")
        if unpacked > self.limits.ratio_from and unpacked > self.limits.ratio * max(self.packed, 1):
            raise self.bomb()

    def bomb(self) -> DataImportError:
        return DataImportError(
            f"{self.name} unpacks to more than {self.limits.ratio} times its size, as no graph does, and was not unpacked any further; "
            "give the files unpacked if they are what you mean."
        )


class _Guarded:
    """A tar file's bytes. The tarfile module reads headers of any size at once and skips content by unpacking it; neither goes unnoticed here."""

    def __init__(self, file: IO[bytes], meter: _Meter) -> None:
        self.file, self.meter = file, meter

    def read(self, size: int) -> bytes:
        if size > MOST_AT_ONCE:
            raise self.meter.bomb()
        self.meter.reach(self.file.tell() + size)
        return self.file.read(size)

    def seek(self, position: int) -> int:
        self.meter.reach(position)
        return self.file.seek(position)

    def tell(self) -> int:
        return self.file.tell()


def _zip_members(archive: Path, meter: _Meter, stack: ExitStack) -> Iterator[_Member]:
    if _directory_size(archive) > LONGEST_DIRECTORY:
        raise meter.too_many()
    packed = stack.enter_context(zipfile.ZipFile(archive))
    members = packed.infolist()
    if members and min([info.header_offset for info in members]) > 0:  # the list is that of another archive, at the end of this one
        raise _half_archive(meter.name)
    for info in members:
        kind = (info.external_attr >> 16) & 0o170000  # of Unix; 0 where another system packed it
        if info.filename.endswith(("/", "\\")):
            continue
        if info.flag_bits & ENCRYPTED:
            raise DataImportError(f"{meter.name} is protected by a password; pack it again without one.")
        if kind not in (0, 0o100000):
            yield _Member(info.filename, None)
            continue
        with packed.open(info) as content:
            yield _Member(info.filename, content)


def _directory_size(archive: Path) -> int:
    """Bytes of a zip archive's list of files, which the zipfile module reads whole."""
    with archive.open("rb") as file:
        file.seek(-min(archive.stat().st_size, 2**16 + 22), 2)
        end = file.read()
    at = end.rfind(b"PK\x05\x06")
    return int.from_bytes(end[at + 12 : at + 16], "little") if at >= 0 else 0


def _tar_members(archive: Path, meter: _Meter, stack: ExitStack) -> Iterator[_Member]:
    file: IO[bytes] = stack.enter_context(archive.open("rb"))
    zipped = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    file.seek(0)
    content: Any = stack.enter_context(gzip.GzipFile(fileobj=file)) if zipped else file
    packed = stack.enter_context(tarfile.open(fileobj=_Guarded(content, meter), mode="r:"))  # type: ignore[call-overload]  # noqa: SIM115
    for info in packed:
        if not info.isdir():
            yield _Member(info.name, packed.extractfile(info) if info.isreg() and not info.issparse() else None)
    content.seek(packed.offset)
    if content.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):  # the tarfile module takes a damaged header for the end
        raise tarfile.ReadError("it is damaged or incomplete")
    while piece := content.read(PIECE):
        meter.reach(content.tell())
        if piece.strip(b"\0"):
            raise DataImportError(
                f"{meter.name} contains data after its end, as several archives in one file do. Unpack them and pack all files into one archive."
            )


def _checked(archive: str, member: _Member) -> PurePosixPath | None:
    """The member's path, safe to be put behind a folder; None for what programs add by themselves."""
    named = f"{shorten(archive)} holds '{shorten(member.name, 60)}'"
    path = PurePosixPath(member.name.replace("\\", "/"))  # Windows programs of old put backslashes between folders
    if path.is_absolute() or ".." in path.parts or _DRIVE.match(member.name):
        raise DataImportError(f"{named}, a name that leads out of the archive; pack the files again from inside of their folder.")
    if any(map(is_by_product, path.parts)):
        return None
    if member.content is None:
        raise DataImportError(f"{named}, which is a link or a device and no file; pack the files themselves.")
    if _CONTROL.search(member.name):
        raise DataImportError(f"{named}, a name with a control character; rename the file and pack it again.")
    if not path.parts or len(path.parts) > DEEPEST or len(member.name.encode("utf-8", "surrogatepass")) > LONGEST_PATH:
        raise DataImportError(f"{named}, a path that is too long or too deep; pack the files again with short names.")
    return path


def _check_place(archive: str, path: PurePosixPath, written: set[PurePosixPath]) -> None:
    """
    Raises:
        DataImportError: there is a file of this name already, or one where this one needs a folder, or the other way round.
    """
    named = f"{shorten(archive)} holds '{shorten(str(path), 60)}'"
    if path in written:
        raise DataImportError(f"{named} twice; pack each file once.")
    if written & set(path.parents) or any(path in other.parents for other in written):
        raise DataImportError(f"{named} as a file and as a folder; rename one of them and pack them again.")


def _write(path: Path, content: IO[bytes], meter: _Meter) -> None:
    with _kept(meter.name):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("xb")
    with file:
        while piece := content.read(PIECE):
            meter.add(len(piece))
            with _kept(meter.name):
                file.write(piece)


@contextmanager
def _kept(name: str) -> Iterator[None]:
    """What goes wrong while writing is the place's fault, and none of the archive."""
    try:
        yield
    except OSError as error:
        raise DataImportError(f"{name} cannot be unpacked here ({os_reason(error)}); {os_advice(error)} on the server, then try again.") from None
