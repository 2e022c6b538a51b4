"""OBO flat files, read by fastobo: terms, relations and instances, under the names that OBO's translation to OWL gives to their clauses."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from engine.data.readers.ontology import (
    COMMENT,
    LABEL,
    OBO_IN_OWL,
    SUBPROPERTY,
    Both,
    Expression,
    Kind,
    Ontology,
    Some,
    literal_value,
)
from engine.data.readers.owl_triples import ABOUT_PROPERTIES, DIFFERENT, UNREAD
from engine.errors import DataError
from engine.util.text import one_line, shorten

DEFINITION: Final = "http://purl.obolibrary.org/obo/IAO_0000115"
REPLACED_BY: Final = "http://purl.obolibrary.org/obo/IAO_0100001"
TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "NameClause": (LABEL, "name"),
    "DefClause": (DEFINITION, "definition"),
    "CommentClause": (COMMENT, "comment"),
    "AltIdClause": (f"{OBO_IN_OWL}hasAlternativeId", "alt_id"),
    "NamespaceClause": (f"{OBO_IN_OWL}hasOBONamespace", "namespace"),
    "SubsetClause": (f"{OBO_IN_OWL}inSubset", "subset"),
    "CreatedByClause": (f"{OBO_IN_OWL}created_by", "creator"),
    "CreationDateClause": (f"{OBO_IN_OWL}creation_date", "date"),
}
"""Clause -> the attribute and where its value is."""
SCOPES: Final[Mapping[str, str]] = {scope: f"{OBO_IN_OWL}has{scope.title()}Synonym" for scope in ("EXACT", "BROAD", "NARROW", "RELATED")}
_INSTANCE: Final = re.compile(r"^\[Instance\][ \t]*(?:![^\n]*)?$", re.MULTILINE)
_COMMENT: Final = re.compile(r"^[ \t]*![^\n]*", re.MULTILINE)
"""A line that is all comment, which the parser does not take."""
_STANZA: Final = re.compile(r"^\[", re.MULTILINE)
_MEMBER: Final = re.compile(r"^instance_of:", re.MULTILINE)
_BACKSLASHES_AT_THE_END: Final = re.compile(r'(?<!\\)((?:\\\\)+)"')
"""Escaped, before the quotation mark that ends a text. The parser takes that mark for an escaped one, so another character goes in their place."""
PRIVATE_USE: Final = range(0xE000, 0xF900)
_IDENTIFIER: Final = re.compile(r"^id:[ \t]*(\S+)", re.MULTILINE)


def read_obo(path: Path, text: str) -> Ontology:
    """
    Raises:
        DataError: a line that is no OBO.
    """
    import fastobo  # takes a moment, and few files need it

    terms, individuals = _with_terms(_COMMENT.sub("", text))
    mark = next((mark for mark in map(chr, PRIVATE_USE) if mark not in terms), "\ufdd0")
    terms = _BACKSLASHES_AT_THE_END.sub(lambda found: mark * (len(found[1]) // 2) + '"', terms)
    reading = _Reading(path, individuals, mark)
    try:
        frames = fastobo.iter(io.BytesIO(terms.encode()), ordered=True, threads=1)
        reading.header(frames.header())
        for frame in frames:
            reading.frame(frame)
    except SyntaxError as error:
        shown = f": '{shorten(str(error.text).strip(), 60)}'" if error.text and error.text.strip() else ""
        raise DataError(
            f"this line is not valid OBO{shown}; expected 'tag: value' or a stanza such as [Term].", path=path, line=error.lineno
        ) from None
    except (ValueError, OSError, RuntimeError) as error:
        raise DataError(f"this file cannot be read as OBO ({one_line(error, 120)}).", path=path) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the parser's own defect, which is no Exception
            raise
        raise DataError(f"the parser of OBO failed at this file ({one_line(error, 120)}); simplify or convert it.", path=path) from None
    return reading.ontology


def _with_terms(text: str) -> tuple[str, set[str]]:
    """The text with terms for its instances, line by line, and what these are called: the parser fails at instances, whose clauses terms have too."""
    pieces: list[str] = []
    individuals: set[str] = set()
    end = 0
    for found in _INSTANCE.finditer(text):
        following = _STANZA.search(text, found.end())
        stanza = text[found.end() : following.start() if following else len(text)]
        individuals.update(_IDENTIFIER.findall(stanza)[:1])
        pieces += [text[end : found.start()], "[Term]", _MEMBER.sub("is_a:", stanza)]
        end = found.end() + len(stanza)
    return "".join([*pieces, text[end:], "\n"]), individuals  # the parser wants the last line to end


class _Reading:
    """Frame by frame; clauses by the name of their class."""

    def __init__(self, path: Path, individuals: set[str], backslash: str) -> None:
        self.ontology = Ontology(path)
        self.backslash = backslash
        self.individuals = individuals
        self.readers: Mapping[str, Callable[[str, Any], None]] = {
            "IsAClause": lambda name, clause: self.ontology.below(name, str(clause.term), self._kind(name)),
            "RelationshipClause": lambda name, clause: self._relation(name, clause.typedef, clause.term),
            "EquivalentToClause": lambda name, clause: self.ontology.equivalent([name, str(clause.term)]),
            "SynonymClause": self._synonym,
            "XrefClause": lambda name, clause: self.ontology.describe(name, f"{OBO_IN_OWL}hasDbXref", str(clause.xref.id)),
            "PropertyValueClause": self._value,
            "ReplacedByClause": lambda name, clause: self.ontology.annotate(name, REPLACED_BY, str(_replacement(clause))),
            "ConsiderClause": lambda name, clause: self.ontology.annotate(name, f"{OBO_IN_OWL}consider", str(_replacement(clause))),
            "DisjointFromClause": self._disjoint,
            "UnionOfClause": lambda name, clause: self._leave_out(next(iter(UNREAD.values()))),
        }

    def header(self, clauses: Any) -> None:
        for clause in clauses:
            if type(clause).__name__ == "ImportClause":
                self.ontology.imports[str(clause.reference)] = None

    def frame(self, frame: Any) -> None:
        name, clauses = str(frame.id), list(frame)
        kind: Kind = "properties" if type(frame).__name__ == "TypedefFrame" else self._kind(name)
        if any(type(clause).__name__ == "IsAnonymousClause" and clause.anonymous for clause in clauses):
            self.ontology.left_out["of anonymous terms"] += len(clauses)
            return
        is_annotation = any(type(clause).__name__ == "IsMetadataTagClause" and clause.metadata_tag for clause in clauses)
        if not is_annotation:
            self.ontology.declare(kind, name)
        parts: list[Expression] = []
        for clause in clauses:
            if (tag := type(clause).__name__) == "IntersectionOfClause":
                relation = getattr(clause, "typedef", None)
                parts.append(str(clause.term) if relation is None else Some(str(relation), str(clause.term)))
            elif tag == "IsObsoleteClause":
                if clause.obsolete:
                    self.ontology.deprecated.add(name)
            elif kind == "properties":
                self._of_property(name, clause)
            else:
                self._clause(name, clause)
        if parts and kind == "classes":
            self.ontology.equivalent([name, Both(tuple(parts))])

    def _clause(self, name: str, clause: Any) -> None:
        tag = type(clause).__name__
        if tag in TEXTS:
            attribute, place = TEXTS[tag]
            self.ontology.describe(name, attribute, self._text(getattr(clause, place)).strip())
        elif tag in self.readers:
            self.readers[tag](name, clause)

    def _of_property(self, name: str, clause: Any) -> None:
        tag = type(clause).__name__
        if tag == "IsAClause":
            self.ontology.relate(name, SUBPROPERTY, str(clause.typedef))
        elif tag in TEXTS or tag in ("SynonymClause", "XrefClause", "PropertyValueClause"):
            self._clause(name, clause)
        elif tag in ("HoldsOverChainClause", "EquivalentToChainClause", "TransitiveOverClause", "DisjointOverClause"):
            self._leave_out(ABOUT_PROPERTIES)

    def _relation(self, name: str, relation: Any, other: Any) -> None:
        kind = self._kind(name)
        self.ontology.below(name, Some(str(relation), str(other), kind), kind)

    def _kind(self, name: str) -> Kind:
        return "individuals" if name in self.individuals else "classes"

    def _synonym(self, name: str, clause: Any) -> None:
        self.ontology.describe(name, SCOPES.get(clause.synonym.scope, SCOPES["RELATED"]), self._text(clause.synonym.desc))

    def _value(self, name: str, clause: Any) -> None:
        said = clause.property_value
        relation = str(said.relation)
        if type(said).__name__ == "ResourcePropertyValue":
            self.ontology.annotate(name, relation, str(said.value))
        else:
            self.ontology.describe(name, relation, literal_value(self._text(said.value), datatype=_datatype(str(said.datatype))))

    def _text(self, value: Any) -> str:
        return str(value).replace(self.backslash, "\\")

    def _disjoint(self, name: str, clause: Any) -> None:
        if self._kind(name) == "classes":
            self.ontology.disjoint([name, str(clause.term)])
        else:
            self._leave_out(DIFFERENT)

    def _leave_out(self, reason: str) -> None:
        self.ontology.left_out[reason] += 1


def _replacement(clause: Any) -> Any:
    return getattr(clause, "term", None) or getattr(clause, "instance", None) or getattr(clause, "typedef", "")


def _datatype(name: str) -> str:
    prefix, _, local = name.partition(":")
    return f"http://www.w3.org/2001/XMLSchema#{local}" if prefix == "xsd" else name
