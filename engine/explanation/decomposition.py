"""A pair's CSLS score as parts that add up to it.

    CSLS(s, t) = 2 (cos(s, t) + w l(s, t)) - r(s) - r(t)

with cos taken apart by channel and layer (:mod:`engine.explanation.blocks`), l the similarity of the names and w its weight in literal runs (0 in the
others), and r the hubness terms within the pool. Where a name is missing, l is taken to be the cosine, as the search does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.errors import RunDamagedError
from engine.explanation.blocks import CosineBlocks, ScoreBlock, cosine_blocks
from engine.explanation.explainer import Explainer
from engine.explanation.frozen import FrozenVectors
from engine.runs.view import PairScore
from engine.search import StructureAndNames

Kind = Literal["multi-hop", "proxies", "names", "no name", "hubness"]
MOST_ROUNDING = 1e-3
"""A larger difference between a score and its parts is no rounding: weights and embeddings are not of one training."""


@dataclass(frozen=True)
class ScorePart:
    """A signed share of a CSLS score.

    Attributes:
        name: unique within a decomposition.
        channel, layer: for parts of the structure.
    """

    name: str
    value: float
    kind: Kind
    channel: str | None = None
    layer: int | None = None


@dataclass(frozen=True)
class Decomposition:
    """A score and its parts.

    Attributes:
        cosine, csls: as they are shown everywhere for the pair.
        names, weight: l and w; None where the run looks at no names, and l is None where either entity has none.
        parts: add up to ``csls``, but for ``rounding``.
        rounding: ``csls`` minus the sum of the parts: stored embeddings are float32, and so is the shown score.
    """

    cosine: float
    csls: float
    names: float | None
    weight: float | None
    parts: tuple[ScorePart, ...]
    rounding: float

    def total(self, *kinds: Kind) -> float:
        """The sum of the parts of some kinds."""
        return sum(part.value for part in self.parts if part.kind in kinds)


def decompose(explainer: Explainer, snapshot: FrozenVectors, pair: PairScore) -> Decomposition:
    """The parts of a pair's score.

    Args:
        explainer: of the run.
        snapshot: the pair's vectors on the run's whole graph.
        pair: its scores.

    Raises:
        RunDamagedError: the stored weights do not give the stored embeddings.
    """
    return with_parts(explainer, cosine_blocks(snapshot), pair)


def with_parts(explainer: Explainer, cosine: CosineBlocks, pair: PairScore) -> Decomposition:
    """Parts of the structure, then of the names, then hubness."""
    similarity, view = explainer.view.similarity, explainer.view
    weight = similarity.weight if isinstance(similarity, StructureAndNames) else None
    parts = [part for block in cosine.blocks for part in block_parts(block, explainer.config.encoder.proxy_matching)]
    if weight is not None and pair.names is not None:
        parts.append(ScorePart("names", 2 * weight * pair.names, "names"))
    elif weight is not None:
        parts.append(ScorePart("structure in place of a missing name", 2 * weight * cosine.cosine, "no name"))
    for side, entity in (("source", pair.source), ("target", pair.target)):
        parts.append(ScorePart(f"hubness of the {side}", -float(view.hubness(entity.side, pair.pool)[entity.index]), "hubness"))
    rounding = pair.csls - sum(part.value for part in parts)
    if abs(rounding) > MOST_ROUNDING * max(similarity.largest, 1.0):
        raise RunDamagedError(
            f"the run's weights give a score of {pair.csls - rounding:.4f} where its embeddings give {pair.csls:.4f}; train it again with --fresh."
        )
    return Decomposition(pair.cosine, pair.csls, pair.names, weight, tuple(parts), rounding)


def block_parts(block: ScoreBlock, proxies: bool) -> list[ScorePart]:
    """A block's share of a CSLS score: twice its share of the cosine."""
    name = f"{block.channel} channel, layer {block.layer}"
    own = [ScorePart(f"{name}: multi-hop", 2 * block.multi_hop, "multi-hop", block.channel, block.layer)]
    return [*own, ScorePart(f"{name}: proxies", 2 * block.proxies, "proxies", block.channel, block.layer)] if proxies else own
