"""What one run bought over another: the two are held against each other test query by test query.

Runs of the same split share their test links, so the ranks that each run stores (table ``query_ranks``) are paired. Runs whose splits differ are
compared on the test links that both have, leaving out every entity that either run was trained or tuned on, and both are ranked again among the
entities of these links alone: with the pools that they were evaluated in, one could look better for having easier rivals.

All of it is about two finished models and these queries. How much another seed would change is a question for several runs of each kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from engine.analysis.entities import LEAST_DEGREES, bucket_names, degree_buckets
from engine.analysis.run_tables import seed_links
from engine.config import unused_sections
from engine.data.knowledge_graph import Side
from engine.decoding import DECODERS
from engine.errors import ComparisonError
from engine.evaluation.decoders import evaluate_decoders
from engine.evaluation.metrics import bootstrap_ends, wilson_interval
from engine.runs.tensors import RunLike, has_table, run_similarity
from engine.util.arrays import BoolArray, FloatArray, IntArray

Rate = Literal["hits@1", "hits@10", "mrr"]

CSLS = "csls"
"""The decoder of the published protocol."""
RANKS = "query_ranks"
RESAMPLES = 1000
ROLES_SEEN = ("train", "valid")
MADE_WITH: Mapping[str, tuple[str, ...]] = {
    "split": ("data", "split"),
    "device": ("device",),
    "precision": ("training", "precision"),
    "engine": ("versions", "engine"),
    "torch": ("versions", "torch"),
}
NOT_USED, NOT_KNOWN = "not used", "not recorded"


@dataclass(frozen=True)
class Outcomes:
    """How a run's decoder did on the queries of one graph.

    Attributes:
        side: graph of the queries.
        queries: (q,) entities, distinct, ascending.
        ranks: (q,) of each query's counterpart; the decoder was right where it is 1, alone.
        answers: (q,) what it gave as the counterpart, an entity of the other graph; -1 for nothing.
    """

    side: Side
    decoder: str
    queries: IntArray  # (q,)
    ranks: IntArray  # (q,)
    answers: IntArray  # (q,)


@dataclass(frozen=True)
class Difference:
    """A rate of the main run less that of the other one.

    Attributes:
        main, other: the two rates.
        interval: 95 %, of paired queries; None where the runs agree on every query, so that there is nothing to estimate it by.
    """

    main: float
    other: float
    interval: tuple[float, float] | None

    @property
    def value(self) -> float:
        return self.main - self.other


@dataclass(frozen=True)
class McNemar:
    """McNemar's test, the exact one: if either run were as likely to win a query that only one gets right, how often would the wins be this uneven?

    Attributes:
        gained, lost: queries that only the main (only the other) run gets right.
        p_value: two-sided, binomial; None where no query is flipped, which shows nothing either way.
    """

    gained: int
    lost: int
    p_value: float | None


@dataclass(frozen=True)
class Comparison:
    """Two runs on the same queries.

    Attributes:
        side: graph of the queries.
        same_split: the runs have the same test links; otherwise both were ranked again on those that they share.
        queries: (q,) entities, ascending.
        main_ranks, other_ranks: (q,) ranks of their counterparts.
        main_answers, other_answers: (q,) as in :class:`Outcomes`.
    """

    side: Side
    decoder: str
    same_split: bool
    queries: IntArray  # (q,)
    main_ranks: IntArray  # (q,)
    other_ranks: IntArray  # (q,)
    main_answers: IntArray  # (q,)
    other_answers: IntArray  # (q,)

    @property
    def gained(self) -> BoolArray:
        """(q,) right in the main run, wrong in the other."""
        gained: BoolArray = (self.main_ranks == 1) & (self.other_ranks != 1)
        return gained

    @property
    def lost(self) -> BoolArray:
        """(q,) wrong in the main run, right in the other."""
        lost: BoolArray = (self.main_ranks != 1) & (self.other_ranks == 1)
        return lost

    def difference(self, rate: Rate, resamples: int = RESAMPLES, seed: int = 0) -> Difference:
        """A rate's difference: of Hits@k with Newcombe's interval, of the MRR with a bootstrap's.

        Args:
            rate: which.
            resamples, seed: of the bootstrap.
        """
        if rate == "mrr":
            main, other = 1.0 / self.main_ranks, 1.0 / self.other_ranks
            return Difference(float(main.mean()), float(other.mean()), bootstrap_interval(main - other, resamples, seed))
        at = 1 if rate == "hits@1" else 10
        hit, other_hit = self.main_ranks <= at, self.other_ranks <= at
        return Difference(float(hit.mean()), float(other_hit.mean()), newcombe_interval(hit, other_hit))

    def mcnemar(self) -> McNemar:
        gained, lost = int(self.gained.sum()), int(self.lost.sum())
        return McNemar(gained, lost, float(binomtest(gained, gained + lost).pvalue) if gained + lost else None)

    def table(self, degrees: IntArray) -> pd.DataFrame:
        """A row a query: entity, degree, bucket (of the degree), main_rank, other_rank, main_answer, other_answer, gained, lost.

        Args:
            degrees: (E,) of the graph's entities.
        """
        of_query = degrees[self.queries]
        return pd.DataFrame(
            {
                "entity": self.queries,
                "degree": of_query,
                "bucket": np.array(bucket_names())[degree_buckets(of_query)],
                "main_rank": self.main_ranks,
                "other_rank": self.other_ranks,
                "main_answer": self.main_answers,
                "other_answer": self.other_answers,
                "gained": self.gained,
                "lost": self.lost,
            }
        )

    def by_degree(self, degrees: IntArray) -> pd.DataFrame:
        """bucket, least_degree, queries, gained, lost; of every bucket, lowest degree first.

        Args:
            degrees: (E,) of the graph's entities.
        """
        counts = self._counts(degree_buckets(degrees[self.queries]), np.arange(len(self.queries)), len(LEAST_DEGREES))
        return pd.DataFrame({"bucket": bucket_names(), "least_degree": LEAST_DEGREES, **counts})

    def by_relation(self, relations: IntArray, entities: IntArray, num_relations: int) -> pd.DataFrame:
        """relation, queries, gained, lost; of the relations that a query has, and a query counts for each of its relations.

        Args:
            relations, entities: (n,) distinct pairs: the entity is head or tail of the relation.
        """
        place = np.full(int(max(entities.max(initial=-1), self.queries.max(initial=-1))) + 1, -1, dtype=np.int64)
        place[self.queries] = np.arange(len(self.queries))
        asked = place[entities] >= 0
        counts = self._counts(relations[asked], place[entities[asked]], num_relations)
        table = pd.DataFrame({"relation": np.arange(num_relations), **counts})
        return table[table["queries"] > 0].reset_index(drop=True)

    def _counts(self, groups: IntArray, places: IntArray, num_groups: int) -> dict[str, IntArray]:
        """(G,) queries, gained and lost of each group; ``places`` (n,) says which query is in which of ``groups`` (n,)."""
        chosen = {"queries": np.ones(len(places), dtype=bool), "gained": self.gained[places], "lost": self.lost[places]}
        return {name: np.bincount(groups[one], minlength=num_groups).astype(np.int64) for name, one in chosen.items()}


# Outcomes


def decoders_of(run: RunLike) -> list[str]:
    """The decoders that a run can be compared by, the published one first; those of a run without stored ranks are the published one alone."""
    if not has_table(run, RANKS):
        return [CSLS]
    return sorted(set(run.table(RANKS, ["decoder"])["decoder"].unique().tolist()) | {CSLS}, key=lambda name: (name != CSLS, name))


def outcomes(run: RunLike, side: Side, decoder: str = CSLS) -> Outcomes:
    """How a run did on its own test links, as it stores it; a run of an older version, which does not, is evaluated again.

    Raises:
        ComparisonError: the run has no test links, or nothing is known of this decoder.
    """
    if not has_table(run, RANKS):
        return evaluated(run, links_of(run, "test"), side, decoder)
    rows = run.table(RANKS, where={"graph": side, "decoder": decoder}).sort_values("entity")
    if not len(rows):
        links_of(run, "test")
        raise ComparisonError(f"run {name_of(run)} has no ranks of the decoder '{decoder}'; choose one of {', '.join(decoders_of(run))}.")
    queries, ranks, answers = (rows[column].to_numpy(dtype=np.int64) for column in ("entity", "rank", "answer"))
    return Outcomes(side, decoder, queries, ranks, answers)


def evaluated(run: RunLike, links: IntArray, side: Side, decoder: str = CSLS) -> Outcomes:
    """How a run does on some links among their entities; takes a second or two where there are 10,000.

    Args:
        links: (L, 2) source and target entities.

    Raises:
        ComparisonError: the decoder looks at the graphs' triples and cannot be run on its own here.
    """
    if decoder not in DECODERS:
        raise ComparisonError(f"decoder '{decoder}' of run {name_of(run)} cannot be evaluated again; compare by {CSLS}, or train the run again.")
    neighbours = int(run.manifest.get("config", {}).get("search", {}).get("csls_k", 10))
    found = evaluate_decoders(run_similarity(run), links, [decoder], neighbours, bootstrap=0, seeds=seed_links(run))[decoder]
    direction, answers = (found.source_to_target, found.source_answers) if side == "source" else (found.target_to_source, found.target_answers)
    return Outcomes(side, decoder, direction.queries, direction.ranks, answers)


def links_of(run: RunLike, *roles: str) -> IntArray:
    """(L, 2) a run's links of some roles, sorted.

    Raises:
        ComparisonError: test links are asked for, and there are none.
    """
    table = run.table("links")
    links: IntArray = table.loc[table["role"].isin(roles), ["source", "target"]].to_numpy(dtype=np.int64)
    if "test" in roles and not len(links):
        raise ComparisonError(f"run {name_of(run)} has no test links, so its accuracy is not known; choose another run.")
    return np.unique(links, axis=0)


def name_of(run: RunLike) -> str:
    return f"{run.manifest.get('dataset')}/{run.manifest.get('run_id')}"


# Comparing


def compare(main: RunLike, other: RunLike, side: Side, decoder: str = CSLS) -> Comparison:
    """Two runs of the same data, query by query.

    Args:
        main, other: finished runs.
        side: graph of the queries.
        decoder: which of the stored ones.

    Raises:
        ComparisonError: the runs are of different data, one has no test links, or they share none that neither has seen.
    """
    if main.manifest["data"]["fingerprint"] != other.manifest["data"]["fingerprint"]:
        raise ComparisonError(f"runs {name_of(main)} and {name_of(other)} were trained on different data; choose two runs on the same data.")
    if np.array_equal(links_of(main, "test"), links_of(other, "test")):
        return paired(outcomes(main, side, decoder), outcomes(other, side, decoder), same_split=True)
    links = shared_links(main, other)
    return paired(evaluated(main, links, side, decoder), evaluated(other, links, side, decoder), same_split=False)


def shared_links(main: RunLike, other: RunLike) -> IntArray:
    """(L, 2) test links of both runs, of whose entities neither run has seen a link.

    Raises:
        ComparisonError: there are none.
    """
    ours, theirs = links_of(main, "test"), links_of(other, "test")
    both = np.concatenate([ours, theirs])
    links, times = np.unique(both, axis=0, return_counts=True)
    seen = np.concatenate([links_of(main, *ROLES_SEEN), links_of(other, *ROLES_SEEN)])
    fair = (times == 2) & ~np.isin(links[:, 0], seen[:, 0]) & ~np.isin(links[:, 1], seen[:, 1])
    if not fair.any():
        raise ComparisonError(
            f"runs {name_of(main)} and {name_of(other)} split the known links differently and share no test links; train both with the "
            f"same random seed."
        )
    shared: IntArray = links[fair]
    return shared


def paired(main: Outcomes, other: Outcomes, *, same_split: bool) -> Comparison:
    """
    Raises:
        ComparisonError: the two are not of the same queries.
    """
    if not np.array_equal(main.queries, other.queries):
        raise ComparisonError("the stored ranks of the two runs cover different test entities; train the older run again.")
    return Comparison(main.side, main.decoder, same_split, main.queries, main.ranks, other.ranks, main.answers, other.answers)


def newcombe_interval(main: BoolArray, other: BoolArray) -> tuple[float, float]:
    """95 % interval of the difference of two shares of the same (q,) queries, q > 0.

    Newcombe (Statistics in Medicine 17, 1998, 2635-2650), method 10: each share's score interval, and how the two go together. Unlike a bootstrap it
    does not shrink to nothing where few queries are flipped.
    """
    n = len(main)
    both, gained, lost, neither = (int(one.sum()) for one in (main & other, main & ~other, ~main & other, ~main & ~other))
    product = (both + gained) * (lost + neither) * (both + lost) * (gained + neither)
    together: float = both * neither - gained * lost
    together = max(together - n / 2, 0) if together > 0 else together
    phi = together / np.sqrt(float(product)) if product else 0.0
    means, sizes = np.array([main.mean(), other.mean()]), np.array([n, n])
    low, high = wilson_interval(means, sizes)
    below, above = means - low, high - means
    value = float(means[0] - means[1])
    down = np.sqrt(below[0] ** 2 - 2 * phi * below[0] * above[1] + above[1] ** 2)
    up = np.sqrt(above[0] ** 2 - 2 * phi * above[0] * below[1] + below[1] ** 2)
    return value - float(down), value + float(up)


def bootstrap_interval(values: FloatArray, resamples: int, seed: int) -> tuple[float, float] | None:
    """95 % percentile interval of the mean of (q,) values over resamples of the queries; None where all are equal."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < 2:
        return None
    low, high = bootstrap_ends(distinct, counts, resamples, seed)
    return float(low), float(high)


# Several runs


def bucket_ranks(several: Sequence[Outcomes], degrees: IntArray, bucket: str, show: Literal["misses", "hits", "all"]) -> pd.DataFrame:
    """The main run's queries of a bucket of degrees, the worst rank first, and how the other runs did on them.

    Args:
        several: of queries of the same graph, the main run's first.
        degrees: (E,) of the graph's entities.
        bucket: one of :func:`engine.analysis.entities.bucket_names`.
        show: queries that the main run misses, those that it gets right, or both.

    Returns:
        entity, degree, answer (the main run's), then ranks in a column a run by its position: Int64, NA where the entity is no query of a run.
    """
    main = several[0]
    inside = degree_buckets(degrees[main.queries]) == bucket_names().index(bucket)
    if show != "all":
        inside &= (main.ranks == 1) == (show == "hits")
    entities = main.queries[inside]
    table = pd.DataFrame({"entity": entities, "degree": degrees[entities], "answer": main.answers[inside]})
    for number, one in enumerate(several):
        table[number] = pd.Series(one.ranks, index=one.queries, dtype="Int64").reindex(entities).array
    order = np.lexsort((entities, -main.ranks[inside]))
    return table.iloc[order].reset_index(drop=True)


def config_differences(manifests: Sequence[Mapping[str, Any]], *, everything: bool = False) -> pd.DataFrame:
    """What was set, or used, differently: ``setting``, then a column a run by its position, as texts.

    A section that a run's variant does not look at differs from nothing.

    Args:
        manifests: of the runs.
        everything: with the settings that all runs share.
    """
    found = [settings_of(manifest) for manifest in manifests]
    names = dict.fromkeys(name for settings in found for name in settings)
    rows = [{"setting": name, **{number: settings.get(name, NOT_KNOWN) for number, settings in enumerate(found)}} for name in names]
    differing = [row for row in rows if len({value for key, value in row.items() if key != "setting" and value != NOT_USED}) > 1]
    return pd.DataFrame(rows if everything else differing, columns=["setting", *range(len(found))])


def settings_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Setting -> value, as texts."""
    config, variant = manifest.get("config", {}), str(manifest.get("variant"))
    unused = unused_sections(variant)
    settings = {"variant": variant, "seed": str(manifest.get("seed"))}
    for section, values in config.items():
        if isinstance(values, Mapping):
            settings |= {f"{section}.{name}": NOT_USED if section in unused else as_text(value) for name, value in values.items()}
    for name, keys in MADE_WITH.items():
        value: Any = manifest
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        settings[name] = NOT_KNOWN if value is None else str(value)
    return settings


def as_text(value: Any) -> str:
    return "default" if value is None else ("yes" if value else "no") if isinstance(value, bool) else str(value)
