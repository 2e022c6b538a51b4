"""The tables and tensors of a run: everything that matching, pages and exports look at, so that a run folder is enough in itself.

Tables (entity and relation indices are local to their graph; ``graph`` is "source" or "target"):

- ``entities``: graph, entity, uri, label ("" where the data gives none), degree
- ``relations``: graph, relation, name
- ``triples``: graph, head, relation, tail
- ``attributes``: graph, entity, attribute, value
- ``links``: source, target, role ("train", "valid", "test", "unsure")
- ``selections``: round, source, target, score: what each semi-supervised round trained on besides the seed links
- ``start``: source, target, probability: pairs that the facts of both graphs imply, which semi-supervised training starts with
- ``matches``: graph (of the query), entity, rank from 1, match, cosine, csls; pool: all entities of the other graph

Tensors: ``embeddings`` (source (E1, D), target (E2, D): float32 rows of unit length), ``hubness`` (source_all, target_all, source_test, target_test:
r of CSLS within each pool, NaN outside of it), ``model`` (the encoder's parameters, by name).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from engine.data.knowledge_graph import SIDES, AlignmentTask, KnowledgeGraph, Side
from engine.evaluation.metrics import Evaluation
from engine.runs.tensors import RunLike
from engine.search import CslsTopK, Matches
from engine.training.semi import Selection, no_selection
from engine.util.arrays import IntArray

START = "start"
APART = "mappings_apart"


def both_graphs(task: AlignmentTask, table: Callable[[KnowledgeGraph], pd.DataFrame]) -> pd.DataFrame:
    """One table of both graphs, with the graph's side in the first column."""
    parts: list[pd.DataFrame] = []
    for side in SIDES:
        part = table(task.graph(side))
        part.insert(0, "graph", side)
        parts.append(part)
    whole: pd.DataFrame = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return whole


def entity_table(graph: KnowledgeGraph) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "entity": np.arange(graph.num_entities),
            "uri": pd.Series(list(graph.entities), dtype="str"),
            "label": pd.Series(list(graph.labels), dtype="str"),
            "degree": graph.degrees,
        }
    )


def relation_table(graph: KnowledgeGraph) -> pd.DataFrame:
    return pd.DataFrame({"relation": np.arange(graph.num_relations), "name": pd.Series(list(graph.relations), dtype="str")})


def triple_table(graph: KnowledgeGraph) -> pd.DataFrame:
    return pd.DataFrame(graph.triples, columns=["head", "relation", "tail"])


def attribute_table(graph: KnowledgeGraph) -> pd.DataFrame:
    return graph.attributes[["entity", "attribute", "value"]].copy()


def link_table(task: AlignmentTask) -> pd.DataFrame:
    parts = {"train": task.train_links, "valid": task.valid_links, "test": task.test_links, "unsure": task.unsure_links}
    links = np.concatenate(list(parts.values()))
    roles = [role for role, links_of_role in parts.items() for _ in range(len(links_of_role))]
    return pd.DataFrame({"source": links[:, 0], "target": links[:, 1], "role": pd.Series(roles, dtype="str")})


def start_table(start: Selection) -> pd.DataFrame:
    """What training started with besides the seed links."""
    return pd.DataFrame({"source": start.pairs[:, 0], "target": start.pairs[:, 1], "probability": start.scores})


def selection_table(selections: Sequence[Selection]) -> pd.DataFrame:
    """Rounds count from 1; without rounds a table without rows."""
    rounds = np.repeat(np.arange(1, len(selections) + 1), [len(one) for one in selections])
    pairs = np.concatenate([one.pairs for one in selections] or [no_selection().pairs])
    scores = np.concatenate([one.scores for one in selections] or [no_selection().scores])
    return pd.DataFrame({"round": rounds, "source": pairs[:, 0], "target": pairs[:, 1], "score": scores})


def match_table(found: CslsTopK) -> pd.DataFrame:
    """Top matches of every entity, both directions. An entity whose embedding is a zero vector matches nothing, and nothing matches it."""
    source, target = (part.cpu().numpy() for part in found.zero_rows)
    parts = [match_rows("source", found.source_to_target, source, target), match_rows("target", found.target_to_source, target, source)]
    return pd.concat(parts, ignore_index=True)


def match_rows(side: Side, matches: Matches, zero_queries: npt.NDArray[np.bool_], zero_candidates: npt.NDArray[np.bool_]) -> pd.DataFrame:
    """Matches of one graph's entities; zero vectors, which come last in every list, are left out."""
    count, top = matches.indices.shape
    rows = pd.DataFrame(
        {
            "graph": pd.Series([side], dtype="str").repeat(count * top).to_numpy(),
            "entity": np.repeat(np.arange(count), top),
            "rank": np.tile(np.arange(1, top + 1), count),
            "match": matches.indices.cpu().numpy().ravel(),
            "cosine": matches.cosine.cpu().numpy().ravel(),
            "csls": matches.csls.cpu().numpy().ravel(),
        }
    )
    if not (zero_queries.any() or zero_candidates.any()):
        return rows
    return rows[~zero_queries[rows["entity"]] & ~zero_candidates[rows["match"]]]


def run_tables(task: AlignmentTask, found: CslsTopK, selections: Sequence[Selection] = ()) -> dict[str, pd.DataFrame]:
    """All tables of a run by name."""
    return {
        "entities": both_graphs(task, entity_table),
        "relations": both_graphs(task, relation_table),
        "triples": both_graphs(task, triple_table),
        "attributes": both_graphs(task, attribute_table),
        "links": link_table(task),
        "selections": selection_table(selections),
        "matches": match_table(found),
    }


def graph_of(tables: Mapping[str, pd.DataFrame], side: Side) -> KnowledgeGraph:
    """One graph again, from a run's tables ``entities``, ``relations`` and ``triples``; without its attributes."""
    entities, relations, triples = (table[table["graph"] == side] for table in (tables["entities"], tables["relations"], tables["triples"]))
    return KnowledgeGraph(
        name=side,
        entities=tuple(entities["uri"]),
        labels=tuple(entities["label"]),
        relations=tuple(relations["name"]),
        triples=triples[["head", "relation", "tail"]].to_numpy(dtype=np.int64),
    )


def seed_links(run: RunLike) -> IntArray:
    """(L, 2) the links that a run was trained on, source and target entities."""
    links = run.table("links")
    found: IntArray = links.loc[links["role"] == "train", ["source", "target"]].to_numpy(dtype=np.int64)
    return found


def hubness_tensors(found: CslsTopK, evaluation: Evaluation, num_source: int, num_target: int) -> dict[str, Tensor]:
    """Hubness terms within the pool of all entities and within the test pool."""
    tensors = {"source_all": found.hubness.source.cpu(), "target_all": found.hubness.target.cpu()}
    sides = (
        ("source_test", num_source, evaluation.source_pool, evaluation.hubness.source),
        ("target_test", num_target, evaluation.target_pool, evaluation.hubness.target),
    )
    for name, size, pool, terms in sides:
        tensors[name] = torch.full((size,), torch.nan)
        tensors[name][torch.from_numpy(pool)] = terms.cpu().float()
    return tensors


def parameter_tensors(model: torch.nn.Module) -> Mapping[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
