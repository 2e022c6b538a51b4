"""Where entities' names come from: the data's labels, an attribute, the identifiers, or a file of (translated) names.

A names file is either JSON, a list of ``[entity, [token, ...]]`` where the entity is an id of the data set's id files or an identifier, or lines of
``entity TAB name``. It may name entities of both graphs in any order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.datasets.files import read_text, shorten
from engine.datasets.knowledge_graph import SIDES, AlignmentTask, Finding, KnowledgeGraph, Side
from engine.datasets.labels import clean_label, find_name_attributes, label_from_identifier
from engine.datasets.readers import dbp15k
from engine.datasets.rows import read_tabbed
from engine.errors import ConfigError, DataError
from engine.wording import count

EXAMPLES = 3
OTHER_NAMES = (
    "give names in a file (--names FILE), from an attribute (--set literal.names=attribute:NAME) or from the identifiers (--set literal.names=uri)"
)


@dataclass(frozen=True)
class Names:
    """Names of all entities of both graphs.

    Attributes:
        source: E1 names, "" where there is none.
        target: E2 names, the same.
        origin: where they come from, for people ("labels", "attribute rdfs:label", "file names.json").
        findings: what was noticed on the way.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    origin: str
    findings: tuple[Finding, ...] = field(default=())

    def side(self, side: Side) -> tuple[str, ...]:
        return self.source if side == "source" else self.target


def gather_names(task: AlignmentTask, origin: str = "labels", folder: Path | None = None) -> Names:
    """The names of a task's entities.

    Args:
        task: whose entities.
        origin: ``labels``, ``attribute:NAME`` (full or local name), ``uri`` (the speaking part of identifiers) or ``file:PATH``.
        folder: the data set's folder; a names file that goes by the numbers of id files (DBP15K, SRPRS) needs it.

    Raises:
        ConfigError: no such origin.
        DataError: the file is damaged (with file and line) or names no entity of the task; no names at all, or in one graph only.
    """
    kind, _, argument = origin.partition(":")
    if kind not in NAME_ORIGINS or bool(argument) != NAME_ORIGINS[kind].takes_argument:
        known = ", ".join(name + (":..." if entry.takes_argument else "") for name, entry in NAME_ORIGINS.items())
        raise ConfigError(f"names can come from {known}; got '{shorten(origin)}'.")
    names = NAME_ORIGINS[kind].gather(task, argument, folder)
    require_names(task, names)
    return Names(names.source, names.target, names.origin, (*names.findings, *nameless_finding(names)))


def require_names(task: AlignmentTask, names: Names) -> None:
    """
    Raises:
        DataError: no names at all, or in one graph only.
    """
    present = [side for side in SIDES if any(names.side(side))]
    if not present:
        raise DataError(f"no entity of {task.name} has a name ({names.origin}), so names cannot be compared; {OTHER_NAMES}.")
    if len(present) == 1:
        missing = "target" if present[0] == "source" else "source"
        raise DataError(
            f"only the {present[0]} graph of {task.name} has names ({names.origin}), so they have nothing to be compared with; "
            f"{OTHER_NAMES} that the {missing} graph has too."
        )


def nameless_finding(names: Names) -> Iterator[Finding]:
    """How many entities go without a name."""
    counts = {side: sum(not name for name in names.side(side)) for side in SIDES}
    if total := sum(counts.values()):
        parts = " and ".join(f"{count:,} of {len(names.side(side)):,} {side} entities" for side, count in counts.items())
        message = f"{parts} have no name ({names.origin}); they are compared by structure alone."
        yield Finding("entities-without-name", "info", message, total, advice="Give them names where you have some.")


# Labels, attributes, identifiers


def names_from_labels(task: AlignmentTask, argument: str, folder: Path | None) -> Names:
    return Names(task.source.labels, task.target.labels, "labels")


def names_from_identifiers(task: AlignmentTask, argument: str, folder: Path | None) -> Names:
    source, target = (tuple(map(label_from_identifier, graph.entities)) for graph in (task.source, task.target))
    return Names(source, target, "identifiers")


def names_from_attribute(task: AlignmentTask, argument: str, folder: Path | None) -> Names:
    """
    Raises:
        DataError: neither graph has such an attribute.
    """
    source, target = (attribute_values(graph, argument) for graph in (task.source, task.target))
    if source is None and target is None:
        known = sorted({str(name) for graph in (task.source, task.target) for name in graph.attributes["attribute"].unique()})
        listed = f"there are {', '.join(map(shorten, known[:10]))}{' and more' if len(known) > 10 else ''}" if known else "there are no attributes"
        raise DataError(f"neither graph of {task.name} has an attribute '{shorten(argument)}' to take names from; {listed}.")
    return Names(source or ("",) * task.source.num_entities, target or ("",) * task.target.num_entities, f"attribute {shorten(argument)}")


def attribute_values(graph: KnowledgeGraph, wanted: str) -> tuple[str, ...] | None:
    """Each entity's first value of an attribute, "" where it has none; None where the graph does not know the attribute."""
    chosen = find_name_attributes(graph.attributes, wanted)
    if not chosen:
        return None
    names = [""] * graph.num_entities
    rows = graph.attributes.loc[graph.attributes["attribute"].isin(chosen)]
    for entity, value in zip(rows["entity"].tolist(), rows["value"].tolist(), strict=True):
        names[entity] = names[entity] or clean_label(value)
    return tuple(names)


# Names files


@dataclass(frozen=True)
class NamedEntry:
    """One entry of a names file: whom it names, how, and where it stands."""

    key: int | str
    name: str
    place: str


def names_from_file(task: AlignmentTask, argument: str, folder: Path | None) -> Names:
    """Names from JSON (by content: it starts with a bracket) or from lines of entity and name.

    Raises:
        DataError: a damaged file, with line or entry; no entry names an entity of the task; an id that both graphs use.
    """
    path = Path(argument)
    entries = list(json_entries(path) if read_text(path).lstrip()[:1] in ("[", "{") else line_entries(path))
    entities = EntityKeys(task, folder)
    names: dict[Side, list[str]] = {side: [""] * task.graph(side).num_entities for side in SIDES}
    unknown: list[str] = []
    repeated: list[str] = []
    for entry in entries:
        places = entities.find(entry, path)
        if not places:
            unknown.append(shorten(str(entry.key), 60))
        for side, index in places:
            if names[side][index] and names[side][index] != entry.name:
                repeated.append(shorten(str(entry.key), 60))
            names[side][index] = names[side][index] or entry.name
    if len(unknown) == len(entries):
        raise DataError(entities.none_known(unknown), path=path)
    return Names(tuple(names["source"]), tuple(names["target"]), f"file {path.name}", tuple(file_findings(path, unknown, repeated)))


def file_findings(path: Path, unknown: Sequence[str], repeated: Sequence[str]) -> Iterator[Finding]:
    if unknown:
        message = f"{path.name} names {count(len(unknown), 'entity', 'entities')} that neither graph has (the first is '{unknown[0]}')."
        advice = "That was passed over; check that the file belongs to this data set."
        yield Finding("unknown-names", "warning", message, len(unknown), tuple(unknown[:EXAMPLES]), advice)
    if repeated:
        message = f"{path.name} gives {len(repeated):,} further names to entities that it has named before; the first name of each counts."
        yield Finding("repeated-entity-names", "warning", message, len(repeated), tuple(repeated[:EXAMPLES]), "Keep one name for each entity.")


class EntityKeys:
    """Finds the entities that a names file speaks of: by identifier, or by the numbers of the data set's id files."""

    def __init__(self, task: AlignmentTask, folder: Path | None) -> None:
        self.task = task
        self.ids: Mapping[Side, Mapping[int, str]] = {}
        if task.format == dbp15k.Dbp15kReader.name and folder is not None:
            self.ids = dict(zip(SIDES, dbp15k.entity_ids(folder), strict=True))

    def find(self, entry: NamedEntry, path: Path) -> list[tuple[Side, int]]:
        """(side, index) of the entities that an entry names; two where both graphs have the same identifier.

        Raises:
            DataError: both graphs use the number, for different entities.
        """
        if isinstance(entry.key, int) and self.ids:
            return self._by_number(entry, path)
        text = str(entry.key)
        found = [(side, self.task.graph(side).index[text]) for side in SIDES if text in self.task.graph(side).index]
        return found or self._by_number(entry, path)

    def _by_number(self, entry: NamedEntry, path: Path) -> list[tuple[Side, int]]:
        text = str(entry.key)
        if not self.ids or not (text.isascii() and text.isdigit() and len(text) <= 18):
            return []
        found = [(side, self.ids[side][int(text)]) for side in SIDES if int(text) in self.ids[side]]
        if len(found) == 2 and found[0][1] != found[1][1]:
            raise DataError(
                f"{entry.place} names id {text}, which ent_ids_1 and ent_ids_2 both use; give names by identifier, one line of entity TAB name each.",
                path=path,
            )
        return [(side, self.task.graph(side).index[identifier]) for side, identifier in found if identifier in self.task.graph(side).index]

    def none_known(self, unknown: Sequence[str]) -> str:
        """Why no entry fits, and what would."""
        if not unknown:
            return "this file names no entity; expected lines of entity TAB name, or a JSON list of [entity, [token, ...]]."
        expected = "an identifier or an id of ent_ids_1/2" if self.ids else "an identifier"
        example = shorten(self.task.source.entities[0])
        return (
            f"none of the {len(unknown):,} entities that this file names (the first is '{unknown[0]}') is in {self.task.name}; "
            f"expected {expected}, for example '{example}'."
        )


def line_entries(path: Path) -> Iterator[NamedEntry]:
    """Lines of entity TAB name.

    Raises:
        DataError: with file and line.
    """
    rows = read_tabbed(path, ("entity", "name"))
    for key, name, line in zip(*rows.columns, rows.lines, strict=True):
        yield NamedEntry(key, readable(name), f"line {line}")


def json_entries(path: Path) -> Iterator[NamedEntry]:
    """A JSON list of [entity, [token, ...]].

    Raises:
        DataError: no JSON (with line), or an entry of another form.
    """
    try:
        values = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(f"this is no JSON ({error.msg}, column {error.colno}); {JSON_FORM}.", path=path, line=error.lineno) from None
    except (ValueError, RecursionError):  # numbers of thousands of digits, brackets without end
        raise DataError(f"this JSON cannot be read; {JSON_FORM}.", path=path) from None
    if not isinstance(values, list):
        raise DataError(f"this JSON is no list; {JSON_FORM}.", path=path)
    for number, value in enumerate(values, start=1):
        yield json_entry(path, number, value)


JSON_FORM = 'expected a list of [entity, [token, ...]], for example [[0, ["abdullah", "gul"]], [1, ["kim", "dae", "jung"]]]'


def json_entry(path: Path, number: int, value: object) -> NamedEntry:
    match value:
        case [int() | str() as key, str() as name] if not isinstance(key, bool):
            return NamedEntry(key, readable(name), f"entry {number}")
        case [int() | str() as key, list() as tokens] if not isinstance(key, bool) and all(isinstance(token, str) for token in tokens):
            return NamedEntry(key, readable(" ".join(tokens)), f"entry {number}")
        case _:
            shown = shorten(json.dumps(value, ensure_ascii=False))
            raise DataError(f"entry {number} is {shown}; {JSON_FORM}.", path=path)


def readable(name: str) -> str:
    """One line that can be written as UTF-8: JSON may hold halves of surrogate pairs."""
    return clean_label(name.encode("utf-8", "replace").decode("utf-8"))


@dataclass(frozen=True)
class NameOrigin:
    """A place that names come from; ``gather`` is given the task, the text behind the colon and the data set's folder."""

    gather: Callable[[AlignmentTask, str, Path | None], Names]
    takes_argument: bool = False


NAME_ORIGINS: Mapping[str, NameOrigin] = {
    "labels": NameOrigin(names_from_labels),
    "uri": NameOrigin(names_from_identifiers),
    "attribute": NameOrigin(names_from_attribute, takes_argument=True),
    "file": NameOrigin(names_from_file, takes_argument=True),
}
