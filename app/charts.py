"""Figures as specifications: plain dictionaries, computed on the server, the same for the same data.

Facing neighbourhoods are drawn with fixed coordinates, so that nothing jumps when something is clicked. Columns from left to right: neighbours
of the source that are not aligned with a neighbour of the target, the source, its aligned neighbours, then the mirror image. Colours
have enough contrast on light and dark ground, because the page's theme is not known for sure when a session starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app import text
from app.palette import BOX_FILLS
from engine.datasets.knowledge_graph import Side
from engine.entities import Entity
from engine.neighbourhood import Direction, Edge, Evidence, Facing

PALE_FILL, INK, LINK_INK = "#6f767d", "#ffffff", "#808890"
EDGE_INK: Mapping[str, str] = {"out": "#3f8f78", "in": "#9a78bd", "both": "#7d848c"}
EDGE_MARK: Mapping[str, tuple[str, int]] = {"out": ("arrow", 8), "in": ("circle", 9), "both": ("diamond", 12)}
LINE: Mapping[Evidence, Literal["solid", "dashed", "dotted"]] = {
    "seed link": "solid",
    "known validation link": "dotted",
    "known test link": "dotted",
    "predicted": "dashed",
}
ARROWS: Mapping[Direction, str] = {"out": "→", "in": "←"}

INVISIBLE: Mapping[str, Any] = {"symbolSize": 0, "label": {"show": False}}

Kind = Literal["alone", "centre", "aligned"]

# Where edges meet a box, in pixels of a page 1,120 wide: its inner edge for neighbours, its middle for the two centres.
COLUMNS: Mapping[tuple[Side, Kind], float] = {
    ("source", "alone"): 132,
    ("source", "centre"): 262,
    ("source", "aligned"): 398,
    ("target", "aligned"): 722,
    ("target", "centre"): 858,
    ("target", "alone"): 988,
}
ROW_HEIGHT, WIDTH, NODE_HEIGHT, CENTRE_HEIGHT, MARGIN = 30, 132, 22, 34, 6
NARROW_BELOW = 1040  # pixels; boxes would overlap
CENTRES = 2  # the first nodes of a figure
HIGHEST_CENTRE = 6.0  # in rows: of long columns the centre stays in sight


@dataclass(frozen=True)
class Figure:
    """An ECharts option, and what its first nodes stand for, in their order."""

    option: dict[str, Any]
    height: int
    entities: tuple[Entity, ...]


@dataclass(frozen=True)
class _Box:
    """An entity in its place; the row counts from the top."""

    entity: Entity
    kind: Kind
    row: float
    edges: tuple[Edge, ...] = ()

    @property
    def side(self) -> Side:
        return self.entity.side

    @property
    def name(self) -> str:
        """Unique in a figure even where a self-loop makes the centre its own neighbour."""
        return f"{self.side}:{self.entity.index}:{'centre' if self.kind == 'centre' else 'neighbour'}"

    @property
    def hint(self) -> str:
        parts = (text.cell(self.entity.title, 80), text.cell(self.entity.short_id, 60), edge_words(self.edges))
        return " · ".join(part for part in parts if part)


def edge_words(edges: Sequence[Edge]) -> str:
    """'→ inCountry, ← hasCapital', seen from the entity in the middle."""
    return ", ".join(f"{ARROWS[edge.direction]} {text.cell(edge.relation, 60)}" for edge in edges)


def facing_figure(facing: Facing) -> Figure:
    """The neighbours of a pair in rows; aligned ones stand at the same height, joined across the gap.

    On a narrow page only the aligned neighbours are drawn, in two columns beneath their centres.
    """
    rows = max(len(facing.pairs), len(facing.source_only), len(facing.target_only), 3)
    boxes = list(_boxes(facing, rows))
    option = _base_option()
    option |= _wide(boxes, facing, rows)
    option["media"] = [{"query": {"maxWidth": NARROW_BELOW}, "option": _narrow(boxes, facing, rows)}]
    return Figure(option, (rows + 1) * ROW_HEIGHT, tuple(box.entity for box in boxes))


def clicked_entity(figure: Figure, event: Any) -> Entity | None:
    """The neighbour that was clicked; None for an edge, a centre or nothing."""
    for group in event["selection"]["selected"] if event else ():
        if group["data_type"] == "node":
            neighbours = [index for index in group["data_indices"] if CENTRES <= index < len(figure.entities)]
            return figure.entities[neighbours[0]] if neighbours else None
    return None


def _boxes(facing: Facing, rows: int) -> Iterator[_Box]:
    """The two centres, then every neighbour that is shown; shorter columns are centred like the rest."""
    middle = min((rows - 1) / 2, HIGHEST_CENTRE)
    yield _Box(facing.source, "centre", middle)
    yield _Box(facing.target, "centre", middle)
    for row, pair in enumerate(facing.pairs):
        for neighbour in (pair.source, pair.target):
            yield _Box(neighbour.entity, "aligned", row + _offset(len(facing.pairs), rows), neighbour.edges)
    for alone in (facing.source_only, facing.target_only):
        for row, neighbour in enumerate(alone):
            yield _Box(neighbour.entity, "alone", row + _offset(len(alone), rows), neighbour.edges)


def _offset(length: int, rows: int) -> float:
    return min((rows - length) / 2, max(HIGHEST_CENTRE - (length - 1) / 2, 0.0))


def _wide(boxes: Sequence[_Box], facing: Facing, rows: int) -> dict[str, Any]:
    """Edges end in ports, nodes of no size at the boxes' inner edges, because an edge to a wide box would stop far away from it."""
    used = [COLUMNS[box.side, box.kind] for box in boxes]
    nodes = [_node(box, [COLUMNS[box.side, box.kind], box.row], _outward(box)) for box in boxes]
    ports = [
        {"id": f"port:{box.name}", "value": node["value"], "symbolSize": 0, "label": {"show": False}} for box, node in zip(boxes, nodes, strict=True)
    ]
    edges = [_edge(boxes[0] if box.side == "source" else boxes[1], box) for box in boxes[CENTRES:]]
    grid = {side: (WIDTH if alone else WIDTH / 2) + MARGIN for side, alone in (("left", facing.source_only), ("right", facing.target_only))}
    return _view(grid, (min(used), max(used)), rows - 1, nodes + ports, edges + _links(facing))


def _narrow(boxes: Sequence[_Box], facing: Facing, rows: int) -> dict[str, Any]:
    """The same nodes in the same order, so that a click means the same; those that are not aligned have no size."""
    top = _offset(len(facing.pairs), rows)
    nodes = []
    for box in boxes:
        row = 0.0 if box.kind == "centre" else box.row - top + 1.4
        node = _node(box, [0 if box.side == "source" else 1, row], 0.5 if box.side == "source" else -0.5)
        nodes.append({**node, **INVISIBLE} if box.kind == "alone" else node)
    return _view({"left": MARGIN, "right": MARGIN}, (0, 1), max(rows - 1, len(facing.pairs) + 0.4), nodes, _links(facing))


def _outward(box: _Box) -> float:
    """How far a box stands beside its port, in widths."""
    if box.kind == "centre":
        return 0.0
    return 0.5 if (box.side == "source") == (box.kind == "aligned") else -0.5


def _node(box: _Box, place: list[float], shift: float) -> dict[str, Any]:
    centre = box.kind == "centre"
    font = {"fontSize": 13, "fontWeight": "bold"} if centre else {"fontSize": 11}
    return {
        "id": box.name,
        "name": box.hint,
        "value": place,
        "symbol": "roundRect",
        "symbolSize": [WIDTH, CENTRE_HEIGHT if centre else NODE_HEIGHT],
        "symbolOffset": [shift * WIDTH, 0],
        "itemStyle": {"color": PALE_FILL if box.kind == "alone" else BOX_FILLS[box.side]},
        "label": {"formatter": _literal(text.cell(box.entity.title, 60)), "width": WIDTH - 12, **font},
    }


def _literal(label: str) -> str:
    """Braces would be read as a template or as rich text."""
    return label.replace("{", "❴").replace("}", "❵")


def _edge(centre: _Box, box: _Box) -> dict[str, Any]:
    """From the centre to a neighbour; the mark at the neighbour tells the direction, the hint names all relations."""
    directions = {edge.direction for edge in box.edges}
    kind = "both" if len(directions) > 1 else "out" if "out" in directions else "in"
    return {
        "source": f"port:{centre.name}",
        "target": f"port:{box.name}",
        "id": edge_words(box.edges),
        "lineStyle": {"color": EDGE_INK[kind], "width": 1.4, "opacity": 0.9 if box.kind == "aligned" else 0.5},
        "symbol": ["none", EDGE_MARK[kind][0]],
        "symbolSize": [0, EDGE_MARK[kind][1]],
    }


def _links(facing: Facing) -> list[dict[str, Any]]:
    """Across the gap, one for each pair."""
    return [
        {
            "source": f"source:{pair.source.entity.index}:neighbour",
            "target": f"target:{pair.target.entity.index}:neighbour",
            "id": f"aligned: {pair.evidence}",
            "lineStyle": {"color": LINK_INK, "type": LINE[pair.evidence], "width": 3 if pair.evidence == "seed link" else 2, "opacity": 1},
        }
        for pair in facing.pairs
    ]


def _view(
    grid: dict[str, float], across: tuple[float, float], lowest: float, nodes: list[dict[str, Any]], links: list[dict[str, Any]]
) -> dict[str, Any]:
    """What depends on the width. Axes and not a layout hold the positions: boxes and letters keep their size."""
    return {
        "grid": {**grid, "top": CENTRE_HEIGHT / 2, "bottom": CENTRE_HEIGHT / 2},
        "xAxis": {"type": "value", "show": False, "min": across[0], "max": across[1]},
        "yAxis": {"type": "value", "show": False, "min": 0, "max": lowest, "inverse": True},
        "series": [{**_series(), "data": nodes, "links": links}],
    }


def _series() -> dict[str, Any]:
    return {
        "id": "facing",
        "type": "graph",
        "coordinateSystem": "cartesian2d",
        "selectedMode": "single",
        "label": {"show": True, "position": "inside", "color": INK, "overflow": "truncate", "ellipsis": "…"},
        "select": {"itemStyle": {"borderColor": INK, "borderWidth": 2}},
    }


def _base_option() -> dict[str, Any]:
    return {"animation": False, "tooltip": {"formatter": "{b}", "confine": True}}
