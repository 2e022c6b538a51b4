"""The encoder and the loss straight from the formulas: loops and dense matrices, float64, autograd for gradients. Slow and obvious.

Paper sections 4 and 5, with the authors' code where the paper is silent. Only parameters come from the fast model; every index comes from the
triples themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.config import EncoderConfig


def incident(triples: list[tuple[int, int, int]], entity: int, num_relations: int) -> list[tuple[int, int]]:
    """(neighbour, directed relation) of every triple at an entity: its head receives along r, its tail along r + R."""
    found = []
    for head, relation, tail in sorted(set(triples)):
        if head == entity:
            found.append((tail, relation))
        if tail == entity:
            found.append((head, relation + num_relations))
    return found


def encode(
    parameters: dict[str, Tensor], triples: list[tuple[int, int, int]], num_entities: int, num_relations: int, config: EncoderConfig
) -> Tensor:
    """(E, C D) final embeddings."""
    channels = ["entity", "relation"] if config.channels == "both" else [config.channels]
    finals = [one_channel(parameters, triples, num_entities, num_relations, config, name, index) for index, name in enumerate(channels)]
    return torch.cat(finals, dim=1)


def one_channel(
    parameters: dict[str, Tensor],
    triples: list[tuple[int, int, int]],
    num_entities: int,
    num_relations: int,
    config: EncoderConfig,
    name: str,
    index: int,
) -> Tensor:
    relations = parameters["relation_features"]
    received = [incident(triples, entity, num_relations) for entity in range(num_entities)]
    rows = []
    for entity in range(num_entities):
        if name == "entity":
            around = {entity} | {neighbour for neighbour, _ in received[entity]}
            rows.append(torch.stack([parameters["entity_features"][one] for one in sorted(around)]).mean(0))
        else:
            flip = config.relation_input == "opposite"
            own = {(relation + num_relations) % (2 * num_relations) if flip else relation for _, relation in received[entity]}
            rows.append(torch.stack([relations[one] for one in sorted(own)]).mean(0) if own else torch.zeros_like(relations[0]))
    layers = [torch.tanh(torch.stack(rows))]
    for layer in range(config.layers):
        layers.append(torch.tanh(one_layer(layers[-1], relations, received, parameters["attention"][layer, index], config)))
    hidden = torch.cat(layers, dim=1) if config.multi_hop else layers[-1]
    if not config.proxy_matching:
        return hidden
    proxies = parameters["proxies"][index]
    cosine = (hidden / hidden.norm(dim=1, keepdim=True).clamp_min(1e-12)) @ (proxies / proxies.norm(dim=1, keepdim=True)).T
    beta = torch.softmax(cosine, dim=1)
    difference = torch.stack([sum(beta[i, j] * (hidden[i] - proxies[j]) for j in range(len(proxies))) for i in range(num_entities)])  # type: ignore[misc]
    eta = torch.sigmoid(difference @ parameters["gate_weight"][index] + parameters["gate_bias"][index])
    return eta * hidden + (1 - eta) * difference


def one_layer(x: Tensor, relations: Tensor, received: list[list[tuple[int, int]]], v: Tensor, config: EncoderConfig) -> Tensor:
    """Before the tanh: paper eq. 2 and 3, or parallel triples averaged into one message (authors' code)."""
    rows = []
    for entries in received:
        if config.message_unit == "edge":
            grouped: dict[int, list[int]] = {}
            for neighbour, relation in entries:
                grouped.setdefault(neighbour, []).append(relation)
            sent = [(neighbour, torch.stack([relations[one] for one in group]).mean(0)) for neighbour, group in grouped.items()]
        else:
            sent = [(neighbour, relations[relation]) for neighbour, relation in entries]
        if not sent:
            rows.append(torch.zeros_like(x[0]))
            continue
        unit = [vector / vector.norm() for _, vector in sent]
        score = torch.stack([v @ vector if config.relational_attention else v.new_zeros(()) for vector in unit])
        weight = torch.softmax(score, dim=0)
        total = torch.zeros_like(x[0])
        for at, (neighbour, _) in enumerate(sent):
            message = x[neighbour]
            if config.relational_projection:
                message = message - 2 * (unit[at] @ message) * unit[at]
            total = total + weight[at] * message
        rows.append(total)
    return torch.stack(rows)


def hard_sample_mining(
    embeddings: Tensor,
    pairs: list[tuple[int, int]],
    num_source: int,
    scope: str,
    margin: float,
    scale: float,
    shift: float,
    *,
    normalise: bool = True,
) -> Tensor:
    """Mean over the pairs of both sides' logsumexp (paper eq. 12-17)."""
    total = embeddings.new_zeros(())
    everyone = list(range(len(embeddings)))
    for u, v in pairs:
        for anchor, other, pool in ((u, v, everyone[num_source:]), (v, u, everyone[:num_source])):
            candidates = everyone if scope == "both" else pool
            values = []
            for e in candidates:
                if e in (u, v):
                    values.append(embeddings.new_zeros(()))
                else:
                    near = (embeddings[anchor] - embeddings[other]).square().sum()
                    values.append(margin + near - (embeddings[anchor] - embeddings[e]).square().sum())
            x = torch.stack(values)
            z = (x - x.mean().detach()) / x.std(correction=0).detach() if normalise else x
            total = total + torch.logsumexp(scale * z + shift, dim=0)
    return total / len(pairs)
