"""The registry of analysis tables: names, columns, and how each is computed; ``docs/run_tables.md`` says what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.data.knowledge_graph import SIDES, AlignmentTask
from engine.evaluation.metrics import Evaluation
from engine.model.dual_amn import DualAMN
from engine.search.divided import DividedSimilarity
from engine.util.arrays import FloatArray
from engine.util.registry import Registry

RATES = ("hits@1", "hits@10", "mrr")
K_OCCURRENCES = (1, 10)

Columns = Mapping[str, str]  # name -> dtype

MEASURED: Columns = {"queries": "int64", **{f"{rate}{end}": "float64" for rate in RATES for end in ("", "_low", "_high")}}


@dataclass(frozen=True)
class Realised:
    """Mean attention weights of 2R directed relations, for each of L layers and C channels; NaN where a relation has no message.

    Attributes:
        attention: (L, C, 2R) mean weight of the messages along the relation.
        relative: (L, C, 2R) the same, each weight as a multiple of what its receiver would give if it gave all its messages the same.
    """

    attention: FloatArray  # (L, C, 2R)
    relative: FloatArray  # (L, C, 2R)


@dataclass(frozen=True)
class AnalysisInput:
    """What analysis tables are computed from.

    Attributes:
        task: the two graphs and their links.
        model: the trained encoder, on any device; of several processes' the part of process 0, which has all but the rows of entities.
            None of a baseline.
        evaluation: of the test links; may have no queries.
        matches: the run's table of that name: graph, entity, rank, match.
        similarities: channel -> (E1, P), (E2, P) cosines of the entities with the proxies as its rows; empty without proxy matching.
        realised: attention weights; None where the model does not weigh relations.
        excluded: attributes whose values are not compared (``values.exclude``).
    """

    task: AlignmentTask
    model: DualAMN | None
    evaluation: Evaluation
    matches: pd.DataFrame
    similarities: Mapping[str, DividedSimilarity]
    realised: Realised | None = None
    excluded: frozenset[str] = frozenset()


Compute = Callable[[AnalysisInput], pd.DataFrame]

TABLES: Registry[Columns] = Registry("table")
"""Columns of every registered table, by its name."""
OPTIONAL: dict[str, frozenset[str]] = {}
"""Columns that a table may lack."""
COMPUTED: Registry[Compute] = Registry("table")
"""What computes each table."""


def analysis_table(name: str, columns: Columns, optional: Iterable[str] = ()) -> Callable[[Compute], Compute]:
    """Decorator of the function that computes a table: registers it, so that every new run stores it.

    Args:
        name: of the table and of its file.
        columns: name -> dtype, in their order.
        optional: columns that may be missing.
    """

    def add(compute: Compute) -> Compute:
        TABLES.add(name, columns)
        if missing := frozenset(optional):
            OPTIONAL[name] = missing
        COMPUTED.add(name, compute)
        return compute

    return add


def frame(name: str, columns: Mapping[str, object] | None = None) -> pd.DataFrame:
    """A table with the columns that its schema lists, in this order and with these types; without ``columns`` it has no rows.

    Args:
        name: of the table.
        columns: name -> array, or one value for all rows.
    """
    schema = TABLES[name]
    given = dict(columns) if columns is not None else {column: [] for column in schema}
    missing, unknown = set(schema) - set(given) - OPTIONAL.get(name, frozenset()), set(given) - set(schema)
    if missing or unknown:
        raise ValueError(f"table {name} lacks {sorted(missing)} and has unknown {sorted(unknown)}")
    ordered = {column: given[column] for column in schema if column in given}
    return pd.DataFrame(ordered).astype({column: schema[column] for column in ordered})


def joined_parts(name: str, parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Parts of one table below each other."""
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else (parts or [frame(name)])[0]


def side_array(is_source: npt.NDArray[np.bool_]) -> npt.NDArray[np.str_]:
    """True, False -> "source", "target"."""
    return np.where(is_source, *SIDES)
