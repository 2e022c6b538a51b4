"""``python -m engine import``: two graphs and links from files, a folder or an archive become a data set."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from engine.cli.applicable import check_import, check_understood
from engine.cli.options import Commands, Once, add_command, add_json, by_side, print_json
from engine.data.apart import confidence_of
from engine.data.dialects import TAB
from engine.data.labels import language_list
from engine.data.library import StoredDataSet
from engine.data.tabular import Layout
from engine.errors import ConfigError, DataImportError, printable, printable_lines
from engine.importing import (
    ALIGNED,
    ROLES,
    Corrections,
    Material,
    Role,
    SourceFile,
    Upload,
    check_dataset_name,
    check_given,
    check_storable,
    discard,
    folder_material,
    preview_to_dict,
    render_preview,
    stage,
    suggested_name,
    understand,
    with_file,
    write,
)
from engine.importing.archives import is_archive, refuse_half_archive

DELIMITERS: Final = {"tab": TAB, "comma": ",", "semicolon": ";", "bar": "|"}
YES_NO: Final = {"yes": True, "no": False}


def add_import(commands: Commands) -> None:
    parser = add_command(
        commands,
        "import",
        import_data,
        help="create a data set from your own graphs",
        description="Read two graphs and known links, show what was understood, and store them as a data set that can be trained on; "
        "details are in docs/importing.md.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a folder or archive, or the source graph, the target graph and further files, recognised by their names",
    )
    parser.add_argument("--name", help="of the data set; default: the folder's, or 'my-graphs'")
    parser.add_argument("--links", type=Path, action=Once, metavar="FILE", help="known links")
    parser.add_argument("--attributes1", type=Path, metavar="FILE", help="names and attributes of the source graph")
    parser.add_argument("--attributes2", type=Path, metavar="FILE", help="names and attributes of the target graph")
    parser.add_argument(
        "--columns",
        action="append",
        default=[],
        metavar="FILE:COLUMN=NUMBER,...",
        help="which column is which, from 1: graph1:head=3,tail=1 or links:source=2,target=1,header=no,delimiter=tab,trim=yes; "
        "of a table with a row for each entity graph1:identifier=1,relations=3+5 (or relations=none); may be repeated",
    )
    _add_contents(parser)
    parser.add_argument(
        "--name-language",
        action="append",
        default=[],
        metavar="[SIDE=]LANGUAGES",
        help="languages of names to prefer, the first one most: en,de, or source=de and target=en one after the other; default: the language that "
        "most entities of both graphs have names in",
    )
    parser.add_argument(
        "--ontology",
        default="auto",
        choices=ALIGNED,
        help="what of an ontology is aligned; auto: its classes, its individuals where it has no classes; plain: RDF triple by triple",
    )
    parser.add_argument(
        "--min-confidence",
        type=share_argument,
        metavar="C",
        help="leave out links whose file gives a lower confidence, from 0 to 1; links without one stay",
    )
    parser.add_argument(
        "--links-from-xrefs",
        metavar="ATTRIBUTE",
        help="take values of this attribute for links where they name an entity of the other graph, by IRI or CURIE: oboInOwl:hasDbXref",
    )
    parser.add_argument("--swap-links", action="store_true", help="take the second column of the links for the source")
    parser.add_argument(
        "--repair-links",
        action="store_true",
        help="spell ends of links as the graphs do where they differ by Unicode normalisation or percent-encoding only",
    )
    parser.add_argument(
        "--seeds-from-names",
        nargs="?",
        const="exact",
        default="none",
        choices=("exact", "near"),
        help="take pairs of unique names that are the same in both graphs for seed links; near: nearly the same ones too (--dry-run shows them)",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what was understood and store nothing")
    add_json(parser)


def _add_contents(parser: argparse.ArgumentParser) -> None:
    """What of a file with several graphs in it is the graph, and what in it are names."""
    parser.add_argument("--name-attribute", metavar="NAME", help="the attribute that holds the entities' names")
    parser.add_argument("--names-from-triples", action="store_true", help="take triples such as 'Q90,label,Paris' for names and not for relations")
    for number, side in (("1", "source"), ("2", "target")):
        parser.add_argument(
            f"--query{number}",
            metavar="SELECT",
            help=f"of a SQLite or DuckDB database as {side} graph: a query for its triples (head, relation, tail) or entities (id, ...)",
        )
        parser.add_argument(
            f"--named-graphs{number}",
            action="append",
            metavar="IRI",
            help=f"of an RDF file of the {side} graph: read this named graph ('default': triples outside of any) and no other; may be repeated",
        )


def import_data(parsed: argparse.Namespace) -> int:
    corrections = Corrections(
        tables=dict(map(_layout, parsed.columns)),
        name_attribute=parsed.name_attribute,
        **language_corrections(parsed.name_language),
        swap_links=parsed.swap_links,
        repair_links=parsed.repair_links,
        names_from_triples=parsed.names_from_triples,
        ontology=parsed.ontology,
        queries={f"graph {number}": query for number, query in (("1", parsed.query1), ("2", parsed.query2)) if query is not None},
        named_graphs={f"graph {n}": tuple(names) for n, names in (("1", parsed.named_graphs1), ("2", parsed.named_graphs2)) if names},
        seeds=parsed.seeds_from_names,
        least_confidence=parsed.min_confidence,
        links_from=parsed.links_from_xrefs,
    )
    with ExitStack() as stack:
        material = _material(parsed, stack)
        name = parsed.name or suggested_name(material)
        if not parsed.dry_run:
            check_dataset_name(name)
        check_import(corrections, material)
        understood = understand(material, corrections).on_the_command_line
        check_understood(corrections, understood)
        if not parsed.json:
            print(printable_lines(render_preview(understood.preview)))
        stored = None if parsed.dry_run else write(understood, material, corrections, name)
    if parsed.json:
        found = {"stored": None if stored is None else stored.shown_path, **preview_to_dict(understood.preview)}
        print_json(found)
    elif stored is not None:
        _print_next(stored)
    check_storable(understood.preview)  # a trial ends as the import would
    return 0


def share_argument(text: str) -> float:
    """A number from 0 to 1, for the parser of arguments."""
    value = confidence_of(text)
    if math.isnan(value):
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1; got '{text}'")
    return value


def language_corrections(options: Sequence[str]) -> dict[str, Any]:
    """The corrections that ``--name-language`` gives.

    Raises:
        ConfigError: no language, or two answers for one graph.
    """
    given = by_side("--name-language", options, "de")
    if (unclear := next((value for value in given.values() if not language_list(value)), None)) is not None:
        raise ConfigError(f"--name-language expects languages such as en,de; got '{unclear}'.")
    return {f"name_language{'' if side is None else f'_{side}'}": value for side, value in given.items()}


def _print_next(stored: StoredDataSet) -> None:
    print(f"\nstored as {printable(stored.shown_path)}")
    print(printable(f"next: {stored.train_command}"))


def _material(parsed: argparse.Namespace, stack: ExitStack) -> Material:
    """
    Raises:
        DataImportError: a path that is not there, a folder among files, two files for the same role.
    """
    paths: Sequence[Path] = parsed.files
    for path in paths:
        if not path.exists():
            raise DataImportError(f"there is no file or folder '{path}'; give two graphs, a folder or an archive.")
    if len(paths) == 1:
        material = _whole(paths[0], stack)
    elif folder := next((path for path in paths if path.is_dir()), None):
        raise DataImportError(f"'{folder}' is a folder among files; give one folder alone, or files.")
    else:
        roles: tuple[Role | None, ...] = ("graph 1", "graph 2") if len(paths) == 2 else (None,) * len(paths)
        material = Material(tuple(SourceFile(path, path.name, role) for path, role in zip(paths, roles, strict=True)))
    given: tuple[tuple[Role, Path | None], ...] = (
        ("links", parsed.links),
        ("attributes 1", parsed.attributes1),
        ("attributes 2", parsed.attributes2),
    )
    for role, extra in given:
        if extra is not None:
            material = with_file(material, _existing(extra, role))
    check_given(material)
    return material


def _whole(path: Path, stack: ExitStack) -> Material:
    if path.is_dir():
        return folder_material(path)
    refuse_half_archive(path, path.name)
    if not is_archive(path):
        raise DataImportError(f"'{path}' alone is one file; give the other graph as well, or a folder or archive with both.")
    with path.open("rb") as content:
        staged = stage([Upload(path.name, content)])
    stack.callback(discard, staged)
    return staged.material


def _existing(path: Path, role: Role) -> SourceFile:
    if not path.is_file():
        raise DataImportError(f"there is no file '{path}' to be the {role}; check its path.")
    return SourceFile(path, path.name, role)


def _layout(text: str) -> tuple[str, Layout]:
    """'graph1:head=3,tail=1,header=no' -> "graph 1" and what it says.

    Raises:
        ConfigError: not of this form.
    """
    short, _, rest = text.partition(":")
    role = next((role for role in ROLES if role.replace(" ", "") == short), None)
    pairs = [part.partition("=")[::2] for part in rest.split(",")]
    values = {key.strip(): value.strip() for key, value in pairs}
    relations = values.pop("relations", None)
    columns = {key: value for key, value in values.items() if key not in ("header", "delimiter", "trim")}
    related = [] if relations in (None, "none") else str(relations).split("+")
    header, delimiter, trim = values.get("header"), values.get("delimiter"), values.get("trim")
    fits = all(
        key and value.isascii() and value.isdigit() and 1 <= int(value[:6]) < 10_000
        for key, value in [*columns.items(), *(("relation", at) for at in related)]
    )
    if role is None or not fits or not {header, trim} <= {None, *YES_NO} or (delimiter is not None and delimiter not in DELIMITERS):
        raise ConfigError(
            f"--columns expects FILE:COLUMN=NUMBER,..., for example graph1:head=3,tail=1,header=no,delimiter=tab; got '{text}'. "
            f"Files are {', '.join(role.replace(' ', '') for role in ROLES)}, delimiters {', '.join(DELIMITERS)}."
        )
    layout = Layout(
        delimiter=None if delimiter is None else DELIMITERS[delimiter],
        header=None if header is None else YES_NO[header],
        columns={key: int(value) - 1 for key, value in columns.items()},
        trim=trim is not None and YES_NO[trim],
        relations=None if relations is None else tuple(int(at) - 1 for at in related),
    )
    return role, layout
