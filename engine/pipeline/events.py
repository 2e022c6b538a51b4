"""What a training reports while it runs, and its words for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.data import AlignmentTask
from engine.data.knowledge_graph import Finding
from engine.data.splits import OWN_TRAIN_RATIO, WORTH_A_TEST
from engine.training.semi import Round
from engine.training.trainer import Progress
from engine.util.text import count, duration

NOTE = "note"


@dataclass(frozen=True)
class Phase:
    """A part of the work begins (or, by the name ``NOTE``, something is to be known of it); ``detail`` is for people."""

    name: str
    detail: str


Listener = Callable[[Phase | Progress | Round], None]


def event_text(event: Phase | Progress | Round) -> str:
    """One line of progress for a terminal."""
    if isinstance(event, Phase):
        return event.detail
    if isinstance(event, Round):
        return round_text(event)
    validation = "".join(f"  validation {name} {value:.3f}" for name, value in (event.validation or {}).items())
    left = "" if event.remaining is None else f"  {duration(event.remaining)} left"
    return f"epoch {event.epoch:>3}/{event.epochs}  loss {event.loss:8.3f}{validation}{left}"


def round_text(event: Round) -> str:
    """What a semi-supervised round begins with, or training before the first (round 0)."""
    if event.parent:
        right = "" if event.right is None else f" ({event.right:,} of {event.known:,} correct where a link is known)"
        return f"start: {count(event.selected, 'training pair')} carried over from {event.parent}{right}"
    if not event.selected and not event.number:
        return "start: the facts of both graphs imply no further pairs; training starts with the seed links"
    if not event.selected:
        return f"round {event.number}/{event.rounds}: no pair is confident enough among {event.pool}; training continues with the seed links"
    truth = "" if event.right is None else f", {event.right:,} of {event.known:,} correct where a link is known"
    if not event.number:
        found = "" if event.right is None else f" ({event.right:,} of {event.known:,} correct where a link is known)"
        return f"start: {count(event.selected, 'pair')} from {event.pool} implied by the facts of both graphs{found}"
    return f"round {event.number}/{event.rounds}: {count(event.selected, 'pair')} from {event.pool} ({event.new:,} new{truth})"


def note_on(finding: Finding) -> str:
    return " ".join([f"{finding.severity}:", finding.message, finding.advice]).rstrip()


def describe_task(task: AlignmentTask) -> str:
    """One line for people."""
    graphs = " and ".join(
        f"{count(graph.num_entities, 'entity', 'entities')} with {count(graph.num_triples, 'triple')}" for graph in (task.source, task.target)
    )
    return (
        f"{graphs}; {len(task.train_links):,} seed, {len(task.valid_links):,} validation, {count(len(task.test_links), 'test link')} ({task.split})"
    )


def unmeasured(task: AlignmentTask) -> Iterator[str]:
    """The note for a training whose accuracy no link can measure."""
    known = len(task.train_links) + len(task.valid_links)
    links = f"all {count(known, 'known link')} used for training" if known else "no known links"
    yield f"{links}, so accuracy is not measured"
    yield "review a random sample of the matches to estimate it"
    if known >= WORTH_A_TEST:
        yield f"--train-ratio {OWN_TRAIN_RATIO:g} holds out 20% of the links for testing"


def parts_text(parts: Sequence[Mapping[str, Any]]) -> str:
    """On what a training was computed, from which epoch on."""
    words = []
    for part in parts:
        where = [count(int(part["threads"]), "thread"), *([str(part["device"])] if "device" in part else [])]
        where += [f"{part['processes']} processes"] if part.get("processes", 1) > 1 else []
        words.append(f"{', '.join(where)} from epoch {part['from_epoch']}")
    return "; ".join(words)
