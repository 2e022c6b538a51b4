"""What is known of an entity that has no label: its type, a value, its strongest neighbour. A bare identifier means little to a reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.data.labels import identifier_tail, is_missing, literal_of, local_name
from engine.explore.neighbourhood import IncidentTriples, Neighbour
from engine.runs.entities import Entity
from engine.util.text import shortened

TYPES: Final = frozenset({"type", "instanceof", "isa", "p31", "class", "category", "kind"})
"""Local names of relations and attributes whose value is the type of an entity; lower case, letters and digits only."""
LENGTH: Final = 40
"""Characters of a fact."""
MOST_TRIPLES: Final = 2_000
"""Of an entity with more, only the attributes are looked at."""


def known_facts(adjacency: IncidentTriples, entity: Entity) -> tuple[str, ...]:
    """Up to three facts: type, a value, the nearest neighbour with a label. Empty where the data has none of them.

    Args:
        adjacency: of the run.
        entity: with or without a label.
    """
    values = [(name, literal_of(value).text) for name, value in adjacency.view.attributes(entity.side, entity.index)]
    around = adjacency.neighbours(entity.side, entity.index) if 0 < entity.degree <= MOST_TRIPLES else {}
    named = [neighbour for neighbour in around.values() if neighbour.entity.label]
    types = [text for name, text in values if is_type(name)] + [one.entity.title for one in named if any(map(is_type, outgoing(one)))]
    plain = [f"{local_name(name)} {text}" for name, text in values if not is_type(name) and text and not is_missing(text)]
    others = sorted((one for one in named if not any(map(is_type, outgoing(one)))), key=lambda one: -(one.attention or 0.0))
    nearest = [f"{edge_arrow(one)} {one.entity.title}" for one in others]
    found = dict.fromkeys(shortened(" ".join(fact.split()), LENGTH) for fact in (*types[:1], *plain[:1], *nearest[:1]))
    return tuple(fact for fact in found if fact)


def is_type(name: str) -> bool:
    """Whether a relation or attribute gives the type of an entity."""
    return "".join(char for char in local_name(name).lower() if char.isalnum()) in TYPES


def outgoing(neighbour: Neighbour) -> Iterator[str]:
    """The relations from the entity to a neighbour."""
    return (edge.relation for edge in neighbour.edges if edge.direction == "out")


def edge_arrow(neighbour: Neighbour) -> str:
    """The first relation between the entity and a neighbour, with an arrow for the direction."""
    edge = neighbour.edges[0]
    return f"{'→' if edge.direction == 'out' else '←'} {identifier_tail(edge.relation)}"
