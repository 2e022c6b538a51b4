"""What reviewers say together: the majority's rule, the digest, files; agreement and pace."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ReviewError
from engine.reviews import Choice, Decision, ReviewStore, agreement, disagreements, progress, read_snapshot, snapshot_of
from engine.runs import RunStore
from tests.reviews.reviewers import DATA

ONE, TWO, THREE = ("s1", "t1"), ("s2", "t2"), ("s3", "t3")


def decision(number: int, pair: tuple[str, str], verdict: str, author: str, *, minute: float = 0.0, click: str | None = None) -> Decision:
    time = f"2026-11-28T12:{int(minute):02}:{int(minute % 1 * 60):02}+00:00"
    return Decision(number, Choice(*pair, verdict), author, time, click or f"click {number}")  # type: ignore[arg-type]


def test_the_majority_decides_and_a_tie_is_undecided() -> None:
    votes = [(ONE, "accept", "A"), (ONE, "accept", "B"), (ONE, "reject", "C"), (TWO, "accept", "A"), (TWO, "reject", "B"), (THREE, "reject", "A")]
    found = snapshot_of(DATA, [decision(number, *vote) for number, vote in enumerate(votes)])
    assert found.accepted == (ONE,)
    assert found.rejected == (THREE,)
    assert found.of_outcome("undecided") == (TWO,)
    assert (found.votes, found.authors) == (6, 3)
    assert disagreements([decision(number, *vote) for number, vote in enumerate(votes)]) == [ONE, TWO]


def test_skipping_is_no_vote() -> None:
    found = snapshot_of(DATA, [decision(1, ONE, "skip", "A"), decision(2, TWO, "skip", "A"), decision(3, TWO, "accept", "B")])
    assert found.accepted == (TWO,)
    assert (found.votes, found.authors, len(found.pairs)) == (1, 1, 1)


decisions = st.lists(
    st.tuples(st.sampled_from([ONE, TWO, THREE]), st.sampled_from(["accept", "reject", "skip"]), st.sampled_from("ABC")),
    max_size=12,
    unique_by=lambda one: (one[0], one[2]),
).map(lambda votes: [decision(number, *vote) for number, vote in enumerate(votes)])


@given(decisions, st.randoms())
def test_the_digest_depends_on_what_was_decided_and_not_on_the_order(several: list[Decision], random: object) -> None:
    shuffled = list(several)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, two = snapshot_of(DATA, several), snapshot_of(DATA, shuffled)
    assert one == two
    assert one.digest == two.digest
    assert one.digest != snapshot_of("b" * 64, several).digest
    assert one.digest != snapshot_of(DATA, [*several, decision(99, ("new", "pair"), "accept", "A")]).digest
    again = snapshot_of(DATA, [*several, decision(99, ("new", "pair"), "skip", "A")])
    assert one.digest == again.digest


def test_a_snapshot_comes_back_from_a_run_and_from_the_database(tmp_path: Path) -> None:
    store = ReviewStore(tmp_path / "reviews.sqlite3")
    store.decide(DATA, [Choice("é", "\n", "accept"), Choice("a", "b", "reject")], "A", "1")
    store.decide(DATA, Choice("a", "c", "accept"), "A", "2")
    store.decide(DATA, Choice("a", "c", "reject"), "B", "3")
    found = snapshot_of(DATA, store.standing(DATA))
    assert read_snapshot(store.path, DATA) == found
    with RunStore(tmp_path).create("towns", "run") as writer:
        writer.write_table("reviews", found.table())
        again = read_snapshot(writer.path / "reviews.parquet", DATA)
    assert again.pairs == found.pairs
    assert again.digest == found.digest
    store.close()


def test_files_that_hold_no_reviews_say_so(tmp_path: Path) -> None:
    store = ReviewStore(tmp_path / "reviews.sqlite3")
    store.decide(DATA, Choice("a", "b", "skip"), "A", "1")
    (tmp_path / "text").write_text("accepted: a b")
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1" + b"x" * 50)
    doubled = pd.DataFrame({"source_uri": ["a", "a"], "target_uri": ["b", "b"], "outcome": "accepted", "accepts": 1, "rejects": 0})
    doubled.to_parquet(tmp_path / "doubled.parquet")
    for name, message in (
        ("nothing", "there are no reviews"),
        ("reviews.sqlite3", "no accepted or rejected pair"),
        ("text", "neither a database"),
        ("other.parquet", "cannot be read as the reviews of a run"),
        ("torn.parquet", "cannot be read as the reviews of a run"),
        ("doubled.parquet", "a pair occurs twice"),
        (".", "cannot be read as reviews"),
    ):
        with pytest.raises(ReviewError, match=message):
            read_snapshot(tmp_path / name, DATA)
    store.close()


def test_agreement_is_krippendorffs() -> None:
    """Values by hand: four units of two coders, one of which they see differently: D_o = 2/8, D_e = 2 * 5 * 3 / (8 * 7)."""
    pairs = [(f"s{number}", "t") for number in range(4)]
    verdicts = ["accept", "accept", "reject", "accept"], ["accept", "accept", "reject", "reject"]
    several = [
        decision(0, pair, verdict, author) for author, row in zip("AB", verdicts, strict=True) for pair, verdict in zip(pairs, row, strict=True)
    ]
    found = agreement([*several, decision(9, ("alone", "t"), "accept", "A"), decision(10, pairs[0], "skip", "C")])
    assert (found.pairs, found.unanimous, found.share) == (4, 3, 0.75)
    assert found.alpha == pytest.approx(1 - (2 / 8) / (2 * 5 * 3 / (8 * 7)))
    assert agreement([]).share is None
    assert agreement([]).alpha is None
    assert agreement([one for one in several if one.verdict == "accept"]).alpha is None, "nobody ever rejected"


def test_progress_and_pace() -> None:
    several = [decision(number, (f"s{number}", "t"), "accept", "A", minute=number / 2) for number in range(5)]
    bulk = [decision(10 + number, (f"x{number}", "t"), "accept", "A", minute=3, click="bulk") for number in range(50)]
    later = [decision(70, ("y", "t"), "skip", "A", minute=40), decision(71, ("s0", "t"), "reject", "B", minute=41)]
    found = progress([*several, *bulk, *later], "A")
    assert (found.accepted, found.rejected, found.skipped, found.pairs, found.mine) == (55, 1, 1, 55, 55)
    assert found.pace == pytest.approx(2.0), "half a minute each; the break and the bulk do not count"
    assert progress(several, None).pace is None
