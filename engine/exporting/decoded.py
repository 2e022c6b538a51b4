"""The alignment that a decoder makes of all entities of a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from engine.alignment_table import Alignment, alignments, described_matches
from engine.datasets.knowledge_graph import SIDES, Side
from engine.decoding import DECODERS, GRAPH_DECODERS, NONE, Decoding, GraphEvidence, find_candidates, get_decoder
from engine.decoding.base import best_pairs
from engine.errors import ConfigError
from engine.exporting.reviewed import all_hubness
from engine.matching import RunView
from engine.run_similarity import RunLike
from engine.run_tables import graph_of

STORED = "csls"
"""The decoder whose alignment every run has stored."""
DECODER_NAMES: tuple[str, ...] = (STORED, *sorted({*DECODERS, *GRAPH_DECODERS} - {STORED}))


def decoded_alignments(view: RunView, decoder: str = STORED) -> Mapping[Side, Alignment]:
    """What a decoder makes of all entities of both graphs, seen from either; entities that it leaves without a counterpart have no row.

    ``csls`` comes from the run's stored matches. Any other needs candidate lists: memory for some hundred pairs an entity, and the time of a search.

    Raises:
        ConfigError: no decoder has this name.
        RunError: a table or tensor of the run cannot be read.
    """
    if decoder == STORED:
        return alignments(view)
    if decoder not in DECODER_NAMES:
        raise ConfigError(f"unknown decoder '{decoder[:40]}'; known are {', '.join(DECODER_NAMES)}.")
    terms = all_hubness(view)
    candidates = find_candidates(view.similarity, terms.k, terms=terms)
    decoding = get_decoder(decoder, graph_evidence(view.run) if decoder in GRAPH_DECODERS else None).decode(candidates)
    return described_matches(view, {side: _predictions(decoding, side) for side in SIDES})


def graph_evidence(run: RunLike) -> GraphEvidence:
    """A run's graphs and seed links, for decoders that look at them."""
    tables = {name: run.table(name) for name in ("entities", "relations", "triples", "links")}
    seeds = tables["links"].loc[tables["links"]["role"] == "train", ["source", "target"]].to_numpy(dtype="int64")
    return GraphEvidence.of(graph_of(tables, "source"), graph_of(tables, "target"), seeds)


def _predictions(decoding: Decoding, side: Side) -> pd.DataFrame:
    """entity, match, csls, cosine, margin (CSLS ahead of the best other candidate, negative where that one is nearer) of each prediction."""
    candidates, lists = decoding.candidates, decoding.candidates.lists(side)
    chosen = decoding.chosen(side)
    entity = np.flatnonzero(chosen != NONE)
    chosen = chosen[entity]
    best, second = (part[entity] for part in best_pairs(lists, candidates.csls))
    rival = np.where(best == chosen, second, best)
    ahead = candidates.csls[chosen] - candidates.csls[rival]
    return pd.DataFrame(
        {
            "entity": entity.astype(np.int32),
            "match": lists.others[chosen].astype(np.int32),
            "csls": candidates.csls[chosen],
            "cosine": candidates.similarity[chosen],
            "margin": np.where(rival == NONE, np.float32(np.nan), ahead),
        }
    )
