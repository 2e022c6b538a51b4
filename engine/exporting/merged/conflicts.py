"""Values of folded entities that differ, although both graphs say the same kind of thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.data.labels import literal_of
from engine.explore.side_by_side import exact_keys, value_likeness
from engine.exporting.merged.fold import Fold
from engine.names.synonyms import kind_of
from engine.names.values import value_keys

CONFLICT_COLUMNS: Final = (
    *("entity", "source", "target", "source_attribute", "target_attribute"),
    *("source_value", "target_value", "difference", "proposal", "reason"),
)
FUNCTIONAL: Final = 0.95
"""Share of the entities with an attribute that have one value of it, from which on the attribute is taken to have one value."""
ROUGHER: Final = ("year", "number")
"""Kinds of a value that may be the year of a date."""


def value_conflicts(fold: Fold) -> pd.DataFrame:
    """Values of folded entities that have nothing in common, by attribute: ``CONFLICT_COLUMNS``, texts as the data have them.

    Names are left out: that they differ is usual. ``proposal`` is empty unless both graphs give nearly every entity one value of the attribute:
    then it is the more precise one, else that of the graph whose identifiers are kept.
    """
    values = {side: folded_values(fold, side) for side in SIDES}
    single = {side: functional_attributes(fold, side) for side in SIDES}
    counterparts = shared_attributes(fold)
    rows = []
    for pair in sorted(values["source"].keys() & values["target"].keys()):
        own, theirs = values["source"][pair], values["target"][pair]
        for left, texts in own.items():
            right = counterparts.get(left)
            if right is None or right not in theirs or exact_keys(texts) & exact_keys(theirs[right]) or texts == theirs[right]:
                continue
            if any(value_keys(text) for text in texts) and any(value_keys(text) for text in theirs[right]):
                rows.append(conflict_row(fold, pair, (left, right), (texts, theirs[right]), left in single["source"] and right in single["target"]))
    return pd.DataFrame(rows, columns=list(CONFLICT_COLUMNS)).astype("str")


def folded_values(fold: Fold, side: Side) -> dict[int, dict[str, list[str]]]:
    """By number of the pair: attribute -> values, names left out."""
    found: dict[int, dict[str, list[str]]] = {}
    pair_of = fold.pair_of[side]
    table = fold.view.run.table("attributes", columns=["entity", "attribute", "value"], where={"graph": side})
    for entity, attribute, value in zip(table["entity"].tolist(), table["attribute"].tolist(), table["value"].tolist(), strict=True):
        if (pair := int(pair_of[entity])) >= 0 and kind_of(attribute) is None:
            found.setdefault(pair, {}).setdefault(attribute, []).append(value)
    return found


def functional_attributes(fold: Fold, side: Side) -> frozenset[str]:
    """Attributes of which nearly every entity that has one has one value."""
    table = fold.view.run.table("attributes", columns=["entity", "attribute"], where={"graph": side})
    counts = table.groupby(["attribute", "entity"], observed=True).size()
    share = (counts == 1).groupby(level="attribute").mean()
    return frozenset(str(name) for name in share.index[share >= FUNCTIONAL])


def shared_attributes(fold: Fold) -> Mapping[str, str]:
    """Attributes of the two graphs that have one name in the merged graph."""
    back = {name: original for original, name in fold.attributes["target"].names.items()}
    return {original: back[name] for original, name in fold.attributes["source"].names.items() if name in back}


def conflict_row(fold: Fold, pair: int, names: tuple[str, str], texts: tuple[Sequence[str], Sequence[str]], functional: bool) -> dict[str, str]:
    source, target = int(fold.source[pair]), int(fold.target[pair])
    graphs = fold.view.graphs
    proposal, reason = proposed(texts[0][0], texts[1][0], fold.options.canonical == "target") if functional else ("", "")
    return {
        "entity": fold.entities["source"][source],
        "source": graphs["source"].uris[source],
        "target": graphs["target"].uris[target],
        "source_attribute": names[0],
        "target_attribute": names[1],
        "source_value": " | ".join(texts[0]),
        "target_value": " | ".join(texts[1]),
        "difference": value_likeness(texts[0][0], texts[1][0]).note,
        "proposal": proposal,
        "reason": reason,
    }


def proposed(source: str, target: str, target_first: bool) -> tuple[str, str]:
    """The value to keep of an attribute that has one value, and why."""
    kinds = [{key.kind: key.text for key in value_keys(text)} for text in (source, target)]
    for own, others, text in ((kinds[0], kinds[1], source), (kinds[1], kinds[0], target)):
        if "date" in own and "date" not in others and own["year"] in {others.get(kind) for kind in ROUGHER}:
            return literal_of(text).text, "more precise: a date, where the other graph has its year"
    side: Side = "target" if target_first else "source"
    return literal_of(target if target_first else source).text, f"one value per entity; the {side} graph comes first"
