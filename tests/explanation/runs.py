"""Small runs with weights: a drawn task and model, everything else as the pipeline makes it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

from engine.analysis.run_tables import hubness_tensors, parameter_tensors, run_tables
from engine.config import RunConfig
from engine.data.knowledge_graph import AlignmentTask
from engine.evaluation.metrics import evaluate_links
from engine.explanation import Explainer
from engine.model.dual_amn import DualAMN
from engine.runs.view import RunView
from engine.search import Similarity, StructuralSimilarity, StructureAndNames, csls_topk, normalise_rows
from engine.training.semi import Selection
from engine.training.trainer import split_embeddings, task_adjacency
from tests.analysis.worlds import random_task
from tests.run_fixture import MemoryRun

SMALL = {"dim": 6, "layers": 2, "proxies": 4}
CSLS_K = 3


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


def drawn_run(seed: int = 0, *, variant: str = "basic", weight: float = 0.7, task: AlignmentTask | None = None, **options: Any) -> MemoryRun:
    """A run of a drawn task; semi runs have a round of selections, literal ones names as well."""
    rng = np.random.default_rng(seed)
    task = task or random_task(rng)
    config = RunConfig.from_dict({"variant": variant, "encoder": {**SMALL, **options}, "search": {"csls_k": CSLS_K}})
    model = drawn_model(task, config, seed)
    with torch.no_grad():
        source, target = (normalise_rows(part) for part in split_embeddings(model(), task.source.num_entities))
    similarity: Similarity = StructuralSimilarity(source, target)
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
        similarity = StructureAndNames(StructuralSimilarity(source, target), StructuralSimilarity(*names), weight)
        tensors["names"] = dict(zip(("source", "target"), names, strict=True))
        manifest["literal"] = {"encoder": "vectors:drawn", "weight": weight}
    found = csls_topk(similarity, CSLS_K, 5)
    evaluation = evaluate_links(similarity, task.test_links, CSLS_K, bootstrap=0)
    tensors["hubness"] = dict(hubness_tensors(found, evaluation, task.source.num_entities, task.target.num_entities))
    selections = [] if variant == "basic" else [Selection(np.array([[1, 2], [3, 3]]), np.array([0.9, 0.8], dtype=np.float32))]
    arrays = {name: {key: value.numpy() for key, value in part.items()} for name, part in tensors.items()}
    return MemoryRun({**manifest, "files": {"selections.parquet": {}}}, None, run_tables(task, found, selections), arrays)


def lonely_task() -> AlignmentTask:
    """The first entity of each graph has no triples."""
    task = random_task(np.random.default_rng(8))
    graphs = [dataclasses.replace(graph, triples=graph.triples[(graph.triples[:, [0, 2]] > 0).all(axis=1)]) for graph in (task.source, task.target)]
    return dataclasses.replace(task, source=graphs[0], target=graphs[1])


def explainer_of(run: MemoryRun) -> Explainer:
    return Explainer(RunView(run))
