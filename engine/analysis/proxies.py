"""Proxy matching (paper section 4.2) in its results: the entities nearest to each proxy, and whether two entities attend to the same proxies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

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
from engine.runs.tensors import InTurn
from engine.search import TopK, best_in_columns
from engine.search.divided import DividedSimilarity, Pairs, Question, View, nothing_found
from engine.search.parts import Divisible, Part, collected, split_part, structure_of
from engine.search.tiles import descending
from engine.training.orders import PartsOrder
from engine.util.arrays import IntArray
from engine.util.distributed import ALONE
from engine.util.threads import cut, spread

PROXY_TOP = 10

Similarities = Mapping[str, DividedSimilarity]
"""Channel -> (E1, P), (E2, P) cosines as rows, which stay with the processes that computed them."""
PAIRS_AT_ONCE = 2**16


@dataclass(frozen=True)
class ProxyCosines(PartsOrder):
    """The cosines of both graphs' entities with the proxies, by channel."""

    num_source: int
    num_target: int

    def parts(self, model: DualAMN) -> dict[str, Part]:
        shard = model.shard
        own = np.arange(self.num_source + self.num_target) if shard is None else shard.own
        return {
            channel: split_part(ALONE if shard is None else shard.ranks, own, rows, self.num_source, self.num_target)
            for channel, rows in proxy_similarities(model).items()
        }


@torch.no_grad()
def proxy_similarities(model: DualAMN) -> dict[str, Tensor]:
    """Channel -> (E, P) float32 cosine of the stacked entities' multi-hop embeddings with each proxy; empty without proxy matching.

    Several processes call this together; each computes the rows of its own entities.
    """
    if not model.config.proxy_matching:
        return {}
    unit = [unit_rows(proxies) for proxies in model.proxies]  # (P, D) of each channel
    found = {channel: torch.empty((model.num_entities, len(unit[c]))) for c, channel in enumerate(model.channels)}
    for rows, hidden in model.multi_hop_blocks():
        for c, channel in enumerate(model.channels):
            for block in row_blocks(hidden):
                part = hidden[block, c]
                found[channel][rows][block] = (part @ unit[c].T).div_(row_norms(part))
    return found


def proxy_tensors(similarities: Similarities) -> dict[str, InTurn]:
    """The similarities to keep: ``source_entity`` (E1, P), ``target_entity`` (E2, P), ``source_relation``, ``target_relation``, float16.

    A cosine is kept to within 0.0003, which changes an attention weight by less than 0.1 %.
    """
    return {
        f"{side}_{channel}": InTurn((cosines.shape[place], cosines.width), partial(half_rows, cosines, place), torch.float16)
        for channel, cosines in similarities.items()
        for place, side in enumerate(SIDES)
    }


def half_rows(cosines: DividedSimilarity, side: int, step: int) -> Iterator[Tensor]:
    return (rows.half() for rows in cosines.rows(side, step))


def proxy_top_table(similarities: Similarities) -> pd.DataFrame:
    """Each proxy's most similar entities of each graph, by channel; of equals the lower index first."""
    parts = [
        top_rows(channel, side, cosines.ask(BestInColumns(place, PROXY_TOP)))
        for channel, cosines in similarities.items()
        for place, side in enumerate(SIDES)
    ]
    return joined_parts("proxy_top", parts)


@dataclass(frozen=True)
class BestInColumns(Question):
    """The k entities of one side, 0 or 1, with the highest value in each column of its rows."""

    side: int
    k: int

    def answer(self, part: Part) -> TopK:
        own = part.turned() if self.side else part
        rows = structure_of(own.similarity).source
        columns, found = rows.shape[1], best_in_columns(rows, self.k)
        lists = nothing_found(columns, self.k, torch.device("cpu"))[:2]
        lists[0][:, : found.values.shape[1]] = found.values
        lists[1][:, : found.values.shape[1]] = torch.from_numpy(own.sources)[found.indices]
        size = part.ranks.size * columns
        places = torch.arange(columns) + part.ranks.rank * columns
        values, numbers = (
            one.view(len(one) // columns, columns, self.k).transpose(0, 1).flatten(1) for one in collected(part.ranks, places, lists, size)
        )
        order = descending(values.double(), numbers)[:, : min(self.k, own.shape[0])]
        return TopK(values.gather(1, order), numbers.gather(1, order))


def top_rows(channel: str, side: Side, best: TopK) -> pd.DataFrame:
    """The rows of one channel and graph."""
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
    ends = [torch.from_numpy(pairs[side].to_numpy().copy()) for side in SIDES]
    parts = [
        frame("pair_divergence", {**pairs, "channel": channel, "divergence": cosines.ask(Divergence(View(), *ends)).numpy()})
        for channel, cosines in similarities.items()
    ]
    return joined_parts("pair_divergence", parts)


@dataclass(frozen=True)
class Divergence(Pairs):
    """The divergence of both ends' attention, in place of their similarity."""

    def score(self, similarity: Divisible, rows: Tensor, columns: Tensor) -> Tensor:
        cosines, out = structure_of(similarity), torch.empty(len(rows), dtype=torch.float64)
        for chosen in cut(len(rows), PAIRS_AT_ONCE):
            both = torch.cat([cosines.source[rows[chosen]], cosines.target[columns[chosen]]])
            first = np.arange(len(both) // 2)
            out[chosen] = torch.from_numpy(attention_divergence(both, first, first + len(first)))
        return out


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
    return proxy_top_table(given.similarities)


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
