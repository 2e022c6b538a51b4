"""Choosing what to export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.alignment_table import Alignment, PairFilter
from engine.datasets.knowledge_graph import IntArray, Side
from engine.entities import BoolArray
from engine.errors import ConfigError, ExportError
from engine.exporting.decoded import STORED, decoded_alignments
from engine.exporting.reviewed import Decided, ReviewedPair, with_last_word
from engine.exporting.table import SEED, ExportTable, Origin
from engine.matching import RunView

Part = Literal["all", "reviewed"]


@dataclass(frozen=True)
class Selection:
    """What to export of a run.

    Attributes:
        part: the alignment, or only the pairs that reviewers accepted.
        decoder: what makes an alignment of the scores.
        side: whose matches are taken; some decoders give an entity a match that has another one itself.
        least_probability: that a pair must have. Seed links and accepted pairs need none: the one have no probability, the other need no guess.
        seeds: whether to keep seed links.
        wanted: further filters, as on the page of pairs.
    """

    part: Part = "all"
    decoder: str = STORED
    side: Side = "source"
    least_probability: float | None = None
    seeds: bool = True
    wanted: PairFilter = field(default_factory=PairFilter)


def select_pairs(
    view: RunView, selection: Selection, reviewed: Sequence[ReviewedPair] = (), found: Mapping[Side, Alignment] | None = None
) -> ExportTable:
    """The pairs to export. In all of them reviewers have the last word: accepted pairs are in, rejected ones and rivals of accepted ones are not.

    Args:
        reviewed: all decisions on the run's data.
        found: what :func:`engine.exporting.decoded.decoded_alignments` gives for the selection's decoder, where that is at hand.

    Raises:
        ConfigError: no such decoder, or a probability that is none.
        ExportError: a least probability is wanted of a run that has no probabilities.
        RunError: a table or tensor of the run cannot be read.
    """
    least = selection.least_probability
    if least is not None and not 0 <= least <= 1:
        raise ConfigError(f"the least probability must lie between 0 and 1; got {least:g}.")
    decided = Decided.of(view, reviewed)
    both = with_last_word(view, found or decoded_alignments(view, selection.decoder), decided)
    alignment = both[selection.side]
    if least and not alignment.calibrated:
        raise ExportError(
            f"run {view.run.manifest['run_id']} has no probabilities to ask a least one of (too few validation links to fit them on); "
            "leave the least probability out, or hold out some seed links with data.valid_ratio and train again."
        )
    table = ExportTable(view, Origin.of(view, selection.decoder), alignment, _chosen(alignment, selection), decided.accepted)
    return _kept(table, selection)


def _chosen(alignment: Alignment, selection: Selection) -> IntArray:
    positions = alignment.select(selection.wanted)
    if selection.seeds:
        return positions
    return positions[(alignment.rows["verdict"] != SEED).to_numpy()[positions]]


def _kept(table: ExportTable, selection: Selection) -> ExportTable:
    """The pairs that are sure enough, or accepted."""
    least, rows = selection.least_probability, table.alignment.rows.iloc[table.positions]
    if selection.part == "all" and not least:
        return table
    keep: BoolArray = np.zeros(len(rows), dtype=np.bool_)
    if table.accepted:
        keep = np.fromiter(
            (ends in table.accepted for ends in zip(*(end.tolist() for end in table.ends), strict=True)), dtype=np.bool_, count=len(rows)
        )
    if selection.part == "all":
        keep |= (rows["verdict"] == SEED).to_numpy() | (rows["probability"].to_numpy(dtype=np.float64) >= (least or 0.0))
    return ExportTable(table.view, table.origin, table.alignment, table.positions[keep], table.accepted)
