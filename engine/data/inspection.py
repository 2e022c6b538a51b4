"""A look at a data set without training: sizes, and all that would make figures wrong or results disappointing; as text and as plain values."""

from __future__ import annotations

import dataclasses
import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.data.knowledge_graph import SIDES, AlignmentTask, FileCount, Finding, KnowledgeGraph, Severity, Side
from engine.data.labels import SLASHED_DATE, identifier_tail, is_ambiguous_date, is_missing, literal_of, local_name
from engine.data.splits import OWN_TRAIN_RATIO, WORTH_A_TEST
from engine.util.arrays import IntArray
from engine.util.text import count, escape_controls, shorten

# A look at a loaded data set before anything is trained on it: counts, and everything that would make figures wrong or results disappointing.

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
NUM_EXAMPLES = 3
FEW_SEEDS = 100
LOW_COVERAGE = 0.01  # of the smaller graph's entities
REPORTED = 0.01  # share of links from which a giveaway is reported
MOSTLY = 0.5
NEARLY_SOLVED = 0.8
LEAST_UNCLEAR = 3
DOTTED, DOTTED_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}"), re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
IDENTITY_RELATIONS = frozenset({"sameas", "exactmatch", "closematch", "equivalententity"})


@dataclass(frozen=True)
class GraphSummary:
    """Counts of one graph.

    Attributes:
        name: the graph's name.
        entities, relations, triples, attributes: how many there are; ``attributes`` counts attribute triples.
        named: entities with a label.
        isolated: entities without a triple.
        self_loops: triples whose head is their tail.
        dangling: entities without a known link.
        degrees: incident triples an entity: "min", "p10", "median", "p90", "max", "mean".
    """

    name: str
    entities: int
    relations: int
    triples: int
    attributes: int
    named: int
    isolated: int
    self_loops: int
    dangling: int
    degrees: Mapping[str, float]


@dataclass(frozen=True)
class Inspection:
    """What was read, and what is suspicious about it.

    Attributes:
        name, format, split, fingerprint: the task's.
        source, target: counts.
        links: "train", "valid", "test", "unsure" -> number of links.
        findings: the reader's and the inspection's, the gravest first.
        files: what became of the lines of each file.
    """

    name: str
    format: str
    split: str
    fingerprint: str
    source: GraphSummary
    target: GraphSummary
    links: Mapping[str, int]
    findings: tuple[Finding, ...]
    files: tuple[FileCount, ...] = ()

    def __str__(self) -> str:
        """What ``python -m engine inspect`` prints."""

        return render_inspection(self)


def inspect_task(task: AlignmentTask, start: Finding | None = None) -> Inspection:
    """Count and check. Nothing is changed, and test links are only compared with names and identifiers, never learned from.

    Args:
        start: what training without seed links would start from, in place of the finding that there are none.
    """
    found = [*task.findings]
    for check in CHECKS:
        found.extend(check(task))
    if start is not None:
        found = [start if finding.code == start.code else finding for finding in found]
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    links = {"train": task.train_links, "valid": task.valid_links, "test": task.test_links, "unsure": task.unsure_links}
    return Inspection(
        name=task.name,
        format=task.format,
        split=task.split,
        fingerprint=task.fingerprint,
        source=_summarise(task, "source"),
        target=_summarise(task, "target"),
        links={part: len(rows) for part, rows in links.items()},
        findings=tuple(found),
        files=task.files,
    )


def inspection_to_dict(inspection: Inspection) -> dict[str, Any]:
    """Plain values, ready for JSON."""
    values = dataclasses.asdict(inspection)
    values["findings"] = [dataclasses.asdict(finding) | {"examples": list(finding.examples)} for finding in inspection.findings]
    return values


def _summarise(task: AlignmentTask, side: Side) -> GraphSummary:
    graph = task.graph(side)
    return GraphSummary(
        name=graph.name,
        entities=graph.num_entities,
        relations=graph.num_relations,
        triples=len(graph.triples),
        attributes=len(graph.attributes),
        named=sum(map(bool, graph.labels)),
        isolated=int((graph.degrees == 0).sum()),
        self_loops=int((graph.triples[:, 0] == graph.triples[:, 2]).sum()),
        dangling=len(task.dangling(side)),
        degrees=_quantiles(graph.degrees),
    )


def _quantiles(degrees: IntArray) -> dict[str, float]:
    names = ("min", "p10", "median", "p90", "max")
    values = np.quantile(degrees, (0, 0.1, 0.5, 0.9, 1), method="inverted_cdf") if len(degrees) else np.zeros(len(names))
    return {name: int(value) for name, value in zip(names, values, strict=True)} | {"mean": round(float(degrees.mean()), 2) if len(degrees) else 0.0}


def _known_links(task: AlignmentTask) -> IntArray:
    return np.concatenate([task.train_links, task.valid_links, task.test_links])


def _judged_links(task: AlignmentTask) -> tuple[IntArray, str]:
    """The links that figures will be about: test links, or all of them where there is no test."""
    return (task.test_links, "test links") if len(task.test_links) else (_known_links(task), "links")


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.1f}%"


def _examples(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(texts[:NUM_EXAMPLES])


def _pairs(task: AlignmentTask, links: IntArray) -> tuple[str, ...]:
    return tuple(f"{task.source.entities[left]} = {task.target.entities[right]}" for left, right in links[:NUM_EXAMPLES])


def check_self_loops(task: AlignmentTask) -> Iterator[Finding]:
    for side in SIDES:
        graph = task.graph(side)
        loops = graph.triples[graph.triples[:, 0] == graph.triples[:, 2]]
        if len(loops):
            examples = tuple(f"{graph.entities[head]} | {graph.relations[relation]}" for head, relation, _ in loops[:NUM_EXAMPLES])
            message = f"{count(len(loops), 'triple')} of the {side} graph {'connects' if len(loops) == 1 else 'connect'} an entity with itself."
            yield Finding("self-loops", "info", message, len(loops), examples, "They are kept; remove them if they are mistakes.")


def check_isolated(task: AlignmentTask) -> Iterator[Finding]:
    for side in SIDES:
        graph = task.graph(side)
        isolated = np.flatnonzero(graph.degrees == 0)
        if len(isolated):
            examples = _examples([graph.entities[entity] for entity in isolated[:NUM_EXAMPLES]])
            message = f"{count(len(isolated), 'entity', 'entities')} of the {side} graph {'is' if len(isolated) == 1 else 'are'} in no triple."
            yield Finding("isolated-entities", "warning", message, len(isolated), examples, "Only names and values can align them.")


def check_relations_without_triples(task: AlignmentTask) -> Iterator[Finding]:
    for side in SIDES:
        graph = task.graph(side)
        unused = np.setdiff1d(np.arange(graph.num_relations), graph.triples[:, 1])
        if len(unused):
            examples = _examples([graph.relations[relation] for relation in unused[:NUM_EXAMPLES]])
            message = f"{count(len(unused), 'relation')} of the {side} graph {'has' if len(unused) == 1 else 'have'} no triples."
            yield Finding("relations-without-triples", "info", message, len(unused), examples, "They are harmless. Check that no triples were lost.")


def check_identity_relations(task: AlignmentTask) -> Iterator[Finding]:
    for side in SIDES:
        graph = task.graph(side)
        identities = [number for number, name in enumerate(graph.relations) if local_name(name).lower() in IDENTITY_RELATIONS]
        same = int(np.isin(graph.triples[:, 1], identities).sum())
        if same:
            examples = _examples([graph.relations[number] for number in identities])
            message = f"{count(same, 'triple')} of the {side} graph {'states' if same == 1 else 'state'} that two things are the same."
            yield Finding("identity-relations", "warning", message, same, examples, "Remove them: they may contain the test links.")


def check_one_to_one(task: AlignmentTask) -> Iterator[Finding]:
    links = _known_links(task)
    for column, side in enumerate(SIDES):
        entities, counts = np.unique(links[:, column], return_counts=True)
        several = entities[counts > 1]
        if len(several):
            examples = _examples([task.graph(side).entities[entity] for entity in several[:NUM_EXAMPLES]])
            message = f"{count(len(several), f'{side} entity has', f'{side} entities have')} more than one link."
            advice = "A drawn split keeps an entity's links together, and any counterpart is a hit. One-to-one matching misses all but one."
            yield Finding("links-not-one-to-one", "warning", message, len(several), examples, advice)


def check_entity_leakage(task: AlignmentTask) -> Iterator[Finding]:
    """Pairs in two parts are the reader's business; here: entities that were trained with one partner and are tested with another."""
    seen = [np.concatenate([task.train_links[:, column], task.valid_links[:, column]]) for column in (0, 1)]
    shared = task.test_links[np.isin(task.test_links[:, 0], seen[0]) | np.isin(task.test_links[:, 1], seen[1])]
    if len(shared):
        message = f"{count(len(shared), 'test link has', 'test links have')} an entity that also has a training or validation link."
        yield Finding(
            "entity-leakage", "warning", message, len(shared), _pairs(task, shared), "Keep all links of an entity in one part of the split."
        )


def check_overlapping_identifiers(task: AlignmentTask) -> Iterator[Finding]:
    shared = sorted(entity for entity in set(task.source.entities).intersection(task.target.entities) if not entity.startswith("_:"))
    if not shared:
        return
    message = f"{count(len(shared), 'identifier occurs', 'identifiers occur')} in both graphs."
    if links := _self_links(task, shared):
        message += f" {count(links, 'link connects', 'links connect')} such an identifier with itself."
    advice = "They are treated as different entities. Rename them if that is misleading."
    yield Finding("overlapping-identifiers", "warning" if links else "info", message, len(shared), _examples(shared), advice)


def _self_links(task: AlignmentTask, shared: Sequence[str]) -> int:
    partner = {task.source.index[entity]: task.target.index[entity] for entity in shared}
    return sum(partner.get(left) == right for left, right in _known_links(task).tolist())


def check_blanks(task: AlignmentTask) -> Iterator[Finding]:
    """A blank at the edge of an identifier belongs to it, and is more often a blank after the comma."""
    for side in SIDES:
        graph = task.graph(side)
        padded = [entity for entity in graph.entities if entity != entity.strip()]
        if padded:
            twins = [entity for entity in padded if entity.strip() in graph.index]
            whose = f"of the {side} graph"
            message = f"{count(len(padded), f'identifier {whose} begins or ends', f'identifiers {whose} begin or end')} with a blank" + (
                f"; without it, {len(twins):,} of them would be the same as another one." if twins else "."
            )
            examples = _examples([f"'{entity}'" for entity in twins or padded])
            advice = "Blanks are part of identifiers. Remove them from the file if they are not meant."
            yield Finding("blanks-around-identifiers", "warning", message, len(padded), examples, advice)


def check_names(task: AlignmentTask) -> Iterator[Finding]:
    for side in SIDES:
        graph = task.graph(side)
        nameless = [entity for entity, label in zip(graph.entities, graph.labels, strict=True) if not label]
        if nameless:
            share = len(nameless) / graph.num_entities
            of_them = f"{count(len(nameless), 'entity', 'entities')} of the {side} graph ({_percent(share)})"
            have = "has" if len(nameless) == 1 else "have"
            severity: Severity = "warning" if share > MOSTLY else "info"
            if graph.attributes.empty:
                message = f"{of_them} {have} no name: the data has no attributes of this graph, and no name can be derived from these identifiers."
                advice = "Their identifiers are shown instead. If names exist elsewhere, add them as attributes."
            else:
                message = f"{of_them} {have} no name: none of the name attributes has a value."
                advice = "Their identifiers are shown instead. Set data.name_attribute if another attribute holds names."
            yield Finding("entities-without-name", severity, message, len(nameless), _examples(nameless), advice)


def check_missing_names(task: AlignmentTask) -> Iterator[Finding]:
    """Names that are taken as missing: mostly they are, but Na is also sodium."""
    for side in SIDES:
        graph = task.graph(side)
        missing = [entity for entity, label in enumerate(graph.labels) if label.strip() and is_missing(label)]
        if missing:
            examples = _examples(sorted({graph.labels[entity] for entity in missing}))
            message = f"{count(len(missing), 'name')} of the {side} graph {'is' if len(missing) == 1 else 'are'} taken as missing and not compared"
            message += f"{_with_nameless(graph, len(missing))}."
            advice = "If such a name is meant as it is written, write it out: sodium instead of Na."
            yield Finding("names-taken-as-missing", "info", message, len(missing), examples, advice)


def _with_nameless(graph: KnowledgeGraph, missing: int) -> str:
    """How many entities have no name to compare, together with those whose name is missing."""
    nameless = sum(not label for label in graph.labels)
    if not nameless:
        return ""
    without = count(nameless, "entity that has none", "entities that have none")
    return f"; with the {without}, {nameless + missing:,} of {graph.num_entities:,} entities have no name to compare"


def check_contradicted_links(task: AlignmentTask) -> Iterator[Finding]:
    """Known links against names that a single entity of each graph has: perhaps rows or columns of the file were moved against each other."""
    links = _known_links(task)
    if not len(links):
        return
    owners = [_sole_owners(task.graph(side)) for side in SIDES]
    partner = {owners[0][name]: owners[1][name] for name in owners[0].keys() & owners[1].keys()}
    named = set(partner.values())
    agree = [partner.get(left) == right for left, right in links.tolist()]
    contradict = [not same and (left in partner or right in named) for same, (left, right) in zip(agree, links.tolist(), strict=True)]
    wrong, right = links[np.array(contradict, dtype=bool)], sum(agree)
    if len(wrong) > right:
        message = (
            f"{len(wrong):,} of {count(len(links), 'known link')} {'connects' if len(wrong) == 1 else 'connect'} an entity with another one than "
            f"the only one of the same name; {right:,} {'connects' if right == 1 else 'connect'} entities of the same name."
        )
        advice = "Check that both ends of a link are in the same row of the file. Wrong seed links make results worse than none."
        yield Finding("contradicted-links", "warning", message, len(wrong), _named_pairs(task, wrong), advice)


def _sole_owners(graph: KnowledgeGraph) -> dict[str, int]:
    """Name, made comparable -> the only entity that has it."""
    names = [comparable_name(label) for label in graph.labels]
    rivals = Counter(names)
    return {name: entity for entity, name in enumerate(names) if name and rivals[name] == 1}


def check_revealing_labels(task: AlignmentTask) -> Iterator[Finding]:
    links, what = _judged_links(task)
    same, solved = _equal_keys(task, links, lambda graph, entity: comparable_name(graph.labels[entity]))
    if not len(same) or len(same) < REPORTED * len(links):
        return
    share, alone = len(same) / len(links), solved / len(links)
    message = f"{_percent(share)} of the {what} connect entities of the same name. Comparing names alone finds {_percent(alone)} of them."
    advice = (
        "Judge a method by what it adds to this."
        if alone < NEARLY_SOLVED
        else "Names nearly solve this task, so results of methods that use names are not informative."
    )
    severity: Severity = "warning" if share >= MOSTLY else "info"
    yield Finding("telling-labels", severity, message, len(same), _named_pairs(task, same), advice)


def check_revealing_identifiers(task: AlignmentTask) -> Iterator[Finding]:
    links, what = _judged_links(task)
    same, solved = _equal_keys(task, links, lambda graph, entity: identifier_tail(graph.entities[entity]).casefold())
    if not len(same) or len(same) < REPORTED * len(links):
        return
    share, alone = _percent(len(same) / len(links)), _percent(solved / len(links))
    message = f"{share} of the {what} connect identifiers with the same ending. Comparing endings alone finds {alone} of them."
    advice = "Do not use identifiers as features on this data. Names derived from them reveal the same."
    yield Finding("telling-identifiers", "warning", message, len(same), _pairs(task, same), advice)


def _equal_keys(task: AlignmentTask, links: IntArray, key: Callable[[KnowledgeGraph, int], str]) -> tuple[IntArray, int]:
    """The links whose ends have equal keys, and how many of them the key settles: no other candidate of the pool has it."""
    pairs = links.tolist()
    keys = [(key(task.source, left), key(task.target, right)) for left, right in pairs]
    candidates = {right: there for (_, right), (_, there) in zip(pairs, keys, strict=True)}
    rivals = Counter(candidates.values())
    equal = [number for number, (here, there) in enumerate(keys) if here and here == there]
    return links[equal], sum(rivals[keys[number][1]] == 1 for number in equal)


def _named_pairs(task: AlignmentTask, links: IntArray) -> tuple[str, ...]:
    return tuple(f"{_shown(task.source, left)} = {_shown(task.target, right)}" for left, right in links[:NUM_EXAMPLES])


def _shown(graph: KnowledgeGraph, entity: int) -> str:
    """An entity's label, its identifier where it has none."""
    return graph.labels[entity] or graph.entities[entity]


def comparable(label: str) -> str:
    """A label without case, accents, punctuation and blanks, for comparison."""
    plain = unicodedata.normalize("NFKD", label.casefold())
    return "".join(character for character in plain if character.isalnum())


def comparable_name(label: str) -> str:
    """The same of a name; "" where it says that there is none."""
    return "" if is_missing(label) else comparable(label)


def check_seeds(task: AlignmentTask) -> Iterator[Finding]:
    seeds = len(task.train_links)
    if not seeds:
        yield Finding("few-seeds", "warning", "There are no seed links.", advice="Add known links: a dozen help, a few hundred help a lot.")
        return
    coverage = seeds / min(task.source.num_entities, task.target.num_entities)
    if seeds < FEW_SEEDS or coverage < LOW_COVERAGE:
        message = f"There {'is' if seeds == 1 else 'are'} only {count(seeds, 'seed link')}, for {_percent(coverage)} of the smaller graph's entities."
        yield Finding("few-seeds", "warning", message, seeds, advice="Add known links: a dozen more help, a few hundred help a lot.")
    degrees = task.source.degrees[task.train_links[:, 0]], task.target.degrees[task.train_links[:, 1]]
    idle = int(((degrees[0] == 0) | (degrees[1] == 0)).sum())
    if idle:
        message = f"{count(idle, 'seed link has', 'seed links have')} an end without triples."
        yield Finding("idle-seeds", "warning", message, idle, advice="They cannot be used for training. Choose other links.")


def check_thousands(task: AlignmentTask) -> Iterator[Finding]:
    """Numbers of one graph that all look like 12.345: with a dot between thousands they are equal to no number of the other graph."""
    for side, found in _attributes_of_one(task, _is_dotted, lambda value: DOTTED.fullmatch(value) is not None):
        message = (
            f"All numbers of the {_named_attributes(found)} of the {side} graph have three digits after each dot "
            f"({shorten(next(iter(found.values())), 40)}); a single dot is read as a decimal point."
        )
        advice = "If the dot separates thousands, write these numbers without it (12345) or with a comma (12,345)."
        yield Finding("dotted-thousands", "info", message, len(found), _attribute_examples(found), advice)


def check_dates(task: AlignmentTask) -> Iterator[Finding]:
    """Dates of one graph such as 03/04/1912, of which day and month may be either."""
    for side, found in _attributes_of_one(task, _is_slashed_date, is_ambiguous_date):
        message = (
            f"Dates of the {_named_attributes(found)} of the {side} graph may begin with the day or the month "
            f"({shorten(next(iter(found.values())), 40)}); only their years are compared with other dates."
        )
        advice = "Write these dates with the year first (1912-04-03)."
        yield Finding("ambiguous-dates", "info", message, len(found), _attribute_examples(found), advice)


def _attributes_of_one(
    task: AlignmentTask, has_form: Callable[[str], bool], is_unclear: Callable[[str], bool]
) -> Iterator[tuple[str, dict[str, str]]]:
    """By graph: attributes whose values have a form that may be misread, where the other graph has none such of the same local name."""
    unclear = {side: _unclear_attributes(task.graph(side), has_form, is_unclear) for side in SIDES}
    for side, other in zip(SIDES, reversed(SIDES), strict=True):
        theirs = {local_name(name) for name in unclear[other]}
        if found := {name: example for name, example in unclear[side].items() if local_name(name) not in theirs}:
            yield side, found


def _unclear_attributes(graph: KnowledgeGraph, has_form: Callable[[str], bool], is_unclear: Callable[[str], bool]) -> dict[str, str]:
    """The attributes whose values all have the form, and at least ``LEAST_UNCLEAR`` different ones are unclear: name -> one of these."""
    found = {}
    rows = graph.attributes
    for name, values in rows["value"].groupby(rows["attribute"].to_numpy(dtype=object), sort=True):
        if all(map(has_form, values)):  # most attributes are done with after the first value
            unclear = [text for text in (literal_of(value).text.strip() for value in values.unique()) if is_unclear(text)]
            if len(unclear) >= LEAST_UNCLEAR:
                found[str(name)] = unclear[0]
    return found


def _named_attributes(found: dict[str, str]) -> str:
    named = ", ".join(f"'{shorten(name, 60)}'" for name in list(found)[:NUM_EXAMPLES])
    more = f" and {len(found) - NUM_EXAMPLES:,} more" if len(found) > NUM_EXAMPLES else ""
    return f"attribute{'' if len(found) == 1 else 's'} {named}{more}"


def _attribute_examples(found: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"{shorten(name, 60)}: {shorten(example, 40)}" for name, example in list(found.items())[:NUM_EXAMPLES])


def _is_dotted(value: str) -> bool:
    """A declared datatype, other than text, says itself what a dot means."""
    literal = literal_of(value)
    return literal.type_name.casefold() in ("", "string") and DOTTED_GROUPS.fullmatch(literal.text.strip()) is not None


def _is_slashed_date(value: str) -> bool:
    return SLASHED_DATE.fullmatch(literal_of(value).text.strip()) is not None


def check_evaluation(task: AlignmentTask) -> Iterator[Finding]:
    if not any(map(len, task.all_links())):
        yield Finding("no-test-links", "info", "There are no known links, so no accuracy is measured.", advice=no_test_advice(0))
    elif not len(task.test_links):
        known = len(task.train_links) + len(task.valid_links)
        trained = "The only known link trains" if known == 1 else f"All {known:,} known links train"
        message = f"{trained} the model, so no accuracy is measured."
        yield Finding("no-test-links", "info", message, advice=no_test_advice(known))


def no_test_advice(known: int) -> str:
    """How accuracy can be measured all the same."""
    kept = f", or keep a fifth of the links for a test (data.train_ratio={OWN_TRAIN_RATIO:g})" if known >= WORTH_A_TEST else ""
    return f"Review a random sample of the matches to measure it{kept}."


CHECKS: tuple[Callable[[AlignmentTask], Iterator[Finding]], ...] = (
    check_seeds,
    check_evaluation,
    check_contradicted_links,
    check_entity_leakage,
    check_one_to_one,
    check_revealing_labels,
    check_revealing_identifiers,
    check_identity_relations,
    check_overlapping_identifiers,
    check_blanks,
    check_isolated,
    check_thousands,
    check_dates,
    check_self_loops,
    check_relations_without_triples,
    check_names,
    check_missing_names,
)


# An inspection as plain text: 100 columns, no colours, and nothing in it that a hostile label could use to rearrange a terminal.

WIDTH = 100
COLUMN = 24
MARKS = {"error": "ERROR", "warning": "WARN", "info": "note"}


def render_inspection(inspection: Inspection) -> str:
    """The text that ``inspect`` prints, without a final newline."""
    return "\n".join(
        [
            *_head(inspection),
            "",
            *_table(inspection),
            "",
            *_links(inspection),
            "",
            *render_files(inspection.files),
            *render_findings(inspection.findings),
        ]
    )


def _head(inspection: Inspection) -> Iterator[str]:
    yield f"{inspection.name} (format {inspection.format})"
    yield from _wrapped("  split        ", escape_controls(inspection.split))
    yield f"  fingerprint  {inspection.fingerprint[:16]}"


def _table(inspection: Inspection) -> Iterator[str]:
    source, target = inspection.source, inspection.target
    yield _row("", shorten(source.name, COLUMN - 1), shorten(target.name, COLUMN - 1))
    for title, field in (
        ("entities", "entities"),
        ("  with a name", "named"),
        ("  without a triple", "isolated"),
        ("  without a link", "dangling"),
        ("relations", "relations"),
        ("relation triples", "triples"),
        ("  self-loops", "self_loops"),
        ("attribute triples", "attributes"),
    ):
        yield _row(title, f"{getattr(source, field):,}", f"{getattr(target, field):,}")
    for name in source.degrees:
        yield _row(f"degree {name}", _degree(source, name), _degree(target, name))


def _degree(graph: GraphSummary, name: str) -> str:
    return f"{graph.degrees[name]:,.2f}" if name == "mean" else f"{graph.degrees[name]:,}"


def _row(title: str, left: str, right: str) -> str:
    return f"  {title:<20}{left:>{COLUMN}}{right:>{COLUMN}}".rstrip()


def _links(inspection: Inspection) -> Iterator[str]:
    counts = ", ".join(f"{count:,} {part}" for part, count in inspection.links.items() if count or part != "unsure")
    yield from _wrapped("  links  ", counts)


def render_files(files: Sequence[FileCount]) -> Iterator[str]:
    """What became of the lines of each file; ends in an empty line where there is any."""
    if not files:
        return
    yield f"  {'file':<34}{'lines':>12}{'rows':>12}{'used':>12}{'left out':>12}"
    for file in files:
        numbers = file.lines, file.rows, file.used, file.rows - file.used
        yield f"  {shorten(Path(file.file).name, 22):<23}{file.what:<11}" + "".join(f"{number:>12,}" for number in numbers)
        for reason, rows in file.left_out:
            yield f"      {rows:,} {reason}"
    yield ""


def render_findings(findings: Sequence[Finding]) -> Iterator[str]:
    """Lines on what is suspicious, with what to do about each."""
    if not findings:
        yield "Nothing suspicious was found."
        return
    yield count(len(findings), "finding")
    for finding in findings:
        yield from _wrapped(f"  {MARKS[finding.severity]:<6}", f"{escape_controls(finding.message)} [{finding.code}]")
        for example in finding.examples:
            yield f"          e.g. {shorten(example, WIDTH - 15)}"
        if finding.advice:
            yield from _wrapped("        → ", escape_controls(finding.advice))


def _wrapped(start: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=" " * len(start)) or [start.rstrip()]
