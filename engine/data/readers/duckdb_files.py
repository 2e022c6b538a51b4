"""A DuckDB file with a query: read-only, one SELECT, within the limits of SQLite's; by the package duckdb, which need not be installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any, Final

from engine.data.knowledge_graph import Finding
from engine.data.readers.base import RawGraph
from engine.data.readers.queries import DEFAULT_QUERY, EXAMPLE, ROWS, SECONDS, check_query, graph_of_rows
from engine.data.readers.records import Notes, named_list
from engine.errors import DataError
from engine.util.text import one_line, shorten

TITLE: Final = "DuckDB database"
DUCKDB_MAGIC: Final = b"DUCK"
MAGIC_AT: Final = 8
AT_ONCE: Final = 10_000
SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": "2GiB",
    "threads": "1",
    "lock_configuration": "true",
}
"""No other file, no variable of this program, no network; nothing is written, and no query changes that."""
NOT_INSTALLED: Final = (
    "this is a DuckDB database, and the package 'duckdb' is not installed; install it (pip install -r requirements-extras.txt), "
    "or export the tables as Parquet."
)


def is_duckdb(head: bytes) -> bool:
    """Whether a file that begins so is a DuckDB database."""
    return head[MAGIC_AT : MAGIC_AT + len(DUCKDB_MAGIC)] == DUCKDB_MAGIC


def read_duckdb(path: Path, query: str, findings: list[Finding]) -> RawGraph:
    """As :func:`engine.data.readers.databases.read_database`.

    Raises:
        DataError: the package is not installed; a query that is none or does something else than read, too long or too many rows, columns that are
            no graph.
    """
    check_query(path, query)
    notes = Notes(path, "database")
    with _opened(path) as connection:
        tables = [str(name) for (name,) in connection.execute(TABLES).fetchall()]
        if not query.strip() and "triples" not in (name.lower() for name in tables):
            known = named_list(tables)
            raise DataError(f"this is a {TITLE}; say what of it is the graph with a query such as {EXAMPLE} (it has: {known}).", path=path)
        statements = connection.extract_statements(query.strip() or DEFAULT_QUERY)
        if len(statements) != 1:
            raise DataError("there are several statements, or none; write one SELECT alone.", path=path)
        if statements[0].type.name != "SELECT":
            raise DataError(f"the query does something else than read; write one SELECT, for example {EXAMPLE}.", path=path)
        if statements[0].named_parameters:
            raise DataError("the query has parameters (? or $name), which have no values here; write the values into it.", path=path)
        cursor = connection.execute(statements[0])
        names = [str(column[0]) for column in cursor.description]
        graph = graph_of_rows(path, names, _rows(path, cursor), notes, TITLE)
    findings += notes.findings()
    return graph


TABLES: Final = (
    "SELECT table_name FROM duckdb_tables() WHERE NOT internal UNION SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1 LIMIT 50"
)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The database, read-only and cut off from everything else; a query that takes too long is interrupted.

    Raises:
        DataError: no package, or what DuckDB refuses, in plain words.
    """
    try:
        import duckdb  # optional
    except ImportError:
        raise DataError(NOT_INSTALLED, path=path) from None
    try:
        connection = duckdb.connect(str(path), read_only=True, config=SETTINGS)
        clock = Timer(SECONDS, connection.interrupt)
        clock.daemon = True
        clock.start()
        try:
            yield connection
        finally:
            clock.cancel()
            connection.close()
    except duckdb.Error as error:
        raise DataError(_explained(type(error).__name__, one_line(error, 400)), path=path) from None


def _explained(kind: str, words: str) -> str:
    shown = shorten(words, 160)
    if kind == "InterruptException" or "Interrupted" in words:
        return f"the query takes longer than {SECONDS:.0f} seconds, the limit; make it simpler, or export its rows as CSV."
    if kind == "PermissionException":
        return f"the query does something else than read this file; write one SELECT of its tables, for example {EXAMPLE}."
    if kind == "OutOfMemoryException":
        return "the query needs more than 2 GiB of memory, the limit; make it simpler, or export its rows as CSV."
    if "orrupt" in words or "checksum" in words:
        return f"this database is damaged ({shown}); copy or export it again."
    if kind in ("IOException", "SerializationException", "InternalException", "FatalException"):
        return f"this database cannot be opened ({shown}); close other programs that use it, or export its tables as Parquet."
    return f"the query cannot be run ({shown}); correct it."


def _rows(path: Path, cursor: Any) -> Iterator[tuple[Any, ...]]:
    number = 0
    while rows := cursor.fetchmany(AT_ONCE):
        number += len(rows)
        if number > ROWS:
            raise DataError(f"the query gives more than {ROWS:,} rows, the limit; thin out the graph, or export the rows as CSV.", path=path)
        yield from rows
