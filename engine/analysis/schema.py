"""What the analysis tables are called and which columns they have; ``docs/run_tables.md`` says what each of them means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.data.knowledge_graph import SIDES

RATES = ("hits@1", "hits@10", "mrr")
K_OCCURRENCES = (1, 10)

Columns = Mapping[str, str]  # name -> dtype

MEASURED: Columns = {"queries": "int64", **{f"{rate}{end}": "float64" for rate in RATES for end in ("", "_low", "_high")}}

TABLES: Mapping[str, Columns] = {
    "degree": {"graph": "str", "bucket": "str", "least_degree": "int64", "entities": "int64", **MEASURED},
    "relation_hits": {"graph": "str", "relation": "int64", "role": "str", **MEASURED},
    "relation_importance": {
        "layer": "int64",
        "channel": "str",
        "graph": "str",
        "relation": "int64",
        "direction": "str",
        "importance": "float64",
        "rank": "int64",
        "band": "str",
        "frequency": "int64",
        "functionality": "float64",
        "inverse_functionality": "float64",
        "attention": "float64",
        "relative_attention": "float64",
    },
    "relation_twins": {
        "graph": "str",
        "relation": "int64",
        "rank": "int64",
        "twin": "int64",
        "turned": "bool",
        "cosine": "float64",
        "seed_triples": "int64",
        "agreement": "float64",
    },
    "proxy_top": {"channel": "str", "graph": "str", "proxy": "int64", "rank": "int64", "entity": "int64", "similarity": "float64"},
    "pair_divergence": {
        "source": "int64",
        "target": "int64",
        "role": "str",
        "from_source": "bool",
        "from_target": "bool",
        "channel": "str",
        "divergence": "float64",
    },
    "hubness_counts": {"graph": "str", "entity": "int64", **{f"n_{k}": "int64" for k in K_OCCURRENCES}},
    "hubness_summary": {
        "graph": "str",
        "k": "int64",
        "entities": "int64",
        "mean": "float64",
        "largest": "int64",
        "skewness": "float64",
        "never": "float64",
    },
}
OPTIONAL: Mapping[str, frozenset[str]] = {"hubness_counts": frozenset({"n_10"})}
"""Columns that a table may lack."""


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
