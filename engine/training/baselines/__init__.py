"""Other methods in place of Dual-AMN, in the same run folders, pages and tables, to compare with. Every module of this package registers its own."""

from __future__ import annotations

import importlib
import pkgutil

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

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "BASELINES",
    "MEASURES",
    "Baseline",
    "Effort",
    "Fit",
    "Learned",
    "Measure",
    "Session",
    "measured",
    "register_baseline",
    "require_seed_links",
]
