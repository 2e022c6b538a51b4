"""The paths that a literal run's settings name: whoever uses, guards, identifies or moves them goes by these functions alone."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from engine.config import LiteralConfig
from engine.data.files import FileState, state_of
from engine.errors import ConfigError
from engine.names.encoders import NAME_ENCODERS
from engine.names.sources import NAME_ORIGINS
from engine.names.specs import PathsOf, Spec, absolute_argument, no_path

KEYS: Final = ("literal.names", "literal.names_source", "literal.names_target", "literal.encoder")
"""Settings of the form ``kind:argument``."""


def named_paths(config: LiteralConfig) -> Mapping[str, tuple[str, ...]]:
    """``section.option`` -> the paths in it, as they are written. Kinds that do not exist name none: nothing ever opens them."""
    return {key: _paths_of(key, spec.kind)(spec.argument) for key, spec in _specs(config)}


def absolute_paths(config: LiteralConfig, *, models_by_name: bool = True) -> dict[str, str]:
    """The settings that change when their paths are written from the root of the disk, links followed.

    Args:
        models_by_name: leave the model of a sentence encoder as it is where no such path exists: then it is a name.

    Raises:
        ConfigError: something in them cannot be a path.
    """
    changed = {}
    for key, spec in _specs(config):
        if models_by_name and spec.kind == "sentence" and not os.path.exists(spec.argument):
            continue
        try:
            argument = absolute_argument(spec.argument, _paths_of(key, spec.kind))
        except (OSError, ValueError, RuntimeError):
            raise ConfigError(f"{key} names a file that cannot exist; check its path.") from None
        if argument != spec.argument:
            changed[key] = f"{spec.kind}:{argument}"
    return changed


def content_digest(config: LiteralConfig) -> str:
    """Of all files and folders that the settings name, so that a changed one makes another run; what does not exist adds nothing."""
    return " ".join(digest for paths in named_paths(config).values() for path in paths if (digest := _digest(path)))


def _specs(config: LiteralConfig) -> Iterator[tuple[str, Spec]]:
    for key in KEYS:
        if (text := getattr(config, key.partition(".")[2])) is not None:
            yield key, Spec.parse(str(text))


def _paths_of(key: str, kind: str) -> PathsOf:
    if key.startswith("literal.names"):
        return NAME_ORIGINS[kind].paths if kind in NAME_ORIGINS else no_path
    return NAME_ENCODERS[kind].paths if kind in NAME_ENCODERS else no_path


@lru_cache(maxsize=1024)
def _file_digest(path: str, state: FileState | None) -> str:
    """SHA-256 of a file, read once as long as its state stays the same: a form asks for it with every redraw, and vectors are gigabytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(path: str) -> str:
    """SHA-256 of a file, or of a folder's names and files; "" where neither is there."""
    if os.path.isfile(path):
        return _file_digest(os.path.abspath(path), state_of(Path(path)))
    if not path or not os.path.isdir(path):
        return ""
    root, whole = Path(path), hashlib.sha256()
    for file_path in sorted(one for one in root.rglob("*") if one.is_file()):
        whole.update(f"{file_path.relative_to(root).as_posix()}\0{_digest(str(file_path))}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()
