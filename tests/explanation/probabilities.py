"""A drawn run whose pair (3, 5) has a calibrated probability, with what it depends on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from engine.evaluation.calibration import FEATURE_COLUMNS, FEATURES, Calibration
from tests.run_fixture import MemoryRun

VALUES = np.linspace(-0.4, 1.6, len(FEATURES))


def fit(features: tuple[str, ...] = FEATURES) -> Calibration:
    numbers = [tuple(np.linspace(low, high, len(features)).tolist()) for low, high in ((0.1, 0.5), (0.5, 2.0), (1.0, -1.0))]
    return Calibration("csls", numbers[0], numbers[1], numbers[2], -0.7, 60, 60, 40, 0.0, 0.01, (), features)


def with_probability(run: MemoryRun, stored: bool = True) -> MemoryRun:
    """The run with a probability; ``stored`` with the features, as this version writes it, else as older versions did."""
    calibration = fit() if stored else fit(FEATURES[:9])
    probability = float(calibration.probabilities(VALUES[None])[0])
    rows = {"graph": ["target"], "entity": [5], "match": [3], "probability": [probability]}
    rows |= {name: [np.float32(value)] for name, value in zip(FEATURE_COLUMNS, VALUES, strict=True)} if stored else {}
    files = {**run.manifest.get("files", {}), "probabilities.parquet": {}}
    return replace(
        run,
        tables={**run.tables, "probabilities": pd.DataFrame(rows)},
        documents={**run.documents, "calibration": {"decoder": "csls", "fit": calibration.to_dict(), "test": None}},
        manifest={**run.manifest, "files": files},
    )
