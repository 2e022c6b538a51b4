"""Explanations as plain values for JSON, and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from engine.data.knowledge_graph import Side
from engine.errors import printable_lines
from engine.explanation.decomposition import ScorePart
from engine.explanation.evidence import Aligned, Explanation, NeighbourEvidence, NeighbourProduct, RelationPair
from engine.explanation.explainer import Context, PairRound
from engine.explanation.intervention import Intervention, PairRank, Rival
from engine.explanation.rivals import Conflict, RivalComparison
from engine.explanation.summary import SummaryLine, grouped_parts, quoted_title, score_groups
from engine.explanation.value_evidence import PairValue
from engine.explore.neighbourhood import Edge
from engine.runs.entities import Entity, other
from engine.runs.verdicts import status_words
from engine.runs.view import PairScore
from engine.util.text import count

# One sentence about a pair, made of its numbers: what adds up to the score, never why training came to these weights.

THIN = 0.01  # of all that supporting pairs of neighbours contribute; a single pair below this explains nothing by itself
SELECTION_SCORES = {
    "mutual": "the pair's CSLS when it was selected as each other's best match",
    "sinkhorn": "the pair's share, from 0 to 1, in the round's one-to-one assignment (Sinkhorn)",
    "propagation": "the pair's share, from 0 to 1, in the round's one-to-one assignment after propagation",
    "matchings": "the share of the round's drawn one-to-one matchings that have the pair",
}
ALIGNED_WORDS: dict[Aligned, str] = {
    "this pair": "the two entities themselves",
    "seed": "a seed link",
    "added": "a pair that the run trained on",
    "predicted": "a predicted match",
    "elsewhere": "not matched with each other in this run",
}


def sentence(found: Explanation) -> str:
    """The score, its parts, and the two neighbours that contribute the most."""
    carried = carried_words(found.neighbours) + shared_value_words(found)
    against = found.neighbours.negative
    counter = f", and opposing pairs add up to {signed(against)}" if carried and round(against, 3) else ""
    who = f"{quoted_title(found.pair.source)} and {quoted_title(found.pair.target)}"
    return f"{who} score {found.pair.csls:.3f}, {standing_words(found.pair)}: {sums(found)}{carried}{counter}."


def shared_value_words(found: Explanation) -> str:
    """The shared value that adds the most; empty where none adds anything that is seen."""
    if not found.values or not round(found.values[0].value, 3):
        return ""
    return f"; of the {count(len(found.values), 'shared value')} the largest contribution is {found.values[0].words}, {signed(found.values[0].value)}"


def carried_words(neighbours: NeighbourEvidence) -> str:
    """The pair of neighbours that contributes the most; where that is next to nothing of the whole, the words say so. Empty without any."""
    if not neighbours.supporting:
        return ""
    strongest = neighbours.supporting[0]
    if strongest.value < THIN * neighbours.positive:
        return (
            f"; pairs of neighbours contribute {signed(neighbours.positive)}, each of them little, at most {signed(strongest.value)} by "
            f"{pair_words(strongest).removesuffix(',')}"
        )
    return f"; the largest contribution of a pair of neighbours is {signed(strongest.value)}, by {pair_words(strongest).removesuffix(',')}"


def standing_words(pair: PairScore) -> str:
    """The ranks from both ends, with the pools that they are of."""
    kind = "" if pair.pool == "all" else "test "
    sizes = f"{pair.pool_sizes[0]:,} {kind}targets", f"{pair.pool_sizes[1]:,} {kind}sources"
    if pair.rank_from_source == pair.rank_from_target == 1:
        return f"each the other's best match among {sizes[0]} and {sizes[1]}"
    return f"rank {pair.rank_from_source:,} of {sizes[0]} and rank {pair.rank_from_target:,} of {sizes[1]}"


def sums(found: Explanation) -> str:
    """The parts of the score in a few groups; they add up to it."""
    return ", ".join(f"{group.name} {signed(group.value)}" for group in score_groups(found) if round(group.value, 3))


def pair_words(pair: NeighbourProduct) -> str:
    return f"{quoted_title(pair.source)} with {quoted_title(pair.target)}, {ALIGNED_WORDS[pair.aligned]},"


def removal_sentence(found: Intervention, side: Side = "source") -> str:
    """What became of the pair without some triples, as seen from the entity of one graph."""
    parts = [count(len(found.removed), "triple")] if found.removed or not found.values else []
    parts += [count(len(found.values), "shared value")] if found.values else []
    before, after = found.before, found.after
    verb = "lowers" if after.csls < before.csls else "raises" if after.csls > before.csls else "leaves"
    change = f"at {after.csls:.3f}" if verb == "leaves" else f"from {before.csls:.3f} to {after.csls:.3f}"
    moved = after.rank(side) != before.rank(side)
    rank = (
        f"The rank from the {side} goes from {before.rank(side):,} to {after.rank(side):,}"
        if moved
        else f"The rank from the {side} stays {after.rank(side):,}"
    )
    best = f"the best match of the {side} {'changes' if found.flips(side) else 'stays'}"
    return f"Removing {' and '.join(parts)} {verb} CSLS {change}. {rank}; {best}. Weights and all other entities are held fixed."


def rounds_words(rounds: Sequence[PairRound], selection: str) -> str:
    """The semi-supervised rounds that trained on a pair, and what their selection score is: 'Used as a training pair in rounds 1-4 ...'."""
    numbers = [one.number for one in rounds]
    whole = numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 2
    names = f"{numbers[0]}–{numbers[-1]}" if whole else " and ".join(map(str, numbers)) if len(numbers) < 3 else ", ".join(map(str, numbers))
    scores = dict.fromkeys(f"{one.score:.3f}" for one in rounds)
    scores_text = f"{next(iter(scores))}" if len(scores) == 1 else f"{', '.join(scores)} in this order"
    means = SELECTION_SCORES.get(selection, "the score of the rule that selected it")
    return f"Used as a training pair in round{'s' if len(numbers) > 1 else ''} {names}. Selection score {scores_text}: {means}."


def edge_words(edges: tuple[Edge, ...]) -> str:
    """Relations as written in JSON and on the command line: ^name where the entity is the tail."""
    return ", ".join(edge.relation if edge.direction == "out" else f"^{edge.relation}" for edge in edges)


def signed(value: float) -> str:
    """A value with its sign; never a signed zero."""
    return f"{value:+.3f}" if round(value, 3) else "0.000"


@dataclass(frozen=True)
class Report:
    """Everything that was asked about a pair."""

    run: str
    explanation: Explanation
    context: Context
    conflict: Conflict
    conflict_of_source: Conflict
    comparison: RivalComparison | None = None
    intervention: Intervention | None = None
    side: Side = "source"
    summary: tuple[SummaryLine, ...] = ()

    def __str__(self) -> str:
        """What ``python -m engine explain`` prints."""
        return printable_lines("\n".join(lines(self)))

    @property
    def parts(self) -> pd.DataFrame:
        """``name`` and ``value`` of what the CSLS score is made of; the values add up to it, but for rounding."""
        return pd.DataFrame([{"name": part.name, "value": part.value} for part in self.explanation.decomposition.parts])

    @property
    def neighbours(self) -> pd.DataFrame:
        """The listed pairs of neighbours: ``source``, ``target``, labels, relations, ``value`` (what the pair adds to the score), ``aligned``."""
        found = self.explanation.neighbours
        return pd.DataFrame([neighbour_dict(one) for one in (*found.supporting, *found.opposing)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values. ``parts`` add up to ``csls``; the listed ``neighbours``, ``neighbours_rest`` and ``own_relations`` to its multi-hop parts."""
        found, pair = self.explanation, self.explanation.pair
        values = {
            "run": self.run,
            "pool": pair.pool,
            "source": entity_dict(pair.source),
            "target": entity_dict(pair.target),
            "cosine": pair.cosine,
            "csls": pair.csls,
            "names": pair.names,
            "values": pair.values,
            "rank_from_source": pair.rank_from_source,
            "rank_from_target": pair.rank_from_target,
            "pool_sizes": list(pair.pool_sizes),
            "verdict": pair.verdict,
            "probability": pair.probability,
            "parts": [{"name": part.name, "value": part.value} for part in found.decomposition.parts],
            "rounding": found.decomposition.rounding,
            "neighbours": [neighbour_dict(one) for one in (*found.neighbours.supporting, *found.neighbours.opposing)],
            "neighbours_rest": found.neighbours.rest,
            "own_relations": found.neighbours.own_relations,
            "relations": [relation_dict(one) for one in (*found.relations.supporting, *found.relations.opposing)],
            "relations_rest": found.relations.rest,
            "own_neighbours": found.relations.own_neighbours,
            "context": context_dict(self.context),
            "conflict": conflict_dict(self.conflict),
            "conflict_of_source": conflict_dict(self.conflict_of_source),
            "shared_values": [value_dict(one) for one in found.values],
            "notes": list(found.notes),
            "sentence": sentence(found),
            "summary": [{"label": line.label, "text": line.text} for line in self.summary],
        }
        if self.comparison is not None:
            values["against"] = comparison_dict(self.comparison)
        return values | (intervention_dict(self.intervention, self.side) if self.intervention is not None else {})


def entity_dict(entity: Entity) -> dict[str, Any]:
    return {"uri": entity.uri, "label": entity.label, "degree": entity.degree}


def neighbour_dict(pair: NeighbourProduct) -> dict[str, Any]:
    return {
        "source": pair.source.uri,
        "target": pair.target.uri,
        "source_label": pair.source.label,
        "target_label": pair.target.label,
        "source_relation": edge_words(pair.source_edges),
        "target_relation": edge_words(pair.target_edges),
        "value": pair.value,
        "aligned": pair.aligned,
    }


def value_dict(one: PairValue) -> dict[str, Any]:
    return {name: value for name, value in asdict(one).items() if name != "facts"}


def relation_dict(pair: RelationPair) -> dict[str, Any]:
    return {"source": edge_words(pair.source), "target": edge_words(pair.target), "value": pair.value}


def context_dict(context: Context) -> dict[str, Any]:
    runs = [
        {"run": one.run, "variant": one.variant, "seed": one.seed}
        | ({"reason": one.reason} if one.pair is None else {name: getattr(one.pair, name) for name in PAIR_FIGURES})
        for one in context.runs
    ]
    return {"verdict": context.verdict, "rounds": [{"round": one.number, "score": one.score} for one in context.rounds], "runs": runs}


PAIR_FIGURES = ("cosine", "csls", "rank_from_source", "rank_from_target", "verdict")


def conflict_dict(conflict: Conflict) -> dict[str, Any]:
    claims = [{one.entity.side: one.entity.uri, "csls": one.csls, "decided": one.decided.uri if one.decided else None} for one in conflict.claims]
    return {"claims": claims, "decoder": conflict.decoder, "winner": conflict.winner.uri if conflict.winner else None}


def comparison_dict(comparison: RivalComparison) -> dict[str, Any]:
    shared = comparison.shared
    rival = comparison.rival.target if shared == "source" else comparison.rival.source
    neighbours = [
        {"entity": one.entity.uri, "relation": edge_words(one.edges), "pair": one.pair, "rival": one.rival, "value": one.value}
        for one in comparison.neighbours
    ]
    return {
        "entity": entity_dict(rival),
        "cosine": comparison.rival.cosine,
        "csls": comparison.rival.csls,
        "difference": comparison.total,
        "parts": [{"name": part.name, "value": part.value} for part in comparison.differences],
        "neighbours": neighbours,
    }


def intervention_dict(found: Intervention, side: Side) -> dict[str, Any]:
    removed = [{"graph": one.side, "head": one.head.uri, "relation": one.relation, "tail": one.tail.uri} for one in found.removed]
    return {
        "removed": removed,
        "removed_values": [value_dict(one) for one in found.values],
        "before": standing_dict(found.before),
        "after": standing_dict(found.after),
        "flips": {"source": found.flips("source"), "target": found.flips("target")},
        "removal": removal_sentence(found, side),
    }


def standing_dict(standing: PairRank) -> dict[str, Any]:
    return {
        "cosine": standing.cosine,
        "csls": standing.csls,
        "rank_from_source": standing.rank_from_source,
        "rank_from_target": standing.rank_from_target,
        "rival_of_target": rival_dict(standing.rival_of_target),
        "rival_of_source": rival_dict(standing.rival_of_source),
    }


def rival_dict(rival: Rival | None) -> dict[str, Any] | None:
    return None if rival is None else {"entity": rival.entity.uri, "csls": rival.csls}


def lines(report: Report, top: int = 10) -> Iterator[str]:
    """The report for a terminal, at most ``top`` lines of each kind of evidence."""
    found = report.explanation
    yield from (str(line) for line in report.summary)
    yield from (f"Note: {note}" for note in found.notes)
    yield ""
    yield from group_lines(found.decomposition.parts)
    known = status_words(found.pair.verdict, found.pair.added)
    yield f"{found.pair.csls:>8.3f}  CSLS (cosine {found.pair.cosine:.3f}); {standing_words(found.pair)}; {known}"
    if found.values:
        yield "\nshared values:"
    yield from (f"{signed(one.value):>8}  {one.words}" for one in found.values[:top])
    for heading, pairs in (("supporting neighbour pairs", found.neighbours.supporting), ("opposing neighbour pairs", found.neighbours.opposing)):
        if pairs:
            yield f"\n{heading}:"
        yield from (neighbour_line(pair) for pair in pairs[:top])
    yield from context_lines(report)
    if report.comparison is not None:
        yield from comparison_lines(report.comparison, top)
    if report.intervention is not None:
        yield "\nremoved:"
        yield from (f"  {one.words}" for one in report.intervention.values[:top])
        yield from (f"  {quoted_title(one.head)} {one.relation} {quoted_title(one.tail)}" for one in report.intervention.removed[:top])
        if len(report.intervention.removed) > top:
            yield f"  and {len(report.intervention.removed) - top:,} more"
        yield removal_sentence(report.intervention, report.side)


def group_lines(parts: Sequence[ScorePart]) -> Iterator[str]:
    """The groups of a score, below each its parts where it has several."""
    for group in grouped_parts(parts):
        yield f"{signed(group.value):>8}  {group.name}"
        if len(group.parts) > 1:
            yield from (f"{'':>10}{signed(part.value):>8}  {part.name}" for part in group.parts)


def neighbour_line(pair: NeighbourProduct) -> str:
    ends = (pair.source, pair.source_edges), (pair.target, pair.target_edges)
    one, two = (f"{quoted_title(entity)} ({edge_words(edges) or 'itself'})" for entity, edges in ends)
    return f"{signed(pair.value):>8}  {one} with {two}: {pair.aligned}"


def context_lines(report: Report) -> Iterator[str]:
    """Rounds, other runs and conflicts, where there are any."""
    if report.context.rounds:
        yield f"\n{rounds_words(report.context.rounds, report.context.selection)}"
    if report.context.runs:
        yield "\nin other runs of the same data:"
    for run in report.context.runs:
        pair = run.pair
        figures = f"CSLS {pair.csls:.3f}, ranks {pair.rank_from_source:,} and {pair.rank_from_target:,}" if pair else run.reason
        yield f"  {run.run}: {figures}"
    for conflict in (report.conflict, report.conflict_of_source):
        yield from conflict_lines(conflict)


def conflict_lines(conflict: Conflict) -> Iterator[str]:
    """Nothing where at most one entity has this one as its best match."""
    if len(conflict.claims) < 2:
        return
    yield f"\n{len(conflict.claims)} {other(conflict.entity.side)} entities have {quoted_title(conflict.entity)} as their best match:"
    yield from (f"  {one.csls:.3f}  {quoted_title(one.entity)}" for one in conflict.claims[:5])
    winner = quoted_title(conflict.winner) if conflict.winner else "none of them"
    yield f"one-to-one matching assigns it to {winner} (decoder '{conflict.decoder}' over {conflict.listed} stored matches of each entity)"


def comparison_lines(comparison: RivalComparison, top: int) -> Iterator[str]:
    rival = comparison.rival.target if comparison.shared == "source" else comparison.rival.source
    yield f"\ncompared with {quoted_title(rival)}, CSLS {comparison.rival.csls:.3f}:"
    yield from group_lines(comparison.differences)
    yield f"{signed(comparison.total):>8}  difference of the two scores"
    for one in comparison.neighbours[:top]:
        yield f"{signed(one.value):>8}  {quoted_title(one.entity)}: {signed(one.pair)} for this pair, {signed(one.rival)} for the rival"
