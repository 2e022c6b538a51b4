"""Data in: two knowledge graphs and known links from a folder of any known format, and a look at what is suspicious about them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from engine.config import DataConfig
from engine.data.assembly import build_task, expected_memory, safe_name
from engine.data.endings import GZIP_ENDING
from engine.data.files import list_files
from engine.data.inspection import GraphSummary, Inspection, inspect_task, inspection_to_dict, render_inspection
from engine.data.knowledge_graph import AlignmentTask, Finding, KnowledgeGraph
from engine.data.readers import READERS, Reader
from engine.data.readers.naming import looks_like_data
from engine.data.rows import passed_over
from engine.data.shards import is_shard_folder, open_shards
from engine.errors import DataError
from engine.util.memory import check_fits

__all__ = [
    "READERS",
    "AlignmentTask",
    "Finding",
    "GraphSummary",
    "Inspection",
    "KnowledgeGraph",
    "Reader",
    "data_files",
    "inspect_task",
    "inspection_to_dict",
    "load_task",
    "render_inspection",
    "safe_name",
]


def load_task(path: Path | str, config: DataConfig | None = None, seed: int = 0) -> AlignmentTask:
    """Read a data set and divide its links.

    Args:
        path: the data set's folder, or a shard folder that was made of it.
        config: format, fold, split and names; None takes the defaults.
        seed: draws the split where the data gives none, and what is held out for validation.

    Raises:
        DataError: nothing there, no known format, more than memory holds (said before anything is read), or a file that does not hold what it
            should (with file and line).
        ConfigError: ``config.format`` names no reader; settings that a shard folder was not made with.
    """
    folder = _folder(Path(path))
    if is_shard_folder(folder):
        shards = open_shards(folder)
        shards.check_origin()
        return shards.task(config, seed)
    config = config or DataConfig()
    reader, findings = _reader(folder, config)
    read = reader.files(folder)
    check_fits(folder, expected_memory(read))
    return build_task(folder, reader.name, reader.read(folder, config), config, seed, (*findings, *_passed_over(folder, read)))


def data_files(path: Path, config: DataConfig) -> Sequence[Path]:
    """The files that :func:`load_task` reads.

    Raises:
        DataError, ConfigError: as there.
    """
    folder = _folder(path)
    return _reader(folder, config)[0].files(folder)


def _reader(folder: Path, config: DataConfig) -> tuple[Reader, tuple[Finding, ...]]:
    return READERS.choose(folder) if config.format == "auto" else (READERS.named(config.format), ())


def _passed_over(folder: Path, read: Sequence[Path]) -> tuple[Finding, ...]:
    """What lies in the folder beside the files that were read and may hold data, going by its name."""
    return passed_over([path.name for path in list_files(folder) if path not in read and looks_like_data(path) and not _is_twin(path, read)])


def _is_twin(path: Path, read: Sequence[Path]) -> bool:
    """Whether it is the packed form of a file that was read."""
    return path.suffix == GZIP_ENDING and path.with_suffix("") in read


def _folder(path: Path) -> Path:
    # os.path answers False for names that the file system cannot take; Path.is_dir would raise.
    if os.path.isdir(path):
        return path
    if os.path.isfile(path):
        raise DataError(f"this is a file; give the folder that holds the data set (perhaps {path.parent}).", path=path)
    raise DataError("there is no such folder; give the folder that holds the data set.", path=path)
