"""Which pair a user's words mean."""

from __future__ import annotations

from engine.data.knowledge_graph import Side
from engine.errors import EntityError
from engine.runs.entities import Entity, other
from engine.runs.view import RunView
from engine.util.text import shortened


def resolve_pair(view: RunView, source: str, target: str) -> tuple[int, int]:
    """The indices of a pair of entities from what was typed for them: URIs, ids or labels, in either order.

    Raises:
        EntityError: one of them is unknown or ambiguous (with candidates), or both are of one graph.
    """
    if exact := _exact_pair(view, source, target):
        return exact
    first, second = _attempt(view, source, "source"), _attempt(view, target, "target")
    if isinstance(first, Entity) and isinstance(second, Entity):
        return first.index, second.index
    swapped = _attempt(view, source, "target"), _attempt(view, target, "source")
    if isinstance(swapped[0], Entity) and isinstance(swapped[1], Entity):
        return swapped[1].index, swapped[0].index
    failed, elsewhere, text = (first, swapped[0], source) if isinstance(first, EntityError) else (second, swapped[1], target)
    if isinstance(elsewhere, Entity):
        raise _one_graph(view, text, elsewhere.side)
    assert isinstance(failed, EntityError)
    raise failed


def _exact_pair(view: RunView, one: str, another: str) -> tuple[int, int] | None:
    """The pair whose identifiers these are, in either order: before anything that is only like them."""
    for source, target in ((one, another), (another, one)):
        (first, own), (second, theirs) = view.split_side(source), view.split_side(target)
        if first in (None, "source") and second in (None, "target"):
            ends = view.graphs["source"].index.get(own), view.graphs["target"].index.get(theirs)
            if ends[0] is not None and ends[1] is not None:
                return ends[0], ends[1]
    return None


def _attempt(view: RunView, text: str, side: Side) -> Entity | EntityError:
    """The entity of one graph that a text names, or why there is none; ``source:`` or ``target:`` in front must be this graph."""
    said, rest = view.split_side(text)
    if said not in (None, side):
        return EntityError(f"'{shortened(text)}' is not of the {side} graph.")
    try:
        return view.resolve(rest, side)
    except EntityError as error:
        return error


def _one_graph(view: RunView, text: str, side: Side) -> EntityError:
    missing = view.graphs[other(side)].name
    return EntityError(
        f"'{shortened(text)}' is an entity of the {side} graph, as is the other one; a pair needs one entity of each graph, and none is of {missing}."
    )


def resolve_rival(view: RunView, text: str, first: Side = "target") -> Entity:
    """The entity that a pair is to be compared with: of the graph ``first`` if it has one of this name, else of the other graph.

    Raises:
        EntityError: unknown or ambiguous.
    """
    second = other(first)
    if text not in view.graphs[first].index and text in view.graphs[second].index:
        return view.identified(text, second)
    found = _attempt(view, text, first)
    if isinstance(found, Entity):
        return found
    elsewhere = _attempt(view, text, second)
    if isinstance(elsewhere, Entity):
        return elsewhere
    return view.resolve(text)  # raises, with candidates of both graphs
