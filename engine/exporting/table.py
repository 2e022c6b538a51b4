"""What is to be exported: pairs by number, and their texts chunk by chunk, so that a million pairs need no million texts at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import engine
from engine.alignment_table import Alignment, Precision
from engine.datasets.knowledge_graph import IntArray
from engine.exporting.reviewed import Ends, ReviewedPair
from engine.matching import RunView
from engine.wording import count

ROWS_AT_ONCE = 2**15
SEED = "seed link"
COLUMNS: tuple[str, ...] = (
    "source",
    "target",
    "source_label",
    "target_label",
    "csls",
    "cosine",
    "probability",
    "verdict",
    "review",
    "reviewers",
    "run",
)
NUMBERS = ("csls", "cosine", "probability")
TEXTS = tuple(name for name in COLUMNS if name not in NUMBERS)


@dataclass(frozen=True)
class Origin:
    """Where the pairs come from.

    Attributes:
        run: ``dataset/run_id``.
        created: ISO 8601 time at which the run was finished.
        version: of the engine that trained it.
        decoder: what made an alignment of the scores.
        names: whether names were compared besides the graphs' structure.
        graphs: names of the source and the target graph.
    """

    run: str
    created: str
    version: str
    decoder: str
    names: bool
    graphs: tuple[str, str]

    @classmethod
    def of(cls, view: RunView, decoder: str) -> Origin:
        manifest: Mapping[str, Any] = view.run.manifest
        return cls(
            run=f"{manifest['dataset']}/{manifest['run_id']}",
            created=str(manifest["created"]),
            version=str(manifest.get("versions", {}).get("engine", engine.__version__)),
            decoder=decoder,
            names=bool(manifest.get("literal")),
            graphs=(view.graphs["source"].name, view.graphs["target"].name),
        )


@dataclass(frozen=True)
class ExportTable:
    """n pairs to be exported.

    Attributes:
        view: of the run.
        origin: where they come from.
        alignment: that they are rows of.
        positions: (n,) which rows.
        accepted: those that reviewers accepted, by number of source and target.
    """

    view: RunView
    origin: Origin
    alignment: Alignment
    positions: IntArray
    accepted: Mapping[Ends, ReviewedPair] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.positions)

    def head(self, rows: int) -> ExportTable:
        """The first pairs."""
        return replace(self, positions=self.positions[:rows])

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """(n,), (n,) numbers of the source and target entities."""
        own, theirs = (self.alignment.rows[name].to_numpy(dtype=np.int64)[self.positions] for name in ("entity", "match"))
        return (own, theirs) if self.alignment.side == "source" else (theirs, own)

    def identifiers(self) -> Iterator[tuple[list[str], list[str]]]:
        """Identifiers of sources and targets, in chunks."""
        for start in range(0, len(self), ROWS_AT_ONCE):
            source, target = (end[start : start + ROWS_AT_ONCE].tolist() for end in self.ends)
            yield [self.view.graphs["source"].uris[one] for one in source], [self.view.graphs["target"].uris[one] for one in target]

    def chunks(self) -> Iterator[pd.DataFrame]:
        """All pairs with ``COLUMNS``, some at a time; one empty chunk where there are none. Texts are as the data has them."""
        for start in range(0, max(len(self), 1), ROWS_AT_ONCE):
            yield self._chunk(slice(start, start + ROWS_AT_ONCE))

    def _chunk(self, part: slice) -> pd.DataFrame:
        rows = self.alignment.rows.iloc[self.positions[part]]
        source, target = (end[part].tolist() for end in self.ends)
        graphs = self.view.graphs
        reviewed = [self.accepted.get(ends) for ends in zip(source, target, strict=True)]
        texts = {
            "source": [graphs["source"].uris[one] for one in source],
            "target": [graphs["target"].uris[one] for one in target],
            "source_label": [graphs["source"].labels[one] for one in source],
            "target_label": [graphs["target"].labels[one] for one in target],
            "verdict": rows["verdict"].astype(str).tolist(),
            "review": ["" if one is None else "accepted" for one in reviewed],
            "reviewers": ["" if one is None else listed(one.reviewers) for one in reviewed],
            "run": [self.origin.run] * len(rows),
        }
        numbers = {name: rows[name].to_numpy(dtype=np.float32) for name in NUMBERS}
        columns: Mapping[str, Any] = {name: pd.Series(values, dtype="str") for name, values in texts.items()} | numbers
        return pd.DataFrame({name: columns[name] for name in COLUMNS})

    def expectation(self) -> Expectation:
        """How many of the pairs are right, as far as that can be told."""
        rows = self.alignment.rows.iloc[self.positions]
        probability: npt.NDArray[np.float64] = rows["probability"].to_numpy(dtype=np.float64)
        known = probability[~np.isnan(probability)]
        return Expectation(
            pairs=len(self),
            seeds=int((rows["verdict"] == SEED).sum()),
            accepted=sum(ends in self.accepted for ends in zip(*(end.tolist() for end in self.ends), strict=True)) if self.accepted else 0,
            estimated=len(known),
            precision=float(known.mean()) if len(known) else None,
            measured=self.alignment.precision(self.positions),
        )


def listed(names: Iterable[str]) -> str:
    """Names with bars between, as in SSSOM, whose tools know no escape: a bar within a name becomes a full-width one, so that no name becomes two."""
    return "|".join(name.replace("|", "｜") for name in names)


@dataclass(frozen=True)
class Expectation:
    """How good pairs are to be expected.

    Attributes:
        pairs: all.   seeds: seed links among them.   accepted: those that reviewers accepted.   estimated: those that have a probability.
        precision: share of these that should be right, the mean of their probabilities; None where none has one.
        measured: how many are right of those that known links tell of.
    """

    pairs: int
    seeds: int
    accepted: int
    estimated: int
    precision: float | None
    measured: Precision

    def sentence(self) -> str:
        """What to tell the user of it."""
        told = [f"{count:,} {words}" for count, words in ((self.seeds, "seed links"), (self.accepted, "accepted by reviewers")) if count]
        among = f", among them {' and '.join(told)}" if told else ""
        parts = [f"{count(self.pairs, 'pair')}{among}."]
        if self.precision is not None:
            parts.append(f"By their probabilities {self.precision:.1%} of {self.estimated:,} should be right.")
        if self.measured.judged:
            low, high = self.measured.interval
            parts.append(
                f"Known links tell of {self.measured.judged:,}: {self.measured.share:.1%} are right (95 % interval {low:.1%} to {high:.1%})."
            )
        return " ".join(parts)
