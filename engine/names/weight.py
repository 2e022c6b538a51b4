"""How much names should count beside structure, chosen on validation links; never on test links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from engine.data.knowledge_graph import AlignmentTask, Finding, empty_links
from engine.data.labels import identifier_tail
from engine.errors import ConfigError, RunDamagedError
from engine.evaluation.metrics import evaluate_links
from engine.names.encoders import NgramEncoder
from engine.search import BestNames, LiteralSimilarity, NameSimilarity, SparseSimilarity, StructuralSimilarity
from engine.util.arrays import IntArray

# Names' vectors as plain tensors, so that a run folder can keep them (safetensors) and a page can score any pair from them.
#
# Dense names are two matrices (``source``, ``target``). Sparse ones are CSR arrays: ``source.starts``, ``source.features``, ``source.values``, the
# same for the target, and ``features``, the number of columns. Where entities have several names, rows are names, and
# ``source.entities`` and ``target.entities`` say where each entity's begin.

DENSE_KEYS = ("source", "target")
ENTITIES = tuple(f"{side}.entities" for side in DENSE_KEYS)
"""Where each entity's names begin, where entities have several."""
PARTS = ("starts", "features", "values")
SPARSE_KEYS = ("features", *(f"{side}.{part}" for side in DENSE_KEYS for part in PARTS))


def name_tensors(names: NameSimilarity) -> dict[str, Tensor]:
    """The tensors that :func:`name_similarity` makes the same similarity of."""
    if isinstance(names, BestNames):
        starts = {f"{side}.entities": torch.from_numpy(begins) for side, begins in zip(DENSE_KEYS, names.starts, strict=True)}
        return {**name_tensors(names.base), **starts}
    if isinstance(names, StructuralSimilarity):
        return {"source": names.source.cpu().contiguous(), "target": names.target.cpu().contiguous()}
    tensors = {"features": torch.tensor([names.source.shape[1]])}
    for side, rows in (("source", names.source), ("target", names.target)):
        arrays = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
        tensors |= {f"{side}.{part}": torch.from_numpy(array) for part, array in zip(PARTS, arrays, strict=True)}
    return tensors


def name_similarity(tensors: Mapping[str, Tensor]) -> NameSimilarity:
    """The inverse of :func:`name_tensors`.

    Raises:
        RunDamagedError: tensors are missing or do not go together.
    """
    try:
        base = single_names(tensors)
        if not all(key in tensors for key in ENTITIES):
            return base
        return BestNames(base, *(tensors[key].numpy() for key in ENTITIES))
    except (KeyError, IndexError, ValueError) as error:
        raise RunDamagedError(f"the run's names are damaged ({error}); train the literal variant again with --fresh.") from None


def single_names(tensors: Mapping[str, Tensor]) -> StructuralSimilarity | SparseSimilarity:
    """The similarity of single names."""
    if all(key in tensors for key in DENSE_KEYS):
        return StructuralSimilarity(tensors["source"], tensors["target"])
    width = int(tensors["features"][0])
    return SparseSimilarity(*(sparse_rows(tensors, side, width) for side in DENSE_KEYS))


def sparse_rows(tensors: Mapping[str, Tensor], side: str, width: int) -> sparse.csr_array:
    """(E, width) rows of one graph; ValueError where the arrays do not fit together."""
    starts, features, values = (tensors[f"{side}.{part}"].numpy() for part in PARTS)
    rows = sparse.csr_array((values, features, starts), shape=(len(starts) - 1, width))
    rows.check_format(full_check=True)
    return rows


WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
PAPER_WEIGHT = 1.0
LARGEST_POOL = 5000
"""Candidates a side that a weight is tried on."""


@dataclass(frozen=True)
class WeightChoice:
    """The weight with the best validation MRR.

    Attributes:
        weight: the chosen one.
        mrr: mean of both directions' MRR by weight that was tried.
        links: validation links that it was chosen on.
    """

    weight: float
    mrr: Mapping[float, float]
    links: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a manifest."""
        return {"weight": self.weight, "links": self.links, "mrr": {f"{weight:g}": value for weight, value in self.mrr.items()}}


def choose_weight(
    structure: StructuralSimilarity,
    names: NameSimilarity,
    valid_links: IntArray,
    weights: Sequence[float] = WEIGHTS,
    k: int = 10,
    *,
    train_links: IntArray | None = None,
    seed: int = 0,
) -> WeightChoice:
    """Try weights on the validation links. Of equals the one nearest to the paper's 1 is taken.

    Validation links are few, and among few candidates names look better than they will among all: so entities of no known link, drawn with the seed,
    join the pool up to ``LARGEST_POOL`` a side. Which of them belong together is not looked at.

    Args:
        structure: (E1, E2) s. It must come from training that has not seen these links, or names will look worth less than they are.
        names: (E1, E2) l.
        valid_links: (L, 2).
        weights: candidates for w in s + w l.
        k: neighbours in CSLS's hubness terms.
        train_links: (T, 2) links that ``structure`` was trained on; their entities stay out of the pool, for they are too well known.
        seed: draws the pool.

    Raises:
        ConfigError: no validation links, or no weights.
    """
    require_valid_links(valid_links)
    if not len(weights):
        raise ConfigError("there are no weights to choose from; add some, for example 0.5, 1 and 2.")
    pools = [
        pool_with_rivals(valid_links[:, side], empty_links()[:, 0] if train_links is None else train_links[:, side], size, seed)
        for side, size in enumerate(structure.shape)
    ]
    pooled = LiteralSimilarity(structure, names).select(*(torch.from_numpy(pool) for pool in pools))
    links = np.stack([np.searchsorted(pool, valid_links[:, side]) for side, pool in enumerate(pools)], axis=1)
    mrr = {float(weight): mean_mrr(pooled.with_weight(weight), links, k) for weight in weights}
    best = max(mrr, key=lambda weight: (mrr[weight], -abs(weight - PAPER_WEIGHT)))
    return WeightChoice(best, mrr, len(valid_links))


def require_valid_links(valid_links: IntArray) -> None:
    """
    Raises:
        ConfigError: there are none to choose a weight on.
    """
    if not len(valid_links):
        raise ConfigError(
            "there are no validation links to choose the weight of the names; hold some out (data.valid_ratio=0.1), or set "
            f"literal.weight (paper: {PAPER_WEIGHT:g})."
        )


def pool_with_rivals(linked: IntArray, trained: IntArray, size: int, seed: int) -> IntArray:
    """The linked entities of one graph and up to ``LARGEST_POOL`` in all of those that were not trained on, ascending."""
    linked = np.unique(linked)
    others = np.setdiff1d(np.arange(size), np.concatenate([linked, trained]))
    count = min(max(LARGEST_POOL - len(linked), 0), len(others))
    drawn = np.random.default_rng([seed, size]).choice(others, count, replace=False)
    return np.sort(np.concatenate([linked, drawn])).astype(np.int64)


def mean_mrr(similarity: LiteralSimilarity, links: IntArray, k: int) -> float:
    """Mean of both directions' MRR among all of a pool."""
    found = evaluate_links(similarity, links, k, pool="all", bootstrap=0, links_name="validation")
    return float(np.mean([found.source_to_target.mrr, found.target_to_source.mrr]))


# Does the task need a method at all? What names or identifiers solve on their own, measured on training and validation links only.

NEARLY_SOLVED = 0.9
"""Share of the links from which on names alone count as the solution."""
FEWEST = 20
"""Links below which a share says nothing."""


def leak_warning(task: AlignmentTask, names: NameSimilarity) -> tuple[Finding, ...]:
    """Warnings where names alone, or identifiers alone, find nearly all known counterparts; empty where they do not.

    Test links are never looked at. The pool is the entities of the training and validation links, as the test's is that of the test links.

    Args:
        task: whose links.
        names: (E1, E2) similarity of the entities' names.
    """
    links = np.concatenate([task.train_links, task.valid_links])
    return tuple(leaks(task, names, links)) if len(links) >= FEWEST else ()


def leaks(task: AlignmentTask, names: NameSimilarity, links: IntArray) -> Iterator[Finding]:
    by_name = solved_share(names, links)
    if by_name >= NEARLY_SOLVED:
        message = f"Names alone find {by_name:.0%} of the {len(links):,} training and validation links."
        advice = "Results with these names say little about the method; compare them with the results of names alone."
        yield Finding("names-nearly-solve", "warning", message, round(by_name * len(links)), advice=advice)
    sources, targets = np.unique(links[:, 0]), np.unique(links[:, 1])
    tails = ([identifier_tail(graph.entities[entity]) for entity in used] for graph, used in ((task.source, sources), (task.target, targets)))
    local = np.stack([np.searchsorted(sources, links[:, 0]), np.searchsorted(targets, links[:, 1])], axis=1)
    by_identifier = solved_share(NgramEncoder().encode(*tails).similarity, local)
    if by_identifier >= NEARLY_SOLVED:
        message = f"Similar identifiers alone find {by_identifier:.0%} of the {len(links):,} training and validation links."
        advice = "Names derived from identifiers leak the links; use other names, or interpret the results with care."
        yield Finding("identifiers-nearly-solve", "warning", message, round(by_identifier * len(links)), advice=advice)


def solved_share(names: NameSimilarity, links: IntArray) -> float:
    """Mean Hits@1 of both directions by names alone (CSLS within the links' entities; ties are no hits)."""
    found = evaluate_links(names, links, bootstrap=0)
    return float(np.mean([found.source_to_target.hits_at_1, found.target_to_source.hits_at_1]))
