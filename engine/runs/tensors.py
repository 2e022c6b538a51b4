"""Tensors in safetensors files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from torch import Tensor

from engine.errors import RunDamagedError, RunError
from engine.runs.manifest import RESTORE, parse_object

DTYPES: Mapping[str, str] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"
}  # fmt: skip
LONGEST_HEADER = 16 * 2**20


def save_tensors(path: Path, tensors: Mapping[str, Tensor | npt.NDArray[Any]], metadata: dict[str, str] | None = None) -> None:
    """Write a file with the permissions that new files get (the library's own are for the owner alone)."""
    path.touch()
    mode = path.stat().st_mode
    safetensors.torch.save_file(plain_tensors(tensors), path, metadata)
    path.chmod(mode)


def plain_tensors(tensors: Mapping[str, Tensor | npt.NDArray[Any]]) -> dict[str, Tensor]:
    """Contiguous tensors on the CPU, none of which shares memory with another (the format does not allow that)."""
    plain: dict[str, Tensor] = {}
    seen: set[int] = set()
    for key, value in tensors.items():
        tensor = (value.detach() if isinstance(value, Tensor) else torch.tensor(value)).cpu().contiguous()
        whole = tensor.untyped_storage().nbytes() == tensor.nbytes and tensor.data_ptr() not in seen
        plain[key] = tensor if whole else tensor.clone()
        seen.add(plain[key].data_ptr())
    return plain


def map_tensor(path: Path, key: str) -> npt.NDArray[Any]:
    """A tensor of a safetensors file as a copy-on-write memory map.

    The library's own reader gives slices, not arrays that numpy and torch can take as they are, hence this look at the header: 8 bytes with its
    length, then JSON with each tensor's dtype, shape and place behind the header.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        size = os.fstat(file.fileno()).st_size
        header = parse_object(file.read(length), path) if length <= min(LONGEST_HEADER, size - 8) else {}
        entry = header.get(key)
        if entry is None or key == "__metadata__":
            names = ", ".join(name for name in header if name != "__metadata__")
            raise RunError(f"{path} holds no tensor {key!r}; it has {names or 'none'}.")
        dtype, shape, start = placed(entry, size - 8 - length, path)
        if math.prod(shape) == 0:
            return np.empty(shape, dtype=dtype)
        return np.memmap(file, dtype=dtype, mode="c", offset=8 + length + start, shape=shape)


def placed(entry: Any, size: int, path: Path) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """dtype, shape and first byte of a tensor from its header entry, which must lie within ``size`` bytes.

    Raises:
        RunDamagedError: it does not, or makes no sense.
    """
    try:
        dtype, shape = np.dtype(DTYPES[entry["dtype"]]), tuple(int(length) for length in entry["shape"])
        start, end = (int(offset) for offset in entry["data_offsets"])
        sound = 0 <= start <= end <= size and all(length >= 0 for length in shape) and end - start == math.prod(shape) * dtype.itemsize
    except (KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise RunDamagedError(f"{path} has a header that makes no sense; {RESTORE}.")
    return dtype, shape, start
