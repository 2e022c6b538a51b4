"""From what a reader found to an :class:`AlignmentTask`: the same steps for every format; and how much memory that takes."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.compute as pc

from engine.config import DataConfig
from engine.data.apart import apart_sentence
from engine.data.endings import ExportForm
from engine.data.files import opened
from engine.data.knowledge_graph import (
    SIDES,
    AlignmentTask,
    FileCount,
    Finding,
    KnowledgeGraph,
    Severity,
    Side,
    empty_attributes,
    fingerprint,
)
from engine.data.labels import (
    find_name_attributes,
    graph_names,
    label_entities,
    language_list,
    name_languages,
    preferred_language,
    rank_languages,
    several_names,
)
from engine.data.links import respelling_findings, with_known_identifiers
from engine.data.parquet import open_parquet
from engine.data.readers.base import Part, RawDataset, RawGraph, RawLinks, listed_counts
from engine.data.readers.exports import export_form
from engine.data.readers.rdf import rdf_suffix
from engine.data.readers.syntaxes import BYTES_OF_ONTOLOGIES, ontology_syntax
from engine.data.rows import FileTally, merged_tallies
from engine.data.splits import Split, divide
from engine.data.tabular import table_suffix
from engine.data.texts import Texts, are_among, distinct_words, numbers, strings, union
from engine.errors import DataError
from engine.util.arrays import IntArray, fresh_rows, links_of_keys, sorted_rows
from engine.util.memory import MIB
from engine.util.text import count, shorten

# How much memory a data set will need, before it is read.
#
# Counted are rows: of Parquet from the file's own count, of text from its size and the lines at its beginning, packed or not. What a row takes was
# measured on synthetic graphs of a million entities (docs/benchmarks.md); it is an estimate to refuse by what cannot fit, not a promise. RDF is read
# whole: its text is held twice while it is parsed, and each statement is three texts.

SAMPLE: Final = 2**18  # bytes
BYTES_A_ROW: Final = 100.0
BYTES_A_CHARACTER: Final = 0.25
"""Of a row's text: identifiers repeat, and each is held once."""
BYTES_A_STATEMENT: Final = 560.0
"""Of RDF: three Python strings with their places in the columns; measured between 450 and 565."""
COPIES_OF_RDF: Final = 2.0
BYTES_OF_EXPORTS: Final[Mapping[ExportForm, float]] = {"graphml": 14.0, "gexf": 14.0, "jsonl": 10.0, "sqlite": 10.0, "duckdb": 60.0}
"""A byte of a file; GraphML and GEXF are held whole as text, XML and graph. Measured with 125,000 triples and attributes (13, 12, 6 to 9)."""
STATEMENT_ENDS: Final = re.compile(rb"[.;,]\s|/>|</|\":")
"""What a statement ends with in Turtle, in XML and in JSON-LD, where several may be on one line."""


def expected_memory(files: Iterable[Path]) -> float:
    """MiB that reading these files and putting graphs together from them takes at its peak, above what the program takes anyway.

    Raises:
        DataError: a file cannot be read.
    """
    return sum(map(_bytes_needed, files)) / MIB


def _bytes_needed(path: Path) -> float:
    if table_suffix(path) == ".parquet":
        return BYTES_A_ROW * open_parquet(path).num_rows
    with opened(path) as file:
        sample = file.read(SAMPLE)
        packed = file.fileobj.tell() if isinstance(file, gzip.GzipFile) else len(sample)
    size = os.path.getsize(path)
    share = min(packed / size, 1.0) if size and len(sample) == SAMPLE else 1.0
    lines = sample.count(b"\n")
    if syntax := ontology_syntax(path, sample.decode("utf-8", "replace")):
        return BYTES_OF_ONTOLOGIES[syntax] * len(sample) / share
    if form := export_form(path):
        return BYTES_OF_EXPORTS[form] * len(sample) / share
    if rdf_suffix(path):
        return (BYTES_A_STATEMENT * max(lines, len(STATEMENT_ENDS.findall(sample))) + COPIES_OF_RDF * len(sample)) / share
    return (BYTES_A_ROW * lines + BYTES_A_CHARACTER * len(sample)) / share


# From what a reader found to an alignment task: the work that is the same for all formats.
#
# Entities, relations, triples and links are put into a canonical order (identifiers by code point), so the same data gives the same task, the same
# splits and the same fingerprint whatever the format and the order of lines.

MAX_NAME = 80
MOSTLY_KNOWN: Final = 0.5
REASONS: Final[Mapping[str, str]] = {"triples": "repeated", "attributes": "repeated, or without a value", "links": "repeated"}
"""Why rows that were read are not used."""
TONGUES = 8  # languages of a graph that a message lists


def build_task(folder: Path, format: str, raw: RawDataset, config: DataConfig, seed: int, findings: Sequence[Finding] = ()) -> AlignmentTask:
    """Make the task.

    Args:
        folder: where the data lies; its name becomes the task's.
        format: name of the reader.
        raw: what the reader found.
        config: labels and split.
        seed: draws the split.
        findings: what was noticed before.

    Raises:
        DataError: an empty graph, links that do not fit the graphs, no training links, a name attribute that is not there.
    """
    _check_triples(raw)
    header = tuple(header_links(raw))
    files = [*raw.source.files, *raw.target.files, *(one for links in raw.links.values() for one in links.files)]
    raw = with_known_identifiers(raw)
    _check_ends(raw)
    about_links = (*_links_read(raw.links), *_kept_apart(raw), *respelling_findings(raw))
    sides = []
    for side, which in enumerate(SIDES):
        sides.append(_build_graph(getattr(raw, which), [_ends(links, side) for links in raw.links.values()]))
        raw = _without_graph(raw, which)  # nothing looks at it from here on, and both are half of the memory
    names = graph_names(*(side.graph.entities for side in sides))
    tongues = [name_languages(side.graph.attributes, config.name_attribute) for side in sides]
    ranked = [rank_languages(tongues[0], tongues[1], config.languages[side]) for side in SIDES]
    source, target = (_named(side.graph, name, config.name_attribute, languages) for side, name, languages in zip(sides, names, ranked, strict=True))
    _check_name_attribute(source, target, config.name_attribute, folder)
    _check_name_languages(tongues, config, folder)
    width = target.num_entities
    keys, duplicates, repeated = _encode_links(raw.links, source, target)
    noticed = [*header, *(finding for tally in merged_tallies(files) for finding in tally.findings)]
    own = not is_benchmark(format, raw)
    split = divide(keys, raw.given, config, seed, folder, own=own, width=width)
    known, all_unsure = (links_of_keys(part, width) for part in (np.sort(np.concatenate([split.train, split.valid, split.test])), split.unsure))
    split, untested = _with_measurable_tests(split, source, target)
    train, valid, test, unsure = (links_of_keys(part, width) for part in (split.train, split.valid, split.test, split.unsure))
    return AlignmentTask(
        name=safe_name(folder),
        format=format,
        source=source,
        target=target,
        train_links=train,
        valid_links=valid,
        test_links=test,
        unsure_links=unsure,
        split=split.description,
        fingerprint=fingerprint(source, target, known, all_unsure),
        findings=(
            *findings,
            *raw.findings,
            *noticed,
            *about_links,
            *sides[0].findings,
            *sides[1].findings,
            *_languages(tongues, ranked),
            *duplicates,
            *split.findings,
        ),
        untested=untested,
        files=tuple(one.counted() for side in sides for one in side.files) + _count_links(raw.links, merged_tallies(files), repeated),
        own_links=own,
        apart=raw.apart.table(),
        several_names=several_names(source.attributes, config.name_attribute) | several_names(target.attributes, config.name_attribute),
    )


def _check_triples(raw: RawDataset) -> None:
    for graph in (raw.source, raw.target):
        if not len(graph.heads):
            raise DataError("this graph has no relation triples; Dual-AMN learns from them, so each graph needs some.", path=graph.path)


def _without_graph(raw: RawDataset, side: Side) -> RawDataset:
    nothing = RawGraph(getattr(raw, side).path, (), (), ())
    return replace(raw, source=nothing) if side == "source" else replace(raw, target=nothing)


def is_benchmark(format: str, raw: RawDataset) -> bool:
    """Whether the links have a published protocol: DBP15K's and SRPRS's layout, whose papers draw 30 % where no file divides the links, and OpenEA's
    with its folds. All other data are a user's own."""
    return format == "dbp15k" or (format == "openea" and "train" in raw.links)


def safe_name(folder: Path) -> str:
    """The folder's name in letters, digits, ``_``, ``-`` and ``.``; where that changes it, a few digits of a hash keep different names apart."""
    name = folder.resolve().name
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".-")[:MAX_NAME] or "data"
    return safe if safe == name else f"{safe}-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:6]}"


@dataclass(frozen=True)
class _BuiltGraph:
    graph: KnowledgeGraph
    findings: tuple[Finding, ...]
    files: tuple[FileTally, ...]


def _ends(links: RawLinks, side: int) -> Texts:
    return Texts.of(links.sources if side == 0 else links.targets)


def _check_ends(raw: RawDataset) -> None:
    """Links must mostly name entities of the right graph; otherwise columns are swapped, or the links belong to other data."""
    graphs = raw.source, raw.target
    certain = [links for part, links in raw.links.items() if part != "unsure" and len(links.sources)]
    if not certain:
        return
    straight = [_count(certain, side, graphs[side]) for side in (0, 1)]
    some_unknown = max(straight) < sum(len(links.sources) for links in certain)
    if some_unknown and all(_count(certain, side, graphs[1 - side]) > straight[side] for side in (0, 1)):
        raise DataError("the columns of these links are swapped: the first must name entities of the source graph.", path=certain[0].path)
    for side, name in enumerate(("source", "target")):
        if not straight[side]:
            example = shorten(_ends(certain[0], side)[0])
            raise DataError(
                f"no {name} entity of these links (the first is '{example}') is in the {name} graph; check the identifiers.", path=certain[0].path
            )


def header_links(raw: RawDataset) -> Iterator[Finding]:
    """A first row whose words no graph has, above links that the graphs have, is a header in unknown words."""
    for links in raw.links.values():
        if not any(one.headless for one in links.files) or len(links.sources) < 2:
            continue
        known = [graph.knows(ends.words)[ends.codes] for ends in map(Texts.of, (links.sources, links.targets)) for graph in (raw.source, raw.target)]
        found = np.logical_or.reduce(known)
        if not found[0] and found[1:].mean() > MOSTLY_KNOWN:
            words = shorten(f"{links.sources[0]}, {links.targets[0]}", 100)
            message = (
                f"{links.path.name}: the first row ({words}) looks like a header and is taken for a link: neither graph has an entity of these names."
            )
            advice = "Call the columns source and target, or remove the first row."
            yield Finding("header-as-link", "warning", message, 1, (words,), advice)


def _count(tables: Sequence[RawLinks], side: int, graph: RawGraph) -> int:
    """How many ends of the links are entities of the graph."""
    return sum(int(ends.having(graph.knows(ends.words)).sum()) for ends in (_ends(links, side) for links in tables))


def _build_graph(raw: RawGraph, link_ends: Sequence[Texts]) -> _BuiltGraph:
    """The graph, still without names for itself and its entities."""
    unknown = distinct_words(*(ends.words.filter(~raw.knows(ends.words)) for ends in link_ends))
    entities = distinct_words(raw.identifiers, unknown) if len(unknown) else raw.identifiers
    relations = union(map(Texts.of, (raw.relations, raw.known_relations)))
    coded = numbers(raw.heads, entities), numbers(raw.relations, relations), numbers(raw.tails, entities)
    columns = sorted_rows(coded, (len(entities), len(relations), len(entities)))
    fresh = fresh_rows(columns)
    triples = np.stack([column[fresh] for column in columns], axis=1)  # (T, 3)
    graph = KnowledgeGraph("", tuple(entities.to_list()), (), tuple(relations.to_list()), triples, _attribute_table(raw, entities))
    findings = (
        *_duplicate_triples(raw.path, [column[~fresh] for column in columns], graph),
        *_unknown_ends(raw.path, unknown),
        *_attribute_only(raw),
    )
    left_out = {"triples": int(np.count_nonzero(~fresh)), "attributes": len(raw.attributes[0]) - len(graph.attributes)}
    sizes = {"triples": len(raw.heads), "attributes": len(raw.attributes[0])}
    alone = {what for what, size in sizes.items() if [one.counted().used for one in raw.files if one.what == what] == [size]}
    files = tuple(one.without(REASONS[one.what], left_out[one.what]) if one.what in alone else one for one in raw.files)
    return _BuiltGraph(graph, findings, files)


def _named(graph: KnowledgeGraph, name: str, wanted: str | None, languages: Sequence[str]) -> KnowledgeGraph:
    labels = label_entities(graph.entities, graph.attributes, wanted, languages)
    return KnowledgeGraph(name, graph.entities, labels, graph.relations, graph.triples, graph.attributes)


def _check_name_attribute(source: KnowledgeGraph, target: KnowledgeGraph, wanted: str | None, folder: Path) -> None:
    if wanted is None or any(find_name_attributes(graph.attributes, wanted) for graph in (source, target)):
        return
    present = sorted({str(name) for graph in (source, target) for name in graph.attributes["attribute"].unique()})
    known = f"known are {shorten(', '.join(present), 200)}" if present else "the data has no attributes"
    raise DataError(f"neither graph has an attribute '{shorten(wanted)}' (data.name_attribute); {known}.", path=folder)


def _check_name_languages(tongues: Sequence[Mapping[str, int]], config: DataConfig, folder: Path) -> None:
    """
    Raises:
        DataError: a language is preferred that no name is in.
    """
    own = (config.name_language_source, config.name_language_target)
    _check_name_language(tongues, config.name_language, "data.name_language", "neither graph has", folder)
    for side, counts, wanted in zip(SIDES, tongues, own, strict=True):
        _check_name_language([counts], wanted, f"data.name_language_{side}", f"the {side} graph does not have", folder)


def _check_name_language(tongues: Sequence[Mapping[str, int]], wanted: str | None, key: str, who: str, folder: Path) -> None:
    present = sorted({language for counts in tongues for language in counts if language})
    for word in language_list(wanted):
        if not any(language == word or language.startswith(f"{word}-") for language in present):
            known = f"there are {shorten(', '.join(present), 200)}" if present else "no name says its language"
            raise DataError(f"{who} names in the language '{shorten(word)}' ({key}); {known}.", path=folder)


def _languages(tongues: Sequence[Mapping[str, int]], ranked: Sequence[Sequence[str]]) -> Iterator[Finding]:
    """Which languages there are to choose from, where there are several."""
    if len({*tongues[0], *tongues[1]} - {""}) < 2:
        return

    def counts(found: Mapping[str, int]) -> str:
        listed = sorted(found, key=lambda language: (-found[language], language))
        return ", ".join(f"{language or 'without a language'} {found[language]:,}" for language in listed[:TONGUES]) or "none"

    first = [preferred_language(found, languages) or "names without a language" for found, languages in zip(tongues, ranked, strict=True)]
    message = (
        f"There are names in several languages: source {counts(tongues[0])}; target {counts(tongues[1])}. "
        f"Preferred: {first[0]} (source), {first[1]} (target)."
    )
    advice = "Choose others with data.name_language, for example en,de, or for one graph with data.name_language_source or data.name_language_target."
    yield Finding("name-languages", "info", message, len({*tongues[0], *tongues[1]} - {""}), advice=advice)


def _attribute_table(raw: RawGraph, ordered: pl.Series) -> pd.DataFrame:
    """Distinct attribute triples with a value, by entity; an entity's stay in the file's order."""
    entities, names, values = map(Texts.of, raw.attributes)
    if not len(entities):
        return empty_attributes()
    blank = pc.equal(pc.utf8_trim_whitespace(values.words.to_arrow(compat_level=pl.CompatLevel.oldest())), "").to_numpy(zero_copy_only=False)
    codes = pl.DataFrame({"entity": numbers(entities, ordered), "attribute": names.codes, "value": values.codes})
    kept = codes.filter(~values.having(blank)).unique(keep="first", maintain_order=True).sort("entity", maintain_order=True)
    names, values = Texts(kept["attribute"].to_numpy(), names.words), Texts(kept["value"].to_numpy(), values.words)
    return pd.DataFrame(
        {"entity": kept["entity"].to_numpy(), "attribute": pd.Series(names.array(), dtype="str"), "value": pd.Series(values.array(), dtype="str")}
    )


def _count_links(parts: Mapping[Part, RawLinks], files: Sequence[FileTally], repeated: Mapping[Path, int]) -> tuple[FileCount, ...]:
    """What became of the lines of files of links."""
    read = Counter[Path]()
    for links in parts.values():
        read[links.path] += len(links.sources)
    found = [one for one in files if one.what == "links"]
    return tuple(
        (one.without(REASONS["links"], repeated.get(one.path, 0)) if one.counted().used == read[one.path] else one).counted() for one in found
    )


def _encode_links(
    parts: Mapping[Part, RawLinks], source: KnowledgeGraph, target: KnowledgeGraph
) -> tuple[dict[Part, IntArray], tuple[Finding, ...], Mapping[Path, int]]:
    """Sorted, distinct keys by part; what was dropped, with how many of each file."""
    by_file = Counter[Path]()
    keys: dict[Part, IntArray] = {}
    findings = []
    words = strings(source.entities), strings(target.entities)
    for part, links in parts.items():
        sources, targets = numbers(links.sources, words[0]), numbers(links.targets, words[1])
        keys[part], counts = np.unique(sources * target.num_entities + targets, return_counts=True)
        if dropped := len(sources) - len(keys[part]):
            repeated = links_of_keys(keys[part][counts > 1][:3], target.num_entities)
            examples = tuple(f"{source.entities[left]} = {target.entities[right]}" for left, right in repeated)
            message = f"{links.path.name}: {dropped:,} repeated links were dropped."
            findings.append(Finding("duplicate-links", "warning", message, dropped, examples, "Remove the repetitions."))
            by_file[links.path] += dropped
    return keys, tuple(findings), by_file


START_WITHOUT: Final = "; semi-supervised and literal training can start without {} links"
EMPTY_PARTS: Final[Mapping[Part, tuple[Severity, str, str]]] = {
    "all": ("warning", "none are known", START_WITHOUT.format("known")),
    "train": ("warning", "there are no seed links", START_WITHOUT.format("seed")),
    "valid": ("info", "there are no validation links", ""),
    "test": ("info", "there are no test links", ""),
}
"""Of a file of links that is empty: how grave that is, what follows, and what to do about it besides."""


def _links_read(parts: Mapping[Part, RawLinks]) -> Iterator[Finding]:
    """What of the links files was not used, and what was turned."""
    for part, links in parts.items():
        used, left_out = len(links.sources), sum(links.left_out.values())
        if part in EMPTY_PARTS and not used and not left_out and not links.apart:
            severity, without, more = EMPTY_PARTS[part]
            message = f"{links.path.name} has no links, so {without}."
            yield Finding("no-links-in-file", severity, message, advice=f"If there should be some, check the file{more}.")
        if left_out:
            rows = count(used + left_out + len(links.apart), "row")
            message = f"{links.path.name}: {used:,} of {rows} are used as links; left out are {listed_counts(links.left_out)}."
            advice = "Where one of these is certain after all, write it as owl:sameAs or skos:exactMatch."
            yield Finding("links-left-out", "info", message, left_out, advice=advice)
        if links.turned:
            message = f"{links.path.name}: {count(links.turned, 'link names', 'links name')} the target entity first; the ends were exchanged."
            yield Finding("links-turned", "info", message, links.turned, advice="Nothing to do: the format does not say which graph comes first.")


def _kept_apart(raw: RawDataset) -> Iterator[Finding]:
    apart = raw.apart
    if not apart:
        return
    strange = int((~(raw.source.knows(pl.Series(apart.sources)) & raw.target.knows(pl.Series(apart.targets)))).sum())
    unknown = f" {count(strange, 'of them names', 'of them name')} an entity that the graphs do not have." if strange else ""
    rows = zip(apart.sources[:3], apart.relations[:3], apart.targets[:3], strict=True)
    message, advice = f"{apart_sentence(apart)}{unknown}", "export --format sssom writes them again."
    yield Finding("mappings-kept-apart", "info", message, len(apart), tuple(map(" ".join, rows)), advice)


def _with_measurable_tests(split: Split, source: KnowledgeGraph, target: KnowledgeGraph) -> tuple[Split, int]:
    """The split without validation and test links of which an end is in no triple, and how many these are.

    All entities without triples look the same to a model of the graphs' structure, so that such a link would be a hit, or a miss, by their number
    alone. They count neither as right nor as wrong, as probable links do. The description says so: other figures are of another run.
    """
    parts = [links_of_keys(keys, target.num_entities) for keys in (split.valid, split.test)]
    idle = [(source.degrees[links[:, 0]] == 0) | (target.degrees[links[:, 1]] == 0) for links in parts]
    untested = sum(int(one.sum()) for one in idle)
    if not untested:
        return split, 0
    aside = np.concatenate([keys[one] for keys, one in zip((split.valid, split.test), idle, strict=True)])
    examples = np.concatenate([links[one] for links, one in zip(parts, idle, strict=True)])[:3]
    shown = tuple(f"{source.entities[left]} = {target.entities[right]}" for left, right in examples)
    subject = count(untested, "validation or test link has", "validation or test links have")
    message = f"{subject} an end in no triple, so that nothing can be measured by {'it' if untested == 1 else 'them'}: left out of all figures."
    advice = "Check how these identifiers are written in links and triples."
    finding = Finding("links-without-triples", "warning", message, untested, shown, advice)
    return replace(
        split,
        valid=split.valid[~idle[0]],
        test=split.test[~idle[1]],
        unsure=np.union1d(split.unsure, aside),
        description=f"{split.description}; {count(untested, 'link')} without triples left out",
        findings=(*split.findings, finding),
    ), untested


def _duplicate_triples(path: Path, repeated: Sequence[IntArray], graph: KnowledgeGraph) -> tuple[Finding, ...]:
    dropped = len(repeated[0])
    if not dropped:
        return ()
    examples = tuple(
        f"{graph.entities[head]} | {graph.relations[relation]} | {graph.entities[tail]}"
        for head, relation, tail in zip(*(column[:3] for column in repeated), strict=True)
    )
    message = f"{path.name}: {dropped:,} repeated triples were dropped."
    return (Finding("duplicate-triples", "warning", message, dropped, examples, "Remove the repetitions."),)


def _unknown_ends(path: Path, entities: pl.Series) -> tuple[Finding, ...]:
    if not len(entities):
        return ()
    subject, they = (
        count(len(entities), "linked entity is", "linked entities are"),
        "it was added as an entity" if len(entities) == 1 else "they were added as entities",
    )
    message = f"{subject} not in {path.name}; {they} without triples."
    return (Finding("unknown-link-entities", "warning", message, len(entities), tuple(entities[:3]), "Check their spelling."),)


def _attribute_only(raw: RawGraph) -> tuple[Finding, ...]:
    if not len(raw.attributes[0]):
        return ()
    described = Texts.of(raw.attributes[0]).words
    entities = described.filter(~are_among(described, union(map(Texts.of, (raw.heads, raw.tails, raw.entities))))).sort()
    if not len(entities):
        return ()
    subject = count(len(entities), "entity with attributes is", "entities with attributes are")
    message = f"{subject} in no triple of {raw.path.name}; structure alone cannot align that."
    return (Finding("attribute-only-entities", "info", message, len(entities), tuple(entities[:3])),)
