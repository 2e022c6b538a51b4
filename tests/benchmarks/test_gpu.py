"""What runs on machines with a GPU, as far as it can be tried without one: agreement of devices, the script, its report."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import torch

from benchmarks import agreement, gpu_report
from benchmarks.agreement import differences
from tests.benchmarks.conftest import QUICK

NEVER = ["--step-tolerance", "-1"]


@pytest.mark.parametrize(("words", "code"), [([], 0), (NEVER, 1)])
def test_devices_are_compared(small_world: Path, tmp_path: Path, words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "agreement.json"
    assert agreement.main([str(small_world), "--device", "cpu", *QUICK, "--out", str(out), *words]) == code
    found = json.loads(out.read_text())
    assert found["agrees"] == (code == 0)
    assert {"embeddings", "loss", "gradient of entity_features", "gradient of gate_weight"} <= set(found["step"])
    assert max(found["step"].values()) < 1e-4
    assert 0 < found["curve_apart"] < 1e-4, "the kernels with what a card would run: other sums of the same numbers"
    assert len(found["curve"]) == 3
    assert found["trained"]["cpu"]["mrr"] == pytest.approx(found["trained"]["device"]["mrr"], abs=0.02)
    assert ("They agree." if code == 0 else "THEY DO NOT AGREE.") in capsys.readouterr().out


def test_differences_are_relative() -> None:
    one = {"a": torch.tensor([3.0, 4.0]), "b": torch.tensor([0.0])}
    other = {"a": torch.tensor([3.0, 4.5]), "b": torch.tensor([0.0])}
    assert differences(one, other) == pytest.approx({"a": 0.1, "b": 0.0})


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_no_gpu_is_one_line(small_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert agreement.main([str(small_world)]) == 2
    assert "no CUDA device is available" in capsys.readouterr().err


def script(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", str(repository / "benchmarks" / "gpu.sh"), *words], capture_output=True, text=True, check=False, timeout=60)


def test_the_script_is_bash(repository: Path) -> None:
    found = subprocess.run(["bash", "-n", str(repository / "benchmarks" / "gpu.sh")], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    shown = script(repository, "--help")
    assert shown.returncode == 0
    assert shown.stdout.startswith("Measures everything that wants a GPU")
    assert "a rehearsal." in shown.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nonsense"], "unknown option --nonsense"),
        (["no/such/folder"], "there is no such folder"),
        (["--budget", "soon"], "--budget expects seconds"),
        (["--out"], "--out needs a value"),
    ],
)
def test_the_script_says_what_is_wrong(repository: Path, words: list[str], said: str) -> None:
    found = script(repository, *words)
    assert found.returncode == 2
    assert said in found.stderr


@pytest.mark.slow
def test_the_rehearsal(repository: Path, tmp_path: Path) -> None:
    words = ["--tiny", "--device", "cpu", "--out", str(tmp_path), "--budget", "900", str(repository / "sample_data" / "europe")]
    found = subprocess.run(["bash", str(repository / "benchmarks" / "gpu.sh"), *words], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    report = json.loads((tmp_path / "gpu.json").read_text())
    assert [step["exit_code"] for step in report["steps"]] == [0] * 7
    assert report["waits"]["waits_per_step"] == 0
    assert report["agreement"]["agrees"]
    assert {run["variant"] for run in report["runs"]} == {"basic", "semi"}
    assert len(report["measurements"]) == 4


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (124, 1)])
def test_the_report_gathers_what_is_there(tmp_path: Path, code: int, expected: int, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "steps.tsv").write_text(f"agreement\t0\t3\nsearch\t{code}\t20\n")
    (tmp_path / "search.jsonl").write_text('{"case": "search"}\n')
    assert gpu_report.main([str(tmp_path)]) == expected
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert found["steps"][1] == {"step": "search", "exit_code": code, "seconds": 20.0}
    assert found["measurements"] == [{"case": "search"}]
    assert (found["waits"], found["agreement"], found["runs"]) == (None, None, [])
    assert ("FAILED: search" in capsys.readouterr().out) == bool(code)


@pytest.mark.parametrize("content", [None, "nonsense\n"])
def test_a_folder_that_the_script_did_not_write(tmp_path: Path, content: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    if content is not None:
        (tmp_path / "steps.tsv").write_text(content)
    assert gpu_report.main([str(tmp_path)]) == 2
    assert "steps.tsv" in capsys.readouterr().err
