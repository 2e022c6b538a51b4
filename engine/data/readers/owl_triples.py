"""An ontology from RDF triples: OWL's axioms are put together again from the nodes that RDF takes them apart into."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from engine.data.readers.ontology import (
    ANNOTATED,
    ANONYMOUS,
    DEPRECATED,
    DISJOINT_WITH,
    DOMAIN,
    EQUIVALENT,
    GENERAL,
    IDENTITIES,
    INVERSE,
    LABEL,
    LITERAL_FORM,
    OBO_IN_OWL,
    OWL,
    RANGE,
    RDF,
    RDFS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    Both,
    Expression,
    Kind,
    Ontology,
    Other,
    Some,
    literal_value,
    says_yes,
)

Columns = tuple[Sequence[str], Sequence[str], Sequence[str]]

MOST_LEVELS: Final = 40
"""Levels of a class expression that are looked at; deeper ones are no ontology of anybody's."""
DECLARATIONS: Final[Mapping[str, Kind]] = {
    f"{OWL}Class": "classes",
    f"{RDFS}Class": "classes",
    f"{OWL}DeprecatedClass": "classes",
    f"{OWL}NamedIndividual": "individuals",
    f"{OWL}Thing": "individuals",
    **{
        f"{OWL}{word}Property": "properties"
        for word in ("Object", "Datatype", "Deprecated", "Transitive", "Symmetric", "Asymmetric", "Reflexive", "Irreflexive", "InverseFunctional")
    },
}
FUNCTIONAL: Final = f"{OWL}FunctionalProperty"
OBJECT_PROPERTY: Final = f"{OWL}ObjectProperty"
HEADER: Final = f"{OWL}Ontology"
CLASS: Final = f"{OWL}Class"
UNREAD: Final[Mapping[str, str]] = {
    f"{OWL}unionOf": "with a union of classes",
    f"{OWL}complementOf": "with the complement of a class",
    f"{OWL}oneOf": "with an enumeration",
    f"{OWL}allValuesFrom": "with a universal restriction",
    f"{OWL}hasSelf": "with a restriction to itself",
}
DIFFERENT: Final = "of different individuals or disjoint properties"
INVERSES: Final = "with the inverse of a property in a restriction"
CARDINALITY: Final = "with a cardinality that says no more than a number"
DATA_VALUES: Final = "with a value or type of data in a restriction"
ABOUT_PROPERTIES: Final = "about properties and anonymous classes"
AT_LEAST: Final = (f"{OWL}minQualifiedCardinality", f"{OWL}qualifiedCardinality")
BETWEEN_PROPERTIES: Final = frozenset({SUBPROPERTY, DOMAIN, RANGE, INVERSE})
OF_PROPERTIES: Final = frozenset({f"{OWL}propertyChainAxiom", f"{OWL}hasKey", f"{OWL}equivalentProperty", f"{OWL}propertyDisjointWith"})
AXIOM: Final = f"{OWL}Axiom"
SOURCE, PROPERTY, TARGET = (f"{OWL}annotated{word}" for word in ("Source", "Property", "Target"))


def is_ontology(triples: Columns) -> bool:
    """Whether triples declare an ontology, or are about classes more than about anything else."""
    classes, others = 0, 0
    for subject, predicate, value in zip(*triples, strict=True):
        if predicate != TYPE or subject.startswith("_:"):
            continue
        if value == HEADER:
            return True
        if value == CLASS:
            classes += 1
        elif value not in DECLARATIONS and not value.startswith((OWL, RDF, RDFS)):
            others += 1
    return classes > others


def ontology_of(path: Path, triples: Columns, attributes: Columns, datatypes: Mapping[int, str], identities: int = 0) -> Ontology:
    """
    Args:
        path: the file, for messages.
        triples: subjects, predicates, objects; blank nodes begin with ``_:``.
        attributes: subjects, predicates, texts as :func:`engine.data.readers.ontology.literal_value` without datatype.
        datatypes: row of ``attributes`` -> its datatype, where it has one.
        identities: triples that say who is who, which are not among these.
    """
    reading = _Reading(path, triples, attributes)
    reading.declare()
    reading.relate()
    reading.describe(datatypes)
    reading.ontology.left_out[IDENTITIES] += identities
    return reading.ontology


class _Reading:
    """The axioms of one file in the making.

    Attributes:
        below: blank node -> predicate -> objects.
        literals: blank node -> predicate -> texts.
        headers: the ontologies themselves.
        object_properties: those whose values are things.
    """

    def __init__(self, path: Path, triples: Columns, attributes: Columns) -> None:
        self.ontology = Ontology(path)
        self.triples = triples
        self.attributes = attributes
        self.headers: set[str] = set()
        self.object_properties: set[str] = set()
        self.below: dict[str, dict[str, list[str]]] = defaultdict(dict)
        self.literals: dict[str, dict[str, list[str]]] = defaultdict(dict)
        for found, columns in ((self.below, triples), (self.literals, attributes)):
            for subject, predicate, value in zip(*columns, strict=True):
                if subject.startswith("_:"):
                    found[subject].setdefault(predicate, []).append(value)

    def declare(self) -> None:
        """What is declared, wherever it comes in the file."""
        for subject, predicate, value in zip(*self.triples, strict=True):
            if predicate != TYPE or subject.startswith("_:"):
                continue
            if value == HEADER:
                self.headers.add(subject)
            elif value in DECLARATIONS:
                self.ontology.declare(DECLARATIONS[value], subject)
            if value == f"{RDFS}Datatype":
                self.ontology.datatypes.add(subject)
            if value == OBJECT_PROPERTY:
                self.object_properties.add(subject)
            elif value in (f"{OWL}DeprecatedClass", f"{OWL}DeprecatedProperty"):
                self.ontology.deprecated.add(subject)

    def relate(self) -> None:
        for subject, predicate, value in zip(*self.triples, strict=True):
            if subject in self.headers:
                if predicate == f"{OWL}imports":
                    self.ontology.imports[value] = None
            elif subject.startswith("_:"):
                self._anonymous(subject, predicate, value)
            else:
                self._named(subject, predicate, value)

    def _named(self, subject: str, predicate: str, value: str) -> None:
        ontology = self.ontology
        if predicate == TYPE:
            self._member(subject, value)
        elif predicate == SUBCLASS:
            ontology.below(subject, self._expression(value))
        elif predicate == EQUIVALENT:
            ontology.equivalent([subject, self._expression(value)])
        elif predicate == f"{OWL}intersectionOf":
            ontology.equivalent([subject, Both(tuple(map(self._expression, self._list(value))))])
        elif predicate in UNREAD:
            ontology.left_out[UNREAD[predicate]] += 1
        elif predicate == DISJOINT_WITH:
            ontology.disjoint([subject, self._expression(value)])
        elif predicate == f"{OWL}disjointUnionOf":
            ontology.disjoint_union(subject, list(map(self._expression, self._list(value))))
        elif predicate == f"{OWL}differentFrom":
            ontology.left_out[DIFFERENT] += 1
        elif predicate in OF_PROPERTIES or (predicate in BETWEEN_PROPERTIES and value.startswith("_:")):
            ontology.left_out[ABOUT_PROPERTIES] += 1
        elif predicate in BETWEEN_PROPERTIES:
            ontology.relate(subject, predicate, value)
        elif predicate in self.object_properties and not value.startswith("_:"):
            for end in (subject, value):
                if end not in ontology.kinds["classes"] and end not in ontology.kinds["properties"]:
                    ontology.declare("individuals", end)
            ontology.relate(subject, predicate, value)
        else:
            ontology.annotate(subject, predicate, value)

    def _member(self, subject: str, value: str) -> None:
        if value.startswith(OBO_IN_OWL):  # a node that holds a text
            return
        if value.startswith("_:"):
            self.ontology.below(subject, self._expression(value), "individuals")
        elif value.startswith((OWL, RDF, RDFS)):
            return
        elif subject not in self.ontology.kinds["properties"]:
            self.ontology.below(subject, value, "individuals")

    def _anonymous(self, subject: str, predicate: str, value: str) -> None:
        """What is said of a blank node itself: mostly parts of expressions, which are read from where they are used."""
        ontology = self.ontology
        if predicate == SUBCLASS or (predicate == EQUIVALENT and value.startswith("_:")):
            ontology.left_out[GENERAL] += 1
        elif predicate == EQUIVALENT:
            ontology.equivalent([value, self._expression(subject)])
        elif predicate == DISJOINT_WITH:
            ontology.disjoint([self._expression(subject), self._expression(value)])
        elif predicate == TYPE and value == f"{OWL}AllDisjointClasses":
            members = self.below.get(subject, {}).get(f"{OWL}members", ())
            ontology.disjoint([self._expression(one) for node in members for one in self._list(node)])
        elif predicate == TYPE and value in (f"{OWL}AllDifferent", f"{OWL}AllDisjointProperties"):
            ontology.left_out[DIFFERENT] += 1
        elif predicate == TYPE and value == f"{OWL}NegativePropertyAssertion":
            ontology.left_out["that are negative"] += 1
        elif predicate == TYPE and value not in DECLARATIONS and not value.startswith((OWL, RDF, RDFS, OBO_IN_OWL)):
            ontology.left_out[ANONYMOUS] += 1

    def _expression(self, node: str, level: int = 0) -> Expression:
        if not node.startswith("_:"):
            return node
        said = self.below.get(node, {})
        if level > MOST_LEVELS:
            return Other("nested too deeply")
        if parts := said.get(f"{OWL}intersectionOf"):
            return Both(tuple(self._expression(part, level + 1) for part in self._list(parts[0])))
        if reason := next((UNREAD[predicate] for predicate in said if predicate in UNREAD), None):
            return Other(reason)
        relation = said.get(f"{OWL}onProperty", [""])[0]
        if relation.startswith("_:"):
            return Other(INVERSES)
        if not relation:
            return Other("with an anonymous class of another kind")
        if values := said.get(f"{OWL}hasValue"):
            return Some(relation, values[0], "individuals") if not values[0].startswith("_:") else Other(ANONYMOUS)
        if fillers := said.get(f"{OWL}someValuesFrom") or (said.get(f"{OWL}onClass") if self._at_least_one(node) else None):
            return Some(relation, self._expression(fillers[0], level + 1))
        return Other(DATA_VALUES if f"{OWL}hasValue" in self.literals.get(node, {}) else CARDINALITY)

    def _at_least_one(self, node: str) -> bool:
        texts = [text for predicate in AT_LEAST for text in self.literals.get(node, {}).get(predicate, ())]
        return any(text.strip().isdecimal() and int(text.strip()[:18]) >= 1 for text in texts)

    def _list(self, node: str) -> Iterator[str]:
        """The members of an RDF list; one that bites its own tail ends there."""
        seen: set[str] = set()
        while node.startswith("_:") and node not in seen:
            seen.add(node)
            said = self.below.get(node, {})
            yield from said.get(f"{RDF}first", ())[:1]
            node = said.get(f"{RDF}rest", [""])[0]

    def describe(self, datatypes: Mapping[int, str]) -> None:
        ontology = self.ontology
        annotated = self._annotated_axioms()
        for at, (subject, predicate, text) in enumerate(zip(*self.attributes, strict=True)):
            if subject in self.headers or (subject.startswith("_:") and predicate not in (LABEL, LITERAL_FORM)):
                continue
            if predicate == DEPRECATED:
                if says_yes(text):
                    ontology.deprecated.add(subject)
                continue
            annotated.pop((subject, predicate, text), None)
            ontology.describe(subject, predicate, literal_value(text, datatype=datatypes.get(at)))
        for subject, predicate, text in annotated:
            ontology.describe(subject, predicate, text)

    def _annotated_axioms(self) -> dict[tuple[str, str, str], None]:
        """Values that axioms are about which carry annotations of their own; some files state them nowhere else."""
        found: dict[tuple[str, str, str], None] = {}
        for node, said in self.below.items():
            self.ontology.left_out[ANNOTATED] += AXIOM in said.get(TYPE, ())
            texts = self.literals.get(node, {}).get(TARGET, ())
            if texts and AXIOM in said.get(TYPE, ()) and SOURCE in said and PROPERTY in said and not said[SOURCE][0].startswith("_:"):
                found[said[SOURCE][0], said[PROPERTY][0], texts[0]] = None
        return found
