"""The database file: made whole or not at all, opened by as many processes as like, upgraded when an older engine made it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from engine.errors import ReviewError
from engine.reviews.decisions import same_author

APPLICATION = 0x44414D4E
"""Marks the file as ours."""
BUSY_SECONDS = 30.0
"""Patience with another process that is writing; a decision takes milliseconds."""

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
)
"""From each version of the schema to the next; ``PRAGMA user_version`` says how many have been applied."""


class Database:
    """One file, opened when it is first needed and again where it was replaced (by a restored backup) or this process was forked.

    Threads may share it: each transaction holds a lock.

    Args:
        path: the file; its folder is made with the first write.

    Attributes:
        opened: how often the file has been opened; what was read before the last time may be of another file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = 0
        self._lock = threading.RLock()
        self._current: tuple[sqlite3.Connection, tuple[int, int, int]] | None = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the database throughout.

        Raises:
            ReviewError: the file is damaged, of a newer engine, no review database, or cannot be read.
        """
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is alone in writing; an exception undoes all of it.

        Raises:
            ReviewError: as for reading, and where the disk is full or another process writes without an end.
        """
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, _explained(self.path):
            connection = self._connection()
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _connection(self) -> sqlite3.Connection:
        if self._current is not None and self._current[1] == self._identity():
            return self._current[0]
        self.close()
        if not self.path.exists():
            create(self.path)
        connection = connect(self.path)
        self._current, self.opened = (connection, self._identity()), self.opened + 1
        return connection

    def _identity(self) -> tuple[int, int, int]:
        """Which file this is, and which process we are; a file that is not there is none."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return (0, 0, 0)
        return os.getpid(), status.st_dev, status.st_ino

    def close(self) -> None:
        with self._lock:
            if self._current is not None:
                self._current[0].close()
            self._current = None


def create(path: Path) -> None:
    """Make the file beside its place and rename it: no process ever sees a database without its tables, or two processes make two."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock"), timeout=BUSY_SECONDS):
        if path.exists():
            return
        temporary = path.with_name(f".{path.name}.new")
        for leftover in (temporary, Path(f"{temporary}-wal"), Path(f"{temporary}-shm")):
            leftover.unlink(missing_ok=True)
        connection = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            migrate(connection)
        finally:
            connection.close()  # takes what is in the log into the file
        descriptor = os.open(temporary, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)


def connect(path: Path) -> sqlite3.Connection:
    """
    Raises:
        ReviewError: no review database, or one of a newer engine.
        sqlite3.Error: the file cannot be opened.
    """
    connection = sqlite3.connect(path.resolve().as_uri() + "?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        connection.create_function("same_author", 1, same_author, deterministic=True)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # a decision that was confirmed outlives a power cut
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION:
            raise ReviewError(f"{path} is a database of something else; move it away, or name the reviews' own file.")
        if version_of(connection) < len(MIGRATIONS):
            migrate(connection)
        elif version_of(connection) > len(MIGRATIONS):
            raise ReviewError(f"{path} was written by a newer engine (schema {version_of(connection)}, known {len(MIGRATIONS)}); update the engine.")
    except BaseException:
        connection.close()
        raise
    return connection


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the migrations that are missing, all or none; of several processes the first one does."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in MIGRATIONS[version_of(connection) :]:
            for statement in statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def statements(script: str) -> Iterator[str]:
    """The statements of a script one by one; ``executescript`` would end the transaction first."""
    found = ""
    for line in script.splitlines():
        found += f"{line}\n"
        if sqlite3.complete_statement(found):
            yield found
            found = ""


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """SQLite's errors in plain words."""
    try:
        yield
    except (sqlite3.Error, OSError, Timeout) as error:
        raise ReviewError(f"the reviews in {path} cannot be used: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    words = " ".join(str(error).split())[:200]
    if isinstance(error, Timeout) or "locked" in words:
        return f"another process has been writing for {BUSY_SECONDS:.0f} seconds; try again."
    if "full" in words:
        return "the disk is full; free some space and decide again (earlier decisions are untouched)."
    if "readonly" in words or "unable to open" in words or isinstance(error, PermissionError):
        return "permission denied; make the file and its folder writable (earlier decisions are untouched)."
    if "malformed" in words or "not a database" in words:
        return f"the file is damaged ({words}); restore it from a backup."
    return f"{words}; check the disk and the file."
