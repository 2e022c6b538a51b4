"""Tensors of a run: stored, checked for values that are no numbers, and as the similarity that its numbers come from."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import safetensors.torch
import torch
from torch import Tensor

from engine.errors import RunDamagedError, RunError
from engine.names import name_similarity
from engine.names.weight import DENSE_KEYS, ENTITIES, SPARSE_KEYS
from engine.runs.manifest import RESTORE, parse_object
from engine.search import LiteralSimilarity, NameSimilarity, SparseSimilarity, StructuralSimilarity
from engine.util.files import fsync, sha256_of

# Tensors in safetensors files.

DTYPES: Mapping[str, str] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"
}  # fmt: skip
LONGEST_HEADER = 16 * 2**20


@dataclass(frozen=True)
class InTurn:
    """A tensor that is written a number of rows at a time, and never held whole.

    Attributes:
        shape: of the tensor.
        blocks: its rows in order, at most a given number at a time.
        dtype: of its values.
    """

    shape: tuple[int, ...]
    blocks: Callable[[int], Iterable[Tensor]]
    dtype: torch.dtype = torch.float32

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape[1:])

    def whole(self) -> Tensor:
        """All of it after all."""
        return torch.cat([*self.blocks(max(self.shape[0], 1))]).reshape(self.shape)


IN_TURN: Mapping[torch.dtype, str] = {torch.float32: "F32", torch.float16: "F16"}
"""Types of tensors that can be written so."""
Stored = Tensor | npt.NDArray[Any] | InTurn
BLOCK_BYTES = 64 * 2**20
"""Of the rows that are held at a time."""


def save_tensors(path: Path, tensors: Mapping[str, Stored], metadata: dict[str, str] | None = None) -> None:
    """Write a file with the permissions that new files get (the library's own are for the owner alone)."""
    path.touch()
    mode = path.stat().st_mode
    whole = {key: value for key, value in tensors.items() if not isinstance(value, InTurn)}
    if len(whole) == len(tensors):
        safetensors.torch.save_file(plain_tensors(whole), path, metadata)
    else:
        save_in_turn(path, {key: value if isinstance(value, InTurn) else as_blocks(value) for key, value in tensors.items()})
    path.chmod(mode)


def save_sealed(temporary: Path, tensors: Mapping[str, Stored], path_of: Callable[[str], Path], metadata: dict[str, str] | None = None) -> str:
    """Write a file beside its place, and put it there under a name that carries its checksum, which both publishes and seals it.

    Args:
        temporary: in the folder of the file.
        path_of: gives the file's path by its checksum.

    Returns:
        The checksum: sha-256, hex.
    """
    save_tensors(temporary, tensors, metadata)
    fsync(temporary)
    digest = sha256_of(temporary)
    os.replace(temporary, path_of(digest))
    fsync(temporary.parent)
    return digest


def as_blocks(tensor: Tensor | npt.NDArray[Any]) -> InTurn:
    """A tensor that is held whole, in one block."""
    held = torch.as_tensor(tensor)
    return InTurn(tuple(held.shape), lambda step: [held.detach()], held.dtype)


def save_in_turn(path: Path, tensors: Mapping[str, InTurn]) -> None:
    """The very bytes that the library writes of tensors of one of these types: a header that says where each is, then their values."""
    header, end = {}, 0
    dtype, *others = {tensor.dtype for tensor in tensors.values()}
    if others or dtype not in IN_TURN:
        raise ValueError(f"{path}: tensors of {', '.join(map(str, [dtype, *others]))} cannot be written in turn")
    for key in sorted(tensors):
        start, end = end, end + dtype.itemsize * math.prod(tensors[key].shape)
        header[key] = {"dtype": IN_TURN[dtype], "shape": list(tensors[key].shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for key in header:
            for block in tensors[key].blocks(max(BLOCK_BYTES // max(tensors[key].row_bytes, 1), 1)):
                file.write(block.to(dtype).cpu().contiguous().numpy().astype(DTYPES[IN_TURN[dtype]], copy=False).data)
        if file.tell() != 8 + len(text) + end:
            raise ValueError(f"{path}: the blocks have other sizes than they should")


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
            raise RunError(f"{path} has no tensor {key!r}; its tensors are {names or 'none'}.")
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
        raise RunDamagedError(f"{path} has an invalid header; {RESTORE}.")
    return dtype, shape, start


# Stored numbers that are none: NaN or infinite values in a run whose files all have the checksums that its manifest gives.


class TensorSource(Protocol):
    """What is needed of :class:`engine.runs.Run`."""

    def tensor(self, name: str, key: str) -> npt.NDArray[Any]: ...


def damaged(run: object, what: str) -> RunDamagedError:
    """The error for such a number; ``what`` says which."""
    path = getattr(run, "path", None)
    return RunDamagedError(f"{f'{path}: ' if path else ''}{what} is not a finite number; {RESTORE}.")


def finite_tensor(run: TensorSource, name: str, key: str) -> npt.NDArray[Any]:
    """A tensor of the run.

    Raises:
        RunDamagedError: a value is not finite, or the tensor cannot be read.
    """
    values = run.tensor(name, key)
    finite = np.isfinite(values)
    if not finite.all():
        place = ", ".join(str(axis) for axis in np.argwhere(~finite)[0].tolist())
        raise damaged(run, f"the value at [{place}] of the tensor '{key}' in {name}.safetensors")
    return values


def check_numbers(run: object, table: pd.DataFrame, columns: Iterable[str], name: str) -> None:
    """
    Raises:
        RunDamagedError: a value of these columns is not finite.
    """
    for column in columns:
        finite = np.isfinite(table[column].to_numpy(dtype=np.float64))
        if not finite.all():
            raise damaged(run, f"the value in row {int(np.flatnonzero(~finite)[0])}, column '{column}' of {name}.parquet")


# The similarity that a run's numbers come from: structure, or structure and names.


class HoldsTensors(Protocol):
    """What is needed of :class:`engine.runs.Run`."""

    @property
    def manifest(self) -> Mapping[str, Any]: ...
    def tensor(self, name: str, key: str) -> npt.NDArray[Any]: ...


class RunLike(HoldsTensors, Protocol):
    """What looking into a run needs of :class:`engine.runs.Run`."""

    @property
    def metrics(self) -> Mapping[str, Any] | None: ...
    def table(self, name: str, columns: Sequence[str] | None = None, where: Mapping[str, object] | None = None) -> pd.DataFrame: ...
    def json(self, name: str) -> Mapping[str, Any]: ...


def has_table(run: HoldsTensors, name: str) -> bool:
    """Whether the run stores such a table; runs of older versions lack some."""
    return f"{name}.parquet" in run.manifest.get("files", {})


def run_similarity(run: HoldsTensors) -> StructuralSimilarity | LiteralSimilarity:
    """The similarity of all source and all target entities; embeddings stay memory-mapped.

    Raises:
        RunDamagedError, RunError: the run's tensors cannot be read.
    """
    structure = StructuralSimilarity(*(torch.from_numpy(run.tensor("embeddings", side)) for side in DENSE_KEYS))
    literal = run.manifest.get("literal")
    if not literal:
        return structure
    try:
        names = stored_names(run, str(literal["encoder"]), several=bool(literal.get("several_names")))
        weight = float(literal.get("value_weight", 0.0))
        return LiteralSimilarity(structure, names, float(literal["weight"]), stored_values(run) if weight else None, weight)
    except (KeyError, TypeError, ValueError) as error:
        raise RunDamagedError(f"the run's names do not match its structure ({error}); train the literal variant again with --fresh.") from None


def stored_values(run: HoldsTensors) -> SparseSimilarity:
    """The similarity of the attribute values of a run that compares them.

    Raises:
        RunDamagedError, RunError: as :func:`run_similarity`.
    """
    values = name_similarity({key: torch.from_numpy(run.tensor("values", key)) for key in SPARSE_KEYS})
    if not isinstance(values, SparseSimilarity):
        raise ValueError("values are sparse rows")
    return values


def stored_names(run: HoldsTensors, encoder: str, *, several: bool = False) -> NameSimilarity:
    keys = list(SPARSE_KEYS if encoder == "ngrams" else DENSE_KEYS)
    keys += ENTITIES if several else ()
    return name_similarity({key: torch.from_numpy(run.tensor("names", key)) for key in keys})
