"""Make a shard folder (:mod:`engine.data.shards`) of a data set: read once, divide, write what each process needs.

The folder is written beside its place and renamed into it when it is whole. What a killed process left of one is written again from the beginning.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import Timeout

from engine import __version__
from engine.config import RunConfig
from engine.data import AlignmentTask, data_files, load_task
from engine.data.knowledge_graph import SIDES
from engine.data.shards import (
    APART,
    FORMAT,
    LINK_PARTS,
    LINKS,
    MANIFEST,
    OWNERS,
    ShardFolder,
    StoredTask,
    graph_file,
    is_shard_folder,
    open_shards,
    part_file,
)
from engine.errors import ConfigError, ExportError, TrainingError, printable
from engine.model.partition import BYTES_A_PAIR, Owners, Triples, has_metis, partition_entities
from engine.model.shard import cut_off
from engine.util.arrays import IntArray
from engine.util.files import fsync, fsync_tree, make_folder, remove, sha256_of
from engine.util.locks import take_lock
from engine.util.machine import os_advice, os_reason
from engine.util.memory import MIB, give_back
from engine.util.text import count

MEMORY: Final = 1000
"""MiB that METIS may take where nothing else is asked for."""
UNFINISHED: Final = ".unfinished"
LOCK: Final = "lock"
TEXT: Final = pa.large_string()

Say = Callable[[str], None]


@dataclass(frozen=True)
class _Read:
    """What dividing needs of a data set that is written already."""

    triples: Triples
    links: IntArray
    entities: int
    manifest: dict[str, Any]


def make_shards(
    path: Path, config: RunConfig, parts: int, out: Path, *, force: bool = False, memory: int = MEMORY, say: Say = lambda text: None
) -> ShardFolder:
    """Divide a data set into shards. The same data, settings and installed packages give the same files.

    Args:
        path: the data set's folder, or another shard folder of it.
        config: its section ``data`` and the seed say how the data are read and the links divided.
        parts: how many.
        out: the shard folder.
        force: whether a shard folder that is there may be replaced.
        memory: MiB that METIS may take; less than it needs for the whole graph gives parts that fetch more from each other.
        say: progress.

    Raises:
        ConfigError: not a number of parts, or of MiB.
        DataError: data that cannot be read.
        ExportError: ``out`` is there already, or cannot be written.
        TrainingError: more parts than entities.
    """
    if parts < 1 or memory < 1:
        raise ConfigError(f"--parts and --memory expect a number from 1 on; got {parts} and {memory}.")
    _check_place(out, force=force)
    with _written_beside(out) as folder:
        say(f"Reading {path}")
        read = _read_and_written(path, config, parts, folder)
        give_back()
        way = "with METIS" if has_metis() else "by dealing them out, since METIS is not installed"
        say(f"Dividing {count(read.entities, 'entity', 'entities')} with {count(len(read.triples), 'triple')} into {count(parts, 'part')} {way}")
        owners = partition_entities(read.triples, read.entities, read.links, parts, memory * MIB // BYTES_A_PAIR)
        sizes = []
        for part in range(parts):
            sizes.append(_written_part(folder, read.triples, owners, part))
            say(f"part {part + 1}/{parts}: {sizes[-1]['own']:,} entities, {sizes[-1]['halo']:,} of other parts, {sizes[-1]['triples']:,} triples")
        np.save(folder / OWNERS, owners)
        files = {one.name: sha256_of(one) for one in sorted(folder.iterdir()) if one.name != LOCK}
        manifest = {**read.manifest, "partition": "metis" if has_metis() else "dealt", "parts": sizes, "files": files}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return open_shards(out)


def check_parts(task: AlignmentTask, parts: int) -> None:
    """
    Raises:
        TrainingError: more parts than entities.
    """
    fewest = min(task.source.num_entities, task.target.num_entities)
    if parts > fewest:
        raise TrainingError(f"{parts} parts are more than the {count(fewest, 'entity', 'entities')} of the smaller graph; use fewer (--parts).")


def _check_place(out: Path, *, force: bool) -> None:
    """
    Raises:
        ExportError: there is something that may not be replaced, or no folder to write to.
    """
    if os.path.lexists(out) and not (force and is_shard_folder(out)):
        advice = "overwrite it with --force" if is_shard_folder(out) else "remove it, since it is no shard folder"
        raise ExportError(printable(f"{out} already exists; choose another folder with --out, or {advice}."))


@contextlib.contextmanager
def _written_beside(out: Path) -> Iterator[Path]:
    """A folder to write to, which takes the place of ``out`` if all goes well, and of which nothing is left where an error ends that.

    Raises:
        ExportError: another process is writing it, no space, no permission.
    """
    folder = out.with_name(f".{out.name}{UNFINISHED}")
    try:
        make_folder(folder)
        lock = take_lock(folder / LOCK, 0)
    except Timeout:
        raise ExportError(printable(f"{out} is being written by another process; wait for it, or choose another folder with --out.")) from None
    except OSError as error:
        raise _cannot_write(out, error) from error
    try:
        for torn in folder.iterdir():
            if torn.name != LOCK:
                remove(torn)
        yield folder
        fsync_tree(folder)
        _put_in_place(folder, out)
    except OSError as error:
        remove(folder)
        raise _cannot_write(out, error) from error
    except BaseException:
        remove(folder)
        raise
    finally:
        lock.release()
        remove(out / LOCK)


def _put_in_place(folder: Path, out: Path) -> None:
    """What was there before goes only when the new one is whole."""
    earlier = out.with_name(f".{out.name}.earlier")
    if out.exists():
        remove(earlier)
        os.rename(out, earlier)
    os.rename(folder, out)
    fsync(out.parent)
    remove(earlier)


def _cannot_write(out: Path, error: OSError) -> ExportError:
    return ExportError(
        printable(f"cannot write {out}: {os_reason(error)}; {os_advice(error, 'check the disk')}, or choose another place with --out.")
    )


def _read_and_written(path: Path, config: RunConfig, parts: int, folder: Path) -> _Read:
    """Read the data and write all but the parts. When this returns, the data's texts are no longer in memory."""
    task = load_task(path, config.data, config.seed)
    check_parts(task, parts)
    for side in SIDES:
        graph = task.graph(side)
        _write_table(folder / graph_file(side, "entities"), {"entity": pa.array(graph.entities, TEXT), "label": pa.array(graph.labels, TEXT)})
        _write_table(folder / graph_file(side, "relations"), {"relation": pa.array(graph.relations, TEXT)})
        _write_table(folder / graph_file(side, "attributes"), _columns(graph.attributes))
    groups = task.all_links()
    links = np.concatenate(groups)
    part = np.repeat(np.arange(len(groups), dtype=np.int8), [len(one) for one in groups])
    _write_table(folder / LINKS, {"part": pa.array(part), "source": pa.array(links[:, 0]), "target": pa.array(links[:, 1])})
    _write_table(folder / APART, _columns(task.apart))
    kind = np.int32 if task.num_entities < 2**31 else np.int64
    return _Read(task.stacked_triples().astype(kind), task.stacked_links(task.train_links), task.num_entities, _about(task, path, config, parts))


def _columns(table: pd.DataFrame) -> dict[str, pa.Array]:
    return {str(name): pa.array(table[name], TEXT if table[name].dtype == "str" else None) for name in table.columns}


def _write_table(path: Path, columns: Mapping[str, pa.Array]) -> None:
    pq.write_table(pa.table(dict(columns)), path, compression="zstd")


def _written_part(folder: Path, triples: Triples, owners: Owners, part: int) -> dict[str, int]:
    """Write the triples of a part; how much it is."""
    held, halo, sent = cut_off(triples, owners, part)
    np.save(folder / part_file(part), held)
    return {"own": int((owners == part).sum()), "halo": len(halo), "sent": len(sent), "triples": len(held)}


def _about(task: AlignmentTask, path: Path, config: RunConfig, parts: int) -> dict[str, Any]:
    """What the manifest says of the data."""
    if isinstance(task, StoredTask):
        origin, files = str(task.shards.origin), task.shards.manifest["data"]["files"]
    else:
        origin = str(path.resolve())
        files = {str(one.relative_to(path)): (one.stat().st_size, one.stat().st_mtime_ns, sha256_of(one)) for one in data_files(path, config.data)}
    graphs = {
        side: {
            "name": graph.name,
            "entities": graph.num_entities,
            "relations": graph.num_relations,
            "triples": graph.num_triples,
            "attributes": graph.num_attributes,
        }
        for side, graph in zip(SIDES, (task.source, task.target), strict=True)
    }
    return {
        "format": FORMAT,
        "engine": __version__,
        "command": f"python -m engine shard {shlex.quote(origin)} --parts {parts}",
        "data": {
            "path": origin,
            "files": files,
            "name": task.name,
            "format": task.format,
            "fingerprint": task.fingerprint,
            "seed": config.seed,
            "split": task.split,
            "links": dict(zip(LINK_PARTS, map(len, task.all_links()), strict=True)),
            "own_links": task.own_links,
            "untested": task.untested,
            "several_names": sorted(task.several_names),
        },
        "settings": dict(one.split("=", 1) for one in config.assignments()),
        "graphs": graphs,
        "findings": [asdict(one) for one in task.findings],
        "counted": [asdict(one) for one in task.files],
    }


__all__ = ["MEMORY", "make_shards"]
