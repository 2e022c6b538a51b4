"""How good a finished run is: every decoder on the test links, and probabilities of its matches, calibrated on the validation links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from engine.datasets.knowledge_graph import AlignmentTask, IntArray, Side
from engine.decoding import DECODERS, GRAPH_DECODERS, Decoding, DecodingEvaluation, GraphEvidence, evaluate_decoders, find_candidates, get_decoder
from engine.decoding.calibration import Calibration, Uncalibrated, expected_calibration_error, fit_calibration, pair_features
from engine.evaluation import Selectable

CALIBRATED = "csls"
"""The decoder whose predictions get probabilities: what the list of matches begins with."""
PROMISED_PRECISION = 0.9


@dataclass(frozen=True)
class Probabilities:
    """Calibrated probabilities of the best match of each entity.

    Attributes:
        calibration: the fit, or why there is none.
        table: graph, entity, match, probability; rows for the entities of the pool that have a prediction, none without a fit.
        test: what came of it where test links tell the truth (see :func:`test_report`): expected calibration error, and precision and recall at
            the suggested threshold beside what was promised; None without a fit or test links.
    """

    calibration: Calibration | Uncalibrated
    table: pd.DataFrame
    test: dict[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        return {"decoder": CALIBRATED, "fit": self.calibration.to_dict(), "test": self.test}


def decoder_evaluations(similarity: Selectable, task: AlignmentTask, csls_k: int, index: str) -> Mapping[str, DecodingEvaluation]:
    """Every registered decoder, by name, in the pool of the test entities; empty without test links."""
    if not len(task.test_links):
        return {}
    evidence = GraphEvidence.of(task.source, task.target, task.train_links)
    return evaluate_decoders(similarity, task.test_links, sorted([*DECODERS, *GRAPH_DECODERS]), csls_k, index=index, evidence=evidence)


def query_rank_table(evaluations: Mapping[str, DecodingEvaluation]) -> pd.DataFrame:
    """graph, decoder, entity, rank, answer of each test query: where its counterpart stands in a decoder's list, and what the decoder gave."""
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


@torch.no_grad()
def match_probabilities(similarity: Selectable, task: AlignmentTask, csls_k: int, index: str, seed: int) -> Probabilities:
    """Probabilities for the entities whose counterparts training has not seen.

    The pool leaves out the entities of seed links, which are too well known to compete fairly. Where the data says which entities have a test
    link, those without any link count as dangling; without test links nothing is known of them, and the probability is that of a pair whose
    entities do have counterparts.
    """
    pools = [np.setdiff1d(np.arange(size, dtype=np.int64), task.train_links[:, side]) for side, size in enumerate(similarity.shape)]
    valid = task.valid_links[~np.isin(task.valid_links[:, 0], task.train_links[:, 0]) & ~np.isin(task.valid_links[:, 1], task.train_links[:, 1])]
    if not len(valid) or any(not len(pool) for pool in pools):
        return Probabilities(fit_calibration(get_decoder(CALIBRATED), nothing(similarity), valid), empty_probabilities(), None)
    candidates = find_candidates(similarity.select(*(torch.from_numpy(pool) for pool in pools)), csls_k, index=index)
    degrees = task.source.degrees[pools[0]], task.target.degrees[pools[1]]
    share = dangling_share(task, pools)
    calibration = fit_calibration(get_decoder(CALIBRATED), candidates, local(valid, pools), degrees, share, seed)
    if isinstance(calibration, Uncalibrated):
        return Probabilities(calibration, empty_probabilities(), None)
    decoding = get_decoder(CALIBRATED).decode(candidates)
    table = probability_table(decoding, calibration, pools, degrees)
    return Probabilities(calibration, table, test_report(table, task, calibration) if len(task.test_links) else None)


def nothing(similarity: Selectable) -> Any:
    """Candidates of two empty pools."""
    none = torch.empty(0, dtype=torch.int64)
    return find_candidates(similarity.select(none, none))


def local(links: IntArray, pools: list[IntArray]) -> IntArray:
    """Links as rows of the pools."""
    return np.stack([np.searchsorted(pool, links[:, side]) for side, pool in enumerate(pools)], axis=1)


def dangling_share(task: AlignmentTask, pools: list[IntArray]) -> float:
    """Share of the pool's entities that are known to have no counterpart."""
    if not len(task.test_links):
        return 0.0
    sides: tuple[Side, Side] = ("source", "target")
    dangling = sum(int(np.isin(task.dangling(side), pool).sum()) for side, pool in zip(sides, pools, strict=True))
    return dangling / sum(len(pool) for pool in pools)


def probability_table(decoding: Decoding, calibration: Calibration, pools: list[IntArray], degrees: tuple[IntArray, IntArray]) -> pd.DataFrame:
    """graph, entity, match, probability of each prediction, from either end."""
    sides: tuple[Side, Side] = ("source", "target")
    parts = []
    for at, side in enumerate(sides):
        chosen = decoding.chosen(side)
        entities = np.flatnonzero(chosen >= 0)
        probability = calibration.probabilities(pair_features(decoding, chosen[entities], degrees))
        rows = {"entity": pools[at][entities], "match": pools[1 - at][decoding.predicted(side)[entities]], "probability": probability}
        parts.append(pd.DataFrame({"graph": pd.Series([side] * len(entities), dtype="str"), **rows}))
    return pd.concat(parts, ignore_index=True)


def empty_probabilities() -> pd.DataFrame:
    whole = {"entity": "int64", "match": "int64", "probability": "float64"}
    return pd.DataFrame({"graph": pd.Series(dtype="str"), **{name: pd.Series(dtype=kind) for name, kind in whole.items()}})


def test_report(table: pd.DataFrame, task: AlignmentTask, calibration: Calibration) -> dict[str, Any]:
    """Whether the probabilities kept their word where the truth is known; nothing is chosen by it.

    Judged are the predictions for entities of test links, and for entities that no known link touches: the fit counts these as dangling, so what
    is predicted for them must count as wrong here too. A pair that is predicted from either end is judged twice, as in the fit.
    """
    judged = judged_predictions(table, task)
    right, linked = judged["right"].to_numpy(dtype=np.bool_), judged["linked"].to_numpy(dtype=np.bool_)
    probability: npt.NDArray[np.float64] = judged["probability"].to_numpy(dtype=np.float64)
    report: dict[str, Any] = {
        "predictions": len(judged),
        "linked": int(linked.sum()),
        "calibration_error": expected_calibration_error(probability, right),
        "linked_calibration_error": expected_calibration_error(probability[linked], right[linked]),
    }
    threshold = calibration.suggest_threshold(PROMISED_PRECISION)
    if threshold is not None:
        kept = probability >= threshold.probability
        found = judged.loc[kept & right, ["source", "target"]].drop_duplicates()
        report["threshold"] = {
            "probability": threshold.probability,
            "promised": {"precision": threshold.precision, "recall": threshold.recall},
            "found": {"precision": float(right[kept].mean()) if kept.any() else None, "recall": len(found) / len(task.test_links)},
        }
    return report


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
