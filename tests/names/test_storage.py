"""Names' vectors on their way through a run folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import RunDamagedError
from engine.names import get_name_encoder, name_similarity, name_tensors
from engine.search import NameSimilarity, SparseSimilarity, StructuralSimilarity

NAMES = ("Rome", "", "Saint-Denis", "北京"), ("rome", "paris", "saint denis")


def both() -> list[NameSimilarity]:
    return [get_name_encoder("ngrams").encode(*NAMES).similarity, StructuralSimilarity(torch.eye(4), torch.eye(4)[:3])]


@pytest.mark.parametrize("names", both(), ids=["sparse", "dense"])
def test_the_same_similarity_comes_back(tmp_path: Path, names: NameSimilarity) -> None:
    save_file(name_tensors(names), tmp_path / "names.safetensors")
    back = name_similarity(load_file(tmp_path / "names.safetensors"))
    assert type(back) is type(names)
    left, right = torch.arange(4).repeat_interleave(3), torch.arange(3).repeat(4)
    assert torch.equal(back.pairs(left, right), names.pairs(left, right))
    assert torch.equal(back.named()[0], names.named()[0])


@pytest.mark.parametrize("damage", ["missing", "no width", "columns", "starts"])
def test_damaged_tensors_are_reported(damage: str) -> None:
    names = both()[0]
    assert isinstance(names, SparseSimilarity)
    tensors = name_tensors(names)
    if damage == "missing":
        del tensors["target.values"]
    elif damage == "no width":
        tensors["features"] = tensors["features"][:0]
    elif damage == "columns":
        tensors["source.features"] = tensors["source.features"] + 10_000
    else:
        tensors["source.starts"] = tensors["source.starts"].flip(0)
    with pytest.raises(RunDamagedError, match="names are damaged"):
        name_similarity(tensors)
