"""SQLite databases of a models folder: made whole or not at all, opened by as many processes as like, upgraded where an older engine made them."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from filelock import Timeout

from engine.errors import EngineError, MachineError, printable
from engine.util.files import fsync, make_folder, remove
from engine.util.locks import take_lock
from engine.util.machine import DENIED, FULL, is_out_of_memory, os_advice, os_reason
from engine.util.text import one_line


@dataclass(frozen=True)
class Schema:
    """What a kind of database holds, and how problems with it are said.

    Attributes:
        what: names it in messages ("the reviews").
        error: what is raised.
        unharmed: what a failure leaves as it is, for messages.
        damaged: what to do about a damaged file.
        migrations: from each version to the next; ``PRAGMA user_version`` says how many have been applied.
        application: marks the file as ours; None where it bears no mark.
        patience: seconds to wait for another process that is writing.
        functions: SQL functions of one argument, by name.
    """

    what: str
    error: type[EngineError]
    unharmed: str
    damaged: str
    migrations: tuple[str, ...]
    application: int | None = None
    patience: float = 30.0
    functions: Mapping[str, Callable[[str], str]] = field(default_factory=dict)


NO_COLUMN: Final = "No item with that key"
"""What a row of Python's sqlite3 says of a column that it lacks."""


class Database:
    """One file, opened when it is first needed and again where it was replaced (by a restored backup) or this process was forked.

    Threads may share it: each transaction holds a lock.

    Args:
        path: the file; its folder is made with the first transaction.
        schema: of the file.
        lock: held while the file is made; a hidden file beside it by default.
        keep_open: whether the file stays open from one transaction to the next.

    Attributes:
        opened: how often the file has been opened; what was read before the last time may be of another file.
    """

    def __init__(self, path: Path, schema: Schema, *, lock: Path | None = None, keep_open: bool = True) -> None:
        self.path, self.schema, self.opened = path, schema, 0
        self._made_under = lock or path.with_name(f".{path.name}.lock")
        self._keep_open = keep_open
        self._lock = threading.RLock()
        self._current: tuple[sqlite3.Connection, tuple[int, int, int]] | None = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the database throughout.

        Raises:
            EngineError: of the schema's kind: the file is damaged, of a newer engine, of something else, or cannot be read.
        """
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is alone in writing; an exception undoes all of it.

        Raises:
            EngineError: as for reading, and where the disk is full or another process writes without an end.
        """
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            connection = self._connection()
            try:
                with transaction(connection, begin):
                    yield connection
            finally:
                if not self._keep_open:
                    self.close()

    def _connection(self) -> sqlite3.Connection:
        if self._current is not None and self._current[1] == self._identity():
            return self._current[0]
        self.close()
        if not self.path.exists():
            create(self.path, self.schema, self._made_under)
        connection = connect(self.path, self.schema)
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

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's errors in plain words."""
        try:
            yield
        except (sqlite3.Error, OSError, Timeout, UnicodeDecodeError, MemoryError, MachineError, IndexError) as error:
            if isinstance(error, IndexError) and str(error) != NO_COLUMN:
                raise
            raise self.schema.error(f"{self.schema.what} in {self.path} cannot be used: {self._reason(error)}") from error

    def _reason(self, error: Exception) -> str:
        words = printable(one_line(error))
        if isinstance(error, UnicodeDecodeError):  # of a name or text in the file, or of SQLite's own words about it
            return f"the file is damaged (it holds text that is not UTF-8); {self.schema.damaged}."
        if isinstance(error, IndexError):
            return f"the file is damaged (a column is missing); {self.schema.damaged}."
        if isinstance(error, Timeout) or "locked" in words:
            return f"another process has been writing for {self.schema.patience:.0f} seconds (locked); try again when it has ended."
        if isinstance(error, MachineError):
            return words
        if is_out_of_memory(error):
            return f"out of memory; close other programs, then try again ({self.schema.unharmed})."
        if "full" in words or (isinstance(error, OSError) and error.errno in FULL):
            return f"the disk is full; free some space and try again ({self.schema.unharmed})."
        if isinstance(error, OSError) and error.errno not in DENIED:
            return f"{os_reason(error)}; {os_advice(error)}, then try again ({self.schema.unharmed})."
        if "unable to open" in words:  # this file or one of those that SQLite makes beside it
            reasons = "permission denied, no room for further files, or too many open files"
            return f"{reasons}; make the file and its folder writable, and free some space ({self.schema.unharmed})."
        if "readonly" in words or isinstance(error, OSError):
            return f"permission denied; make the file and its folder writable ({self.schema.unharmed})."
        if "malformed" in words or "not a database" in words or "decode to UTF-8" in words:
            return f"the file is damaged, or the disk does not read it ({words}); {self.schema.damaged}."
        if "I/O error" in words:
            words += ": the disk is failing, nearly full, or a network folder without locks"
        return f"{words}; check the disk and the file ({self.schema.unharmed})."


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """Committed at its end; undone by an exception."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def create(path: Path, schema: Schema, lock: Path) -> None:
    """Make the file beside its place and rename it: no process ever sees a database without its tables, and no two processes make two."""
    make_folder(path.parent)
    with take_lock(lock, schema.patience):
        if path.exists():
            return
        temporary = path.with_name(f".{path.name}.new")
        parts = (temporary, Path(f"{temporary}-wal"), Path(f"{temporary}-shm"))
        for leftover in parts:
            leftover.unlink(missing_ok=True)
        try:
            with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
                if schema.application is not None:
                    connection.execute(f"PRAGMA application_id = {schema.application}")
                migrate(connection, schema)
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # what is in the log; closing does the same, but says nothing where that fails
            if parts[1].exists() and parts[1].stat().st_size:
                raise sqlite3.OperationalError("disk I/O error")  # a file without its log would be a damaged one
            fsync(temporary)
            os.replace(temporary, path)
            fsync(path.parent)
        except Exception:
            for leftover in parts:
                remove(leftover)
            raise


def connect(path: Path, schema: Schema) -> sqlite3.Connection:
    """
    Raises:
        EngineError: of the schema's kind: a database of something else, or one of a newer engine.
        sqlite3.Error: the file cannot be opened.
    """
    address = path.resolve().as_uri() + "?mode=rw"
    connection = sqlite3.connect(address, uri=True, timeout=schema.patience, isolation_level=None, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        for name, function in schema.functions.items():
            connection.create_function(name, 1, function, deterministic=True)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # what was confirmed outlives a power cut
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if schema.application is not None and application != schema.application:
            raise schema.error(f"{path} is a database of another program; move it, or give the file of {schema.what}.")
        version, known = schema_version(connection), len(schema.migrations)
        if version > known:
            raise schema.error(f"{path} was written by a newer version (schema {version}, this version reads {known}); update Dual-AMN Explorer.")
        if version < known:
            migrate(connection, schema)
    except BaseException:
        connection.close()
        raise
    return connection


def schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, schema: Schema) -> None:
    """Apply the migrations that are missing, all or none; of several processes the first one does."""
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection, "BEGIN IMMEDIATE"):
        for script in schema.migrations[schema_version(connection) :]:
            for statement in statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(schema.migrations)}")


def statements(script: str) -> Iterator[str]:
    """The statements of a script one by one; ``executescript`` would end the transaction first."""
    found = ""
    for line in script.splitlines():
        found += f"{line}\n"
        if sqlite3.complete_statement(found):
            yield found
            found = ""
