from __future__ import annotations

import pytest
import torch

from engine.search import INDEXES


@pytest.fixture(params=sorted(INDEXES))
def index(request: pytest.FixtureRequest) -> str:
    """The name of each registered index in turn."""
    return str(request.param)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"))])
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.param)
