"""The folder of a run: names, locks and file operations that survive a crash, manifests and other JSON."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from filelock import FileLock, Timeout
from safetensors import SafetensorError
from torch import Tensor

from engine.errors import MachineError, RunDamagedError, RunError, RunVersionError
from engine.util.files import fsync, remove, sha256_of
from engine.util.locks import take_lock
from engine.util.machine import DENIED, FULL, error_number, os_advice
from engine.util.text import one_line

# Names, locks, and file operations that survive a crash; errors of the operating system in plain words.

PARTIAL = ".partial-"
TRASH = ".trash-"
LOCK = ".lock"
LOCK_SECONDS = 0.5
"""Patience with a lock: a list of runs holds each for an instant, to see whether it is free."""
SAFE_NAME = re.compile(r"\w[\w.-]{0,99}")
"""Data sets, run ids and files: a letter, digit or underscore first; no separators, no spaces, no hidden files."""
LONGEST_NAME = 200  # bytes, which leaves room for a prefix within the 255 of most file systems


def is_name(text: str) -> bool:
    """Whether a text can be the name of a data set, run or file."""
    return SAFE_NAME.fullmatch(text) is not None and len(text.encode("utf-8", "surrogatepass")) <= LONGEST_NAME and not text.endswith(".")


def check_name(text: str, what: str) -> None:
    """
    Raises:
        RunError: the text cannot be a name.
    """
    if not is_name(text):
        raise RunError(f"{text[:200]!r} cannot be a {what}; use at most 100 letters, digits and _ - . with a letter, digit or _ first.")


def with_suffix(name: str, suffix: str) -> str:
    """'metrics' -> 'metrics.json'.

    Raises:
        RunError: the text cannot be a file's name.
    """
    check_name(name, "file name")
    return name if name.endswith(suffix) else name + suffix


@contextlib.contextmanager
def explained(action: str) -> Iterator[None]:
    """Turn errors of the operating system into a RunError: 'cannot <action>: <why>; <what to do>'."""
    try:
        yield
    except (OSError, SafetensorError, pa.ArrowException) as error:
        if isinstance(error, MemoryError):  # Arrow's
            raise
        raise RunError(f"cannot {action}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """Why an operation failed and what to do about it; earlier runs are never affected."""
    code = error_number(error)
    if code in FULL:
        return "the disk is full; free some space and start again with the same command (earlier runs are untouched)."
    if code in DENIED:
        return "permission denied; make the folder writable or choose another with --models (earlier runs are untouched)."
    return f"{os.strerror(code) if code else one_line(error)}; {os_advice(error)} (earlier runs are untouched)."


def acquire(path: Path, run: str) -> FileLock:
    """Lock a run for this process.

    Raises:
        RunError: another process holds the lock, or there are no locks here.
    """
    try:
        return take_lock(path, LOCK_SECONDS)
    except Timeout:
        raise RunError(f"run {run} is being trained by another process; wait for it, stop it, or choose another run id.") from None
    except MachineError as error:
        raise RunError(str(error)) from error


def folders(parent: Path) -> list[Path]:
    """Sub-folders, and links to folders, by name; none if the parent is not there.

    Raises:
        RunError: it cannot be read. A folder that cannot be read must not pass for an empty one.
    """
    with explained(f"read {parent}"):
        try:
            return sorted(entry for entry in parent.iterdir() if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []


def changed_at(path: Path) -> str:
    """ISO 8601 UTC time of a folder's last change; the epoch if even that cannot be read."""
    try:
        seconds = path.stat().st_mtime
    except OSError:
        seconds = 0.0
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def sealed(path: Path) -> dict[str, int | str]:
    """A manifest's entry for a file, which is on the disk for certain after this."""
    fsync(path)
    return {"size": path.stat().st_size, "sha256": sha256_of(path)}


def remove_by_way_of_trash(path: Path, run_id: str) -> None:
    """Rename a folder away, so that no one sees half of it, then delete it and what earlier deletions left behind."""
    with explained(f"delete {path}"):
        taken = {entry.name for entry in path.parent.iterdir()}
        names = (f"{TRASH}{run_id}-{number}" for number in itertools.count(1))
        os.rename(path, path.with_name(next(name for name in names if name not in taken)))
        fsync(path.parent)
    for trash in path.parent.glob(f"{TRASH}*"):
        remove(trash)


# Manifests and the JSON of a run folder.

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
METRICS = "metrics.json"
TRACE = "trace.jsonl"
SEAL = "manifest_sha256"
REQUIRED = ("format_version", "run_id", "dataset", "variant", "status", "created")
RESTORE = "restore it, or delete the run and train again"


def read_manifest(folder: Path) -> dict[str, Any]:
    """A folder's manifest, checked.

    Raises:
        RunVersionError: written by a newer version of the engine.
        RunDamagedError: missing, changed, or not a manifest.
    """
    path = folder / MANIFEST
    with explained(f"read {path}"):
        try:
            status = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            raise RunDamagedError(f"{folder} has no {MANIFEST}, so the run is incomplete; delete the folder and train again.") from None
        if not stat.S_ISREG(status.st_mode):
            raise RunDamagedError(f"{path} is not a regular file; {RESTORE}.")
        manifest = parse_object(path.read_bytes(), path)
    version = manifest.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise RunVersionError(
            f"{folder} has format {version}, but this version reads formats up to {FORMAT_VERSION}; update Dual-AMN Explorer to open the run."
        )
    try:
        if manifest.get(SEAL) != with_seal(manifest)[SEAL]:
            raise changed(path)
        check_manifest(manifest)
        check_files(manifest.get("files"))
    except (ValueError, RecursionError) as error:
        raise RunDamagedError(f"{path}: {error}; {RESTORE}.") from None
    return manifest


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Raise ValueError unless the manifest has what every run's must have."""
    missing = [key for key in REQUIRED if key not in manifest]
    if missing:
        raise ValueError(f"the manifest lacks {', '.join(missing)}")
    if manifest["format_version"] != FORMAT_VERSION or isinstance(manifest["format_version"], bool):
        raise ValueError(f"format_version must be {FORMAT_VERSION}, got {manifest['format_version']!r}")
    if manifest["status"] not in ("finished", "stopped"):
        raise ValueError(f"status must be finished or stopped, got {manifest['status']!r}")
    if not isinstance(manifest["variant"], str):
        raise ValueError(f"variant must be a text, got {manifest['variant']!r}")
    created = manifest["created"]
    if not isinstance(created, str) or datetime.fromisoformat(created).tzinfo is None:
        raise ValueError(f"created must be a time with its zone (ISO 8601), got {created!r}")
    in_utc(created)


def in_utc(created: str) -> str:
    """An ISO 8601 time in UTC, so that sorting texts sorts times.

    Raises:
        ValueError: not such a time, or none that fits the calendar.
    """
    try:
        return datetime.fromisoformat(created).astimezone(UTC).isoformat()
    except OverflowError:
        raise ValueError(f"created is beyond the calendar: {created}") from None


def baseline_of(manifest: Mapping[str, Any]) -> str:
    """Title of the method of a run that is no Dual-AMN run, for example "LightEA"; "" for all others."""
    about = manifest.get("baseline")
    return str(about.get("title", "")) if isinstance(about, Mapping) else ""


def parent_of(manifest: Mapping[str, Any]) -> str:
    """``dataset/run_id`` of the run that a run is an update of; "" for a training."""
    parent = manifest.get("parent")
    return str(parent.get("run", "")) if isinstance(parent, Mapping) else ""


def check_files(files: Any) -> None:
    """Raise ValueError unless this is {name: {"size": ..., "sha256": ...}} with names that lead nowhere else."""
    if not isinstance(files, dict):
        raise ValueError("files must be an object")
    for name, entry in files.items():
        fits = is_name(name) and isinstance(entry, dict) and isinstance(entry.get("size"), int) and isinstance(entry.get("sha256"), str)
        if not fits:
            raise ValueError(f"files has an entry {name!r} that is not a file with size and sha256")


def with_seal(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with a checksum of all the rest."""
    content: dict[str, Any] = json.loads(to_json({key: value for key, value in manifest.items() if key != SEAL}))  # as a reader will see it
    return {**content, SEAL: hashlib.sha256(to_json(content, sort_keys=True)).hexdigest()}


def to_json(value: Any, *, indent: int | None = None, sort_keys: bool = False) -> bytes:
    """UTF-8 JSON, other scripts unescaped; see :func:`jsonable` for what happens to values that JSON does not have."""
    text = json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False, indent=indent, sort_keys=sort_keys)
    return text.encode("utf-8", "backslashreplace")  # half a surrogate pair can only be written escaped


def jsonable(value: Any) -> Any:
    """Plain values: numpy and torch numbers and arrays, paths, tuples and sets are converted; numbers that are not finite become None."""
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (np.generic, np.ndarray, Tensor)):
        return jsonable(value.tolist())
    if isinstance(value, (set, frozenset)):
        return jsonable(sorted(value))
    if isinstance(value, Iterable):
        return [jsonable(item) for item in value]
    return str(value)


def parse_object(content: bytes, path: Path, line: int | None = None) -> dict[str, Any]:
    """A JSON object from its bytes.

    Raises:
        RunDamagedError: they are none.
    """
    place = path if line is None else f"{path}:{line}"
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise RunDamagedError(f"{place} is not valid JSON ({one_line(error)}); {RESTORE}.") from None
    if not isinstance(value, dict):
        raise RunDamagedError(f"{place} should hold a JSON object; {RESTORE}.")
    return value


def changed(path: Path) -> RunDamagedError:
    """The error for a file that is not what was written."""
    return RunDamagedError(f"{path} was changed after it was written (its checksum differs); {RESTORE}.")
