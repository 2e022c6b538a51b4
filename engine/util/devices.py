"""How a device computes: a CPU by compiled kernels, a graphics card by torch's own operations, which are begun one after the other without waiting.

Nothing that runs within a training step may read a value from the card: the program would wait until everything begun before is done, and the card
would then wait for the program. Index arrays that a step needs are made on the host from what the host knows, and sent by :func:`upload`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

LEAST_BLOCK = 32 * 2**20
"""Bytes of a block of temporaries below which a card would only start more, smaller operations."""
MOST_BLOCK = 2 * 2**30
"""Bytes above which larger blocks start hardly fewer operations."""
ASSUMED_FREE = 8 * 2**30
"""Bytes of a card that is only rehearsed."""
SHARE_OF_FREE = 16
"""The temporaries of one operation take at most this fraction of the memory that is free when a training begins."""

_kernels_are_off: ContextVar[bool] = ContextVar("kernels_are_off", default=False)
_blocks: dict[str, int] = {}
"""By type of device: a process computes on one card."""


def has_kernels(device: torch.device) -> bool:
    """Whether the compiled kernels compute what is on this device."""
    return device.type == "cpu" and not _kernels_are_off.get()


@contextmanager
def without_kernels() -> Iterator[None]:
    """Within this, a CPU goes the way of a graphics card: its results and what it waits for can be tried out on any machine."""
    token = _kernels_are_off.set(True)
    try:
        yield
    finally:
        _kernels_are_off.reset(token)


def upload(array: npt.NDArray[np.generic], device: torch.device) -> Tensor:
    """The array on a device, without waiting for it to arrive: from pinned memory, which torch keeps until it has been read."""
    here = torch.from_numpy(np.ascontiguousarray(array))
    return here.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else here.to(device)


def block_bytes(device: torch.device) -> int:
    """Bytes that the temporaries of one operation may take, by the card's free memory; this is looked up once, best before the first step."""
    if device.type not in _blocks:
        free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else ASSUMED_FREE
        _blocks[device.type] = min(max(free // SHARE_OF_FREE, LEAST_BLOCK), MOST_BLOCK)
    return _blocks[device.type]


def block_of(bytes_per_row: int, device: torch.device) -> int:
    """How many rows make a block, where each needs this number of bytes of temporaries."""
    return max(block_bytes(device) // max(bytes_per_row, 1), 1)


def halve_blocks(device: torch.device) -> bool:
    """Use less memory from now on; False where blocks are as small as is sensible."""
    before = block_bytes(device)
    _blocks[device.type] = max(before // 2, LEAST_BLOCK)
    return _blocks[device.type] < before
