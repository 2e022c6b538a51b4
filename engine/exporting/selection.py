"""Which pairs to export: what a decoder predicts, what is settled, and what filters leave."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.analysis.run_tables import APART, graph_of, seed_links
from engine.data.knowledge_graph import SIDES, Side
from engine.decoding import DECODER_TITLES, DECODERS, GRAPH_DECODERS, NONE, Candidates, Decoding, GraphEvidence, find_candidates, get_decoder
from engine.decoding.base import best_pairs, decided
from engine.decoding.kernels import take_greedily
from engine.decoding.one_to_one import scrambled
from engine.errors import ConfigError, ExportError
from engine.explore.alignment import Alignment, PairFilter, Precision, best_matches, described_matches, stored_candidates
from engine.explore.hierarchy import Contradiction, Hierarchy, contradictions, hierarchies, repaired_pairs
from engine.exporting.reviewed import ROLES, DecidedPair, Settled, all_hubness, with_settled
from engine.exporting.table import Conflicts, ExportTable, Origin
from engine.runs import RunStore
from engine.runs.tensors import RunLike, has_table
from engine.runs.verdicts import CONTRADICTION, SEED
from engine.runs.view import RunView
from engine.util.arrays import BoolArray, IntArray

# What a decoder predicts for all entities of a run.
#
# ``one-to-one`` is made for exports: a stable matching over the candidates that a run has stored, so that it costs no search. Pairs that are certain
# (:mod:`engine.exporting.reviewed`) are taken out first, so that whoever would have had one of their entities gets the next best.

STORED = "csls"
"""The decoder whose alignment every run has stored."""
ONE_TO_ONE = "one-to-one"
DECODER_NAMES: tuple[str, ...] = (ONE_TO_ONE, STORED, *sorted({*DECODERS, *GRAPH_DECODERS} - {STORED}))
SEARCHING: tuple[str, ...] = tuple(name for name in DECODER_NAMES if name not in (ONE_TO_ONE, STORED))
"""Those that search all entities."""
DECODER_WORDS: Mapping[str, str] = {ONE_TO_ONE: "one-to-one, highest score first", **DECODER_TITLES}
"""What each of them does, for the command line and the app."""


def decoder_help(names: Sequence[str]) -> str:
    """'csls: nearest by CSLS; mutual: each other's nearest'."""
    return "; ".join(f"{name}: {DECODER_WORDS.get(name, name)}" for name in names)


def check_measurable(decoder: str) -> None:
    """
    Raises:
        ConfigError: test links cannot measure what this decoder does.
    """
    if decoder == ONE_TO_ONE:
        raise ConfigError(
            f"{ONE_TO_ONE} adds known links to the export before it matches the rest, so test links cannot measure it; "
            "use evaluate --decoder stable, which matches in the same way by scores only, or the precision that export prints."
        )


@dataclass(frozen=True)
class Predictions:
    """What a decoder predicts, and what it chose from.

    Attributes:
        of: for each side ``entity``, ``match``, ``csls``, ``cosine`` (with names: their weighted similarity added) and ``margin``, by entity.
            Entities that the decoder leaves without a counterpart have no row.
        candidates: that it chose from.
    """

    of: Mapping[Side, pd.DataFrame]
    candidates: Candidates


def default_decoder(view: RunView) -> str:
    """One-to-one, unless the known links themselves give an entity several counterparts."""
    links = view.run.table("links")
    decisive = links.loc[links["role"] != "unsure", ["source", "target"]].drop_duplicates()
    return ONE_TO_ONE if decisive["source"].is_unique and decisive["target"].is_unique else STORED


def predictions(view: RunView, decoder: str, settled: Settled) -> Predictions:
    """What a decoder predicts for the entities of both graphs.

    ``csls`` and ``one-to-one`` come from the run's stored matches. Any other needs candidate lists: memory for some hundred pairs an entity, and
    the time of a search.

    Args:
        settled: the pairs that are certain; only ``one-to-one`` chooses around them.

    Raises:
        ConfigError: no decoder has this name.
        RunError: a table or tensor of the run cannot be read.
    """
    if decoder not in DECODER_NAMES:
        raise ConfigError(f"unknown decoder '{decoder[:40]}'; choose one of {', '.join(DECODER_NAMES)}.")
    if decoder == STORED:
        return Predictions(best_matches(view), stored_candidates(view))
    return OneToOne(view).predictions(settled) if decoder == ONE_TO_ONE else searched(view, decoder)


def searched(view: RunView, decoder: str) -> Predictions:
    """Predictions of a decoder that searches all entities; of the candidates only those that can tie with one of them, which are few.

    Raises:
        RunError: a table or tensor of the run cannot be read.
    """
    return _decoded(view, decoder, _search(view))


def search_run(models: Path, run: str, seal: str, decoder: str) -> Predictions:
    """:func:`searched` in a run of a models folder, for another process; several decoders of one run take one search.

    Raises:
        RunError: it is not there any more, has another seal, or cannot be read.
    """
    view, candidates = _search_run(models, run, seal)
    return _decoded(view, decoder, candidates)


@lru_cache(maxsize=1)
def _search_run(models: Path, run: str, seal: str) -> tuple[RunView, Candidates]:
    view = RunView(RunStore(models).find(run, seal))
    return view, _search(view)


def _search(view: RunView) -> Candidates:
    terms = all_hubness(view)
    return find_candidates(view.similarity, terms.k, terms=terms)


def _decoded(view: RunView, decoder: str, candidates: Candidates) -> Predictions:
    evidence = graph_evidence(view.run) if decoder in GRAPH_DECODERS else None
    decoding = get_decoder(decoder, evidence, seed_links(view.run)).decode(candidates)
    found = {side: _predictions(decoding, side) for side in SIDES}
    return Predictions(found, candidates.kept(_can_tie(candidates, found)))


def _can_tie(candidates: Candidates, found: Mapping[Side, pd.DataFrame]) -> BoolArray:
    """(P,) which candidates score as a prediction of one of their two entities does."""
    keep, theirs = np.zeros(len(candidates), dtype=np.bool_), candidates.csls.astype(np.float64)
    for side, rows in found.items():
        scores = rows["csls"].to_numpy(dtype=np.float64)
        for own, predicted in zip((candidates.sources, candidates.targets), _ends(rows, side), strict=True):
            keep |= _as_high(predicted, scores, own, theirs, candidates.tolerance) > 0
    return keep


class OneToOne:
    """A stable matching of the entities that are in no certain pair: the best pair of two that are still free, again and again.

    Equal scores are broken by a hash of the two identifiers: neither the order of rows nor the numbers of entities decide anything.
    """

    def __init__(self, view: RunView) -> None:
        self.candidates = stored_candidates(view)
        own, theirs = (identifier_hashes(view.graphs[side].uris) for side in SIDES)
        ties = scrambled((own[self.candidates.sources] ^ scrambled(theirs[self.candidates.targets].view(np.int64))).view(np.int64))
        steps = np.round(self.candidates.csls.astype(np.float64) / self.candidates.tolerance).astype(np.int64)
        self._order = np.lexsort([ties, -steps])

    def predictions(self, settled: Settled) -> Predictions:
        sources, targets = self.candidates.sources, self.candidates.targets
        order = self._order[settled.leaves_open(sources, targets)[self._order]]
        by_source, by_target = (np.full(count, NONE, dtype=np.int64) for count in self.candidates.shape)
        take_greedily(order, sources, targets, by_source, by_target)
        decoding = decided(ONE_TO_ONE, self.candidates, self.candidates.csls, by_source, by_target)
        return Predictions({side: _predictions(decoding, side) for side in SIDES}, self.candidates)


def identifier_hashes(identifiers: Sequence[str]) -> npt.NDArray[np.uint64]:
    """(E,) a number for each identifier that depends on nothing else."""
    digests = b"".join(hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=8).digest() for one in identifiers)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def tied_candidates(candidates: Candidates, source: IntArray, target: IntArray, csls: npt.NDArray[np.float32]) -> IntArray:
    """(n,) how many other candidates of either entity of a pair score as the pair does."""
    found = np.zeros(len(source), dtype=np.int64)
    if not len(candidates):
        return found
    places = candidates.positions(source, target)
    itself = (places != NONE) & (np.abs(candidates.csls[places].astype(np.float64) - csls) <= candidates.tolerance)
    scores, theirs = candidates.csls.astype(np.float64), csls.astype(np.float64)
    for own, wanted in ((candidates.sources, source), (candidates.targets, target)):
        found += _as_high(own, scores, wanted, theirs, candidates.tolerance) - itself
    return found


def _as_high(owners: IntArray, scores: npt.NDArray[np.float64], wanted: IntArray, at: npt.NDArray[np.float64], tolerance: float) -> IntArray:
    """(n,) how many of some scores belong to an entity and are, within the tolerance, as high as a score.

    Args:
        owners, scores: (P,) the entity of each score, and the scores.
        wanted, at: (n,) entities and scores to look for.
    """
    reach = 2.0 + 2.0 * max(float(np.abs(scores).max(initial=0.0)), float(np.abs(at).max(initial=0.0)))
    keys, middle = np.sort(owners * reach + scores), wanted * reach + at
    found: IntArray = np.searchsorted(keys, middle + tolerance, "right") - np.searchsorted(keys, middle - tolerance, "left")
    return found


def graph_evidence(run: RunLike) -> GraphEvidence:
    """A run's graphs and seed links, for decoders that look at them."""
    tables = {name: run.table(name) for name in ("entities", "relations", "triples")}
    return GraphEvidence.of(graph_of(tables, "source"), graph_of(tables, "target"), seed_links(run))


def _predictions(decoding: Decoding, side: Side) -> pd.DataFrame:
    """entity, match, csls, cosine, margin (CSLS ahead of the best other candidate, negative where that one is nearer) of each prediction."""
    candidates, lists = decoding.candidates, decoding.candidates.lists(side)
    chosen = decoding.chosen(side)
    entity = np.flatnonzero(chosen != NONE)
    chosen = chosen[entity]
    best, second = (part[entity] for part in best_pairs(lists, candidates.csls))
    rival = np.where(best == chosen, second, best)
    ahead = candidates.csls[chosen] - candidates.csls[rival]
    return pd.DataFrame(
        {
            "entity": entity.astype(np.int32),
            "match": lists.others[chosen].astype(np.int32),
            "csls": candidates.csls[chosen],
            "cosine": candidates.similarity[chosen],
            "margin": np.where(rival == NONE, np.float32(np.nan), ahead),
        }
    )


# Choosing what to export.

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
        repair: whether, of each two pairs that contradict the graphs' hierarchies, the weaker one is left out. Known links and accepted pairs stay.
    """

    part: Part = "all"
    decoder: str | None = None
    side: Side = "source"
    least_probability: float | None = None
    seeds: bool = True
    known_links: bool = True
    wanted: PairFilter = field(default_factory=PairFilter)
    repair: bool = False


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


@dataclass(frozen=True)
class Groundwork:
    """What decisions of reviewers do not change of :class:`Prepared`: most of the work, so that it can be kept while they decide.

    Attributes:
        matching: of one-to-one exports, which choose around the certain pairs; None for other decoders.
        plain: the decoder's predictions without any certain pair.
        trial: as of :class:`Prepared`; None without links to measure by.
    """

    decoder: str
    known_links: bool
    matching: OneToOne | None
    plain: Predictions
    trial: Mapping[Side, Alignment] | None


def lay_groundwork(view: RunView, decoder: str | None = None, known_links: bool = True, found: Predictions | None = None) -> Groundwork:
    """
    Args:
        found: of :func:`searched` for this decoder, where it is there already.

    Raises:
        ConfigError: no such decoder.
        RunError: a table or tensor of the run cannot be read.
    """
    name = default_decoder(view) if decoder is None else decoder
    seeds, nothing = (Settled.of(view, (), roles) for roles in ((("train",) if known_links else ()), ()))
    matching = OneToOne(view) if name == ONE_TO_ONE else None
    plain = matching.predictions(nothing) if matching is not None else found or predictions(view, name, nothing)
    if not bool(view.run.table("links")["role"].isin(JUDGING).any()):
        return Groundwork(name, known_links, matching, plain, None)
    tried = plain if matching is None else matching.predictions(seeds)
    return Groundwork(name, known_links, matching, plain, described_matches(view, with_settled(view, tried.of, seeds)))


def prepare(
    view: RunView,
    decoder: str | None = None,
    known_links: bool = True,
    reviewed: Sequence[DecidedPair] = (),
    groundwork: Groundwork | None = None,
) -> Prepared:
    """Everything about an export that filters do not change: the costly part.

    Args:
        groundwork: of the same run, decoder and choice of known links, where it is there already.

    Raises:
        ConfigError: no such decoder.
        RunError: a table or tensor of the run cannot be read.
    """
    made = lay_groundwork(view, decoder, known_links) if groundwork is None else groundwork
    settled = Settled.of(view, reviewed, ROLES if known_links else ())
    final = made.plain if made.matching is None else made.matching.predictions(settled)
    found = described_matches(view, with_settled(view, final.of, settled))
    for alignment in found.values():
        _mark(alignment, final, settled)
    gone = {side: _given_way(made.plain.of[side], side, settled) for side in SIDES}
    replaced = {side: len(entities) for side, entities in gone.items()}
    emptied = {side: len(np.setdiff1d(entities, found[side].rows["entity"].to_numpy())) for side, entities in gone.items()}
    return Prepared(made.decoder, known_links, settled, found, found if made.trial is None else made.trial, replaced, emptied)


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
        raise ConfigError(f"the minimum probability must be between 0 and 1; got {least:g}.")
    made = prepared or prepare(view, selection.decoder, selection.known_links, reviewed)
    alignment = made.found[selection.side]
    if least and not alignment.calibrated:
        raise ExportError(
            f"run {view.run.manifest['run_id']} has no calibrated probabilities; remove the minimum probability. {view.why_no_probabilities}"
        )
    accepted = made.settled.accepted
    positions = _chosen(alignment, selection, accepted)
    found, repaired = hierarchies(view), 0
    at_odds = _contradictions(found, alignment, positions)
    if selection.repair and at_odds:
        kept = repaired_pairs(at_odds, len(positions)) | _certain(alignment.rows.iloc[positions])
        repaired, positions = int(len(positions) - kept.sum()), positions[kept]
        at_odds = _contradictions(found, alignment, positions)
    origin = Origin.of(view, made.decoder, made.known_links)
    with_apart = selection.part == "all" and made.known_links and has_table(view.run, APART)
    apart = view.run.table(APART) if with_apart else pd.DataFrame()
    conflicts = _conflicts(made, alignment, positions, len(at_odds), repaired)
    return ExportTable(view, origin, alignment, positions, accepted, _measured(made, selection), conflicts, apart, least)


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


def _contradictions(found: Mapping[Side, Hierarchy], alignment: Alignment, positions: IntArray) -> list[Contradiction]:
    """Those of some pairs with the graphs' hierarchies; certain pairs are never the weaker of two, but against each other."""
    if not any(found.values()):
        return []
    rows = alignment.rows.iloc[positions]
    score = rows["csls"].to_numpy(dtype=np.float64) + np.where(_certain(rows), CERTAIN, 0.0)
    return contradictions(found, *_ends(rows, alignment.side), score)


def _certain(rows: pd.DataFrame) -> BoolArray:
    """(n,) known links and accepted pairs; predictions that are only measured have none."""
    return rows["settled"].to_numpy(dtype=np.bool_) if "settled" in rows else np.zeros(len(rows), dtype=np.bool_)


CERTAIN: Final = 1e6
"""Added to the score of a certain pair: above all scores."""


def _conflicts(made: Prepared, alignment: Alignment, positions: IntArray, contradictions: int, repaired: int) -> Conflicts:
    rows = alignment.rows.iloc[positions]
    against = rows["verdict"] == CONTRADICTION
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
        contradictions=contradictions,
        repaired=repaired,
        without=len(made.settled.taken[SIDES.index(alignment.side)]) - alignment.rows["entity"].nunique(),
    )
