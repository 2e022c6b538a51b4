"""The similarity that a run's numbers come from: structure, or structure and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy.typing as npt
import pandas as pd
import torch

from engine.errors import RunDamagedError
from engine.names import name_similarity
from engine.names.storage import DENSE_KEYS, ENTITIES, PARTS
from engine.search import NameSimilarity, StructuralSimilarity, StructureAndNames


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


def has_table(run: HoldsTensors, name: str) -> bool:
    """Whether the run stores such a table; runs of older versions lack some."""
    return f"{name}.parquet" in run.manifest.get("files", {})


def run_similarity(run: HoldsTensors) -> StructuralSimilarity | StructureAndNames:
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
        return StructureAndNames(structure, names, float(literal["weight"]))
    except (KeyError, TypeError, ValueError) as error:
        raise RunDamagedError(f"the run's names do not fit its structure ({error}); train the literal variant again with --fresh.") from None


def stored_names(run: HoldsTensors, encoder: str, *, several: bool = False) -> NameSimilarity:
    keys = ["features", *(f"{side}.{part}" for side in DENSE_KEYS for part in PARTS)] if encoder == "ngrams" else list(DENSE_KEYS)
    keys += ENTITIES if several else ()
    return name_similarity({key: torch.from_numpy(run.tensor("names", key)) for key in keys})
