"""The analysis tables from their definitions: loops over triples and links, dictionaries and sets. Slow and obvious."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from tests.reference.dual_amn import incident

Triple = tuple[int, int, int]


def rates(ranks: list[int]) -> tuple[float, float, float]:
    """Hits@1, Hits@10, MRR."""
    return (
        sum(rank <= 1 for rank in ranks) / len(ranks),
        sum(rank <= 10 for rank in ranks) / len(ranks),
        sum(1 / rank for rank in ranks) / len(ranks),
    )


def degree_of(entity: int, triples: Iterable[Triple]) -> int:
    return sum((head == entity) + (tail == entity) for head, _, tail in triples)


def bucket_of(degree: int) -> str:
    if degree <= 4:
        return str(degree)
    for low, high in ((5, 6), (7, 9), (10, 14), (15, 24)):
        if low <= degree <= high:
            return f"{low}-{high}"
    return "25+"


def entities_with(relation: int, role: str, triples: Iterable[Triple]) -> set[int]:
    heads = {head for head, used, _ in triples if used == relation}
    tails = {tail for _, used, tail in triples if used == relation}
    return {"head": heads, "tail": tails, "any": heads | tails}[role]


def mean_attention(
    triples: list[Triple], num_entities: int, num_relations: int, relations: Tensor, v: Tensor, unit: str
) -> dict[int, tuple[float, float]]:
    """Directed relation -> mean weight of the messages along it, and mean of weight times number of the receiver's messages."""
    weights: dict[int, list[float]] = {}
    relative: dict[int, list[float]] = {}
    for entity in range(num_entities):
        received = sorted(incident(triples, entity, num_relations))
        if unit == "edge":
            neighbours = sorted({neighbour for neighbour, _ in received})
            messages = [[relation for other, relation in received if other == neighbour] for neighbour in neighbours]
        else:
            messages = [[relation] for _, relation in received]
        scores = []
        for message in messages:
            vector = torch.stack([relations[relation] for relation in message]).mean(0)
            scores.append(float(v @ vector / vector.norm()))
        total = sum(math.exp(score) for score in scores)
        for message, score in zip(messages, scores, strict=True):
            for relation in message:
                weights.setdefault(relation, []).append(math.exp(score) / total)
                relative.setdefault(relation, []).append(math.exp(score) / total * len(messages))
    return {relation: (sum(found) / len(found), sum(relative[relation]) / len(found)) for relation, found in weights.items()}


def agreement(own: list[Triple], across: list[Triple], links: list[tuple[int, int]], relation: int, twin: int, turned: bool) -> tuple[int, int]:
    """Triples of a relation with links at both ends, and how many of these the twin has as well."""
    counterparts: Mapping[int, set[int]] = {one: {b for a, b in links if a == one} for one, _ in links}
    connected = {(tail, head) if turned else (head, tail) for head, used, tail in across if used == twin}
    support = agreeing = 0
    for head, used, tail in own:
        heads, tails = counterparts.get(head, set()), counterparts.get(tail, set())
        if used == relation and heads and tails:
            support += 1
            agreeing += any((one, two) in connected for one in heads for two in tails)
    return support, agreeing
