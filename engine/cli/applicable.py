"""Options that would change nothing: a sentence says so, instead of a result that looks as if they had been followed."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from engine.config import SECTIONS, VARIANTS, unused_sections
from engine.data.readers import READERS
from engine.data.readers.entity_tables import ENTITY_ROLES
from engine.data.tabular import ATTRIBUTE_ROLES, LINK_TABLE_ROLES, TRIPLE_ROLES, Layout
from engine.errors import ConfigError
from engine.exporting import Format, formats_by_ending
from engine.importing import Corrections, Material, SourceFile
from engine.importing.detect import GRAPH_FORMS, RDF_FORMS, Sniffed, sniff
from engine.importing.preview import Understood
from engine.importing.source import assign
from engine.training.device import EXECUTION_OPTIONS
from engine.util.text import shorten

TABLES: Final = ("table", "parquet", "neo4j")
DATABASES: Final = ("sqlite", "duckdb")
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "graph": (*(role.name for role in TRIPLE_ROLES), *(role.name for role in ENTITY_ROLES)),
    "attributes": (*(role.name for role in ATTRIBUTE_ROLES), "name"),
    "links": tuple(role.name for role in LINK_TABLE_ROLES),
}
"""Columns that ``--columns`` may set, by the first word of a file's role."""
FOLDED: Final = ("merged", "merged-parquet")


def refuse(options: Sequence[str], reason: str) -> None:
    """
    Raises:
        ConfigError: there are such options.
    """
    if options:
        raise ConfigError(f"{_have(options)} no effect here: {reason}.")


def _have(options: Sequence[str]) -> str:
    """'--a has', '--a and --b have'."""
    *first, last = dict.fromkeys(options)
    return f"{', '.join(first)} and {last} have" if first else f"{last} has"


# import


def check_import(corrections: Corrections, material: Material) -> None:
    """Before anything is read: each option is compared with the kind of file that it is about.

    Raises:
        ConfigError: an option that changes nothing.
        DataImportError: the files' roles are open.
    """
    if (whole := material.whole_folder) is not None and not corrections.roles:
        refuse(list(_of_single_files(corrections)), f"this folder is read as a whole, in the format {whole}")
        return
    roles = assign(material, corrections.roles)
    kinds = {role: sniff(file.path, file.name, role) for role, file in roles.items() if READERS.for_file(file.name) is None}
    for role, layout in corrections.tables.items():
        _check_columns(role, layout)
        if role not in roles:
            refuse([f"--columns {_short(role)}"], f"no file has the role '{role}'")
        if role not in kinds or kinds[role].form not in TABLES:
            refuse([f"--columns {_short(role)}"], f"{_what(roles[role], kinds.get(role))}, and columns are those of a table")
    for number in "12":
        _check_graph(number, corrections, roles, kinds)
    if corrections.ontology != "auto" and not any(role in kinds and kinds[role].form in GRAPH_FORMS for role in ("graph 1", "graph 2")):
        refuse(["--ontology"], "neither graph is an ontology or RDF")
    if not any(role.startswith("links") for role in roles):
        given = {"--swap-links": corrections.swap_links, "--min-confidence": corrections.least_confidence is not None}
        given["--repair-links"] = corrections.repair_links and corrections.links_from is None
        refuse([name for name, is_given in given.items() if is_given], "there are no known links; provide them with --links FILE")


def _check_columns(role: str, layout: Layout) -> None:
    known = COLUMNS[role.partition(" ")[0]]
    for name in layout.columns:
        if name not in known:
            raise ConfigError(f"--columns {_short(role)} cannot have '{shorten(name, 40)}'; choose among {', '.join(known)}.")


def _of_single_files(corrections: Corrections) -> Iterator[str]:
    yield from (f"--columns {_short(role)}" for role in corrections.tables)
    yield from (f"--query{role[-1]}" for role in corrections.queries)
    yield from (f"--named-graphs{role[-1]}" for role in corrections.named_graphs)
    if corrections.ontology != "auto":
        yield "--ontology"


def _check_graph(number: str, corrections: Corrections, roles: Mapping[str, SourceFile], kinds: Mapping[str, Sniffed]) -> None:
    role = f"graph {number}"
    if role not in roles:  # which the reader reports
        return
    kind = kinds.get(role)
    if role in corrections.queries and (kind is None or kind.form not in DATABASES):
        refuse([f"--query{number}"], f"{_what(roles[role], kind)}, and a query is for a SQLite or DuckDB database")
    if role in corrections.named_graphs and (kind is None or kind.form not in RDF_FORMS):
        refuse([f"--named-graphs{number}"], f"{_what(roles[role], kind)}, and named graphs are those of N-Quads, TriG and JSON-LD")


def _what(file: SourceFile, kind: Sniffed | None) -> str:
    return f"{shorten(file.name, 60)} is {'a graph of a benchmark' if kind is None else f'read as {kind.words}'}"


def _short(role: str) -> str:
    return role.replace(" ", "")


def check_understood(corrections: Corrections, understood: Understood) -> None:
    """After reading: options that found nothing to change.

    Raises:
        ConfigError: there is one.
    """
    raw = understood.raw
    if corrections.ontology not in ("auto", "plain") and not any(one.code == "ontology-read" for one in understood.preview.findings):
        refuse(["--ontology"], "neither graph is an ontology")
    counts = [one for graph in (raw.source, raw.target) for one in graph.files]
    if corrections.names_from_triples and not any(reason == "taken as names" for one in counts for reason in dict(one.left_out)):
        refuse(["--names-from-triples"], "no triples of either graph look like names")
    links = raw.links.values()
    rated = any(len(one.confidences) or one.left_out or len(one.apart) for one in links)
    if corrections.least_confidence is not None and raw.links and not rated:
        refuse(["--min-confidence"], "none of the links has a confidence")


# export


def check_export(parsed: Namespace, fmt: Format) -> None:
    """
    Raises:
        ConfigError: an option that changes nothing, or a file whose ending is that of another format.
    """
    if parsed.output is not None:
        check_ending(parsed.output, fmt)
    if fmt.name not in FOLDED:
        refuse(["--canonical"] if parsed.canonical is not None else [], f"format {fmt.name} folds no entities; choose merged or merged-parquet")
        if parsed.least_correspondence is not None and parsed.conflicts is None:
            refuse(["--least-correspondence"], f"format {fmt.name} folds no relations; choose merged or merged-parquet, or add --conflicts FILE")
    if parsed.reviewed:
        given = {"--decoder": parsed.decoder is not None, "--min-probability": parsed.min_probability is not None, "--repair": parsed.repair}
        refuse([name for name, is_given in given.items() if is_given], "--reviewed exports exactly the pairs that reviewers accepted")


def check_ending(path: Path, fmt: Format) -> None:
    """
    Raises:
        ConfigError: the file's ending is that of another format.
    """
    fitting = formats_by_ending(path)
    if fitting and fmt not in fitting:
        named, chosen = " or ".join(one.name for one in fitting), " or ".join(f"--format {one.name}" for one in fitting)
        raise ConfigError(f"'{path.name}' has the ending of format {named}, not of {fmt.name}; choose {chosen}, or a name that ends in {fmt.suffix}.")


# train, inspect, match


def check_train(parsed: Namespace) -> None:
    """
    Raises:
        ConfigError: an option that changes nothing.
    """
    keys = set_keys(parsed.set)
    for option, key, value in (("--epochs", "training.epochs", parsed.epochs), ("--train-ratio", "data.train_ratio", parsed.train_ratio)):
        refuse([f"--set {key}"] if value is not None and key in keys else [], f"{option} sets it")
    refuse(
        ["--processes"] if parsed.processes is not None and not parsed.estimate else [], "it is for --estimate; torchrun starts processes that train"
    )
    if parsed.variant != "literal":
        refuse(["--names"] if parsed.names else [], f"the variant {parsed.variant} compares no names; choose --variant literal")


def unused_settings(parsed: Namespace, method: str) -> str:
    """A sentence on settings that the variant or baseline does not use, which scripts may give to all alike; empty without any."""
    without_effect = {*unused_sections(method), *(("values",) if method == "basic" else ())}
    execution = [f"training.{name}" for name in EXECUTION_OPTIONS]
    unused = [key for key in set_keys(parsed.set) if key.partition(".")[0] in without_effect and not (method != "basic" and key in execution)]
    return f"note: {_have(unused)} no effect on the {'variant' if method in VARIANTS else 'baseline'} {method}." if unused else ""


def set_keys(assignments: Sequence[str]) -> list[str]:
    """The settings that ``--set`` names."""
    return [one.partition("=")[0].strip() for one in assignments]


def check_reading(parsed: Namespace, command: str) -> None:
    """Of a command that reads data and trains nothing.

    Raises:
        ConfigError: a setting of training.
    """
    settings = [f"--set {key}" for key in set_keys(parsed.set) if key.partition(".")[0] in SECTIONS and key[:5] != "data."]
    refuse(settings, f"{command} reads the data and trains nothing; only settings of the section data apply")


def check_match(parsed: Namespace) -> None:
    """
    Raises:
        ConfigError: a pool for new entities, which are in none.
    """
    refuse(["--pool"] if parsed.pool != "all" else [], "new entities are matched with all entities")
