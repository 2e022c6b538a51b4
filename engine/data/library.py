"""Which data sets there are to train on: the sample data, and what was imported, each a folder that a reader can read.

An imported data set has a file ``import.json`` beside its tables: the record of where it comes from (docs/importing.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from engine.config import RunConfig, Variant
from engine.data import shards
from engine.errors import ConfigError
from engine.util import paths

RECORD: Final = "import.json"
STATISTICS: Final = "STATS.json"
HIDDEN: Final = (".", "_")


@dataclass(frozen=True)
class StoredDataSet:
    """A folder that can be trained on.

    Attributes:
        name: as runs call it; no two data sets of the library share one.
        path: the folder.
        fingerprint: of graphs and links; "" where it is not known before the data are read.
        imported: when, as ISO 8601 UTC; None for data that was not imported.
        entities: of source and target graph; None where no record says.
        triples: the same of relation triples.
        links: known links; None where no record says.
        settings: ``section.option`` -> value that the import found out, to begin a training with ("data.name_attribute").
    """

    name: str
    path: Path
    fingerprint: str = ""
    imported: str | None = None
    entities: tuple[int, int] | None = None
    triples: tuple[int, int] | None = None
    links: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown_path(self) -> str:
        """The path for a command that is typed in the project's folder."""
        return paths.shown_path(self.path)

    @property
    def first_variant(self) -> Variant:
        """The variant to begin with: the basic one trains on known links alone."""
        return "semi" if self.links == 0 else "basic"

    @property
    def train_command(self) -> str:
        """What trains on it, to be typed in the project's folder."""
        variant = [] if self.first_variant == "basic" else [("--variant", self.first_variant)]
        return paths.train_command(self.path, [*variant, *(("--set", f"{key}={value}") for key, value in self.settings.items())])


def data_sets() -> tuple[StoredDataSet, ...]:
    """Imported data sets, the newest first, then the sample data by name. Whatever is damaged is listed with what is known of it."""
    imported = [_imported(folder) for folder in _folders(paths.data_folder())]
    imported.sort(key=lambda one: (one.imported or "", one.name), reverse=True)
    return (*imported, *(_sample(folder) for folder in _folders(paths.SAMPLES)))


def read_record(folder: Path) -> Mapping[str, Any]:
    """The import's record; empty where there is none that can be read."""
    return _json(folder / RECORD)


def stored_settings(folder: Path) -> Mapping[str, str]:
    """What the import of a data set found out, or what a shard folder was made with, for reading and training to begin with; else empty."""
    stored = (read_record(folder) or _json(folder / shards.MANIFEST)).get("settings")
    return {str(key): str(value) for key, value in stored.items()} if isinstance(stored, dict) else {}


def starting_config(folder: Path) -> RunConfig:
    """The defaults, and what the import found out.

    Raises:
        ConfigError: the record holds settings that this engine does not have.
    """
    try:
        return RunConfig().with_assignments(f"{key}={value}" for key, value in stored_settings(folder).items())
    except ConfigError as error:
        raise ConfigError(f"{folder / RECORD} cannot be used: {error}") from None


def _folders(parent: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in parent.iterdir() if path.is_dir() and not path.name.startswith(HIDDEN))
    except OSError:
        return


def _imported(folder: Path) -> StoredDataSet:
    record = read_record(folder)
    try:
        counts = record["counts"]
        source, target = counts["source"], counts["target"]
        return StoredDataSet(
            name=folder.name,
            path=folder,
            fingerprint=str(record["fingerprint"]),
            imported=str(record["imported"]),
            entities=(int(source["entities"]), int(target["entities"])),
            triples=(int(source["triples"]), int(target["triples"])),
            links=int(counts["links"]),
            settings={str(key): str(value) for key, value in record["settings"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return StoredDataSet(folder.name, folder)


def _sample(folder: Path) -> StoredDataSet:
    counts = _json(folder / STATISTICS)
    try:
        source, target = counts["kg1"], counts["kg2"]
        return StoredDataSet(
            name=folder.name,
            path=folder,
            entities=(int(source["entities"]), int(target["entities"])),
            triples=(int(source["relation_triples"]), int(target["relation_triples"])),
            links=int(counts["links"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return StoredDataSet(folder.name, folder)


def _json(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
