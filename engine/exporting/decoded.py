"""What a decoder predicts for all entities of a run.

``one-to-one`` is made for exports: a stable matching over the candidates that a run has stored, so that it costs no search. Pairs that are certain
(:mod:`engine.exporting.settled`) are taken out first, so that whoever would have had one of their entities gets the next best.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.analysis.run_tables import graph_of
from engine.data.knowledge_graph import SIDES, Side
from engine.decoding import DECODERS, GRAPH_DECODERS, NONE, Candidates, Decoding, GraphEvidence, find_candidates, get_decoder
from engine.decoding.base import best_pairs, decided
from engine.decoding.kernels import take_greedily
from engine.decoding.one_to_one import scrambled
from engine.errors import ConfigError
from engine.explore.alignment import best_matches, stored_candidates
from engine.exporting.settled import Settled, all_hubness
from engine.runs.similarity import RunLike
from engine.runs.view import RunView
from engine.util.arrays import IntArray

STORED = "csls"
"""The decoder whose alignment every run has stored."""
ONE_TO_ONE = "one-to-one"
DECODER_NAMES: tuple[str, ...] = (ONE_TO_ONE, STORED, *sorted({*DECODERS, *GRAPH_DECODERS} - {STORED}))
DECODER_WORDS: Mapping[str, str] = {
    ONE_TO_ONE: "one to one, nearest first",
    STORED: "nearest by CSLS",
    "assignment": "one to one, best in all",
    "mutual": "each other's nearest",
    "propagation": "with the neighbours' matches",
    "sinkhorn": "balanced by Sinkhorn",
    "stable": "one to one, stable matching over all candidates",
}
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
            f"{ONE_TO_ONE} puts known links into an export before it matches the rest, so test links cannot measure it; "
            "evaluate --decoder stable, which makes the same kind of matching of scores alone, or see the precision that export prints."
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
    telling = links.loc[links["role"] != "unsure", ["source", "target"]].drop_duplicates()
    return ONE_TO_ONE if telling["source"].is_unique and telling["target"].is_unique else STORED


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
        raise ConfigError(f"unknown decoder '{decoder[:40]}'; known are {', '.join(DECODER_NAMES)}.")
    if decoder == STORED:
        return Predictions(best_matches(view), stored_candidates(view))
    if decoder == ONE_TO_ONE:
        return OneToOne(view).predictions(settled)
    terms = all_hubness(view)
    candidates = find_candidates(view.similarity, terms.k, terms=terms)
    decoding = get_decoder(decoder, graph_evidence(view.run) if decoder in GRAPH_DECODERS else None).decode(candidates)
    return Predictions({side: _predictions(decoding, side) for side in SIDES}, candidates)


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
    wanted_codes = source * candidates.shape[1] + target
    places = np.minimum(np.searchsorted(candidates.codes, wanted_codes), len(candidates) - 1)
    itself = (candidates.codes[places] == wanted_codes) & (np.abs(candidates.csls[places].astype(np.float64) - csls) <= candidates.tolerance)
    scores = candidates.csls.astype(np.float64)
    for own, wanted in ((candidates.sources, source), (candidates.targets, target)):
        order = np.lexsort([scores, own])
        reach = 2.0 + 2.0 * max(float(np.abs(scores).max(initial=0.0)), float(np.abs(csls).max(initial=0.0)))
        keys = own[order] * reach + scores[order]
        middle = wanted * reach + csls.astype(np.float64)
        low, high = (np.searchsorted(keys, middle + end, side) for end, side in _tolerated(candidates.tolerance))
        found += high - low - itself
    return found


def _tolerated(tolerance: float) -> tuple[tuple[float, Literal["left"]], tuple[float, Literal["right"]]]:
    return (-tolerance, "left"), (tolerance, "right")


def graph_evidence(run: RunLike) -> GraphEvidence:
    """A run's graphs and seed links, for decoders that look at them."""
    tables = {name: run.table(name) for name in ("entities", "relations", "triples", "links")}
    seeds = tables["links"].loc[tables["links"]["role"] == "train", ["source", "target"]].to_numpy(dtype="int64")
    return GraphEvidence.of(graph_of(tables, "source"), graph_of(tables, "target"), seeds)


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
