"""Run folders: what is written is read back, what is damaged is noticed, and nothing that goes wrong touches another run."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import RunDamagedError, RunError, RunNotFoundError, RunVersionError
from engine.runs import FORMAT_VERSION, Run, RunStore, RunWriter
from engine.runs.manifest import with_seal
from engine.runs.tensors import InTurn, save_tensors
from tests.effort import examples

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = {"variant": "basic", "status": "finished", "created": "2026-11-01T12:00:00+00:00", "seed": 3, "note": "Zürich 北京"}
EMBEDDINGS = np.arange(60, dtype=np.float32).reshape(20, 3)
TABLE = pd.DataFrame({"entity": [1, 2, 3], "label": ["a", "دمشق", "<b>"], "score": [0.5, float("nan"), 1.0]})
METRICS = {"target_to_source": {"hits@1": 0.7}, "worst": float("inf")}


def fill(writer: RunWriter, **manifest: Any) -> Run:
    """A small run with a file of each kind."""
    writer.write_tensors("embeddings", {"source": EMBEDDINGS, "target": torch.from_numpy(EMBEDDINGS[:5] * 2)})
    writer.write_table("entities", TABLE)
    writer.write_json("metrics", METRICS)
    writer.append_trace({"epoch": 1, "loss": 2.5})
    writer.append_trace({"epoch": 2, "loss": float("nan")})
    return writer.finish({**MANIFEST, **manifest})


def make(store: RunStore, dataset: str = "world", run_id: str = "one", **manifest: Any) -> Run:
    with store.create(dataset, run_id) as writer:
        return fill(writer, **manifest)


def assert_whole(run: Run) -> None:
    run.verify()
    np.testing.assert_array_equal(run.tensor("embeddings", "source"), EMBEDDINGS)
    pd.testing.assert_frame_equal(run.table("entities"), TABLE)
    assert run.metrics == {"target_to_source": {"hits@1": 0.7}, "worst": None}
    assert run.trace() == [{"epoch": 1, "loss": 2.5}, {"epoch": 2, "loss": None}]
    assert run.manifest["note"] == "Zürich 北京"


def in_another_process(program: str, store: RunStore) -> subprocess.CompletedProcess[str]:
    """Run a program with the store's root as its argument."""
    return subprocess.run([sys.executable, "-c", program, str(store.root)], capture_output=True, text=True, check=False, cwd=ROOT)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "models")


# Writing and reading


def test_what_is_written_is_read_back(store: RunStore) -> None:
    made = make(store)
    assert_whole(made)
    run = store.find("world/one")
    assert_whole(run)
    assert (run.id, run.dataset, run.run_id, run.path) == ("world/one", "world", "one", store.path_of("world", "one"))
    assert sorted(path.name for path in run.path.iterdir()) == [
        "embeddings.safetensors",
        "entities.parquet",
        "manifest.json",
        "metrics.json",
        "trace.jsonl",
    ]
    assert [path.name for path in run.path.parent.iterdir()] == ["one"]


def test_json_is_utf8_without_escapes_and_without_nan(store: RunStore) -> None:
    run = make(store)
    assert "Zürich 北京".encode() in (run.path / "manifest.json").read_bytes()
    assert json.loads((run.path / "metrics.json").read_text("utf-8"), parse_constant=pytest.fail)["worst"] is None


def test_json_takes_what_numbers_and_labels_come_as(store: RunStore) -> None:
    with store.create("world", "odd") as writer:
        writer.write_json(
            "odd", {"f": np.float32(0.5), "i": np.int64(7), "a": np.array([1.0, np.nan]), "t": torch.tensor([2]), "p": Path("x"), 3: {2, 1}}
        )
        writer.write_json("label", {"half a pair": "\ud83d", "two halves": "\ud83d\ude00"})
        run = writer.finish({**MANIFEST, "note": "\ud83d\ude00 \udc80"})
    assert run.json("odd") == {"f": 0.5, "i": 7, "a": [1.0, None], "t": [2], "p": "x", "3": [1, 2]}
    assert run.json("label")["half a pair"] == "\ud83d"
    store.find("odd").verify()


def test_a_table_gives_some_of_its_columns(store: RunStore) -> None:
    run = make(store)
    pd.testing.assert_frame_equal(run.table("entities", ["score", "entity"])[["entity", "score"]], TABLE[["entity", "score"]])
    with pytest.raises(RunError, match=r"no column 'colour'; its columns are entity, label, score"):
        run.table("entities", ["entity", "colour"])


DTYPES = (torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_of_every_type_are_mapped(store: RunStore, dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0, 1, 2], [3, 0, 5]]).to(dtype)
    with store.create("world", "types") as writer:
        writer.write_tensors("t", {"x": tensor, "transposed": tensor.T, "view": tensor[1], "empty": tensor[:0], "scalar": tensor[1, 2]})
        run = writer.finish(MANIFEST)
    for key, expected in (("x", tensor), ("transposed", tensor.T), ("view", tensor[1]), ("empty", tensor[:0]), ("scalar", tensor[1, 2])):
        found = run.tensor("t", key)
        assert found.shape == tuple(expected.shape)
        assert torch.equal(torch.from_numpy(np.asarray(found)), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_what_is_written_in_turn_is_what_is_written_at_once(dtype: torch.dtype, tmp_path: Path) -> None:
    """To the last bit, so that a run does not show how many processes it came from."""
    drawn = {"target": torch.randn(7, 3), "source": torch.randn(0, 3), "ärger": torch.randn(2, 2, 4), "b": torch.zeros(3)}
    whole = {name: tensor.to(dtype) for name, tensor in drawn.items()}
    parts = {name: InTurn((len(whole[name]), 3), lambda step, name=name: torch.split(drawn[name], 2), dtype) for name in ("target", "source")}
    assert torch.equal(parts["target"].whole().to(dtype), whole["target"])
    save_tensors(tmp_path / "at_once", whole)
    save_tensors(tmp_path / "in_turn", {**whole, **parts})
    assert (tmp_path / "in_turn").read_bytes() == (tmp_path / "at_once").read_bytes()


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        ({"rows": InTurn((5, 2), lambda step: [torch.zeros(4, 2)])}, "the blocks have other sizes"),
        ({"rows": InTurn((1, 2), lambda step: [torch.zeros(1, 2)]), "numbers": torch.arange(3)}, "cannot be written in turn"),
    ],
)
def test_what_cannot_be_written_in_turn_is_our_defect(tensors: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=reason):
        save_tensors(tmp_path / "file", tensors)


def test_a_table_gives_the_rows_that_are_asked_for(store: RunStore) -> None:
    run = make(store)
    found = run.table("entities", ["label"], {"entity": [3, 1]})
    assert found["label"].tolist() == ["a", "<b>"]
    assert list(found.columns) == ["label"]
    pd.testing.assert_frame_equal(run.table("entities", where={"label": "دمشق", "entity": 2}), TABLE.iloc[[1]].reset_index(drop=True))
    assert run.table("entities", where={"label": "nobody"}).empty
    with pytest.raises(RunError, match="no column 'colour'; its columns are entity, label, score"):
        run.table("entities", where={"colour": "red"})


def test_a_table_that_changes_after_it_was_read_is_noticed(store: RunStore) -> None:
    run = make(store)
    run.table("entities")
    path = run.path / "entities.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))
    with pytest.raises(RunDamagedError):
        run.table("entities")


def test_a_mapped_tensor_can_be_changed_without_changing_the_run(store: RunStore) -> None:
    run = make(store)
    mapped = run.tensor("embeddings", "source")
    torch.from_numpy(mapped)[0] = -1  # a read-only array would warn here, and warnings are errors
    assert mapped[0, 0] == -1
    assert_whole(store.find("one"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the kernel how much memory was held")
def test_a_few_rows_do_not_cost_the_whole_file(store: RunStore) -> None:
    with store.create("world", "large") as writer:
        writer.write_tensors("t", {"x": torch.zeros(500_000, 16), "y": torch.arange(32.0).view(2, 16)})
        writer.write_table("small", TABLE)
        writer.write_table(
            "wide", pd.DataFrame({"entity": np.arange(600_000), "uri": [f"http://example.org/{row * 7919}" for row in range(600_000)]})
        )
        writer.finish(MANIFEST)
    program = (
        "import sys; from pathlib import Path; from engine.runs import RunStore; run = RunStore(sys.argv[1]).find('large')\n"
        # getrusage would count what the process that starts this one held.
        "peak = lambda: next(int(line.split()[1]) for line in Path('/proc/self/status').read_text().splitlines() if line.startswith('VmHWM'))\n"
        "run.table('small', ['label'], {'entity': 2})\n"
        "peaks = [peak()]\n"
        "assert run.tensor('t', 'x')[234_567].sum() == 0 and run.tensor('t', 'y')[1, 15] == 31\n"
        "peaks.append(peak())\n"
        "assert run.table('wide', ['uri'], {'entity': 345_678})['uri'].tolist() == [f'http://example.org/{345_678 * 7919}']\n"
        "peaks.append(peak())\n"
        "run.table('wide')\n"
        "peaks.append(peak())\n"
        "print(*(later - earlier for earlier, later in zip(peaks, peaks[1:])))"
    )
    tensor, part, whole = map(int, in_another_process(program, store).stdout.split())
    assert tensor < 8_000, "kilobytes; the file has 32,000"
    assert part < min(whole, 50_000)


def test_unknown_files_and_tensors_are_named(store: RunStore) -> None:
    run = make(store)
    with pytest.raises(RunError, match=r"no tensor 'Source'; its tensors are source, target"):
        run.tensor("embeddings", "Source")
    with pytest.raises(RunError, match=r"no file 'candidates\.parquet'; its files are embeddings\.safetensors"):
        run.table("candidates")
    for hostile in ("../one/entities", "/etc/passwd", "", "..", "a/b", "a\0", ".lock"):
        with pytest.raises(RunError, match="cannot be a file name"):
            run.table(hostile)


def test_other_users_can_read_a_run_as_far_as_new_files_let_them(store: RunStore, tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    assert {path.stat().st_mode for path in make(store).path.iterdir()} == {(tmp_path / "new").stat().st_mode}


@pytest.mark.parametrize("change", [{"status": "running"}, {"created": "yesterday"}, {"created": "2026-11-01T12:00:00"}, {"variant": None}])
def test_a_manifest_that_lacks_something_is_our_defect(store: RunStore, change: dict[str, Any]) -> None:
    with store.create("world", "one") as writer, pytest.raises(ValueError, match=r"must be|isoformat"):
        writer.finish({**MANIFEST, **change})
    assert not store.path_of("world", "one").exists()


# Listing and finding


def test_list_has_every_state_newest_first(store: RunStore) -> None:
    make(store, run_id="old", created="2026-01-01T00:00:00+00:00")
    make(store, run_id="stopped", status="stopped", created="2026-11-01T12:00:00+02:00")
    make(store, "europe", "new", created="2026-11-01T11:00:00Z")
    make(store, run_id="newer-format")
    rewrite_manifest(store, "newer-format", format_version=FORMAT_VERSION + 1)
    make(store, run_id="broken")
    (store.root / "world" / "broken" / "entities.parquet").unlink()
    store.create("world", "waiting").close()
    (store.root / "stray file").write_text("x")
    (store.root / "world" / "stray file").write_text("x")
    with store.create("world", "training"):
        summaries = store.list()
    by_id = {one.run_id: one for one in summaries}
    assert {name: one.state for name, one in by_id.items()} == {
        "old": "finished",
        "stopped": "stopped",
        "new": "finished",
        "broken": "broken",
        "newer-format": "broken",
        "waiting": "partial",
        "training": "partial",
    }
    assert [one.run_id for one in summaries if one.manifest] == ["new", "stopped", "old"]
    assert [one.created for one in summaries] == sorted((one.created for one in summaries), reverse=True)
    assert (by_id["training"].active, by_id["waiting"].active) == (True, False)
    assert "entities.parquet is missing" in by_id["broken"].reason
    assert "update Dual-AMN Explorer" in by_id["newer-format"].reason
    assert by_id["old"].metrics == {"target_to_source": {"hits@1": 0.7}, "worst": None}
    assert by_id["old"].variant == "basic"
    assert by_id["new"].id == "europe/new"


def test_a_folder_that_is_not_there_holds_no_runs(store: RunStore) -> None:
    assert store.list() == []
    with pytest.raises(RunNotFoundError, match="does not exist"):
        store.find("anything")
    assert not store.root.exists()


def test_find_needs_the_data_set_only_where_several_have_the_id(store: RunStore) -> None:
    make(store, "world", "one")
    assert store.find("one").id == "world/one"
    make(store, "europe", "one")
    assert store.find("europe/one").dataset == "europe"
    with pytest.raises(RunNotFoundError, match="choose one of europe/one, world/one"):
        store.find("one")


def test_unknown_runs_get_near_ones(store: RunStore) -> None:
    for name in ("basic-s0", "basic-s1", "semi-s0", "xyz"):
        make(store, run_id=name)
    with pytest.raises(RunNotFoundError, match=r"no run basic-s2; similar names: world/basic-s0, world/basic-s1, world/semi-s0"):
        store.find("basic-s2")
    store.create("world", "begun").close()
    with pytest.raises(RunNotFoundError, match="begun is not finished"):
        store.find("begun")


HOSTILE = [
    *("", "..", ".", "/", "../world/one", "world/../one", "/etc/passwd", "world/one/", "world//one", ".partial-x", "a b", "a\nb", "one\0"),
    *("~", "-rf", "x" * 101, "界" * 90, "C:\\x", "one.", "\ud800", "%2e%2e", "world/.hidden"),
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_ids_are_refused(store: RunStore, hostile: str) -> None:
    make(store)
    with pytest.raises(RunNotFoundError):
        store.find(hostile)
    for use in (store.path_of, store.create, store.free_id):
        with pytest.raises(RunError, match="cannot be a"):
            use("world", hostile)
        with pytest.raises(RunError, match="cannot be a"):
            use(hostile, "one")
    assert_whole(store.find("one"))


@given(text=st.text(max_size=40))
def test_any_text_finds_a_run_or_nothing(text: str, shared_store: RunStore) -> None:
    if text in ("one", "world/one"):
        return
    with pytest.raises(RunNotFoundError):
        shared_store.find(text)


def test_ids_in_other_scripts_are_names(store: RunStore) -> None:
    assert make(store, "größe", "北京_1").id == "größe/北京_1"
    assert store.find("größe/北京_1").manifest["variant"] == "basic"


def test_links_that_lead_out_are_not_followed(store: RunStore, tmp_path: Path) -> None:
    outside = RunStore(tmp_path / "outside")
    make(outside)
    make(store)
    (store.root / "world" / "linked").symlink_to(outside.root / "world" / "one")
    (store.root / "elsewhere").symlink_to(outside.root / "world")
    (store.root / "world" / ".partial-trap").symlink_to(outside.root)
    before = snapshot(outside.root)
    for run_id in ("linked", "elsewhere/one"):
        with pytest.raises(RunDamagedError, match="leads out of"):
            store.find(run_id)
    for dataset, run_id in (("elsewhere", "two"), ("world", "trap")):
        with pytest.raises(RunDamagedError, match="leads out of"):
            store.create(dataset, run_id)
    broken = {one.id: one for one in store.list() if one.state == "broken"}
    assert set(broken) == {"world/linked", "elsewhere/one"}
    store.delete(broken["world/linked"])
    with pytest.raises(RunDamagedError, match="leads out of"):
        store.delete(broken["elsewhere/one"])
    assert snapshot(outside.root) == before


def test_a_file_that_is_a_link_is_not_read(store: RunStore, tmp_path: Path) -> None:
    run = make(store)
    secret = tmp_path / "secret"
    shutil.move(run.path / "entities.parquet", secret)
    (run.path / "entities.parquet").symlink_to(secret)
    with pytest.raises(RunDamagedError, match=r"entities\.parquet is not a regular file"):
        store.find("one")


def test_free_id_avoids_runs_and_runs_in_the_making(store: RunStore) -> None:
    assert store.free_id("world", "one") == "one"
    make(store)
    assert store.free_id("world", "one") == "one-2"
    store.create("world", "one-2").close()
    assert store.free_id("world", "one") == "one-3"


# Damage


def rewrite_manifest(store: RunStore, run_id: str, **change: Any) -> None:
    """Change a manifest and seal it again, as an attacker or another version would."""
    path = store.root / "world" / run_id / "manifest.json"
    path.write_text(json.dumps(with_seal({**json.loads(path.read_text("utf-8")), **change})), "utf-8")


def test_a_newer_format_says_to_update(store: RunStore) -> None:
    make(store)
    rewrite_manifest(store, "one", format_version=FORMAT_VERSION + 1)
    with pytest.raises(
        RunVersionError, match=rf"format {FORMAT_VERSION + 1}, but this version reads formats up to {FORMAT_VERSION}; update Dual-AMN Explorer"
    ):
        store.find("one")


@pytest.mark.parametrize(
    "change",
    [
        {"format_version": "1"},
        {"format_version": True},
        {"status": "partial"},
        {"created": 5},
        {"created": "0001-01-01T00:00:00+14:00"},
        {"created": "soon"},
        {"variant": ["basic"]},
        {"files": []},
        {"files": {"../../secret": {"size": 1, "sha256": "0"}}},
        {"files": {"metrics.json": {"size": "1", "sha256": "0"}}},
        {"files": {"metrics.json": 7}},
    ],
)
def test_a_sealed_manifest_is_not_trusted_either(store: RunStore, change: dict[str, Any]) -> None:
    make(store)
    rewrite_manifest(store, "one", **change)
    with pytest.raises(RunDamagedError, match=r"manifest\.json"):
        store.find("one")
    assert [one.state for one in store.list()] == ["broken"]


NO_MANIFESTS = (b"", b"{", b"[1]", b"\xff\xfe", b"null", b"[" * 100_000, b'{"a":' * 700 + b"1" + b"}" * 700, b'{"format_version": 1}')


@pytest.mark.parametrize("content", NO_MANIFESTS, ids=lambda content: repr(content[:10]))
def test_a_manifest_that_is_none(store: RunStore, content: bytes) -> None:
    run = make(store)
    (run.path / "manifest.json").write_bytes(content)
    with pytest.raises(RunDamagedError, match=r"manifest\.json"):
        store.find("one")
    assert [one.state for one in store.list()] == ["broken"]


def test_changed_manifest_is_noticed(store: RunStore) -> None:
    run = make(store)
    path = run.path / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"seed": 3', b'"seed": 4'))
    with pytest.raises(RunDamagedError, match="was changed after it was written"):
        store.find("one")


def test_verify_names_the_changed_file(store: RunStore) -> None:
    run = make(store)
    path = run.path / "embeddings.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunDamagedError, match=r"embeddings\.safetensors was changed"):
        store.find("one").verify()


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """A run and its neighbour, for tests that put back what they damage."""
    store = RunStore(tmp_path_factory.mktemp("shared") / "models")
    make(store)
    make(store, "neighbour", "other")
    return store


FILES = ("embeddings.safetensors", "entities.parquet", "manifest.json", "metrics.json", "trace.jsonl")


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_an_error_of_ours_or_does_no_harm(name: str, shared_store: RunStore, data: st.DataObject) -> None:
    path = shared_store.path_of("world", "one") / name
    whole = path.read_bytes()
    try:
        damage(path, whole, data)
        summaries = shared_store.list()
        assert [one.state for one in summaries if one.dataset == "neighbour"] == ["finished"]
        assert_whole(shared_store.find("neighbour/other"))
        try:
            run = shared_store.find("world/one")
        except RunError:
            return
        for read in readings(run):
            read()
        try:
            run.verify()
        except RunDamagedError:
            return
        assert_whole(run)
    finally:
        path.write_bytes(whole)


def damage(path: Path, whole: bytes, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["truncate", "delete", "extend", "bytes", "swap"]))
    if kind == "truncate":
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    elif kind == "delete":
        path.unlink()
    elif kind == "extend":
        path.write_bytes(whole + data.draw(st.binary(min_size=1, max_size=20)))
    elif kind == "swap":
        path.write_bytes((path.parent / data.draw(st.sampled_from(FILES))).read_bytes())
    else:
        content = bytearray(whole)
        for place, value in data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), min_size=1, max_size=4)):
            content[place] = value
        path.write_bytes(content)


def readings(run: Run) -> Iterator[Callable[[], None]]:
    """Each way to read: what is checked on reading gives what was written or a RunError; a mapped tensor gives any numbers or a RunError."""

    def checked(read: Callable[[], Any], expected: Any) -> Callable[[], None]:
        def attempt() -> None:
            try:
                found = read()
            except RunError:
                return
            assert expected.equals(found) if isinstance(expected, pd.DataFrame) else found == expected

        return attempt

    yield checked(lambda: run.table("entities"), TABLE)
    yield checked(lambda: run.metrics, {"target_to_source": {"hits@1": 0.7}, "worst": None})
    yield checked(run.trace, [{"epoch": 1, "loss": 2.5}, {"epoch": 2, "loss": None}])
    for key, size in (("source", EMBEDDINGS.nbytes), ("target", 60)):
        yield checked(lambda key=key: run.tensor("embeddings", key).nbytes, size)  # type: ignore[misc]


# Checkpoints


def save(writer: RunWriter, epoch: int) -> None:
    writer.append_trace({"epoch": epoch})
    writer.save_checkpoint("last", {"weights": torch.full((4,), float(epoch)), "rng": torch.arange(3, dtype=torch.uint8)}, {"epoch": epoch})


def checkpoints(writer: RunWriter) -> list[Path]:
    return sorted((writer.path / "checkpoints").glob("last-*"))


def test_training_resumes_from_the_last_checkpoint(store: RunStore) -> None:
    with store.create("world", "one") as writer:
        assert writer.load_checkpoint("last") is None
        for epoch in (1, 2, 3):
            save(writer, epoch)
        writer.append_trace({"epoch": 4, "lost": True})
        assert len(checkpoints(writer)) == 2
    with store.create("world", "one") as writer:
        found = writer.load_checkpoint("last")
        assert found is not None
        assert found.state == {"epoch": 3}
        assert found.tensors["weights"].tolist() == [3.0] * 4
        assert found.tensors["rng"].dtype == torch.uint8
        save(writer, 4)
        run = writer.finish(MANIFEST)
    assert [entry["epoch"] for entry in run.trace()] == [1, 2, 3, 4]
    assert not (run.path / "checkpoints").exists()


def test_checkpoints_of_other_names_do_not_interfere(store: RunStore) -> None:
    with store.create("world", "one") as writer:
        save(writer, 1)
        writer.save_checkpoint("last-best", {"w": torch.zeros(1)}, {"best": True})
        save(writer, 2)
        best, last = writer.load_checkpoint("last-best"), writer.load_checkpoint("last")
        assert best is not None
        assert best.state == {"best": True}
        assert last is not None
        assert last.state == {"epoch": 2}


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    store = RunStore(tmp_path_factory.mktemp("models"))
    with store.create("world", "one") as writer:
        save(writer, 1)
        save(writer, 2)
        newest = checkpoints(writer)[-1]
        whole = newest.read_bytes()
        place = data.draw(st.integers(0, len(whole) - 1))
        torn, flipped = whole[:place], whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]
        newest.write_bytes(data.draw(st.sampled_from([torn, flipped])))
    with store.create("world", "one") as writer:
        found = writer.load_checkpoint("last")
        assert found is not None
        assert found.state == {"epoch": 1}
        save(writer, 2)
        assert [entry["epoch"] for entry in writer.finish(MANIFEST).trace()] == [1, 2]


def test_without_any_whole_checkpoint_everything_starts_again(store: RunStore) -> None:
    with store.create("world", "one") as writer:
        save(writer, 1)
        checkpoints(writer)[0].write_bytes(b"")
        digest = hashlib.sha256(b"not tensors").hexdigest()
        (writer.path / "checkpoints" / f"last-000009-{digest}.safetensors").write_bytes(b"not tensors")
        writer.write_table("stale", TABLE)
    with store.create("world", "one") as writer:
        assert writer.load_checkpoint("last") is None
        writer.append_trace({"epoch": 1, "again": True})
        run = writer.finish(MANIFEST)
    assert run.trace() == [{"epoch": 1, "again": True}]
    assert sorted(path.name for path in run.path.iterdir()) == ["manifest.json", "trace.jsonl"]


# Two at once, and things that fail


def test_two_writers_of_a_run_do_not_collide(store: RunStore) -> None:
    with store.create("world", "one") as writer:
        with pytest.raises(RunError, match="world/one is being trained by another process"):
            store.create("world", "one")
        partial = store.list()[0]
        with pytest.raises(RunError, match="is being trained by another process"):
            store.delete(partial)
        with store.create("world", "two"):
            pass
        fill(writer)
    with pytest.raises(RunError, match="run world/one already exists"):
        store.create("world", "one")
    assert_whole(store.find("one"))


def test_the_lock_goes_with_a_process_that_is_killed(store: RunStore) -> None:
    program = (
        "import os, signal, sys; from engine.runs import RunStore; writer = RunStore(sys.argv[1]).create('world', 'one')\n"
        "writer.append_trace({'epoch': 1}); writer.save_checkpoint('last', {}, {'epoch': 1}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert in_another_process(program, store).returncode == -signal.SIGKILL
    assert [(one.state, one.active) for one in store.list()] == [("partial", False)]
    with store.create("world", "one") as writer:
        found = writer.load_checkpoint("last")
        assert found is not None
        assert found.state == {"epoch": 1}
        assert writer.finish(MANIFEST).trace() == [{"epoch": 1}]


def test_discard_leaves_nothing(store: RunStore) -> None:
    with store.create("world", "one") as writer:
        writer.write_table("entities", TABLE)
        writer.discard()
    assert store.list() == []
    assert list((store.root / "world").iterdir()) == []


def test_delete_removes_one_run_of_any_state(store: RunStore) -> None:
    make(store, run_id="keep")
    run = make(store)
    store.delete(run)
    make(store)
    (store.root / "world" / "one" / "manifest.json").unlink()
    store.create("world", "begun").close()
    for summary in store.list():
        if summary.run_id != "keep":
            store.delete(summary)
    assert [path.name for path in (store.root / "world").iterdir()] == ["keep"]
    assert_whole(store.find("keep"))
    with pytest.raises(RunNotFoundError, match="run world/one no longer exists"):
        store.delete(run)


class Killed(BaseException):
    """The process ends here: nothing catches this but the test."""


FILE_OPERATIONS = ("fsync", "replace", "rename", "open", "unlink", "mkdir", "rmdir", "truncate")


def interrupt(monkeypatch: pytest.MonkeyPatch, allowed: int, error: Callable[[], BaseException]) -> list[int]:
    """Let ``allowed`` file operations pass, then raise at every one; the list counts them."""
    calls = [0]

    def limited(operation: Callable[..., Any]) -> Callable[..., Any]:
        def attempt(*arguments: Any, **options: Any) -> Any:
            calls[0] += 1
            if calls[0] > allowed:
                raise error()
            return operation(*arguments, **options)

        return attempt

    for name in FILE_OPERATIONS:
        monkeypatch.setattr(os, name, limited(getattr(os, name)))
    return calls


def train(store: RunStore) -> Run:
    """A training that resumes from its checkpoint."""
    with store.create("world", "one") as writer:
        found = writer.load_checkpoint("last")
        done = 0 if found is None else found.state["epoch"]
        for epoch in range(done + 1, 3):
            writer.append_trace({"epoch": epoch, "loss": 2.5 if epoch == 1 else float("nan")})
            writer.save_checkpoint("last", {"w": torch.zeros(2)}, {"epoch": epoch})
        writer.write_tensors("embeddings", {"source": EMBEDDINGS})
        writer.write_table("entities", TABLE)
        writer.write_json("metrics", METRICS)
        return writer.finish(MANIFEST)


def count_operations(tmp_path: Path) -> int:
    store = RunStore(tmp_path / "count")
    make(store, run_id="earlier")
    with pytest.MonkeyPatch.context() as patch:
        calls = interrupt(patch, 10**9, Killed)
        train(store)
        return calls[0]


def test_killed_between_any_two_file_operations_there_is_no_run_or_a_whole_one(tmp_path: Path) -> None:
    total = count_operations(tmp_path)
    assert total > 30
    for allowed in range(total):
        store = RunStore(tmp_path / f"models{allowed}")
        make(store, run_id="earlier")
        with pytest.MonkeyPatch.context() as patch:
            interrupt(patch, allowed, Killed)
            with pytest.raises(Killed):
                train(store)
        states = {one.run_id: one.state for one in store.list()}
        assert states.pop("earlier") == "finished"
        assert set(states.values()) <= {"finished", "partial"}, f"after {allowed} operations"
        run = store.find("one") if states.get("one") == "finished" else train(store)
        assert_whole(run)
        assert_whole(store.find("earlier"))


@pytest.mark.parametrize(("code", "words"), [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "permission denied"), (errno.EIO, "check the disk")])
def test_a_failing_disk_is_reported_in_a_sentence(tmp_path: Path, code: int, words: str) -> None:
    total = count_operations(tmp_path)
    for allowed in range(0, total, 5):
        store = RunStore(tmp_path / f"models{allowed}")
        make(store, run_id="earlier")
        with pytest.MonkeyPatch.context() as patch:
            interrupt(patch, allowed, lambda: OSError(code, os.strerror(code)))
            message = ""
            try:
                train(store)
            except RunError as error:
                message = str(error)
        assert_whole(store.find("earlier"))
        if any(one.run_id == "one" and one.state == "finished" for one in store.list()):
            assert_whole(store.find("one"))  # it failed at tidying up
        else:
            assert words in message
            assert "\n" not in message
            assert_whole(train(store))


def test_a_really_full_disk_while_writing_tensors(store: RunStore) -> None:
    """A limit on file sizes, in another process, simulates a full disk."""
    make(store, run_id="earlier")
    program = (
        "import resource, signal, sys, numpy as np, pandas as pd, torch; from engine.errors import RunError; from engine.runs import RunStore\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "large = {'x': torch.zeros(10**6)}\n"
        "with RunStore(sys.argv[1]).create('world', 'one') as writer:\n"
        "    for write in (lambda: writer.write_tensors('t', large), lambda: writer.save_checkpoint('c', large, {}),\n"
        "                  lambda: writer.write_table('d', pd.DataFrame({'x': np.random.rand(10**5)})),\n"
        "                  lambda: writer.write_json('j', {'x': 'y' * 10**6})):\n"
        "        try: write()\n"
        "        except RunError as error: print(error)\n"
    )
    message = in_another_process(program, store)
    assert message.stdout.count("the disk is full; free some space") == 4, message.stdout + message.stderr
    assert_whole(store.find("earlier"))


def test_a_models_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("x")
    store = RunStore(tmp_path / "models")
    assert store.list() == []
    with pytest.raises(RunError, match="cannot write to"):
        store.create("world", "one")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_a_folder_that_may_not_be_written(store: RunStore) -> None:
    make(store)
    (store.root / "world").chmod(0o500)
    try:
        with pytest.raises(RunError, match="permission denied"):
            store.create("world", "two")
    finally:
        (store.root / "world").chmod(0o700)
