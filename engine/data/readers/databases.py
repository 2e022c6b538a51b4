"""A SQLite file with a query: read-only, one SELECT, within limits of time and rows; or a DuckDB file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from engine.data.files import read_head
from engine.data.knowledge_graph import Finding
from engine.data.readers.base import RawGraph
from engine.data.readers.duckdb_files import is_duckdb, read_duckdb
from engine.data.readers.queries import DEFAULT_QUERY, EXAMPLE, ROWS, SECONDS, check_query, graph_of_rows
from engine.data.readers.records import Notes, named_list
from engine.errors import DataError
from engine.util.text import shorten

SQLITE_MAGIC: Final = b"SQLite format 3\0"
LONGEST_CELL: Final = 2**24
INSTRUCTIONS: Final = 50_000
"""Steps of SQLite's machine between two looks at the clock."""
ALLOWED: Final = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
FORBIDDEN_FUNCTIONS: Final = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"})
TITLE: Final = "SQLite database"


def read_database(path: Path, query: str, findings: list[Finding]) -> RawGraph:
    """The graph that a query gives: rows of head, relation, tail, with a fourth column ``value`` where a row is an attribute; or a row for each
    entity, whose identifier is in a column called so.

    Args:
        path: the file, which is opened read-only.
        query: one SELECT without parameters; "" reads the table or view ``triples``.
        findings: what was noticed before.

    Raises:
        DataError: no database, a query that is none or does something else than read, too long or too many rows, columns that are no graph.
    """
    if is_duckdb(read_head(path, len(SQLITE_MAGIC))):
        return read_duckdb(path, query, findings)
    _check(path, query)
    notes = Notes(path, "database")
    with _opened(path) as connection:
        tables = [
            str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name LIMIT 50")
        ]
        connection.set_authorizer(_only_reading)
        if not query.strip() and "triples" not in (name.lower() for name in tables):
            known = named_list(tables)
            raise DataError(f"this is a SQLite database; say what of it is the graph with a query such as {EXAMPLE} (it has: {known}).", path=path)
        cursor = connection.execute(query.strip() or DEFAULT_QUERY)
        if cursor.description is None:
            raise DataError(f"this query gives no rows and columns; write one SELECT, for example {EXAMPLE}.", path=path)
        names = [str(column[0]) for column in cursor.description]
        graph = graph_of_rows(path, names, _rows(path, cursor), notes, TITLE)
    findings += notes.findings()
    return graph


def _check(path: Path, query: str) -> None:
    if read_head(path, len(SQLITE_MAGIC)) != SQLITE_MAGIC:
        raise DataError("this is no SQLite or DuckDB database; expected one with a table of triples, or a query.", path=path)
    check_query(path, query)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The database; nothing is written, and no journal beside it is looked at.

    Raises:
        DataError: what SQLite refuses, in plain words.
    """
    end = time.monotonic() + SECONDS
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=0)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_CELL)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.text_factory = _decoded
            for pragma in ("query_only = 1", "trusted_schema = 0", "cell_size_check = 1", "cache_size = -65536"):
                connection.execute(f"PRAGMA {pragma}")
            connection.set_progress_handler(lambda: int(time.monotonic() > end), INSTRUCTIONS)
            yield connection
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise DataError(_explained(error), path=path) from None
    except UnicodeDecodeError:  # of SQLite's own message, which quotes what is damaged
        raise DataError("this database is damaged; write it again.", path=path) from None


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _only_reading(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY


def _explained(error: Exception) -> str:
    words = shorten(str(error), 120)
    if "interrupted" in words:
        return f"the query takes longer than {SECONDS:.0f} seconds, the limit; make it simpler, or export its rows as CSV."
    if "not authorized" in words or "authorization denied" in words or "prohibited" in words:
        return f"the query does something else than read; write one SELECT, for example {EXAMPLE}."
    if "one statement" in words:
        return "there are several statements; write one SELECT alone."
    if "binding" in words.lower():
        return "the query has parameters (? or :name), which have no values here; write the values into it."
    if "malformed" in words or "not a database" in words:
        return f"this database is damaged ({words}); copy or export it again."
    return f"the query cannot be run ({words}); correct it."


def _rows(path: Path, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    for number, row in enumerate(cursor, start=1):
        if number > ROWS:
            raise DataError(f"the query gives more than {ROWS:,} rows, the limit; thin out the graph, or export the rows as CSV.", path=path)
        yield row
