"""Small runs with weights: a drawn task and model, everything else as the pipeline makes it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse

from engine.analysis.run_tables import hubness_tensors, parameter_tensors, run_tables
from engine.config import RunConfig
from engine.data.knowledge_graph import AlignmentTask
from engine.evaluation.metrics import evaluate_links
from engine.explanation import Explainer
from engine.model.dual_amn import DualAMN
from engine.names import name_tensors
from engine.runs.view import RunView
from engine.search import LiteralSimilarity, Similarity, SparseSimilarity, StructuralSimilarity, csls_topk, normalise_rows
from engine.training.semi import Selection
from engine.training.trainer import split_embeddings, task_adjacency
from tests.analysis.worlds import random_task
from tests.run_fixture import MemoryRun

SMALL = {"dim": 6, "layers": 2, "proxies": 4}
CSLS_K = 3
VALUES, VALUE_WEIGHT = 5, 0.4


def drawn_model(task: AlignmentTask, config: RunConfig, seed: int) -> DualAMN:
    """Parameters large enough that attention is far from uniform and tanh far from linear."""
    model = DualAMN(task_adjacency(task, config), config.encoder, seed=seed)
    with torch.no_grad():
        model.attention.mul_(3)
        model.entity_features.mul_(20)
        model.relation_features.mul_(20)
    return model


def drawn_names(task: AlignmentTask, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit rows, some of them zero: entities without a name."""
    source, target = (rng.standard_normal((graph.num_entities, 4)).astype(np.float32) for graph in (task.source, task.target))
    source[::4], target[1::5] = 0, 0
    return normalise_rows(torch.from_numpy(source)), normalise_rows(torch.from_numpy(target))


def drawn_values(task: AlignmentTask, rng: np.random.Generator) -> SparseSimilarity:
    """Rows of at most unit length, a third of the entries given."""
    sizes = task.source.num_entities, task.target.num_entities
    rows = [np.where(rng.random((size, VALUES)) < 0.3, rng.random((size, VALUES)), 0).astype(np.float32) for size in sizes]
    return SparseSimilarity(*(sparse.csr_array(one / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1)) for one in rows))


def drawn_value_tables(values: SparseSimilarity) -> dict[str, pd.DataFrame]:
    """Each feature is a value of its own: "V3" of the source's attribute s3 and of the target's t3."""
    rows = {"source": values.source.tocoo(), "target": values.target.tocoo()}
    counts = {side: np.bincount(matrix.coords[1], minlength=VALUES) for side, matrix in rows.items()}
    keys = pd.DataFrame({"source": [f"s{f}" for f in range(VALUES)], "target": [f"t{f}" for f in range(VALUES)]})
    keys["key"] = [f"text:v{f}" for f in range(VALUES)]
    facts = [(side, entity, f"{side[0]}{f}", f"V{f}") for side, matrix in rows.items() for entity, f in zip(*matrix.coords, strict=True)]
    return {
        "value_features": keys.assign(source_entities=counts["source"], target_entities=counts["target"]),
        "attributes": pd.DataFrame(facts, columns=["graph", "entity", "attribute", "value"]),
    }


def drawn_run(seed: int = 0, *, variant: str = "basic", weight: float = 0.7, task: AlignmentTask | None = None, **options: Any) -> MemoryRun:
    """A run of a drawn task; semi runs have a round of selections, literal ones names as well."""
    rng = np.random.default_rng(seed)
    task = task or random_task(rng)
    config = RunConfig.from_dict({"variant": variant, "encoder": {**SMALL, **options}, "search": {"csls_k": CSLS_K}})
    model = drawn_model(task, config, seed)
    with torch.no_grad():
        source, target = (normalise_rows(part) for part in split_embeddings(model(), task.source.num_entities))
    similarity: Similarity = StructuralSimilarity(source, target)
    value_tables: dict[str, pd.DataFrame] = {}
    tensors: dict[str, dict[str, Any]] = {"embeddings": {"source": source, "target": target}, "model": dict(parameter_tensors(model))}
    manifest: dict[str, Any] = {
        "variant": variant,
        "config": config.to_dict(),
        "data": {"fingerprint": task.fingerprint},
        "status": "finished",
        "created": "2026-11-01T12:00:00+00:00",
        "seed": 0,
    }
    if variant == "literal":
        names = drawn_names(task, rng)
        values = drawn_values(task, rng)
        similarity = LiteralSimilarity(StructuralSimilarity(source, target), StructuralSimilarity(*names), weight, values, VALUE_WEIGHT)
        tensors["names"] = dict(zip(("source", "target"), names, strict=True))
        tensors["values"] = dict(name_tensors(values))
        value_tables = drawn_value_tables(values)
        manifest["literal"] = {"encoder": "vectors:drawn", "weight": weight, "value_weight": VALUE_WEIGHT}
    found = csls_topk(similarity, CSLS_K, 5)
    evaluation = evaluate_links(similarity, task.test_links, CSLS_K, bootstrap=0)
    tensors["hubness"] = dict(hubness_tensors(found, evaluation, task.source.num_entities, task.target.num_entities))
    selections = [] if variant == "basic" else [Selection(np.array([[1, 2], [3, 3]]), np.array([0.9, 0.8], dtype=np.float32))]
    arrays = {name: {key: value.numpy() for key, value in part.items()} for name, part in tensors.items()}
    tables = {**run_tables(task, found, selections), **value_tables}
    return MemoryRun({**manifest, "files": {f"{name}.parquet": {} for name in ("selections", *value_tables)}}, None, tables, arrays)


def lonely_task() -> AlignmentTask:
    """The first entity of each graph has no triples."""
    task = random_task(np.random.default_rng(8))
    graphs = [dataclasses.replace(graph, triples=graph.triples[(graph.triples[:, [0, 2]] > 0).all(axis=1)]) for graph in (task.source, task.target)]
    return dataclasses.replace(task, source=graphs[0], target=graphs[1])


def explainer_of(run: MemoryRun) -> Explainer:
    return Explainer(RunView(run))
