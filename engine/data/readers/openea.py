"""The layout of the OpenEA benchmark: everything by identifier (Sun et al., VLDB 2020)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from engine.config import DataConfig
from engine.data.files import find_file, found_files, list_files, require_file
from engine.data.knowledge_graph import Finding
from engine.data.readers.base import Detection, Part, RawDataset, RawGraph, RawLinks, tallies
from engine.data.rows import read_tabbed, read_tabbed_literals
from engine.data.tabular import LINK_ROLES, is_header
from engine.errors import DataError
from engine.util.text import count, escape_controls

TRIPLES = ("rel_triples_1", "rel_triples_2")
FOLDS = re.compile(r"\d+_\d+fold")
FOLD_FILES = ("train_links", "valid_links", "test_links")
NEWEST_FOLDS = "721_5fold"


class OpenEAReader:
    name = "openea"
    description = "OpenEA folders: rel_triples_1/2, attr_triples_1/2, ent_links, 721_5fold/N"

    def detect(self, folder: Path) -> Detection:
        missing = [name for name in TRIPLES if find_file(folder, name) is None]
        return Detection(1 - len(missing) / 2, tuple(missing))

    def files(self, folder: Path) -> Sequence[Path]:
        graphs_and_links = found_files(folder, (*TRIPLES, "attr_triples_1", "attr_triples_2", "ent_links", "unsure_links"))
        return [*graphs_and_links, *(path for fold in list(_folds(folder).values())[:1] for path in found_files(fold, FOLD_FILES))]

    def read(self, folder: Path, config: DataConfig) -> RawDataset:
        source, source_findings = _read_graph(folder, "1")
        target, target_findings = _read_graph(folder, "2")
        links: dict[Part, RawLinks] = {}
        folds = _folds(folder)
        if folds:
            fold = _choose_fold(folds, config.fold)
            links |= {part: _without_header(one, (source, target)) for part, one in _read_fold(fold).items()}
        elif config.fold != "1":
            raise DataError(
                f"fold '{escape_controls(config.fold)}' does not exist, because this folder has no folds. Leave data.fold at 1.", path=folder
            )
        if (everything := find_file(folder, "ent_links")) is not None:
            links["all"] = _read_links(everything, required=bool(folds))  # without folds an empty file says that no links are known
            if not folds:
                links["all"] = _without_header(links["all"], (source, target))
        if (unsure := find_file(folder, "unsure_links")) is not None:
            links["unsure"] = _without_header(_read_links(unsure, required=False), (source, target))
        given = f"given: {fold.parent.name}/{fold.name}" if folds else ""
        return RawDataset(source, target, links, given, (*source_findings, *target_findings))


def _folds(folder: Path) -> dict[str, Path]:
    """Fold -> its folder; the usual 20/10/70 folds where there are several kinds."""
    try:
        kinds = sorted(
            (path for path in folder.iterdir() if FOLDS.fullmatch(path.name) and path.is_dir()), key=lambda path: path.name != NEWEST_FOLDS
        )
        return {path.name: path for path in sorted(kinds[0].iterdir()) if path.is_dir()} if kinds else {}
    except OSError:
        list_files(folder)  # explains what is wrong with the folder
        return {}


def _choose_fold(folds: dict[str, Path], wanted: str) -> Path:
    """Looked up among the folders that exist: a path is never built from an option."""
    if wanted not in folds:
        raise DataError(
            f"there is no fold '{escape_controls(wanted)}'; choose one of {', '.join(folds)} (data.fold).", path=next(iter(folds.values())).parent
        )
    return folds[wanted]


def _read_fold(fold: Path) -> dict[Part, RawLinks]:
    parts: dict[Part, RawLinks] = {"train": _read_links(require_file(fold, "train_links"), required=False)}
    for part in ("valid", "test"):
        if (path := find_file(fold, f"{part}_links")) is not None:
            parts[part] = _read_links(path, required=False)
    return parts


def _read_links(path: Path, *, required: bool) -> RawLinks:
    rows = read_tabbed(path, ("source entity", "target entity"), required=required)
    return RawLinks(path, *rows.columns, files=tallies("links", rows))


def _without_header(links: RawLinks, graphs: tuple[RawGraph, RawGraph]) -> RawLinks:
    """The links; none where the only line names the columns, and no entity of either graph."""
    line = [str(end[0]) for end in (links.sources, links.targets)] if len(links.sources) == 1 else []
    if not line or not is_header(line, LINK_ROLES) or any(graph.knows(pl.Series(line)).any() for graph in graphs):
        return links
    return RawLinks(links.path, (), (), files=tuple(one.without("a header", 1) for one in links.files))


def _read_graph(folder: Path, number: str) -> tuple[RawGraph, tuple[Finding, ...]]:
    path = require_file(folder, f"rel_triples_{number}")
    triples = read_tabbed(path, ("head", "relation", "tail"))
    heads, relations, tails = triples.columns
    attributes = find_file(folder, f"attr_triples_{number}")
    if attributes is None:
        return RawGraph(path, heads, relations, tails, files=tallies("triples", triples)), ()
    rows = read_tabbed_literals(attributes, ("entity", "attribute", "value"))
    entities, names, values = rows.columns
    files = (*tallies("triples", triples), *tallies("attributes", rows))
    graph = RawGraph(path, heads, relations, tails, attributes=(entities, names, values), files=files)
    if not rows.skipped:
        return graph, ()
    message = f"{attributes.name}: {count(rows.skipped, 'line')} without entity, attribute and value passed over."
    return graph, (Finding("short-attribute-lines", "warning", message, rows.skipped, advice="Look for line breaks inside of literals."),)
