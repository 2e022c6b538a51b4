from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from engine.search import INDEXES
from engine.util.devices import without_kernels


@pytest.fixture(params=sorted(INDEXES))
def index(request: pytest.FixtureRequest) -> str:
    """The name of each registered index in turn."""
    return str(request.param)


@pytest.fixture(params=["cpu", "rehearsed", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"))])
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """A CPU with its kernels, and without them: a graphics card's way, tried out on the CPU; and a card where there is one."""
    if request.param == "rehearsed":
        with without_kernels():
            yield torch.device("cpu")
    else:
        yield torch.device(request.param)
