"""A small finished run for tests of what looks at runs: two graphs of cities in countries, half of them linked, with hostile names among them.

Its embeddings are drawn, not trained: an entity and its counterpart share a random direction, so that the right match is mostly the best one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from engine.analysis import analyse
from engine.analysis.run_tables import graph_of, parameter_tensors
from engine.config import EncoderConfig, RunConfig
from engine.data.knowledge_graph import AlignmentTask
from engine.decoding import DECODERS
from engine.evaluation.assessment import query_rank_table
from engine.evaluation.decoders import evaluate_decoders
from engine.evaluation.metrics import evaluate_links
from engine.model.dual_amn import DualAMN
from engine.runs import RunStore
from engine.search import StructuralSimilarity
from engine.training.trainer import task_adjacency

CSLS_K = 10
HOSTILE_LABELS = (
    "<script>alert(1)</script>",
    "**bold** [link](javascript:alert(1)) :red[x] $x^2$",
    "دمشق",
    "北京市",
    "x" * 5000,
)


@dataclass
class MemoryRun:
    """What :class:`engine.runs.view.RunView` asks of a run, held in memory."""

    manifest: Mapping[str, Any]
    metrics: Mapping[str, Any] | None
    tables: Mapping[str, pd.DataFrame]
    tensors: Mapping[str, Mapping[str, npt.NDArray[Any]]]
    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)

    def table(self, name: str, columns: Sequence[str] | None = None, where: Mapping[str, object] | None = None) -> pd.DataFrame:
        self.reads.append(name)
        table = self.tables[name]
        for column, value in (where or {}).items():
            table = table[table[column].isin(value if isinstance(value, list) else [value])]
        return table if columns is None else table[list(columns)]

    def tensor(self, name: str, key: str) -> npt.NDArray[Any]:
        return self.tensors[name][key]

    def json(self, name: str) -> Mapping[str, Any]:
        return self.documents[name]


def graph_tables(
    side: str, uris: Sequence[str], labels: Sequence[str], triples: Sequence[tuple[int, int, int]], relations: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """One graph's rows of the tables ``entities``, ``relations`` and ``triples``."""
    rows = np.asarray(triples, dtype=np.int64).reshape(-1, 3)
    degrees = np.bincount(rows[:, [0, 2]].ravel(), minlength=len(uris))
    return {
        "entities": pd.DataFrame({"graph": side, "entity": np.arange(len(uris)), "uri": list(uris), "label": list(labels), "degree": degrees}),
        "relations": pd.DataFrame({"graph": side, "relation": np.arange(len(relations)), "name": list(relations)}),
        "triples": pd.DataFrame({"graph": side, "head": rows[:, 0], "relation": rows[:, 1], "tail": rows[:, 2]}),
    }


def hubness(cosines: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """(E,) mean of the k largest cosines of each row with the columns; NaN for rows outside the pool."""
    result = np.full(len(cosines), np.nan, dtype=np.float32)
    inside = np.sort(cosines[np.ix_(rows, columns)], axis=1)[:, -CSLS_K:]
    if inside.size:
        result[rows] = inside.mean(axis=1)
    return result


def stored_matches(scores: npt.NDArray[np.float32], cosines: npt.NDArray[np.float32], side: str, top: int = 5) -> pd.DataFrame:
    """The ``top`` best columns of each row, as the pipeline stores them."""
    kept = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    count = kept.shape[1]
    return pd.DataFrame(
        {
            "graph": side,
            "entity": np.repeat(np.arange(len(scores)), count),
            "rank": np.tile(np.arange(1, count + 1), len(scores)),
            "match": kept.ravel(),
            "cosine": np.take_along_axis(cosines, kept, axis=1).ravel(),
            "csls": np.take_along_axis(scores, kept, axis=1).ravel(),
        }
    )


def assemble(
    source: Mapping[str, pd.DataFrame],
    target: Mapping[str, pd.DataFrame],
    links: Sequence[tuple[int, int, str]],
    embeddings: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]],
    attributes: Sequence[tuple[str, int, str, str]] = (),
    manifest: Mapping[str, Any] | None = None,
) -> MemoryRun:
    """A run out of graphs, links (source, target, role) and embeddings; hubness and matches follow from them."""
    tables = {name: pd.concat([source[name], target[name]], ignore_index=True) for name in source}
    tables["links"] = pd.DataFrame(list(links), columns=["source", "target", "role"])
    tables["attributes"] = pd.DataFrame(list(attributes), columns=["graph", "entity", "attribute", "value"])
    one, two = (array / np.linalg.norm(array, axis=1, keepdims=True) for array in embeddings)
    cosines = one @ two.T
    everything = np.arange(len(one)), np.arange(len(two))
    test = [np.array([pair[column] for pair in links if pair[2] == "test"], dtype=np.int64) for column in (0, 1)]
    terms = {
        "source_all": hubness(cosines, everything[0], everything[1]),
        "target_all": hubness(cosines.T, everything[1], everything[0]),
        "source_test": hubness(cosines, test[0], test[1]),
        "target_test": hubness(cosines.T, test[1], test[0]),
    }
    scores = 2 * cosines - terms["source_all"][:, None] - terms["target_all"][None]
    tables["matches"] = pd.concat([stored_matches(scores, cosines, "source"), stored_matches(scores.T, cosines.T, "target")], ignore_index=True)
    known = {**default_manifest(tables, len(links)), **(manifest or {})}
    return MemoryRun(known, default_metrics(), tables, {"embeddings": {"source": one, "target": two}, "hubness": terms})


def sample_run(seed: int = 0, cities: int = 60, manifest: Mapping[str, Any] | None = None) -> MemoryRun:
    """Four countries and ``cities`` cities a graph; the target graph has twenty more cities, and an order of its own."""
    draw = np.random.default_rng(seed)
    total = 4 + cities
    order = draw.permutation(total + 20)  # source entity i is target entity order[i]
    hostile = dict(enumerate(HOSTILE_LABELS, start=10))
    labels = ["Germany", "France", "Österreich", "Italy", *(hostile.get(i, f"City {i}" if i % 7 else "") for i in range(4, total))]
    triples = [(i, 0, i % 4) for i in range(4, total)] + [(i, 1, i + 1) for i in range(4, total - 1, 2)] + [(0, 2, 4), (0, 2, 8), (1, 1, 1)]
    far_labels = [""] * (total + 20)
    for i, label in enumerate(labels):
        far_labels[order[i]] = label.replace("City", "Stadt")
    far_triples = [(int(order[h]), r, int(order[t])) for h, r, t in triples] + [
        (int(order[i]), 0, int(order[i % 4])) for i in range(total, total + 19)
    ]
    roles = ["train"] * 12 + ["valid"] * 4 + ["test"] * 30 + ["unsure"] * 4
    links = [(i, int(order[i]), role) for i, role in enumerate(roles)]
    shared = draw.standard_normal((total + 20, 16)).astype(np.float32)
    near, far = shared[:total] + 0.4 * draw.standard_normal((total, 16)).astype(np.float32), np.empty_like(shared)
    far[order] = shared
    attributes = [
        ("source", 0, "population", "83,000,000"),
        ("source", 0, "motto", HOSTILE_LABELS[1]),
        ("target", int(order[0]), "Einwohner", "83 Mio."),
    ]
    return assemble(
        graph_tables(
            "source", [f"http://one.example/resource/Entity_{i}" for i in range(total)], labels, triples, ["inCountry", "near", "hasCapital"]
        ),
        graph_tables("target", [f"http://two.example/q/Q{i}" for i in range(total + 20)], far_labels, far_triples, ["liegtIn", "nahe", "Hauptstadt"]),
        links,
        (near, far),
        attributes,
        manifest,
    )


def jolted(run: MemoryRun, amount: float, seed: int) -> MemoryRun:
    """A run of the same data with embeddings that were disturbed, so that other matches are right; to be analysed again."""
    draw = np.random.default_rng(seed)
    disturbed = {side: rows + amount * draw.standard_normal(rows.shape) for side, rows in run.tensors["embeddings"].items()}
    units = {side: (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32) for side, rows in disturbed.items()}
    return replace(run, tensors={**run.tensors, "embeddings": units})


def analysed(run: MemoryRun, seed: int = 0) -> MemoryRun:
    """The run with the ranks of decoders that need no graph and all of ``engine.analysis``, of a small encoder as it is before training."""
    links = run.tables["links"]
    of_role = {role: links.loc[links["role"] == role, ["source", "target"]].to_numpy(dtype=np.int64) for role in ("train", "valid", "test", "unsure")}
    task = AlignmentTask(
        name="towns",
        format="openea",
        source=graph_of(run.tables, "source"),
        target=graph_of(run.tables, "target"),
        train_links=of_role["train"],
        valid_links=of_role["valid"],
        test_links=of_role["test"],
        unsure_links=of_role["unsure"],
        split="given",
        fingerprint="0" * 64,
    )
    config = RunConfig(encoder=EncoderConfig(dim=8, proxies=4))
    model = DualAMN(task_adjacency(task, config), config.encoder, seed=seed).eval()
    one, two = (torch.from_numpy(run.tensors["embeddings"][side]) for side in ("source", "target"))
    similarity = StructuralSimilarity(one, two)
    decoders = evaluate_decoders(similarity, of_role["test"], sorted(DECODERS), bootstrap=50)
    analysis = analyse(task, model, evaluate_links(similarity, of_role["test"], bootstrap=0), run.tables["matches"])
    proxies = {name: tensor.whole().numpy() for name, tensor in analysis.tensors.items()}
    stored = {"proxies": proxies, "model": {name: tensor.numpy() for name, tensor in parameter_tensors(model).items()}}
    return replace(
        run,
        manifest={**run.manifest, "config": config.to_dict(), "files": {"model.safetensors": {}}},
        tables={**run.tables, **analysis.tables, "query_ranks": query_rank_table(decoders)},
        tensors={**run.tensors, **stored},
        documents={"decoders": {name: found.to_dict() for name, found in decoders.items()}},
        reads=[],
    )


def default_manifest(tables: Mapping[str, pd.DataFrame], links: int) -> dict[str, Any]:
    sizes = {
        side: {"name": name, **{key: int((tables[key]["graph"] == side).sum()) for key in ("entities", "relations", "triples")}}
        for side, name in (("source", "GeoOne"), ("target", "GeoTwo"))
    }
    roles = tables["links"]["role"].value_counts()
    return {
        "run_id": "20261101-120000-basic-s0",
        "dataset": "towns",
        "variant": "basic",
        "seed": 0,
        "status": "finished",
        "created": "2026-11-01T12:00:00+00:00",
        "seconds": 61.5,
        "peak_rss_mb": 512.0,
        "device": "cpu",
        "config": {},
        "data": {
            "name": "towns",
            "path": "towns",
            "format": "openea",
            "fingerprint": "0" * 64,
            "split": "given: 721_5fold/1",
            **sizes,
            "links": {role: int(roles.get(role, 0)) for role in ("train", "valid", "test", "unsure")},
            "findings": [],
        },
        "versions": {},
        "git_commit": None,
        "protocol": "CSLS (k = 10) within the pool of test entities",
    }


def default_metrics() -> dict[str, Any]:
    direction = {"hits@1": 0.643, "hits@5": 0.9, "hits@10": 0.98, "mrr": 0.763, "mean_rank": 2.1, "intervals": {"hits@1": [0.62, 0.66]}}
    return {"source_to_target": direction, "target_to_source": {**direction, "hits@1": 0.651}, "pool": 30, "protocol": "CSLS"}


def write_run(run: MemoryRun, models: Path, dataset: str = "towns", run_id: str = "basic-s0-0123abcd", **manifest: Any) -> str:
    """Put a run into a models folder as the pipeline would; returns ``dataset/run_id``."""
    with RunStore(models).create(dataset, run_id) as writer:
        for name, tensors in run.tensors.items():
            writer.write_tensors(name, tensors)
        for name, table in run.tables.items():
            writer.write_table(name, table)
        for name, document in run.documents.items():
            writer.write_json(name, document)
        if run.metrics is not None:
            writer.write_json("metrics", run.metrics)
        finished = writer.finish({**run.manifest, **manifest})
    return finished.id


def of_baseline(run: MemoryRun) -> MemoryRun:
    """An analysed run as one of a baseline: without a model, and with nothing to show for its parts."""
    empty = {name: run.tables[name].head(0) for name in ("relation_importance", "relation_twins", "proxy_top", "pair_divergence")}
    about = {"method": "lightea", "title": "LightEA", "protocol": "Hits@1 by the Sinkhorn decoder", "hits@1": {}}
    tensors = {name: tensors for name, tensors in run.tensors.items() if name not in ("model", "proxies")}
    manifest = {**run.manifest, "variant": "lightea", "baseline": about, "config": RunConfig().with_values({"baseline.method": "lightea"}).to_dict()}
    return replace(run, manifest=manifest, tables={**run.tables, **empty}, tensors=tensors)


BLANK_ENDS = ("Bonn", "Bonn ", "Bonn\u00a0", "Bonn\u3000", " Bonn")
"""Identifiers of the entities 20 to 24 of both graphs of :func:`blank_ended_run`."""


def blank_ended_run() -> MemoryRun:
    """A run with identifiers in both graphs that differ by blanks at their ends only."""
    run = sample_run()
    entities = run.tables["entities"].copy()
    for number, identifier in enumerate(BLANK_ENDS, start=20):
        entities.loc[entities["entity"] == number, ["uri", "label"]] = [identifier, ""]
    return replace(run, tables={**run.tables, "entities": entities})
