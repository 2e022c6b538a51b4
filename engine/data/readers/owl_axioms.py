"""OWL in syntaxes that are no RDF: functional-style syntax, OWL/XML and Manchester syntax, read by py-horned-owl."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal
from xml.parsers import expat

import numpy as np

from engine.data.beginnings import not_well_formed, xml_parser
from engine.data.readers.ontology import (
    ANNOTATED,
    ANONYMOUS,
    DEPRECATED,
    DOMAIN,
    GENERAL,
    IDENTITIES,
    INVERSE,
    RANGE,
    SUBPROPERTY,
    Both,
    Expression,
    Ontology,
    Other,
    Some,
    literal_value,
    says_yes,
)
from engine.data.readers.owl_triples import ABOUT_PROPERTIES, CARDINALITY, DATA_VALUES, DIFFERENT, INVERSES, MOST_LEVELS, UNREAD
from engine.data.rows import MAX_IDENTIFIER
from engine.errors import DataError
from engine.util.text import one_line

OwlSyntax = Literal["ofn", "owx", "omn"]
SYNTAX_WORDS: Final[Mapping[OwlSyntax, str]] = {"ofn": "OWL functional-style syntax", "owx": "OWL/XML", "omn": "OWL Manchester syntax"}
_UNION, _COMPLEMENT, _ENUMERATION, _UNIVERSAL, _SELF = UNREAD.values()
UNREAD_CLASSES: Final[Mapping[str, str]] = {
    "ObjectUnionOf": _UNION,
    "ObjectComplementOf": _COMPLEMENT,
    "ObjectOneOf": _ENUMERATION,
    "ObjectAllValuesFrom": _UNIVERSAL,
    "DataAllValuesFrom": _UNIVERSAL,
    "ObjectHasSelf": _SELF,
    "DataSomeValuesFrom": DATA_VALUES,
    "DataHasValue": DATA_VALUES,
}
_PLACE: Final = re.compile(r"line_col: Pos\(\((\d+), \d+\)\)")
_BYTE: Final = re.compile(r"Byte(?:Position|Span)\((\d+)")
_EXPECTED: Final = re.compile(r"positives: \[([^\]]{1,120})")
_SAID: Final = re.compile(r'Error\("([^"]+)"')
_ENTITY: Final = re.compile(r"&([^&;\s#]{1,200});")
_TOKEN: Final = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"|<([^<>"\s]*+)>|#[^\n]*+|[^\s()<>"#]{4097,}+|"', re.DOTALL)
_ESCAPED: Final = re.compile(r'\\(["\\])')
_IRI: Final = re.compile(r"<[^<>\s]*>")
_UNNESTED: Final = re.compile(r",|\b\w+:\s")
_WORDS_OF_EXPRESSIONS: Final = re.compile(r"\b(?:some|only|not|value|min|max|exactly|self|inverse)\b", re.IGNORECASE)
MOST_NESTED: Final = 200
MOST_WORDS: Final = 1000
"""Words of Manchester syntax between commas that may each begin a level."""
XML_ENTITIES: Final = frozenset({"lt", "gt", "amp", "quot", "apos"})


def read_axioms(path: Path, text: str, syntax: OwlSyntax) -> Ontology:
    """
    Args:
        path: the file, for messages.
        text: its content; XML without entities that reach outside of it or grow.
        syntax: of the text.

    Raises:
        DataError: the text is not of that syntax; says where.
    """
    import pyhornedowl  # takes a moment, and few files need it

    content, texts = (_with_entities(text), None) if syntax == "owx" else _without_texts(path, text)
    _check_depth(path, content, syntax)
    try:
        parsed = pyhornedowl.open_ontology_from_string(content, syntax)
    except (ValueError, OverflowError) as error:
        line = _line(str(error), content)
        cure = f"correct this {'line' if line else 'file'}"
        raise DataError(f"this is not valid {SYNTAX_WORDS[syntax]} ({_explanation(str(error))}); {cure}.", path=path, line=line) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the parser's own defect, of a number that is too large for example; it is no Exception
            raise
        words = f"the parser of {SYNTAX_WORDS[syntax]} failed at this file ({one_line(error, 120)}); look for very large numbers, or convert it."
        raise DataError(words, path=path) from None
    reading = _Reading(path, texts)
    for axiom in parsed.get_axioms():
        reading.read(axiom.component)
        reading.ontology.left_out[ANNOTATED] += bool(axiom.ann)
    return reading.ontology


def _without_texts(path: Path, text: str) -> tuple[str, list[str]]:
    """The same lines with numbers in the place of texts in quotation marks, and these texts: the parser takes 100 bytes for each character of a text.

    Raises:
        DataError: a text without an end, or a name longer than any identifier.
    """
    texts: list[str] = []

    def numbered(found: re.Match[str]) -> str:
        content, iri = found[1], found[2]
        if content is not None:
            texts.append(_ESCAPED.sub(r"\1", content) if "\\" in content else content)
            return f'"{len(texts) - 1}"' + "\n" * content.count("\n")
        if iri is not None and len(iri) <= MAX_IDENTIFIER:
            return found[0]
        if found[0].startswith("#"):
            return ""
        line = text.count("\n", 0, found.start()) + 1
        words = "a text in quotation marks has no end" if found[0] == '"' else f"a name is longer than {MAX_IDENTIFIER:,} characters"
        raise DataError(f"{words}; correct this line.", path=path, line=line)

    return _TOKEN.sub(numbered, text), texts


def _check_depth(path: Path, text: str, syntax: OwlSyntax) -> None:
    """The parser follows what is nested by recursion, and ends the whole program where that is too deep.

    Raises:
        DataError: more levels than any ontology has, or XML that is not well-formed.
    """
    bare = text if syntax == "owx" else _IRI.sub("", text)
    deepest, where = _xml_depth(path, bare) if syntax == "owx" else _bracket_depth(bare)
    if syntax == "omn" and deepest <= MOST_NESTED:
        longest = max((len(_WORDS_OF_EXPRESSIONS.findall(part)) for part in _UNNESTED.split(bare)), default=0)
        deepest, where = max(deepest, longest // (MOST_WORDS // MOST_NESTED)), None
    if deepest > MOST_NESTED:
        raise DataError(f"expressions are nested more than {MOST_NESTED} levels deep here; simplify them.", path=path, line=where)


def _bracket_depth(text: str) -> tuple[int, None]:
    """The deepest level of brackets."""
    bare = np.frombuffer(text.encode(), dtype=np.uint8)
    steps = (bare == ord("(")).astype(np.int32) - (bare == ord(")"))
    levels = np.cumsum(steps, dtype=np.int32)
    deepest = int(levels.max(initial=0))
    return deepest, None


def _xml_depth(path: Path, text: str) -> tuple[int, int | None]:
    """The deepest level of elements, and its line. At the end of a text whose elements do not end, the parser of OWL continues until no memory is
    left, so that such a text does not reach it.
    """
    level, deepest, where = 0, 0, None
    skipped, parser = xml_parser(text)

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal level, deepest, where
        level += 1
        if level > deepest:
            deepest, where = level, parser.CurrentLineNumber

    def end(name: str) -> None:
        nonlocal level
        level -= 1

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    try:
        parser.Parse(text.lstrip().encode(), True)
    except expat.ExpatError as error:
        raise not_well_formed(path, error, skipped) from None
    return deepest, where


def _line(message: str, text: str) -> int | None:
    if place := _PLACE.search(message):
        return int(place[1])
    if place := _BYTE.search(message):
        return text.encode()[: int(place[1])].count(b"\n") + 1
    return None


def _explanation(message: str) -> str:
    """The parser's words without what only its makers understand."""
    if expected := _EXPECTED.search(message):
        return f"expected {expected[1]}"
    said = _SAID.search(message)
    return one_line(said[1] if said else message.removeprefix("Failed to open ontology: "), 120)


def _with_entities(text: str) -> str:
    """With the texts of the document type's own entities, which OWL files use as short names, in their places."""
    texts: dict[str, str] = {}
    _, parser = xml_parser(text)

    def entity(name: str, is_parameter: bool, value: str | None, *_: object) -> None:
        if value is not None:
            texts.setdefault(name, value)

    parser.EntityDeclHandler = entity
    if "<!ENTITY" not in text:
        return text
    try:
        parser.Parse(text.lstrip().encode(), True)
    except expat.ExpatError:
        return text
    begin = text.find("]>") + 2
    used = _ENTITY.sub(lambda found: found[0] if found[1] in XML_ENTITIES else texts.get(found[1], found[0]), text[begin:])
    return re.sub(r"[^\n]+", "", text[:begin]) + used  # as many lines as before


class _Reading:
    """Axioms by the name of their class."""

    def __init__(self, path: Path, texts: Sequence[str] | None) -> None:
        self.ontology = Ontology(path)
        self.texts = texts
        self.readers: Mapping[str, Callable[[Any], None]] = {
            "Import": self._import,
            "DeclareClass": lambda axiom: self.ontology.declare("classes", _name(axiom.first)),
            "DeclareNamedIndividual": lambda axiom: self.ontology.declare("individuals", _name(axiom.first)),
            "DeclareDatatype": lambda axiom: self.ontology.datatypes.add(_name(axiom.first)),
            "DeclareObjectProperty": lambda axiom: self.ontology.declare("properties", _name(axiom.first)),
            "DeclareDataProperty": lambda axiom: self.ontology.declare("properties", _name(axiom.first)),
            "SubClassOf": self._subclass,
            "EquivalentClasses": lambda axiom: self.ontology.equivalent([expression_of(one) for one in axiom.first]),
            "DisjointClasses": lambda axiom: self.ontology.disjoint([expression_of(one) for one in axiom.first]),
            "DisjointUnion": lambda axiom: self.ontology.disjoint_union(_name(axiom.first), [expression_of(one) for one in axiom.second]),
            "ClassAssertion": self._member,
            "ObjectPropertyAssertion": self._assertion,
            "DataPropertyAssertion": self._data,
            "AnnotationAssertion": self._annotation,
            "SubObjectPropertyOf": lambda axiom: self._properties(axiom.sub, SUBPROPERTY, axiom.sup),
            "SubDataPropertyOf": lambda axiom: self._properties(axiom.sub, SUBPROPERTY, axiom.sup),
            "InverseObjectProperties": lambda axiom: self._properties(axiom.first, INVERSE, axiom.second),
            "ObjectPropertyDomain": lambda axiom: self._properties(axiom.ope, DOMAIN, axiom.ce),
            "ObjectPropertyRange": lambda axiom: self._properties(axiom.ope, RANGE, axiom.ce),
            "DataPropertyDomain": lambda axiom: self._properties(axiom.dp, DOMAIN, axiom.ce),
        }

    def read(self, axiom: Any) -> None:
        name = type(axiom).__name__
        if name in self.readers:
            self.readers[name](axiom)
        elif name in ("DifferentIndividuals", "DisjointObjectProperties", "DisjointDataProperties"):
            self.ontology.left_out[DIFFERENT] += 1
        elif name == "SameIndividual":
            self.ontology.left_out[IDENTITIES] += 1
        elif name.startswith("Negative"):
            self.ontology.left_out["that are negative"] += 1
        elif name in ("SubObjectPropertyExpression", "HasKey", "EquivalentObjectProperties", "EquivalentDataProperties"):
            self.ontology.left_out[ABOUT_PROPERTIES] += 1
        elif name == "Rule":
            self.ontology.left_out["that are rules"] += 1

    def _import(self, axiom: Any) -> None:
        self.ontology.imports[str(axiom.first)] = None

    def _subclass(self, axiom: Any) -> None:
        below = expression_of(axiom.sub)
        if isinstance(below, str):
            self.ontology.below(below, expression_of(axiom.sup))
        else:
            self.ontology.left_out[GENERAL] += 1

    def _member(self, axiom: Any) -> None:
        if is_anonymous(axiom.i):
            self.ontology.left_out[ANONYMOUS] += 1
        else:
            self.ontology.below(_name(axiom.i), expression_of(axiom.ce), "individuals")

    def _assertion(self, axiom: Any) -> None:
        if is_anonymous(axiom.source) or is_anonymous(axiom.target):
            self.ontology.left_out[ANONYMOUS] += 1
            return
        relation, ends = axiom.ope, (_name(axiom.source), _name(axiom.target))
        if type(relation).__name__ == "InverseObjectProperty":
            relation, ends = relation.first, ends[::-1]
        self.ontology.relate(ends[0], _name(relation), ends[1], "individuals")

    def _data(self, axiom: Any) -> None:
        if not is_anonymous(axiom.source):
            self.ontology.declare("individuals", _name(axiom.source))
            self.ontology.describe(_name(axiom.source), _name(axiom.dp), self._literal(axiom.target))

    def _annotation(self, axiom: Any) -> None:
        subject, attribute, value = _name(axiom.subject), _name(axiom.ann.ap), axiom.ann.av
        if not hasattr(value, "literal"):
            if not subject.startswith("_:"):
                self.ontology.annotate(subject, attribute, _name(value))
        elif attribute == DEPRECATED:
            if says_yes(self._text(value)):
                self.ontology.deprecated.add(subject)
        else:
            self.ontology.describe(subject, attribute, self._literal(value))

    def _text(self, value: Any) -> str:
        return str(value.literal) if self.texts is None else self.texts[int(value.literal)]

    def _literal(self, value: Any) -> str:
        datatype = getattr(value, "datatype_iri", None)
        return literal_value(self._text(value), getattr(value, "lang", None), None if datatype is None else str(datatype))

    def _properties(self, head: Any, relation: str, tail: Any) -> None:
        if all(type(end).__name__ in ("ObjectProperty", "DataProperty", "Class") for end in (head, tail)):
            self.ontology.relate(_name(head), relation, _name(tail))
        else:
            self.ontology.left_out[ABOUT_PROPERTIES] += 1


def expression_of(node: Any, level: int = 0) -> Expression:
    """A class expression in the few forms that become triples."""
    kind = type(node).__name__
    if kind == "Class":
        return _name(node)
    if kind in UNREAD_CLASSES:
        return Other(UNREAD_CLASSES[kind])
    if level > MOST_LEVELS:
        return Other("nested too deeply")
    if kind == "ObjectIntersectionOf":
        return Both(tuple(expression_of(part, level + 1) for part in node.first))
    if type(getattr(node, "ope", None)).__name__ != "ObjectProperty":
        return Other(INVERSES if hasattr(node, "ope") else CARDINALITY)
    if kind == "ObjectHasValue":
        return Other(ANONYMOUS) if is_anonymous(node.i) else Some(_name(node.ope), _name(node.i), "individuals")
    if kind == "ObjectSomeValuesFrom" or (kind in ("ObjectMinCardinality", "ObjectExactCardinality") and node.n >= 1):
        return Some(_name(node.ope), expression_of(node.bce, level + 1))
    return Other(CARDINALITY)


def is_anonymous(individual: Any) -> bool:
    return type(individual).__name__ == "AnonymousIndividual"


def _name(node: Any) -> str:
    """The IRI of what has one; ``_:`` and a label for an anonymous individual."""
    if is_anonymous(node):
        return f"_:{str(node.first).removeprefix('_:')}"
    return str(getattr(node, "first", node))
