"""Unpacking what other people packed: zip, tar and tar.gz. Sizes are counted while reading, never taken from a header."""

from __future__ import annotations

import gzip
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from engine.datasets.files import GZIP_MAGIC, shorten
from engine.errors import DataImportError
from engine.importing.limits import LIMITS, Limits, in_words

PIECE: Final = 2**18
LONGEST_PATH: Final = 200  # bytes of a name inside of an archive
DEEPEST: Final = 6
MOST_AT_ONCE: Final = 2**22
LONGEST_DIRECTORY: Final = 2**20
ZIP_MAGIC: Final = b"PK\x03\x04"
TAR_MARK: Final = slice(257, 262)
JUNK: Final = ("__MACOSX", ".")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\:]")
_UNREADABLE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError)


@dataclass(frozen=True)
class _Member:
    """A name, and the content of a regular file; None for links, devices and the like."""

    name: str
    content: IO[bytes] | None


def is_archive(path: Path) -> bool:
    """Whether the file is a zip or tar archive, plain or gzipped, by its content."""
    try:
        with path.open("rb") as file:
            head = file.read(len(GZIP_MAGIC))
            file.seek(0)
            start = gzip.GzipFile(fileobj=file).read(TAR_MARK.stop) if head == GZIP_MAGIC else file.read(TAR_MARK.stop)
        return start[TAR_MARK] == b"ustar" or zipfile.is_zipfile(path)
    except (OSError, EOFError, zlib.error):
        return False


def refuse_half_archive(path: Path, name: str) -> None:
    """Notice what is left of a zip archive whose end, where its list of files stands, did not arrive.

    Raises:
        DataImportError: it is one; ``name`` is what its owner calls it.
    """
    with path.open("rb") as file:
        begins = file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
    if begins and not zipfile.is_zipfile(path):
        raise DataImportError(f"{shorten(name)} is a zip archive whose end is missing, or is damaged; copy or pack it again.")


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
    try:
        with ExitStack() as stack:
            members = (_zip_members if zipfile.is_zipfile(archive) else _tar_members)(archive, meter, stack)
            for member in members:
                meter.file()
                relative = _checked(name, member)
                if relative is not None and member.content is not None:
                    _write(into / relative, member.content, meter)
    except _UNREADABLE as error:
        words = shorten(str(error) or type(error).__name__, 100)
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
            limit = in_words(self.limits.unpacked_bytes)
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
    for info in packed.infolist():
        kind = (info.external_attr >> 16) & 0o170000  # of Unix; 0 where another system packed it
        if info.is_dir():
            continue
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


def _checked(archive: str, member: _Member) -> PurePosixPath | None:
    """The member's path, safe to be put behind a folder; None for what programs add by themselves."""
    named = f"{shorten(archive)} holds '{shorten(member.name, 60)}'"
    path = PurePosixPath(member.name)
    if member.content is None:
        raise DataImportError(f"{named}, which is a link or a device and no file; pack the files themselves.")
    if path.is_absolute() or ".." in path.parts or _FORBIDDEN.search(member.name):
        raise DataImportError(f"{named}, a name that leads out of the archive; pack the files again from inside of their folder.")
    if not path.parts or len(path.parts) > DEEPEST or len(member.name.encode("utf-8", "surrogatepass")) > LONGEST_PATH:
        raise DataImportError(f"{named}, a path that is too long or too deep; pack the files again with short names.")
    return None if path.parts[0] == JUNK[0] or any(part.startswith(JUNK[1]) for part in path.parts) else path


def _write(path: Path, content: IO[bytes], meter: _Meter) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:  # a name that comes twice is refused
        while piece := content.read(PIECE):
            meter.add(len(piece))
            file.write(piece)
