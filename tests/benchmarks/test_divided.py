"""The benchmark of a training divided among processes: real processes, on a small data set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import divided


@pytest.mark.slow
def test_bytes_are_those_of_the_formula_and_halves_add_up(
    small_europe: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    settings = ["encoder.dim=16", "encoder.proxies=8", "training.threads=1", "training.precision=float32"]
    words = [word for one in settings for word in ("--set", one)]
    assert divided.main([str(small_europe), "--processes", "1", "2", "--steps", "1", *words]) == 0
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in capsys.readouterr().out.splitlines() if re.match(r"\| \d", line)]
    assert [row[0] for row in rows] == ["1", "2"]
    assert rows[0][2:3] == ["0"]
    sent, expected = (float(row.split(" to ")[0]) for row in rows[1][4:6])
    assert sent == pytest.approx(expected, rel=0.1, abs=0.1)


def test_data_or_a_size_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        divided.main([])
    assert "give a data set's folder, or --entities" in capsys.readouterr().err
