"""Graphs as databases and programs export them: GraphML, GEXF, JSON lines, SQLite, DuckDB; a file for each graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from engine.config import DataConfig
from engine.data.endings import EXPORT_ENDINGS, ExportForm, unpacked_name
from engine.data.knowledge_graph import Finding
from engine.data.readers.base import Part, RawDataset, RawGraph, RawLinks
from engine.data.readers.databases import read_database
from engine.data.readers.json_records import read_json_lines
from engine.data.readers.naming import NamedFilesReader
from engine.data.readers.rdf import rdf_suffix, read_same_as
from engine.data.readers.tables import complete, gather_links, read_link_parts
from engine.data.readers.xml_graphs import read_xml_graph
from engine.data.tabular import table_suffix

EXPORT_WORDS: Final[Mapping[ExportForm, str]] = {
    "graphml": "GraphML",
    "gexf": "GEXF",
    "jsonl": "JSON lines",
    "sqlite": "SQLite database",
    "duckdb": "DuckDB database",
}


def export_form(path: Path) -> ExportForm | None:
    """The form that a file's name says, plain or gzipped; None where it says none of these."""
    name = unpacked_name(path.name)
    return next((form for form, endings in EXPORT_ENDINGS.items() if name.endswith(endings)), None)


def read_export(path: Path, form: ExportForm, findings: list[Finding], query: str = "") -> RawGraph:
    """A graph; what was understood and left out is added to the findings. ``query``: what of a database is the graph.

    Raises:
        DataError: the file does not hold what it should.
    """
    if form == "jsonl":
        return read_json_lines(path, findings)
    if form == "sqlite" or form == "duckdb":
        return read_database(path, query, findings)
    return read_xml_graph(path, form, findings)


class ExportsReader(NamedFilesReader):
    name = "exports"
    description = "GraphML, GEXF, JSON lines, a SQLite or DuckDB database: a file for each graph, and links as a table or as owl:sameAs triples"

    def is_graph(self, path: Path) -> bool:
        return export_form(path) is not None

    def is_links(self, path: Path) -> bool:
        return bool(rdf_suffix(path) or table_suffix(path))

    def read(self, folder: Path, config: DataConfig) -> RawDataset:
        files = complete(self.sorted_files(folder, config.links))
        findings = files.noticed()
        source, target = (self._graph(files.graph(number), findings) for number in "12")

        def read(path: Path, part: Part) -> dict[Part, RawLinks]:
            return {part: read_same_as(path)} if rdf_suffix(path) else read_link_parts(path, part)

        links, given = gather_links(files, read)
        return RawDataset(source, target, links, given, tuple(findings))

    def _graph(self, path: Path, findings: list[Finding]) -> RawGraph:
        form = export_form(path)
        assert form is not None  # is_graph
        return read_export(path, form, findings)
