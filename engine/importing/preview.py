"""What was understood of an import, and what can be done about each finding."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from engine.config import DataConfig, RunConfig
from engine.data.assembly import build_task, header_links
from engine.data.inspection import SEVERITIES, GraphSummary, Inspection, inspect_task
from engine.data.knowledge_graph import SIDES, AlignmentTask, FileCount, Finding, KnowledgeGraph, Side
from engine.data.labels import name_languages, naming_attributes, preferred_language, rank_languages
from engine.data.links import respelling_findings
from engine.data.readers import RawDataset, RawGraph
from engine.data.readers.naming import looks_like_data
from engine.data.rows import passed_over
from engine.data.splits import OWN_TRAIN_RATIO
from engine.data.texts import Texts, distinct_words, numbers, union
from engine.importing.detect import UnderstoodFile, glance
from engine.importing.read import ReadMaterial, name_triple_findings, original_names, read_material
from engine.importing.seeds import Expectation, SeedPair, SeedSuggestions, expectation, link_findings, suggest_seeds, with_seeds
from engine.importing.source import ROLE_WORDS, Corrections, Material
from engine.names.value_start import values_to_start_from
from engine.util.arrays import fresh_rows, sorted_rows
from engine.util.text import count, shorten

# What to do about a finding of an import: on the page, where the means are at hand, and on the command line, where they are options.


@dataclass(frozen=True)
class Remedy:
    """What to do, in the words of the page and in those of the command line."""

    page: str
    command: str


ONTOLOGY_OPTION: Final = "Choose with --ontology classes, individuals, properties or all; plain reads RDF triple by triple."
REMEDIES: Final[Mapping[str, Remedy]] = {
    "links-swapped": Remedy("Swap their columns.", "Swap their columns with --swap-links."),
    "links-unknown": Remedy(
        "Check that both files spell identifiers the same way, or upload other links.",
        "Check that both files spell identifiers the same way, or provide other links with --links FILE.",
    ),
    "links-partly-unknown": Remedy("Check how these identifiers are written.", "Check how these identifiers are written in --links FILE."),
    "links-spelt-otherwise": Remedy("Use the graphs' spelling.", "Use the graphs' spelling with --repair-links."),
    "one-graph-twice": Remedy("Choose the other graph's file for one of them.", "Give the source graph's file first and the target graph's second."),
    "shared-triples": Remedy(*["Check that these are two graphs and not one in two versions."] * 2),
    "columns-mixed-up": Remedy(
        "Check which column holds the relations.", "Set the column of the relations with --columns graph1:relation=NUMBER (or graph2)."
    ),
    "header-as-triple": Remedy(
        "Mark this file's first row as a header, or leave it as a triple.",
        "Mark the first row as a header with --columns graph1:header=yes (or graph2), or leave it as a triple.",
    ),
    "blanks-around-identifiers": Remedy(
        "Switch on 'Remove blanks around cells' below the rows of this file if they do not belong to its identifiers.",
        "Remove blanks around cells with --columns graph1:trim=yes (or graph2, links) if they do not belong to identifiers.",
    ),
    "index-column": Remedy(
        "If it holds identifiers, choose it as a column below the rows of this file.",
        "If it holds identifiers, assign the columns with --columns graph1:head=1,relation=2,tail=3 (or graph2, links).",
    ),
    "header-as-link": Remedy(
        "Mark this file's first row as a header, below its rows.",
        "Mark the first row as a header with --columns links:header=yes, or that it is a link with header=no.",
    ),
    "files-passed-over": Remedy(
        "If one of them belongs to the data, choose it under 'Roles of the files', or rename it after its role.",
        "If one of them belongs to the data, provide it with --links, --attributes1 or --attributes2, or rename it after its role.",
    ),
    "names-as-triples": Remedy("Use them as names.", "Use them as names with --names-from-triples."),
    "ontology-read": Remedy("Choose below the graphs what to align.", ONTOLOGY_OPTION),
    "ontology-individuals": Remedy("To align these, choose individuals or all below the graphs.", ONTOLOGY_OPTION),
    "named-graphs": Remedy(
        "Choose below the graphs which of them to read.",
        "Choose with --named-graphs1 IRI for the source graph, --named-graphs2 IRI for the target graph.",
    ),
    "database-recognised": Remedy(
        "Choose other rows with the query below the file.", "Choose other rows with --query1 for the source graph, --query2 for the target graph."
    ),
    "table-recognised": Remedy(
        "Below the rows of a table its identifiers and relations can be chosen.",
        "Choose the identifiers and relations of a table with --columns graph1:identifier=1,relations=3+5 (or graph2); "
        "if its rows are triples, head=1,relation=2,tail=3.",
    ),
    "no-seeds": Remedy(
        "Upload known links, or use the seeds that names suggest.",
        "Provide known links with --links FILE, or use the seeds that names suggest with --seeds-from-names.",
    ),
    "no-seeds-but-near": Remedy(
        "Upload known links, or use the seeds that nearly equal names suggest.",
        "Provide known links with --links FILE, or use the seeds that nearly equal names suggest with --seeds-from-names near.",
    ),
    "no-start": Remedy(
        "Upload known links, or graphs that have more names or values in common.",
        "Provide known links with --links FILE, or graphs that have more names or values in common.",
    ),
    "few-seeds": Remedy(
        "Use the seeds that names suggest as well.",
        "Provide more with --links FILE, or use the seeds that names suggest with --seeds-from-names.",
    ),
    "no-test-links": Remedy(
        "Review a random sample of the matches to measure it. With enough links, the page Train can keep a fifth of them for testing.",
        f"Review a sample of the matches to measure it, or keep a fifth of the links for testing with --train-ratio {OWN_TRAIN_RATIO:g}.",
    ),
    "name-languages": Remedy(
        "Choose another language for either graph, below the name attribute.",
        "Choose others with --name-language en,de, or with --name-language source=de --name-language target=en.",
    ),
    "entities-without-name": Remedy(
        "Their identifiers are shown instead. If an attribute holds names, choose it. Names in a separate file can be uploaded with the graphs.",
        "Their identifiers are shown instead. If an attribute holds names, set --name-attribute NAME. "
        "Names in separate files are provided with --attributes1 and --attributes2.",
    ),
}
"""By a finding's code: what an import alone can notice, and findings of an inspection that an import can do something about."""


def on_the_page(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings with what to do about them on the import page."""
    return tuple(_with_advice(finding, REMEDIES[finding.code].page) if finding.code in REMEDIES else finding for finding in findings)


def on_the_command_line(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings with the options that fix them."""
    return tuple(_with_advice(finding, REMEDIES[finding.code].command) if finding.code in REMEDIES else finding for finding in findings)


def _with_advice(finding: Finding, advice: str) -> Finding:
    return dataclasses.replace(finding, advice=advice)


# What was understood of two graphs and their links, what is suspicious about them, and what that means for training.

SAMPLES: Final = 8
LISTED: Final = 12
SAME_GRAPH: Final = 0.99
SHARED_TRIPLES: Final = 0.5
SPREAD_RELATIONS: Final = 0.2
ENOUGH_TRIPLES: Final = 20
_NAMESPACE = re.compile(r"(.*[#/:])[^#/:]*")

Triple = tuple[str, str, str]


@dataclass(frozen=True)
class NameCandidate:
    """An attribute that may hold the entities' names.

    Attributes:
        share: of the graph's entities that have it.
        distinct: share of different values among its values; names are mostly different.
        example: one value.
        chosen: whether names are taken from it now.
    """

    attribute: str
    share: float
    distinct: float
    example: str
    chosen: bool


@dataclass(frozen=True)
class UnderstoodGraph:
    """One graph, to be looked over.

    Attributes:
        summary: counts.
        namespaces: beginnings of identifiers with their numbers of entities, the most frequent first.
        relations: with their numbers of triples, the most frequent first.
        triples: a few of them.
        names: attributes that may hold names, the likeliest first.
        languages: of names, with numbers of entities that have one, the most frequent first; "" are names without a language.
        preferred: the language that is preferred now.
    """

    summary: GraphSummary
    namespaces: tuple[tuple[str, int], ...]
    relations: tuple[tuple[str, int], ...]
    triples: tuple[Triple, ...]
    names: tuple[NameCandidate, ...]
    languages: tuple[tuple[str, int], ...] = ()
    preferred: str = ""


@dataclass(frozen=True)
class Preview:
    """All that is known of an import before it is stored.

    Attributes:
        format: "openea" or "dbp15k" for a folder of that format, "files" where each file was understood by itself.
        graphs: what was understood of each.
        links: part -> number.
        link_sample: a few pairs of identifiers.
        findings: the gravest first; one of severity "error" must be fixed before the data can be stored.
        expectation: of a training with these seeds.
        suggestions: seed links that names suggest.
        chosen: those of them that are to be seeds.
        fingerprint: of graphs and links.
        links_left_out: how many links were given that cannot be used until the errors are corrected.
        named_graphs: role of a graph -> the first named graphs of its file.
    """

    format: str
    files: tuple[UnderstoodFile, ...]
    graphs: Mapping[Side, UnderstoodGraph]
    links: Mapping[str, int]
    link_sample: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    expectation: Expectation
    suggestions: SeedSuggestions
    chosen: tuple[SeedPair, ...]
    fingerprint: str
    links_left_out: int = 0
    named_graphs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What keeps the data from being stored."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def links_are_wrong(self) -> bool:
        """Whether it is the links themselves that keep the data from being stored."""
        return any(finding.code.startswith("links-") for finding in self.problems)


@dataclass(frozen=True)
class Understood:
    """A preview with the data behind it, which may be large."""

    preview: Preview
    read: ReadMaterial
    raw: RawDataset

    @property
    def on_the_command_line(self) -> Understood:
        """The same, with the options that fix what was found."""
        findings = on_the_command_line(self.preview.findings)
        return dataclasses.replace(self, preview=dataclasses.replace(self.preview, findings=findings))


def understand(material: Material, corrections: Corrections) -> Understood:
    """Read everything and look at it; nothing is written.

    Raises:
        DataImportError, DataError: something cannot be read at all; says what, where, and what to do.
    """
    read = read_material(material, corrections)
    files = glance(material, corrections)
    found = [*header_links(read.raw), *_one_graph_twice(read.raw), *_spread_relations(read.raw), *_header_as_triple(files, read.raw)]
    found += link_findings(read.raw)
    found += name_triple_findings(read.raw)
    sound = not any(finding.severity == "error" for finding in found)
    found += [] if sound else respelling_findings(read.raw)  # otherwise the task has them
    usable = read.raw if sound else dataclasses.replace(read.raw, links={})
    with original_names(material):
        task = _task(usable, corrections)
        suggestions = _suggestions(task, corrections) if sound else SeedSuggestions()
        chosen = suggestions.chosen(corrections.seeds, corrections.rejected)
        raw = with_seeds(usable, chosen)
        if chosen:
            task = _task(raw, corrections)
    files = _counted(files, material, task.files)
    found += _passed_over(material, read)
    inspection = inspect_task(task)
    if sound and not len(task.train_links):
        found.append(_no_seeds(task, suggestions))
    left_out = 0 if sound else sum(len(links.sources) for links in read.raw.links.values())
    shown = _preview(read.format, files, task, inspection, found, suggestions, chosen, _data_config(corrections))
    return Understood(dataclasses.replace(shown, links_left_out=left_out, named_graphs=read.named_graphs), read, raw)


def _passed_over(material: Material, read: ReadMaterial) -> Iterator[Finding]:
    """Every file that nothing was read from; those without an ending of data do no harm. Of a benchmark's folder its other folds are no matter."""
    used = {file.path for file in read.files}
    left = [file.name for file in material.files if file.path not in used and not (material.whole_folder is not None and "/" in file.name)]
    likely = [name for name in left if looks_like_data(Path(name))]
    yield from passed_over(likely)
    yield from passed_over([name for name in left if name not in likely], "info")


def _counted(files: Sequence[UnderstoodFile], material: Material, counts: Sequence[FileCount]) -> tuple[UnderstoodFile, ...]:
    """With what became of their lines."""
    names = {str(file.path): file.name for file in material.files}
    owned = [dataclasses.replace(one, file=names[one.file]) for one in counts if one.file in names]
    return tuple(dataclasses.replace(file, counts=tuple(one for one in owned if one.file == file.name)) for file in files)


def preview(material: Material, corrections: Corrections) -> Preview:
    """The same without the data.

    Raises:
        DataImportError, DataError: as :func:`understand`.
    """
    return understand(material, corrections).preview


def _task(raw: RawDataset, corrections: Corrections) -> AlignmentTask:
    return build_task(Path("import"), "import", raw, _data_config(corrections), 0)


def _data_config(corrections: Corrections) -> DataConfig:
    return RunConfig().with_values(corrections.naming).data


def _suggestions(task: AlignmentTask, corrections: Corrections) -> SeedSuggestions:
    few = expectation(len(task.train_links), _smaller(task)).few
    return suggest_seeds(task) if few or corrections.seeds != "none" else SeedSuggestions()


def _smaller(task: AlignmentTask) -> int:
    return min(task.source.num_entities, task.target.num_entities)


def _preview(
    format: str,
    files: tuple[UnderstoodFile, ...],
    task: AlignmentTask,
    inspection: Inspection,
    found: Sequence[Finding],
    suggestions: SeedSuggestions,
    chosen: tuple[SeedPair, ...],
    config: DataConfig,
) -> Preview:
    # The expectation says more than "few seeds"; without any link the error says all.
    hidden = {"few-seeds"} if any(map(len, task.all_links())) else {"few-seeds", "no-test-links"}
    hidden |= {finding.code for finding in found} & {"header-as-link"}
    findings = [*found, *(finding for finding in inspection.findings if finding.code not in hidden)]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    known = [(task.source.entities[left], task.target.entities[right]) for links in task.all_links() for left, right in links[:SAMPLES].tolist()]
    tongues = {side: name_languages(task.graph(side).attributes, config.name_attribute) for side in SIDES}
    ranked = {side: rank_languages(tongues["source"], tongues["target"], config.languages[side]) for side in SIDES}
    return Preview(
        format=format,
        files=files,
        graphs={side: _graph(task, side, inspection, tongues[side], ranked[side], config.name_attribute) for side in SIDES},
        links=inspection.links,
        link_sample=tuple(known[:SAMPLES]),
        findings=on_the_page(findings),
        expectation=expectation(len(task.train_links), _smaller(task), not any(one.code in NO_SEEDS and one.severity == "error" for one in found)),
        suggestions=suggestions,
        chosen=chosen,
        fingerprint=task.fingerprint,
    )


def _graph(
    task: AlignmentTask, side: Side, inspection: Inspection, tongues: Mapping[str, int], ranked: Sequence[str], wanted: str | None
) -> UnderstoodGraph:
    graph = task.graph(side)
    counts = np.bincount(graph.triples[:, 1], minlength=graph.num_relations)
    most = np.argsort(-counts, kind="stable")[:LISTED]
    chosen = graph.triples[np.linspace(0, len(graph.triples) - 1, min(SAMPLES, len(graph.triples)), dtype=np.int64)]
    return UnderstoodGraph(
        summary=inspection.source if side == "source" else inspection.target,
        namespaces=_namespaces(graph.entities),
        relations=tuple((graph.relations[at], int(counts[at])) for at in most),
        triples=tuple((graph.entities[head], graph.relations[relation], graph.entities[tail]) for head, relation, tail in chosen.tolist()),
        names=_name_candidates(graph, wanted),
        languages=tuple(sorted(tongues.items(), key=lambda one: (-one[1], one[0]))),
        preferred=preferred_language(tongues, ranked),
    )


def _namespaces(entities: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Of bare names there is none."""
    counts = Counter(match[1] for entity in entities if (match := _NAMESPACE.fullmatch(entity.rstrip("#/"))))
    return tuple(counts.most_common(5))


def _name_candidates(graph: KnowledgeGraph, wanted: str | None) -> tuple[NameCandidate, ...]:
    table = graph.attributes
    if table.empty:
        return ()
    now = set(naming_attributes(table, wanted))
    stats = table.groupby("attribute", sort=False).agg(entities=("entity", "nunique"), values=("value", "nunique"), rows=("value", "size"))
    stats["distinct"] = stats["values"] / stats["rows"]
    stats["rank"] = stats["entities"] * stats["distinct"] * (1 + stats.index.isin(now))
    best = stats.sort_values("rank", ascending=False, kind="stable").head(LISTED)
    return tuple(_candidate(graph, str(name), row, str(name) in now) for name, row in best.iterrows())


def _candidate(graph: KnowledgeGraph, name: str, row: pd.Series, chosen: bool) -> NameCandidate:
    example = str(graph.attributes.loc[graph.attributes["attribute"] == name, "value"].iloc[0])
    return NameCandidate(name, float(row["entities"]) / graph.num_entities, float(row["distinct"]), shorten(example, 60), chosen)


# What only an import can notice


def _one_graph_twice(raw: RawDataset) -> Iterator[Finding]:
    first, second, shared = _distinct_and_shared(raw.source, raw.target)
    smaller = min(first, second)
    if not smaller or shared < SHARED_TRIPLES * smaller:
        return
    if shared >= SAME_GRAPH * max(first, second):
        message = "Both graphs are the same: one file was given twice."
        yield Finding("one-graph-twice", "error", message, shared)
    else:
        message = f"{count(shared, 'triple is', 'triples are')} in both graphs, {100 * shared / smaller:.0f}% of the smaller one."
        yield Finding("shared-triples", "warning", message, shared)


def _distinct_and_shared(source: RawGraph, target: RawGraph) -> tuple[int, int, int]:
    """How many different triples each of two graphs has, and how many both have."""
    entities = distinct_words(source.identifiers, target.identifiers)
    relations = union(Texts.of(graph.relations) for graph in (source, target))
    sizes = len(entities), len(relations), len(entities)
    found = []
    for graph in (source, target):
        columns = numbers(graph.heads, entities), numbers(graph.relations, relations), numbers(graph.tails, entities)
        rows = sorted_rows(columns, sizes)
        fresh = fresh_rows(rows)
        found.append([column[fresh] for column in rows])
    both = sorted_rows([np.concatenate(pair) for pair in zip(*found, strict=True)], sizes)
    return len(found[0][0]), len(found[1][0]), int(np.count_nonzero(~fresh_rows(both)))


def _spread_relations(raw: RawDataset) -> Iterator[Finding]:
    """Nearly as many relations as triples: another column holds the relations."""
    for side, graph in zip(SIDES, (raw.source, raw.target), strict=True):
        relations, triples = len(Texts.of(graph.relations).words), len(graph.heads)
        if triples >= ENOUGH_TRIPLES and relations > SPREAD_RELATIONS * triples:
            message = f"The {side} graph has {relations:,} relations in {triples:,} triples; real graphs have far fewer."
            yield Finding("columns-mixed-up", "warning", message, relations, _examples(graph))


def _header_as_triple(files: Sequence[UnderstoodFile], raw: RawDataset) -> Iterator[Finding]:
    """A table's first row whose words no other row has: in a graph an edge on its own, in a file much rather a header in unknown words."""
    for role, graph in zip(("graph 1", "graph 2"), (raw.source, raw.target), strict=True):
        headless = any(file.role == role and file.table is not None and not file.table.header for file in files)
        if not headless or len(graph.heads) < ENOUGH_TRIPLES:
            continue
        first = graph.heads[0], graph.relations[0], graph.tails[0]
        if graph.relations.count(first[1]) == 1 and all(graph.heads.count(end) + graph.tails.count(end) == 1 for end in (first[0], first[2])):
            words = shorten(", ".join(first), 120)
            message = f"The first row of the {ROLE_WORDS[role]} looks like a header: no other row has any of its words ({words})."
            yield Finding("header-as-triple", "warning", message, 1, (words,))


def _examples(graph: RawGraph) -> tuple[str, ...]:
    return tuple(union([Texts.of(graph.relations)]).head(3))


def _no_seeds(task: AlignmentTask, suggestions: SeedSuggestions) -> Finding:
    """An error only where nothing that the graphs share could be started from either."""
    shared, pairs = values_to_start_from(task)
    known = "known links" if not any(map(len, task.all_links())) else "seed links"
    message = f"There are no {known}" + (" to learn from." if pairs == 0 else ".")
    if pairs != 0:
        message += f" Training can start from {count(shared, 'name or value', 'names and values')} that both graphs have."
    elif shared:
        message += f" The {count(shared, 'name or value', 'names and values')} of both graphs belong to too many entities to suggest a pair."
    if suggestions.pairs:
        exact, near = (suggestions.count(likeness) for likeness in ("exact", "near"))
        message += f" Names suggest some: {count(exact, 'pair has', 'pairs have')} the same name, {near:,} nearly the same."
    elif pairs == 0:
        message += " Names suggest none."
    return Finding(_no_seeds_code(suggestions), "error" if pairs == 0 else "warning", message)


NO_SEEDS: Final = ("no-seeds", "no-seeds-but-near", "no-start")
"""Codes of the finding that there are no links, by where links can come from: names that are equal, only nearly equal ones, neither."""


def _no_seeds_code(suggestions: SeedSuggestions) -> str:
    if suggestions.count("exact"):
        return "no-seeds"
    return "no-seeds-but-near" if suggestions.pairs else "no-start"
