"""A data set in a *shard folder*: read once, and divided for several processes, each of which then reads its part alone (docs/scaling.md).

======================== ==================================================================================================
file                     content
======================== ==================================================================================================
``shards.json``          manifest: format, data set, fingerprint, settings, counts, how large each part is, checksums of all files
``owners.npy``           (E,) the part of each entity of the stacked graph
``part-0000.npy``        (t, 3) the triples with an entity of this part, by stacked indices, in their order
``links.parquet``        part (train, valid, test, unsure by number), source, target: the links as they are divided
``source_entities`` etc. tables of names and attributes, Parquet; read when something looks at them, which training does not
======================== ==================================================================================================

A task from such a folder is one like any other. Its graphs are put together when somebody asks for them: the first process does, after training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from engine.config import DataConfig, RunConfig
from engine.data.knowledge_graph import SIDES, AlignmentTask, FileCount, Finding, KnowledgeGraph, Side
from engine.errors import ConfigError, DataError
from engine.util.arrays import IntArray, sorted_rows
from engine.util.files import sha256_of

MANIFEST: Final = "shards.json"
FORMAT: Final = 1
OWNERS: Final = "owners.npy"
LINKS: Final = "links.parquet"
APART: Final = "apart.parquet"
LINK_PARTS: Final = ("train", "valid", "test", "unsure")
AGAIN: Final = "divide the data again with python -m engine shard"


def part_file(part: int) -> str:
    return f"part-{part:04}.npy"


def graph_file(side: Side, what: str) -> str:
    """``what``: entities, relations or attributes."""
    return f"{side}_{what}.parquet"


def is_shard_folder(path: Path) -> bool:
    try:
        return (path / MANIFEST).is_file()
    except (OSError, ValueError):
        return False


@dataclass(frozen=True)
class ShardFolder:
    """An open shard folder. What is read from it is compared with its checksum first.

    Attributes:
        path: the folder.
        manifest: what ``shards.json`` holds.
        digest: sha-256 (hex) of that file: the same for the same parts of the same data.
    """

    path: Path
    manifest: Mapping[str, Any]
    digest: str
    _sound: set[str] = field(default_factory=set, repr=False, compare=False)

    @property
    def parts(self) -> int:
        return len(self.manifest["parts"])

    @property
    def origin(self) -> Path:
        """The folder of the data set that was divided."""
        return Path(self.manifest["data"]["path"])

    @cached_property
    def owners(self) -> npt.NDArray[np.int32]:
        """(E,) the part of each entity of the stacked graph.

        Raises:
            DataError: the file is missing or damaged.
        """
        found: npt.NDArray[np.int32] = self._array(OWNERS)
        entities = sum(self.manifest["graphs"][side]["entities"] for side in SIDES)
        if found.shape != (entities,) or (len(found) and not 0 <= found.min() <= found.max() < self.parts):
            self.damaged(OWNERS)
        return found

    def triples(self, part: int) -> IntArray:
        """(t, 3) stacked head, relation and tail of the triples with an entity of this part.

        Raises:
            DataError: the file is missing or damaged.
        """
        found = self._array(part_file(part))
        relations = sum(self.manifest["graphs"][side]["relations"] for side in SIDES)
        most = len(self.owners), relations, len(self.owners)
        if found.ndim != 2 or found.shape[1] != 3 or (len(found) and ((found.min(0) < 0).any() or (found.max(0) >= most).any())):
            self.damaged(part_file(part))
        triples: IntArray = found.astype(np.int64)
        return triples

    def graph_triples(self, side: Side) -> IntArray:
        """(T, 3) of a whole graph by its own indices, put together from all parts.

        Raises:
            DataError: a file is missing or damaged.
        """
        first, second = (self.manifest["graphs"][one] for one in SIDES)
        shift = np.array([0, 0, 0] if side == "source" else [first["entities"], first["relations"], first["entities"]])
        found = []
        for part in range(self.parts):
            triples = self.triples(part)
            heads = triples[:, 0]
            here = heads < first["entities"] if side == "source" else heads >= first["entities"]
            found.append(triples[here & (self.owners[heads] == part)] - shift)  # another part may have it too, by its tail
        size = first if side == "source" else second
        if sum(map(len, found)) != size["triples"]:
            self.damaged(MANIFEST)
        columns = sorted_rows(list(np.concatenate(found).T), (size["entities"], size["relations"], size["entities"]))
        return np.stack(columns, axis=1)

    def table(self, name: str, rows: int | None = None) -> pa.Table:
        """
        Args:
            rows: how many there must be, where that is known.

        Raises:
            DataError: the file is missing or damaged.
        """
        path = self._checked(name)
        try:
            found = pq.read_table(path)
        except (OSError, pa.ArrowException):
            self.damaged(name)
        if rows is not None and len(found) != rows:
            self.damaged(name)
        return found

    def _array(self, name: str) -> Any:
        path = self._checked(name)
        try:
            return np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            self.damaged(name)

    def _checked(self, name: str) -> Path:
        """The path of a file, which has its checksum."""
        path = self.path / name
        if name not in self._sound:
            try:
                sound = sha256_of(path) == self.manifest["files"][name]
            except (OSError, KeyError):
                raise DataError(f"this file of a shard folder is missing or cannot be read; {AGAIN}.", path=path) from None
            if not sound:
                self.damaged(name)
            self._sound.add(name)
        return path

    def damaged(self, name: str) -> NoReturn:
        """
        Raises:
            DataError: always.
        """
        raise DataError(f"this file of a shard folder is damaged; {AGAIN}.", path=self.path / name)

    def check_origin(self) -> None:
        """
        Raises:
            DataError: the files that were divided have changed since. Where they are no longer there, nothing is compared.
        """
        for name, (size, changed, digest) in self.manifest["data"]["files"].items():
            path = self.origin / name
            try:
                now = path.stat()
                same = now.st_size == size and (now.st_mtime_ns == changed or sha256_of(path) == digest)
            except OSError:
                if not self.origin.exists():
                    return
                same = False
            if not same:
                raise DataError(f"{path} has changed since this data set was divided; {AGAIN} (--force).", path=self.path)

    def task(self, config: DataConfig | None, seed: int) -> StoredTask:
        """The data set.

        Args:
            config: as of :func:`engine.data.load_task`: what the data were divided with; None takes that.
            seed: likewise, where it had a say in how links are divided.

        Raises:
            ConfigError: other settings.
            DataError: a file is missing or damaged.
        """
        data = self.manifest["data"]
        self._check_settings(config, seed)
        try:
            findings = tuple(Finding(**{**one, "examples": tuple(one["examples"])}) for one in self.manifest["findings"])
            counted = tuple(FileCount(**{**one, "left_out": tuple(map(tuple, one["left_out"]))}) for one in self.manifest["counted"])
        except (KeyError, TypeError):
            self.damaged(MANIFEST)
        links = self.table(LINKS)
        part = links["part"].to_numpy()
        pairs = np.stack([links[side].to_numpy() for side in SIDES], axis=1).astype(np.int64).reshape(-1, 2)
        train, valid, test, unsure = (pairs[part == number] for number in range(len(LINK_PARTS)))
        source, target = (StoredGraph.of(self, side) for side in SIDES)
        most = source.num_entities, target.num_entities
        inside = not len(pairs) or ((pairs.min(0) >= 0).all() and (pairs.max(0) < most).all())
        if not inside or [len(train), len(valid), len(test), len(unsure)] != [data["links"].get(name) for name in LINK_PARTS]:
            self.damaged(LINKS)
        return StoredTask(
            name=data["name"],
            format=data["format"],
            source=source,
            target=target,
            train_links=train,
            valid_links=valid,
            test_links=test,
            unsure_links=unsure,
            split=data["split"],
            fingerprint=data["fingerprint"],
            findings=findings,
            untested=data["untested"],
            files=counted,
            own_links=data["own_links"],
            several_names=frozenset(data["several_names"]),
            apart=stored_frame(self.table(APART)),
            shards=self,
        )

    def _check_settings(self, config: DataConfig | None, seed: int) -> None:
        stored = RunConfig().with_assignments(f"{key}={value}" for key, value in self.manifest["settings"].items())
        if config is not None and config != stored.data:
            theirs, ours = vars(stored.data), vars(config)
            key = next(key for key in theirs if theirs[key] != ours[key])
            was, now = ("default" if one[key] is None else one[key] for one in (theirs, ours))
            raise ConfigError(f"{self.path} was divided with data.{key}={was}, and data.{key}={now} is not that; omit it, or {AGAIN}.")
        divided = self.manifest["data"]["seed"]
        if seed != divided and "seed" in self.manifest["data"]["split"]:
            raise ConfigError(f"{self.path} has links that were divided with seed {divided}; use --seed {divided}, or {AGAIN} (--seed {seed}).")


class StoredGraph(KnowledgeGraph):
    """A graph of a shard folder, whose parts are read when they are first looked at. A copy with other parts is a plain graph."""

    _folder: ShardFolder | None = None
    _side: Side = "source"

    @classmethod
    def of(cls, folder: ShardFolder, side: Side) -> StoredGraph:
        graph = object.__new__(cls)
        vars(graph).update(_folder=folder, _side=side, name=folder.manifest["graphs"][side]["name"])
        return graph

    def _stored(self, what: str) -> pa.Table:
        assert self._folder is not None
        return self._folder.table(graph_file(self._side, what), self._counted(what))

    def _counted(self, what: str) -> int | None:
        return None if self._folder is None else int(self._folder.manifest["graphs"][self._side][what])

    @cached_property
    def entities(self) -> tuple[str, ...]:
        return tuple(self._stored("entities")["entity"].to_pylist())

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._stored("entities")["label"].to_pylist())

    @cached_property
    def relations(self) -> tuple[str, ...]:
        return tuple(self._stored("relations")["relation"].to_pylist())

    @cached_property
    def triples(self) -> IntArray:
        assert self._folder is not None
        return self._folder.graph_triples(self._side)

    @cached_property
    def attributes(self) -> pd.DataFrame:
        return stored_frame(self._stored("attributes"))

    @property
    def num_entities(self) -> int:
        counted = self._counted("entities")
        return super().num_entities if counted is None else counted

    @property
    def num_relations(self) -> int:
        counted = self._counted("relations")
        return super().num_relations if counted is None else counted

    @property
    def num_triples(self) -> int:
        counted = self._counted("triples")
        return super().num_triples if counted is None else counted

    @property
    def num_attributes(self) -> int:
        counted = self._counted("attributes")
        return super().num_attributes if counted is None else counted


@dataclass(frozen=True)
class StoredTask(AlignmentTask):
    """A task of a shard folder."""

    shards: ShardFolder = field(kw_only=True)


def files_folder(task: AlignmentTask, path: Path) -> Path:
    """The folder with the files of a data set that was read from ``path``, which may be a shard folder of it."""
    return task.shards.origin if isinstance(task, StoredTask) else path


def stored_frame(table: pa.Table) -> pd.DataFrame:
    """Columns of texts as pandas has them everywhere else."""
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    texts = {name: pd.Series(column, dtype="str") if pa.types.is_large_string(column.type) else column.to_numpy() for name, column in columns.items()}
    return pd.DataFrame(texts)


def open_shards(path: Path) -> ShardFolder:
    """
    Raises:
        DataError: the folder is of another version, or its manifest is damaged.
    """
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
        if manifest["format"] != FORMAT:
            raise DataError(f"this shard folder has format {manifest['format']!r}, where this version reads {FORMAT}; {AGAIN}.", path=path)
        sound = _is_sound(manifest)
    except OSError as error:
        raise DataError(f"this file cannot be read ({error.strerror}); {AGAIN}.", path=file) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise DataError(f"this file of a shard folder is damaged; {AGAIN}.", path=file)
    return ShardFolder(path, manifest, sha256_of(file))


def _is_sound(manifest: Any) -> bool:
    """Whether it has what the others look for."""
    data, graphs = manifest["data"], manifest["graphs"]
    counts = [graphs[side][what] for side in SIDES for what in ("entities", "relations", "triples", "attributes")]
    texts = [data[key] for key in ("name", "path", "format", "fingerprint", "split")] + [graphs[side]["name"] for side in SIDES]
    numbers = all(type(one) is int and one >= 0 for one in (*counts, data["seed"], data["untested"]))
    lists = all(isinstance(one, list) for one in (manifest["parts"], manifest["findings"], manifest["counted"], data["several_names"]))
    named = all(isinstance(one, dict) for one in (manifest["files"], manifest["settings"], data["files"], data["links"]))
    whole = all(len(one) == 3 for one in data["files"].values())
    whole &= all(one.keys() == {"own", "halo", "sent", "triples"} and all(type(size) is int for size in one.values()) for one in manifest["parts"])
    return numbers and lists and named and whole and all(isinstance(one, str) for one in texts) and bool(manifest["parts"])
