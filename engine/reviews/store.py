"""All decisions of a models folder, and who is looking at which pair right now."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from engine.errors import ReviewError
from engine.reviews.decisions import BULK_NOTE, VERDICTS, Choice, Decision, Pair, check_author, check_choices, check_token, same_author
from engine.util.sqlite import Database, Schema

# What the reviews' database holds.

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE data_sets (
        number INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL UNIQUE
    );
    CREATE TABLE decisions (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        data_set INTEGER NOT NULL REFERENCES data_sets (number),
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        author TEXT NOT NULL,
        time TEXT NOT NULL,
        verdict TEXT NOT NULL CHECK (verdict IN ('accept', 'reject', 'skip', 'withdraw')),
        note TEXT NOT NULL DEFAULT '',
        run TEXT,
        csls REAL,
        probability REAL,
        click TEXT NOT NULL,
        place INTEGER NOT NULL,
        withdraws INTEGER UNIQUE REFERENCES decisions (number),
        UNIQUE (click, place),
        CHECK ((verdict = 'withdraw') = (withdraws IS NOT NULL))
    );
    CREATE INDEX decisions_by_pair ON decisions (data_set, source, target, author, number);
    CREATE INDEX decisions_by_author ON decisions (data_set, author, number);
    CREATE TRIGGER decisions_are_not_changed BEFORE UPDATE ON decisions BEGIN SELECT RAISE (ABORT, 'decisions are only added'); END;
    CREATE TRIGGER decisions_are_not_deleted BEFORE DELETE ON decisions BEGIN SELECT RAISE (ABORT, 'decisions are only added'); END;
    CREATE VIEW kept AS
        SELECT * FROM decisions AS one WHERE verdict <> 'withdraw'
        AND NOT EXISTS (SELECT 1 FROM decisions AS other WHERE other.withdraws = one.number);
    CREATE VIEW standing AS
        SELECT * FROM kept AS one WHERE NOT EXISTS (
            SELECT 1 FROM kept AS later
            WHERE later.data_set = one.data_set AND later.source = one.source AND later.target = one.target
            AND later.author = one.author AND later.number > one.number
        );
    CREATE TABLE leases (
        data_set INTEGER NOT NULL REFERENCES data_sets (number),
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        author TEXT NOT NULL,
        until REAL NOT NULL,
        PRIMARY KEY (data_set, source, target)
    );
    """,
    """
    CREATE TABLE carried (
        number INTEGER PRIMARY KEY REFERENCES decisions (number),
        origin INTEGER NOT NULL REFERENCES decisions (number)
    );
    CREATE TABLE inactive (
        data_set INTEGER NOT NULL REFERENCES data_sets (number),
        origin INTEGER NOT NULL REFERENCES decisions (number),
        gone TEXT NOT NULL,
        PRIMARY KEY (data_set, origin)
    );
    CREATE TABLE changed_evidence (
        data_set INTEGER NOT NULL REFERENCES data_sets (number),
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (data_set, source, target, reason)
    );
    """,
    "ALTER TABLE leases ADD COLUMN session TEXT NOT NULL DEFAULT '';",
)
"""From each version of the schema to the next."""

SCHEMA: Final = Schema(
    what="the reviews",
    error=ReviewError,
    unharmed="earlier decisions are untouched",
    damaged="restore it from a backup",
    migrations=MIGRATIONS,
    application=0x44414D4E,
    functions={"same_author": same_author},
)


# What counts of all decisions on one data set, updated by what was added since: decisions are only added, so nothing is read twice.


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


@dataclass(frozen=True)
class CarriedChoice:
    """A decision on an earlier version of the data, and the identifiers that its entities have now."""

    decision: Decision
    pair: Pair


LEASE_SECONDS = 300.0
"""How long a pair is kept for the reviewer who is looking at it."""


class ReviewStore:
    """Decisions in one SQLite file, for any number of processes and threads at once.

    Every method names the data set by its fingerprint (:attr:`engine.data.AlignmentTask.fingerprint`; in a run's manifest ``data.fingerprint``).
    All raise :class:`engine.errors.ReviewError` where the file cannot be used; nothing is half done then.

    Args:
        path: the file, made when it is first needed; :func:`engine.util.paths.reviews_file` says where it belongs.
        clock: seconds since 1970, for tests.
    """

    def __init__(self, path: Path | str, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._database = Database(self.path, SCHEMA)
        self._clock = clock
        self._ledgers: dict[str, Ledger] = {}
        self._ledgers_of = 0

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._database.close()

    # Deciding

    def decide(self, fingerprint: str, choices: Choice | Sequence[Choice], author: str, token: str, *, open_only: bool = False) -> list[Decision]:
        """Keep one choice, or several that are taken and undone together; on the disk for certain when this returns.

        Args:
            choices: on distinct pairs.
            author: whose they are; kept as :func:`check_author` leaves it.
            token: names the click. A token that was kept before changes nothing, whatever comes with it: what it did is returned again.
            open_only: leave out pairs that somebody has accepted or rejected by now, or that the author has skipped. For decisions in bulk: a pair
                that a colleague has looked at closely in the meantime is not voted on in passing.

        Returns:
            What this click kept.

        Raises:
            ReviewError: a name, verdict, note or token that cannot be kept; a token of another author or other data.
        """
        several = [choices] if isinstance(choices, Choice) else list(choices)
        check_choices(several)
        author = check_author(author)
        with self._database.writing() as connection:
            data = _data_set(connection, fingerprint)
            if not _is_done(connection, data, author, token):
                kept = [choice for choice in several if not (open_only and _is_decided(connection, data, author, choice.pair, second=False))]
                for place, choice in enumerate(kept):
                    self._add(connection, data, author, token, place, choice)
            return _found(connection, "one.click = ?", token)

    def undo(self, fingerprint: str, author: str, token: str) -> list[Decision]:
        """Withdraw the author's last current decision, with all that were taken together with it; nothing where there is none.

        Decisions that were carried over from an earlier version of the data are withdrawn one by one only (:meth:`withdraw`).

        Args:
            token: names the click, as in :meth:`decide`; sent twice it withdraws once.

        Returns:
            The decisions that this click withdrew.
        """
        author = check_author(author)
        with self._database.writing() as connection:
            data = _data_set(connection, fingerprint)
            if not _is_done(connection, data, author, token):
                own = "data_set = ? AND same_author(author) = ? AND number NOT IN (SELECT number FROM carried)"
                last = f"SELECT click FROM kept WHERE {own} ORDER BY number DESC LIMIT 1"
                together = f"SELECT * FROM kept WHERE data_set = ? AND same_author(author) = ? AND click = ({last}) ORDER BY number"
                self._withdraw(connection, token, connection.execute(together, (data, author, data, author)).fetchall())
            return _found(connection, "one.number IN (SELECT withdraws FROM decisions WHERE click = ?)", token)

    def withdraw(self, fingerprint: str, number: int, author: str, token: str) -> list[Decision]:
        """Withdraw one of the author's own decisions, alone.

        Raises:
            ReviewError: there is no such decision of this author.
        """
        author = check_author(author)
        with self._database.writing() as connection:
            data = _data_set(connection, fingerprint)
            if not _is_done(connection, data, author, token):
                rows = connection.execute(
                    "SELECT * FROM kept WHERE data_set = ? AND same_author(author) = ? AND number = ?", (data, author, number)
                ).fetchall()
                if not rows:
                    raise ReviewError(f"{author} has no decision {number} that can be undone; reload the list of decisions.")
                self._withdraw(connection, token, rows)
            return _found(connection, "one.number IN (SELECT withdraws FROM decisions WHERE click = ?)", token)

    def _add(self, connection: sqlite3.Connection, data: int, author: str, click: str, place: int, choice: Choice) -> None:
        seen = choice.run, choice.csls, choice.probability
        connection.execute(
            "INSERT INTO decisions (data_set, source, target, author, time, verdict, note, run, csls, probability, click, place) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (data, *choice.pair, author, self._now(), choice.verdict, choice.note, *seen, click, place),
        )
        mine = data, *choice.pair, author
        connection.execute("DELETE FROM leases WHERE data_set = ? AND source = ? AND target = ? AND author = ?", mine)

    def _withdraw(self, connection: sqlite3.Connection, click: str, rows: Sequence[sqlite3.Row]) -> None:
        for place, row in enumerate(rows):
            connection.execute(
                "INSERT INTO decisions (data_set, source, target, author, time, verdict, click, place, withdraws) "
                "VALUES (?, ?, ?, ?, ?, 'withdraw', ?, ?, ?)",
                (row["data_set"], row["source"], row["target"], row["author"], self._now(), click, place, row["number"]),
            )

    # Reading

    def standing(self, fingerprint: str) -> list[Decision]:
        """The decision that counts of each author on each pair (the latest that is not withdrawn), in the order in which they were kept."""
        with self._up_to_date(fingerprint) as ledger:
            return ledger.standing()

    def history(self, fingerprint: str) -> list[Decision]:
        """Every decision ever kept, withdrawn ones included, in their order."""
        with self._up_to_date(fingerprint) as ledger:
            return ledger.history()

    def on_pair(self, fingerprint: str, pair: Pair) -> list[Decision]:
        """What counts on one pair, a decision an author."""
        with self._up_to_date(fingerprint) as ledger:
            return ledger.on_pair(pair)

    @contextmanager
    def _up_to_date(self, fingerprint: str) -> Iterator[Ledger]:
        """The ledger of a data set with all that was kept until now."""
        if not self.path.exists():
            yield Ledger()
            return
        query = (
            "SELECT one.* FROM decisions AS one JOIN data_sets ON data_sets.number = data_set WHERE fingerprint = ? AND one.number > ? "
            "ORDER BY one.number"
        )
        with self._database.reading() as connection:
            if self._ledgers_of != self._database.opened:  # another file is in its place
                self._ledgers, self._ledgers_of = {}, self._database.opened
            ledger = self._ledgers.setdefault(fingerprint, Ledger())
            try:
                for row in connection.execute(query, (fingerprint, ledger.last)):
                    ledger.add(row["number"], _decision(row) if row["withdraws"] is None else row["withdraws"])
            except (LookupError, ValueError, TypeError, StopIteration):
                del self._ledgers[fingerprint]
                words = "the file is damaged (a decision makes no sense)"
                raise ReviewError(f"{SCHEMA.what} in {self.path} cannot be used: {words}; {SCHEMA.damaged}.") from None
            yield ledger

    # A new version of the data

    def carry(
        self,
        fingerprint: str,
        choices: Sequence[CarriedChoice],
        aside: Sequence[tuple[Decision, str]] = (),
        marks: Mapping[Pair, Sequence[str]] | None = None,
    ) -> None:
        """Copy decisions on an earlier version of the data to this one; what was copied before stays as it is.

        Whoever has decided a pair on this data already keeps that decision.

        Args:
            fingerprint: of the new data.
            choices: decisions that count, in their order.
            aside: decisions that count for nothing any more, since an entity of theirs is gone, and whose ("source", "target" or both).
            marks: pairs to look at again, with the reasons.
        """
        with self._database.writing() as connection:
            data = _data_set(connection, fingerprint)
            for one in choices:
                _copy(connection, data, fingerprint, one)
            for decision, gone in aside:
                connection.execute("INSERT INTO inactive VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (data, decision.number, gone))
            for pair, reasons in (marks or {}).items():
                rows = [(data, *pair, reason) for reason in reasons]
                connection.executemany("INSERT INTO changed_evidence VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", rows)

    def carried_pairs(self, fingerprint: str) -> list[Pair]:
        """The pairs that have a decision from an earlier version of the data."""
        query = (
            "SELECT DISTINCT source, target FROM standing JOIN carried USING (number) JOIN data_sets ON data_sets.number = data_set "
            "WHERE fingerprint = ? ORDER BY source, target"
        )
        return [(row["source"], row["target"]) for row in self._rows(query, (fingerprint,))]

    def look_again(self, fingerprint: str, author: str | None = None) -> dict[Pair, tuple[str, ...]]:
        """Pairs to look at again since their evidence changed, with the reasons: until somebody votes on them on this data.

        Args:
            author: leave out what this reviewer has skipped on this data, too.
        """
        query = (
            "SELECT one.source, one.target, reason FROM changed_evidence AS one JOIN data_sets ON data_sets.number = one.data_set "
            f"WHERE fingerprint = ? AND {_CARRIED} AND NOT {_DECIDED_AGAIN} ORDER BY one.source, one.target, one.rowid"
        )
        found: dict[Pair, tuple[str, ...]] = {}
        for row in self._rows(query, (fingerprint, author or "")):
            pair = row["source"], row["target"]
            found[pair] = (*found.get(pair, ()), row["reason"])
        return found

    def inactive(self, fingerprint: str) -> list[tuple[Decision, str]]:
        """Decisions on earlier versions of the data that have no effect, since an entity of theirs is gone, and whose entity it is."""
        query = (
            "SELECT one.*, gone FROM inactive JOIN decisions AS one ON one.number = origin JOIN data_sets ON data_sets.number = inactive.data_set "
            "WHERE fingerprint = ? ORDER BY one.number"
        )
        return [(_decision(row), row["gone"]) for row in self._rows(query, (fingerprint,))]

    def _rows(self, query: str, parameters: tuple[str, ...]) -> list[sqlite3.Row]:
        if not self.path.exists():
            return []
        with self._database.reading() as connection:
            return connection.execute(query, parameters).fetchall()

    # Leases

    def leased(self, fingerprint: str, author: str, session: str = "") -> list[Pair]:
        """The pairs that are kept for a reviewer's session now, the first that was given to it first."""
        if not self.path.exists():
            return []
        query = (
            "SELECT source, target FROM leases JOIN data_sets ON number = data_set "
            "WHERE fingerprint = ? AND author = ? AND session = ? AND until > ? ORDER BY leases.rowid"
        )
        with self._database.reading() as connection:
            found = connection.execute(query, (fingerprint, author, session, self._clock()))
            return [(row["source"], row["target"]) for row in found]

    def reviews_elsewhere(self, fingerprint: str, author: str, session: str) -> bool:
        """Whether another session reviews under the same name now: perhaps another person."""
        if not self.path.exists():
            return False
        query = "SELECT 1 FROM leases JOIN data_sets ON number = data_set WHERE fingerprint = ? AND author = ? AND session <> ? AND until > ?"
        with self._database.reading() as connection:
            return connection.execute(query, (fingerprint, author, session, self._clock())).fetchone() is not None

    def claim(
        self,
        fingerprint: str,
        author: str,
        offered: Iterable[Pair],
        count: int = 1,
        seconds: float = LEASE_SECONDS,
        *,
        second: bool = False,
        one_by_one: bool = False,
        again: bool = False,
        session: str = "",
    ) -> list[Pair]:
        """Take the first pairs that are free, and keep them from others for a while; a claim on one's own pairs makes it longer.

        Free is what no other reviewer and no other session holds, this one has not decided or skipped, and no one has accepted or rejected.

        Args:
            offered: pairs in the order in which they are worth looking at; read only as far as needed.
            count: how many to take at most.
            second: also what others have decided, for a second opinion.
            one_by_one: also what was accepted in bulk only, by whomever.
            again: also what was decided on an earlier version of the data only (:meth:`look_again`).
            session: of the reviewer: two people who enter the same name get different pairs all the same.
        """
        author = check_author(author)
        until, taken = self._clock() + seconds, list[Pair]()
        with self._database.writing() as connection:
            data = _data_set(connection, fingerprint)
            connection.execute("DELETE FROM leases WHERE until <= ?", (self._clock(),))
            connection.execute("UPDATE leases SET until = ? WHERE until > ?", (until, until))  # the clock was put back since
            for pair in offered:
                if len(taken) == count:
                    break
                if _is_free(connection, data, author, session, pair, second=second, one_by_one=one_by_one, again=again):
                    connection.execute(
                        "INSERT INTO leases (data_set, source, target, author, session, until) VALUES (?, ?, ?, ?, ?, ?) "
                        "ON CONFLICT (data_set, source, target) DO UPDATE SET until = excluded.until",
                        (data, *pair, author, session, until),
                    )
                    taken.append(pair)
        return taken

    def release(self, fingerprint: str, author: str) -> None:
        """Give back all pairs that are kept for a reviewer."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM leases WHERE data_set = ? AND author = ?", (_data_set(connection, fingerprint), author))

    def back_up(self, path: Path) -> None:
        """Copy the whole database as it is at this moment into a new file, while others continue to decide."""
        with self._database.reading() as connection:
            copy = sqlite3.connect(path)
            try:
                connection.backup(copy)
            finally:
                copy.close()

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")


_CARRIED: Final = (
    "EXISTS (SELECT 1 FROM standing AS old WHERE old.data_set = one.data_set AND old.source = one.source AND old.target = one.target "
    "AND old.number IN (SELECT number FROM carried))"
)
"""SQL: whether a pair has a decision that an earlier version of the data had, which is not withdrawn."""
_DECIDED_AGAIN: Final = (
    "EXISTS (SELECT 1 FROM standing AS new WHERE new.data_set = one.data_set AND new.source = one.source AND new.target = one.target "
    "AND (new.verdict <> 'skip' OR same_author(new.author) = ?) AND new.number NOT IN (SELECT number FROM carried))"
)
"""SQL: whether a pair has a vote, or a skip of one author, that no earlier version of the data had."""


def _copy(connection: sqlite3.Connection, data: int, fingerprint: str, carried: CarriedChoice) -> None:
    """Copy a decision unless it was copied before, or its author has decided the pair on this data."""
    old, choice = carried.decision, carried.decision.choice
    click = f"carried {fingerprint[:32]} {old.number}"
    own = (
        "SELECT 1 FROM standing WHERE data_set = ? AND source = ? AND target = ? AND same_author(author) = ? "
        "AND number NOT IN (SELECT number FROM carried)"
    )
    if connection.execute("SELECT 1 FROM decisions WHERE click = ?", (click,)).fetchone() is not None:
        return
    if connection.execute(own, (data, *carried.pair, same_author(old.author))).fetchone() is not None:
        return
    values = (data, *carried.pair, old.author, old.time, choice.verdict, choice.note, choice.run, choice.csls, choice.probability, click)
    number = connection.execute(
        "INSERT INTO decisions (data_set, source, target, author, time, verdict, note, run, csls, probability, click, place) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
        values,
    ).lastrowid
    connection.execute("INSERT INTO carried VALUES (?, ?)", (number, old.number))


def _is_done(connection: sqlite3.Connection, data: int, author: str, click: str) -> bool:
    """Whether a click was kept before.

    Raises:
        ReviewError: as somebody else's, or on other data.
    """
    found = connection.execute("SELECT data_set, author FROM decisions WHERE click = ? LIMIT 1", (check_token(click),)).fetchone()
    if found is not None and (found["data_set"], same_author(found["author"])) != (data, author):
        raise ReviewError("this decision was already stored for another reviewer or other data; reload the page and decide again.")
    return found is not None


def _found(connection: sqlite3.Connection, condition: str, parameter: str) -> list[Decision]:
    """Decisions of which a condition holds, in their order."""
    gone = "EXISTS (SELECT 1 FROM decisions AS other WHERE other.withdraws = one.number)"
    query = f"SELECT one.*, {gone} AS withdrawn FROM decisions AS one WHERE one.verdict <> 'withdraw' AND {condition} ORDER BY one.number"
    return [_decision(row, withdrawn=bool(row["withdrawn"])) for row in connection.execute(query, (parameter,))]


def _data_set(connection: sqlite3.Connection, fingerprint: str) -> int:
    """The row of a data set, made where it is new."""
    connection.execute("INSERT INTO data_sets (fingerprint) VALUES (?) ON CONFLICT DO NOTHING", (fingerprint,))
    return int(connection.execute("SELECT number FROM data_sets WHERE fingerprint = ?", (fingerprint,)).fetchone()["number"])


def _is_free(
    connection: sqlite3.Connection, data: int, author: str, session: str, pair: Pair, *, second: bool, one_by_one: bool, again: bool
) -> bool:
    if _is_held(connection, data, author, session, pair):
        return False
    if again:
        query = f"SELECT {_DECIDED_AGAIN} FROM (SELECT ? AS data_set, ? AS source, ? AS target) AS one"
        return not connection.execute(query, (author, data, *pair)).fetchone()[0]
    return not _is_decided(connection, data, author, pair, second=second, one_by_one=one_by_one)


def _is_held(connection: sqlite3.Connection, data: int, author: str, session: str, pair: Pair) -> bool:
    """Whether a pair is kept for somebody else, or for another session of the same name."""
    query = "SELECT 1 FROM leases WHERE data_set = ? AND source = ? AND target = ? AND (author <> ? OR session <> ?)"
    return connection.execute(query, (data, *pair, author, session)).fetchone() is not None


def _is_decided(connection: sqlite3.Connection, data: int, author: str, pair: Pair, *, second: bool, one_by_one: bool = False) -> bool:
    """Whether the author has decided or skipped a pair, or (unless a second opinion is wanted) anybody has accepted or rejected it.

    ``one_by_one``: what was accepted in bulk does not count.
    """
    found = connection.execute(
        "SELECT 1 FROM standing WHERE data_set = ? AND source = ? AND target = ? AND (same_author(author) = ? OR (verdict <> 'skip' AND NOT ?)) "
        "AND NOT (? AND note = ?)",
        (data, *pair, author, second, one_by_one, BULK_NOTE),
    ).fetchone()
    return found is not None


def _decision(row: sqlite3.Row, *, withdrawn: bool = False) -> Decision:
    verdict = next(one for one in VERDICTS if one == row["verdict"])
    choice = Choice(row["source"], row["target"], verdict, row["note"], row["run"], row["csls"], row["probability"])
    return Decision(row["number"], choice, same_author(row["author"]), row["time"], row["click"], withdrawn)
