"""What was asked for, and what a report makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.runs import Experiment, Result


@dataclass(frozen=True)
class Plan:
    """Data sets x variants x seeds, and settings for all of them."""

    data: tuple[Path, ...]
    variants: tuple[str, ...]
    seeds: tuple[int, ...]
    settings: tuple[str, ...] = ()

    def experiments(self, kinds: Mapping[str, Sequence[str]], defaults: Sequence[str] = ()) -> list[Experiment]:
        """Every kind with every seed.

        Args:
            kinds: label -> settings of its own.
            defaults: settings that the plan's own replace.
        """
        return [
            Experiment(data, variant, seed, (*defaults, *self.settings, *own), label)
            for data, variant, (label, own), seed in product(self.data, self.variants, kinds.items(), self.seeds)
        ]


def no_files(results: Sequence[Result]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Report:
    """A table, from the runs that it needs to its text.

    Attributes:
        about: for the command line's help.
        experiments: the runs that it needs.
        table: Markdown; of some of the results while others are still to come.
        files: further files by name.
    """

    about: str
    experiments: Callable[[Plan], list[Experiment]]
    table: Callable[[Sequence[Result]], str]
    files: Callable[[Sequence[Result]], Mapping[str, str]] = no_files
