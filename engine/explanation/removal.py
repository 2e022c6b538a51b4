"""Evidence that can be removed: triples, chosen one by one, by neighbour, by relation, or as the strongest there are; and shared values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ConfigError, EntityError, EvidenceError
from engine.explanation.decomposition import TINY, Sent, shown_layers
from engine.explanation.encoder import FrozenVectors, Received, Triple
from engine.explanation.evidence import neighbour_products
from engine.explanation.explainer import Explainer, short_relation
from engine.explanation.intervention import Evidence
from engine.explanation.rivals import runner_up
from engine.explanation.value_evidence import VALUE_FORM, named_values
from engine.runs.entities import Entity, folded_label
from engine.runs.entities import other as other_graph
from engine.runs.view import Pool
from engine.util.arrays import FloatArray, IntArray
from engine.util.text import shortened

# What each neighbour's removal would cost, estimated for all neighbours of a pair at once.
#
# What a neighbour carries is not what its removal costs: attention and means are shares, so what is left is scaled up when a neighbour goes. The
# estimate follows that through the entity's own sums, S without k = (S - m_k) / (1 - a_k) in each layer and channel, then tanh, proxies, gate and
# cosine as they are. It leaves out only how the neighbours' own vectors would change. Where a rival is given, the cost is what the lead over it would
# lose: a neighbour that carries as much for the rival is no evidence for the one against the other.

AT_ONCE = 1 << 20
"""Values of multi-hop embeddings that are finished in one go: 8 MiB."""


@dataclass(frozen=True)
class Costs:
    """Estimated loss of n neighbours' removal, as shares of the CSLS score (of the lead over a rival where one is given).

    Attributes:
        neighbours: (n,) stacked entities.
        costs: (n,) negative where the score would rise.
    """

    neighbours: tuple[int, ...]
    costs: FloatArray


def estimated_costs(snapshot: FrozenVectors, entity: int, others: FloatArray) -> Costs:
    """The cost of each of an entity's neighbours.

    Args:
        snapshot: holds the entity (by its stacked index).
        entity: whose neighbours.
        others: (1 or 2, C D) final embedding of its counterpart, and of the rival counterpart.
    """
    neighbours = tuple(sorted(set(snapshot.graph.row(entity).senders.tolist()) - {entity}))
    at = snapshot.entities.index(entity)
    before = lead_over_rival(snapshot.final[at].reshape(1, -1), others)
    costs, step = np.empty(len(neighbours)), max(AT_ONCE // max(snapshot.hidden[at].size, 1), 1)
    for start in range(0, len(neighbours), step):
        part = neighbours[start : start + step]
        final = snapshot.encoder.finished(hidden_without(snapshot, entity, part))
        costs[start : start + step] = before - lead_over_rival(final.reshape(len(part), -1), others)
    return Costs(neighbours, costs)


def lead_over_rival(final: FloatArray, others: FloatArray) -> FloatArray:
    """(n,) twice the cosine with the counterpart, minus twice the cosine with the rival."""
    unit, them = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY) for rows in (final, others))
    cosines = 2 * unit @ them.T
    values: FloatArray = cosines[:, 0] - (cosines[:, 1] if len(others) > 1 else 0.0)
    return values


def hidden_without(snapshot: FrozenVectors, entity: int, neighbours: tuple[int, ...]) -> FloatArray:
    """(n, C, D) an entity's multi-hop embedding without each of n neighbours, everybody else's vectors held fixed."""
    encoder = snapshot.encoder
    channels = []
    for c, channel in enumerate(encoder.channels):
        layers = []
        for layer in shown_layers(encoder):
            received = snapshot.received(entity, layer, c)
            gone = lost_relations(snapshot, entity, neighbours) if (layer, channel) == (0, "relation") else sent_by(received, neighbours)
            layers.append(np.tanh(sums_without(received, gone)))
        channels.append(np.concatenate(layers, axis=1))
    return np.stack(channels, axis=1)


def sent_by(received: Received, neighbours: tuple[int, ...]) -> list[IntArray]:
    """For each neighbour the places of its messages."""
    order = np.argsort(received.senders, kind="stable")
    left, right = (np.searchsorted(received.senders[order], neighbours, side) for side in ("left", "right"))
    return [order[a:b] for a, b in zip(left, right, strict=True)]


def lost_relations(snapshot: FrozenVectors, entity: int, neighbours: tuple[int, ...]) -> list[IntArray]:
    """For each neighbour the places of the relations that the entity would not have without it."""
    graph = snapshot.graph
    row, whole = graph.row(entity), graph.whole
    holders: dict[int, set[int]] = {}
    for sender, unit in zip(row.senders.tolist(), row.units.tolist(), strict=True):
        for direction in graph.members(unit):
            holders.setdefault(whole.flipped(direction) if whole.opposite else direction, set()).add(sender)
    lost: dict[int, list[int]] = {}
    for place, relation in enumerate(graph.relations(entity).tolist()):
        if len(holders[relation]) == 1:
            lost.setdefault(next(iter(holders[relation])), []).append(place)
    return [np.array(lost.get(neighbour, []), dtype=np.int64) for neighbour in neighbours]


def sums_without(received: Received, gone: list[IntArray]) -> FloatArray:
    """(n, d) the sum of the messages without some of them, each time scaled up as attention and means would."""
    whole = received.messages.sum(axis=0)
    out = np.zeros((len(gone), len(whole)))
    for at, places in enumerate(gone):
        left = 1 - received.weights[places].sum()
        if left > TINY:
            out[at] = (whole - received.messages[places].sum(axis=0)) / left
    return out


PAIRS_EACH = 4
"""Pairs of neighbours that are looked at for each neighbour."""
INVERSE = "^"
FORMS = f"NEIGHBOUR, NEIGHBOUR RELATION, HEAD RELATION TAIL, relation:NAME, {VALUE_FORM} or top:N"


@dataclass(frozen=True)
class Item:
    """A neighbour of one of the two entities as evidence: all triples between the two.

    Attributes:
        side: whose neighbour it is.
        value: what it carries, as a share of the CSLS score.
        cost: what its removal would cost the score, or its lead over the rival: an estimate (:mod:`engine.explanation.removal`).
        attention: the share of attention that it gets.
    """

    side: Side
    neighbour: Entity
    triples: tuple[Triple, ...]
    value: float
    cost: float
    attention: float


def evidence_items(explainer: Explainer, source: int, target: int, rival: Entity | None = None) -> list[Item]:
    """The neighbours of both entities, those first whose removal would cost the most. What the entities contribute themselves cannot be removed.

    Args:
        explainer: of the run.
        source, target: indices in their graphs.
        rival: another candidate of either entity; the pair's lead over it counts. None: the pair's own score counts.

    Raises:
        EntityError, RunError: as :func:`engine.explanation.explain`.
    """
    stacked = [explainer.stacked("source", source), explainer.stacked("target", target)]
    if rival is not None:
        stacked.append(explainer.stacked(rival.side, rival.index))
    snapshot = explainer.encoder.snapshot(stacked)
    final = snapshot.final.reshape(len(stacked), -1)
    products = neighbour_products(snapshot)
    sides: tuple[tuple[Side, Sent[int], FloatArray, FloatArray], ...] = (
        ("source", products.source, products.source_totals(), final[1:] if rival is None or rival.side == "target" else final[1:2]),
        ("target", products.target, products.target_totals(), final[:1] if rival is None or rival.side == "target" else final[[0, 2]]),
    )
    items = []
    for entity, (side, sent, totals, others) in zip(snapshot.entities, sides, strict=False):
        between: dict[int, list[Triple]] = {}
        for triple in explainer.encoder.graph.triples(entity):
            between.setdefault(triple.tail if triple.head == entity else triple.head, []).append(triple)
        places = {key: at for at, key in enumerate(sent.keys)}
        costs = estimated_costs(snapshot, entity, others)
        for key, cost in zip(costs.neighbours, costs.costs.tolist(), strict=True):
            at = places.get(key)
            value, weight = (float(totals[at]), float(sent.weights[at])) if at is not None else (0.0, 0.0)
            items.append(Item(side, explainer.entity(key), tuple(between[key]), value, cost, weight))
    return sorted(items, key=lambda item: (-item.cost, item.side, item.neighbour.index))


def by_pairs(explainer: Explainer, source: int, target: int, items: Sequence[Item]) -> list[Item]:
    """The same items, in the order of the strongest pairs of neighbours, each neighbour in one pair only: what could support a match alone.

    A neighbour counts little without what it faces, so the two of a pair come together. Those that find no partner among the strongest
    ``PAIRS_EACH (n + m)`` pairs follow by what they carry.
    """
    products = neighbour_products(explainer.snapshot(source, target))
    place = {(item.side, explainer.stacked(item.side, item.neighbour.index)): item for item in items}
    ordered: dict[Item, None] = {}
    for row, column, _ in products.strongest(PAIRS_EACH * (len(products.source.keys) + len(products.target.keys)), 1):
        both = place.get(("source", products.source.keys[row])), place.get(("target", products.target.keys[column]))
        if both[0] is not None and both[1] is not None and both[0] not in ordered and both[1] not in ordered:
            ordered |= {both[0]: None, both[1]: None}
    ordered |= dict.fromkeys(sorted(items, key=lambda item: -item.value))
    return list(ordered)


def triples_of(items: Sequence[Item]) -> frozenset[Triple]:
    """All triples of some evidence."""
    return frozenset(triple for item in items for triple in item.triples)


def edge(explainer: Explainer, side: Side, head: int, relation: str, tail: int) -> frozenset[Triple]:
    """One triple of a graph, by the indices of its ends and the name (or the end of the name) of its relation.

    Raises:
        EvidenceError: there is no such triple.
    """
    ends = explainer.stacked(side, head), explainer.stacked(side, tail)
    between = [triple for triple in explainer.encoder.graph.triples(ends[0]) if (triple.head, triple.tail) == ends]
    found = along(explainer, [(ends[1], triple) for triple in between], relation)
    if not found:
        one, two = (explainer.view.entity(side, index) for index in (head, tail))
        raise EvidenceError(f"the {side} graph has no triple {quoted(one.title)} {quoted(relation)} {quoted(two.title)}, so it cannot be removed.")
    return frozenset(found)


def neighbour(explainer: Explainer, side: Side, index: int, other: int, relation: str | None = None) -> frozenset[Triple]:
    """All triples between an entity and one of its neighbours, or those of one relation (``^name``: only where the entity is the tail).

    Raises:
        EvidenceError: there are none.
    """
    ends = {explainer.stacked(side, index), explainer.stacked(side, other)}
    found = [triple for triple in explainer.encoder.graph.triples(min(ends)) if {triple.head, triple.tail} == ends]
    if relation is not None:
        found = along(explainer, [(explainer.stacked(side, index), triple) for triple in found], relation)
    if not found:
        one, two = (explainer.view.entity(side, at) for at in (index, other))
        kind = "no triple" if relation is None else f"no triple with the relation {quoted(relation)}"
        raise EvidenceError(f"there is {kind} between {quoted(one.title)} and {quoted(two.title)} in the {side} graph, so it cannot be removed.")
    return frozenset(found)


def relation_type(explainer: Explainer, entities: Sequence[int], relation: str) -> frozenset[Triple]:
    """All triples of a relation at some (stacked) entities (``^name``: only where the entity is the tail).

    Raises:
        EvidenceError: there are none.
    """
    at_entities = [(entity, triple) for entity in entities for triple in explainer.encoder.graph.triples(entity)]
    found = frozenset(along(explainer, at_entities, relation))
    if not found:
        known = sorted({short_relation(explainer.relation(triple.relation)) for _, triple in at_entities})
        hint = f"; they have {', '.join(map(quoted, known[:8]))}" if known else ""
        raise EvidenceError(f"neither entity has a triple with the relation {quoted(relation)}{hint}.")
    return found


def strongest(explainer: Explainer, source: int, target: int, count: int, pool: Pool = "all", side: Side = "source") -> frozenset[Triple]:
    """The triples of the ``count`` neighbours whose removal would cost the most of a pair's lead over the runner-up, by the estimate.

    Raises:
        EvidenceError: neither entity has a neighbour.
    """
    rival = runner_up(explainer, source, target, pool, side)
    items = evidence_items(explainer, source, target, explainer.view.entity(other_graph(side), rival.entity) if rival else None)
    if not items:
        raise EvidenceError("neither entity has a neighbour, so there is no evidence to remove.")
    return triples_of(items[:count])


def named_evidence(
    explainer: Explainer, source: int, target: int, words: Sequence[str], pool: Pool = "all", asked: Side = "source"
) -> frozenset[Evidence]:
    """The triples, or the values, that a user's words mean.

    Args:
        pool, asked: the candidates of which the runner-up is the best, and the graph of the entity whose candidates they are (for ``top:N``).
        words: one of ``FORMS``. A neighbour, a head and a relation may have ``source:`` or ``target:`` in front; without it both sides are looked at.

    Raises:
        EvidenceError: there is no such evidence.
        EntityError: words that name no entity, or several.
        ConfigError: another number of words, or a count that is none.
    """
    if len(words) == 3:
        head = explainer.view.resolve(words[0])
        return edge(explainer, head.side, head.index, words[1], explainer.view.resolve(words[2], head.side).index)
    if len(words) not in (1, 2) or not all(word.strip() for word in words):
        raise ConfigError(f"--remove expects {FORMS}; got {len(words)} words.")
    kind, _, argument = words[0].partition(":")
    if len(words) == 1 and kind == "top":
        if not argument.isdecimal() or int(argument[:9]) < 1:
            raise ConfigError(f"--remove top:N expects a whole number of neighbours from 1 on; got {quoted(argument)}.")
        return strongest(explainer, source, target, int(argument[:9]), pool, asked)
    if len(words) == 1 and kind == "value":
        return named_values(explainer, source, target, argument)
    if len(words) == 1 and kind == "relation":
        return relation_type(explainer, [explainer.stacked("source", source), explainer.stacked("target", target)], argument)
    return _neighbour_in_words(explainer, source, target, words[0], words[1] if len(words) == 2 else None)


def _neighbour_in_words(explainer: Explainer, source: int, target: int, text: str, relation: str | None) -> frozenset[Triple]:
    """The triples between one of the two entities and the neighbour that a text names."""
    prefix, _, rest = text.partition(":")
    sides = [side for side in SIDES if prefix == side and rest] or list(SIDES)
    wanted = rest if len(sides) == 1 else text
    centres: dict[Side, int] = {"source": source, "target": target}
    fitting = [
        (side, one) for side in sides for one in explainer.adjacency.neighbours(side, centres[side]) if _is_named(explainer, side, one, wanted)
    ]
    exact = [(side, one) for side, one in fitting if explainer.view.entity(side, one).uri == wanted]
    fitting = exact or fitting
    if len(fitting) > 1:
        uris = tuple(f"{side}:{explainer.view.entity(side, one).uri}" for side, one in fitting)
        raise EntityError(f"{quoted(wanted)} names {len(fitting)} neighbours; use one of {', '.join(map(shortened, uris[:5]))}.", candidates=uris)
    if not fitting:
        who = " and ".join(quoted(explainer.view.entity(side, centres[side]).title) for side in sides)
        raise EvidenceError(f"{quoted(wanted)} is no neighbour of {who}, so there is no edge to remove; --json lists the neighbours.")
    side, one = fitting[0]
    return neighbour(explainer, side, centres[side], one, relation)


def _is_named(explainer: Explainer, side: Side, index: int, text: str) -> bool:
    entity, words = explainer.view.entity(side, index), folded_label(text)
    return entity.uri == text or (bool(words) and words in (folded_label(entity.label), folded_label(entity.short_id)))


def along(explainer: Explainer, triples: Sequence[tuple[int, Triple]], relation: str) -> list[Triple]:
    """Those of some triples, each with one of its (stacked) entities, that have a relation; written ^name, only where the entity is the tail.

    A relation of exactly this name goes before those whose name, or the end of it behind the last ``/`` or ``#``, is so.
    """
    inverse, wanted = relation.startswith(INVERSE), relation.removeprefix(INVERSE)
    names = {triple.relation: explainer.relation(triple.relation) for _, triple in triples}
    exact = {number for number, name in names.items() if name == wanted}
    fitting = exact or {number for number, name in names.items() if folded_label(wanted) in map(folded_label, short_names(name))}
    return [triple for entity, triple in triples if triple.relation in fitting and (not inverse or triple.tail == entity)]


def short_names(relation: str) -> tuple[str, str]:
    """What a relation is called for short: as pages show it, and the end of its name behind the last ``/`` or ``#``."""
    return short_relation(relation), re.split(r"[/#]", relation.rstrip("/#"))[-1]


def quoted(text: str) -> str:
    return f"'{shortened(text)}'"
