"""A score taken apart: by channel and layer, by messages of neighbours; and the probability by its features."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from engine.data.knowledge_graph import SIDES
from engine.errors import RunDamagedError
from engine.evaluation.calibration import FEATURE_COLUMNS, FEATURES, Calibration, logistic
from engine.explanation.encoder import FrozenEncoder, FrozenVectors, Received
from engine.explanation.explainer import Explainer
from engine.runs.tensors import check_numbers
from engine.runs.view import PairScore, RunView
from engine.search import LiteralSimilarity
from engine.util.arrays import FloatArray

# The cosine of two entities, taken apart by channel and layer: a sum that is exact, because a dot product is one.
#
#     cos(s, t) = sum over channels c and layers l of f_s[c, l] . f_t[c, l] / (|f_s| |f_t|)
#
# with final = multi-hop - what proxies and gate subtract, f = h - p, so that each block is h_s . h_t and a proxy correction, f_s . f_t - h_s . h_t.


@dataclass(frozen=True)
class ScoreBlock:
    """One channel and layer's share of a cosine.

    Attributes:
        multi_hop: of the multi-hop embeddings, before proxies and gate.
        proxies: what proxies and gate add to it (mostly they subtract).
    """

    channel: str
    layer: int
    multi_hop: float
    proxies: float

    @property
    def value(self) -> float:
        return self.multi_hop + self.proxies


@dataclass(frozen=True)
class CosineBlocks:
    """A cosine as a sum of blocks.

    Attributes:
        blocks: channel by channel, each by layer.
        norms: |f_s| |f_t|, which all dot products are divided by; 0 where one of the vectors is zero, and then every part is.
    """

    blocks: tuple[ScoreBlock, ...]
    norms: float

    @property
    def cosine(self) -> float:
        return sum(block.value for block in self.blocks)

    @property
    def multi_hop(self) -> float:
        return sum(block.multi_hop for block in self.blocks)

    @property
    def scale(self) -> float:
        """What a dot product is multiplied by to be a share of the cosine."""
        return 1 / self.norms if self.norms else 0.0


def shown_layers(encoder: FrozenEncoder) -> range:
    """The layers that embeddings are made of: all, or without multi-hop embeddings the last."""
    count = encoder.config.layers
    return range(count + 1) if encoder.config.multi_hop else range(count, count + 1)


def cosine_blocks(snapshot: FrozenVectors) -> CosineBlocks:
    """The cosine of a snapshot's first two entities."""
    encoder, width = snapshot.encoder, snapshot.encoder.dim
    final, hidden = snapshot.final[:2], snapshot.hidden[:2]  # (2, C, D)
    norms = float(np.prod(np.linalg.norm(final.reshape(2, -1), axis=1)))
    scale = 1 / norms if norms else 0.0
    blocks = []
    for c, channel in enumerate(encoder.channels):
        for at, layer in enumerate(shown_layers(encoder)):
            part = slice(at * width, (at + 1) * width)
            multi_hop, whole = (float(x[0, c, part] @ x[1, c, part]) * scale for x in (hidden, final))
            blocks.append(ScoreBlock(channel, layer, multi_hop, whole - multi_hop))
    return CosineBlocks(tuple(blocks), norms)


# Who carries the multi-hop product of two entities: a matrix of neighbours times neighbours, or of relations times relations, whose entries add up.
#
# A layer's vector is x = tanh(S), S = sum_k m_k over the messages m_k. With the messages scaled by tanh(S) / S in each dimension (1 where S is 0),
# x is the sum of the scaled messages itself, and
#
#     x_s . x_t = sum over k, l of (scaled m_k of s) . (scaled m_l of t).
#
# Summed over layers and channels, what a neighbour sends is one row: its scaled messages side by side. All neighbour pairs together are then one
# product of two such matrices, and a neighbour's total is its row's product with the other side's sum; neither needs an array of all pairs.

Key = TypeVar("Key", bound=Hashable)
CELLS = 1 << 21
"""Pairs that are looked at in one go: 16 MiB."""
TINY = 1e-12
"""Sums below it count as 0, where tanh(S) / S is 1."""


@dataclass(frozen=True)
class Sent(Generic[Key]):
    """What n senders, by key, add to an entity's multi-hop embedding.

    Attributes:
        keys: n stacked neighbours, or n tuples of directed relations.
        vectors: (n, W) scaled messages, the blocks side by side; their sum is the entity's multi-hop embedding, as far as the keys make it.
        weights: (n,) the share of attention, averaged over channels and the layers from 1 on.
    """

    keys: tuple[Key, ...]
    vectors: FloatArray  # (n, W)
    weights: FloatArray  # (n,)


@dataclass(frozen=True)
class Products(Generic[Key]):
    """The products of what two entities' senders sent: an n x m matrix that is never written down.

    Attributes:
        scale: what a dot product is multiplied by to be a share of the score.
    """

    source: Sent[Key]
    target: Sent[Key]
    scale: float

    @property
    def total(self) -> float:
        """The sum of all n m entries."""
        return float(self.source.vectors.sum(axis=0) @ self.target.vectors.sum(axis=0)) * self.scale

    def source_totals(self) -> FloatArray:
        """(n,) the sum of each row."""
        totals: FloatArray = self.source.vectors @ self.target.vectors.sum(axis=0) * self.scale
        return totals

    def target_totals(self) -> FloatArray:
        """(m,) the sum of each column."""
        totals: FloatArray = self.target.vectors @ self.source.vectors.sum(axis=0) * self.scale
        return totals

    def value(self, row: int, column: int) -> float:
        return float(self.source.vectors[row] @ self.target.vectors[column]) * self.scale

    def strongest(self, count: int, sign: int) -> list[tuple[int, int, float]]:
        """(row, column, value) of the ``count`` largest positive (sign 1) or smallest negative (sign -1) entries, strongest first."""
        if not count or not len(self.source.keys) or not len(self.target.keys):
            return []
        best = [np.empty((0, 3))]
        for top, block in self._blocks():
            flat = sign * block.ravel()
            kept = np.argpartition(-flat, count - 1)[:count] if len(flat) > count else np.arange(len(flat))
            kept = kept[flat[kept] > 0]
            row, column = np.divmod(kept, block.shape[1])
            best = [np.concatenate([*best, np.stack([row + top, column, flat[kept]], axis=1)])]
        rows = best[0][np.lexsort((best[0][:, 1], best[0][:, 0], -best[0][:, 2]))][:count]
        return [(int(row), int(column), sign * float(value)) for row, column, value in rows]

    def positive_and_negative(self) -> tuple[float, float]:
        """The sums of the positive and of the negative entries."""
        positive = negative = 0.0
        for _, block in self._blocks():
            positive += float(block.clip(min=0).sum())
            negative += float(block.clip(max=0).sum())
        return positive, negative

    def _blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """The matrix in stretches of rows, each with its first row's number."""
        step = max(CELLS // max(len(self.target.keys), 1), 1)
        for top in range(0, len(self.source.keys), step):
            yield top, (self.source.vectors[top : top + step] @ self.target.vectors.T) * self.scale


def scaled(received: Received) -> FloatArray:
    """(n, d) messages scaled so that they sum to the tanh of their sum."""
    whole = received.messages.sum(axis=0)
    flat = np.abs(whole) < TINY
    ratio = np.where(flat, 1.0, np.tanh(whole) / np.where(flat, 1.0, whole))
    messages: FloatArray = received.messages * ratio
    return messages


def by_neighbour(snapshot: FrozenVectors, entity: int) -> Sent[int]:
    """What each neighbour sends, and the entity itself (its own features at layer 0, and self-loops).

    Layer 0 of the relation channel has no neighbours: it is left out, and a part of its own (:func:`own_relations`).
    """
    return _sent(snapshot, entity, lambda received: received.senders.tolist(), leave_out=(0, "relation"))


def by_relation(snapshot: FrozenVectors, entity: int) -> Sent[tuple[int, ...]]:
    """What comes along each relation. Layer 0 of the entity channel has no relations: it is left out, and a part of its own."""
    return _sent(snapshot, entity, lambda received: received.relations, leave_out=(0, "entity"))


def _sent(snapshot: FrozenVectors, entity: int, keys_of: Callable[[Received], Sequence[Key]], leave_out: tuple[int, str]) -> Sent[Key]:
    encoder, width = snapshot.encoder, snapshot.encoder.dim
    blocks = [(layer, c) for c, name in enumerate(encoder.channels) for layer in shown_layers(encoder) if (layer, name) != leave_out]
    place: dict[Key, int] = {}
    parts = [(snapshot.received(entity, layer, c), layer) for layer, c in blocks]
    rows = [np.array([place.setdefault(key, len(place)) for key in keys_of(received)], dtype=np.int64) for received, _ in parts]
    vectors, weights = np.zeros((len(place), width * len(blocks))), np.zeros(len(place))
    attentive = max(sum(layer > 0 for _, layer in parts), 1)
    for at, ((received, layer), own) in enumerate(zip(parts, rows, strict=True)):
        np.add.at(vectors[:, at * width : (at + 1) * width], own, scaled(received))
        if layer:
            np.add.at(weights, own, received.weights / attentive)
    return Sent(tuple(place), vectors, weights)


def left_out(snapshot: FrozenVectors, entity: int, layer: int, channel: str) -> FloatArray:
    """(d,) the vector of one layer and channel; zero where the embedding does not have it."""
    encoder = snapshot.encoder
    if channel not in encoder.channels or layer not in shown_layers(encoder):
        return np.zeros(encoder.dim)
    vector: FloatArray = snapshot.layers[layer][snapshot.entities.index(entity), encoder.channels.index(channel)]
    return vector


# A pair's CSLS score as parts that add up to it.
#
#     CSLS(s, t) = 2 (cos(s, t) + w l(s, t) + u v(s, t)) - r(s) - r(t)
#
# with cos taken apart by channel and layer (:mod:`engine.explanation.decomposition`), l and v the similarities of names and of other values, w and u
# their weights in literal runs (0 in the others), and r the hubness terms within the pool. Where a name is missing, l is taken to be the cosine, as
# the search does.

Kind = Literal["multi-hop", "proxies", "names", "no name", "values", "hubness"]
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
    weight = similarity.weight if isinstance(similarity, LiteralSimilarity) else None
    parts = [part for block in cosine.blocks for part in block_parts(block, explainer.config.encoder.proxy_matching)]
    if weight is not None and pair.names is not None:
        parts.append(ScorePart("names", 2 * weight * pair.names, "names"))
    elif weight is not None:
        parts.append(ScorePart("structure in place of a missing name", 2 * weight * cosine.cosine, "no name"))
    if isinstance(similarity, LiteralSimilarity) and pair.values is not None:
        parts.append(ScorePart("values", 2 * similarity.value_weight * pair.values, "values"))
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


# What raised and lowered a pair's calibrated probability: the parts of its log odds, from what the run has stored.

RANKS = ("source rank", "target rank", "plan weight")
"""Features that are plain logarithms."""
COUNTS = ("source degree", "target degree", "aligned neighbours")
"""Features that are logarithms of 1 + a count."""


@dataclass(frozen=True)
class ProbabilityPart:
    """What one feature does to a probability.

    Attributes:
        feature: its name, of ``FEATURES``.
        value: of this pair.   usual: of the predictions that the calibration was fitted on, on average. Neither is a logarithm, so the usual
            rank, degree, count or weight is a geometric mean.
        log_odds: what the difference adds to the log odds.
    """

    feature: str
    value: float
    usual: float
    log_odds: float


@dataclass(frozen=True)
class ProbabilityParts:
    """A pair's probability, and what it is made of.

    Attributes:
        probability: as the run has stored it.
        average: probability of a pair that is average in all features.
        parts: the largest effect first. The log odds of ``average`` plus theirs are those of ``probability``.
    """

    probability: float
    average: float
    parts: tuple[ProbabilityPart, ...]


def probability_parts(view: RunView, calibration: Mapping[str, Any], source: int, target: int) -> ProbabilityParts | None:
    """The parts of a pair's probability; None where the run gives it none, or was made by a version that stored no features.

    Args:
        view: of the run.
        calibration: what the run has stored as ``calibration``.
        source, target: the pair.

    Raises:
        RunDamagedError: the calibration or the table cannot be read.
    """
    if not view.has("probabilities") or not dict(calibration.get("fit") or {}).get("calibrated"):
        return None
    for side, entity, match in zip(SIDES, (source, target), (target, source), strict=True):
        table = view.run.table("probabilities", where={"graph": side, "entity": entity})
        row = table[table["match"] == match]
        if len(row) and set(FEATURE_COLUMNS) <= set(row.columns):
            check_numbers(view.run, row, ("probability", *FEATURE_COLUMNS), "probabilities")
            fit = Calibration.from_dict(calibration["fit"])
            features = row[list(FEATURE_COLUMNS)].to_numpy(dtype=np.float64)[:1]
            return ProbabilityParts(float(row["probability"].iloc[0]), float(logistic(np.array(fit.intercept))), feature_parts(fit, features))
    return None


def feature_parts(fit: Calibration, features: Any) -> tuple[ProbabilityPart, ...]:
    """Of one pair, (1, F)."""
    effects = fit.contributions(features)[0].tolist()
    values = dict(zip(FEATURES, features[0].tolist(), strict=True))
    parts = [
        ProbabilityPart(name, plain_value(name, values[name]), plain_value(name, usual), effect)
        for name, usual, effect in zip(fit.features, fit.means, effects, strict=True)
    ]
    return tuple(sorted(parts, key=lambda part: -abs(part.log_odds)))


def plain_value(feature: str, value: float) -> float:
    """A feature's value in readable form: a rank, a degree, a count, and not its logarithm."""
    if feature in RANKS:
        return float(np.exp(value))
    return float(np.expm1(value)) if feature in COUNTS else value
