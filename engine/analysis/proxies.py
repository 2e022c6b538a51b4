"""Proxy matching (paper section 4.2) in its results: the entities nearest to each proxy, and whether two entities attend to the same proxies."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from engine.analysis.kernels import fill_divergence
from engine.analysis.schema import AnalysisInput, analysis_table, frame, joined_parts
from engine.data.knowledge_graph import SIDES, AlignmentTask, Side
from engine.model.dual_amn import DualAMN
from engine.model.proxies import row_blocks, row_norms, unit_rows
from engine.search import best_in_columns
from engine.util.arrays import IntArray
from engine.util.threads import spread

PROXY_TOP = 10

Similarities = Mapping[str, Tensor]  # channel -> (E, P)


@torch.no_grad()
def proxy_similarities(model: DualAMN) -> dict[str, Tensor]:
    """Channel -> (E, P) float32 cosine of the stacked entities' multi-hop embeddings with each proxy; empty without proxy matching."""
    if not model.config.proxy_matching:
        return {}
    unit = [unit_rows(proxies) for proxies in model.proxies]  # (P, D) of each channel
    found = {channel: torch.empty((model.adjacency.num_entities, len(unit[c]))) for c, channel in enumerate(model.channels)}
    for rows, hidden in model.multi_hop_blocks():
        for c, channel in enumerate(model.channels):
            for block in row_blocks(hidden):
                part = hidden[block, c]
                found[channel][rows][block] = (part @ unit[c].T).div_(row_norms(part))
    return found


def proxy_tensors(similarities: Similarities, num_source: int) -> dict[str, Tensor]:
    """The similarities to keep: ``source_entity`` (E1, P), ``target_entity`` (E2, P), ``source_relation``, ``target_relation``, float16.

    A cosine is kept to within 0.0003, which changes an attention weight by less than 0.1 %.
    """
    return {
        f"{side}_{channel}": part.half()
        for channel, values in similarities.items()
        for side, part in zip(SIDES, (values[:num_source], values[num_source:]), strict=True)
    }


def proxy_top_table(similarities: Similarities, num_source: int) -> pd.DataFrame:
    """Each proxy's most similar entities of each graph, by channel; of equals the lower index first."""
    parts = [
        top_rows(channel, side, part)
        for channel, values in similarities.items()
        for side, part in zip(SIDES, (values[:num_source], values[num_source:]), strict=True)
    ]
    return joined_parts("proxy_top", parts)


def top_rows(channel: str, side: Side, similarity: Tensor) -> pd.DataFrame:
    """The rows of one channel and graph, whose entities' similarities are (E, P)."""
    best = best_in_columns(similarity, PROXY_TOP)
    proxies, kept = best.values.shape
    return frame(
        "proxy_top",
        {
            "channel": channel,
            "graph": side,
            "proxy": np.repeat(np.arange(proxies), kept),
            "rank": np.tile(np.arange(1, kept + 1), proxies),
            "entity": best.indices.reshape(-1).numpy(),
            "similarity": best.values.reshape(-1).numpy(),
        },
    )


def pair_divergence_table(similarities: Similarities, task: AlignmentTask, matches: pd.DataFrame) -> pd.DataFrame:
    """How differently the two entities of a known link or of a first match attend to the proxies, by channel."""
    pairs = interesting_pairs(task, matches)
    first, second = pairs["source"].to_numpy(), pairs["target"].to_numpy() + task.source.num_entities
    parts = [
        frame("pair_divergence", {**pairs, "channel": channel, "divergence": attention_divergence(values, first, second)})
        for channel, values in similarities.items()
    ]
    return joined_parts("pair_divergence", parts)


def interesting_pairs(task: AlignmentTask, matches: pd.DataFrame) -> pd.DataFrame:
    """source, target, role ("" where no link is known), from_source, from_target (whose first match it is), by source and target."""
    width = max(task.target.num_entities, 1)
    links = np.concatenate(task.all_links())
    names = np.repeat(["train", "valid", "test", "unsure"], [len(part) for part in task.all_links()])
    known, first_seen = np.unique(links @ [width, 1], return_index=True)
    best = matches[matches["rank"] == 1]
    rows = {side: best[best["graph"] == side] for side in SIDES}
    forward = rows["source"]["entity"].to_numpy() * width + rows["source"]["match"].to_numpy()
    backward = rows["target"]["match"].to_numpy() * width + rows["target"]["entity"].to_numpy()
    keys = np.unique(np.concatenate([known, forward, backward]).astype(np.int64))
    roles = np.full(len(keys), "", dtype=object)
    roles[np.searchsorted(keys, known)] = names[first_seen]
    return pd.DataFrame(
        {
            "source": keys // width,
            "target": keys % width,
            "role": pd.Series(roles, dtype="str"),
            "from_source": np.isin(keys, forward),
            "from_target": np.isin(keys, backward),
        }
    )


def attention_divergence(similarity: Tensor, first: IntArray, second: IntArray) -> npt.NDArray[np.float64]:
    """(n,) Jensen-Shannon divergence, in bits (0 .. 1), of the attention that two rows of (E, P) similarities give the proxies."""
    divergence, values = np.empty(len(first)), similarity.contiguous().numpy()
    spread(lambda start, stop: fill_divergence(values, first, second, start, stop, divergence), len(first), len(first) * values.shape[1])
    return divergence


@analysis_table(
    "proxy_top",
    {"channel": "str", "graph": "str", "proxy": "int64", "rank": "int64", "entity": "int64", "similarity": "float64"},
)
def _proxy_top(given: AnalysisInput) -> pd.DataFrame:
    return proxy_top_table(given.similarities, given.task.source.num_entities)


@analysis_table(
    "pair_divergence",
    {
        "source": "int64",
        "target": "int64",
        "role": "str",
        "from_source": "bool",
        "from_target": "bool",
        "channel": "str",
        "divergence": "float64",
    },
)
def _pair_divergence(given: AnalysisInput) -> pd.DataFrame:
    return pair_divergence_table(given.similarities, given.task, given.matches)
