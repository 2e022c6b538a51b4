"""How good a finished run is: every decoder on the test links, and probabilities of its matches, calibrated on links that were held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from engine.data.knowledge_graph import SIDES, AlignmentTask, Side
from engine.decoding import DECODERS, GRAPH_DECODERS, find_candidates, get_decoder
from engine.decoding.base import NONE, Decoder, Decoding
from engine.decoding.candidates import Candidates
from engine.decoding.graph_evidence import GraphEvidence
from engine.evaluation.calibration import (
    FEATURE_COLUMNS,
    LEAST_LINKS,
    Calibration,
    Uncalibrated,
    expected_calibration_error,
    fit_calibration,
    pair_features,
    without_counterparts,
)
from engine.evaluation.decoders import DecodingEvaluation, decode_searched
from engine.evaluation.estimation import estimate_calibration, mutual_positions
from engine.evaluation.metrics import SearchedPool, Selectable
from engine.util.arrays import BoolArray, FloatArray, IntArray

# How many of the entities without a known link really have no counterpart.
#
# That no link of an entity is known does not make it dangling: published links often cover a part of what there is. (The sure matches of DBP15K
# ZH-EN's unlinked entities bear equal names 0.7 times as often as those of the linked ones, which are nearly all right.) The share is estimated
# from how sure their matches are, between two groups whose truth is known: validation entities, and validation entities whose counterparts were
# taken out of the pool. If a share of the unlinked dangles, then
#
#     mean(unlinked) = share * mean(counterpart taken out) + (1 - share) * mean(validation)
#
# (prior estimation under label shift: Saerens, Latinne and Decaestecker, Neural Computation 2002; Lipton, Wang and Smola, ICML 2018). How sure
# a match is also goes with the degree, and unlinked entities have few triples. So both known means are lines over the logarithm of the degree, read
# off at the degrees that the unlinked entities have.

LEAST_GAP = 0.05
"""Mean difference between the two known groups from which on a share can be estimated."""
LEAST_VARIANCE = 1e-9
"""Of equal degrees' logarithms only rounding is left."""


@dataclass(frozen=True)
class Confidence:
    """How sure the matches of n entities are.

    Attributes:
        degrees: (n,) triples of the entity.
        probability: (n,) of its match, as if all entities had counterparts.
    """

    degrees: IntArray
    probability: FloatArray

    def line(self, degrees: IntArray) -> FloatArray:
        """(m,) mean probability to be expected at other degrees: least squares over log(1 + degree), kept between 0 and 1."""
        x, at = np.log1p(self.degrees), np.log1p(degrees)
        variance = float(x.var())
        slope = float(((x - x.mean()) * self.probability).mean()) / variance if variance > LEAST_VARIANCE else 0.0
        expected: FloatArray = np.clip(self.probability.mean() + slope * (at - x.mean()), 0.0, 1.0)
        return expected


def estimate_dangling(
    decoder: Decoder,
    candidates: Candidates,
    links: IntArray,
    unlinked: tuple[BoolArray, BoolArray],
    evidence: GraphEvidence,
    calibration: Calibration,
    seed: int = 0,
) -> float:
    """The share of the unlinked entities that have no counterpart; 0 where there are none.

    Args:
        decoder: whose predictions are looked at.
        candidates: of the pool.
        links: (L, 2) validation links, as rows of the pool.
        unlinked: (n,) and (m,) whether no link of the entity is known.
        evidence: the graphs around the pool's entities and the seed links.
        calibration: fitted on these links with a dangling share of 0.
        seed: chooses which counterparts are taken out.
    """
    if not any(side.any() for side in unlinked):
        return 0.0
    known: tuple[BoolArray, BoolArray] = (np.zeros_like(unlinked[0]), np.zeros_like(unlinked[1]))
    for side in range(2):
        known[side][links[:, side]] = True
    decoding = decoder.decode(candidates)
    alone, lonely = without_counterparts(decoder, candidates, links, seed)
    return dangling_share_of(
        confidence(decoding, unlinked, evidence, calibration),
        confidence(decoding, known, evidence, calibration),
        confidence(alone, lonely, evidence, calibration),
    )


def confidence(decoding: Decoding, entities: tuple[BoolArray, BoolArray], evidence: GraphEvidence, calibration: Calibration) -> Confidence:
    """Of those of the entities, of either side, that have a prediction."""
    parts = []
    for at, side in enumerate(SIDES):
        chosen = decoding.chosen(side)
        asked = np.flatnonzero(entities[at] & (chosen != NONE))
        parts.append((evidence.degrees[at][asked], calibration.probabilities(pair_features(decoding, chosen[asked], evidence))))
    return Confidence(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def dangling_share_of(unlinked: Confidence, linked: Confidence, lonely: Confidence) -> float:
    """The share for which the unlinked entities lie between those with and those without a counterpart.

    1 where the two cannot be distinguished: it is safer to promise too little.
    """
    if not len(unlinked.degrees):
        return 0.0
    if not len(linked.degrees) or not len(lonely.degrees):
        return 1.0
    upper, lower = (float(group.line(unlinked.degrees).mean()) for group in (linked, lonely))
    if upper - lower < LEAST_GAP:
        return 1.0
    return float(np.clip((upper - unlinked.probability.mean()) / (upper - lower), 0.0, 1.0))


CALIBRATED = "csls"
"""The decoder whose predictions get probabilities: what the list of matches begins with."""
PROMISED_PRECISION = 0.9


@dataclass(frozen=True)
class Probabilities:
    """Calibrated probabilities of the best match of each entity.

    Attributes:
        calibration: the fit, or why there is none.
        table: graph, entity, match, probability, and the features of the pair; rows for the entities of the pool that have a prediction, none
            without a fit.
        test: what came of it on test links (see :func:`test_report`): expected calibration error, and precision and recall at
            the suggested threshold beside what was promised; None without a fit or test links, or where the fit used them.
        unlinked_dangling: estimated share of the entities without any link that have no counterpart; None without a fit.
    """

    calibration: Calibration | Uncalibrated
    table: pd.DataFrame
    test: dict[str, Any] | None
    unlinked_dangling: float | None = None

    @property
    def threshold(self) -> float | None:
        """The least probability with the best balance of precision and recall to expect; None without probabilities."""
        found = self.calibration.balanced_threshold() if isinstance(self.calibration, Calibration) else None
        return None if found is None else found.probability

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"unlinked_dangling": self.unlinked_dangling, "test": self.test}
        suggested = self.calibration.balanced_threshold() if isinstance(self.calibration, Calibration) else None
        found["suggested"] = None if suggested is None else asdict(suggested)
        return {"decoder": CALIBRATED, "fit": self.calibration.to_dict(), **found}


def decoder_evaluations(searched: SearchedPool, task: AlignmentTask) -> Mapping[str, DecodingEvaluation]:
    """Every registered decoder, by name, in the pool of the test entities, which has been searched; empty without test links."""
    if not len(task.test_links):
        return {}
    evidence = GraphEvidence.of(task.source, task.target, task.train_links)
    return decode_searched(searched, sorted([*DECODERS, *GRAPH_DECODERS]), evidence=evidence)


def query_rank_table(evaluations: Mapping[str, DecodingEvaluation]) -> pd.DataFrame:
    """graph, decoder, entity, rank, answer of each test query: the rank of its counterpart in a decoder's list, and the decoder's answer."""
    parts = [
        pd.DataFrame({"graph": side, "decoder": name, "entity": direction.queries, "rank": direction.ranks, "answer": answers})
        for name, found in evaluations.items()
        for side, direction, answers in (
            ("source", found.source_to_target, found.source_answers),
            ("target", found.target_to_source, found.target_answers),
        )
    ]
    whole = {"graph": "str", "decoder": "str", "entity": "int64", "rank": "int64", "answer": "int64"}
    return pd.concat(parts, ignore_index=True).astype(whole) if parts else pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in whole.items()})


SELF_TRAINED: Final = (
    "Without enough links held out from training, probabilities of this run cannot be given: its rounds trained on their own selected pairs, which "
    f"then look right whether they are or not. Scores and ranks are not affected. With {LEAST_LINKS} links held out they are fitted on these; the "
    "literal variant can estimate them from names and values."
)


@torch.no_grad()
def match_probabilities(
    similarity: Selectable, task: AlignmentTask, csls_k: int, index: str, seed: int, *, self_trained: bool = False
) -> Probabilities:
    """Probabilities for the entities whose counterparts training has not seen.

    The pool leaves out the entities of seed links, which are too well known to compete fairly. Where there are test links, the others of the pool
    are linked or not, and how many of those without any link dangle is estimated (:mod:`engine.evaluation.assessment`); without test links nothing is
    known of them, and the probability is that of a pair whose entities do have counterparts.

    On data of a user's own with too few validation links, the test links, which were held out as well, are fitted on too. Where these do not suffice
    either, or training had no links at all, probabilities are estimated from the matches themselves (:mod:`engine.evaluation.estimation`), but not
    where they are ``self_trained``.

    Args:
        similarity: of all source and all target entities.
        task: the links.
        csls_k: neighbours in CSLS's hubness terms.
        index: finds the candidates.
        seed: draws the folds.
        self_trained: whether structure alone says what is similar, and was trained on pairs that the training itself selected.
    """
    pools = [np.setdiff1d(np.arange(size, dtype=np.int64), task.train_links[:, side]) for side, size in enumerate(similarity.shape)]
    held_out, on_test_links = links_to_fit_on(task)
    if len(held_out) < LEAST_LINKS and (task.own_links or not len(task.train_links)) and all(len(pool) for pool in pools):
        if self_trained:
            return Probabilities(Uncalibrated(SELF_TRAINED), empty_probabilities(), None)
        return estimated_probabilities(similarity, task, pools, csls_k, index, seed)
    if not len(held_out) or any(not len(pool) for pool in pools):
        return Probabilities(fit_calibration(get_decoder(CALIBRATED), nothing(similarity), held_out), empty_probabilities(), None)
    candidates = find_candidates(similarity.select(*(torch.from_numpy(pool) for pool in pools)), csls_k, index=index)
    evidence = GraphEvidence.of(task.source, task.target, task.train_links).within(pools[0], pools[1])
    decoder, links = get_decoder(CALIBRATED), local(held_out, pools)
    calibration = fit_calibration(decoder, candidates, links, evidence, 0.0, seed)
    if isinstance(calibration, Uncalibrated):
        return Probabilities(calibration, empty_probabilities(), None)
    unlinked = unlinked_entities(task, pools)
    dangling = estimate_dangling(decoder, candidates, links, unlinked, evidence, calibration, seed)
    if share := dangling * float(np.concatenate(unlinked).mean()):
        calibration = fit_calibration(decoder, candidates, links, evidence, share, seed)
    if isinstance(calibration, Uncalibrated):
        return Probabilities(calibration, empty_probabilities(), None)
    table = probability_table(decoder.decode(candidates), calibration, pools, evidence)
    if on_test_links:
        return Probabilities(replace(calibration, on_test_links=True), table, None, dangling)
    return Probabilities(calibration, table, test_report(table, task, calibration, dangling) if len(task.test_links) else None, dangling)


def links_to_fit_on(task: AlignmentTask) -> tuple[IntArray, bool]:
    """(L, 2) the links that probabilities are fitted on, and whether test links are among them: not on a benchmark, whose figures would no longer be
    comparable, nor where there are enough validation links.
    """
    if len(valid := unseen(task.valid_links, task)) >= LEAST_LINKS or not task.own_links:
        return valid, False
    both = np.concatenate([valid, unseen(task.test_links, task)])
    return (both, True) if len(both) >= LEAST_LINKS else (valid, False)


def unseen(links: IntArray, task: AlignmentTask) -> IntArray:
    """Those of the links neither end of which was trained on."""
    kept: IntArray = links[~np.isin(links[:, 0], task.train_links[:, 0]) & ~np.isin(links[:, 1], task.train_links[:, 1])]
    return kept


def estimated_probabilities(similarity: Selectable, task: AlignmentTask, pools: list[IntArray], csls_k: int, index: str, seed: int) -> Probabilities:
    """Probabilities of the mutual best matches of a pool, without links."""
    candidates = find_candidates(similarity.select(*(torch.from_numpy(pool) for pool in pools)), csls_k, index=index)
    decoder = get_decoder(CALIBRATED)
    calibration = estimate_calibration(decoder, candidates, seed)
    if isinstance(calibration, Uncalibrated):
        return Probabilities(calibration, empty_probabilities(), None)
    decoding = decoder.decode(candidates)
    evidence = GraphEvidence.of(task.source, task.target, task.train_links).within(pools[0], pools[1])
    table = probability_table(decoding, calibration, pools, evidence, mutual_positions(decoding))
    return Probabilities(calibration, table, test_report(table, task, calibration, 0.0) if len(task.test_links) else None)


def nothing(similarity: Selectable) -> Any:
    """Candidates of two empty pools."""
    none = torch.empty(0, dtype=torch.int64)
    return find_candidates(similarity.select(none, none))


def local(links: IntArray, pools: list[IntArray]) -> IntArray:
    """Links as rows of the pools."""
    return np.stack([np.searchsorted(pool, links[:, side]) for side, pool in enumerate(pools)], axis=1)


def unlinked_entities(task: AlignmentTask, pools: list[IntArray]) -> tuple[BoolArray, BoolArray]:
    """(n,), (m,) which of the pools' entities have no known link, where test links show those that have one."""
    if not len(task.test_links):
        return np.zeros(len(pools[0]), dtype=np.bool_), np.zeros(len(pools[1]), dtype=np.bool_)
    return np.isin(pools[0], task.dangling("source")), np.isin(pools[1], task.dangling("target"))


def probability_table(
    decoding: Decoding, calibration: Calibration, pools: list[IntArray], evidence: GraphEvidence, wanted: IntArray | None = None
) -> pd.DataFrame:
    """graph, entity, match, probability of each prediction, from either end, and the features that it was computed from.

    Args:
        wanted: positions of the candidates to list; None: all that are predicted.
    """
    sides: tuple[Side, Side] = ("source", "target")
    parts = []
    for at, side in enumerate(sides):
        chosen = decoding.chosen(side)
        entities = np.flatnonzero(chosen >= 0 if wanted is None else np.isin(chosen, wanted))
        features = pair_features(decoding, chosen[entities], evidence)
        rows: dict[str, npt.NDArray[Any]] = {"entity": pools[at][entities], "match": pools[1 - at][decoding.predicted(side)[entities]]}
        rows["probability"] = calibration.probabilities(features)
        rows |= dict(zip(FEATURE_COLUMNS, features.astype(np.float32).T, strict=True))
        parts.append(pd.DataFrame({"graph": pd.Series([side] * len(entities), dtype="str"), **rows}))
    return pd.concat(parts, ignore_index=True)


def empty_probabilities() -> pd.DataFrame:
    whole = {"entity": "int64", "match": "int64", "probability": "float64"} | dict.fromkeys(FEATURE_COLUMNS, "float32")
    return pd.DataFrame({"graph": pd.Series(dtype="str"), **{name: pd.Series(dtype=kind) for name, kind in whole.items()}})


def test_report(table: pd.DataFrame, task: AlignmentTask, calibration: Calibration, dangling: float) -> dict[str, Any]:
    """Whether the probabilities kept their word on the test links; nothing is chosen by it.

    Judged are the predictions for entities of test links, and for entities that no known link touches: of these the share ``dangling`` has no
    counterpart, so that their predictions count as wrong with that weight, and not at all with the rest, which is unknown. A pair that is
    predicted from either end is judged twice, as in the fit.
    """
    judged = judged_predictions(table, task)
    right, linked = judged["right"].to_numpy(dtype=np.bool_), judged["linked"].to_numpy(dtype=np.bool_)
    probability: npt.NDArray[np.float64] = judged["probability"].to_numpy(dtype=np.float64)
    weights = np.where(linked, 1.0, dangling)
    report: dict[str, Any] = {
        "predictions": len(judged),
        "linked": int(linked.sum()),
        "calibration_error": expected_calibration_error(probability, right, weights),
        "linked_calibration_error": expected_calibration_error(probability[linked], right[linked]),
    }
    threshold = calibration.suggest_threshold(PROMISED_PRECISION)
    if threshold is not None:
        kept = probability >= threshold.probability
        found = judged.loc[kept & right, ["source", "target"]].drop_duplicates()
        report["threshold"] = {
            "probability": threshold.probability,
            "promised": {"precision": threshold.precision, "recall": threshold.recall},
            "found": {"precision": weighted_share(right[kept], weights[kept]), "recall": len(found) / len(task.test_links)},
        }
    return report


def weighted_share(right: BoolArray, weights: npt.NDArray[np.float64]) -> float | None:
    """Of the weights those of what is right; None where there is nothing."""
    return float(weights[right].sum() / weights.sum()) if weights.sum() > 0 else None


def judged_predictions(table: pd.DataFrame, task: AlignmentTask) -> pd.DataFrame:
    """source, target, probability, linked (the entity it was made for has a test link), right; of the entities whose truth is known."""
    truth = task.test_links[:, 0] * task.target.num_entities + task.test_links[:, 1]
    sides: tuple[tuple[Side, str, str], ...] = (("source", "entity", "match"), ("target", "match", "entity"))
    parts = []
    for at, (side, source, target) in enumerate(sides):
        rows = table[table["graph"] == side]
        linked = rows["entity"].isin(task.test_links[:, at])
        part = pd.DataFrame({"source": rows[source], "target": rows[target], "probability": rows["probability"], "linked": linked})
        parts.append(part[linked | rows["entity"].isin(task.dangling(side))])
    judged = pd.concat(parts, ignore_index=True)
    return judged.assign(right=np.isin(judged["source"] * task.target.num_entities + judged["target"], truth))
