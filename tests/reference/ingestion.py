"""Files to graphs, as plainly as it can be said: Python's own strings, sets and sorting, a whole file at a time."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Row = tuple[int, list[str]]
"""A line's number and its cells."""


class RefusedError(Exception):
    """The file breaks a rule."""


def text_of(content: bytes) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in content:
        raise RefusedError
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RefusedError from None
    return text if "\n" in text else text.replace("\r", "\n")


def lines_of(content: bytes) -> list[tuple[int, str]]:
    numbered = ((number, line.removesuffix("\r")) for number, line in enumerate(text_of(content).split("\n"), start=1))
    return [(number, line) for number, line in numbered if line]


def check_identifier(text: str) -> None:
    if not text.strip() or len(text) > 4096 or any(character < " " or character == "\x7f" for character in text):
        raise RefusedError


def tabbed(content: bytes, width: int) -> list[Row]:
    rows = [(number, line.split("\t")) for number, line in lines_of(content)]
    if not rows or any(len(cells) != width for _, cells in rows):
        raise RefusedError
    for _, cells in rows:
        for cell in cells:
            check_identifier(cell)
    return rows


def literals(content: bytes) -> tuple[list[Row], int]:
    """Attribute triples, and how many lines were passed over."""
    rows = [(number, line.split("\t", 2)) for number, line in lines_of(content)]
    good = [(number, cells) for number, cells in rows if len(cells) == 3 and cells[0] and cells[1]]
    if rows and not good:
        raise RefusedError
    for _, cells in good:
        check_identifier(cells[0])
        check_identifier(cells[1])
    return good, len(rows) - len(good)


def tsv(content: bytes) -> list[Row]:
    rows: list[Row] = []
    for number, line in lines_of(content):
        if rows or not line.startswith("#") or "\t" in line:
            rows.append((number, line.split("\t")))
    return alike(rows)


def comma_separated(content: bytes) -> list[Row]:
    reader = csv.reader(io.StringIO(text_of(content), newline=""), strict=True)
    rows: list[Row] = []
    start = 1
    try:
        for cells in reader:
            if cells:
                rows.append((start, cells))
            start = reader.line_num + 1
    except csv.Error:
        raise RefusedError from None
    return alike(rows)


def alike(rows: list[Row]) -> list[Row]:
    if not rows or any(len(cells) != len(rows[0][1]) for _, cells in rows):
        raise RefusedError
    return rows


@dataclass(frozen=True)
class Graph:
    entities: list[str]
    relations: list[str]
    triples: list[tuple[int, int, int]]
    attributes: list[tuple[int, str, str]]


def graph_of(triples: Iterable[Sequence[str]], attributes: Iterable[Sequence[str]], linked: Iterable[str]) -> Graph:
    triples, attributes = list(triples), list(attributes)
    named = {end for head, _, tail in triples for end in (head, tail)} | {entity for entity, _, _ in attributes}
    entities = sorted(named | set(linked))
    relations = sorted({relation for _, relation, _ in triples})
    numbered = {(entities.index(head), relations.index(relation), entities.index(tail)) for head, relation, tail in triples}
    message = dict.fromkeys((entities.index(entity), name, value) for entity, name, value in attributes if value.strip())
    return Graph(entities, relations, sorted(numbered), sorted(message, key=lambda row: row[0]))


def fingerprint_of(graphs: Sequence[Graph], known: Sequence[tuple[int, int]], unsure: Sequence[tuple[int, int]]) -> str:
    hasher = hashlib.sha256(b"alignment-data-1")

    def numbers(values: object) -> None:
        array = np.array(values, dtype="<i8")
        hasher.update(np.array([array.size], dtype="<i8").tobytes() + array.tobytes())

    def texts(values: Sequence[str]) -> None:
        numbers([len(value.encode()) for value in values])
        hasher.update("".join(values).encode())

    for graph in graphs:
        texts(graph.entities)
        texts(graph.relations)
        numbers(graph.triples)
        attributes = sorted(graph.attributes)
        numbers([entity for entity, _, _ in attributes])
        texts([name for _, name, _ in attributes])
        texts([value for _, _, value in attributes])
    numbers(known)
    numbers(unsure)
    return hasher.hexdigest()
