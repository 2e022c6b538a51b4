"""How long a training is: pairs of a step, epochs before the first round, epochs of a round.

What the basic variant reaches depends on its number of steps more than on how many pairs each has: on DBP15K, 99 steps of 512 pairs reach what 100
steps of 1,024 do (benchmarks/RESULTS.md). So its batches are small while there are few of them, and all batches grow with the number of seed links.
Batches of the semi-supervised variants have 1,024 pairs, and 2,048 where there are few seed links and nearly all pairs are selected ones. Eight
rounds of two epochs reach more than four of five: pairs are selected more often, and the wrong ones among them are trained on for less long.
"""

from __future__ import annotations

import math

from engine.config import RunConfig
from engine.training.start import resolve_start

ONE_BATCH = 1024
"""Seed links up to which they make a single batch; pairs of a batch where there are rounds and more seed links."""
SMALL_BATCH, MOST_BATCH = 512, 2048
BATCHES = 15
"""Of an epoch, beyond which they grow instead."""
LEAST_EPOCHS = 11
LEAST_STEPS = 60
LEAST_SMALL_STEPS = 99
"""The same where a batch is not all seed links."""
LEAST_STARTED_EPOCHS, LEAST_STARTED_STEPS, LEAST_LARGE_STEPS = 6, 20, 30
"""The same before the first round where training starts with more than the seed links: rounds soon have better pairs than those. The last number is
of steps that have half of the pairs or more."""
LEAST_ROUND_EPOCHS = 2
LEAST_ROUND_STEPS = 9


def batch_size(config: RunConfig, seed_links: int) -> int:
    """Pairs of a step."""
    if config.training.batch_size is not None:
        return config.training.batch_size
    if seed_links <= ONE_BATCH:
        return ONE_BATCH if config.variant == "basic" else MOST_BATCH
    least = SMALL_BATCH if config.variant == "basic" else ONE_BATCH
    return min(max(least, math.ceil(seed_links / BATCHES)), MOST_BATCH)


def steps_of(pairs: int, size: int) -> int:
    """Steps of an epoch with batches of a size."""
    return max(1, math.ceil(pairs / size))


def default_epochs(config: RunConfig, seed_links: int) -> int:
    """Epochs before the first round if none are set: 11, and as many as make 60 steps on all seed links, or 99 on parts of them.

    On the paper's data (4,500 seed links, 9 steps an epoch) that is 11 epochs; a small data set whose seed links fit one batch gets 60.
    ``training.effort`` is the share of them that is wanted.
    """
    steps = steps_of(seed_links, batch_size(config, seed_links))
    wanted = LEAST_STEPS if steps == 1 else LEAST_SMALL_STEPS
    return math.ceil(config.training.effort * max(LEAST_EPOCHS, math.ceil(wanted / steps)))


def first_epochs(config: RunConfig, seed_links: int, pairs: int) -> int:
    """Epochs before the first round, as set or by default; with more pairs than the seed links as many as make 20 steps (30 on at
    least half of the pairs), and at least 6.

    Args:
        config: settings.
        seed_links: of the data.
        pairs: that training begins with.
    """
    if config.training.epochs:
        return config.training.epochs
    links = max(seed_links, 1)
    if pairs <= links:
        return default_epochs(config, links)
    steps = steps_of(pairs, batch_size(config, links))
    wanted = LEAST_LARGE_STEPS if steps <= 2 else LEAST_STARTED_STEPS
    return math.ceil(config.training.effort * max(LEAST_STARTED_EPOCHS, math.ceil(wanted / steps)))


def round_epochs(config: RunConfig, seed_links: int, pairs: int) -> int:
    """Epochs of a round: 2, and at least 9 optimiser steps; the share of them that ``training.effort`` says.

    Rounds are taken to have twice the pairs that training begins with, or as many where it begins with those that names and values imply.

    Args:
        config: settings.
        seed_links: of the data.
        pairs: that training begins with.
    """
    more = 1 if resolve_start(config.semi, seed_links) == "values" else 2
    steps = steps_of(more * pairs, batch_size(config, seed_links))
    return config.semi.round_epochs or math.ceil(config.training.effort * max(LEAST_ROUND_EPOCHS, math.ceil(LEAST_ROUND_STEPS / steps)))
