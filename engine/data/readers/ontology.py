"""An ontology as a graph: which of its things are aligned, what becomes a triple or an attribute, and what is left out.

Readers of each syntax hand over axioms; what these become is settled here once, so that an ontology is the same graph in every syntax.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, get_args

from engine.data.knowledge_graph import Finding
from engine.data.labels import XSD_STRING, folded_local_name, tagged
from engine.data.readers.base import RawGraph
from engine.data.rows import identifier_problem
from engine.data.texts import Texts
from engine.errors import DataError
from engine.util.text import count, shorten

Kind = Literal["classes", "individuals", "properties"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Aligned = Literal["auto", "classes", "individuals", "properties", "all", "plain"]
ALIGNED: Final[tuple[Aligned, ...]] = get_args(Aligned)

RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
OWL: Final = "http://www.w3.org/2002/07/owl#"
OBO_IN_OWL: Final = "http://www.geneontology.org/formats/oboInOwl#"
TYPE: Final = f"{RDF}type"
LABEL: Final = f"{RDFS}label"
COMMENT: Final = f"{RDFS}comment"
SUBCLASS: Final = f"{RDFS}subClassOf"
SUBPROPERTY: Final = f"{RDFS}subPropertyOf"
DOMAIN: Final = f"{RDFS}domain"
RANGE: Final = f"{RDFS}range"
EQUIVALENT: Final = f"{OWL}equivalentClass"
DISJOINT_WITH: Final = f"{OWL}disjointWith"
INVERSE: Final = f"{OWL}inverseOf"
DEPRECATED: Final = f"{OWL}deprecated"
LITERAL_FORM: Final = "http://www.w3.org/2008/05/skos-xl#literalForm"
VOCABULARIES: Final = (
    *(RDF, RDFS, OWL, OBO_IN_OWL, "http://www.w3.org/2001/XMLSchema#", "http://www.w3.org/2003/11/swrl#", "http://www.w3.org/2004/02/skos/core#"),
    *("http://www.w3.org/2008/05/skos-xl#", "http://protege.stanford.edu/plugins/owl/protege#", "http://www.w3.org/ns/shacl#"),
    *("xsd:", "owl:", "rdf:", "rdfs:"),  # as OBO writes them
)
"""Namespaces of the language itself and of the usual annotations: their classes and properties are no ontology's subject."""
TEXT_ENDINGS: Final = ("synonym", "label", "definition", "altname", "alternativename")
"""Ends of local names, folded, of properties whose value is a text, be it that of a node of its own."""
LISTED: Final = 12
MOST_DISJOINT: Final = 100
"""Classes of one axiom that are related two by two; the pairs of more would outnumber all else that an ontology says."""

IDENTITIES: Final = "of owl:sameAs or skos:exactMatch, which say who is who"
GENERAL: Final = "about an anonymous class alone"
NESTED: Final = "with a restriction inside of a restriction"
UNKNOWN_ENDS: Final = "between things of which not both are aligned"
VOCABULARY: Final = "with the vocabulary of RDF, OWL or annotations"
ANNOTATED: Final = "read without the annotations of the axiom"
DISJOINT: Final = f"of disjointness among other things than two to {MOST_DISJOINT} named classes"
ANONYMOUS: Final = "of anonymous individuals or nodes"


# Class expressions, in the few forms that become triples.


@dataclass(frozen=True)
class Some:
    """What has some value of a property: an existential restriction, a value (``hasValue``), at least or exactly one of a class.

    ``kind``: of the filler.
    """

    relation: str
    filler: Expression
    kind: Kind = "classes"


@dataclass(frozen=True)
class Both:
    """An intersection."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Other:
    """Any other class expression; ``what`` says which ("with a union of classes")."""

    what: str


Expression = str | Some | Both | Other
Columns = tuple[list[str], list[str], list[str]]


def _columns() -> Columns:
    return [], [], []


@dataclass
class Ontology:
    """The axioms of one file.

    Attributes:
        path: the file, for messages.
        kinds: which things are of which kind; one may be of several.
        deprecated: things that are out of use.
        datatypes: types of data, which are no classes whatever else is said of them.
        imports: ontologies that this one refers to.
        left_out: reason -> axioms.
    """

    path: Path
    kinds: dict[Kind, dict[str, None]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    deprecated: set[str] = field(default_factory=set)
    datatypes: set[str] = field(default_factory=set)
    imports: dict[str, None] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    _triples: Columns = field(default_factory=_columns)
    _attributes: Columns = field(default_factory=_columns)
    _annotations: list[tuple[str, str, str]] = field(default_factory=list)

    def declare(self, kind: Kind, name: str) -> None:
        """A thing that is of this kind."""
        self.kinds[kind][name] = None

    def relate(self, head: str, relation: str, tail: str, ends: Kind | None = None) -> None:
        """A triple between named things; ``ends``: the kind that both are of by their place in the axiom."""
        if ends is not None:
            self._use(ends, head)
            self._use(ends, tail)
        _append(self._triples, (head, relation, tail))

    def describe(self, entity: str, attribute: str, value: str) -> None:
        """An attribute with its text, as :func:`literal_value`."""
        _append(self._attributes, (entity, attribute, value))

    def annotate(self, entity: str, attribute: str, node: str) -> None:
        """An annotation whose value is a thing, a page or a node with a text; which of them is known when all is read."""
        self._annotations.append((entity, attribute, node))

    def below(self, name: str, expression: Expression, kind: Kind = "classes") -> None:
        """What a class is a subclass of, or what an individual is a member of."""
        self._use(kind, name)
        if isinstance(expression, str):
            self._use("classes", expression)
            self.relate(name, SUBCLASS if kind == "classes" else TYPE, expression)
        elif isinstance(expression, Both):
            for part in expression.parts:
                self.below(name, part, kind)
        elif isinstance(expression, Some):
            fillers = list(_named(expression.filler))
            self.left_out[NESTED] += not fillers
            for filler in fillers:
                self._use(expression.kind, filler)
                self.relate(name, expression.relation, filler)
        else:
            self.left_out[expression.what] += 1

    def equivalent(self, expressions: Sequence[Expression]) -> None:
        """Classes that are the same; of an intersection each part is a superclass."""
        named = [one for one in expressions if isinstance(one, str)]
        for one, other in itertools.pairwise(named):
            self.relate(min(one, other), EQUIVALENT, max(one, other), "classes")
        self.left_out[GENERAL] += not named
        for name in named:
            for expression in expressions:
                if not isinstance(expression, str):
                    self.below(name, expression)

    def disjoint(self, expressions: Sequence[Expression]) -> None:
        """Classes of which no two have anything in common: a triple for every two."""
        named = sorted({one for one in expressions if isinstance(one, str)})
        self.left_out[DISJOINT] += not 2 <= len(named) <= MOST_DISJOINT
        if len(named) <= MOST_DISJOINT:
            for one, other in itertools.combinations(named, 2):
                self.relate(one, DISJOINT_WITH, other, "classes")

    def disjoint_union(self, name: str, expressions: Sequence[Expression]) -> None:
        """A class that disjoint ones make up: these are below it."""
        for one in expressions:
            if isinstance(one, str):
                self.below(one, name)
        self.disjoint(expressions)

    def _use(self, kind: Kind, name: str) -> None:
        """What is of a kind by its place in an axiom, declared or not."""
        if not is_vocabulary(name):
            self.kinds[kind][name] = None

    def graph(self, aligned: Aligned, findings: list[Finding]) -> RawGraph:
        """The graph of the wanted things; what was recognised and left out is added to the findings.

        Raises:
            DataError: there is none of the wanted things; an identifier that cannot be one.
        """
        self._settle_annotations()
        used = {kind: self._used(kind) for kind in KINDS}
        chosen = chosen_kinds(aligned, used)
        things = {name for kind in chosen for name in used[kind]}
        if not things:
            raise DataError(_none(aligned, used), path=self.path)
        triples, attributes = self._kept_triples(things), self._kept_attributes(things)
        for name in (*things, *set(triples[1]), *attributes[1].words.to_list()):
            if problem := identifier_problem(name):
                raise DataError(f"an identifier {problem}; shorten or correct it.", path=self.path)
        findings += self._noticed(chosen, used)
        heads, relations, tails = map(Texts.of, triples)
        return RawGraph(self.path, heads, relations, tails, entities=Texts.of(sorted(things)), attributes=attributes)

    def _used(self, kind: Kind) -> dict[str, None]:
        out = self.deprecated | self.datatypes
        return {name: None for name in self.kinds[kind] if name not in out and not is_vocabulary(name) and not name.startswith("_:")}

    def _settle_annotations(self) -> None:
        """Nodes with a text become that text, things of the ontology the ends of triples, anything else a value."""
        texts = self._texts_of({node for _, _, node in self._annotations})
        structural = self.kinds["classes"].keys() | self.kinds["properties"].keys()
        known = structural | self.kinds["individuals"].keys()
        resolved: set[str] = set()
        for entity, attribute, node in self._annotations:
            if node in texts and node not in structural and (node.startswith("_:") or holds_text(attribute)):
                resolved.add(node)
                for text in texts[node]:
                    self.describe(entity, attribute, text)
            elif node in known:
                self.relate(entity, attribute, node)
            elif node.startswith("_:"):
                self.left_out[ANONYMOUS] += 1
            else:
                self.describe(entity, attribute, node)
        for node in resolved:
            self.kinds["individuals"].pop(node, None)
        self._annotations = []

    def _texts_of(self, nodes: set[str]) -> Mapping[str, list[str]]:
        texts: dict[str, list[str]] = defaultdict(list)
        for entity, attribute, value in zip(*self._attributes, strict=True):
            if entity in nodes and attribute in (LABEL, LITERAL_FORM):
                texts[entity].append(value)
        return texts

    def _kept_triples(self, things: set[str]) -> Columns:
        """Without repetitions: several axioms may say the same of two things."""
        rows: dict[tuple[str, str, str], None] = {}
        for row in zip(*self._triples, strict=True):
            head, _, tail = row
            if head in things and tail in things:
                rows[row] = None
            elif not {head, tail} & self.deprecated:
                self.left_out[VOCABULARY if is_vocabulary(head) or is_vocabulary(tail) else UNKNOWN_ENDS] += 1
        kept = _columns()
        for row in rows:
            _append(kept, row)
        return kept

    def _kept_attributes(self, things: set[str]) -> tuple[Texts, Texts, Texts]:
        rows = [at for at, entity in enumerate(self._attributes[0]) if entity in things]
        entities, attributes, values = ([column[at] for at in rows] for column in self._attributes)
        return Texts.of(entities), Texts.of(attributes), Texts.of(values)

    def _noticed(self, chosen: Sequence[Kind], used: Mapping[Kind, Mapping[str, None]]) -> Iterator[Finding]:
        name = shorten(self.path.name)
        recognised = ", ".join(kind_count(kind, len(used[kind])) for kind in KINDS)
        message = f"{name} was read as an ontology: {recognised}; {' and '.join(chosen)} are aligned."
        yield Finding("ontology-read", "info", message, sum(len(used[kind]) for kind in chosen), advice=CHOOSE)
        if "individuals" not in chosen and len(used["individuals"]) > len(used["classes"]) and "classes" in chosen:
            message = f"{name}: {kind_count('individuals', len(used['individuals']))} are not aligned, more than there are classes."
            yield Finding("ontology-individuals", "warning", message, len(used["individuals"]), advice=CHOOSE)
        if reasons := sorted(self._reasons(chosen, used), key=lambda one: (-one[0], one[1])):
            number = sum(many for many, _ in reasons)
            listed = "; ".join(words for _, words in reasons[:LISTED])
            rest = sum(many for many, _ in reasons[LISTED:])
            more = f"; {rest:,} for other reasons" if rest else ""
            yield Finding("ontology-left-out", "info", f"{name}: left out of the graph: {listed}{more}.", number)
        if self.imports:
            examples = tuple(shorten(one) for one in sorted(self.imports)[:3])
            message = f"{name} imports {count(len(self.imports), 'ontology', 'ontologies')} ({', '.join(examples)}), which is never fetched."
            advice = "Merge them into one file, with ROBOT or Protégé for example, if what they say is needed."
            yield Finding("ontology-imports", "warning", message, len(self.imports), examples, advice)

    def _reasons(self, chosen: Sequence[Kind], used: Mapping[Kind, Mapping[str, None]]) -> Iterator[tuple[int, str]]:
        """What was left out, and why: numbers and words with them."""
        for kind in KINDS:
            if kind not in chosen and used[kind]:
                yield len(used[kind]), f"{kind_count(kind, len(used[kind]))} (not aligned)"
            if old := sum(name in self.deprecated for name in self.kinds[kind]):
                yield old, f"{kind_count(kind, old)} (deprecated)"
            if words := sum(is_vocabulary(name) and name not in self.deprecated for name in self.kinds[kind]):
                yield words, f"{kind_count(kind, words)} of the vocabulary of RDF, OWL or annotations"
        yield from ((number, f"{count(number, 'axiom')} {reason}") for reason, number in self.left_out.items() if number)


CHOOSE: Final = "Choose with data.ontology: classes, individuals, properties or all; plain reads RDF triple by triple."


def _append(columns: Columns, row: tuple[str, str, str]) -> None:
    for column, cell in zip(columns, row, strict=True):
        column.append(cell)


def kind_count(kind: Kind, number: int) -> str:
    """'1 class', '545 classes'."""
    return count(number, {"classes": "class", "individuals": "individual", "properties": "property"}[kind], kind)


def chosen_kinds(aligned: Aligned, used: Mapping[Kind, Mapping[str, None]]) -> tuple[Kind, ...]:
    """Where the choice is left open, classes if there are any, else individuals."""
    if aligned in ("all", "plain"):
        return tuple(kind for kind in KINDS if used[kind])
    if aligned == "auto":
        return ("classes",) if used["classes"] or not used["individuals"] else ("individuals",)
    return (aligned,)  # type: ignore[return-value]


def _none(aligned: Aligned, used: Mapping[Kind, Mapping[str, None]]) -> str:
    there = [kind_count(kind, len(names)) for kind, names in used.items() if names]
    if aligned in ("auto", "all", "plain"):
        others = f", only {' and '.join(there)}" if there else ""
        return f"this ontology has no classes and no individuals that could be aligned{others}; check that it is the right file."
    others = f"; it has {' and '.join(there)}, choose among them with data.ontology" if there else ""
    return f"this ontology has no {aligned} that could be aligned{others}."


def _named(expression: Expression) -> Iterator[str]:
    """The names among the parts of a filler: what has some A and B has some A."""
    if isinstance(expression, str):
        yield expression
    elif isinstance(expression, Both):
        for part in expression.parts:
            yield from _named(part)


def is_vocabulary(name: str) -> bool:
    return name.startswith(VOCABULARIES)


def holds_text(attribute: str) -> bool:
    """Whether a property's value is a text, so that a node in its place holds one."""
    return folded_local_name(attribute).endswith(TEXT_ENDINGS)


def literal_value(text: str, language: str | None = None, datatype: str | None = None) -> str:
    """A literal as an attribute's value: with its language (``"Rom"@de``) or datatype (``"3"^^<...#int>``) where it has one."""
    if language:
        return tagged(text, language)
    return f'"{text}"^^<{datatype}>' if datatype and datatype not in (XSD_STRING, f"{RDF}langString") else text


def says_yes(text: str) -> bool:
    """Whether the text of a literal is true."""
    return text.strip().lower() in ("true", "1")
