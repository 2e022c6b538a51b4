"""What the service answers, as plain values: each function is one question to a run."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from engine.api import entity_of, summary_row
from engine.data.knowledge_graph import Side
from engine.errors import ConfigError, DataError, EntityError, ReviewError
from engine.explanation import resolve_pair
from engine.reviews import Choice, Decision, ReviewStore, check_author
from engine.reviews.decisions import MARK_OF_ACCOUNTS, check_choices, check_token
from engine.runs.entities import Entity
from engine.runs.view import PairScore, Pool
from engine.serving.runs import OpenRuns, ServedRun


def runs_answer(runs: OpenRuns) -> dict[str, Any]:
    """The runs that can be asked about, newest first."""
    rows = [summary_row(one) for one in runs.listed()]
    return {"runs": [{name: value for name, value in row.items() if name != "reason"} for row in rows]}


def run_answer(run: ServedRun) -> dict[str, Any]:
    """A run's data, settings and accuracy."""
    manifest = run.manifest
    data = manifest.get("data", {})
    graphs = {side: {name: data.get(side, {}).get(name) for name in ("name", "entities", "relations", "triples")} for side in ("source", "target")}
    return {
        "run": run.id,
        "status": manifest["status"],
        "variant": manifest["variant"],
        "seed": manifest["seed"],
        "created": manifest["created"],
        "fingerprint": run.fingerprint,
        **graphs,
        "links": data.get("links", {}),
        "stored_matches": run.config.search.top,
        "metrics": run.metrics or None,
    }


def metrics_answer(run: ServedRun) -> dict[str, Any]:
    """Accuracy on the test links, and as reviewers' decisions on a random sample estimate it."""
    sample = run.reviewed_sample()
    return {"run": run.id, "metrics": run.metrics or None, "reviewed_sample": None if sample is None else sample.to_dict()}


def search_answer(run: ServedRun, text: str, side: Side | None, limit: int) -> dict[str, Any]:
    """Entities whose label or identifier fits a text, best first."""
    return {"run": run.id, "entities": [entity_fields(one) for one in run.view.search(text, side, limit)]}


def match_answer(run: ServedRun, entity: str, side: Side | None, top: int, pool: Pool) -> dict[str, Any]:
    """The best matches of an entity of either graph."""
    found = run.view.resolve(entity, side)
    matches = run.lists.matches(found.side, found.index, top, pool)
    return {"run": run.id, "pool": pool, "entity": entity_fields(found), "matches": [one.to_dict() for one in matches]}


def new_matches_answer(run: ServedRun, entities: Sequence[Mapping[str, Any]], side: Side, top: int) -> dict[str, Any]:
    """The best matches of entities that the run has not seen.

    Raises:
        DataError: an entity that cannot be placed as it is given.
    """
    records = []
    for number, one in enumerate(entities, start=1):
        try:
            records.append(entity_of(dict(one)))
        except DataError as error:
            raise DataError(f"entity {number}: {error.complaint}") from None
    try:
        placed = run.align_new(records, side=side, top=top)
    except EntityError as error:
        raise DataError(str(error)) from None
    return {"run": run.id, "entities": [one.to_dict() for one in placed]}


def pair_answer(run: ServedRun, source: str, target: str, pool: Pool) -> dict[str, Any]:
    """Scores of a pair and its ranks from both ends."""
    return {"run": run.id, **pair_fields(run.view.pair(*resolve_pair(run.view, source, target), pool))}


def explain_answer(
    run: ServedRun, source: str, target: str, against: str | None, remove: Sequence[str], pool: Pool, side: Side, top: int
) -> dict[str, Any]:
    """What a pair's score consists of.

    Args:
        remove: evidence to compute the score without; the words of each separated as on the command line.
    """
    words = [evidence_words(one) for one in remove]
    return run.explain(source, target, against=against, remove=words, pool=pool, side=side, top=top).to_dict()


def evidence_words(text: str) -> list[str]:
    """
    Raises:
        ConfigError: a quotation mark that is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError:
        raise ConfigError("'remove' has a quotation mark that is not closed; put words with spaces between double quotation marks.") from None


def reviews_answer(run: ServedRun, store: ReviewStore, limit: int, offset: int) -> dict[str, Any]:
    """The reviewers' decisions that count, in the order in which they were stored."""
    found = store.standing(run.fingerprint)
    return {"run": run.id, "total": len(found), "offset": offset, "decisions": [decision_fields(one) for one in found[offset : offset + limit]]}


def decisions_answer(run: ServedRun, store: ReviewStore, author: str, decisions: Sequence[Mapping[str, str]], click: str) -> dict[str, Any]:
    """Store decisions, all or none.

    Args:
        decisions: ``source``, ``target`` (exact identifiers), ``verdict`` and ``note`` of each.
        click: names this request, so that it can be sent again without a second effect; "" for a new name.

    Raises:
        DataError: a name, pair, verdict or note that cannot be stored.
    """
    try:
        name, token = check_author(author), check_token(click or uuid.uuid4().hex)
        if MARK_OF_ACCOUNTS in name:
            raise ReviewError(f"names with {MARK_OF_ACCOUNTS} are those of accounts, which only signing in to the app gives; use another name.")
        choices = [choice_with_scores(run, one) for one in decisions]
        check_choices(choices)
        if len({one.pair for one in choices}) < len(choices):
            raise ReviewError("a pair is given twice; give one decision per pair.")
    except (ReviewError, EntityError) as error:
        raise DataError(str(error)) from None
    kept = store.decide(run.fingerprint, choices, name, token)
    return {"run": run.id, "click": token, "decisions": [decision_fields(one) for one in kept]}


def choice_with_scores(run: ServedRun, record: Mapping[str, str]) -> Choice:
    """A decision with what the run says of the pair."""
    source, target = run.view.identified(record["source"], "source"), run.view.identified(record["target"], "target")
    score = run.view.pair(source.index, target.index)
    verdict: Any = record["verdict"]  # checked together with the others
    return Choice(source.uri, target.uri, verdict, record["note"], run.id, score.csls, score.probability)


def entity_fields(entity: Entity) -> dict[str, Any]:
    return {"side": entity.side, "uri": entity.uri, "label": entity.label, "degree": entity.degree}


def pair_fields(found: PairScore) -> dict[str, Any]:
    figures = ("pool", "cosine", "csls", "names", "values", "rank_from_source", "rank_from_target", "verdict", "probability", "added")
    ends = {"source": entity_fields(found.source), "target": entity_fields(found.target)}
    return ends | {name: getattr(found, name) for name in figures} | {"pool_sizes": list(found.pool_sizes)}


def decision_fields(one: Decision) -> dict[str, Any]:
    choice = one.choice
    seen = {"run": choice.run, "csls": choice.csls, "probability": choice.probability}
    made = {"number": one.number, "author": one.author, "time": one.time, "click": one.click}
    return {"source": choice.source, "target": choice.target, "verdict": choice.verdict, "note": choice.note, **made, "seen": seen}
