"""A pair's explanation in a few labelled lines, the most important first, for pages, terminals and programs alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from engine.explanation.decomposition import ScorePart
from engine.explanation.evidence import Explanation
from engine.explore.neighbourhood import Facing
from engine.runs.entities import Entity, short_id
from engine.runs.view import Match, PairScore
from engine.util.text import count, shortened

DOMINATES: Final = 0.05
"""Share of what supporting pairs of neighbours add, from which on the strongest one is named."""
LABEL_LENGTH: Final = 60
FEW: Final = 0.0005
"""A contribution below this rounds to zero."""


@dataclass(frozen=True)
class SummaryLine:
    """One aspect of a pair: a label of one word and a sentence or two."""

    label: str
    text: str

    def __str__(self) -> str:
        return f"{self.label}: {self.text}"


@dataclass(frozen=True)
class ScoreGroup:
    """Parts of a CSLS score, or of the difference of two, that belong together."""

    name: str
    parts: tuple[ScorePart, ...]

    @property
    def value(self) -> float:
        """The sum of the parts."""
        return sum(part.value for part in self.parts)


MISSING: Final = "structure in place of a missing name"
GROUPS: Final = ("own relations", "neighbours", MISSING, "names and values", "proxy correction", "hubness correction")
"""What a score is the sum of, in the order in which it is shown."""


def group_name(part: ScorePart) -> str:
    """The group that a part of a score belongs to."""
    if part.kind == "multi-hop":
        return "own relations" if (part.channel, part.layer) == ("relation", 0) else "neighbours"
    return {"proxies": "proxy correction", "hubness": "hubness correction", "no name": MISSING}.get(part.kind, "names and values")


def grouped_parts(parts: Sequence[ScorePart]) -> tuple[ScoreGroup, ...]:
    """Parts in a few groups; groups whose parts are all nothing are left out."""
    groups = [ScoreGroup(name, tuple(part for part in parts if group_name(part) == name)) for name in GROUPS]
    return tuple(group for group in groups if any(abs(part.value) >= FEW for part in group.parts))


def score_groups(found: Explanation) -> tuple[ScoreGroup, ...]:
    """The score as a sum of at most six groups, the hubness correction last."""
    return grouped_parts(found.decomposition.parts)


def summary_lines(
    found: Explanation, faced: Facing | None = None, rival: Match | None = None, rival_of_target: Match | None = None
) -> tuple[SummaryLine, ...]:
    """What decides about a pair; lines without content are left out.

    Args:
        found: the explanation.
        faced: the neighbourhoods of the two entities; None: what is aligned is not counted.
        rival: the best other candidate of the source.
        rival_of_target: the best other candidate of the target.
    """
    rivals = (("source", rival), ("target", rival_of_target))
    lines = {
        "Match": match_words(found.pair),
        "Basis": basis_words(found),
        "Neighbours": " ".join(neighbour_words(found, faced)),
        "Values": value_words(found),
        "Against": against_words(found),
        "Runner-up": " ".join(f"{rival_words(found.pair, one)} for the {side}." for side, one in rivals if one is not None),
    }
    return tuple(SummaryLine(label, text) for label, text in lines.items() if text)


def match_words(pair: PairScore) -> str:
    """Ranks, probability and score."""
    one, two = quoted_title(pair.source), quoted_title(pair.target)
    pool = "" if pair.pool == "all" else " among the test entities"
    if pair.rank_from_source == pair.rank_from_target == 1:
        ranks = f"{one} and {two} are each other's best match{pool}."
    elif pair.rank_from_source == 1:
        ranks = f"{two} is the best match of {one}{pool}; the other way round it is rank {pair.rank_from_target:,} of {pair.pool_sizes[1]:,}."
    elif pair.rank_from_target == 1:
        ranks = f"{one} is the best match of {two}{pool}; the other way round it is rank {pair.rank_from_source:,} of {pair.pool_sizes[0]:,}."
    else:
        ranks = (
            f"{two} is rank {pair.rank_from_source:,} of {pair.pool_sizes[0]:,} candidates of {one}, "
            f"and {one} rank {pair.rank_from_target:,} of {pair.pool_sizes[1]:,} of {two}{pool}."
        )
    probability = "" if pair.probability is None else f"{capital(pair.probability_word)} {pair.probability:.0%}, "
    return f"{ranks} {probability}CSLS {pair.csls:.3f}."


def basis_words(found: Explanation) -> str:
    """What the positive evidence rests on."""
    total_of = found.decomposition.total
    parts = {"names": total_of("names"), "values": total_of("values"), "graph structure": total_of("multi-hop", "proxies", "no name")}
    positive = sorted(((name, value) for name, value in parts.items() if value >= FEW), key=lambda part: -part[1])
    total = sum(value for _, value in positive)
    if not positive:
        return "Nothing adds to the score."
    first, *rest = positive
    verb = "provides" if first[0] == "graph structure" else "provide"
    words = f"{capital(first[0])} {verb} {first[1] / total:.0%} of the positive evidence ({first[1]:+.3f})."
    more = [f"{name} {'adds' if name == 'graph structure' else 'add'} {value:+.3f}" for name, value in rest]
    return f"{words} {capital(' and '.join(more))}." if more else words


def neighbour_words(found: Explanation, faced: Facing | None) -> Iterator[str]:
    """How many neighbours are aligned, and whether one pair of them dominates."""
    if faced is not None:
        if not faced.total_source and not faced.total_target:
            yield "Neither entity has a neighbour."
            return
        totals = (("source", faced.total_source), ("target", faced.total_target))
        shares = (f"{faced.total_pairs:,} of {total:,} of the {side}" for side, total in totals)
        yield f"{' and '.join(shares)} are aligned with each other."
    supporting = found.neighbours.supporting
    if not supporting or found.neighbours.positive < FEW:
        return
    strongest = supporting[0]
    if strongest.value < DOMINATES * found.neighbours.positive:
        yield "No single neighbour dominates."
    else:
        yield f"Strongest pair: {quoted_title(strongest.source)} and {quoted_title(strongest.target)} ({strongest.value:+.3f})."


def value_words(found: Explanation) -> str:
    """The shared value that adds the most."""
    if found.pair.values is None:
        return ""
    if not found.values:
        return "No compared value is shared." if found.pair.names is None else "Besides the names, no compared value is shared."
    return f"{count(len(found.values), 'value is', 'values are')} shared. The strongest, {found.values[0].words}, adds {found.values[0].value:+.3f}."


def against_words(found: Explanation) -> str:
    """What lowers the score."""
    negative, hubness = found.neighbours.negative, found.decomposition.total("hubness")
    parts = [f"Opposing pairs of neighbours {negative:+.3f}."] if negative <= -FEW else []
    parts += [f"Hubness correction {hubness:+.3f}."] if hubness <= -FEW else []
    return " ".join(parts)


def rival_words(pair: PairScore, rival: Match) -> str:
    """The best other candidate of one of the two."""
    margin = pair.csls - rival.csls
    place = f"margin {margin:+.3f}" if margin >= 0 else f"ahead by {-margin:.3f}"
    return f"{quoted_label(rival)} (CSLS {rival.csls:.3f}, {place})"


def quoted_label(match: Match) -> str:
    return f"'{shortened(match.label or short_id(match.uri), LABEL_LENGTH)}'"


def quoted_title(entity: Entity) -> str:
    return f"'{shortened(entity.title, LABEL_LENGTH)}'"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
