"""What counts of all decisions on one data set, updated by what was added since: decisions are only added, so nothing is read twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.reviews.decisions import Decision, Pair


class Ledger:
    """Decisions and withdrawals in the order in which they were kept.

    Attributes:
        last: number of the last row that was added, 0 before the first.
    """

    def __init__(self) -> None:
        self.last = 0
        self._by_number: dict[int, Decision] = {}
        self._kept: dict[tuple[Pair, str], list[int]] = {}
        self._authors: set[str] = set()

    def add(self, number: int, entry: Decision | int) -> None:
        """The next row: a decision, or the number of one that is withdrawn."""
        self.last = number
        if isinstance(entry, Decision):
            self._by_number[number] = replace(entry, withdrawn=False)
            self._authors.add(entry.author)
            self._kept.setdefault((entry.pair, entry.author), []).append(number)
        else:
            withdrawn = self._by_number[entry]
            self._by_number[entry] = replace(withdrawn, withdrawn=True)
            self._kept[withdrawn.pair, withdrawn.author].remove(entry)

    def standing(self) -> list[Decision]:
        """The latest decision of each author on each pair that is not withdrawn, in their order."""
        return self._decisions(numbers[-1] for numbers in self._kept.values() if numbers)

    def on_pair(self, pair: Pair) -> list[Decision]:
        """What counts on one pair, an entry an author."""
        return self._decisions(self._kept[pair, author][-1] for author in sorted(self._authors) if self._kept.get((pair, author)))

    def history(self) -> list[Decision]:
        """All decisions, withdrawn ones included."""
        return self._decisions(self._by_number)

    def _decisions(self, numbers: Iterable[int]) -> list[Decision]:
        return [self._by_number[number] for number in sorted(numbers)]
