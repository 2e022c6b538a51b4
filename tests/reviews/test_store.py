"""The store of decisions: what counts, undoing, the same click twice, many processes at once, a process that is killed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ReviewError
from engine.reviews import Choice, Decision, ReviewStore
from engine.reviews.decisions import LONGEST_NOTE, check_author
from engine.reviews.store import MIGRATIONS, SCHEMA
from engine.util.sqlite import Database
from tests.effort import examples
from tests.reviews.reviewers import DATA, processes, review, write

OTHER_DATA = "b" * 64
PAIRS = [(f"http://one.example/{number}", f"http://two.example/{number}") for number in range(4)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ReviewStore]:
    store = ReviewStore(tmp_path / "models" / "reviews.sqlite3")
    yield store
    store.close()


def counting(decisions: list[Decision]) -> dict[tuple[tuple[str, str], str], str]:
    return {(decision.pair, decision.author): decision.verdict for decision in decisions}


def test_a_decision_comes_back_as_it_was_made(store: ReviewStore) -> None:
    choice = Choice("é://ß", "http://x/'; DROP TABLE decisions; --", "accept", "sure\nof it", "europe/semi-s0", 0.25, 0.5)
    (kept,) = store.decide(DATA, choice, "  Zoë \u0065\u0301 ", "click")
    assert kept.choice == choice
    assert kept.author == "Zoë é"
    assert kept.time.endswith("+00:00")
    assert store.standing(DATA) == store.history(DATA) == store.on_pair(DATA, choice.pair) == [kept]
    assert store.standing(OTHER_DATA) == []
    again = ReviewStore(store.path)
    assert again.standing(DATA) == [kept]
    again.close()


def test_before_the_first_decision_there_is_no_file(store: ReviewStore) -> None:
    assert store.standing(DATA) == store.leased(DATA, "Ann") == []
    assert not store.path.exists()


def test_the_same_click_sent_twice_is_one_decision(store: ReviewStore) -> None:
    first = store.decide(DATA, Choice(*PAIRS[0], "accept"), "Ann", "click")
    assert store.decide(DATA, Choice(*PAIRS[0], "reject"), "Ann", "click") == first
    assert len(store.history(DATA)) == 1
    for author, data in (("Bob", DATA), ("Ann", OTHER_DATA)):
        with pytest.raises(ReviewError, match="another reviewer or other data"):
            store.decide(data, Choice(*PAIRS[0], "accept"), author, "click")
    (gone,) = store.undo(DATA, "Ann", "undo")
    assert gone.withdrawn
    assert store.undo(DATA, "Ann", "undo") == [gone]
    assert store.standing(DATA) == []


def test_what_was_taken_together_is_undone_together(store: ReviewStore) -> None:
    store.decide(DATA, Choice(*PAIRS[0], "reject"), "Ann", "one")
    several = store.decide(DATA, [Choice(*pair, "accept") for pair in PAIRS[1:]], "Ann", "bulk")
    assert store.withdraw(DATA, several[0].number, "Ann", "single")[0].pair == PAIRS[1]
    assert [decision.pair for decision in store.undo(DATA, "Ann", "undo")] == PAIRS[2:]
    assert counting(store.standing(DATA)) == {(PAIRS[0], "Ann"): "reject"}
    with pytest.raises(ReviewError, match="no decision 1 that can be undone"):
        store.withdraw(DATA, 1, "Bob", "not mine")


def test_a_batch_is_kept_whole_or_not_at_all(store: ReviewStore) -> None:
    with pytest.raises(ReviewError, match="note is"):
        store.decide(DATA, [Choice(*PAIRS[0], "accept"), Choice(*PAIRS[1], "accept", "x" * (LONGEST_NOTE + 1))], "Ann", "bulk")
    assert store.history(DATA) == []


actions = st.one_of(
    st.tuples(
        st.just("decide"),
        st.sampled_from("AB"),
        st.lists(st.sampled_from(PAIRS), min_size=1, max_size=3, unique=True),
        st.sampled_from(["accept", "reject", "skip"]),
    ),
    st.tuples(st.just("undo"), st.sampled_from("AB"), st.just([]), st.just("")),
)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.tuples(actions, st.integers(0, 6)), max_size=14))
def test_any_sequence_of_clicks_counts_as_a_simple_model_says(clicks: list[tuple[tuple[str, str, list[tuple[str, str]], str], int]]) -> None:
    """Clicks with the same token come twice; the model keeps a stack of decisions for each pair and author."""
    stacks: dict[tuple[tuple[str, str], str], list[tuple[int, str]]] = {}
    seen: set[str] = set()
    with TemporaryDirectory() as folder:
        writer, reader = (ReviewStore(Path(folder) / "reviews.sqlite3") for _ in range(2))
        for number, ((kind, author, pairs, verdict), repeated) in enumerate(clicks):
            token = f"{author}{kind}{repeated}"
            if kind == "decide":
                writer.decide(DATA, [Choice(*pair, verdict) for pair in pairs], author, token)  # type: ignore[arg-type]
                if token not in seen:
                    for pair in pairs:
                        stacks.setdefault((pair, author), []).append((number, verdict))
            else:
                writer.undo(DATA, author, token)
                mine = [stack[-1][0] for (_, who), stack in stacks.items() if who == author and stack]
                if token not in seen and mine:
                    last = max(one for (_, who), stack in stacks.items() if who == author for one, _ in stack)
                    for key, stack in stacks.items():
                        if key[1] == author:
                            stacks[key] = [entry for entry in stack if entry[0] != last]
                    seen.add(token)
                continue
            seen.add(token)
        expected = {key: stack[-1][1] for key, stack in stacks.items() if stack}
        assert counting(writer.standing(DATA)) == counting(reader.standing(DATA)) == expected
        with reader._database.reading() as connection:
            rows = connection.execute("SELECT source, target, author, verdict FROM standing").fetchall()
        assert {((row["source"], row["target"]), row["author"]): row["verdict"] for row in rows} == expected
        writer.close()
        reader.close()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "enter your name"),
        ("   ", "enter your name"),
        ("x" * 81, "at most 80"),
        ("a\u202eb", "invisible characters"),
        ("a\nb", "invisible characters"),
        ("\x00", "invisible characters"),
    ],
)
def test_names_that_cannot_be_kept(name: str, message: str) -> None:
    with pytest.raises(ReviewError, match=message):
        check_author(name)


# Leases


def test_two_reviewers_get_different_pairs_until_a_lease_ends(tmp_path: Path) -> None:
    now = [1000.0]
    store = ReviewStore(tmp_path / "reviews.sqlite3", lambda: now[0])
    assert store.claim(DATA, "Ann", PAIRS, 2, 60) == PAIRS[:2]
    assert store.claim(DATA, "Bob", PAIRS, 2, 60) == PAIRS[2:]
    assert store.claim(DATA, "Cid", PAIRS, 1, 60) == []
    now[0] += 50
    assert store.claim(DATA, "Ann", PAIRS, 2, 60) == PAIRS[:2], "one's own, for longer"
    now[0] += 20
    assert store.claim(DATA, "Cid", PAIRS, 4, 60) == PAIRS[2:]
    assert store.leased(DATA, "Ann") == PAIRS[:2]
    store.decide(DATA, Choice(*PAIRS[0], "accept"), "Ann", "1")
    store.decide(DATA, Choice(*PAIRS[1], "skip"), "Ann", "2")
    assert store.claim(DATA, "Bob", PAIRS, 4) == [PAIRS[1]], "what was skipped is another's to decide"
    assert store.claim(DATA, "Ann", PAIRS, 4) == []
    assert store.claim(OTHER_DATA, "Ann", PAIRS, 1) == [PAIRS[0]]
    store.release(DATA, "Bob")
    assert store.leased(DATA, "Bob") == []
    assert store.claim(DATA, "Bob", PAIRS, 4, second=True) == PAIRS[:2]
    store.close()


def test_two_sessions_of_one_name_get_different_pairs(tmp_path: Path) -> None:
    now = [1000.0]
    store = ReviewStore(tmp_path / "reviews.sqlite3", lambda: now[0])
    assert not store.reviews_elsewhere(DATA, "Ann", "one")
    assert store.claim(DATA, "Ann", PAIRS, 1, 60, session="one") == PAIRS[:1]
    assert not store.reviews_elsewhere(DATA, "Ann", "one")
    assert store.claim(DATA, "Ann", PAIRS, 1, 60, session="two") == PAIRS[1:2]
    assert (store.leased(DATA, "Ann", "one"), store.leased(DATA, "Ann", "two")) == (PAIRS[:1], PAIRS[1:2])
    assert store.reviews_elsewhere(DATA, "Ann", "one")
    assert store.reviews_elsewhere(DATA, "Ann", "two")
    assert not store.reviews_elsewhere(DATA, "Bob", "three")
    store.decide(DATA, Choice(*PAIRS[0], "accept"), "Ann", "1")
    assert not store.reviews_elsewhere(DATA, "Ann", "two"), "it holds nothing more"
    now[0] += 61
    assert not store.reviews_elsewhere(DATA, "Ann", "one")
    store.close()


def test_reviews_of_an_older_version_are_opened(tmp_path: Path) -> None:
    path = tmp_path / "reviews.sqlite3"
    with Database(path, replace(SCHEMA, migrations=MIGRATIONS[:1])).writing() as connection:
        connection.execute("INSERT INTO data_sets (fingerprint) VALUES (?)", (DATA,))
        connection.execute("INSERT INTO leases VALUES (1, ?, ?, 'Ann', 1e12)", PAIRS[0])
    store = ReviewStore(path)
    assert store.claim(DATA, "Bob", PAIRS, 1) == PAIRS[1:2]
    assert store.leased(DATA, "Ann") == PAIRS[:1]
    store.close()


def test_ten_processes_decide_each_pair_of_one_queue_exactly_once(tmp_path: Path) -> None:
    path, total, context = tmp_path / "reviews.sqlite3", 200, processes()
    pipes = [context.Pipe() for _ in range(10)]
    reviewers = [context.Process(target=review, args=(path, f"Reviewer {number}", total, pipe[1])) for number, pipe in enumerate(pipes)]
    for reviewer in reviewers:
        reviewer.start()
    for pipe, _ in pipes:
        assert pipe.recv() == "ready"
    for pipe, _ in pipes:
        pipe.send("go")
    message = [row for pipe, _ in pipes for row in pipe.recv()]
    for reviewer in reviewers:
        reviewer.join()
        assert reviewer.exitcode == 0
    store = ReviewStore(path)
    kept = store.history(DATA)
    store.close()
    assert Counter((*decision.pair, decision.verdict, decision.author) for decision in kept) == Counter(message)
    assert sorted(Counter(decision.pair for decision in kept).values()) == [1] * total, "no pair twice, none lost"
    assert len({author for *_, author in message}) > 1


def test_threads_of_one_server_never_hold_the_same_pair_and_decide_each_once(store: ReviewStore) -> None:
    """Many sessions share one store: claims, decisions and reading in turns of their own."""
    pairs = [(f"http://one.example/{number}", f"http://two.example/{number}") for number in range(48)]
    held: Counter[tuple[str, str]] = Counter()
    seen_twice, lock = [], threading.Lock()

    def reviewer(author: str) -> None:
        while claimed := store.claim(DATA, author, pairs, count=2):
            with lock:
                held.update(claimed)
                seen_twice.extend(pair for pair in claimed if held[pair] > 1)
            store.decide(DATA, Choice(*claimed[0], "accept"), author, f"{author} {claimed[0][0]}")
            assert store.on_pair(DATA, claimed[0])
            with lock:
                held.subtract(claimed)
            store.release(DATA, author)

    with ThreadPoolExecutor(12) as pool:
        for done in [pool.submit(reviewer, f"Reviewer {number}") for number in range(12)]:
            done.result()
    decided = Counter(decision.pair for decision in store.history(DATA))
    assert not seen_twice
    assert set(decided.values()) == {1}
    assert len(decided) >= len(pairs) - 12, "at the end, one may still hold what another one looks for"


def test_a_process_that_is_killed_while_it_writes_leaves_whole_decisions_only(tmp_path: Path) -> None:
    path, context, confirmed = tmp_path / "reviews.sqlite3", processes(), 0
    for turn, wait in enumerate((0.0, 0.013, 0.031, 0.047, 0.002)):
        here, there = context.Pipe()
        writer = context.Process(target=write, args=(path, turn, there))
        writer.start()
        last = here.recv()
        time.sleep(wait)
        writer.kill()
        writer.join()
        while here.poll():
            last = here.recv()
        confirmed += last
        store = ReviewStore(path)
        clicks = Counter(decision.click for decision in store.history(DATA))
        store.close()
        assert set(clicks.values()) == {40}
        assert confirmed <= len(clicks) <= confirmed + turn + 1, "what was confirmed is there; what was not may be"
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


# The file


def test_decisions_cannot_be_changed_or_deleted(store: ReviewStore) -> None:
    store.decide(DATA, Choice(*PAIRS[0], "accept"), "Ann", "click")
    connection = sqlite3.connect(store.path)
    for statement in ("UPDATE decisions SET verdict = 'reject'", "DELETE FROM decisions"):
        with pytest.raises(sqlite3.IntegrityError, match="only added"):
            connection.execute(statement)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_restored_backup_takes_the_place_of_an_open_file(store: ReviewStore, tmp_path: Path) -> None:
    store.decide(DATA, Choice(*PAIRS[0], "accept"), "Ann", "1")
    store.back_up(tmp_path / "backup.sqlite3")
    store.decide(DATA, Choice(*PAIRS[1], "accept"), "Ann", "2")
    assert len(store.standing(DATA)) == 2
    for suffix in ("-wal", "-shm"):
        Path(f"{store.path}{suffix}").unlink()
    os.replace(tmp_path / "backup.sqlite3", store.path)
    assert [decision.pair for decision in store.standing(DATA)] == [PAIRS[0]]
    store.decide(DATA, Choice(*PAIRS[2], "accept"), "Ann", "3")
    assert [decision.pair for decision in store.standing(DATA)] == [PAIRS[0], PAIRS[2]]


def test_files_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    foreign, newer, torn, folder = (tmp_path / name for name in ("foreign", "newer", "torn", "folder"))
    sqlite3.connect(foreign).execute("CREATE TABLE x (y)").connection.close()
    store = ReviewStore(newer)
    store.decide(DATA, Choice(*PAIRS[0], "accept"), "Ann", "1")
    store.close()
    shutil.copy(newer, torn)
    connection = sqlite3.connect(newer)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    torn.write_bytes(b"not a database at all" * 100)
    folder.mkdir()
    for path, message in ((foreign, "another program"), (newer, "newer version"), (torn, "damaged"), (folder, "permission denied")):
        with pytest.raises(ReviewError, match=message):
            ReviewStore(path).standing(DATA)


def test_an_older_schema_is_updated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ReviewStore(tmp_path / "reviews.sqlite3")
    store.decide(DATA, Choice(*PAIRS[0], "accept"), "Ann", "1")
    store.close()
    later = replace(SCHEMA, migrations=(*MIGRATIONS, "CREATE TABLE later (x);"))
    monkeypatch.setattr("engine.reviews.store.SCHEMA", later)
    with Database(store.path, later).reading() as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS) + 1
        assert connection.execute("SELECT count(*) FROM later").fetchone()[0] == 0
    again = ReviewStore(store.path)
    assert len(again.standing(DATA)) == 1
    again.close()
    half = replace(later, migrations=(*later.migrations, "CREATE TABLE half (x);\nSELECT nonsense;\n"))
    monkeypatch.setattr("engine.reviews.store.SCHEMA", half)
    with pytest.raises(ReviewError, match="nonsense"):
        ReviewStore(store.path).standing(DATA)
    connection = sqlite3.connect(store.path)
    assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'half'").fetchall(), "all of a migration or nothing"
    connection.close()


def test_one_account_is_one_reviewer_however_its_address_is_written(tmp_path: Path) -> None:
    store = ReviewStore(tmp_path / "reviews.sqlite3")
    pair = Choice("s", "t", "accept")
    store.decide(DATA, pair, "ann@example.org", "one")
    with store._database.writing() as connection:  # what an older version kept
        connection.execute(
            "INSERT INTO decisions (data_set, source, target, author, time, verdict, click, place) "
            "SELECT data_set, source, target, 'Ann@Example.org', time, 'reject', 'old', 0 FROM decisions"
        )
    assert [(one.author, one.verdict) for one in store.standing(DATA)] == [("ann@example.org", "reject")]
    store.decide(DATA, replace(pair, verdict="accept"), "ANN@example.ORG", "two")
    assert [(one.author, one.verdict) for one in store.standing(DATA)] == [("ann@example.org", "accept")]
    assert [one.verdict for one in store.on_pair(DATA, ("s", "t"))] == ["accept"]
    assert store.claim(DATA, "Ann@example.org", [("s", "t")], second=True) == [], "decided by this very person"
    assert [one.verdict for one in store.undo(DATA, "aNN@example.org", "undo")] == ["accept"]
    assert [one.verdict for one in store.standing(DATA)] == ["reject"]
    store.decide(DATA, pair, "Ann", "three")
    store.decide(DATA, pair, "ann", "four")
    assert {one.author for one in store.standing(DATA)} == {"ann@example.org", "Ann", "ann"}, "names that were entered are as they are"
    store.close()


def test_decisions_in_bulk_leave_out_what_others_decided(tmp_path: Path) -> None:
    store = ReviewStore(tmp_path / "reviews.sqlite3")
    choices = [Choice("s", f"t{number}", "accept") for number in range(4)]
    store.decide(DATA, replace(choices[0], verdict="reject"), "Bob", "b0")
    store.decide(DATA, replace(choices[1], verdict="skip"), "Bob", "b1")
    store.decide(DATA, replace(choices[2], verdict="skip"), "Ann", "a2")
    kept = store.decide(DATA, choices, "Ann", "bulk", open_only=True)
    assert [one.pair[1] for one in kept] == ["t1", "t3"], "another reviewer's skip is no decision, one's own is"
    assert store.decide(DATA, choices, "Ann", "bulk", open_only=True) == kept, "the same click"
    store.close()
