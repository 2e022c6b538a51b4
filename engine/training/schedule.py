"""How long a training is: pairs of a step, epochs before the first round, epochs of a round.

What a training reaches depends on its number of steps more than on how many pairs each has: on DBP15K, 99 steps of 512 pairs reach what 100 steps of
1,024 do (benchmarks/RESULTS.md). So batches are small while there are few of them, and grow with the number of seed links.
"""

from __future__ import annotations

import math

from engine.config import SemiConfig, TrainingConfig

ONE_BATCH = 1024
"""Seed links up to which they make a single batch."""
LEAST_BATCH, MOST_BATCH = 512, 2048
BATCHES = 15
"""Of an epoch, beyond which they grow instead."""
LEAST_EPOCHS = 11
LEAST_STEPS = 60
LEAST_SMALL_STEPS = 99
"""The same where a batch is not all seed links."""
LEAST_STARTED_EPOCHS, ENOUGH_STARTED_STEPS = 10, 126
"""Epochs before the first round where training starts with more than the seed links, which are in each; or fewer that make as many steps."""
FEWEST_STARTED_EPOCHS = 6
LEAST_ROUND_EPOCHS, ENOUGH_ROUND_STEPS = 5, 42
"""Epochs of a round, or fewer that make as many steps."""
LEAST_STARTED_ROUND_EPOCHS = 3
"""The same where most of the pairs that training begins with come from the facts of the graphs: rounds are then as long as with many seed links."""
FEWEST_ROUND_EPOCHS = 2
LEAST_ROUND_STEPS = 15


def batch_size(training: TrainingConfig, seed_links: int) -> int:
    """Pairs of a step."""
    if training.batch_size is not None:
        return training.batch_size
    if seed_links <= ONE_BATCH:
        return ONE_BATCH
    return min(max(LEAST_BATCH, math.ceil(seed_links / BATCHES)), MOST_BATCH)


def steps_of(pairs: int, size: int) -> int:
    """Steps of an epoch with batches of a size."""
    return max(1, math.ceil(pairs / size))


def default_epochs(training: TrainingConfig, seed_links: int) -> int:
    """Epochs before the first round if none are set: 11, and as many as make 60 steps on all seed links, or 99 on parts of them.

    On the paper's data (4,500 seed links, 9 steps an epoch) that is 11 epochs; a small data set whose seed links fit one batch gets 60.
    ``training.effort`` is the share of them that is wanted.
    """
    steps = steps_of(seed_links, batch_size(training, seed_links))
    wanted = LEAST_STEPS if steps == 1 else LEAST_SMALL_STEPS
    return math.ceil(training.effort * max(LEAST_EPOCHS, math.ceil(wanted / steps)))


def started_epochs(training: TrainingConfig, seed_links: int, pairs: int) -> int:
    """The same where training starts with more pairs than the seed links: as many steps as these alone would get, and at least 10 epochs.

    Batches that are small make do with the epochs that 126 steps take.
    """
    size = batch_size(training, seed_links)
    steps = steps_of(pairs, size)
    least = _enough(training, seed_links, LEAST_STARTED_EPOCHS, FEWEST_STARTED_EPOCHS, ENOUGH_STARTED_STEPS, steps)
    alone = default_epochs(training, seed_links) * steps_of(seed_links, size)
    return max(math.ceil(training.effort * least), math.ceil(alone / steps))


def round_epochs(config: SemiConfig, training: TrainingConfig, seed_links: int, pairs: int, *, started: bool = False) -> int:
    """Epochs of a round: the paper's 5, or fewer of small batches that make 42 steps, and at least 15 steps; the share that ``training.effort`` says.

    Args:
        config, training: settings.
        seed_links: of the data.
        pairs: that training begins with.
        started: whether most of them come from the facts of the graphs, and few are seed links; then 3 epochs are as good as 5.
    """
    steps = steps_of(pairs, batch_size(training, seed_links))
    most = LEAST_STARTED_ROUND_EPOCHS if started else LEAST_ROUND_EPOCHS
    least = max(_enough(training, seed_links, most, FEWEST_ROUND_EPOCHS, ENOUGH_ROUND_STEPS, steps), math.ceil(LEAST_ROUND_STEPS / steps))
    return config.round_epochs or math.ceil(training.effort * least)


def _enough(training: TrainingConfig, seed_links: int, epochs: int, fewest: int, steps: int, steps_of_epoch: int) -> int:
    """Epochs, or where batches are chosen to be small fewer that make ``steps``."""
    if training.batch_size is not None or seed_links <= ONE_BATCH:
        return epochs
    return min(epochs, max(fewest, math.ceil(steps / steps_of_epoch)))
