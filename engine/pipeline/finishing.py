"""From what was learned to a finished run: search, evaluate, analyse, write."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from engine.analysis import TENSORS as PROXY_TENSORS
from engine.analysis import analyse
from engine.analysis.run_tables import APART, START, hubness_tensors, match_table, run_tables, start_table
from engine.data import AlignmentTask
from engine.data.knowledge_graph import SIDES
from engine.evaluation.assessment import Probabilities, decoder_evaluations, match_probabilities, query_rank_table
from engine.evaluation.calibration import Uncalibrated
from engine.evaluation.decoders import DecodingEvaluation, with_candidates
from engine.evaluation.metrics import Evaluation, evaluate_searched, search_pool, with_pool
from engine.evaluation.pairs import alignment_figures
from engine.names import ValueEvidence, name_tensors
from engine.pipeline.events import NOTE, Phase
from engine.pipeline.identity import describe_data, git_commit, peak_rss_mb, versions
from engine.pipeline.literal import LiteralPart, literal_values, with_literals
from engine.pipeline.making import Making
from engine.pipeline.structure import Structure, stored_embeddings, stored_parameters
from engine.runs import Run, RunWriter
from engine.runs.writer import RENAMED, REVIEWS
from engine.search import CslsTopK, Similarity, csls_topk
from engine.training.baselines import MEASURES, Baseline, measured
from engine.training.worker import dealt
from engine.util.memory import give_back
from engine.util.text import count


def finish_run(writer: RunWriter, making: Making, structure: Structure, literal: LiteralPart | None = None) -> Run:
    """Search, evaluate, analyse and write."""
    give_back()
    task, config, clock = making.task, making.config, making.clock
    similarity: Similarity = structure.similarity
    notes: dict[str, Any] = {}
    values: ValueEvidence | None = None
    if literal is not None:
        with clock.phase("names"):
            values = literal_values(making, structure)
            together, notes["literal"] = with_literals(structure.at_hand, literal, values, task, config)
            similarity = together if making.ranks.size == 1 else dealt(making.ranks, together)
    search = config.search
    making.on_event(Phase("search", f"Searching the {search.top} best matches of {task.num_entities:,} entities"))
    with clock.phase("search"):
        everything = with_pool(similarity, task.test_links)
        found = csls_topk(everything, search.csls_k, search.top, index=search.index)
        give_back()
    making.on_event(Phase("evaluate", f"Evaluating on {count(len(task.test_links), 'test link')}"))
    with clock.phase("evaluate"):
        searched = search_pool(everything, task.test_links, search.csls_k, index=search.index, untested=task.untested, top=None)
        evaluation = evaluate_searched(searched)
        del everything
        searched = with_candidates(searched)  # similarities fill memory
        give_back()
        decoders = decoder_evaluations(searched, task)
        del searched
        self_trained = literal is None and structure.self_trained
        probabilities = match_probabilities(similarity, task, search.csls_k, search.index, config.seed, self_trained=self_trained)
    if structure.baseline is not None:
        notes["baseline"] = describe_baseline(structure.baseline, structure, task, evaluation, decoders)
    if isinstance(probabilities.calibration, Uncalibrated) and not only_structure(making, structure):
        making.on_event(Phase(NOTE, f"info: {probabilities.calibration.reason}"))
    making.on_event(Phase("write", f"Writing {task.name}/{writer.run_id}"))
    with clock.phase("write"):
        write_reviews(writer, making)
        write_renamed(writer, making)
        write_structure(writer, task, structure, found, evaluation, config.values.excluded)
        write_assessment(writer, task, evaluation, decoders, probabilities, found)
        if literal is not None:
            writer.write_tensors("names", name_tensors(literal.encoded.similarity))
            tables = zip(SIDES, (literal.source, literal.target), strict=True)
            writer.write_table("names", pd.concat([one.table(side) for side, one in tables], ignore_index=True))
            write_values(writer, values)
    return writer.finish(describe_run(making, structure, evaluation, notes))


def only_structure(making: Making, structure: Structure) -> bool:
    """Whether a finished run is the structure that a literal run goes by, which has probabilities of its own."""
    return making.above is not None and structure.training["status"] == "finished"


def describe_baseline(
    method: Baseline, structure: Structure, task: AlignmentTask, evaluation: Evaluation, decoders: Mapping[str, DecodingEvaluation]
) -> dict[str, Any]:
    """What the manifest says of a baseline: which one, and its Hits@1 as its publication measures it."""
    about: dict[str, Any] = {"method": method.name, "title": method.title, "reference": method.reference}
    if not len(task.test_links):
        return about
    own = evaluation.to_dict() if method.measure == "csls" else decoders[method.measure].to_dict() if method.measure in decoders else None
    found = measured(structure.at_hand.source, structure.at_hand.target, task.test_links) if own is None else own
    sides = ("source_to_target", "target_to_source")
    protocol = f"Hits@1 within the pool of test entities {MEASURES[method.measure]}"
    return {**about, "protocol": protocol, "hits@1": {side: found[side]["hits@1"] for side in sides}}


def describe_run(making: Making, structure: Structure, evaluation: Evaluation, notes: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest: all that is needed to distinguish runs and to make this one again."""
    training = dict(structure.training)
    return {
        "variant": making.config.method,
        "status": training.pop("status"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": making.config.seed,
        "config": making.config.to_dict(),
        "data": describe_data(making.path, making.task),
        "device": training["device"],
        "threads": training["threads"],
        "training": {**training, "status": structure.training["status"]},
        "protocol": evaluation.protocol,
        "seconds": round(making.clock.seconds, 3),
        "phases": making.clock.phases,
        "peak_rss_mb": peak_rss_mb(),
        "versions": versions(),
        "platform": platform.platform(),
        "git_commit": git_commit(),
        **({} if making.reviewed is None else {"reviews": making.reviewed.effect.to_dict()}),
        **({} if making.inheritance is None else {"parent": dict(making.inheritance.record)}),
        **notes,
    }


def write_reviews(writer: RunWriter, making: Making) -> None:
    """The reviews that the run is trained with, if any: a file that can be trained with again."""
    if making.reviewed is not None:
        writer.write_table(REVIEWS, making.reviewed.snapshot.table())


def write_renamed(writer: RunWriter, making: Making) -> None:
    """Old and new identifiers of entities, of an update with a mapping file."""
    if making.inheritance is not None and len(making.inheritance.renamed):
        writer.write_table(RENAMED, making.inheritance.renamed)


def write_structure(
    writer: RunWriter, task: AlignmentTask, structure: Structure, found: CslsTopK, evaluation: Evaluation, excluded: frozenset[str]
) -> None:
    """Parameters, embeddings, and the tables of data and matches with what they say of relations, proxies and hubs."""
    if structure.model is not None:
        writer.write_tensors("model", stored_parameters(structure.model, task.num_entities))
    writer.write_tensors("embeddings", stored_embeddings(structure.similarity))
    structure.forget_rows()
    writer.write_tensors("hubness", hubness_tensors(found, evaluation, task.source.num_entities, task.target.num_entities))
    tables = run_tables(task, found, structure.selections)
    analysis = analyse(task, structure.model, evaluation, tables["matches"], excluded)
    for name, table in {**tables, **analysis.tables}.items():
        writer.write_table(name, table)
    if len(task.apart):
        writer.write_table(APART, task.apart)
    if structure.start is not None:
        writer.write_table(START, start_table(structure.start))
    if analysis.tensors:
        writer.write_tensors(PROXY_TENSORS, dict(analysis.tensors))


def write_assessment(
    writer: RunWriter,
    task: AlignmentTask,
    evaluation: Evaluation,
    decoders: Mapping[str, DecodingEvaluation],
    probabilities: Probabilities,
    found: CslsTopK,
) -> None:
    """Metrics of the paper's protocol and of the alignment as pairs, of every decoder with its ranks, and the calibrated probabilities."""
    if len(task.test_links):
        matches = probabilities.table if len(probabilities.table) else best_of(match_table(found))
        aligned = alignment_figures(matches, task, probabilities.threshold)
        writer.write_json("metrics", {**evaluation.to_dict(), "alignment": aligned.to_dict()})
        writer.write_json("decoders", {name: one.to_dict() for name, one in decoders.items()})
    writer.write_table("query_ranks", query_rank_table(decoders))
    writer.write_json("calibration", probabilities.to_dict())
    writer.write_table("probabilities", probabilities.table)


def best_of(matches: pd.DataFrame) -> pd.DataFrame:
    """The first of each entity's matches."""
    return matches[matches["rank"] == 1]


def write_values(writer: RunWriter, values: ValueEvidence | None) -> None:
    """The values' rows and what they are of, where values count."""
    if values is not None:
        writer.write_tensors("values", name_tensors(values.similarity))
        writer.write_table("value_attributes", values.attributes)
        writer.write_table("value_features", values.features)
