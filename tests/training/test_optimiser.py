"""RMSprop beside torch's class, bit for bit."""

from __future__ import annotations

import subprocess
import sys

import torch
from torch import nn

from engine.training.optimiser import EPSILON, RHO, RmsProp


def parameters() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(size, generator=generator)) for size in (4, 7, 2)]


def test_it_does_what_torchs_class_does_and_resumes_from_its_averages() -> None:
    ours, theirs = parameters(), parameters()
    optimiser, expected = RmsProp(ours, 0.01), torch.optim.RMSprop(theirs, lr=0.01, alpha=RHO, eps=EPSILON)
    for number in range(6):
        for values in (ours, theirs):
            loss = sum((one * (number + 1)).sin().sum() for one in values[:2])  # the last one never has a gradient
            assert isinstance(loss, torch.Tensor)
            loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        expected.step()
        optimiser.zero_grad()
        expected.zero_grad()
        assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
        again = RmsProp(ours, 0.01)
        again.load(optimiser.averages)
        optimiser = again
    assert set(optimiser.averages) == {0, 1}


def test_torchs_compiler_is_not_loaded() -> None:
    script = "import sys, torch; from engine.training.optimiser import RmsProp; p = torch.nn.Parameter(torch.ones(2)); o = RmsProp([p], 0.1); "
    script += "p.sum().backward(); "
    script += "o.step(); print('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout == "False\n"
