"""A glance at each file: what it was taken for, its columns and first rows. It needs no whole reading, so that a wrong column can be mended first."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.data.knowledge_graph import FileCount
from engine.data.readers import READERS
from engine.data.tabular import Layout, Role, Table, open_head, place
from engine.errors import DataError
from engine.importing.corrections import Corrections
from engine.importing.material import Material, SourceFile, assign
from engine.importing.sniffing import RDF_FORMS, SHAPES, Sniffed, layout_of, sniff
from engine.util.text import shorten, size_text

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
        sample: the first rows beneath the header.
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
    if kind.form in RDF_FORMS:
        return UnderstoodFile(role, file.name, kind.words, file.size)
    layout = layout_of(kind, layout)
    try:
        table = open_head(file.path, layout)
    except DataError:
        return UnderstoodFile(role, file.name, kind.words, file.size)  # reading the whole file says what is wrong with it
    shown = _shown(table, _columns(role, table), layout)
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
