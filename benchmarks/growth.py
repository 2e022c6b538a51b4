"""How time and memory grow with the size of the graphs: exponents of power laws through what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.tables import NOTHING, markdown

LEAST = 2  # sizes for an exponent
HEADER = ("what", "exponent", "from", "to")
NOTE = (
    "Exponent b of a * entities^b through all sizes, fitted to the logarithms: 1 is linear. Memory: the peak minus what the program held before it "
    "read anything. Search and evaluation are quadratic as they stand; where --queries caps them, their exponent is that of the capped work. A step "
    "has at most training.batch_size pairs; below some 3,500 entities it has fewer, which lifts the exponent."
)


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """b of the power law a * size^b that fits best; ValueError for fewer than two sizes or values that are not positive."""
    if len(set(sizes)) < LEAST or min(*sizes, *values) <= 0:
        raise ValueError("an exponent needs positive values at two sizes or more")
    slope, _ = np.polyfit(np.log(sizes), np.log(values), 1)
    return float(slope)


def growth_table(records: Sequence[Mapping[str, Any]]) -> str:
    """Of the synthetic cases; "" where there are fewer than two."""
    cases = [one for one in records if one["synthetic"]]
    sizes = [float(one["synthetic"]) for one in cases]
    if len(set(sizes)) < LEAST:
        return ""
    series = {"step": [one["step_seconds"] for one in cases]}
    series |= {name: [one["phases"][name]["seconds"] for one in cases] for name in cases[0]["phases"]}
    series["peak memory"] = [above_start(one) for one in cases]
    span = [f"{size:,.0f}" for size in (min(sizes), max(sizes))]
    rows = [[name, f"{exponent(sizes, values):.2f}" if min(values) > 0 else NOTHING, *span] for name, values in series.items()]
    return f"{markdown(HEADER, rows)}\n\n{NOTE}"


def above_start(record: Mapping[str, Any]) -> float:
    """MiB beyond the program itself; 0 where the system reports neither."""
    peak, start = record["peak_mib"], record["start_mib"]
    return 0.0 if peak is None or start is None else max(peak - start, 0.0)
