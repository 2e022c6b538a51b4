"""Corresponding relations and attributes as SSSOM mappings between properties."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.data.links import Spelling, to_uri
from engine.exporting.formats.simple import plain_cell
from engine.exporting.formats.sssom import Prefixes, metadata
from engine.exporting.table import Origin
from engine.runs.view import RunView
from engine.util.files import new_file

SURE: Final = 0.5
"""Probability from which one relation counts as implying another."""
PROPERTY_NAMESPACES: Final[Mapping[str, str]] = {"rdfs": "http://www.w3.org/2000/01/rdf-schema#"}


def predicate_of(forward: float, backward: float, *, turned: bool) -> str:
    """What is said of two properties: the same, each other's inverse, one below the other, or merely close.

    Args:
        forward, backward: probability that the source property implies the target property, and the other way round.
        turned: whether the target property runs the other way.
    """
    if turned:
        return "owl:inverseOf" if min(forward, backward) >= SURE else "skos:relatedMatch"
    if min(forward, backward) >= SURE:
        return "owl:equivalentProperty"
    if max(forward, backward) < SURE:
        return "skos:closeMatch"
    return "rdfs:subPropertyOf" if forward >= SURE else "skos:narrowMatch"


def write_relations(view: RunView, found: pd.DataFrame, path: Path, *, force: bool = False) -> None:
    """Write correspondences (the table of that name, or some of its rows) as an SSSOM table.

    Raises:
        ExportError: the file is there already, or cannot be written.
    """
    origin = Origin.of(view, "correspondences")
    names: dict[Side, list[str]] = {side: found[side].astype(str).tolist() for side in SIDES}
    spelt = {side: Spelling.of(set(names[side]), side, to_uri) for side in SIDES}
    prefixes = Prefixes.of([(names["source"], names["target"])], spelt)
    ids = {side: [prefixes.curie(spelt[side](name)) for name in names[side]] for side in SIDES}
    strengths = found[["source_implies_target", "target_implies_source"]].to_numpy(dtype=np.float64)
    weaker, stronger = strengths.min(axis=1), strengths.max(axis=1)
    rows = pd.DataFrame(
        {
            "subject_id": ids["source"],
            "subject_label": found["source"].map(plain_cell).to_numpy(),
            "predicate_id": [
                predicate_of(forward, backward, turned=bool(turned)) for (forward, backward), turned in zip(strengths, found["turned"], strict=True)
            ],
            "object_id": ids["target"],
            "object_label": found["target"].map(plain_cell).to_numpy(),
            "mapping_justification": "semapv:InstanceBasedMatching",
            "confidence": np.where(weaker >= SURE, weaker, stronger),
        }
    )
    with new_file(path, force=force) as file:
        file.write("".join(f"#{line}\n" for line in metadata(origin, prefixes, PROPERTY_NAMESPACES, ())).encode("utf-8"))
        file.write(str(rows.to_csv(sep="\t", index=False, float_format="%.6g", lineterminator="\n")).encode("utf-8", "replace"))
