"""``benchmarks.ingestion`` end to end, on tiny sizes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import ingestion
from benchmarks.children import here

pytestmark = pytest.mark.usefixtures("quick_probe")


@pytest.mark.parametrize("words", [(), ("--gz",)])
def test_sizes_are_read_indexed_and_written(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ingestion.md"
    assert ingestion.main(["--triples", "10000", "20000", "--out", str(out), *words], here) == 0
    text = out.read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() == text.strip()
    records = [json.loads(line) for line in out.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]
    assert [round(one["triples"], -3) for one in records] == [10_000, 20_000]
    for one in records:
        assert list(one["phases"]) == ["index", "read"]
        assert all(phase["seconds"] > 0 for phase in one["phases"].values())
        assert 0 < one["expected_mib"] < 100
        assert len(one["fingerprint"]) == 64
        assert one["command"].startswith("python -m benchmarks.ingestion --triples 10000 20000")
        assert one["case"].endswith("gzipped") == bool(words)
        assert f"| {one['triples']:,} | {one['entities']:,} |" in text
    assert "Exponents of the growth with the triples (1 is linear): read " in text


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(["--triples", "10"], "a synthetic graph has 1,000 to"), (["--triples", "10000", "10000"], "'10000' is given twice")],
)
def test_sizes_that_cannot_be(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ingestion.main(words, here) == 2
    assert complaint in capsys.readouterr().err
