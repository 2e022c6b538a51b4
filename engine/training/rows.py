"""The rows of a divided training's checkpoints: each process saves those of its own entities, and gets those of what it owns after a resume.

With as many processes as before, each reads its own file. With another number, or where files are elsewhere, a process that has a file reads it and
sends its rows to those that own the entities now.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.model.partition import Owners
from engine.util.arrays import IntArray
from engine.util.distributed import Ranks

OWN = "own"
Rows = Mapping[str, Tensor]


class RowStore(Protocol):
    """Where processes keep their rows (:class:`engine.runs.row_files.RowFiles`)."""

    def save(self, process: int, rows: Rows) -> str: ...

    def has(self, process: int, digest: str) -> bool: ...

    def load(self, process: int, digest: str) -> dict[str, Tensor] | None: ...

    def prune(self, process: int, processes: int, kept: Collection[tuple[int, str]]) -> None: ...


class RowKeeper:
    """Saves and collects a process's rows. All processes call the same methods together.

    Args:
        ranks: the processes.
        store: where this one keeps its rows.
        own: (n,) stacked indices of its entities, ascending.
        owners: (E,) the process of each entity.
    """

    def __init__(self, ranks: Ranks, store: RowStore | None, own: IntArray, owners: Owners) -> None:
        self.ranks, self.store, self.own, self.owners = ranks, store, own, owners
        self.kept: deque[list[str]] = deque(maxlen=2)

    def save(self, rows: Rows) -> list[str]:
        """Save the rows of the own entities; in process 0 the checksums of all processes' files."""
        assert self.store is not None, "a divided training that keeps checkpoints has somewhere to keep its rows"
        digest = self.store.save(self.ranks.rank, {OWN: torch.from_numpy(self.own), **{name: one.cpu() for name, one in rows.items()}})
        leads, size = self.ranks.rank == 0, self.ranks.size
        number = torch.from_numpy(np.frombuffer(bytes.fromhex(digest), dtype="<i8").reshape(1, 4).copy())
        found = self.ranks.swap(number, [1] + [0] * (size - 1), [1 if leads else 0] * size)
        return [one.astype("<i8").tobytes().hex() for one in found.numpy()]

    def settle(self, digests: list[str]) -> None:
        """The checkpoint is whole (process 0 says of which files): older ones go."""
        self.kept.append(self.ranks.first(lambda: digests))
        if self.store is not None:
            kept = {(process, digest) for one in self.kept for process, digest in enumerate(one)}
            self.store.prune(self.ranks.rank, self.ranks.size, kept)

    def collect(self, digests: list[str], names: list[str], like: Tensor) -> dict[str, Tensor] | None:
        """The rows of the own entities, of a checkpoint in several files; None where one of them is missing or damaged.

        Args:
            digests: by process of then.
            names: of tensors.
            like: (any, d) of the type of the rows.
        """
        found = {name: like.new_empty((len(self.own), like.shape[1])) for name in names}
        for process, digest in enumerate(digests):
            reader = self._reader(process, digest)
            if reader is None:
                return None
            rows = self.store.load(process, digest) if self.store is not None and self.ranks.rank == reader else None
            if self.ranks.most(int(self.ranks.rank == reader and rows is None)):
                return None
            self.deal(rows, found)
        self.kept.append(digests)
        return found

    def _reader(self, process: int, digest: str) -> int | None:
        """The process that reads a file: the one with the same number if it has it, else the first that does."""
        size, rank = self.ranks.size, self.ranks.rank
        has = self.store is not None and self.store.has(process, digest)
        best = self.ranks.most((size + 1 if rank == process else size - rank) if has else 0)
        return None if not best else process if best == size + 1 else size - best

    def deal(self, rows: Rows | None, found: dict[str, Tensor]) -> None:
        """Give rows that one process has (with their entities as ``own``) to those that own them now; the others have None."""
        size = self.ranks.size
        own = np.empty(0, dtype=np.int64) if rows is None else rows[OWN].numpy()
        owners = self.owners[own]
        order = np.argsort(owners, kind="stable")
        sends = np.bincount(owners, minlength=size).tolist()
        receives = self.ranks.swap(torch.tensor(sends).reshape(-1, 1), [1] * size, [1] * size)[:, 0].tolist()
        entities = self.ranks.swap(torch.from_numpy(own[order]), sends, receives)
        places = torch.from_numpy(np.searchsorted(self.own, entities.numpy()))
        for name, into in found.items():
            mine = into.new_empty((0, into.shape[1])) if rows is None else rows[name][torch.from_numpy(order)]
            into[places] = self.ranks.swap(mine.to(into.dtype), sends, receives)
