"""JSON lines: a triple or an entity with all that is known of it on each line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from engine.data.files import read_blocks
from engine.data.knowledge_graph import Finding
from engine.data.readers.base import RawGraph
from engine.data.readers.records import IDENTIFIER_WORDS, Notes, RowsBuilder, divided, named_list, recorded_graph
from engine.data.rows import identifier_problem
from engine.data.tabular import ATTRIBUTE_ROLES, TRIPLE_ROLES, Role, normalise_name
from engine.data.texts import Texts, TextsBuilder, strings
from engine.errors import DataError
from engine.util.objects import RepeatedKeyError, with_distinct_keys
from engine.util.text import count, shorten

EXPECTED: Final = (
    'expected a triple, for example ["Rome", "capitalOf", "Italy"] or {"head": "Rome", "relation": "capitalOf", "tail": "Italy"}, or an entity, '
    'for example {"id": "Rome", "name": "Roma", "capitalOf": "Italy"}'
)
WHOLE: Final = "this is JSON in one piece; write one object per line, for example with jq -c '.[]'."


class Number(str):
    """A number as it is written."""


def is_json_lines(text: str) -> bool:
    """Whether the first line of a text is a triple or an entity, and no JSON-LD."""
    try:
        first = json.loads(text.lstrip().split("\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    if isinstance(first, list):
        return len(first) == len(TRIPLE_ROLES) and not any(isinstance(one, list | dict) for one in first)
    return isinstance(first, dict) and not any(key in first for key in ("@context", "@graph", "@id"))


def read_json_lines(path: Path, findings: list[Finding]) -> RawGraph:
    """A graph, line by line.

    Raises:
        DataError: a line is neither a triple nor an entity; an identifier that cannot be one.
    """
    reading = _Reading(path)
    for number, line in _lines(path):
        reading.add(number, line)
    if not reading.read:
        raise DataError(f"this file is empty; {EXPECTED}.", path=path)
    graph = reading.graph()
    findings += reading.notes.findings()
    return graph


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for block in read_blocks(path):
        yield from ((number, line) for number, line in block.filled_lines() if line.strip())


class _Reading:
    """Columns of a graph in the making.

    Attributes:
        read: how many triples and entities there were.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes = Notes(path)
        self.read = 0
        self.records = 0
        self._triples, self._attributes, self._facts = (RowsBuilder(path) for _ in range(3))
        self._ids = TextsBuilder()
        self._pending: list[str] = []
        self._nested: set[str] = set()
        self._keys: dict[tuple[str, ...], tuple[Sequence[str] | None, Sequence[str] | None, str | None]] = {}

    def add(self, number: int, line: str) -> None:
        value = self._parsed(number, line)
        if isinstance(value, list) and len(value) == len(TRIPLE_ROLES):
            self._add_triple(number, value)
        elif isinstance(value, dict) and value:
            self._add_object(number, value)
        else:
            whole = isinstance(value, list) and any(isinstance(one, list | dict) for one in value)
            raise DataError(WHOLE if whole else f"{EXPECTED}.", path=self.path, line=number)
        self.read += 1

    def graph(self) -> RawGraph:
        self._ids.add(strings(self._pending))
        ids = self._ids.texts()
        triples, attributes = self._triples.columns(), self._attributes.columns()
        more, described, keys = divided(self._facts.columns(), ids.words)
        first, second, third = (Texts.joined(one, other) for one, other in zip(triples, more, strict=True))
        entity, attribute, value = (Texts.joined(one, other) for one, other in zip(attributes, described, strict=True))
        lines = count(self.read - self.records, "triple") if self.read > self.records else ""
        records = (
            f"{count(self.records, 'entity', 'entities')}, of whose keys are relations {named_list(sorted({*keys, *self._nested}))}"
            if self.records
            else ""
        )
        self.notes.recognised = f"JSON lines of {' and '.join(filter(None, (lines, records)))}"
        return recorded_graph(self.path, (first, second, third), (entity, attribute, value), ids, self.notes)

    def _parsed(self, number: int, line: str) -> Any:
        try:
            value = json.loads(line, parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=with_distinct_keys)
        except RepeatedKeyError as error:
            message = f"{error}; write several values as a list, and each entity on a line of its own."
            raise DataError(message, path=self.path, line=number) from None
        except RecursionError:
            raise DataError("this line is nested too deeply; write it flat.", path=self.path, line=number) from None
        except ValueError as error:
            if self.read == 0 and re.match(r"\s*[\[{]", line):
                raise DataError(WHOLE, path=self.path, line=number) from None
            raise DataError(f"this line is not valid JSON ({shorten(str(error), 80)}); {EXPECTED}.", path=self.path, line=number) from None
        if "\\u" in line:
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError:
                raise DataError("this line has half a character (a lone surrogate); correct it.", path=self.path, line=number) from None
        return value

    def _add_triple(self, number: int, cells: Sequence[Any]) -> None:
        head, relation, tail = cells
        for what, cell in (("head", head), ("relation", relation)):
            self._identifier(number, what, cell)
        if isinstance(tail, str) and not isinstance(tail, Number):
            self._triples.add(head, relation, self._identifier(number, "tail", tail))
        elif (text := _text(tail)) is not None:
            self._attributes.add(head, relation, text)
        else:
            raise DataError(f"the tail is a list or an object; {EXPECTED}.", path=self.path, line=number)

    def _add_object(self, number: int, record: Mapping[str, Any]) -> None:
        keys = tuple(record)
        if keys not in self._keys:
            names = [normalise_name(key) for key in keys]
            found = [_by_role(keys, names, roles) for roles in (TRIPLE_ROLES, ATTRIBUTE_ROLES)]
            self._keys[keys] = found[0], found[1] if "attribute" in names else None, _identifier_key(keys, names)
        triple, attribute, own = self._keys[keys]
        if attribute is not None:
            entity, name, value = (record[key] for key in attribute)
            text = _text(value)
            self._attributes.add(self._identifier(number, "entity", entity), self._identifier(number, "attribute", name), text or "")
        elif triple is not None:
            self._add_triple(number, [record[key] for key in triple])
        elif own is not None:
            self._add_record(number, record, own)
            self.records += 1
        else:
            found_keys = shorten(", ".join(keys), 100)
            raise DataError(f"no key is known to hold the identifier (found: {found_keys}); name one of them 'id'.", path=self.path, line=number)

    def _add_record(self, number: int, record: Mapping[str, Any], own: str) -> str:
        entity = self._identifier(number, own, record[own])
        self._pending.append(entity)
        if len(self._pending) >= 2**16:
            self._ids.add(strings(self._pending))
            self._pending.clear()
        for key, value in record.items():
            if key != own:
                for one in value if isinstance(value, list) else (value,):
                    self._add_fact(number, entity, key, one)
        return entity

    def _add_fact(self, number: int, entity: str, key: str, value: Any) -> None:
        self._identifier(number, "key", key)
        if value is None or (isinstance(value, Number) and value == "NaN"):
            self.notes.left_out["value", "missing (null or NaN)"] += 1
        elif isinstance(value, dict):
            keys = tuple(value)
            own = _identifier_key(keys, [normalise_name(one) for one in keys])
            if own is None or not isinstance(value[own], str):
                self.notes.left_out["object", "without an identifier, inside of entities"] += 1
                return
            self._nested.add(key)
            self._triples.add(entity, key, self._add_record(number, value, own))
        elif isinstance(value, list):
            self.notes.left_out["list", "inside of lists"] += 1
        elif (text := _text(value)) is not None:
            self._facts.add(entity, key, text)

    def _identifier(self, number: int, what: str, value: Any) -> str:
        if not isinstance(value, str):
            raise DataError(f"the {shorten(what, 40)} is no text and no number; {EXPECTED}.", path=self.path, line=number)
        if problem := identifier_problem(value):
            raise DataError(f"the {shorten(what, 40)} {problem}; correct or remove this line.", path=self.path, line=number)
        return value


def _text(value: Any) -> str | None:
    """A value as text, "" where there is none; None for lists and objects."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else None


def _by_role(keys: Sequence[str], names: Sequence[str], roles: Sequence[Role]) -> Sequence[str] | None:
    """The keys that play these roles, each another one; None unless all are there."""
    places = [role.find(names) for role in roles]
    return None if None in places or len(set(places)) < len(roles) else [keys[place] for place in places if place is not None]


def _identifier_key(keys: Sequence[str], names: Sequence[str]) -> str | None:
    return next((keys[names.index(word)] for word in IDENTIFIER_WORDS if word in names), None)
