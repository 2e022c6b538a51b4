"""A graphics card played by the CPU: tensors that say they are elsewhere, and refuse what tensors on a card refuse.

They call themselves tensors of torch's device ``meta`` but have values, so what follows a training can be tried out as well. What fails on a card
fails here: numpy arrays of what lies there, and operations on tensors of both places.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

CARD = torch.device("meta")
HERE = torch.device("cpu")
BOTH_PLACES = {"copy_", "_to_copy", "index", "index_put", "index_put_"}
"""Operations that take tensors of the host beside those of a card; an index then has to be sent, which is slow but right."""


class OnCard(Tensor):
    """A tensor whose values the CPU has in ``inner``."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> OnCard:
        place = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype, "device": CARD}
        made: OnCard = Tensor._make_wrapper_subclass(cls, inner.shape, **place)  # type: ignore[attr-defined]
        made.inner = inner
        return made

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return f"OnCard{tuple(self.shape)}"

    def tolist(self) -> Any:
        return self.inner.tolist()

    def numpy(self, **options: Any) -> Any:  # type: ignore[override]
        raise TypeError("what is on a card is no numpy array; copy it with cpu() first")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return played(func, args, kwargs or {})


class _Card(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return played(func, args, kwargs or {})


def played(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """An operation, computed on the CPU; its results lie where those of the real one would."""
    name, known, here = func.overloadpacket.__name__, dict[int, OnCard](), list[Tensor]()

    def inner(value: Any) -> Any:
        if isinstance(value, OnCard):
            known[id(value.inner)] = value
            return value.inner
        if isinstance(value, Tensor) and value.dim():
            here.append(value)
        return value

    arguments, options = tree_map(inner, args), tree_map(inner, kwargs)
    if known and here and name not in BOTH_PLACES:
        raise RuntimeError(f"{name}: expected all tensors on one device, found one on the card and one here")
    there = isinstance(args[0], OnCard) if name == "copy_" else bool(known)
    if kwargs.get("device") is not None:
        there, options["device"] = torch.device(kwargs["device"]) == CARD, HERE
    found = func(*arguments, **options)
    if name == "_to_copy" and found is arguments[0]:
        found = found.clone()

    def placed(one: Any) -> Any:
        if not isinstance(one, Tensor):
            return one
        return known[id(one)] if id(one) in known else OnCard(one) if there else one

    return tree_map(placed, found)


@contextmanager
def card_in(patched: pytest.MonkeyPatch) -> Iterator[None]:
    """Within this, trainings choose the card."""
    with patched.context() as patches, _Card():  # type: ignore[no-untyped-call]
        for module in ("engine.training.trainer", "engine.pipeline.training"):
            patches.setattr(f"{module}.choose_device", lambda wanted: CARD)
        for module in ("engine.pipeline.structure", "engine.pipeline.training"):
            patches.setattr(f"{module}.device_name", lambda device: "a card that the CPU plays")
        yield
