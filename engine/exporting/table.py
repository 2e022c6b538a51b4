"""What is to be exported: pairs by number, and their texts chunk by chunk, so that a million pairs need no million texts at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine import __version__
from engine.data.knowledge_graph import SIDES, Side
from engine.explore.alignment import Alignment, Precision
from engine.exporting.reviewed import DecidedPair, Ends
from engine.runs.verdicts import SEED
from engine.runs.view import UNCHECKED, RunView
from engine.util.arrays import IntArray
from engine.util.text import count

ROWS_AT_ONCE = 2**15
COLUMNS: tuple[str, ...] = (
    "source",
    "target",
    "source_label",
    "target_label",
    "csls",
    "cosine",
    "probability",
    "ties",
    "verdict",
    "review",
    "reviewers",
    "run",
)
NUMBERS = ("csls", "cosine", "probability")
COUNTS = ("ties",)
TEXTS = tuple(name for name in COLUMNS if name not in (*NUMBERS, *COUNTS))


@dataclass(frozen=True)
class Origin:
    """Where the pairs come from.

    Attributes:
        run: ``dataset/run_id``.
        created: ISO 8601 time at which the run was finished.
        version: of the engine that trained it.
        decoder: what made an alignment of the scores.
        names: whether names were compared besides the graphs' structure.
        known_links: whether known links are in it because they are known, and not because the model found them.
        graphs: names of the source and the target graph.
    """

    run: str
    created: str
    version: str
    decoder: str
    names: bool
    known_links: bool
    graphs: tuple[str, str]

    @classmethod
    def of(cls, view: RunView, decoder: str, known_links: bool = False) -> Origin:
        manifest: Mapping[str, Any] = view.run.manifest
        return cls(
            run=f"{manifest['dataset']}/{manifest['run_id']}",
            created=str(manifest["created"]),
            version=str(manifest.get("versions", {}).get("engine", __version__)),
            decoder=decoder,
            names=bool(manifest.get("literal")),
            known_links=known_links,
            graphs=(view.graphs["source"].name, view.graphs["target"].name),
        )


@dataclass(frozen=True)
class Conflicts:
    """What is at odds in an export, and what gave way.

    Attributes:
        contradicting: pairs that contradict a known link.
        contradicting_seeds: of these, pairs that share an entity with a seed link.
        shared: for each graph, entities that are in several pairs.
        tied: pairs beside which another candidate scores the same; which of them is right, the scores do not say.
        replaced: predictions that gave way to known links and accepted pairs. (Of the whole alignment, like the two below.)
        overruled: known links that gave way to reviewers.
        emptied: of the entities that these predictions were made for, those that are in no pair now: one-to-one matching gives them their next free
            candidate, other decoders give them none.
        without: entities of the graph whose matches are taken that are in no pair.
        contradictions: pairs of pairs that contradict the graphs' hierarchies.
        repaired: pairs that were left out because they did.
    """

    contradicting: int
    contradicting_seeds: int
    shared: Mapping[Side, int]
    tied: int
    replaced: int
    overruled: int
    without: int
    emptied: int = 0
    contradictions: int = 0
    repaired: int = 0

    def sentences(self) -> list[str]:
        """Sentences for the user."""
        against = f"{count(self.contradicting, 'pair contradicts', 'pairs contradict')} a known link" if self.contradicting else ""
        seeds = f" ({self.contradicting_seeds:,} a seed link)" if self.contradicting else ""
        shared = " and ".join(f"{self.shared[side]:,} {side}" for side in SIDES if self.shared[side])
        several = f"{shared} {'entity is' if sum(self.shared.values()) == 1 else 'entities are'} in several pairs" if shared else ""
        found = [f"Conflicts: {'; '.join(part for part in (against + seeds, several) if part)}." if against or several else "No conflicts."]
        if self.replaced:
            left = f", which leaves {count(self.emptied, 'entity', 'entities')} without a pair" if self.emptied else ""
            found.append(f"{count(self.replaced, 'prediction')} replaced by known links or accepted pairs{left}.")
        if self.overruled:
            found.append(f"{count(self.overruled, 'known link')} overruled by reviewers' decisions.")
        if self.repaired:
            found.append(f"{count(self.repaired, 'pair')} left out because a stronger pair, or a declared disjointness, contradicts them.")
        if self.contradictions:
            words = count(self.contradictions, "contradiction")
            found.append(f"{words} with the class hierarchies remain{'s' if self.contradictions == 1 else ''}; --repair leaves out the weaker pairs.")
        if self.tied:
            found.append(f"{count(self.tied, 'pair')} had an equally good candidate (column ties).")
        return found


@dataclass(frozen=True)
class HomeFigure:
    """The accuracy that the page Home shows of a run, which measures something else than an export does.

    Attributes:
        hits_at_1: target to source.
        pool: its candidates.
    """

    hits_at_1: float
    pool: int

    @classmethod
    def of(cls, view: RunView) -> HomeFigure | None:
        """None where nothing was measured."""
        metrics = view.run.metrics or {}
        found = metrics.get("target_to_source", {}).get("hits@1")
        return None if found is None else cls(float(found), view.pool_size("source", "test"))

    def sentence(self) -> str:
        return (
            f"The run's Hits@1 of {self.hits_at_1:.3f} is not comparable: it is measured from target to source and only among {self.pool:,} test "
            "entities, which is easier."
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
        measured: how many predictions of this kind are right where validation and test links decide; None where that cannot be measured.
        conflicts: contradictions in the export; None where they were not counted.
        apart: mappings of the data that say less than equality (source, target, relation, confidence), for formats that can say so.
        least: the minimum probability of the predictions; None without one.
    """

    view: RunView
    origin: Origin
    alignment: Alignment
    positions: IntArray
    accepted: Mapping[Ends, DecidedPair] = field(default_factory=dict)
    measured: Precision | None = None
    conflicts: Conflicts | None = None
    apart: pd.DataFrame = field(default_factory=pd.DataFrame)
    least: float | None = None

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
        numbers["probability"] = np.where([one is None for one in reviewed], numbers["probability"], np.float32(np.nan))
        counts = {name: rows[name].to_numpy(dtype=np.int32) for name in COUNTS}
        columns: Mapping[str, Any] = {name: pd.Series(values, dtype="str") for name, values in texts.items()} | numbers | counts
        return pd.DataFrame({name: columns[name] for name in COLUMNS})

    def expectation(self) -> ExpectedQuality:
        """How many of the pairs are right, as far as that can be estimated."""
        rows = self.alignment.rows.iloc[self.positions]
        verdicts, certain = rows["verdict"], rows["settled"].to_numpy(dtype=np.bool_)
        ends = zip(*(end.tolist() for end in self.ends), strict=True)
        accepted = np.fromiter((one in self.accepted for one in ends), dtype=np.bool_, count=len(rows)) if self.accepted else np.zeros_like(certain)
        probability: npt.NDArray[np.float64] = rows["probability"].to_numpy(dtype=np.float64)
        guessed = probability[~np.isnan(probability) & ~certain]
        return ExpectedQuality(
            pairs=len(self),
            seeds=int((verdicts == SEED).sum()),
            links=int(np.count_nonzero(certain & ~accepted & (verdicts != SEED).to_numpy())),
            accepted=int(accepted.sum()),
            estimated=len(guessed),
            without_probability=int(np.count_nonzero(np.isnan(probability) & ~certain & (verdicts != SEED).to_numpy())),
            least=self.least,
            precision=float(guessed.mean()) if len(guessed) else None,
            measured=self.measured,
            conflicts=self.conflicts,
            home=HomeFigure.of(self.view),
            unchecked=self.view.unchecked_probabilities,
        )


def listed(names: Iterable[str]) -> str:
    """Names with bars between, as in SSSOM, whose tools have no escape: a bar within a name becomes a full-width one, so that no name becomes two."""
    return "|".join(name.replace("|", "｜") for name in names)


UNMEASURED: Final = "Predictions of this run have no probabilities, and no known links measure them: review a random sample before you rely on them."


@dataclass(frozen=True)
class ExpectedQuality:
    """How good pairs are to be expected.

    Attributes:
        pairs: all.
        seeds: seed links among them.
        links: validation and test links that are in because they are known.
        accepted: those that reviewers accepted.
        estimated: those that are in by their scores and have a probability.
        precision: share of these that should be right, the mean of their probabilities; None where none has one.
        measured: how many predictions are right, of those that validation and test links decide; None where that cannot be measured.
        conflicts: what is at odds.
        home: the figure on the page Home.
        unchecked: whether the probabilities were estimated without held-out links; then only pairs that are each other's best match have one.
        without_probability: predictions that have none, so that ``precision`` says nothing of them.
        least: the minimum probability of the predictions; None without one.
    """

    pairs: int
    seeds: int
    links: int
    accepted: int
    estimated: int
    precision: float | None
    measured: Precision | None
    conflicts: Conflicts | None
    home: HomeFigure | None
    unchecked: bool = False
    without_probability: int = 0
    least: float | None = None

    def kinds(self) -> list[str]:
        """Those that are certain, by kind."""
        kinds = ((self.seeds, SEED), (self.links, "other known link"))
        found = [count(number, words) for number, words in kinds if number]
        return [*found, f"{self.accepted:,} accepted by reviewers"] if self.accepted else found

    def not_covered(self) -> str:
        """How many predictions have no probability, and why."""
        number, one = self.without_probability, self.without_probability == 1
        has, it = ("has", "it") if one else ("have", "them")
        best = "pairs that are each other's best match" if self.unchecked else "the best match of an entity without a seed link"
        verb = "get" if self.unchecked else "gets"
        return f"{count(number, 'further prediction')} {has} no probability, as only {best} {verb} one; this figure does not cover {it}."

    def sentence(self) -> str:
        """One line for the user."""
        among = self.kinds()
        listed = ", ".join(among[:-1]) + " and " * (len(among) > 1) + among[-1] if among else ""
        parts = [f"{count(self.pairs, 'pair')}{f', among them {listed}' if listed else ''}."]
        parts += [f"Minimum probability {self.least:.3f}."] if self.least else []
        if self.conflicts is not None:
            parts += self.conflicts.sentences()
        if self.precision is not None:
            parts.append(f"Expected precision {self.precision:.1%} (mean probability of {count(self.estimated, 'prediction')}).")
            parts += [self.not_covered()] if self.without_probability else []
            if self.unchecked:
                parts.append(UNCHECKED)
        elif self.without_probability and not (self.measured and self.measured.judged):
            parts.append(UNMEASURED)
        if self.measured is not None and self.measured.judged:
            low, high = self.measured.interval
            share = f"{self.measured.share:.1%} (95% interval {low:.1%} to {high:.1%}, n = {self.measured.judged:,})"
            parts.append(f"Precision on validation and test links: {share}.")
            parts += [self.home.sentence()] if self.home else []
        return " ".join(parts)
