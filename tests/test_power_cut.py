"""Whatever is said to be saved survives a power cut: file and folder are on the disk before the call returns, and before anybody sees the file."""

from __future__ import annotations

import ast
import errno
import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch

from engine.config import RunConfig
from engine.errors import ExportError
from engine.exporting.merged.split import write_tables
from engine.importing import Corrections, Upload, add, correct, folder_material, stage, store
from engine.jobs import JobQueue, plan_training, summarise
from engine.reviews import Choice, ReviewStore, snapshot_of
from engine.runs import RunStore
from engine.runs.cleanup import back_up
from engine.runs.row_files import RowFiles
from engine.training.sharding import make_shards
from engine.util.files import fsync, make_folder, new_file
from engine.util.paths import data_folder, queue_file, reviews_file
from tests.conftest import ROOT
from tests.data.writers import small_sample, write_openea, write_tsv
from tests.disk import Disk

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="folders cannot be taken to the disk everywhere")

MANIFEST = {"variant": "basic", "status": "finished", "created": "2026-11-01T12:00:00+00:00"}
ROWS = {"triples_source": [("a", "r", "b")], "triples_target": [("c", "r", "d")], "links": [("a", "c", "train")]}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the folders for models, data and exports are not there yet; and a data set beside it."""
    write_openea(tmp_path / "rings", small_sample())
    write_tsv(tmp_path / "tables", small_sample())
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "root" / "data"))
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


# What is saved: each writes something and gives the files that it acknowledged.


def run(root: Path) -> Iterator[Path]:
    with RunStore(root / "models").create("world", "one") as writer:
        writer.write_tensors("embeddings", {"source": torch.zeros(3)})
        writer.write_table("entities", pd.DataFrame({"entity": [1]}))
        writer.write_json("metrics", {"hits@1": 0.5})
        writer.append_trace({"epoch": 1})
        yield writer.finish(MANIFEST).path


def checkpoint(root: Path) -> Iterator[Path]:
    with RunStore(root / "models").create("world", "one") as writer:
        for epoch in (1, 2, 3):
            writer.append_trace({"epoch": epoch})
            writer.save_checkpoint("last", {"w": torch.zeros(3)}, {"epoch": epoch})
            yield from (writer.path / "checkpoints", writer.path / "trace.jsonl")
        writer.write_note("begun", {"data": "x"})
        yield writer.path / "begun.json"


def checkpoint_of_several(root: Path) -> Iterator[Path]:
    rows = RowFiles.of_run(root / "models", "world", "one")
    for epoch in (1, 2):
        rows.save(1, {"own": torch.full((3,), epoch)})
        yield rows.folder


def sharded(root: Path) -> Iterator[Path]:
    for parts in (1, 2):
        yield make_shards(root.parent / "rings", RunConfig(), parts, root / "out" / "shards", force=True).path


def imported(root: Path) -> Iterator[Path]:
    yield store(folder_material(root.parent / "rings"), Corrections(), "mine").path


def uploaded(root: Path) -> Iterator[Path]:
    files = {path.name: path.read_bytes() for path in sorted((root.parent / "tables").iterdir())}
    staged = stage([Upload(name, io.BytesIO(content)) for name, content in files.items()])
    folder = data_folder() / f".staging-{staged.token}"
    yield folder
    correct(staged, Corrections(swap_links=True))
    yield folder
    add(staged, Upload("other.tsv", io.BytesIO(files["links.tsv"]), "links"))
    yield folder


def reviewed(root: Path) -> Iterator[Path]:
    reviews = ReviewStore(reviews_file(root / "models"))
    reviews.decide("a" * 64, Choice("s", "t", "accept"), "Ann", "click")
    yield reviews.path
    reviews.close()


def queued(root: Path) -> Iterator[Path]:
    config = RunConfig()
    data, reviews = root.parent / "rings", ReviewStore(root / "elsewhere" / "reviews.sqlite3")
    pair = small_sample().links[-1]
    reviews.decide(summarise(data, config.data, 0).fingerprint, Choice(*pair, "reject"), "Ann", "click")
    summary = summarise(data, config.data, 0, lambda fingerprint: snapshot_of(fingerprint, reviews.standing(fingerprint)))
    reviews.close()
    JobQueue(root / "models").submit(plan_training(summary, config, root / "models"))
    yield queue_file(root / "models")
    (copy,) = queue_file(root / "models").parent.glob("*.parquet")
    yield copy


def exported(root: Path) -> Iterator[Path]:
    for force in (False, True):
        with new_file(root / "links.csv", force=force) as file:
            file.write(b"x" if force else b"y")
        yield root / "links.csv"


def separated(root: Path) -> Iterator[Path]:
    for force in (False, True):
        write_tables(ROWS, root / "out" / "graphs", force=force)  # type: ignore[arg-type]
        yield root / "out" / "graphs"


def backed_up(root: Path) -> Iterator[Path]:
    list(run(root))
    back_up(root / "models", root / "data", root / "backup.tar.gz")
    yield root / "backup.tar.gz"


@pytest.mark.parametrize(
    "save", [run, checkpoint, checkpoint_of_several, sharded, imported, uploaded, reviewed, queued, exported, separated, backed_up]
)
def test_a_power_cut_takes_nothing_that_was_acknowledged(save: Callable[[Path], Iterator[Path]], root: Path, disk: Disk) -> None:
    saved = 0
    for path in save(root):
        assert disk.lost(root, path) == []
        saved += 1
    assert saved
    assert disk.early == [], "seen by others before the disk had them"


def test_a_deletion_that_was_acknowledged_is_one_after_a_power_cut(root: Path, disk: Disk) -> None:
    (path,) = run(root)
    assert disk.knows(path)
    store = RunStore(root / "models")
    store.delete(store.find("world/one"))
    assert not disk.knows(path)


def test_what_was_forgotten_is_noticed(root: Path, disk: Disk) -> None:
    """The test itself: a file that is only written, one that is renamed too early, one that changes later, a folder that is only made."""
    (root / "made").mkdir()
    (root / "made" / "written").write_bytes(b"x")
    assert disk.lost(root, root / "made") == ["content of made/written", "name of made", "name of made/written"]
    (root / "made" / "written").rename(root / "made" / "renamed")
    assert disk.early == [str(root / "made" / "written")]
    fsync(root / "made" / "renamed")
    fsync(root / "made")
    assert disk.lost(root, root / "made") == ["name of made"]
    fsync(root)
    assert disk.lost(root, root / "made") == []
    (root / "made" / "renamed").write_bytes(b"xy")
    assert disk.lost(root, root / "made") == ["content of made/renamed"]


def test_databases_wait_for_the_disk_with_each_transaction(root: Path) -> None:
    (path,) = reviewed(root)
    queue = JobQueue(root / "models")
    assert queue.jobs() == []
    for database in (ReviewStore(path)._database, queue._database):
        with database.writing() as connection:
            assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2, "FULL"
            assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        database.close()


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EACCES])
def test_a_file_system_that_cannot_wait_for_folders_can_be_written_to(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def refused(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", refused)
    make_folder(tmp_path / "a" / "b")
    with new_file(tmp_path / "a" / "b" / "file") as file:
        file.write(b"x")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"x"


def test_a_disk_that_fails_to_keep_a_name_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(ExportError, match="input/output error"), new_file(tmp_path / "file") as file:
        file.write(b"x")


# Other places must not come to write in ways of their own.

WRITERS = {
    "engine/util/files.py": "the ways to write that are on the disk when they return",
    "engine/util/sqlite.py": "databases",
    "engine/runs/cleanup.py": "an archive, within new_file",
    "engine/runs/manifest.py": "deletion by way of the trash",
    "engine/runs/writer.py": "runs in the making, sealed at their end",
    "engine/runs/tensors.py": "of runs in the making, and sealed checkpoints",
    "engine/training/sharding.py": "a folder, renamed when the disk has it",
    "engine/importing/store.py": "a folder, renamed when the disk has it",
    "engine/importing/staging.py": "uploads",
    "engine/importing/archives.py": "what is unpacked for an upload",
    "engine/exporting/merged/split.py": "a folder of tables",
    "engine/jobs/launch.py": "a log and a mark, which nothing depends on",
    "engine/jobs/progress.py": "news, which nothing depends on",
}
RENAMES = {("os", "replace"), ("os", "rename"), ("os", "link"), ("shutil", "move")}
METHODS = {"write_text", "write_bytes", "touch"}
MAYBE = re.compile(r"\bos\.(?:replace|rename|link)|shutil\.move|write_text|write_bytes|touch|open\(")


def ways_to_write(source: str) -> Iterator[int]:
    """Lines that rename, or open a path to write to it."""
    if not MAYBE.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        owner = node.func.value.id if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) else ""
        modes = [one.value for one in (*node.args, *(word.value for word in node.keywords)) if isinstance(one, ast.Constant)]
        opened = name == "open" and any(isinstance(mode, str) and mode.strip("bt+") in ("w", "a", "x") for mode in modes)
        if (owner, name) in RENAMES or opened or (name in METHODS and not node.keywords and owner not in ("pd", "frame", "table")):
            yield node.lineno


def test_nothing_else_writes_in_a_way_of_its_own() -> None:
    sources = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for folder in ("engine", "app") for path in (ROOT / folder).rglob("*.py")
    }
    found = {name: lines for name, source in sources.items() if (lines := list(ways_to_write(source)))}
    assert found.keys() <= WRITERS.keys(), "use new_file, write_durably or replacing, which a power cut cannot harm"
    assert WRITERS.keys() <= sources.keys()
    assert list(ways_to_write("open(x)\npath.open('ab')\nos.replace(a, b)\npath.write_text('')\nopen(x, mode='w')\n")) == [2, 3, 4, 5]
