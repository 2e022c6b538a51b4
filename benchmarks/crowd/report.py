"""What is reported of a crowd, and which goals it misses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.crowd.record import Interaction, Record, misplaced, shared_looks
from benchmarks.crowd.server import LAST, Server
from benchmarks.tables import markdown
from engine.reviews import Decision
from engine.util.text import count

SECONDS: Final = 2.0
MEMORY: Final = 2048.0  # MiB
FLAT: Final = 10.0  # MiB a minute
GOALS: Final = (
    f"no error, 95% of interactions below {SECONDS:g} s, server below {MEMORY / 1024:g} GiB and flat (under {FLAT:g} MiB per minute) at the end"
)
LISTED: Final = 20


@dataclass(frozen=True)
class Outcome:
    """Everything that a crowd left behind.

    Attributes:
        warm: seconds of the first visit to every page, before the crowd.
        log: what the server wrote to standard error.
        history: all decisions of the store, in their order.
        load: of the machine at the end: means of the last 1, 5 and 15 minutes.
    """

    sessions: int
    browsers: int
    pause: tuple[float, float]
    seed: int
    warm: float
    record: Record
    server: Server
    log: str
    history: Sequence[Decision]
    load: tuple[float, float, float]

    @property
    def tracebacks(self) -> int:
        return self.log.count("Traceback (most recent call last)")

    @property
    def wrong_decisions(self) -> list[str]:
        return misplaced(self.record.answers, self.history)

    @property
    def shared(self) -> list[str]:
        return shared_looks(self.record.looks)


def missed(outcome: Outcome) -> list[str]:
    """The goals that were missed, one sentence each."""
    found = []
    problems = [*outcome.record.problems, *outcome.wrong_decisions, *outcome.shared]
    if problems or outcome.tracebacks:
        found.append(f"{count(len(problems), 'problem')}, {count(outcome.tracebacks, 'traceback')} in the server's log.")
    if not outcome.record.interactions:
        return [*found, "No interaction came to its end."]
    if (slow := quantile(outcome.record.interactions, 95)) >= SECONDS:
        found.append(f"95% of interactions took up to {slow:.2f} s.")
    if outcome.server.peak >= MEMORY:
        found.append(f"The server had up to {outcome.server.peak:,.0f} MiB.")
    if outcome.server.slope() >= FLAT:
        found.append(f"At the end, memory grew by {outcome.server.slope():.1f} MiB per minute.")
    return found


def quantile(interactions: Sequence[Interaction], percent: float) -> float:
    return float(np.percentile([one.seconds for one in interactions], percent))


def report(outcome: Outcome) -> str:
    """As Markdown."""
    record, server = outcome.record, outcome.server
    lines = [
        f"{outcome.sessions} sessions, {outcome.browsers} of them in browsers, for {server.seconds / 60:.1f} minutes; "
        f"{outcome.pause[0]:g} to {outcome.pause[1]:g} s from an answer to the next click; random seed {outcome.seed}; "
        f"{outcome.warm:.0f} s before that for a first visit to every page of each run; "
        f"load of the machine {', '.join(f'{one:.1f}' for one in outcome.load)} (1, 5, 15 minutes).",
        f"{len(record.interactions):,} interactions, {len(record.problems)} errors, {outcome.tracebacks} tracebacks in the server's log; "
        f"{record.downloads} downloads, {record.trainings} trainings.",
        _decisions(outcome),
        _memory(server, len(record.interactions)),
        timings(record.interactions),
        *_listed("Problems", [*record.problems, *outcome.wrong_decisions, *outcome.shared]),
        *_listed("Errors that pages showed in words", record.notes),
        "\n".join(f"MISSED: {words}" for words in missed(outcome)) or f"All goals are met: {GOALS}.",
    ]
    return "\n\n".join(filter(None, lines))


def _decisions(outcome: Outcome) -> str:
    made = [one for several in outcome.record.answers.values() for one in several]
    decided, undone = sum(one.verdict is not None for one in made), sum(one.verdict is None for one in made)
    return (
        f"{decided:,} decisions confirmed and {undone} undone by {len(outcome.record.answers)} reviewers; {len(outcome.history):,} stored; "
        f"{len(outcome.wrong_decisions)} lost, doubled or on another pair; {len(outcome.record.looks):,} pairs shown, "
        f"{len(outcome.shared)} to two reviewers at once."
    )


def _memory(server: Server, interactions: int) -> str:
    moments = [f"{server.at(server.seconds * part / 5):,.0f}" for part in range(6)]
    last = min(LAST, server.seconds / 2)
    return (
        f"Server: {', '.join(moments)} MiB at each fifth of the time, at most {server.peak:,.0f} MiB, "
        f"{server.own:,.0f} without pages of files; {server.slope():+.1f} MiB per minute "
        f"in the last {last / 60:.1f} minutes; at most {server.threads} threads; {server.processor:,.0f} s of processor time, "
        f"{1000 * server.processor / max(interactions, 1):,.0f} ms per interaction. "
        f"Its process for searches had at most {server.helpers:,.0f} MiB."
    )


def timings(interactions: Sequence[Interaction]) -> str:
    """Seconds, of all and by kind, by page and by who it was."""
    groups: dict[str, list[Interaction]] = defaultdict(list)
    for one in interactions:
        groups["all"].append(one)
        groups["in browsers" if one.browser else "in other sessions"].append(one)
        groups[f"kind: {one.kind}"].append(one)
        groups[f"page: {one.page}"].append(one)
    rows = [
        [name, f"{len(several):,}", *(f"{quantile(several, percent):.2f}" for percent in (50, 95, 100))] for name, several in sorted(groups.items())
    ]
    return markdown(["interactions", "number", "median, s", "95%, s", "longest, s"], rows)


def _listed(heading: str, words: Iterable[str]) -> list[str]:
    found = Counter(words)
    lines = [f"- {text}{f' ({times} times)' if times > 1 else ''}" for text, times in found.most_common(LISTED)]
    more = [f"- and {len(found) - LISTED} more"] if len(found) > LISTED else []
    return [f"{heading}:\n" + "\n".join([*lines, *more])] if found else []
