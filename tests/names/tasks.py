"""Small alignment tasks with names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import AlignmentTask, KnowledgeGraph, empty_attributes, empty_links
from engine.util.arrays import IntArray
from tests.data.writers import put, tabbed

CITIES = ("Žurovići", "北京市", "Saint-Joseph-de-Coleraine", "Москва", "São Paulo", "Abdullah Gül")
TRANSLATED = ("zurovici", "beijing city", "st. joseph of coleraine", "moscow", "sao paulo", "abdullah gul")


def graph(name: str, entities: Sequence[str], labels: Sequence[str] | None = None, attributes: pd.DataFrame | None = None) -> KnowledgeGraph:
    """A ring of entities."""
    size = len(entities)
    triples = np.array([(i, 0, (i + 1) % size) for i in range(size)], dtype=np.int64)
    table = empty_attributes() if attributes is None else attributes
    return KnowledgeGraph(name, tuple(entities), tuple(labels if labels is not None else entities), ("near",), triples, table)


def attribute_rows(rows: Sequence[tuple[int, str, str]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "entity": pd.Series([row[0] for row in rows], dtype="int64"),
            "attribute": pd.Series([row[1] for row in rows], dtype="str"),
            "value": pd.Series([row[2] for row in rows], dtype="str"),
        }
    )


def task(
    source: KnowledgeGraph, target: KnowledgeGraph, *, train: IntArray | None = None, valid: IntArray | None = None, test: IntArray | None = None
) -> AlignmentTask:
    """Without links given, entity i belongs to entity i and all links are for testing."""
    everything = np.stack([np.arange(min(source.num_entities, target.num_entities))] * 2, axis=1)
    none = empty_links()
    parts = [none if links is None else links for links in (train, valid, everything if test is None else test)]
    return AlignmentTask("cities", "made", source, target, *parts, none, "given", "0" * 64)


def cities(labels: Sequence[str] = CITIES, translated: Sequence[str] = TRANSLATED) -> AlignmentTask:
    left, right = ([f"http://{host}.org/resource/{name.replace(' ', '_')}" for name in CITIES] for host in ("left", "right"))
    return task(graph("left", left, labels), graph("right", right, translated))


def id_folder(folder: Path, first: Sequence[tuple[int, str]], second: Sequence[tuple[int, str]]) -> Path:
    """A DBP15K folder: a ring of entities a side, all linked in order."""
    for number, entities in (("1", first), ("2", second)):
        ids = [key for key, _ in entities]
        put(folder / f"ent_ids_{number}", tabbed(entities))
        put(folder / f"triples_{number}", tabbed([(a, 7, b) for a, b in zip(ids, ids[1:] + ids[:1], strict=True)]))
    put(folder / "ref_ent_ids", tabbed([(a, b) for (a, _), (b, _) in zip(first, second, strict=True)]))
    return folder
