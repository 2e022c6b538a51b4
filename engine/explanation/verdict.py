"""A pair's verdict in one line: how likely the two entities are the same, and the facts that decide it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from engine.data.knowledge_graph import SIDES
from engine.explanation.evidence import Explanation
from engine.explanation.explainer import Explainer
from engine.explanation.rivals import runner_up
from engine.explanation.summary import SummaryLine, quoted_label, quoted_title, summary_lines
from engine.explore.neighbourhood import Facing
from engine.runs.entities import folded_label
from engine.runs.verdicts import CONTRADICTION, HELD_OUT, SEED
from engine.runs.view import Match, PairScore
from engine.util.text import count

LEVELS: Final[tuple[tuple[float, str], ...]] = (
    (0.95, "Very likely the same"),
    (0.75, "Probably the same"),
    (0.4, "Uncertain"),
    (0.1, "Probably different"),
    (0.0, "Very likely different"),
)
"""What a calibrated probability means, from which on."""
DIFFERENT: Final = frozenset({"Probably different", "Very likely different"})
TRAINED_ON: Final = "Each other's best match, but the run trained on this pair without a known link"
CLOSE: Final = 0.05
"""A rival with a smaller margin of CSLS is close."""
UNLIKE: Final = 0.3
"""Names with a smaller similarity are different."""


@dataclass(frozen=True)
class PairSummary:
    """The verdict on a pair, and the facts that it rests on."""

    verdict: SummaryLine
    lines: tuple[SummaryLine, ...]


def pair_summary(explainer: Explainer, found: Explanation, faced: Facing) -> PairSummary:
    """The same on every page, on the command line and over HTTP.

    Args:
        explainer: of the run.
        found: the explanation.
        faced: the neighbourhoods of the two entities.

    Raises:
        RunError: a tensor of the run cannot be read.
    """
    ends = found.pair.source.index, found.pair.target.index
    rivals = {side: runner_up(explainer, *ends, found.pair.pool, side) for side in SIDES}
    verdict = verdict_line(found, faced, [one for one in rivals.values() if one is not None])
    return PairSummary(verdict, summary_lines(found, faced, rivals["source"], rivals["target"]))


def verdict_line(found: Explanation, faced: Facing, rivals: Sequence[Match]) -> SummaryLine:
    """For example "Very likely the same: 11 of 12 neighbours match, no close rival."

    Args:
        found: the explanation.
        faced: the neighbourhoods of the two entities.
        rivals: the best other candidate of each of the two entities; fewer where there are none.
    """
    closest = max(rivals, key=lambda rival: rival.csls, default=None)
    level = level_words(found.pair, closest)
    reasons = ", ".join([neighbour_reason(faced), *value_reasons(found), rival_reason(found.pair, closest)])
    return SummaryLine("Verdict", " ".join([f"{level}: {reasons}.", *known_words(found.pair, level)]))


def level_words(pair: PairScore, closest: Match | None) -> str:
    """By the calibrated probability; without one by ranks and margin, and then never "very". A pair that the run trained on without a link
    looks right whether it is or not.
    """
    if pair.verdict == SEED:
        return "Known to be the same (seed link)"
    if pair.probability is not None:
        return next(words for least, words in LEVELS if pair.probability >= least)
    best = pair.rank_from_source == 1, pair.rank_from_target == 1
    if not any(best):
        return "Probably different"
    close = closest is not None and pair.csls - closest.csls < CLOSE
    if close or not all(best):
        return "Uncertain"
    return "Probably the same" if pair.added is None or pair.verdict in HELD_OUT else TRAINED_ON


def neighbour_reason(faced: Facing) -> str:
    """How many neighbours are aligned with each other."""
    one, two = faced.total_source, faced.total_target
    if not one or not two:
        return "no neighbours to compare"
    if one == two:
        return f"{faced.total_pairs:,} of {count(one, 'neighbour')} {'matches' if one == 1 else 'match'}"
    return f"{faced.total_pairs:,} of {one:,} and {faced.total_pairs:,} of {two:,} neighbours match"


def value_reasons(found: Explanation) -> Iterator[str]:
    """Names and values in common, in runs that compare them."""
    pair = found.pair
    if pair.names is not None:
        equal = folded_label(pair.source.title) == folded_label(pair.target.title)
        yield "equal names" if equal else "different names" if pair.names < UNLIKE else f"name similarity {pair.names:.2f}"
    if found.values:
        yield count(len(found.values), "shared value")


def rival_reason(pair: PairScore, closest: Match | None) -> str:
    """Whether another candidate of either entity comes close."""
    if closest is None:
        return "no other candidate"
    margin, title = pair.csls - closest.csls, quoted_label(closest)
    if margin < 0:
        return f"{title} scores higher by {-margin:.3f}"
    return f"{title} is a close rival (margin {margin:+.3f})" if margin < CLOSE else "no close rival"


def known_words(pair: PairScore, level: str) -> Iterator[str]:
    """Whether a known link confirms or contradicts it."""
    if pair.verdict in HELD_OUT:
        yield f"A {HELD_OUT[pair.verdict]} confirms the pair{', so this is an error of the run' if level in DIFFERENT else ''}."
    elif pair.verdict == CONTRADICTION:
        yield f"A known link contradicts the pair: {quoted_title(pair.source)} or {quoted_title(pair.target)} has another counterpart."
