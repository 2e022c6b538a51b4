"""Encoder options that change what is computed, one at a time; whatever computes the encoder again is held against each of them."""

from __future__ import annotations

OPTIONS: dict[str, dict[str, object]] = {
    "paper": {},
    "authors' units": {"message_unit": "edge"},
    "same direction": {"relation_input": "same"},
    "no attention": {"relational_attention": False},
    "no projection": {"relational_projection": False},
    "no multi-hop": {"multi_hop": False},
    "no proxies": {"proxy_matching": False},
    "entity channel": {"channels": "entity"},
    "relation channel": {"channels": "relation"},
    "no layers": {"layers": 0},
}
