"""The command line as users see it: results, errors in one line, interruptions that lose nothing."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.cli.main import build_parser, main, print_estimated
from engine.config import SECTIONS, RunConfig, section_options
from engine.errors import RunError
from engine.evaluation.calibration import Calibration, Threshold
from engine.runs import Run, RunStore
from tests.processes import Forked
from tests.run_fixture import sample_run, write_run

ROOT = Path(__file__).resolve().parents[2]
EUROPE = ROOT / "sample_data" / "europe"
PRECISION = "training.precision=float32"  # of two processes, one might find bfloat16 faster
QUICK = ["--epochs", "4", "--set", "encoder.dim=12", "--set", "encoder.proxies=8", "--set", "training.batch_size=100", "--set", PRECISION]


def last_json(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text.splitlines()[-1])
    return value


def train(models: Path, *words: str, data: Path = EUROPE) -> int:
    return main(["train", str(data), "--models", str(models), *QUICK, *words])


@dataclass(frozen=True)
class Trained:
    """A models folder with one run, and what the command that made it has written."""

    models: Path
    out: str
    err: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    models = tmp_path_factory.mktemp("models")
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        assert train(models, "--json") == 0
    return Trained(models, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def trained(made: Trained) -> tuple[Path, Run]:
    """One finished run that the tests only look at."""
    (summary,) = RunStore(made.models).list()
    return made.models, RunStore(made.models).find(summary.id)


def test_train_ends_with_one_json_object(made: Trained) -> None:
    result = last_json(made.out)
    assert {"run", "metrics", "seconds", "peak_rss_mb"} <= set(result)
    for direction in ("source_to_target", "target_to_source"):
        assert {"hits@1", "hits@5", "hits@10", "mrr", "mean_rank"} <= set(result["metrics"][direction])
    assert result["seconds"] > 0
    assert result["peak_rss_mb"] > 10
    for expected in ("234 seed, 117 validation, 819 test links", "epoch   4/4", "validation mrr", "left"):
        assert expected in made.err


def test_the_same_command_finds_the_finished_run_and_fresh_keeps_it(tmp_path: Path, small_europe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for extra in ([], [], ["--fresh"]):
        assert train(tmp_path, "--json", *extra, data=small_europe) == 0
        results.append(last_json(capsys.readouterr().out))
    assert results[0]["run"] == results[1]["run"] != results[2]["run"]
    assert results[0]["metrics"] == results[1]["metrics"] == results[2]["metrics"]
    assert len(RunStore(tmp_path).list()) == 2


def test_where_and_how_fast_does_not_make_another_run(tmp_path: Path, small_europe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = []
    for extra in (["--set", "training.checkpoint_seconds=0"], ["--set", "training.device=cpu"], ["--seed", "1"], ["--set", "encoder.dim=8"]):
        assert train(tmp_path, "--json", *extra, data=small_europe) == 0
        runs.append(last_json(capsys.readouterr().out)["run"])
    assert runs[0] == runs[1]
    assert len(set(runs)) == 3


def test_the_manifest_is_enough_to_train_the_run_again(trained: tuple[Path, Run], tmp_path: Path) -> None:
    from engine.config import RunConfig
    from engine.pipeline import train_run

    _, run = trained
    run.verify()
    again = train_run(EUROPE, RunConfig.from_dict(run.manifest["config"]), RunStore(tmp_path)).run
    assert again.id == run.id
    for side in ("source", "target"):
        assert np.array_equal(again.tensor("embeddings", side), run.tensor("embeddings", side))
    assert {"python", "torch", "numpy", "engine"} <= set(run.manifest["versions"])
    assert run.manifest["data"]["fingerprint"] == again.manifest["data"]["fingerprint"]


def test_runs_lists_and_evaluate_repeats_the_stored_figures(trained: tuple[Path, Run], capsys: pytest.CaptureFixture[str]) -> None:
    models, run = trained
    assert main(["runs", "--models", str(models)]) == 0
    assert run.id in capsys.readouterr().out
    assert main(["evaluate", run.id, "--models", str(models), "--json"]) == 0
    found = last_json(capsys.readouterr().out)["metrics"]
    assert found["protocol"] == run.metrics["protocol"]
    assert found["target_to_source"]["hits@1"] == pytest.approx(run.metrics["target_to_source"]["hits@1"])
    assert main(["evaluate", run.run_id, "--models", str(models), "--pool", "all", "--json"]) == 0
    everyone = last_json(capsys.readouterr().out)["metrics"]
    assert everyone["target_to_source"]["mrr"] < found["target_to_source"]["mrr"]  # more candidates, harder
    assert main(["evaluate", run.id, "--models", str(models)]) == 0
    assert "819 test entities" in capsys.readouterr().out


@pytest.mark.parametrize("top", [1, 10, 1000])
def test_match_by_uri_label_and_id(trained: tuple[Path, Run], top: int, capsys: pytest.CaptureFixture[str]) -> None:
    models, run = trained
    links, entities = run.table("links"), run.table("entities").set_index(["graph", "entity"])
    seed = links[links["role"] == "train"].iloc[0]
    uri = entities.loc[("source", seed["source"]), "uri"]
    assert main(["match", run.id, uri, "--models", str(models), "--top", str(top), "--json"]) == 0
    found = last_json(capsys.readouterr().out)
    assert found["entity"]["uri"] == uri
    assert len(found["matches"]) == top
    assert [one["rank"] for one in found["matches"]] == sorted(one["rank"] for one in found["matches"])
    best = run.table("matches").query("graph == 'source' and rank == 1").set_index("entity").loc[seed["source"]]
    assert found["matches"][0]["csls"] == pytest.approx(best["csls"], abs=1e-5)
    assert found["matches"][0]["cosine"] == pytest.approx(best["cosine"], abs=1e-5)


def test_match_says_seed_and_test_link(trained: tuple[Path, Run], capsys: pytest.CaptureFixture[str]) -> None:
    models, run = trained
    links, entities = run.table("links"), run.table("entities").set_index(["graph", "entity"])
    verdicts = {}
    for role in ("train", "test"):
        link = links[links["role"] == role].iloc[0]
        source, target = (entities.loc[(side, link[side]), "uri"] for side in ("source", "target"))
        assert main(["match", run.id, source, "--models", str(models), "--top", "1000", "--json"]) == 0
        rows = {one["uri"]: one["verdict"] for one in last_json(capsys.readouterr().out)["matches"]}
        verdicts[role] = rows.get(target)
    assert verdicts["train"] == "seed link"
    assert verdicts["test"] == "known test link"


def test_relations_that_correspond(trained: tuple[Path, Run], capsys: pytest.CaptureFixture[str]) -> None:
    models, run = trained
    assert main(["relations", run.id, "--models", str(models), "--least", "0", "--json"]) == 0
    every = last_json(capsys.readouterr().out)["correspondences"]
    assert len(every) == len(run.table("correspondences"))
    assert main(["relations", run.id, "--models", str(models), "--least", "1"]) == 0
    assert "no corresponding relations" in capsys.readouterr().out
    middle = run.table("correspondences")[["source_implies_target", "target_implies_source"]].max(axis=1).median()
    shown = int((run.table("correspondences")[["source_implies_target", "target_implies_source"]].max(axis=1) >= middle).sum())
    assert 0 < shown < len(every)
    assert main(["relations", run.id, "--models", str(models), "--least", str(middle)]) == 0
    assert f"{len(every) - shown:,} more with a probability below" in capsys.readouterr().out
    assert main(["relations", run.id, "--models", str(models), "--least", "2"]) == 2
    assert "--least must lie between 0 and 1" in one_line(capsys.readouterr().err)


def test_match_from_the_target_graph_and_unknown_entities(trained: tuple[Path, Run], capsys: pytest.CaptureFixture[str]) -> None:
    models, run = trained
    assert main(["match", run.id, "Deutschland", "--models", str(models)]) == 0
    assert "target graph" in capsys.readouterr().out
    assert main(["match", run.id, "Atlantis the Lost", "--models", str(models)]) == 2
    assert one_line(capsys.readouterr().err)


def one_line(error: str) -> str:
    """The error, if that is all there is."""
    lines = [line for line in error.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, error
    assert "Traceback" not in error
    assert error.rstrip().splitlines()[-1] == lines[0]
    return lines[0]


BAD_COMMANDS = {
    "no such data": (["train", "no/such/folder"], "no such folder"),
    "a file": (["train", str(ROOT / "README.md")], "this is a file"),
    "unknown option": (["train", str(EUROPE), "--set", "encoder.depth=3"], "unknown option 'encoder.depth'"),
    "no value": (["train", str(EUROPE), "--set", "encoder.dim"], "section.option=value"),
    "wrong type": (["train", str(EUROPE), "--set", "encoder.dim=wide"], "whole number"),
    "out of limits": (["train", str(EUROPE), "--epochs", "0"], "must lie between"),
    "wrong choice": (["train", str(EUROPE), "--set", "loss.kind=best"], "must be one of"),
    "ratio": (["train", str(EUROPE), "--train-ratio", "1.5"], "must lie between"),
    "no seeds": (["train", str(EUROPE), "--train-ratio", "0"], "the basic variant trains only on known links"),
    "negative seed": (["train", str(EUROPE), "--seed", "-1"], "must lie between 0 and 2147483647; got -1"),
    "large limit": (["train", str(EUROPE), "--set", "training.batch_size=0"], "between 1 and 1000000; got 0"),
    "small limit": (["train", str(EUROPE), "--set", "training.learning_rate=0"], "between 1e-09 and 10; got 0"),
    "no run": (["evaluate", "europe/nothing"], "no run"),
    "hostile run": (["evaluate", "../../etc/passwd"], "not a run id"),
    "match without run": (["match", "nothing", "Berlin"], "no run"),
    "unknown reader": (["inspect", str(EUROPE), "--set", "data.format=xls"], "xls"),
    "no fold": (["inspect", str(EUROPE), "--set", "data.fold=7"], "7"),
    "hostile fold": (["inspect", str(EUROPE), "--set", "data.fold=../../.."], "fold"),
}


@pytest.mark.parametrize(("words", "expected"), BAD_COMMANDS.values(), ids=BAD_COMMANDS)
def test_mistakes_get_one_sentence_and_code_2(words: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = [] if words[0] == "inspect" else ["--models", str(tmp_path)]
    assert main([*words, *models]) == 2
    assert expected in one_line(capsys.readouterr().err)
    assert not list(tmp_path.rglob("manifest.json"))


def test_a_models_path_that_is_a_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = tmp_path / "models"
    blocked.write_text("not a folder")
    assert train(blocked) == 2
    one_line(capsys.readouterr().err)


@pytest.mark.slow
def test_a_full_disk_while_saving_leaves_earlier_runs(
    tmp_path: Path, small_europe: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train(tmp_path, data=small_europe) == 0
    (before,) = RunStore(tmp_path).list()

    def full(*_: object) -> None:
        raise RunError("cannot write: no space left on the disk.")

    monkeypatch.setattr("engine.runs.writer.RunWriter.write_table", full)
    assert train(tmp_path, "--seed", "1", data=small_europe) == 2
    assert "no space left" in one_line(capsys.readouterr().err)
    monkeypatch.undo()
    RunStore(tmp_path).find(before.id).verify()
    assert train(tmp_path, "--seed", "1", data=small_europe) == 0  # and what was trained can be saved once there is room


def test_inspect_prints_counts_and_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(EUROPE)]) == 0
    text = capsys.readouterr().out
    assert "1,510" in text
    assert main(["inspect", str(EUROPE), "--json"]) == 0
    assert last_json(capsys.readouterr().out)["source"]["entities"] == 1510


def test_options_lists_everything_that_set_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["options", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"encoder.dim", "loss.kind", "training.epochs", "search.csls_k", "data.fold"} <= {row["option"] for row in rows}
    assert all(row["help"] for row in rows)
    usual = {row["option"] for row in rows}
    assert main(["options", "--expert", "--json"]) == 0
    every = {row["option"] for row in json.loads(capsys.readouterr().out)}
    experts = {"loss.tail_mass", "loss.most_kept", "loss.least_candidates", "loss.shift", "training.check_memory", "training.precision"}
    assert (every - usual, usual - every) == (experts, set())
    assert every == {option.key for section in SECTIONS.values() for option in section_options(section)}
    assert RunConfig().with_assignments([f"{key}=0.1" for key in ("loss.tail_mass", "loss.shift")]).loss.tail_mass == 0.1
    assert main(["options"]) == 0
    assert "loss.candidates = both" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["train", "runs", "evaluate", "match", "inspect", "options"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        build_parser().parse_args([command, "--help"])
    assert left.value.code == 0
    assert len(capsys.readouterr().out) > 100


class Process:
    """``python -m engine train`` in a process of its own, with its progress line by line: as its users start it, or forked, which is as real
    a process and saves seconds of imports.
    """

    def __init__(self, data: Path, models: Path, *, forked: bool = False) -> None:
        words = ["train", str(data), "--models", str(models), *QUICK, *LONG, "--json"]
        self.process: Forked | subprocess.Popen[str]
        if forked and os.name != "nt":
            self.process = Forked(words)
            return
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, "-m", "engine", *words], cwd=ROOT, stdout=pipe, stderr=pipe, text=True, encoding="utf-8")

    def wait_for(self, pattern: str) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if re.search(pattern, line):
                return
        self.end()
        pytest.fail(f"ended before {pattern!r}")

    def end(self) -> tuple[int, str, str]:
        if isinstance(self.process, Forked):
            return self.process.end(timeout=120)
        with self.process:
            out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err


LONG = ["--set", "training.checkpoint_seconds=0", "--epochs", "60", "--set", "training.batch_size=16"]


def assert_same_embeddings(found: Run, expected: Run) -> None:
    """Bit for bit, although other processes computed them."""
    for side in ("source", "target"):
        assert np.array_equal(found.tensor("embeddings", side), expected.tensor("embeddings", side))
    assert found.metrics == expected.metrics


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory, small_europe: Path) -> Run:
    models = tmp_path_factory.mktemp("unbroken")
    assert train(models, *LONG, data=small_europe) == 0
    (summary,) = RunStore(models).list()
    return RunStore(models).find(summary.id)


@pytest.mark.slow
def test_killed_twice_and_resumed_equals_unbroken(unbroken: Run, small_europe: Path, tmp_path: Path) -> None:
    for epoch in (7, 31):
        process = Process(small_europe, tmp_path, forked=True)
        process.wait_for(rf"epoch +{epoch}/60")
        process.process.kill()
        process.end()
        (summary,) = RunStore(tmp_path).list()
        assert summary.state == "partial"
        assert not summary.active
    code, out, err = Process(small_europe, tmp_path, forked=True).end()
    assert code == 0, err
    assert "epoch   1/60" not in err  # it resumed, and did not start again
    run = RunStore(tmp_path).find(last_json(out)["run"])
    assert run.id == unbroken.id
    assert_same_embeddings(run, unbroken)
    assert [line["epoch"] for line in run.trace()] == list(range(1, 61))


@contextmanager
def started_with(hang_up: signal.Handlers) -> Iterator[None]:
    """Processes that are started here find hang-ups handled so, whatever the tests themselves were started with."""
    before = signal.signal(signal.SIGHUP, hang_up)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_hang_up_keeps_what_was_learned_and_under_nohup_nothing_happens(unbroken: Run, small_europe: Path, tmp_path: Path) -> None:
    with started_with(signal.SIG_DFL):
        process = Process(small_europe, tmp_path)
    process.wait_for("epoch +9/60")
    process.process.send_signal(signal.SIGHUP)
    code, out, err = process.end()
    assert code == 0, err
    assert "Stopping after this step" in err
    assert "Stopped. The progress is kept" in err
    assert RunStore(tmp_path).find(last_json(out)["run"]).manifest["status"] == "stopped"
    with started_with(signal.SIG_IGN):  # as nohup does
        process = Process(small_europe, tmp_path)
    process.wait_for("epoch +20/60")
    process.process.send_signal(signal.SIGHUP)
    code, out, err = process.end()
    assert code == 0, err
    assert_same_embeddings(RunStore(tmp_path).find(last_json(out)["run"]), unbroken)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_terminal_that_is_gone_does_not_end_a_training(small_europe: Path, tmp_path: Path) -> None:
    with started_with(signal.SIG_DFL):
        process = Process(small_europe, tmp_path)
    process.wait_for("epoch +9/60")
    assert isinstance(process.process, subprocess.Popen)
    with process.process as child:
        assert child.stderr is not None
        assert child.stdout is not None
        child.stderr.close()  # whoever read it has ended
        child.send_signal(signal.SIGHUP)
        out = child.stdout.read()
    assert child.returncode == 0
    assert RunStore(tmp_path).find(last_json(out)["run"]).manifest["status"] == "stopped"


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_leaves_a_usable_run_and_the_rest_can_be_trained(unbroken: Run, small_europe: Path, tmp_path: Path) -> None:
    process = Process(small_europe, tmp_path, forked=True)
    process.wait_for("epoch +9/60")
    process.process.send_signal(signal.SIGINT)
    code, out, err = process.end()
    assert code == 0, err
    stopped = RunStore(tmp_path).find(last_json(out)["run"])
    assert stopped.manifest["status"] == "stopped"
    assert 9 <= stopped.manifest["training"]["epochs"] < 60
    assert main(["match", stopped.id, "Deutschland", "--models", str(tmp_path)]) == 0
    code, out, err = Process(small_europe, tmp_path, forked=True).end()
    assert code == 0, err
    assert_same_embeddings(RunStore(tmp_path).find(last_json(out)["run"]), unbroken)
    stopped.verify()


def test_two_at_once_on_one_run(small_europe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = Process(small_europe, tmp_path, forked=True)
    first.wait_for("epoch +2/60")
    assert train(tmp_path, *LONG, data=small_europe) == 2
    assert "another process" in one_line(capsys.readouterr().err)
    assert first.end()[0] == 0


def test_a_damaged_run_and_one_of_a_newer_version_are_reported(trained: tuple[Path, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = tmp_path / "models"
    shutil.copytree(trained[0], models)
    run = RunStore(models).find(trained[1].id)
    (run.path / "embeddings.safetensors").write_bytes(b"short")
    assert main(["match", run.id, "Deutschland", "--models", str(models)]) == 2
    assert "embeddings.safetensors" in one_line(capsys.readouterr().err)
    from engine.runs.manifest import with_seal

    newer = with_seal({**run.manifest, "format_version": 999})
    (run.path / "manifest.json").write_text(json.dumps(newer, ensure_ascii=False), encoding="utf-8")
    assert main(["evaluate", run.id, "--models", str(models)]) == 2
    assert "update Dual-AMN Explorer" in one_line(capsys.readouterr().err)
    assert main(["runs", "--models", str(models)]) == 0


@pytest.mark.parametrize("name", ["embeddings.safetensors", "links.parquet", "hubness.safetensors"])
@pytest.mark.parametrize("command", [["evaluate"], ["match", "Deutschland"]], ids=["evaluate", "match"])
def test_changed_bytes_are_noticed(
    trained: tuple[Path, Run], tmp_path: Path, name: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained[0], tmp_path / "models")
    run = RunStore(tmp_path / "models").find(trained[1].id)
    content = bytearray((run.path / name).read_bytes())
    content[-100] ^= 1
    (run.path / name).write_bytes(content)
    assert main([command[0], run.id, *command[1:], "--models", str(tmp_path / "models")]) == 2
    assert name in one_line(capsys.readouterr().err)


@pytest.mark.parametrize("words", [["train"], ["train", "x", "--epochs", "many"], ["train", "x", "--variant", "best"], ["guess"], []])
def test_mistakes_in_the_arguments_get_one_line_too(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2
    assert "--help" in one_line(capsys.readouterr().err)


def test_runs_of_a_file_are_no_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "models").write_text("not a folder")
    assert main(["runs", "--models", str(tmp_path / "models")]) == 2
    assert "is a file" in one_line(capsys.readouterr().err)


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_a_missing_models_folder_is_distinguished_from_an_empty_one(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    models = ["--models", str(tmp_path / name)]
    assert main(["runs", *models]) == 0
    assert ("does not exist" in capsys.readouterr().out) == (name == "nowhere")
    assert main(["runs", *models, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["evaluate", "x", *models]) == 2
    assert ("does not exist" in one_line(capsys.readouterr().err)) == (name == "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_labels_cannot_steer_the_terminal(tmp_path: Path, small_europe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data"
    shutil.copytree(small_europe, folder)
    links = (folder / "ent_links").read_text(encoding="utf-8").splitlines()[0].split("\t")
    attributes = folder / "attr_triples_1"
    lines = [line for line in attributes.read_text(encoding="utf-8").splitlines() if not line.startswith(links[0] + "\t")]
    attributes.write_text("\n".join([*lines, f"{links[0]}\tname\t\x1b[31mred\x07"]) + "\n", encoding="utf-8")
    assert train(tmp_path / "models", data=folder) == 0
    (summary,) = RunStore(tmp_path / "models").list()
    capsys.readouterr()
    assert main(["match", summary.id, links[0], "--models", str(tmp_path / "models")]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "\x07" not in text


def test_the_sample_starts_quickly() -> None:
    """Help must not wait for the heavy libraries more than it has to."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "engine", "--help"], cwd=ROOT, check=True, capture_output=True, timeout=120)
    assert time.monotonic() - started < 60


def test_what_takes_long_to_load_is_loaded_where_it_is_used() -> None:
    slow = "sklearn", "scipy.stats", "scipy.optimize", "faiss", "networkx", "streamlit", "plotly"
    program = f"import sys, engine.cli.main; print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("estimated", [True, False])
def test_a_run_with_estimated_probabilities_ends_with_the_suggested_threshold(
    estimated: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = sample_run()
    curve = (Threshold(0.4567, 0.92, 0.8),)
    fit = Calibration("csls", (0.0,), (1.0,), (1.0,), 0.0, 0, 100, 90, 0.1, None, curve, features=("similarity",), estimated=estimated)
    run.documents = {**run.documents, "calibration": {"fit": fit.to_dict()}}
    write_run(run, tmp_path / "models")
    print_estimated(RunStore(tmp_path / "models").find("towns/basic-s0-0123abcd"), " --models elsewhere")
    shown = capsys.readouterr().out
    assert ("suggested minimum 0.457 (expected precision 92%, expected recall 80%)" in shown) == estimated
    assert ("export towns/basic-s0-0123abcd --min-probability suggested --models elsewhere" in shown) == estimated
