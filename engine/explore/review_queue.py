"""What to review next: the matches of a run in the order in which a look at them is worth most.

A row of the queue is a source entity with its best match (:class:`engine.explore.alignment.Alignment`). Seed links are never asked about, and what
pairs that known links decide are included on request only. Everything is computed on whole columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np

from engine.data.knowledge_graph import SIDES, Side
from engine.evaluation.metrics import rate_interval
from engine.explore.alignment import Alignment
from engine.explore.hierarchy import Reason
from engine.reviews import Choice, Decision, ReviewStore, Verdict, snapshot_of
from engine.reviews.decisions import Pair
from engine.runs.verdicts import KNOWN
from engine.runs.view import PairScore, RunView
from engine.util.arrays import BoolArray, FloatArray, IntArray
from engine.util.text import count

Kind = Literal["uncertain", "conflicts", "hierarchy", "sure", "second", "again", "sample"]

SURE_PROBABILITY = 0.95
SURE_MARGIN = 0.3
"""In runs without probabilities: what is that far ahead is seldom wrong, yet nothing says how seldom."""
JUDGED = ("right", "wrong")
"""What known links may say of a pair besides that it is a seed link; such pairs are asked about only on request."""


@dataclass(frozen=True)
class SurePairs:
    """Pairs that a run is so sure of that they may be accepted together.

    Attributes:
        rows: of the alignment, the most probable first. No two share a target.
        expected_wrong: how many of them are wrong if the probabilities keep their word; None where the run has none.
    """

    rows: IntArray
    expected_wrong: float | None


@dataclass(frozen=True)
class Open:
    """What is left for one reviewer, as masks over the alignment's rows.

    Attributes:
        undecided: neither accepted nor rejected by anybody, nor skipped by the reviewer.
        second: decided by others only.
        unsampled: as ``undecided``, but pairs that were accepted in bulk count as not looked at.
    """

    undecided: BoolArray
    second: BoolArray
    unsampled: BoolArray


class ReviewQueue:
    """A run's matches as a queue. Cheap to make; nothing in it changes with decisions, so one can be shared by all reviewers.

    Args:
        view: the run.
        alignment: of its source graph (:func:`engine.explore.alignment.alignments`).
    """

    def __init__(self, view: RunView, alignment: Alignment) -> None:
        self.view = view
        self.alignment = alignment
        self.run = f"{view.run.manifest['dataset']}/{view.run.manifest['run_id']}"
        self.fingerprint = str(view.run.manifest["data"]["fingerprint"])

    # Rows

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """(n,) source and target entity of each row."""
        rows = self.alignment.rows
        return rows["entity"].to_numpy(dtype=np.int64), rows["match"].to_numpy(dtype=np.int64)

    @cached_property
    def probability(self) -> FloatArray:
        """(n,) NaN where the run has none."""
        values: FloatArray = self.alignment.rows["probability"].to_numpy(dtype=np.float64)
        return values

    @cached_property
    def margin(self) -> FloatArray:
        """(n,) CSLS ahead of the runner-up; infinite where there is none."""
        values: FloatArray = np.nan_to_num(self.alignment.rows["margin"].to_numpy(dtype=np.float64), nan=np.inf)
        return values

    @cached_property
    def _row_of(self) -> IntArray:
        """(E,) row of each source entity, -1 for none."""
        found = np.full(len(self.view.graphs["source"]), -1, dtype=np.int64)
        found[self.ends[0]] = np.arange(len(self.ends[0]))
        return found

    def indices(self, row: int) -> tuple[int, int]:
        """Source and target entity of a row."""
        return int(self.ends[0][row]), int(self.ends[1][row])

    def title(self, side: Side, uri: str) -> str:
        """An entity's title by its identifier, which is shown itself where the run has no such entity."""
        graph = self.view.graphs[side]
        return graph.title(graph.index[uri]) if uri in graph.index else uri

    def pair(self, row: int) -> Pair:
        """The identifiers of a row's entities."""
        source, target = self.indices(row)
        return self.view.graphs["source"].uris[source], self.view.graphs["target"].uris[target]

    def row(self, pair: Pair) -> int | None:
        """The row of a pair; None where it is no match of this run."""
        source, target = (self.view.graphs[side].index.get(uri) for side, uri in zip(SIDES, pair, strict=True))
        if source is None or target is None:
            return None
        row = int(self._row_of[source])
        return row if row >= 0 and self.ends[1][row] == target else None

    def choice(self, row: int, verdict: Verdict, note: str = "") -> Choice:
        """A decision on a row, with what this run says of it."""
        probability = float(self.probability[row])
        csls = float(self.alignment.rows["csls"].to_numpy()[row])
        return Choice(*self.pair(row), verdict, note, self.run, csls, None if np.isnan(probability) else probability)

    # Orders

    def order(self, kind: Kind) -> IntArray:
        """All rows of a kind in its order, seed links left out.

        "uncertain": probability nearest to one half, then what has none by the smallest margin. "conflicts": targets that several sources claim,
        the closest contest first, the claims on a target together and the best first. "hierarchy": mutual matches that contradict the graphs'
        hierarchies, first what has to give way to the most others. "sure": the most probable, or in a run without
        probabilities mutual matches with the largest margin. "second" and "again": as "uncertain". "sample": at random, without those that known
        links settle (:mod:`engine.explore.review_queue`).
        """
        if kind in ("sample", "hierarchy"):  # which take a while, and are seldom asked for
            return self._sample if kind == "sample" else self._contradicting
        return self._orders["uncertain" if kind in ("second", "again") else kind]

    @cached_property
    def _orders(self) -> dict[str, IntArray]:
        rows = np.flatnonzero(self.alignment.known != KNOWN.index("seed"))
        return {"uncertain": self._uncertain(rows), "conflicts": self._conflicts(rows), "sure": self._sure(rows)}

    @cached_property
    def _sample(self) -> IntArray:
        rows = np.flatnonzero(~self._settled & (self.alignment.known != KNOWN.index("seed")))
        run_id = self.run.rpartition("/")[2]  # the same data may lie under several names
        return rows[sampling_order(run_id, [self.pair(row) for row in rows.tolist()])]

    @cached_property
    def _settled(self) -> BoolArray:
        """(n,) whether validation or test links say if the match is right."""
        settled: BoolArray = np.isin(self.alignment.known, [KNOWN.index(one) for one in JUDGED])
        return settled

    def _uncertain(self, rows: IntArray) -> IntArray:
        doubt = np.nan_to_num(np.abs(self.probability[rows] - 0.5), nan=1.0)
        return rows[np.lexsort([self.margin[rows], doubt])]

    def _conflicts(self, rows: IntArray) -> IntArray:
        """Claims are counted among all rows: a seed link's target that another source claims is a conflict as well."""
        claims, csls = self.alignment.rows["claims"].to_numpy(), self.alignment.rows["csls"].to_numpy(dtype=np.float64)
        contest = _contests(self.ends[1], csls, len(self.view.graphs["target"]))
        rows = rows[claims[rows] > 1]
        targets = self.ends[1][rows]
        return rows[np.lexsort([-csls[rows], targets, contest[targets]])]

    def _sure(self, rows: IntArray) -> IntArray:
        """Of several that claim a target only the best can be right, and only mutual matches are anybody's best from both ends."""
        rows = rows[self.alignment.rows["mutual"].to_numpy()[rows]]
        if self.alignment.calibrated:
            rows = rows[~np.isnan(self.probability[rows])]
        probability = np.nan_to_num(self.probability[rows])
        return rows[np.lexsort([-self.margin[rows], -probability])]

    @cached_property
    def _contradicting(self) -> IntArray:
        """The pair that loses the most contradictions first; of equals, the one with the lowest CSLS."""
        found = self.alignment.contradictions
        lost = np.bincount([one.weaker for one in found], minlength=len(self.alignment)) if found else np.zeros(len(self.alignment), dtype=np.int64)
        rows = np.flatnonzero(self.alignment.contradicting & (self.alignment.known != KNOWN.index("seed")))
        csls = self.alignment.rows["csls"].to_numpy(dtype=np.float64)
        return rows[np.lexsort([csls[rows], -lost[rows]])]

    @cached_property
    def _against(self) -> dict[int, list[tuple[int, Reason]]]:
        against: dict[int, list[tuple[int, Reason]]] = {}
        for one in self.alignment.contradictions:
            for row, other in dict.fromkeys([(one.weaker, one.stronger), (one.stronger, one.weaker)]):
                against.setdefault(row, []).append((other, one.reason))
        return against

    def contradicted_by(self, row: int) -> Sequence[tuple[int, Reason]]:
        """The rows that a row contradicts by the graphs' hierarchies, and why; the row itself where its own classes are at odds."""
        return self._against.get(row, [])

    def claims(self, target: int) -> IntArray:
        """Rows of all sources that have a target as their best match, seed links included, the highest CSLS first."""
        rows = np.flatnonzero(self.ends[1] == target)
        return rows[np.argsort(-self.alignment.rows["csls"].to_numpy(dtype=np.float64)[rows], kind="stable")]

    # What is left

    def rows_of(self, decisions: Iterable[Decision]) -> IntArray:
        """(m,) rows of decided pairs; pairs that are no match of this run have none."""
        found = (self.row(decision.pair) for decision in decisions)
        return np.array([row for row in found if row is not None], dtype=np.int64)

    def left(self, standing: Sequence[Decision], author: str) -> Open:
        """What is left for a reviewer.

        Args:
            standing: the data set's decisions (:meth:`engine.reviews.ReviewStore.standing`).
            author: the reviewer.
        """
        votes, mine = self._marked(standing, author)
        looked_at, by_me = self._marked([decision for decision in standing if not decision.in_bulk], author)
        return Open(undecided=~votes & ~mine, second=votes & ~mine, unsampled=~looked_at & ~by_me)

    def _marked(self, decisions: Sequence[Decision], author: str) -> tuple[BoolArray, BoolArray]:
        """(n,) rows that anybody voted on, and rows that the author decided or skipped."""
        votes, mine = (np.zeros(len(self.alignment), dtype=bool) for _ in range(2))
        votes[self.rows_of(decision for decision in decisions if decision.verdict != "skip")] = True
        mine[self.rows_of(decision for decision in decisions if decision.author == author)] = True
        return votes, mine

    def open_rows(self, kind: Kind, left: Open, *, known: bool = False) -> IntArray:
        """The rows of a kind that are left, in its order.

        Args:
            known: also those that known links decide.
        """
        rows = self.order(kind)
        masks = {"second": left.second, "sample": left.unsampled}
        keep = masks.get(kind, left.undecided)[rows]
        if not known:
            keep &= ~self._settled[rows]
        return rows[keep]

    @property
    def default_threshold(self) -> float:
        """Of what is offered to be accepted together."""
        return SURE_PROBABILITY if self.alignment.calibrated else SURE_MARGIN

    def sure_pairs(self, left: Open, threshold: float, *, known: bool = False) -> SurePairs:
        """The pairs of at least this probability; of a run without probabilities, those of at least this CSLS margin."""
        rows = self.open_rows("sure", left, known=known)
        calibrated = self.alignment.calibrated
        rows = rows[(self.probability if calibrated else self.margin)[rows] >= threshold]
        return SurePairs(rows, self.expected_wrong(rows))

    def expected_wrong(self, rows: IntArray) -> float | None:
        """How many of some rows are wrong if the probabilities keep their word; None where the run has none."""
        return float((1 - self.probability[rows]).sum()) if self.alignment.calibrated else None


def choice_on(pair: PairScore, run: str, verdict: Verdict, note: str = "") -> Choice:
    """A decision on any pair, with what a run says of it."""
    return Choice(pair.source.uri, pair.target.uri, verdict, note, run, pair.csls, pair.probability)


def take(
    store: ReviewStore,
    queue: ReviewQueue,
    author: str,
    rows: IntArray,
    count: int = 1,
    *,
    first: Pair | None = None,
    kind: Kind = "uncertain",
    session: str = "",
) -> list[int]:
    """Rows for a reviewer to look at now, kept from others for a while: first those that the reviewer holds already, then the next free ones.

    Of the random sample they come strictly in their order, and pairs that were accepted in bulk are free: a pair that the reviewer holds from another
    list would be out of turn, and one that is left out would end the measurement there.

    Args:
        rows: that are left, in their order.
        count: how many at most.
        first: a pair to begin with, if it is left and free.
        kind: of the list that the rows are of.
        session: of the reviewer; another one of the same name gets other pairs.
    """
    wanted = set(rows.tolist())
    sample = kind == "sample"
    held = [] if sample else [pair for pair in store.leased(queue.fingerprint, author, session) if queue.row(pair) in wanted]
    if first is not None and queue.row(first) in wanted:
        held = [first, *(pair for pair in held if pair != first)]
    offered = chain(held, (pair for pair in _pairs(queue, rows) if pair not in held))
    taken = store.claim(queue.fingerprint, author, offered, count, second=kind == "second", one_by_one=sample, session=session)
    return [row for pair in taken if (row := queue.row(pair)) is not None]


def marked_pairs(store: ReviewStore, queue: ReviewQueue, author: str) -> dict[Pair, tuple[str, ...]]:
    """Pairs of the run to look at again since their evidence changed, with the reasons, without those that the reviewer has skipped since."""
    graphs = [queue.view.graphs[side].index for side in SIDES]
    found = store.look_again(queue.fingerprint, author)
    return {pair: reasons for pair, reasons in found.items() if pair[0] in graphs[0] and pair[1] in graphs[1]}


def take_marked(store: ReviewStore, queue: ReviewQueue, author: str, pairs: Sequence[Pair], count: int = 1) -> list[tuple[int, int]]:
    """Source and target of the first pairs to look at again that are free, those first that the reviewer holds already."""
    held = [pair for pair in store.leased(queue.fingerprint, author) if pair in set(pairs)]
    offered = chain(held, (pair for pair in pairs if pair not in held))
    taken = store.claim(queue.fingerprint, author, offered, count, again=True)
    graphs = [queue.view.graphs[side].index for side in SIDES]
    return [(graphs[0][source], graphs[1][target]) for source, target in taken]


def _pairs(queue: ReviewQueue, rows: IntArray) -> Iterator[Pair]:
    return (queue.pair(row) for row in rows.tolist())


def sampling_order(run_id: str, pairs: Sequence[tuple[str, str]]) -> IntArray:
    """(P,) places of the pairs in the order of a hash of each with the run's id: random, and the same wherever and whenever it is computed."""
    keys = [hashlib.sha256(_framed(run_id, *pair)).digest() for pair in pairs]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def _framed(*texts: str) -> bytes:
    """Texts as bytes that no other texts have, whatever characters are in them."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return b"".join(len(one).to_bytes(8, "big") + one for one in encoded)


def _contests(targets: IntArray, csls: FloatArray, count: int) -> FloatArray:
    """(count,) by how much the best claim on each target is ahead of the second; infinite where there are not two."""
    order = np.lexsort([-csls, targets])
    ordered, scores = targets[order], csls[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    first = first[np.diff(first, append=len(ordered)) > 1]
    contest = np.full(count, np.inf)
    contest[ordered[first]] = scores[first] - scores[first + 1]
    return contest


# Accuracy without test links: the share of right matches, estimated from pairs that are drawn at random and reviewed.
#
# The order of the drawing depends on the run's id and the pair alone: it is the same for every reviewer and on every visit, and the pairs at its
# beginning are a simple random sample, however many they are. Matches that known links settle are not drawn: the question is what the others are
# worth.


@dataclass(frozen=True)
class SampleEstimate:
    """What the reviewed beginning of the drawing says of all matches that no known link settles.

    Attributes:
        population: how many matches there are to draw from.
        drawn: how many of the first ones have been reviewed, up to the first that has not.
        right, wrong: accepted and rejected ones among them, by the majority of their reviewers.
        unsettled: skipped ones, and those on which the reviewers are divided.
        interval: 95 % score interval (Wilson) of the share of right ones; None where nothing is drawn. Unsettled pairs widen it: its lower end takes
            them for wrong, its upper end for right. Once all matches are drawn, chance plays no part: the two shares themselves.
        out_of_turn: matches that were reviewed after the first that has not been; they count once that one is decided.
        confirmed, contradicted: matches that are not drawn since known links settle them, by what the links say.
    """

    population: int
    drawn: int
    right: int
    wrong: int
    unsettled: int
    interval: tuple[float, float] | None
    out_of_turn: int = 0
    confirmed: int = 0
    contradicted: int = 0

    def sentence(self) -> str:
        """The estimate in words, and what to do where there is none."""
        if not self.population:
            return "There are no matches to sample: known links decide all of them."
        if not self.drawn:
            return f"No pair of the random sample has been reviewed yet. It is drawn from {self.population:,} matches that no known link decides."
        if self.interval is None:
            raise ValueError("an estimate of drawn pairs has an interval")
        low, high = self.interval
        unsettled = f", {self.unsettled:,} skipped or disputed" if self.unsettled else ""
        pairs = "pair" if self.drawn == 1 else f"{self.drawn:,} pairs"
        accepted = f"{self.right:,} {'was' if self.right == 1 else 'were'} accepted"
        if self.drawn == self.population:
            share = f"{low:.1%}" if low == high else f"between {low:.1%} and {high:.1%}"
            counted = f"{accepted} and {self.wrong:,} rejected{unsettled}"
            return f"All {count(self.drawn, 'match', 'matches')} that no known link decides are reviewed: {counted}. Precision: {share}."
        return (
            f"Of the first {pairs} of the random sample, {accepted} and {self.wrong:,} rejected{unsettled}. Precision of the {self.population:,} "
            f"matches that no known link decides: {low:.1%} to {high:.1%} (95% interval, n = {self.drawn:,})."
        )

    def notes(self) -> list[str]:
        """What belongs beside the estimate, in sentences."""
        found = []
        if self.out_of_turn:
            later = count(self.out_of_turn, "further pair was", "further pairs were")
            found.append(
                f"{later} reviewed out of order (from other lists, or by other reviewers) and will count when all pairs before them are decided."
            )
        if self.confirmed or self.contradicted:
            settled = f"{count(self.confirmed, 'match', 'matches')} that validation or test links confirm, and {self.contradicted:,} that contradict"
            found.append(f"Not sampled: {settled} a known link.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def drawing(queue: ReviewQueue) -> IntArray:
    """All matches that no known link settles, as rows of the alignment, in the order in which they are drawn."""
    return queue.order("sample")


def estimate_from_sample(queue: ReviewQueue, standing: Sequence[Decision]) -> SampleEstimate:
    """What has been reviewed of the drawing, whichever list the pairs were decided in; pairs accepted in bulk count as not looked at.

    Args:
        standing: the data set's decisions (:meth:`engine.reviews.ReviewStore.standing`).
    """
    rows = drawing(queue)
    one_by_one = [decision for decision in standing if not decision.in_bulk]
    looked_at = np.isin(rows, queue.rows_of(one_by_one))
    drawn = len(rows) if looked_at.all() else int(np.argmin(looked_at))
    first = set(rows[:drawn].tolist())
    snapshot = snapshot_of(queue.fingerprint, one_by_one)
    right, wrong = (sum(queue.row(pair) in first for pair in pairs) for pairs in (snapshot.accepted, snapshot.rejected))
    unsettled = drawn - right - wrong
    out_of_turn, links = int(np.count_nonzero(looked_at[drawn:])), queue.alignment.all_counts
    interval = _interval(right, unsettled, drawn, len(rows))
    return SampleEstimate(len(rows), drawn, right, wrong, unsettled, interval, out_of_turn, links["right"], links["wrong"])


def _interval(right: int, unsettled: int, drawn: int, population: int) -> tuple[float, float] | None:
    if not drawn:
        return None
    least, most = right / drawn, (right + unsettled) / drawn
    return (least, most) if drawn == population else (rate_interval(least, drawn)[0], rate_interval(most, drawn)[1])
