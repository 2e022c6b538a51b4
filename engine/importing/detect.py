"""What a file is likely to be, by its name and its first lines, and what is shown of it."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from engine.data.dialects import TAB
from engine.data.endings import EXPORT_ENDINGS, ONTOLOGY_ENDINGS, RDF_ENDINGS, ExportForm
from engine.data.files import read_head
from engine.data.knowledge_graph import FileCount
from engine.data.readers import READERS
from engine.data.readers.databases import SQLITE_MAGIC
from engine.data.readers.duckdb_files import is_duckdb
from engine.data.readers.entity_tables import ENTITY_ROLES, entity_layout, is_entity_table
from engine.data.readers.exports import EXPORT_WORDS, export_form
from engine.data.readers.json_records import is_json_lines
from engine.data.readers.property_tables import text_delimiter
from engine.data.readers.rdf import rdf_suffix
from engine.data.readers.syntaxes import ontology_syntax
from engine.data.tabular import (
    ATTRIBUTE_ROLES,
    DECLARED_ROLES,
    LINK_ROLES,
    NAME_ROLES,
    TRIPLE_ROLES,
    Layout,
    Role,
    Table,
    likely_delimiter,
    open_head,
    place,
    table_suffix,
)
from engine.errors import DataError, DataImportError
from engine.importing.source import Corrections, Material, SourceFile, assign
from engine.util.text import shorten, size_text

# What kind of file something is, by its content and then by its name: a name is only what somebody called it.

Form = Literal[
    "table",
    "parquet",
    "turtle",
    "ntriples",
    "rdfxml",
    "nquads",
    "trig",
    "jsonld",
    "obo",
    "ofn",
    "omn",
    "owx",
    "graphml",
    "gexf",
    "jsonl",
    "sqlite",
    "duckdb",
    "neo4j",
]
SHAPES: Final[Mapping[str, Sequence[Sequence[Role]]]] = {
    "graph": (TRIPLE_ROLES,),
    "attributes": (ATTRIBUTE_ROLES, NAME_ROLES),
    "links": (LINK_ROLES,),
    "declared": (DECLARED_ROLES,),
}
"""First word of a file's role -> the columns of each kind of table that it may be."""
HEAD: Final = 2**16
LINES: Final = 50
DELIMITERS: Final[Mapping[str, str]] = {",": "comma", ";": "semicolon", TAB: "tab", "|": "vertical bar"}
FORM_WORDS: Final[Mapping[Form, str]] = {
    "table": "table",
    "parquet": "Parquet table",
    "turtle": "Turtle",
    "ntriples": "N-Triples",
    "rdfxml": "RDF/XML",
    "nquads": "N-Quads",
    "trig": "TriG",
    "jsonld": "JSON-LD",
    "obo": "OBO",
    "ofn": "OWL functional-style syntax",
    "omn": "OWL Manchester syntax",
    "owx": "OWL/XML",
    "graphml": EXPORT_WORDS["graphml"],
    "gexf": EXPORT_WORDS["gexf"],
    "jsonl": EXPORT_WORDS["jsonl"],
    "sqlite": EXPORT_WORDS["sqlite"],
    "duckdb": EXPORT_WORDS["duckdb"],
    "neo4j": "Neo4j's CSV",
}
RDF_FORMS: Final[frozenset[Form]] = frozenset(RDF_ENDINGS)
GRAPH_FORMS: Final[frozenset[Form]] = RDF_FORMS | frozenset(ONTOLOGY_ENDINGS)
"""Those whose files say themselves what in them are triples and attributes."""
SUFFIXES: Final[Mapping[Form, str]] = {
    "parquet": ".parquet",
    **{rdf: endings[0] for rdf, endings in RDF_ENDINGS.items()},
    **{syntax: endings[0] for syntax, endings in ONTOLOGY_ENDINGS.items()},
    **{export: endings[0] for export, endings in EXPORT_ENDINGS.items()},
}
_BY_SUFFIX: Final[Mapping[str, Form]] = {
    **{ending: rdf for rdf, endings in RDF_ENDINGS.items() for ending in endings},
    ".parquet": "parquet",
    ".csv": "table",
    ".tsv": "table",
}
_MAGIC: Final = (
    (b"PK\x03\x04", "a zip archive, perhaps an Excel workbook; save the sheet as CSV, or give the archive as an archive"),
    (b"\xd0\xcf\x11\xe0", "an old Office file; save the sheet as CSV"),
    (b"%PDF", "a PDF; give the data behind it"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"SQLite format 3", "a database, which is read as a graph only; export its tables as CSV"),
    (b"BZh", "packed with bzip2; unpack it, or pack it with gzip"),
    (b"\xfd7zXZ", "packed with xz; unpack it, or pack it with gzip"),
    (b"7z\xbc\xaf", "a 7z archive; pack it as .zip"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd; unpack it, or pack it with gzip"),
)
_NTRIPLE = re.compile(r"\s*(?:<[^<>\s]*>|_:\S+)\s+<[^<>\s]*>\s+.*\.\s*(?:#.*)?")
_NQUAD = re.compile(r"\s*(?:<[^<>\s]*>|_:\S+)\s+<[^<>\s]*>\s+.*\s(?:<[^<>\s]*>|_:\S+)\s*\.\s*(?:#.*)?")
_QUAD_OBJECT = re.compile(r"\s*\S+\s+\S+\s+(?:<[^<>\s]*>|_:\S+)\s*\.\s*(?:#.*)?")
_TURTLE = re.compile(r"^\s*(?:@prefix|@base|PREFIX|BASE)\s", re.MULTILINE | re.IGNORECASE)
_XML = re.compile(r"\s*<(?:\?xml|!DOCTYPE|!--|rdf:RDF)")

_XML_GRAPH = re.compile(r"\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^<>\[]*(?:\[.*?\]\s*)?>\s*)*<(?:\w+:)?(graphml|gexf)\b", re.DOTALL)
_HTML = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!DOCTYPE\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Sniffed:
    """A file's form, and for text tables the delimiter ("" otherwise)."""

    form: Form
    delimiter: str = ""

    @property
    def export(self) -> ExportForm | None:
        """The form, where it is one of a graph as a program or database exports it."""
        return next((form for form in EXPORT_ENDINGS if form == self.form), None)

    @property
    def words(self) -> str:
        """'table, semicolon between the cells'."""
        return (
            f"{FORM_WORDS[self.form]}, {DELIMITERS.get(self.delimiter, self.delimiter)} between the cells"
            if self.delimiter
            else FORM_WORDS[self.form]
        )


def sniff(path: Path, name: str, role: str = "") -> Sniffed:
    """
    Args:
        path: the file.
        name: what its owner calls it; its ending counts where the content leaves a choice.
        role: what it is to be ("graph 1", "links train"), if that is known: a table has the columns for that.

    Raises:
        DataImportError: unreadable, empty, a web page, or no text and no Parquet.
    """
    try:
        head = read_head(path, HEAD)
    except DataError as error:
        raise DataImportError(f"{shorten(name)}: {error.complaint}") from None
    if head.startswith(b"PAR1"):
        return Sniffed("parquet")
    shown = shorten(name)
    if head.startswith(SQLITE_MAGIC) and (not role or role.startswith("graph")):
        return Sniffed("sqlite")
    if is_duckdb(head):
        if not role or role.startswith("graph"):
            return Sniffed("duckdb")
        raise DataImportError(f"{shown} is a DuckDB database, which is read as a graph only; export its tables as Parquet or CSV.")
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise DataImportError(f"{shown} is {what}; expected a text table, Parquet or RDF.")
    if b"\0" in head and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):  # UTF-16 has its own message in the reader
        raise DataImportError(f"{shown} is a binary file, whatever its name says; expected a text table, Parquet or RDF.")
    text = head.decode("utf-8-sig", "replace")
    if not text.strip():
        if role.startswith("links"):  # that says that there are none
            return Sniffed("table")
        raise DataImportError(f"{shown} is empty; choose another file.")
    if _HTML.match(text):
        raise DataImportError(
            f"{shown} is a web page and not a table or graph; download the file itself, perhaps after signing in where it comes from."
        )
    if role.startswith("graph") and (delimiter := text_delimiter(text)):
        return Sniffed("neo4j", delimiter)
    form = _text_form(text, name)
    if form != "table":
        return Sniffed(form)
    return Sniffed(form, likely_delimiter(Path(name), text, whole=len(head) < HEAD, shapes=SHAPES.get(role.split(" ")[0], ())))


def _is_json(text: str) -> bool:
    """Whether it is JSON or JSON Lines; a list in brackets alone may be a cell."""
    start = text.lstrip()
    if not start.startswith(("{", "[")):
        return False
    if re.match(r"\{\s*\"[^\"\n]*\"\s*:|\[\s*[\[{]\s*\"", start):
        return True
    try:
        return isinstance(json.loads(start.split("\n", 1)[0]), dict | list)
    except (ValueError, RecursionError):  # brackets without end
        return False


def layout_of(kind: Sniffed, said: Layout) -> Layout:
    """The stated properties of a table, and otherwise those found in its content."""
    return dataclasses.replace(said, delimiter=said.delimiter or kind.delimiter or None)


def _text_form(text: str, name: str) -> Form:
    if syntax := ontology_syntax(Path(name), text):
        return syntax
    if found := _XML_GRAPH.match(text):
        return "graphml" if found[1] == "graphml" else "gexf"
    if export_form(Path(name)) == "jsonl" or (rdf_suffix(Path(name)) == "" and is_json_lines(text)):
        return "jsonl"
    suffix = rdf_suffix(Path(name)) or table_suffix(Path(name))
    if _XML.match(text) or (suffix and _BY_SUFFIX[suffix] == "rdfxml" and text.lstrip().startswith("<")):
        return "rdfxml"
    if suffix != ".trig" and _is_json(text):
        if suffix != ".jsonld":
            raise DataImportError(
                f"{shorten(name)} is JSON in one piece; of JSON are read JSON lines, one triple or entity per line, and JSON-LD: name it .jsonld "
                "if it is that, else write its entries line by line."
            )
        return "jsonld"
    if suffix and suffix != ".parquet" and _BY_SUFFIX[suffix] != "rdfxml":
        return _BY_SUFFIX[suffix]
    lines = [line for line in text.split("\n")[:LINES] if line.strip() and not line.startswith("#")]
    if _TURTLE.search(text):
        return "turtle"
    if not lines or not _NTRIPLE.fullmatch(lines[0]):
        return "table"
    return "nquads" if any(_NQUAD.fullmatch(line) and not _QUAD_OBJECT.fullmatch(line) for line in lines) else "ntriples"


# A glance at each file: its detected kind, its columns and first rows. Only its beginning is read, so that a wrong column can be corrected first.

SAMPLE_ROWS: Final = 5


@dataclass(frozen=True)
class UnderstoodTable:
    """How a table was read.

    Attributes:
        header: whether the first row names the columns.
        delimiter: between the cells; "" for Parquet.
        columns: names of the columns, or "column 1", ...
        places: role of a column -> its position.
        offered: roles that a column may be given, the needed ones first.
        sample: the first rows below the header.
        trim: whether blanks around the cells are cut off.
        swapped: whether source and target were exchanged after the columns were chosen; ``places`` says where they are now.
    """

    header: bool
    delimiter: str
    columns: tuple[str, ...]
    places: Mapping[str, int]
    offered: tuple[str, ...]
    sample: tuple[tuple[str, ...], ...]
    trim: bool = False
    swapped: bool = False

    def columns_with(self, role: str, position: int) -> dict[str, int]:
        """The columns of a :class:`Layout` after a role was given another one; a role that had it before gets this one's in exchange."""
        places = {**self.places, role: position}
        displaced = next((other for other, at in self.places.items() if other != role and at == position), None)
        if displaced is not None and role in self.places:
            places[displaced] = self.places[role]
        return _exchanged(places) if self.swapped else places


@dataclass(frozen=True)
class UnderstoodFile:
    """What a file was taken for.

    Attributes:
        role: "graph 1", "links", ...
        name: what its owner calls it.
        form: for people: "table, comma between the cells", "Turtle".
        size: in bytes.
        table: how its columns were read; None for what has no columns.
        counts: what became of its lines, of each kind of rows in it; known once the whole file was read.
    """

    role: str
    name: str
    form: str
    size: int
    table: UnderstoodTable | None = None
    counts: tuple[FileCount, ...] = ()

    @property
    def words(self) -> str:
        return f"{self.form}, {size_text(self.size)}"


def glance(material: Material, corrections: Corrections) -> tuple[UnderstoodFile, ...]:
    """What the files were taken for, graphs first.

    Raises:
        DataImportError: a file is nothing that could be read, or several could play one role.
    """
    whole = material.whole_folder
    if whole is not None and not corrections.roles:
        return tuple(UnderstoodFile("", file.name, whole, file.size) for file in material.files)
    roles = assign(material, corrections.roles)
    order = sorted(roles, key=lambda role: (not role.startswith("graph"), not role.startswith("links"), role))
    return tuple(_understood(role, roles[role], corrections) for role in order)


def _understood(role: str, file: SourceFile, corrections: Corrections) -> UnderstoodFile:
    layout = corrections.tables.get(role, Layout())
    if (reader := READERS.for_file(file.name)) is not None and role.startswith("graph"):
        return UnderstoodFile(role, file.name, reader.name, file.size)
    kind = sniff(file.path, file.name, role)
    if kind.form in GRAPH_FORMS or kind.export or (kind.form == "neo4j" and not layout.columns):
        return UnderstoodFile(role, file.name, kind.words, file.size)
    layout = layout_of(kind, layout)
    try:
        table = open_head(file.path, layout)
    except DataError:
        return UnderstoodFile(role, file.name, kind.words, file.size)  # reading the whole file says what is wrong with it
    if wide := role.startswith("graph") and is_entity_table(table, layout):
        layout = entity_layout(layout)
    shown = _shown(table, ENTITY_ROLES if wide else _columns(role, table), layout)
    if corrections.swap_links and role.startswith("links"):
        shown = dataclasses.replace(shown, places=_exchanged(shown.places), swapped=True)
    return UnderstoodFile(role, file.name, Sniffed(kind.form, table.delimiter).words, file.size, shown)


def _exchanged(places: Mapping[str, int]) -> dict[str, int]:
    """With source and target in each other's place."""
    others = {"source": "target", "target": "source"}
    return {role: places[others[role]] if others.get(role) in places else at for role, at in places.items()}


def _columns(role: str, table: Table) -> Sequence[Role]:
    """Of the kinds of table that a file in this role may be; one of two columns names entities and says nothing else."""
    shapes = SHAPES[role.split(" ")[0]]
    return next((roles for roles in shapes[1:] if len(roles) == len(table.names)), shapes[0])


def _shown(table: Table, columns: Sequence[Role], layout: Layout) -> UnderstoodTable:
    try:
        places, header = place(table, columns, layout)
    except DataError:
        places, header = {}, bool(layout.header)
    named = header or table.always_named
    first = 1 if header and not table.always_named else 0
    return UnderstoodTable(
        header=named,
        delimiter=table.delimiter,
        columns=tuple(shorten(name, 60) if named else f"column {at}" for at, name in enumerate(table.names, start=1)),
        places={role.name: position for role, position in places.items()},
        offered=tuple(role.name for role in columns),
        sample=tuple(tuple(shorten(cell, 120) for cell in row) for row in table.sample(first, SAMPLE_ROWS)),
        trim=layout.trim,
    )
