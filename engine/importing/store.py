"""Storing an import: one folder of Parquet tables with its record, written beside its place and renamed into it, never over another one."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine import __version__
from engine.data import safe_name
from engine.data.apart import FILE_WORD
from engine.data.library import RECORD, StoredDataSet, data_sets
from engine.data.readers import RawGraph
from engine.data.texts import Texts
from engine.errors import DataImportError
from engine.importing.preview import Preview, Understood, understand
from engine.importing.source import Corrections, Material
from engine.importing.staging import PARTIAL
from engine.util import paths
from engine.util.files import fsync, fsync_tree, make_folder, remove
from engine.util.machine import os_advice, os_reason
from engine.util.text import shorten

FORMAT_VERSION: Final = 1
LONGEST_NAME: Final = 80
APART_FILE: Final = f"links_{FILE_WORD}.parquet"


def store(material: Material, corrections: Corrections, name: str) -> StoredDataSet:
    """Read, check and store a data set.

    Args:
        material: the files.
        corrections: what its owner said about it.
        name: of the data set; runs go by it.

    Raises:
        DataImportError: a problem that must be fixed first; a name that is taken or cannot be one (says another); no space.
        DataError: as :func:`engine.importing.preview.understand`.
    """
    check_dataset_name(name)
    return write(understand(material, corrections), material, corrections, name)


def write(understood: Understood, material: Material, corrections: Corrections, name: str) -> StoredDataSet:
    """The second half of :func:`store`, for what is understood already."""
    check_dataset_name(name)
    check_storable(understood.preview)
    parent = paths.data_folder()
    partial, final = parent / f"{PARTIAL}{secrets.token_hex(8)}", parent / name
    try:
        make_folder(partial)
        _write_tables(partial, understood)
        record = _record(understood, material, corrections, name)
        (partial / RECORD).write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", errors="backslashreplace")
        fsync_tree(partial)
        _move(partial, final)
    except OSError as error:
        raise DataImportError(f"{name} cannot be stored ({os_reason(error)}); {os_advice(error)}, then try again (folder {parent}).") from None
    finally:
        remove(partial)
    return next(one for one in data_sets() if one.path == final)


def check_storable(shown: Preview) -> None:
    """
    Raises:
        DataImportError: a problem that must be fixed first.
    """
    if problems := shown.problems:
        raise DataImportError(f"{problems[0].message} {problems[0].advice}")


def check_dataset_name(name: str) -> None:
    """
    Raises:
        DataImportError: the name cannot be one, or is taken; another one is offered.
    """
    if not name.strip():
        raise DataImportError("the data set needs a name; use letters, digits and _ - . for it.")
    if "/" in name or "\0" in name or name != safe_name(Path(name)) or name.startswith("_") or len(name) > LONGEST_NAME:
        raise DataImportError(f"'{shorten(name)}' cannot be the name of a data set; use letters, digits and _ - ., for example '{free_name(name)}'.")
    if _is_taken(name):
        raise DataImportError(
            f"there is a data set called '{name}' already, and it is not overwritten; take another name, for example '{free_name(name)}'."
        )


def free_name(wanted: str) -> str:
    """A name like this one that a data set can have and none has."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", wanted).strip("._-")[: LONGEST_NAME - 4] or "my-graphs"
    numbered = (f"{plain}-{number}" for number in range(2, 10_000))
    return plain if not _is_taken(plain) else next(name for name in numbered if not _is_taken(name))


def suggested_name(material: Material) -> str:
    """From the folder's, or the first file's name."""
    if material.folder is not None and material.origin != "upload":
        return free_name(material.folder.name)
    return free_name("my-graphs")


def _is_taken(name: str) -> bool:
    """Names do not differ by capital letters alone: on some systems such files are the same."""
    return os.path.lexists(paths.data_folder() / name) or name.lower() in {one.name.lower() for one in data_sets()}


def _move(partial: Path, final: Path) -> None:
    """
    Raises:
        DataImportError: another import took the name in the meantime.
    """
    try:
        if os.path.lexists(final):
            raise FileExistsError
        os.rename(partial, final)  # fails where a folder with something in it has come into its place
    except OSError:
        if os.path.lexists(final):
            message = f"another import took the name '{final.name}' just now; take another name, for example '{free_name(final.name)}'."
            raise DataImportError(message) from None
        raise
    fsync(final.parent)


def _write_tables(folder: Path, understood: Understood) -> None:
    for number, graph in (("1", understood.raw.source), ("2", understood.raw.target)):
        for name, columns in _graph_tables(graph):
            _write(folder / f"{name}_{number}.parquet", columns)
    for part, links in understood.raw.links.items():
        if len(links.sources) or part == "train":  # an empty part says that there are no seed links, where others would be drawn without it
            _write(folder / ("links.parquet" if part == "all" else f"links_{part}.parquet"), {"source": links.sources, "target": links.targets})
    if apart := understood.raw.apart:
        texts = {"source": apart.sources, "target": apart.targets, "predicate": apart.relations}
        columns = {name: pa.array(list(cells), type=pa.string()) for name, cells in texts.items()}
        pq.write_table(
            pa.table({**columns, "confidence": pa.array(list(apart.confidences), type=pa.float64(), from_pandas=True)}), folder / APART_FILE
        )


def _graph_tables(graph: RawGraph) -> Iterator[tuple[str, Mapping[str, Sequence[str]]]]:
    """Those with rows; names are what the reader of tables goes by."""
    yield "triples", {"head": graph.heads, "relation": graph.relations, "tail": graph.tails}
    entities, attributes, values = graph.attributes
    if len(entities):
        yield "attributes", {"entity": entities, "attribute": attributes, "value": values}
    if len(graph.entities):
        yield "declared_entities", {"name": graph.entities}
    if len(graph.known_relations):
        yield "declared_relations", {"name": graph.known_relations}


def _write(path: Path, columns: Mapping[str, Sequence[str]]) -> None:
    table = pa.table({name: Texts.of(cells).array() for name, cells in columns.items()})
    pq.write_table(table, path, compression="zstd")


def _record(understood: Understood, material: Material, corrections: Corrections, name: str) -> dict[str, Any]:
    """What ``import.json`` says (docs/importing.md)."""
    preview = understood.preview
    roles = {file.name: file.role for file in preview.files}
    return {
        "format_version": FORMAT_VERSION,
        "name": name,
        "imported": datetime.now(UTC).isoformat(timespec="seconds"),
        "engine": __version__,
        "fingerprint": preview.fingerprint,
        "origin": material.origin,
        "format": preview.format,
        "files": [
            {"name": file.name, "role": roles.get(file.name, ""), "size": file.size, "sha256": file.sha256()} for file in understood.read.files
        ],
        "counts": {
            **{side: _counts(preview, side) for side in ("source", "target")},
            "links": sum(preview.links.values()) - preview.links.get("unsure", 0),
            "kept apart": len(understood.raw.apart),
        },
        "corrections": corrections.to_dict(),
        "settings": corrections.naming,
        "seed from names": [[pair.source, pair.target, pair.likeness, round(pair.similarity, 3)] for pair in preview.chosen],
        "findings": [{"code": finding.code, "severity": finding.severity, "message": finding.message} for finding in preview.findings],
    }


def _counts(preview: Preview, side: Any) -> dict[str, int]:
    summary = preview.graphs[side].summary
    return {
        "entities": summary.entities,
        "relations": summary.relations,
        "triples": summary.triples,
        "attributes": summary.attributes,
        "named": summary.named,
    }
