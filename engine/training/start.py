"""What training starts from besides the seed links: pairs that the facts of both graphs imply.

The seed links, equal values, or both are spread over the facts by the probabilistic fixed point (:mod:`engine.decoding.fixed_point`). Training
begins on the seed links and the pairs that come of it. They are a beginning and no more: each round of the semi-supervised variant chooses its own.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from engine.config import RunConfig, SemiConfig, Variant
from engine.data.knowledge_graph import AlignmentTask, empty_links
from engine.decoding import Candidates, GraphEvidence
from engine.decoding.fixed_point import fixed_point
from engine.decoding.matchings import Matchings, proposals_each
from engine.errors import TrainingError
from engine.names.value_start import facts_of, value_candidates, value_pairs, why_no_start
from engine.names.values import SharedValues, shared_values
from engine.training.semi import Pool, Selection, choices_of, drawn_choices, no_selection, selection_pool, taken, without_rejected

Start = Literal["seeds", "triples", "values"]

FEW_LINKS: Final = 20
"""Seed links below which names and other values say more than what the links imply."""
BASIC_NEEDS_LINKS: Final = "the basic variant trains only on known links, and there are none"
"""Of data without seed links."""
VALUE_WEIGHT: Final = 1.0
"""Of half of what values share, beside shared facts, in matchings that are drawn before training."""
START_DRAWS, SURE = 3, 0.5
"""How often these are drawn, each time with the relations that the last ones showed to go together; least share of a pair."""
START_SHARE: Final = 3
"""Part of the proposals of a round that each of them takes."""


def resolve_start(config: SemiConfig, seed_links: int) -> Start:
    """What "auto" means: the triples where there are seed links enough, else values as well."""
    if config.start != "auto":
        return config.start
    return "triples" if seed_links >= FEW_LINKS else "values"


def why_no_seeds(variant: Variant, config: SemiConfig, seed_links: int) -> str:
    """Why a variant cannot train on this number of seed links, whatever the graphs have in common; "" where it can."""
    if seed_links:
        return ""
    if variant == "basic":
        return (
            f"{BASIC_NEEDS_LINKS}; add some, or train the semi or literal variant, which can start from names and values if both graphs share some."
        )
    if resolve_start(config, 0) != "values":
        return (
            f"semi.start={config.start} needs known links, and there are none; add some, or use semi.start=auto, "
            "which starts from names and values that both graphs have."
        )
    return ""


def why_no_baseline(config: RunConfig, seed_links: int) -> str:
    """Why a baseline cannot run on this number of seed links; "" where it can."""
    if seed_links:
        return ""
    return f"the baseline {config.baseline.method} needs known links, and there are none; add some, or train the semi or literal variant of Dual-AMN."


def why_not_trained(task: AlignmentTask, config: RunConfig) -> str:
    """Why a training would be refused for want of seed links and of anything else to start from; "" where it would not be."""
    if config.is_baseline:
        return why_no_baseline(config, len(task.train_links))
    if reason := why_no_seeds(config.variant, config.semi, len(task.train_links)):
        return reason
    if config.variant == "basic" or len(task.train_links):
        return ""
    try:
        implied_pairs(task, config.semi, selection_pool(task, config.semi), config.values.excluded)
    except TrainingError as error:
        return str(error)
    return ""


def start_pairs(task: AlignmentTask, config: SemiConfig, pool: Pool, excluded: frozenset[str] = frozenset(), seed: int = 0) -> Selection:
    """The pairs that training starts with besides the seed links, with the probability of each.

    Args:
        task: its graphs, seed links and pairs that are known to be no links are looked at; no other links.
        config: says what to start from.
        pool: the entities that pairs may be chosen from.
        excluded: attributes whose values are not compared.
        seed: of draws.

    Raises:
        TrainingError: there is nothing to start from.
    """
    implied, values = implied_pairs(task, config, pool, excluded)
    drawn = no_selection() if values is None or not len(implied) else drawn_start(task, values, pool, implied, seed)
    return drawn if len(drawn) else implied


def implied_pairs(task: AlignmentTask, config: SemiConfig, pool: Pool, excluded: frozenset[str]) -> tuple[Selection, SharedValues | None]:
    """The pairs that the fixed point finds, and the values that it looked at, if any.

    Raises:
        TrainingError: there is nothing to start from.
    """
    kind = resolve_start(config, len(task.train_links))
    values = shared_values(task.source, task.target, excluded) if kind == "values" else None
    if not len(task.train_links) and (values is None or not values.keys):
        raise TrainingError(why_no_seeds("semi", config, 0) if values is None else why_no_start(task, values, excluded))
    if kind == "seeds":
        return no_selection(), None
    source, target = facts_of(task, values)
    found = fixed_point(
        source,
        target,
        task.train_links,
        equal_values=None if values is None else value_pairs(task, values),
        rejected=pool.rejected,
        pool=(pool.sources, pool.targets),
    )
    if values is not None and not len(task.train_links) and not len(found.pairs):
        raise TrainingError(why_no_start(task, values, excluded))
    return Selection(found.pairs, found.probabilities.astype(np.float32)), values


def values_in_rounds(task: AlignmentTask, config: SemiConfig, pool: Pool, excluded: frozenset[str]) -> Candidates | None:
    """The pairs of the pool that share names and other values, and how much; None where training starts without these."""
    if resolve_start(config, len(task.train_links)) != "values":
        return None
    values = shared_values(task.source, task.target, excluded)
    return without_rejected(value_candidates(task, values, (pool.sources, pool.targets), empty_links()), pool)


def drawn_start(task: AlignmentTask, values: SharedValues, pool: Pool, implied: Selection, seed: int) -> Selection:
    """The pairs that most drawn matchings have, if these begin with those that the facts imply.

    Where many entities share a value (populations within a tenth), the fixed point decides entity by entity, and mostly wrongly; matchings of all
    together are decided by the triples between them.
    """
    candidates = without_rejected(value_candidates(task, values, (pool.sources, pool.targets), implied.pairs), pool)
    evidence = GraphEvidence.of(task.source, task.target, task.train_links).within(pool.sources, pool.targets)
    matchings = Matchings(evidence, VALUE_WEIGHT, proposals=max(proposals_each(len(pool.sources)) // START_SHARE, 1))
    begin = choices_of(implied, candidates, pool)
    for draw in range(START_DRAWS):
        begin, probabilities = drawn_choices(matchings, candidates, begin, SURE, (seed, draw))
    return taken(begin, candidates.targets, probabilities, pool)
