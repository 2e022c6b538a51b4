"""Deleting runs and backing up: exactly what was asked for goes, nothing is lost, and mistakes are reported in one line."""

from __future__ import annotations

import io
import json
import sqlite3
import tarfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.errors import ConfigError, ExportError, RunError, RunNotFoundError
from engine.runs import RunStore
from engine.runs.cleanup import back_up, delete, deletion_candidate, size_of, to_prune
from engine.runs.manifest import TRASH
from engine.util.paths import jobs_folder
from engine.util.text import size_text

NOW = datetime(2026, 11, 28, tzinfo=UTC)


def make(store: RunStore, run_id: str, *, days: float = 0.0, variant: str = "basic", dataset: str = "world", structure: str | None = None) -> None:
    training = {} if structure is None else {"structure_run": structure}
    created = (NOW - timedelta(days=days)).isoformat()
    with store.create(dataset, run_id) as writer:
        writer.write_json("metrics", {"x": 1})
        writer.finish({"variant": variant, "status": "finished", "created": created, "training": training, "data": {"fingerprint": "f"}})


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """Three basic runs, a semi and a literal one on top of it, one of other data, one interrupted."""
    store = RunStore(tmp_path / "models")
    for number in range(3):
        make(store, f"basic{number}", days=10.0 * number)
    make(store, "semi0", days=40, variant="semi")
    make(store, "literal0", days=35, variant="literal", structure="world/semi0")
    make(store, "other0", days=100, dataset="towns")
    store.create("world", "begun").close()
    return store


def names(store: RunStore) -> set[str]:
    return {one.run_id for one in store.list()}


def pruned(store: RunStore, **rule: object) -> list[str]:
    return [one.run.run_id for one in to_prune(store, now=NOW, **rule)]  # type: ignore[arg-type]


# Choosing


def test_the_newest_of_each_data_set_and_variant_stay(store: RunStore) -> None:
    assert pruned(store, keep=1) == ["basic1", "basic2"]
    assert pruned(store, keep=2) == ["basic2"]
    assert set(pruned(store, keep=0)) == {"basic0", "basic1", "basic2", "semi0", "literal0", "other0"}


def test_with_two_rules_both_must_allow_it(store: RunStore) -> None:
    assert set(pruned(store, older_than=15)) == {"basic2", "semi0", "literal0", "other0"}
    assert pruned(store, keep=1, older_than=15) == ["basic2"]
    assert pruned(store, keep=1, older_than=1000) == []


def test_interrupted_trainings_go_only_where_asked_for_and_never_while_they_run(store: RunStore) -> None:
    assert pruned(store, partial=True) == ["begun"]
    assert "begun" in pruned(store, partial=True, keep=1)
    with store.create("world", "begun"):
        assert pruned(store, partial=True) == []
        with pytest.raises(RunError, match="is being trained"):
            deletion_candidate(store, "world/begun")


@pytest.mark.parametrize("rule", [{}, {"keep": -1}, {"older_than": -1.0}, {"older_than": float("nan")}, {"older_than": 1e9}])
def test_rules_that_make_no_sense(store: RunStore, rule: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        pruned(store, **rule)


def test_who_was_built_on_a_run_is_reported_and_stays_whole(store: RunStore) -> None:
    found = deletion_candidate(store, "semi0")
    assert found.built_on == ("world/literal0",)
    assert found.bytes == size_of(found.run.path) > 100
    delete(store, [found])
    store.find("literal0").verify()


def test_a_run_that_is_named_twice_or_not_at_all(store: RunStore) -> None:
    make(store, "basic0", dataset="towns")
    with pytest.raises(RunNotFoundError, match="towns/basic0, world/basic0"):
        deletion_candidate(store, "basic0")
    assert deletion_candidate(store, "towns/basic0").run.dataset == "towns"
    with pytest.raises(RunNotFoundError, match="there is no run"):
        deletion_candidate(store, "../../etc")


# Deleting


def test_a_broken_run_can_be_deleted_and_leftovers_of_earlier_deletions_go_along(store: RunStore) -> None:
    (store.root / "world" / "basic0" / "manifest.json").write_bytes(b"{oops")
    left = store.root / "towns" / f"{TRASH}gone-1"
    left.mkdir()
    (left / "x").write_bytes(b"x")
    delete(store, [deletion_candidate(store, "basic0")])
    assert names(store) == {"basic1", "basic2", "semi0", "literal0", "other0", "begun"}
    assert not left.exists()


def test_a_deletion_that_is_killed_leaves_no_half_run(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            delete(store, [deletion_candidate(store, "basic0")])
    assert "basic0" not in names(store)
    assert list((store.root / "world").glob(f"{TRASH}*"))
    delete(store, [deletion_candidate(store, "basic1")])
    assert not list((store.root / "world").glob(f"{TRASH}*"))


# On the command line


def runs(store: RunStore, *words: str) -> int:
    return main(["runs", *words, "--models", str(store.root)])


def test_a_dry_run_says_what_would_go_and_leaves_it(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    before = names(store)
    assert runs(store, "prune", "--keep", "1", "--dry-run") == 0
    message = capsys.readouterr().out
    assert [line.split()[0] for line in message.splitlines()] == ["world/basic1", "world/basic2", "2"]
    assert "would be deleted" in message
    assert names(store) == before


def test_prune_deletes_what_the_dry_run_named(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert runs(store, "prune", "--keep", "1", "--dry-run", "--json") == 0
    promised = json.loads(capsys.readouterr().out)
    assert runs(store, "prune", "--keep", "1", "--yes", "--json") == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["runs"], done["bytes"], done["deleted"]) == (promised["runs"], promised["bytes"], True)
    assert names(store) == {"basic0", "semi0", "literal0", "other0", "begun"}
    assert runs(store, "prune", "--keep", "1", "--yes") == 0
    assert capsys.readouterr().out == "nothing to delete.\n"


@pytest.mark.parametrize(("answer", "gone"), [("y\n", True), ("yes\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_whoever_sits_at_a_terminal_is_asked(
    store: RunStore, answer: str, gone: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = io.StringIO(answer)
    monkeypatch.setattr(typed, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", typed)
    assert runs(store, "delete", "basic0") == (0 if gone else 2)
    assert "permanently? [y/N]" in capsys.readouterr().err
    assert ("basic0" not in names(store)) == gone


def test_no_answer_is_no_consent(store: RunStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert runs(store, "delete", "basic0") == 2
    assert "add --yes" in capsys.readouterr().err
    assert "basic0" in names(store)


def test_listing_works_as_before_and_options_may_be_on_either_side(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--models", str(store.root), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 7
    assert main(["runs", "--models", str(store.root), "--json", "prune", "--keep", "1", "--dry-run"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2


# Backup


def test_a_backup_holds_runs_data_and_reviews_and_can_be_unpacked_and_used(store: RunStore, tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "mine").mkdir(parents=True)
    (data / "mine" / "kg1.csv").write_text("head,relation,tail\n", encoding="utf-8")
    (data / ".partial").mkdir()
    (data / "mine" / "outside").symlink_to("/etc/hostname")
    reviews = store.root / "reviews.sqlite3"
    with closing(sqlite3.connect(reviews)) as open_one:
        open_one.execute("pragma journal_mode=wal")
        open_one.execute("create table decisions (pair text)")
        open_one.execute("insert into decisions values ('a=b')")
        open_one.commit()  # in the log beside the database only, as long as the connection is open
        made = back_up(store.root, data, tmp_path / "all.tar.gz")
    assert (made.runs, made.data_sets, made.databases) == (6, 1, ("reviews.sqlite3",))
    with tarfile.open(made.file) as archive:
        archive.extractall(tmp_path / "restored", filter="data")
    restored = RunStore(tmp_path / "restored" / "models")
    assert {one.run_id for one in restored.list()} == names(store) - {"begun"}
    for one in restored.list():
        restored.find(one.id).verify()
    with closing(sqlite3.connect(restored.root / "reviews.sqlite3")) as copy:
        assert copy.execute("select pair from decisions").fetchall() == [("a=b",)]
    assert [path.name for path in (tmp_path / "restored" / "data" / "mine").iterdir()] == ["kg1.csv"]


def test_a_backup_holds_the_queue_and_what_its_jobs_resume_with(store: RunStore, tmp_path: Path) -> None:
    jobs = jobs_folder(store.root)
    jobs.mkdir()
    with closing(sqlite3.connect(jobs / "queue.sqlite3")) as queue:
        queue.execute("create table jobs (id text)")
        queue.execute("insert into jobs values ('1f3c9a20')")
        queue.commit()
    for name in ("1f3c9a20.json", "reviews-ab.parquet", ".1f3c9a20.json.tmp", "trainer.lock", "trainer.log"):
        (jobs / name).write_text("x", encoding="utf-8")
    made = back_up(store.root, tmp_path / "nothing", tmp_path / "all.tar")
    assert made.databases == ("queue.sqlite3",)
    with tarfile.open(made.file) as archive:
        archive.extractall(tmp_path / "restored", filter="data")
    restored = jobs_folder(tmp_path / "restored" / "models")
    assert {path.name for path in restored.iterdir()} == {"queue.sqlite3", "1f3c9a20.json", "reviews-ab.parquet"}
    with closing(sqlite3.connect(restored / "queue.sqlite3")) as copy:
        assert copy.execute("select id from jobs").fetchall() == [("1f3c9a20",)]


@pytest.mark.parametrize("name", ["all.zip", "all"])
def test_a_backup_needs_the_ending_of_an_archive(store: RunStore, tmp_path: Path, name: str) -> None:
    with pytest.raises(ExportError, match=r"must end in \.tar\.gz"):
        back_up(store.root, tmp_path, tmp_path / name)


def test_nothing_to_back_up_and_files_that_are_no_databases(tmp_path: Path, store: RunStore) -> None:
    with pytest.raises(ExportError, match="nothing to back up"):
        back_up(tmp_path / "no", tmp_path / "nothing", tmp_path / "a.tar")
    (store.root / "reviews.sqlite3").write_bytes(b"no database" * 100)
    with pytest.raises(ExportError, match=r"reviews\.sqlite3 cannot be copied"):
        back_up(store.root, tmp_path / "nothing", tmp_path / "a.tar")
    assert not (tmp_path / "a.tar").exists()


def test_the_backup_command(store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "nothing"))
    words = ["backup", "--models", str(store.root), "--output", str(tmp_path / "a.tar")]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 6
    assert main(words) == 2
    assert "already exists" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0
    assert "6 runs, 0 imported data sets" in capsys.readouterr().out


@pytest.mark.parametrize(("size", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1_024, "1 KiB"), (1_234_567, "1.2 MiB"), (5 * 2**40, "5 TiB")])
def test_sizes_in_words(size: int, text: str) -> None:
    assert size_text(size) == text
