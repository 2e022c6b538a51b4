"""Runs to look at for whoever comes without any: a sample data set in every variant, one after the other.

What exists is never trained again, and who has runs of other data is not made to wait. A training that was interrupted is not finished, so it is
resumed the next time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.config import Variant
from engine.data import safe_name
from engine.runs import RunStore


@dataclass(frozen=True)
class Step:
    """A variant to be trained, and the words shown meanwhile.

    Attributes:
        does: what it does, in half a sentence.
        takes: how long about, on the sample data and two cores.
    """

    variant: Variant
    does: str
    takes: str


STEPS = (
    Step("basic", "learns from structure and seed links", "about a minute"),
    Step("semi", "goes on with the pairs that it is sure of, round by round", "a few minutes"),
    Step("literal", "adds names to the semi run", "about a minute"),
)


def missing_steps(store: RunStore, folder: Path) -> tuple[Step, ...]:
    """What is to be trained before there is a run of each variant; nothing where other data has runs, or has begun one.

    Args:
        store: where runs are kept.
        folder: the sample data set.
    """
    sample = safe_name(folder)
    summaries = store.list()
    if any(summary.dataset != sample for summary in summaries):
        return ()
    finished = {summary.variant for summary in summaries if summary.state == "finished"}
    return tuple(step for step in STEPS if step.variant not in finished)
