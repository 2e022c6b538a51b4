"""Other methods in place of Dual-AMN, in the same run folders, pages and tables, to compare with."""

from __future__ import annotations

from engine.training.baselines.base import (
    BASELINES,
    MEASURES,
    Baseline,
    Effort,
    Fit,
    Learned,
    Measure,
    Session,
    measured,
    register_baseline,
    require_seed_links,
)
from engine.training.baselines.gcn_align import GcnAlign
from engine.training.baselines.lightea import LightEA
from engine.training.baselines.mtranse import MTransE
from engine.training.baselines.paris import Paris

__all__ = [
    "BASELINES",
    "MEASURES",
    "Baseline",
    "Effort",
    "Fit",
    "GcnAlign",
    "Learned",
    "LightEA",
    "MTransE",
    "Measure",
    "Paris",
    "Session",
    "measured",
    "register_baseline",
    "require_seed_links",
]
