"""Made-up embeddings."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from engine.search import normalise_rows


def noisy_copies(n: int, m: int, width: int = 32, *, noise: float = 0.6, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two pools of unit rows whose first min(n, m) rows belong together."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((max(n, m), width))
    parts = [base[:size] + noise * rng.standard_normal((size, width)) for size in (n, m)]
    source, target = (normalise_rows(torch.from_numpy(part.astype(np.float32))) for part in parts)
    return source, target


def clustered(n: int, width: int = 64, *, clusters: int = 200, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two pools of unit rows around common centres, as trained embeddings are."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((clusters, width))
    base = centres[rng.integers(clusters, size=n)] + 0.5 * rng.standard_normal((n, width))
    parts = [base + 0.2 * rng.standard_normal((n, width)) for _ in range(2)]
    source, target = (normalise_rows(torch.from_numpy(part.astype(np.float32))) for part in parts)
    return source, target
