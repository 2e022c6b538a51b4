"""One sentence about a pair, made of its numbers. It says what adds up to the score, never why training came to these weights."""

from __future__ import annotations

from collections.abc import Sequence

from engine.data.knowledge_graph import Side
from engine.explanation.context import PairRound
from engine.explanation.evidence import Aligned, NeighbourEvidence, NeighbourProduct
from engine.explanation.explanation import Explanation
from engine.explanation.intervention import Intervention
from engine.explore.neighbourhood import Edge
from engine.runs.entities import Entity
from engine.runs.view import PairScore
from engine.util.text import shortened

LABEL_LENGTH = 60
THIN = 0.01  # of all that pairs of neighbours carry for the match; a single pair below this explains nothing by itself
SELECTION_SCORES = {
    "mutual": "the pair's CSLS when it was selected as each other's best match",
    "sinkhorn": "the pair's share, from 0 to 1, in the round's one-to-one assignment (Sinkhorn)",
    "propagation": "the pair's share, from 0 to 1, in the round's one-to-one assignment after propagation",
}
ALIGNED_WORDS: dict[Aligned, str] = {
    "this pair": "the two entities themselves",
    "seed": "a seed link",
    "added": "a pair that the run trained on",
    "predicted": "matched with each other by this run from at least one side",
    "elsewhere": "not matched with each other in this run",
}


def sentence(found: Explanation) -> str:
    """What the score is, what it adds up from, and which two neighbours carry the most."""
    carried = carried_words(found.neighbours)
    against = found.neighbours.negative
    counter = f", and pairs that speak against it add up to {signed(against)}" if carried and round(against, 3) else ""
    who = f"{title(found.pair.source)} and {title(found.pair.target)}"
    return f"{who} score {found.pair.csls:.3f}, {standing_words(found.pair)}: {sums(found)}{carried}{counter}."


def carried_words(neighbours: NeighbourEvidence) -> str:
    """The pair of neighbours that carries the most; where it carries next to nothing of the whole, that is said of it. Empty without any."""
    if not neighbours.supporting:
        return ""
    strongest = neighbours.supporting[0]
    if strongest.value < THIN * neighbours.positive:
        return (
            f"; {signed(neighbours.positive)} come from pairs of neighbours that each carry little, at the most {signed(strongest.value)} by "
            f"{pair_words(strongest).removesuffix(',')}"
        )
    return f"; of all pairs of neighbours {pair_words(strongest)} carries the most ({signed(strongest.value)})"


def standing_words(pair: PairScore) -> str:
    """The ranks from both ends, with the pools that they are of."""
    kind = "" if pair.pool == "all" else "test "
    sizes = f"{pair.pool_sizes[0]:,} {kind}targets", f"{pair.pool_sizes[1]:,} {kind}sources"
    if pair.rank_from_source == pair.rank_from_target == 1:
        return f"each the other's best match among {sizes[0]} and {sizes[1]}"
    return f"rank {pair.rank_from_source:,} of {sizes[0]} and rank {pair.rank_from_target:,} of {sizes[1]}"


def sums(found: Explanation) -> str:
    """The parts of the score in a few groups; they add up to it."""
    parts, neighbours = found.decomposition, found.neighbours
    groups = [
        ("what is heard from neighbours and of itself", parts.total("multi-hop") - neighbours.own_relations),
        ("their own kinds of relations", neighbours.own_relations),
        ("proxies and gate", parts.total("proxies")),
        ("names", parts.total("names")),
        ("structure in place of a missing name", parts.total("no name")),
        ("hubness", parts.total("hubness")),
    ]
    return ", ".join(f"{name} {signed(value)}" for name, value in groups if round(value, 3))


def pair_words(pair: NeighbourProduct) -> str:
    return f"{title(pair.source)} with {title(pair.target)}, {ALIGNED_WORDS[pair.aligned]},"


def removal_sentence(found: Intervention, side: Side = "source") -> str:
    """What became of the pair without some triples, as seen from the entity of one graph."""
    count = len(found.removed)
    what = "Without one triple" if count == 1 else f"Without {count:,} triples"
    ranks = f"rank {found.before.rank(side):,} to {found.after.rank(side):,} from the {side}"
    flip = f"the {side}'s decision {'changes' if found.flips(side) else 'stays'}"
    return (
        f"{what} the score goes from {found.before.csls:.3f} to {found.after.csls:.3f} and {ranks}: {flip} "
        "(weights frozen, all other entities and their hubness held fixed)."
    )


def rounds_words(rounds: Sequence[PairRound], selection: str) -> str:
    """The semi-supervised rounds that trained on a pair, and what their selection score is: 'Used as a training pair in rounds 1-4 ...'."""
    numbers = [one.number for one in rounds]
    whole = numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 2
    names = f"{numbers[0]}–{numbers[-1]}" if whole else " and ".join(map(str, numbers)) if len(numbers) < 3 else ", ".join(map(str, numbers))
    scores = dict.fromkeys(f"{one.score:.3f}" for one in rounds)
    told = f"{next(iter(scores))}" if len(scores) == 1 else f"{', '.join(scores)} in this order"
    means = SELECTION_SCORES.get(selection, "the score of the rule that selected it")
    return f"Used as a training pair in round{'s' if len(numbers) > 1 else ''} {names}. Selection score {told}: {means}."


def edge_words(edges: tuple[Edge, ...]) -> str:
    """Relations as they stand in JSON and on the command line: ^name where the entity is the tail."""
    return ", ".join(edge.relation if edge.direction == "out" else f"^{edge.relation}" for edge in edges)


def title(entity: Entity) -> str:
    return f"'{shortened(entity.title, LABEL_LENGTH)}'"


def signed(value: float) -> str:
    """A value with its sign; never a signed zero."""
    return f"{value:+.3f}" if round(value, 3) else "0.000"
