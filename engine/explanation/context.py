"""What is known of a pair besides its score: by the links, by the rounds that trained on it, and in the other runs of the same data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.errors import EngineError
from engine.explanation.explainer import Explainer
from engine.runs import RunStore
from engine.runs.view import PairScore, Pool, RunView, Verdict


@dataclass(frozen=True)
class PairRound:
    """A semi-supervised round that trained on the pair, and the score that it was chosen by."""

    number: int
    score: float


@dataclass(frozen=True)
class OtherRun:
    """The pair in another run of the same data.

    Attributes:
        pair: its scores there, among the same candidates; None where that run has none, and ``reason`` says why.
    """

    run: str
    variant: str
    seed: int
    pair: PairScore | None
    reason: str = ""


@dataclass(frozen=True)
class Context:
    """What is known of a pair besides its score.

    Attributes:
        verdict: what the known links say.
        rounds: those that trained on it, in order.
        runs: the pair in the other runs of the same data.
        selection: the rule by which rounds selected pairs, which says what their scores are; empty where the manifest does not have it.
    """

    verdict: Verdict
    rounds: tuple[PairRound, ...]
    runs: tuple[OtherRun, ...] = ()
    selection: str = ""


def context(explainer: Explainer, source: int, target: int, others: Iterable[tuple[str, RunView]] = (), pool: Pool = "all") -> Context:
    """What is known of a pair.

    Args:
        explainer: of the run.
        source, target: indices in their graphs.
        others: ids and views of other runs of the same data (:func:`sibling_runs` finds them).
        pool: the candidates that the other runs' numbers are of, so that they can be compared with the pair's own.

    Raises:
        EntityError: no such entity.
    """
    view = explainer.view
    uris = view.entity("source", source).uri, view.entity("target", target).uri
    runs = tuple(_in_run(run, other, uris, pool) for run, other in others)
    selection = str(view.run.manifest.get("config", {}).get("semi", {}).get("selection", ""))
    return Context(view.verdict(source, target), rounds_of(view, source, target), runs, selection)


def rounds_of(view: RunView, source: int, target: int) -> tuple[PairRound, ...]:
    """The semi-supervised rounds that trained on a pair."""
    if not view.has("selections"):
        return ()
    table = view.run.table("selections")
    rows = table[(table["source"] == source) & (table["target"] == target)].sort_values("round")
    return tuple(PairRound(int(number), float(score)) for number, score in zip(rows["round"], rows["score"], strict=True))


def _in_run(run: str, view: RunView, uris: tuple[str, str], pool: Pool) -> OtherRun:
    manifest = view.run.manifest
    about = run, str(manifest.get("variant", "")), int(manifest.get("seed", 0))
    try:
        places = [view.graphs[side].index.get(uri) for side, uri in zip(("source", "target"), uris, strict=True)]  # type: ignore[index]
        if places[0] is None or places[1] is None:
            return OtherRun(*about, None, "it does not have both entities.")
        return OtherRun(*about, view.pair(places[0], places[1], pool))
    except EngineError as error:
        return OtherRun(*about, None, str(error))


def sibling_runs(store: RunStore, run_id: str, fingerprint: str) -> list[tuple[str, RunView]]:
    """The other finished runs of the same data, the newest first.

    Args:
        store: where runs are kept.
        run_id: ``dataset/run_id`` of the run to leave out.
        fingerprint: of the data, from its manifest.
    """
    fitting = [
        one.id
        for one in store.list()
        if one.id != run_id and one.manifest is not None and one.manifest.get("data", {}).get("fingerprint") == fingerprint
    ]
    return [(one, RunView(store.find(one))) for one in fitting]
