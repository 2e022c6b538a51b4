"""Choosing what to export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ConfigError, ExportError
from engine.explore.alignment import Alignment, PairFilter, Precision, described_matches
from engine.exporting.decoded import ONE_TO_ONE, OneToOne, Predictions, default_decoder, predictions, tied_candidates
from engine.exporting.reviewed import DecidedPair
from engine.exporting.settled import ROLES, Settled, with_settled
from engine.exporting.table import SEED, Conflicts, ExportTable, Origin
from engine.runs.view import RunView
from engine.util.arrays import BoolArray, IntArray

Part = Literal["all", "reviewed"]
JUDGING = ("valid", "test")
"""Roles of the links by which predictions are measured."""


@dataclass(frozen=True)
class ExportSelection:
    """What to export of a run.

    Attributes:
        part: the alignment, or only the pairs that reviewers accepted.
        decoder: what makes an alignment of the scores; None: one-to-one unless the known links are not (:func:`default_decoder`).
        side: whose matches are taken; some decoders give an entity a match that has another one itself.
        least_probability: that a pair must have. Known links and accepted pairs need none.
        seeds: whether to keep seed links.
        known_links: whether known links are in the export, in place of predictions that contradict them.
        wanted: further filters, as on the page of pairs.
    """

    part: Part = "all"
    decoder: str | None = None
    side: Side = "source"
    least_probability: float | None = None
    seeds: bool = True
    known_links: bool = True
    wanted: PairFilter = field(default_factory=PairFilter)


@dataclass(frozen=True)
class Prepared:
    """All pairs that an export may choose from.

    Attributes:
        decoder: its name.
        known_links: whether they are in it.
        settled: the pairs that are certain.
        found: the alignment with these in it, seen from either graph. Its rows have two more columns: ``settled``, and ``ties``, how many other
            candidates of the two entities score as the pair does.
        trial: the alignment as it would be without validation and test links and without reviews: what predictions are measured by.
        replaced: for each side, how many of the decoder's predictions gave way to certain pairs.
        emptied: for each side, how many entities are in no pair since their prediction gave way.
    """

    decoder: str
    known_links: bool
    settled: Settled
    found: Mapping[Side, Alignment]
    trial: Mapping[Side, Alignment]
    replaced: Mapping[Side, int]
    emptied: Mapping[Side, int]


def prepare(view: RunView, decoder: str | None = None, known_links: bool = True, reviewed: Sequence[DecidedPair] = ()) -> Prepared:
    """Everything about an export that filters do not change: the costly part.

    Raises:
        ConfigError: no such decoder.
        RunError: a table or tensor of the run cannot be read.
    """
    name = default_decoder(view) if decoder is None else decoder
    settled = Settled.of(view, reviewed, ROLES if known_links else ())
    seeds, nothing = (Settled.of(view, (), roles) for roles in ((("train",) if known_links else ()), ()))
    if name == ONE_TO_ONE:
        matching = OneToOne(view)
        plain, tried, final = (matching.predictions(one) for one in (nothing, seeds, settled))
    else:
        plain = tried = final = predictions(view, name, nothing)
    found = described_matches(view, with_settled(view, final.of, settled))
    for alignment in found.values():
        _mark(alignment, final, settled)
    judging = bool(view.run.table("links")["role"].isin(JUDGING).any())
    trial = described_matches(view, with_settled(view, tried.of, seeds)) if judging else found
    gone = {side: _given_way(plain.of[side], side, settled) for side in SIDES}
    replaced = {side: len(entities) for side, entities in gone.items()}
    emptied = {side: len(np.setdiff1d(entities, found[side].rows["entity"].to_numpy())) for side, entities in gone.items()}
    return Prepared(name, known_links, settled, found, trial, replaced, emptied)


def _mark(alignment: Alignment, made: Predictions, settled: Settled) -> None:
    """Add the columns ``settled`` and ``ties``."""
    rows, candidates = alignment.rows, made.candidates
    source, target = _ends(rows, alignment.side)
    certain = settled.holds(source, target)
    possible = candidates.kept(settled.leaves_open(candidates.sources, candidates.targets))
    ties = np.zeros(len(rows), dtype=np.int64)
    ties[~certain] = tied_candidates(possible, source[~certain], target[~certain], rows["csls"].to_numpy(dtype=np.float32)[~certain])
    rows["settled"], rows["ties"] = certain, ties


def _given_way(rows: pd.DataFrame, side: Side, settled: Settled) -> IntArray:
    """The entities whose prediction gave way, one for each prediction."""
    ends = _ends(rows, side)
    gone: IntArray = rows["entity"].to_numpy(dtype=np.int64)[~settled.leaves_open(*ends) & ~settled.holds(*ends)]
    return gone


def _ends(rows: pd.DataFrame, side: Side) -> tuple[IntArray, IntArray]:
    """(n,), (n,) source and target entities of rows that are seen from one side."""
    own, theirs = (rows[name].to_numpy(dtype=np.int64) for name in ("entity", "match"))
    return (own, theirs) if side == "source" else (theirs, own)


def pairs_to_export(view: RunView, selection: ExportSelection, reviewed: Sequence[DecidedPair] = (), prepared: Prepared | None = None) -> ExportTable:
    """The pairs to export. Reviewers have the last word: accepted pairs are in, rejected ones and rivals of accepted ones are not. Then known
    links win.

    Args:
        reviewed: all decisions on the run's data.
        prepared: what :func:`prepare` gives for the selection's decoder and known links and these reviews, where that is at hand.

    Raises:
        ConfigError: no such decoder, or a probability that is none.
        ExportError: a least probability is wanted of a run that has no probabilities.
        RunError: a table or tensor of the run cannot be read.
    """
    least = selection.least_probability
    if least is not None and not 0 <= least <= 1:
        raise ConfigError(f"the least probability must lie between 0 and 1; got {least:g}.")
    made = prepared or prepare(view, selection.decoder, selection.known_links, reviewed)
    alignment = made.found[selection.side]
    if least and not alignment.calibrated:
        raise ExportError(
            f"run {view.run.manifest['run_id']} has no probabilities to ask a least one of (too few validation links to fit them on); "
            "leave the least probability out, or hold out some seed links with data.valid_ratio and train again."
        )
    accepted = made.settled.accepted
    positions = _chosen(alignment, selection, accepted)
    origin = Origin.of(view, made.decoder, made.known_links)
    return ExportTable(view, origin, alignment, positions, accepted, _measured(made, selection), _conflicts(made, alignment, positions))


def _chosen(alignment: Alignment, selection: ExportSelection, accepted: Mapping[tuple[int, int], DecidedPair]) -> IntArray:
    """Positions of the pairs that pass the filters, and are certain or probable enough, or accepted."""
    positions = alignment.select(selection.wanted)
    rows = alignment.rows.iloc[positions]
    least = selection.least_probability
    keep: BoolArray = np.ones(len(rows), dtype=np.bool_)
    if selection.part == "reviewed" or least:
        ends = zip(*(end.tolist() for end in _ends(rows, alignment.side)), strict=True)
        keep = np.fromiter((one in accepted for one in ends), dtype=np.bool_, count=len(rows))
    if selection.part == "all" and least:
        keep |= (rows["verdict"] == SEED).to_numpy() | (rows["probability"].to_numpy(dtype=np.float64) >= least)
        if "settled" in rows:  # not among predictions that are only measured
            keep |= rows["settled"].to_numpy(dtype=np.bool_)
    if not selection.seeds:
        keep &= (rows["verdict"] != SEED).to_numpy()
    return positions[keep]


def _measured(made: Prepared, selection: ExportSelection) -> Precision | None:
    """How many predictions are right, of those that pass the same filters; None where the filters ask for right or wrong ones."""
    if selection.wanted.known or selection.part == "reviewed":
        return None
    trial = made.trial[selection.side]
    return trial.precision(_chosen(trial, selection, {}))


def _conflicts(made: Prepared, alignment: Alignment, positions: IntArray) -> Conflicts:
    rows = alignment.rows.iloc[positions]
    against = rows["verdict"] == "contradicts a known link"
    source, target = _ends(rows, alignment.side)
    links = made.settled.all_links
    seeds = links.loc[links["role"] == "train"]
    touched = np.isin(source, seeds["source"]) | np.isin(target, seeds["target"])
    shared = {side: int((np.unique(end, return_counts=True)[1] > 1).sum()) for side, end in zip(SIDES, (source, target), strict=True)}
    return Conflicts(
        contradicting=int(against.sum()),
        contradicting_seeds=int(np.count_nonzero(against.to_numpy() & touched)),
        shared=shared,
        tied=int((rows["ties"] > 0).sum()),
        replaced=made.replaced[alignment.side],
        emptied=made.emptied[alignment.side],
        overruled=made.settled.overruled,
        without=len(made.settled.taken()[SIDES.index(alignment.side)]) - alignment.rows["entity"].nunique(),
    )
