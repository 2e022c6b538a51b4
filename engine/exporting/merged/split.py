"""A merged graph separated into the two graphs and the links that it was made of."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox

from engine.data.knowledge_graph import SIDES, Side
from engine.data.labels import XSD_STRING
from engine.errors import DataError, ExportError, printable
from engine.exporting.merged.files import COLUMNS, MATCHES, ROWS_AT_ONCE, graph_name, term
from engine.util.files import TEMPORARY, check_new_file, fsync, fsync_tree, make_folder, remove
from engine.util.machine import os_advice, os_reason

TRIPLES: Final = "triples"
PARTS: Final = {"relation": TRIPLES, "attribute": "attributes"}
HEADS: Final = {
    "triples": ("head", "relation", "tail"),
    "attributes": ("entity", "attribute", "value"),
    "links": ("source", "target", "split"),
    "declared": ("name",),
}
Row = tuple[str, ...]


@dataclass
class SplitRows:
    """The rows of the two graphs, by file."""

    rows: dict[str, list[Row]] = field(default_factory=dict)

    def add(self, kind: str, graph: str, subject: str, predicate: str, obj: str) -> None:
        if graph == MATCHES:
            self.rows.setdefault("links", []).append((subject, obj, "unsure" if predicate.startswith("predicted") else "train"))
        elif kind == "entity":
            self.rows.setdefault(f"declared_entities_{graph}", []).append((subject,))
        else:
            self.rows.setdefault(f"{PARTS[kind]}_{graph}", []).append((subject, predicate, obj))


def split_merged(path: Path, folder: Path, *, force: bool = False) -> dict[str, int]:
    """Write the two graphs of a merged one, and the pairs it was folded by, as Parquet tables that the engine reads as a data set.

    Args:
        path: a file of ``export --format merged`` or ``merged-parquet``.
        folder: where the tables go; made where it is missing.
        force: whether tables that are there may be replaced.

    Returns:
        Rows of each file.

    Raises:
        DataError: the file is no merged graph, or cannot be read.
        ExportError: a table is there already, or cannot be written.
    """
    found = SplitRows()
    read = read_parquet if path.name.lower().endswith(".parquet") else read_trig
    for kind, graph, subject, predicate, obj in read(path):
        found.add(kind, graph, subject, predicate, obj)
    if not {f"triples_{side}" for side in SIDES} <= found.rows.keys():
        raise DataError("this is not a merged graph: it does not have the triples of two graphs; give a file of export --format merged.", path=path)
    write_tables(found.rows, folder, force=force)
    return {f"{name}.parquet": len(rows) for name, rows in found.rows.items()}


def write_tables(rows: Mapping[str, list[Row]], folder: Path, *, force: bool) -> None:
    """Write the tables: a new folder appears with all of them. In one that is there the triples are removed first and written last, so that an
    interruption leaves no data set that could be read.

    Raises:
        ExportError: a table is there already, or cannot be written.
    """
    for name in rows:
        check_new_file(folder / f"{name}.parquet", force=force, folder_is_made=True)
    try:
        make_folder(folder.parent)
        place = folder if folder.is_dir() else folder.parent
        _remove_left_behind(place)
        beside = Path(tempfile.mkdtemp(prefix=BESIDE, suffix=TEMPORARY, dir=place))
        tables = beside / "tables"
        try:
            tables.mkdir()
            for name, own in rows.items():
                columns = zip(HEADS[name.partition("_")[0]], zip(*own, strict=True), strict=True)
                pq.write_table(pa.table({column: pa.array(values, type=pa.string()) for column, values in columns}), tables / f"{name}.parquet")
            fsync_tree(tables)
            _put_tables(tables, folder, [f"{name}.parquet" for name in rows])
        except BaseException:
            if not any(tables.glob(f"{EARLIER}*")):  # earlier tables that could not be put back stay where they are
                remove(beside)
            raise
        remove(beside)
    except OSError as error:
        words = f"the tables cannot be written to {folder} ({os_reason(error)}); {os_advice(error)}, or choose another folder with --out."
        raise ExportError(printable(words)) from error


BESIDE: Final = ".split-"
EARLIER: Final = "earlier-"
LEFT_SECONDS: Final = 3600.0


def _remove_left_behind(folder: Path) -> None:
    """What an earlier split could not remove; not if it holds the only copy of a table."""
    for path in folder.glob(f"{BESIDE}*{TEMPORARY}"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > LEFT_SECONDS and not any(path.rglob(f"{EARLIER}*")):
                remove(path)


def _put_tables(tables: Path, folder: Path, names: Sequence[str]) -> None:
    """A folder of tables into its place, or one by one into a folder that is there.

    There the triples go first and come last, so that an interruption leaves no data set that could be read; where a table cannot be moved, all are
    as they were before.

    Raises:
        OSError: one cannot be moved.
    """
    if not os.path.lexists(folder):
        os.rename(tables, folder)
        fsync(folder.parent)
        return
    last = sorted(names, key=lambda name: name.startswith(TRIPLES))
    aside = [(folder / name, tables / f"{EARLIER}{name}") for name in reversed(last)]
    done: list[tuple[Path, Path]] = []
    try:
        for start, end in (*aside, *((tables / name, folder / name) for name in last)):
            if os.path.lexists(start):
                os.replace(start, end)
                done.append((start, end))
    except OSError:
        for start, end in reversed(done):
            os.replace(end, start)
        raise
    fsync(folder)


def read_parquet(path: Path) -> Iterator[tuple[str, str, str, str, str]]:
    """Kind, graph, and the original statement of each row; of a pair its basis in the place of the predicate."""
    wanted = ["kind", "graph", "original_subject", "original_predicate", "original_object", "subject_basis"]
    try:
        with pq.ParquetFile(path) as file:
            if not set(COLUMNS) <= set(file.schema_arrow.names):
                raise DataError("this is not a merged graph: columns are missing; give a file of export --format merged-parquet.", path=path)
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=wanted):
                frame: pd.DataFrame = batch.to_pandas()
                for kind, graph, subject, predicate, obj, basis in zip(*(frame[name].astype(str).tolist() for name in wanted), strict=True):
                    yield kind, graph, subject, basis if kind == "match" else predicate, obj
    except pa.ArrowException as error:
        if isinstance(error, MemoryError):
            raise
        raise DataError(
            "this is not Parquet; give a file of export --format merged-parquet, or with another ending one of merged.", path=path
        ) from None
    except OSError as error:
        raise DataError(f"cannot be read ({os_reason(error)}); check the path.", path=path) from None


def read_trig(path: Path) -> Iterator[tuple[str, str, str, str, str]]:
    """The same of TriG; the names come from the graph of matches, so the file is read twice."""
    names = Originals.of(path)
    graphs = {ox.NamedNode(graph_name(side)): side for side in SIDES}
    for source, target, basis in names.pairs.values():
        yield "match", MATCHES, source, basis, target
    for graph, name in names.declared:
        yield "entity", graph, names.entity(graph, name), "", ""
    for quad in parsed(path):
        side = graphs.get(quad.graph_name) if isinstance(quad.graph_name, ox.NamedNode) else None
        if side is None:
            continue
        subject, name = value_of(quad.subject, path), quad.predicate.value
        if isinstance(quad.object, ox.Literal):
            yield "attribute", side, names.entity(side, subject), names.part(side, "Attribute", name), raw_value(quad.object)
            continue
        head, tail = names.entity(side, subject), names.entity(side, value_of(quad.object, path))
        if turned := names.names.get((side, "RelationInverse", name)):
            head, tail = tail, head
        yield "relation", side, head, turned or names.part(side, "Relation", name), tail


def parsed(path: Path) -> Iterator[ox.Quad]:
    try:
        with path.open("rb") as file:
            yield from ox.parse(file, format=ox.RdfFormat.TRIG)
    except OSError as error:
        raise DataError(f"cannot be read ({os_reason(error)}); check the path.", path=path) from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        message = "this is not TriG; give a file of export --format merged, or one of merged-parquet with the ending .parquet."
        raise DataError(message, path=path, line=line) from None


@dataclass(frozen=True)
class Originals:
    """What was called otherwise: (side, what, name in the merged graph) -> original name; and by node source, target and basis of each pair.

    Attributes:
        declared: entities that no statement of their graph has, by their names in the merged graph.
    """

    names: Mapping[tuple[Side, str, str], str]
    pairs: Mapping[str, tuple[str, str, str]]
    declared: Sequence[tuple[Side, str]] = ()

    @classmethod
    def of(cls, path: Path) -> Originals:
        words = {term(f"{side}{what}").value: (side, what) for side in SIDES for what in ("Entity", "Relation", "RelationInverse", "Attribute")}
        names: dict[tuple[Side, str, str], str] = {}
        ends: dict[str, dict[str, str]] = {}
        graph, graphs = ox.NamedNode(graph_name(MATCHES)), {graph_name(side): side for side in SIDES}
        declared: list[tuple[Side, str]] = []
        for quad in parsed(path):
            if quad.graph_name != graph:
                continue
            if quad.predicate == term("memberOf") and (side := graphs.get(value_of(quad.object, path))) is not None:
                declared.append((side, value_of(quad.subject, path)))
            if (known := words.get(quad.predicate.value)) is not None:
                names[(*known, value_of(quad.subject, path))] = value_of(quad.object, path)
            for what in (*SIDES, "basis"):
                if quad.predicate == term(what):
                    ends.setdefault(value_of(quad.subject, path), {})[what] = value_of(quad.object, path)
        whole = {node: found for node, found in ends.items() if len(found) == 3}
        return cls(names, {node: (found["source"], found["target"], found["basis"]) for node, found in whole.items()}, declared)

    def entity(self, side: Side, name: str) -> str:
        return self.part(side, "Entity", name)

    def part(self, side: Side, what: str, name: str) -> str:
        return self.names.get((side, what, name), name)


def value_of(node: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple, path: Path) -> str:
    """
    Raises:
        DataError: a triple about a triple, which no merged graph holds.
    """
    if isinstance(node, ox.Triple):
        raise DataError("this is not a merged graph: it has a triple about a triple; give a file of export --format merged.", path=path)
    return node.value


def raw_value(value: ox.Literal) -> str:
    """A literal as the graphs hold values."""
    if value.language:
        return f'"{value.value}"@{value.language}'
    return value.value if value.datatype.value == XSD_STRING else f'"{value.value}"^^<{value.datatype.value}>'
