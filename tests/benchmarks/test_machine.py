"""What measurements are compared with: speeds, clocks and memory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from benchmarks.machine import Probe, describe_machine, forget_peak, peak_mib, resident_mib, timed
from benchmarks.phases import Phase, Stopwatch, Work
from engine.training.device import usable_cores

CPU = torch.device("cpu")


@pytest.mark.usefixtures("quick_probe")
def test_ceilings_are_medians_and_the_best_is_no_worse() -> None:
    probe = Probe(CPU)
    probe.measure()
    probe.measure()
    assert all(len(trials) == 6 for trials in probe.trials.values())
    probe.trials["float32"] = [3.0, 1.0, 2.0]
    probe.trials["copy"] = [0.5, 0.25, 1.0]
    assert probe.ceilings.product("float32") == 2 * 64**3 / 2.0
    assert probe.best.product("float32") == 2 * 64**3 / 1.0
    assert (probe.ceilings.copy, probe.best.copy) == (2 * 2**20 / 0.5, 2 * 2**20 / 0.25)
    assert probe.ceilings.product("no such precision") == probe.ceilings.product("float32")


@pytest.mark.usefixtures("quick_probe")
def test_ratios_are_of_the_counted_work() -> None:
    probe = Probe(CPU)
    probe.measure()
    probe.trials |= {"float32": [1.0, 2.0, 4.0], "copy": [1.0, 1.0, 1.0]}
    phase = Phase("x", Work(operations=3 * 2.0 * 64**3, bytes=2.0 * 2 * 2**20), samples=[32.0, 16.0, 64.0])
    found = phase.to_dict(probe.ceilings, probe.best)
    assert found["seconds"] == 32.0
    assert found["ratio"] == pytest.approx(32.0 / (3 * 2.0 + 2 * 1.0))
    assert found["best_ratio"] == pytest.approx(16.0 / (3 * 1.0 + 2 * 1.0))
    assert found["of_product"] == pytest.approx(3 * 2.0 / 32.0)
    assert found["of_copy"] == pytest.approx(2 * 1.0 / 32.0)


def test_a_clock_measures_how_long_it_took() -> None:
    result, seconds = timed(CPU, lambda: time.sleep(0.05) or "done")
    assert result == "done"
    assert 0.05 <= seconds < 1.0


def test_the_machine_is_named() -> None:
    found = describe_machine(CPU)
    assert found["cpu"]
    assert found["cores"] == usable_cores()
    assert "gpu" not in found


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells of peaks")
def test_the_peak_of_a_phase_is_its_own() -> None:
    watch = Stopwatch(CPU)
    watch.run("large", lambda: torch.ones(64 * 2**20 // 4).sum())
    watch.run("small", lambda: None)
    large, small = watch.phases["large"].peak, watch.phases["small"].peak
    assert large is not None
    assert small is not None
    assert large - small > 50
    assert watch.peak == large
    forget_peak(CPU)
    peak, now = peak_mib(), resident_mib()
    assert peak is not None
    assert now is not None
    assert abs(peak - now) < 10


def test_warming_up_is_not_counted() -> None:
    watch = Stopwatch(CPU)
    watch.run("x", lambda: None, counted=False)
    watch.run("x", lambda: None)
    assert len(watch.phases["x"].samples) == 1


def test_what_takes_long_is_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, calls = Stopwatch(CPU), []
    assert watch.several("short", lambda: calls.append(1) or len(calls)) == 5
    monkeypatch.setattr("benchmarks.phases.LONG", 0.0)
    assert watch.several("long", lambda: "once") == "once"
    assert [len(phase.samples) for phase in watch.phases.values()] == [5, 1]
