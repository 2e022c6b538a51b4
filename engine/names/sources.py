"""Where entities' names come from: the data's labels, an attribute, the identifiers, or a file of (translated) names.

A names file is either JSON, a list of ``[entity, [token, ...]]`` where the entity is an id of the data set's id files or an identifier, or lines
of ``entity TAB name``. It may name entities of both graphs in any order. Of an id that both have, ``source`` or ``target`` in front says whose it is,
or the file is given for one graph only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.config import LiteralConfig
from engine.data.files import read_text
from engine.data.knowledge_graph import SIDES, AlignmentTask, Finding, KnowledgeGraph, Side
from engine.data.labels import (
    LABELS,
    attribute_names,
    clean_label,
    find_name_attributes,
    is_missing,
    label_from_identifier,
    name_languages,
    rank_languages,
)
from engine.data.readers import dbp15k
from engine.data.rows import read_tabbed
from engine.errors import ConfigError, DataError
from engine.names.specs import PathsOf, Spec, no_path, one_path
from engine.util.registry import Registry
from engine.util.text import count, shorten

EXAMPLES = 3
OTHER_NAMES = (
    "give names in a file (--names FILE, or --names source=FILE for one graph), in an attribute (--set literal.names=attribute:NAME) "
    "or from the identifiers (--set literal.names=uri)"
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


@dataclass(frozen=True)
class NameRequest:
    """Where to look for names.

    Attributes:
        argument: the text behind the origin's colon.
        folder: the data set's.
        languages: those to prefer for each graph, as of :attr:`engine.config.DataConfig.languages`.
        side: the only graph that is asked about; None for both.
    """

    argument: str
    folder: Path | None = None
    languages: Mapping[Side, str | None] = field(default_factory=dict)
    side: Side | None = None

    @property
    def sides(self) -> tuple[Side, ...]:
        return SIDES if self.side is None else (self.side,)


def gather_names(
    task: AlignmentTask,
    origin: str = "labels",
    folder: Path | None = None,
    *,
    own: Mapping[Side, str | None] | None = None,
    languages: Mapping[Side, str | None] | None = None,
) -> Names:
    """The names of a task's entities.

    Args:
        task: whose entities.
        origin: ``labels``, ``attribute:NAME`` (full or local name), ``uri`` (the speaking part of identifiers) or ``file:PATH``.
        folder: the data set's folder; a names file that goes by the numbers of id files (DBP15K, SRPRS) needs it.
        own: an origin of its own for a graph; None: that of both.
        languages: for each graph, those to prefer where an attribute has names in several.

    Raises:
        ConfigError: no such origin.
        DataError: the file is damaged (with file and line), names no entity of the task, or one of both graphs without saying which; no names at
            all, or in one graph only.
    """
    asked = {side: (own or {}).get(side) for side in SIDES}
    if any(asked.values()):
        source, target = (_gather(task, asked[side] or origin, NameRequest("", folder, languages or {}, side)) for side in SIDES)
        origins = f"source: {source.origin}; target: {target.origin}"
        names = Names(source.source, target.target, origins, (*source.findings, *target.findings))
    else:
        names = _gather(task, origin, NameRequest("", folder, languages or {}))
    names, placeholders = without_placeholders(names)
    require_names(task, names)
    return Names(names.source, names.target, names.origin, (*names.findings, *placeholders, *nameless_finding(names)))


def _gather(task: AlignmentTask, origin: str, request: NameRequest) -> Names:
    spec = Spec.parse(origin)
    kind, argument = spec.kind, spec.argument
    found = NAME_ORIGINS.named(kind)
    if bool(argument) != found.takes_argument:
        what = "needs something behind a colon" if found.takes_argument else "takes nothing behind a colon"
        raise ConfigError(f"the source of names '{kind}' {what}; got '{shorten(origin)}'.")
    return found.gather(task, replace(request, argument=argument))


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
            f"for the {missing} graph, {OTHER_NAMES.replace('source=', f'{missing}=')}."
        )


def without_placeholders(names: Names) -> tuple[Names, tuple[Finding, ...]]:
    """Names such as "NA" or "None" are taken as missing; a finding says which these are and how many.

    Two entities that both have none would otherwise look equal. An entity that is really called so loses its name.
    """
    found = Counter(name for side in SIDES for name in names.side(side) if name and is_missing(name))
    if not found:
        return names, ()
    source, target = (tuple("" if name in found else name for name in names.side(side)) for side in SIDES)
    return replace(names, source=source, target=target), (placeholder_finding(found, names.origin),)


def placeholder_finding(found: Mapping[str, int], origin: str) -> Finding:
    """
    Args:
        found: text -> how many entities have it as their name.
    """
    total = sum(found.values())
    listed = sorted(found, key=lambda text: (-found[text], text))
    texts = ", ".join(f"'{text}' ({found[text]:,})" for text in listed)
    message = f"{count(total, 'name is', 'names are')} taken as missing ({origin}): {texts}."
    advice = "Such a text usually means that there is no name. If it is a name, spell it differently."
    return Finding("placeholder-names", "info", message, total, tuple(listed[:EXAMPLES]), advice)


def nameless_finding(names: Names) -> Iterator[Finding]:
    """How many entities go without a name."""
    counts = {side: sum(not name for name in names.side(side)) for side in SIDES}
    if total := sum(counts.values()):
        parts = " and ".join(f"{count:,} of {len(names.side(side)):,} {side} entities" for side, count in counts.items())
        message = f"{parts} have no name ({names.origin}); they are compared by structure only."
        yield Finding("entities-without-name", "info", message, total, advice="Add their names if you have them.")


# Labels, attributes, identifiers


def may_need_a_rule(config: LiteralConfig, several: frozenset[str]) -> bool:
    """Whether an entity may have several names, one of which is chosen; of a names file that cannot be known before it is read.

    Args:
        several: of :func:`engine.data.labels.several_names`.
    """
    specs = [Spec.parse(own or config.names) for own in (config.names_source, config.names_target)]
    return any(NAME_ORIGINS[spec.kind].chooses(spec.argument, several) for spec in specs if spec.kind in NAME_ORIGINS)


def names_from_labels(task: AlignmentTask, request: NameRequest) -> Names:
    return Names(task.source.labels, task.target.labels, "labels")


def names_from_identifiers(task: AlignmentTask, request: NameRequest) -> Names:
    source, target = (tuple(map(label_from_identifier, graph.entities)) for graph in (task.source, task.target))
    return Names(source, target, "identifiers")


def names_from_attribute(task: AlignmentTask, request: NameRequest) -> Names:
    """
    Raises:
        DataError: none of the graphs that are asked about has such an attribute.
    """
    wanted = request.argument
    source, target = (name_languages(graph.attributes, wanted) for graph in (task.source, task.target))
    ranked = {side: rank_languages(source, target, request.languages.get(side)) for side in SIDES}
    if not any(find_name_attributes(task.graph(side).attributes, wanted) for side in request.sides):
        known = sorted({str(name) for side in request.sides for name in task.graph(side).attributes["attribute"].unique()})
        listed = f"there are {', '.join(map(shorten, known[:10]))}{' and more' if len(known) > 10 else ''}" if known else "there are no attributes"
        which = "neither graph" if request.side is None else f"the {request.side} graph"
        raise DataError(
            f"{which} of {task.name} has {'an' if request.side is None else 'no'} attribute '{shorten(wanted)}' to take names from; {listed}."
        )
    names = {side: attribute_values(task.graph(side), wanted, ranked[side]) for side in SIDES}
    return Names(names["source"], names["target"], f"attribute {shorten(wanted)}")


def attribute_values(graph: KnowledgeGraph, wanted: str, languages: Sequence[str]) -> tuple[str, ...]:
    """Each entity's name in an attribute, "" where it has none."""
    return attribute_names(graph.attributes, find_name_attributes(graph.attributes, wanted), graph.num_entities, languages)


# Names files


@dataclass(frozen=True)
class NamedEntry:
    """One entry of a names file: the entity, its name, the entry's place in the file, and the graph where the entry says it."""

    key: int | str
    name: str
    place: str
    side: Side | None = None


def names_from_file(task: AlignmentTask, request: NameRequest) -> Names:
    """Names from JSON (by content: it starts with a bracket) or from lines of entity and name.

    Raises:
        DataError: a damaged file, with line or entry; no entry names an entity of the task; an id that both graphs use, where nothing says which.
    """
    path = Path(request.argument)
    entries = list(json_entries(path) if read_text(path).lstrip()[:1] in ("[", "{") else line_entries(path))
    entities = EntityKeys(task, request)
    given: dict[tuple[Side, int], set[str]] = {}
    unknown: list[str] = []
    for entry in entries:
        place = entities.find(entry, path)
        if place is None:
            unknown.append(shorten(str(entry.key), 60))
        else:
            given.setdefault(place, set()).add(entry.name)
    if len(unknown) == len(entries):
        raise DataError(entities.none_known(unknown), path=path)
    names: dict[Side, list[str]] = {side: [""] * task.graph(side).num_entities for side in SIDES}
    for (side, index), found in given.items():
        names[side][index] = min(found)  # by nothing that depends on the order of the file
    repeated = [shorten(task.graph(side).entities[index], 60) for (side, index), found in sorted(given.items()) for _ in range(len(found) - 1)]
    findings = tuple(file_findings(path, unknown, repeated, request.side))
    return Names(tuple(names["source"]), tuple(names["target"]), f"file {path.name}", findings)


def file_findings(path: Path, unknown: Sequence[str], repeated: Sequence[str], side: Side | None) -> Iterator[Finding]:
    if unknown:
        which = "neither graph has" if side is None else f"the {side} graph does not have"
        message = f"{path.name} names {count(len(unknown), 'entity', 'entities')} that {which} (the first is '{unknown[0]}')."
        advice = "They were skipped; check that the file belongs to this data set."
        yield Finding("unknown-names", "warning", message, len(unknown), tuple(unknown[:EXAMPLES]), advice)
    if repeated:
        message = f"{path.name} gives {count(len(repeated), 'further name')} for entities that already have one; the alphabetically first is used."
        yield Finding("repeated-entity-names", "warning", message, len(repeated), tuple(repeated[:EXAMPLES]), "Keep one name for each entity.")


class EntityKeys:
    """Finds the entity that an entry of a names file is about: by identifier, or by the numbers of the data set's id files."""

    def __init__(self, task: AlignmentTask, request: NameRequest) -> None:
        self.task = task
        self.sides = request.sides
        self.ids: Mapping[Side, Mapping[int, str]] = {}
        if task.format == dbp15k.Dbp15kReader.name and request.folder is not None:
            self.ids = dict(zip(SIDES, dbp15k.entity_ids(request.folder), strict=True))

    def find(self, entry: NamedEntry, path: Path) -> tuple[Side, int] | None:
        """Side and index of the entity that an entry names; None where there is none.

        Raises:
            DataError: it fits entities of both graphs.
        """
        sides = [side for side in self.sides if entry.side in (None, side)]
        by_number = self._by_number(entry, sides)
        text = str(entry.key)
        by_identifier = [(side, self.task.graph(side).index[text]) for side in sides if text in self.task.graph(side).index]
        if isinstance(entry.key, int) and self.ids:
            by_identifier = []
        found = list(dict.fromkeys((*by_identifier, *by_number)))
        if len(found) > 1:
            raise DataError(_both(entry, by_number), path=path)
        return found[0] if found else None

    def _by_number(self, entry: NamedEntry, sides: Sequence[Side]) -> list[tuple[Side, int]]:
        text = str(entry.key)
        if not self.ids or not (text.isascii() and text.isdigit() and len(text) <= 18):
            return []
        found = [(side, self.ids[side][int(text)]) for side in sides if int(text) in self.ids[side]]
        return [(side, self.task.graph(side).index[identifier]) for side, identifier in found if identifier in self.task.graph(side).index]

    def none_known(self, unknown: Sequence[str]) -> str:
        """Why no entry fits, and what would."""
        if not unknown:
            return "this file names no entity; expected lines of entity TAB name, or a JSON list of [entity, [token, ...]]."
        expected = "an identifier or an id of ent_ids_1/2" if self.ids else "an identifier"
        example = shorten(self.task.graph(self.sides[0]).entities[0])
        return (
            f"none of the {len(unknown):,} entities that this file names (the first is '{unknown[0]}') is in {self.task.name}; "
            f"expected {expected}, for example '{example}'."
        )


def _both(entry: NamedEntry, by_number: Sequence[tuple[Side, int]]) -> str:
    owners = "ent_ids_1 and ent_ids_2 both use" if len(by_number) > 1 else "both graphs have"
    return (
        f"{entry.place} names id '{shorten(str(entry.key), 60)}', which {owners}; state which graph it belongs to: give a file for each graph "
        "(--names source=FILE --names target=FILE), or put source or target in front of each entity."
    )


def line_entries(path: Path) -> Iterator[NamedEntry]:
    """Lines of entity TAB name, or, as the first line shows, of source or target TAB entity TAB name.

    Raises:
        DataError: with file and line.
    """
    first = next((line.split("\t") for line in read_text(path).splitlines() if line.strip()), [])
    if len(first) == 3 and first[0] in SIDES:
        rows = read_tabbed(path, ("graph", "entity", "name"))
        for graph, key, name, line in zip(*rows.columns, rows.lines, strict=True):
            if graph not in SIDES:
                raise DataError(f"expected source or target as graph, found '{shorten(graph)}'; correct this line.", path=path, line=int(line))
            yield NamedEntry(key, readable(name), f"line {line}", "source" if graph == "source" else "target")
        return
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
        case ["source" | "target" as side, int() | str() as key, (str() | list()) as name] if not isinstance(key, bool):
            plain = json_entry(path, number, [key, name])
            return replace(plain, side=side)
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
    """A place that names come from.

    Attributes:
        gather: gives a task's names, at least those of the graphs that are asked about.
        takes_argument: whether something must follow the colon.
        paths: which paths that text holds.
        chooses: whether it may have to choose between several names of an entity, by that text and the attributes that give several.
    """

    gather: Callable[[AlignmentTask, NameRequest], Names]
    takes_argument: bool = False
    paths: PathsOf = no_path
    chooses: Callable[[str, frozenset[str]], bool] = lambda argument, several: False


NAME_ORIGINS: Registry[NameOrigin] = Registry("source of names", lambda name: f"{name}:..." if NAME_ORIGINS[name].takes_argument else name)
NAME_ORIGINS.add("labels", NameOrigin(names_from_labels, chooses=lambda _, several: LABELS in several))
NAME_ORIGINS.add("uri", NameOrigin(names_from_identifiers))
NAME_ORIGINS.add("attribute", NameOrigin(names_from_attribute, takes_argument=True, chooses=lambda name, several: name in several))
NAME_ORIGINS.add("file", NameOrigin(names_from_file, takes_argument=True, paths=one_path, chooses=lambda _, several: True))
