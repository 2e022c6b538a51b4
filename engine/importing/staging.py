"""Where uploaded files lie until they are stored: a folder for each import, next to the data sets, under a name that cannot be guessed.

An import lives on the server and not in the browser: its address holds the token alone, so it survives a reload and a restart of the app.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from engine.errors import DataImportError
from engine.importing.archives import is_archive, refuse_half_archive, unpack
from engine.importing.source import LIMITS, Corrections, Limits, Material, Role, SourceFile, check_given, folder_material
from engine.runs.cleanup import size_of
from engine.util import paths
from engine.util.files import fsync, fsync_tree, make_folder, remove, write_durably
from engine.util.machine import os_advice, os_reason
from engine.util.text import shorten, size_text

STAGING: Final = ".staging-"
PARTIAL: Final = ".partial-"
KEPT_SECONDS: Final = 24 * 3600
STATE: Final = "staging.json"
PIECE: Final = 2**20
_TOKEN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Upload:
    """An uploaded file: its name, its content, and its stated role; None for an archive, or where its name decides."""

    name: str
    content: IO[bytes]
    role: Role | None = None


@dataclass(frozen=True)
class Staged:
    """An import in the making.

    Attributes:
        token: names it, and is hard to guess.
        material: the files.
        corrections: what its owner said of it since.
        version: changes with every correction, to keep results by.
    """

    token: str
    material: Material
    corrections: Corrections
    version: int = 0


def stage(uploads: Sequence[Upload], limits: Limits = LIMITS) -> Staged:
    """Write files into a staging folder of their own; archives are unpacked.

    Raises:
        DataImportError: nothing, too much or the same role twice; an archive that :func:`engine.importing.archives.unpack` refuses; no space.
    """
    if not uploads:
        raise DataImportError("no file was given; an import needs two graphs, and links or names that seeds can be made from.")
    limits = _within_storage(uploads, limits)
    folder, token = _new_folder()
    with _whole_or_not_at_all(folder, "what was brought"):
        files: list[SourceFile] = []
        for number, one in enumerate(uploads):
            files += _put(folder / "files" / str(number), one, limits)
        fsync_tree(folder / "files")
        material = Material(tuple(files), folder=_only_folder(folder / "files", files, len(uploads)), origin="upload")
        check_given(material)
        return _save(folder, Staged(token, material, Corrections()))


def stage_folder(folder: Path, limits: Limits = LIMITS) -> Staged:
    """An import of a folder or archive on the server; files of a folder are read where they lie.

    Args:
        folder: from :func:`engine.importing.source.find`, which has checked that it may be read.
        limits: what is accepted.

    Raises:
        DataImportError: an archive or file that is refused.
    """
    if folder.is_file():
        with folder.open("rb") as content:
            return stage([Upload(folder.name, content)], limits)
    material = folder_material(folder, origin=f"server folder {folder.name}")
    place, token = _new_folder()
    return _save(place, Staged(token, material, Corrections()))


def find_staged(token: str) -> Staged:
    """
    Raises:
        DataImportError: there is no such import (any more).
    """
    gone = DataImportError("this import no longer exists (it was saved, or is older than a day). Start again with the files.")
    if not _TOKEN.fullmatch(token):
        raise gone
    try:
        return _staged(token, json.loads((_folder(token) / STATE).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise gone from None
    except OSError as error:
        raise DataImportError(f"this import cannot be read ({os_reason(error)}); {os_advice(error)} on the server, then try again.") from None


def correct(staged: Staged, corrections: Corrections) -> Staged:
    """Keep what was corrected.

    Raises:
        DataImportError: it cannot be written.
    """
    try:
        return _save(_folder(staged.token), dataclasses.replace(staged, corrections=corrections, version=staged.version + 1))
    except OSError as error:
        raise DataImportError(f"the correction cannot be kept ({os_reason(error)}); {os_advice(error)}, then try again.") from None


def add(staged: Staged, upload: Upload, limits: Limits = LIMITS) -> Staged:
    """One more file, in its stated role. A file that was given for this role before makes way, with what was corrected of it.

    Raises:
        DataImportError: the file is refused, as :func:`stage` does, or cannot be kept; the import stays as it is.
    """
    limits = _within_storage([upload], limits)
    place = _folder(staged.token) / "files" / secrets.token_hex(4)
    role, now = upload.role or "", staged.corrections
    with _whole_or_not_at_all(place, shorten(upload.name)):
        (file,) = _put(place, upload, limits)
        fsync_tree(place)
        fsync(place.parent)
        replaced = [one for one in staged.material.files if one.role == upload.role]
        kept = tuple(one for one in staged.material.files if one not in replaced)
        corrections = dataclasses.replace(
            now,
            roles={one: name for one, name in now.roles.items() if one != role},
            tables={one: layout for one, layout in now.tables.items() if one != role},
            swap_links=now.swap_links and role != "links",
        )
        material = dataclasses.replace(staged.material, files=(*kept, file))
        after = _save(_folder(staged.token), Staged(staged.token, material, corrections, staged.version + 1))
    for one in replaced:
        if one.path.is_relative_to(_folder(staged.token)):
            remove(one.path)
    return after


def discard(staged: Staged) -> None:
    """Remove what was staged; files of a server folder stay where they are."""
    remove(_folder(staged.token))


def clean_up(older_than: float = KEPT_SECONDS) -> int:
    """Remove staging folders that were left behind, and data sets that a killed import did not finish; says how many."""
    parent, gone = paths.data_folder(), 0
    for path in [path for start in (STAGING, PARTIAL) for path in parent.glob(f"{start}*")]:
        with suppress(OSError):  # another process cleans up as well, or the folder cannot be changed
            if time.time() - path.lstat().st_mtime > older_than:
                # Away at once: a data set that is being written all the same (a clock that was put forward makes it look old) fails whole.
                away = path.with_name(f"{STAGING}gone-{secrets.token_hex(8)}")
                os.rename(path, away)
                remove(away)
                gone += 1
    return gone


def _new_folder() -> tuple[Path, str]:
    token = secrets.token_hex(16)
    folder = _folder(token)
    try:
        make_folder(folder.parent)
        folder.mkdir(mode=0o700)
        fsync(folder.parent)
    except OSError as error:
        raise DataImportError(f"{paths.data_folder()} cannot be written to ({os_reason(error)}); {os_advice(error)}, or set DUAL_AMN_DATA.") from None
    clean_up()
    return folder, token


def _within_storage(uploads: Sequence[Upload], limits: Limits) -> Limits:
    """The limits, with what is left of the storage as one for unpacked files.

    Raises:
        DataImportError: the uploads are larger than what is left.
    """
    if limits.storage_bytes is None:
        return limits
    folder = paths.data_folder()
    existing = next(place for place in (folder, *folder.absolute().parents) if place.is_dir())
    left = min(limits.storage_bytes - size_of(folder), shutil.disk_usage(existing).free - limits.free_bytes)
    needed = sum(_length(one.content) for one in uploads)
    if needed > left:
        raise DataImportError(
            f"the upload has {size_text(needed)}, and {size_text(max(left, 0))} are left for uploads and data sets on this server; wait until other "
            "imports are finished, or ask the administrator to free some space."
        )
    return dataclasses.replace(limits, unpacked_bytes=min(limits.unpacked_bytes, left - needed))


def _length(content: IO[bytes]) -> int:
    place = content.tell()
    end = content.seek(0, os.SEEK_END)
    content.seek(place)
    return end - place


@contextmanager
def _whole_or_not_at_all(place: Path, what: str) -> Iterator[None]:
    """While something is written to a place, which is removed if that fails.

    Raises:
        DataImportError: ``what`` cannot be kept there.
    """
    try:
        yield
    except OSError as error:
        remove(place)
        raise DataImportError(f"{what} cannot be kept ({os_reason(error)}); {os_advice(error)} on the server, then try again.") from None
    except BaseException:
        remove(place)
        raise


def _folder(token: str) -> Path:
    return paths.data_folder() / f"{STAGING}{token}"


def _put(folder: Path, one: Upload, limits: Limits) -> list[SourceFile]:
    path = folder / safe_file_name(one.name)
    folder.mkdir(parents=True)
    _copy(one, path, limits)
    if one.role is None:
        refuse_half_archive(path, one.name)
    if not is_archive(path):
        return [SourceFile(path, one.name, one.role)]
    if one.role is not None:
        raise DataImportError(
            f"{shorten(one.name)} is an archive, where one file was expected as {one.role}; "
            "give it as an archive, or unpack it (if it is an Excel workbook, save the sheet as CSV)."
        )
    unpack(path, one.name, folder / "unpacked", limits)
    path.unlink()
    return list(folder_material(folder / "unpacked", called=one.name, limits=limits).files)


def _copy(one: Upload, path: Path, limits: Limits) -> None:
    size = 0
    with path.open("xb") as file:
        while piece := one.content.read(PIECE):
            size += len(piece)
            if size > limits.file_bytes:
                limit = size_text(limits.file_bytes)
                raise DataImportError(f"{shorten(one.name)} is larger than {limit}, the limit for a file; thin out the graph, or pack it with gzip.")
            file.write(piece)


def safe_file_name(name: str) -> str:
    """A name in ASCII letters, digits, ``_``, ``-`` and ``.``, with its endings, of at most 100 characters, that hides nothing."""
    last = re.split(r"[/\\]", name)[-1]
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", last).lstrip(".-")[-100:] or "file"


def _only_folder(files: Path, found: Sequence[SourceFile], count: int) -> Path | None:
    """The folder of what was unpacked, where one archive is all that came: it may be of a format that needs its whole folder."""
    unpacked = files / "0" / "unpacked"
    return folder_material(unpacked).folder if count == 1 and found and unpacked.is_dir() else None


def _save(folder: Path, staged: Staged) -> Staged:
    material = staged.material
    value = {
        "files": [{"path": str(file.path), "name": file.name, "role": file.role} for file in material.files],
        "folder": None if material.folder is None else str(material.folder),
        "origin": material.origin,
        "corrections": staged.corrections.to_dict(),
        "version": staged.version,
    }
    write_durably(folder / STATE, json.dumps(value, ensure_ascii=True, indent=1).encode())
    return staged


def _staged(token: str, value: Mapping[str, Any]) -> Staged:
    files = tuple(SourceFile(Path(file["path"]), file["name"], file["role"]) for file in value["files"])
    folder = None if value["folder"] is None else Path(value["folder"])
    corrections = Corrections.from_dict(value["corrections"])
    return Staged(token, Material(files, folder, value["origin"]), corrections, int(value["version"]))
