"""The merged graph as TriG (a named graph for each source) or as a Parquet table of statements, written a stretch of statements at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import IO, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox

from engine import __version__
from engine.data.knowledge_graph import SIDES, Side
from engine.data.labels import XSD_STRING, literal_of
from engine.data.links import BASE
from engine.exporting.formats.simple import PREDICATES, Format, Predicate
from engine.exporting.merged.fold import ALONE, Fold, FoldOptions, NamedParts
from engine.exporting.table import ExportTable
from engine.util.arrays import IntArray

ROWS_AT_ONCE: Final = 2**17
MATCHES: Final = "matches"
COLUMNS: Final = (
    *("subject", "predicate", "object", "kind", "graph", "original_subject", "original_predicate", "original_object"),
    *("subject_basis", "object_basis", "subject_probability", "object_probability"),
)
REPEATED: Final = ("predicate", "kind", "graph", "original_predicate", "subject_basis", "object_basis")
"""Columns of few different texts."""
SCHEMA: Final = pa.schema(
    [
        (name, pa.float32() if name.endswith("probability") else pa.dictionary(pa.int32(), pa.string()) if name in REPEATED else pa.string())
        for name in COLUMNS
    ]
)


Folding = Fold | FoldOptions | None
"""The two graphs as one already, or how they are to become one."""


def fold_of(table: ExportTable, folding: Folding) -> Fold:
    """The fold by the pairs of an export, made once where it is there already."""
    return folding if isinstance(folding, Fold) else Fold.of(table, folding)


def graph_statements(fold: Fold, side: Side) -> Iterator[pd.DataFrame]:
    """The statements of one graph in the merged one, with ``COLUMNS``: relations, then attribute values."""
    names = GraphTexts(fold, side)
    yield from (related(fold, side, names, block) for block in graph_rows(fold, "triples", side, ["head", "relation", "tail"]))
    yield from (valued(fold, side, names, block) for block in graph_rows(fold, "attributes", side, ["entity", "attribute", "value"]))


def alone_entities(fold: Fold, side: Side) -> IntArray:
    """The entities of a graph that no statement of it has: in no triple and without a value."""
    described = np.zeros(len(fold.entities[side]), dtype=np.bool_)
    for block in graph_rows(fold, "attributes", side, ["entity"]):
        described[block["entity"].to_numpy(dtype=np.int64)] = True
    alone: IntArray = np.flatnonzero((fold.view.graphs[side].degrees == 0) & ~described)
    return alone


def declared(fold: Fold, side: Side) -> pd.DataFrame:
    """A row for each entity that no statement of its graph has, so that it is not lost."""
    names, entities = GraphTexts(fold, side), alone_entities(fold, side)
    basis, probability = names.of_pair(entities)
    graph, member = graph_name(side), term("memberOf").value
    return pd.DataFrame(
        {
            "subject": names.entities[entities],
            "predicate": member,
            "object": graph,
            "kind": "entity",
            "graph": side,
            "original_subject": names.originals[entities],
            "original_predicate": member,
            "original_object": graph,
            "subject_basis": basis,
            "object_basis": "",
            "subject_probability": probability.astype(np.float32),
            "object_probability": np.float32(np.nan),
        }
    )


def graph_rows(fold: Fold, name: str, side: Side, columns: list[str]) -> Iterator[pd.DataFrame]:
    """A graph's rows of a table, some at a time."""
    run = fold.view.run
    if hasattr(run, "stretches"):
        yield from run.stretches(name, columns, {"graph": side}, ROWS_AT_ONCE)
        return
    table = run.table(name, columns=columns, where={"graph": side})
    yield from (table.iloc[start : start + ROWS_AT_ONCE] for start in range(0, len(table), ROWS_AT_ONCE))


class GraphTexts:
    """Texts of one graph by number, for columns."""

    def __init__(self, fold: Fold, side: Side) -> None:
        self.entities = np.array(fold.entities[side], dtype=object)
        self.originals = np.array(fold.view.graphs[side].uris, dtype=object)
        relations = fold.view.run.table("relations", columns=["name"], where={"graph": side})["name"].astype(str).tolist()
        self.relations = np.array(relations, dtype=object)
        self.basis = np.array([*fold.basis, ""], dtype=object)
        self.probability = np.concatenate([fold.probability, [np.nan]])
        self.pair_of = fold.pair_of[side]

    def of_pair(self, entities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Basis and probability of the pairs that entities are folded by; "" and NaN where they are not."""
        pairs = self.pair_of[entities]
        return self.basis[pairs], self.probability[np.where(pairs == ALONE, len(self.probability) - 1, pairs)]


def related(fold: Fold, side: Side, names: GraphTexts, block: pd.DataFrame) -> pd.DataFrame:
    """Statements between entities; a relation that runs the other way in the other graph is written in that graph's direction."""
    parts = fold.relations[side]
    head, relation, tail = (block[column].to_numpy(dtype=np.int64) for column in ("head", "relation", "tail"))
    original = names.relations[relation]
    turned = np.array([name in parts.turned for name in names.relations], dtype=np.bool_)[relation]
    subject, obj = np.where(turned, tail, head), np.where(turned, head, tail)
    bases = names.of_pair(subject), names.of_pair(obj)
    return pd.DataFrame(
        {
            "subject": names.entities[subject],
            "predicate": renamed(original, parts),
            "object": names.entities[obj],
            "kind": "relation",
            "graph": side,
            "original_subject": names.originals[head],
            "original_predicate": original,
            "original_object": names.originals[tail],
            "subject_basis": bases[0][0],
            "object_basis": bases[1][0],
            "subject_probability": bases[0][1].astype(np.float32),
            "object_probability": bases[1][1].astype(np.float32),
        }
    )


def valued(fold: Fold, side: Side, names: GraphTexts, block: pd.DataFrame) -> pd.DataFrame:
    """Attribute values."""
    entity = block["entity"].to_numpy(dtype=np.int64)
    original = block["attribute"].to_numpy(dtype=object)
    basis, probability = names.of_pair(entity)
    values = block["value"].to_numpy(dtype=object)
    return pd.DataFrame(
        {
            "subject": names.entities[entity],
            "predicate": renamed(original, fold.attributes[side]),
            "object": values,
            "kind": "attribute",
            "graph": side,
            "original_subject": names.originals[entity],
            "original_predicate": original,
            "original_object": values,
            "subject_basis": basis,
            "object_basis": "",
            "subject_probability": probability.astype(np.float32),
            "object_probability": np.float32(np.nan),
        }
    )


def renamed(originals: np.ndarray, parts: NamedParts) -> list[str]:
    return [parts.names[str(name)] for name in originals.tolist()]


def match_statements(fold: Fold) -> pd.DataFrame:
    """The pairs themselves as statements: the folded ones, then those whose entities stay apart."""
    uris = {side: fold.view.graphs[side].uris for side in SIDES}
    more_source, more_target = fold.more.T.tolist() if len(fold.more) else ([], [])
    pairs = [*zip(fold.source.tolist(), fold.target.tolist(), strict=True), *zip(more_source, more_target, strict=True)]
    basis = [*fold.basis, *(f"{one}, not folded" for one in fold.more_basis)]
    probability = np.concatenate([fold.probability, np.full(len(fold.more), np.nan)]).astype(np.float32)
    return pd.DataFrame(
        {
            "subject": [fold.entities["source"][one] for one, _ in pairs],
            "predicate": PREDICATES["owl:sameAs"],
            "object": [fold.entities["target"][two] for _, two in pairs],
            "kind": "match",
            "graph": MATCHES,
            "original_subject": [uris["source"][one] for one, _ in pairs],
            "original_predicate": PREDICATES["owl:sameAs"],
            "original_object": [uris["target"][two] for _, two in pairs],
            "subject_basis": basis,
            "object_basis": basis,
            "subject_probability": probability,
            "object_probability": probability,
        },
        columns=list(COLUMNS),
    )


def write_statement_table(file: IO[bytes], table: ExportTable, predicate: Predicate, folding: Folding = None) -> None:
    """A row a statement: as it is in the merged graph, as it was, in which graph, and why its entities are folded."""
    fold = fold_of(table, folding)
    about = {"run": fold.run, "engine": __version__, "canonical": fold.options.canonical}
    with pq.ParquetWriter(file, SCHEMA.with_metadata(about), compression="zstd") as writer:
        for side in SIDES:
            for block in graph_statements(fold, side):
                writer.write_table(arrow_table(block))
            writer.write_table(arrow_table(declared(fold, side)))
        writer.write_table(arrow_table(match_statements(fold)))


def arrow_table(block: pd.DataFrame) -> pa.Table:
    columns = {name: block[name] if name.endswith("probability") else whole_texts(block[name].tolist()) for name in COLUMNS}
    return pa.Table.from_pydict({name: pa.array(column, type=SCHEMA.field(name).type) for name, column in columns.items()}, schema=SCHEMA)


def whole_texts(texts: list[str]) -> list[str]:
    """Texts that UTF-8 can hold: half of a character becomes the replacement character."""
    return [text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8") for text in texts]


# TriG


def write_trig(file: IO[bytes], table: ExportTable, predicate: Predicate, folding: Folding = None) -> None:
    """A named graph for each source and one with the matches, from which the original graphs can be made again."""
    ox.serialize(quads(fold_of(table, folding)), file, format=ox.RdfFormat.TRIG)


def quads(fold: Fold) -> Iterator[ox.Quad]:
    yield from about(fold)
    for side in SIDES:
        graph = ox.NamedNode(graph_name(side))
        for block in graph_statements(fold, side):
            for row in zip(*(block[name].tolist() for name in ("subject", "predicate", "object", "kind")), strict=True):
                subject, relation, value, kind = row
                obj = ox.NamedNode(value) if kind == "relation" else rdf_literal(value)
                yield ox.Quad(ox.NamedNode(subject), ox.NamedNode(relation), obj, graph)
    yield from match_quads(fold)


def graph_name(part: str) -> str:
    return f"{BASE}graph:{part}"


def term(name: str) -> ox.NamedNode:
    """A word of this file's own vocabulary."""
    return ox.NamedNode(f"{BASE}merge#{name}")


def about(fold: Fold) -> Iterator[ox.Quad]:
    """What the file is, in the default graph."""
    graph = ox.NamedNode(graph_name(MATCHES))
    for name, text in (("run", fold.run), ("engineVersion", __version__), ("canonical", fold.options.canonical)):
        yield ox.Quad(graph, term(name), ox.Literal(whole_texts([text])[0]))
    for side in SIDES:
        yield ox.Quad(ox.NamedNode(graph_name(side)), term("graphName"), ox.Literal(whole_texts([fold.view.graphs[side].name])[0]))


def match_quads(fold: Fold) -> Iterator[ox.Quad]:
    """Each pair with its probability and why it is one, and every name that is not the original one."""
    graph, kind, axiom = ox.NamedNode(graph_name(MATCHES)), ox.NamedNode(RDF_TYPE), ox.NamedNode(f"{OWL}Axiom")
    for number, row in enumerate(match_statements(fold).to_dict("records")):
        node = ox.BlankNode(f"m{number}")
        yield ox.Quad(node, kind, axiom, graph)
        yield ox.Quad(node, term("entity"), ox.NamedNode(row["subject"]), graph)
        if row["object"] != row["subject"]:
            yield ox.Quad(ox.NamedNode(row["subject"]), ox.NamedNode(PREDICATES["owl:sameAs"]), ox.NamedNode(row["object"]), graph)
        for name, text in (("source", row["original_subject"]), ("target", row["original_object"]), ("basis", row["subject_basis"])):
            yield ox.Quad(node, term(name), ox.Literal(whole_texts([text])[0]), graph)
        if not np.isnan(row["subject_probability"]):
            yield ox.Quad(node, term("probability"), ox.Literal(float(row["subject_probability"])), graph)
    for side in SIDES:
        for name in declared(fold, side)["subject"].tolist():  # not in the graph itself, which says nothing of it
            yield ox.Quad(ox.NamedNode(name), term("memberOf"), ox.NamedNode(graph_name(side)), graph)
        for what, original, name, turned in changed_names(fold, side):
            way = "Inverse" if turned else ""
            yield ox.Quad(ox.NamedNode(name), term(f"{side}{what}{way}"), ox.Literal(whole_texts([original])[0]), graph)


RDF_TYPE: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
OWL: Final = "http://www.w3.org/2002/07/owl#"


def changed_names(fold: Fold, side: Side) -> Iterator[tuple[str, str, str, bool]]:
    """What, original name, name in the merged graph, and whether it runs the other way, where the two names differ or the direction does."""
    for original, name in zip(fold.view.graphs[side].uris, fold.entities[side], strict=True):
        if original != name:
            yield "Entity", original, name, False
    for what, parts in (("Relation", fold.relations[side]), ("Attribute", fold.attributes[side])):
        for original, name in parts.names.items():
            if original != name:
                yield what, original, name, original in parts.turned


def rdf_literal(value: str) -> ox.Literal:
    """An attribute's value: with language or datatype where it has one that RDF allows, else its text as it is."""
    found = literal_of(value)
    text = whole_texts([found.text if found.language or found.datatype else value])[0]
    try:
        if found.language:
            return ox.Literal(text, language=found.language)
        if found.datatype and found.datatype != XSD_STRING:
            return ox.Literal(text, datatype=ox.NamedNode(found.datatype))
    except ValueError:
        return ox.Literal(whole_texts([value])[0])
    return ox.Literal(text)


MERGED: Final = Format(
    name="merged",
    title="Merged graph (TriG)",
    suffix=".merged.trig",
    media_type="application/trig",
    does="both graphs as one, a named graph for each source",
    write=write_trig,
    readable=False,
    stem="graph",
)
MERGED_PARQUET: Final = Format(
    name="merged-parquet",
    title="Merged graph (Parquet)",
    suffix=".merged.parquet",
    media_type="application/vnd.apache.parquet",
    does="both graphs as one, a row per statement with its origin",
    write=write_statement_table,
    readable=False,
    stem="graph",
)


def merged_formats() -> tuple[Format, ...]:
    return MERGED, MERGED_PARQUET


def with_fold(fmt: Format, folding: Folding) -> Format:
    """The format with other options, or with the fold of the very pairs that it is to write; any other format as it is."""
    writers = {MERGED.name: write_trig, MERGED_PARQUET.name: write_statement_table}
    return replace(fmt, write=partial(writers[fmt.name], folding=folding)) if fmt.name in writers else fmt
