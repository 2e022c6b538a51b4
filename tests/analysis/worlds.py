"""Tiny random tasks, models and matches for the analysis tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from engine.config import EncoderConfig
from engine.data.knowledge_graph import AlignmentTask, KnowledgeGraph, empty_links
from engine.evaluation.metrics import Evaluation, evaluate_links
from engine.model.adjacency import build_adjacency
from engine.model.dual_amn import DualAMN

SMALL = {"dim": 5, "layers": 2, "proxies": 4, "dropout": 0.0}


@dataclass(frozen=True)
class World:
    task: AlignmentTask
    model: DualAMN
    evaluation: Evaluation
    matches: pd.DataFrame


def random_graph(rng: np.random.Generator, name: str, entities: int, relations: int, triples: int) -> KnowledgeGraph:
    """Isolated entities, self-loops, parallel triples and relations without triples may occur."""
    drawn = np.stack([rng.integers(0, max(size, 1), triples if entities and relations else 0) for size in (entities, relations, entities)], axis=1)
    labels = tuple(f"{name} {i}" for i in range(entities))
    return KnowledgeGraph(name, labels, labels, tuple(f"{name} relation {i}" for i in range(relations)), np.unique(drawn, axis=0))


def random_links(rng: np.random.Generator, sources: int, targets: int, count: int) -> np.ndarray:
    """Not one-to-one, and some twice."""
    return np.stack([rng.integers(0, sources, count), rng.integers(0, targets, count)], axis=1)


def random_task(rng: np.random.Generator, sizes: tuple[int, int] = (14, 17), relations: tuple[int, int] = (4, 3), triples: int = 40) -> AlignmentTask:
    graphs = [random_graph(rng, name, size, count, triples) for name, size, count in zip("ab", sizes, relations, strict=True)]
    links = [random_links(rng, *sizes, count) for count in (12, 3, 9, 2)]
    return AlignmentTask("drawn", "drawn", graphs[0], graphs[1], *links, split="drawn", fingerprint="0" * 64)


def random_matches(rng: np.random.Generator, sources: int, targets: int, top: int = 10) -> pd.DataFrame:
    """Lists of distinct candidates of both directions, as a run stores them."""
    parts = []
    for graph, queries, candidates in (("source", sources, targets), ("target", targets, sources)):
        kept = min(top, candidates)
        lists = [rng.permutation(candidates)[:kept] for _ in range(queries)]
        parts.append(
            pd.DataFrame(
                {
                    "graph": pd.Series([graph] * (queries * kept), dtype="str"),
                    "entity": np.repeat(np.arange(queries), kept),
                    "rank": np.tile(np.arange(1, kept + 1), queries),
                    "match": np.concatenate([*lists, np.empty(0, dtype=np.int64)]),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def random_model(task: AlignmentTask, **options: object) -> DualAMN:
    """Parameters large enough that attention is far from uniform."""
    config = EncoderConfig(**{**SMALL, **options})  # type: ignore[arg-type]
    adjacency = build_adjacency(task.stacked_triples(), task.num_entities, task.num_relations, message_unit=config.message_unit)
    model = DualAMN(adjacency, config, seed=3)
    with torch.no_grad():
        model.attention.mul_(3)
        model.entity_features.mul_(20)
    return model


def random_world(seed: int = 0, top: int = 10, links: bool = True, **options: object) -> World:
    rng = np.random.default_rng(seed)
    task = random_task(rng)
    sizes = task.source.num_entities, task.target.num_entities
    source, target = (torch.from_numpy(rng.standard_normal((size, 6)).astype(np.float32)) for size in sizes)
    evaluation = evaluate_links(source, target, task.test_links if links else empty_links(), k=3, bootstrap=0)
    return World(task, random_model(task, **options), evaluation, random_matches(rng, *sizes, top))
