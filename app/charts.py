"""Figures as specifications: plain dictionaries, computed on the server, the same for the same data.

Facing neighbourhoods are drawn with fixed coordinates, so that nothing jumps when something is clicked. Columns from left to right: neighbours
of the source that are not aligned with a neighbour of the target, the source, its aligned neighbours, then the mirror image. With two hops: the
source, its aligned neighbours, and below each of them, indented, the aligned neighbours of these. Colours have enough contrast on light and dark
ground, because the page's theme is not known for sure when a session starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app import text
from app.palette import BOX_FILLS, TIES, TieLine
from engine.data.knowledge_graph import SIDES, Side
from engine.explore.neighbourhood import Direction, Edge, Evidence, Facing, Neighbour, NeighbourPair
from engine.runs.entities import Entity

PALE_FILL, INK, LINK_INK = "#6f767d", "#ffffff", "#808890"
EDGE_INK: Mapping[str, str] = {"out": "#3f8f78", "in": "#9a78bd", "both": "#7d848c"}
EDGE_MARK: Mapping[str, tuple[str, int]] = {"out": ("arrow", 8), "in": ("circle", 9), "both": ("diamond", 12)}
LINE: Mapping[Evidence, TieLine] = {
    "seed link": TIES["seed link"],
    "added in a round": TIES["added in a round"],
    "known validation link": TIES["held out"],
    "known test link": TIES["held out"],
    "predicted": TIES["predicted"],
}
ARROWS: Mapping[Direction, str] = {"out": "→", "in": "←"}

INVISIBLE: Mapping[str, Any] = {"symbolSize": 0, "label": {"show": False}}

Kind = Literal["alone", "centre", "aligned", "far", "more"]

# Where edges meet a box, in pixels of a page 1,120 wide: the edge that is nearer to the centre for neighbours, its middle for the two centres.
COLUMNS: Mapping[tuple[Side, Kind], float] = {
    ("source", "alone"): 132,
    ("source", "centre"): 262,
    ("source", "aligned"): 398,
    ("target", "aligned"): 722,
    ("target", "centre"): 858,
    ("target", "alone"): 988,
}
FAR_COLUMNS: Mapping[tuple[Side, Kind], float] = {
    ("source", "centre"): 66,
    ("source", "aligned"): 196,
    ("source", "far"): 392,
    ("target", "far"): 728,
    ("target", "aligned"): 924,
    ("target", "centre"): 1054,
}
ROW_HEIGHT, WIDTH, NODE_HEIGHT, FAR_HEIGHT, CENTRE_HEIGHT, MARGIN = 30, 120, 22, 17, 34, 6
NARROW_BELOW = 945  # pixels; boxes would overlap
CENTRES = 2  # the first nodes of a figure
LEAST_ROWS = 3
HIGHEST_CENTRE = 6.0  # in rows: of long columns the centre stays in sight
THINNEST, WIDEST, WITHOUT_ATTENTION = 1.0, 6.0, 1.4  # edges, in pixels


@dataclass(frozen=True)
class Figure:
    """An ECharts option, and the entities of its first nodes, in their order.

    Attributes:
        entities: of the first nodes, the two centres before all others.
        more: of the nodes behind these: the graphs that have neighbours which are not drawn.
        widest: the attention of the widest edge; None without attention.
    """

    option: dict[str, Any]
    height: int
    entities: tuple[Entity, ...]
    more: tuple[Side, ...] = ()
    widest: float | None = None


@dataclass(frozen=True)
class _Box:
    """An entity in its place; the row counts from the top. ``behind`` is the neighbour in between, for what is two hops away."""

    entity: Entity
    kind: Kind
    row: float
    edges: tuple[Edge, ...] = ()
    attention: float | None = None
    behind: Entity | None = None

    @property
    def side(self) -> Side:
        return self.entity.side

    @property
    def name(self) -> str:
        """Unique in a figure even where a self-loop makes the centre its own neighbour."""
        return _name(self.entity, self.kind)

    @property
    def hint(self) -> str:
        parts = (text.cell(self.entity.title, 80), text.cell(self.entity.short_id, 60), edge_words(self.edges, shares=True))
        return " · ".join(part for part in parts if part)


def _name(entity: Entity, kind: Kind) -> str:
    return f"{entity.side}:{entity.index}:{kind if kind in ('centre', 'more') else 'neighbour'}"


def edge_words(edges: Sequence[Edge], *, shares: bool = False) -> str:
    """'→ inCountry, ← hasCapital', seen from the entity in the middle; with ``shares`` the attention behind each."""
    words = []
    for edge in edges:
        share = f" ({percent(edge.attention)})" if shares and edge.attention is not None else ""
        words.append(f"{ARROWS[edge.direction]} {text.cell(edge.relation, 60)}{share}")
    return ", ".join(words)


def percent(share: float) -> str:
    """'34%', '0.5%', '<0.1%'."""
    if share and share < 0.001:
        return "<0.1%"
    return f"{share:.1%}".replace(".0%", "%") if share < 0.1 else f"{share:.0%}"


def facing_figure(facing: Facing) -> Figure:
    """The neighbours of a pair in rows; aligned ones are at the same height, joined across the gap.

    On a narrow page only the aligned neighbours are drawn, in two columns below their centres.
    """
    boxes = list(_boxes(facing))
    more = tuple(side for side in SIDES if _hidden(facing, side))
    drawn = [*boxes, *(_Box(_centre(facing, side), "more", _last_row(boxes, facing, side)) for side in more)]
    rows = max(LEAST_ROWS, *(math.ceil(box.row) + 1 for box in drawn))
    widest = max((box.attention for box in boxes if box.attention is not None), default=None)
    option = _base_option()
    option |= _wide(drawn, facing, rows, widest)
    option["media"] = [{"query": {"maxWidth": NARROW_BELOW}, "option": _narrow(drawn, facing)}]
    return Figure(option, (rows + 1) * ROW_HEIGHT, tuple(box.entity for box in boxes), more, widest)


def clicked_entity(figure: Figure, event: Any) -> Entity | None:
    """The neighbour that was clicked; None for an edge, a centre or nothing."""
    place = _clicked_node(event)
    return figure.entities[place] if place is not None and CENTRES <= place < len(figure.entities) else None


def clicked_more(figure: Figure, event: Any) -> Side | None:
    """The graph whose "and 4,960 more" was clicked."""
    place = _clicked_node(event)
    behind = -1 if place is None else place - len(figure.entities)
    return figure.more[behind] if 0 <= behind < len(figure.more) else None


def _clicked_node(event: Any) -> int | None:
    for group in event["selection"]["selected"] if event else ():
        if group["data_type"] == "node":
            return next(iter(group["data_indices"]), None)
    return None


def _centre(facing: Facing, side: Side) -> Entity:
    return facing.source if side == "source" else facing.target


def _ends(pair: NeighbourPair) -> tuple[Neighbour, Neighbour]:
    return pair.source, pair.target


def _hidden(facing: Facing, side: Side) -> int:
    """How many neighbours of a side are not drawn."""
    total, hidden = (facing.total_source, facing.hidden_source) if side == "source" else (facing.total_target, facing.hidden_target)
    return total - len(facing.pairs) if facing.far else hidden


def _boxes(facing: Facing) -> Iterator[_Box]:
    """The two centres, then every neighbour that is shown; shorter columns are centred like the rest."""
    if facing.far:
        yield from _outline(facing)
        return
    rows = max(len(facing.pairs), len(facing.source_only), len(facing.target_only), LEAST_ROWS)
    middle = min((rows - 1) / 2, HIGHEST_CENTRE)
    yield _Box(facing.source, "centre", middle)
    yield _Box(facing.target, "centre", middle)
    for row, pair in enumerate(facing.pairs):
        for one in _ends(pair):
            yield _Box(one.entity, "aligned", row + _offset(len(facing.pairs), rows), one.edges, one.attention)
    for alone in (facing.source_only, facing.target_only):
        for row, one in enumerate(alone):
            yield _Box(one.entity, "alone", row + _offset(len(alone), rows), one.edges, one.attention)


def _outline(facing: Facing) -> Iterator[_Box]:
    """Two hops: each pair in a row of its own, what is behind it in the rows below."""
    behind = [[far.pair for far in facing.far if far.through == place] for place in range(len(facing.pairs))]
    rows = len(facing.pairs) + len(facing.far)
    middle = min((rows - 1) / 2, HIGHEST_CENTRE)
    yield _Box(facing.source, "centre", middle)
    yield _Box(facing.target, "centre", middle)
    row = 0
    for pair, further in zip(facing.pairs, behind, strict=True):
        for one in _ends(pair):
            yield _Box(one.entity, "aligned", row, one.edges, one.attention)
        for place, far in enumerate(further, start=1):
            for between, one in zip(_ends(pair), _ends(far), strict=True):
                yield _Box(one.entity, "far", row + place, one.edges, one.attention, between.entity)
        row += 1 + len(further)


def _last_row(boxes: Sequence[_Box], facing: Facing, side: Side) -> float:
    """Below the column that "and 4,960 more" belongs to; beside the centre where there is no column."""
    kind: Kind = "aligned" if facing.far else "alone"
    column = [box.row for box in boxes if box.side == side and box.kind in (kind, *(("far",) if facing.far else ()))]
    return max(column) + 1 if column else boxes[0].row


def _offset(length: int, rows: int) -> float:
    return min((rows - length) / 2, max(HIGHEST_CENTRE - (length - 1) / 2, 0.0))


def _wide(boxes: Sequence[_Box], facing: Facing, rows: int, widest: float | None) -> dict[str, Any]:
    """Edges end in ports, nodes of no size at the boxes' edges, because an edge to a wide box would stop far away from it."""
    columns = {**(FAR_COLUMNS if facing.far else COLUMNS)}
    for side in SIDES:
        columns[side, "more"] = columns[side, "aligned" if facing.far else "alone"]
    used = [columns[box.side, box.kind] for box in boxes]
    nodes = [_node(box, [place, box.row], _outward(box, facing), facing) for place, box in zip(used, boxes, strict=True)]
    ports = [_port(f"port:{box.name}", node["value"]) for box, node in zip(boxes, nodes, strict=True)]
    ports += [
        _port(f"inner:{box.name}", [place + _inwards(box.side), box.row])
        for place, box in zip(used, boxes, strict=True)
        if facing.far and box.kind == "aligned"
    ]
    edges = [_edge(facing, box, widest) for box in boxes if box.kind not in ("centre", "more")]
    grid = {side: _margin(boxes, facing, graph) for side, graph in zip(("left", "right"), SIDES, strict=True)}
    return _view(grid, (min(used), max(used)), rows - 1, nodes + ports, edges + _links(facing))


def _margin(boxes: Sequence[_Box], facing: Facing, side: Side) -> float:
    """Room for the half or the whole box that lies outside of its place."""
    outside = not facing.far and any(box.side == side and box.kind in ("alone", "more") for box in boxes)
    return (WIDTH if outside else WIDTH / 2) + MARGIN


def _inwards(side: Side) -> float:
    """From an aligned box's outer edge to its inner one."""
    return WIDTH if side == "source" else -WIDTH


def _port(name: str, place: list[float]) -> dict[str, Any]:
    return {"id": name, "value": place, **INVISIBLE}


def _narrow(boxes: Sequence[_Box], facing: Facing) -> dict[str, Any]:
    """The same nodes in the same order, so that a click means the same; those that are not aligned have no size."""
    shown = [box for box in boxes if box.kind in ("aligned", "far")]
    top = min((box.row for box in shown), default=0.0)
    last = max((box.row for box in shown), default=-1.0) - top + 1
    nodes = []
    for box in boxes:
        row = {"centre": 0.0, "more": last + 1.4}.get(box.kind, box.row - top + 1.4)
        node = _node(box, [0 if box.side == "source" else 1, row], 0.5 if box.side == "source" else -0.5, facing)
        if box.kind == "more":
            node["label"]["formatter"] = _more_words((facing.total_source if box.side == "source" else facing.total_target) - len(facing.pairs))
        nodes.append({**node, **INVISIBLE} if box.kind == "alone" else node)
    return _view({"left": MARGIN, "right": MARGIN}, (0, 1), max(last + 1.4, LEAST_ROWS - 1), nodes, _links(facing))


def _outward(box: _Box, facing: Facing) -> float:
    """Distance of a box from its port, in widths."""
    if box.kind == "centre":
        return 0.0
    inside = box.kind in ("aligned", "far") or bool(facing.far)
    return 0.5 if (box.side == "source") == inside else -0.5


def _node(box: _Box, place: list[float], shift: float, facing: Facing) -> dict[str, Any]:
    node: dict[str, Any] = {
        "id": box.name,
        "name": box.hint,
        "value": place,
        "symbol": "roundRect",
        "symbolSize": [WIDTH, CENTRE_HEIGHT if box.kind == "centre" else NODE_HEIGHT],
        "symbolOffset": [shift * WIDTH, 0],
        "itemStyle": {"color": PALE_FILL if box.kind == "alone" else BOX_FILLS[box.side]},
        "label": {"formatter": _literal(text.cell(box.entity.title, 60)), "width": WIDTH - 12, "fontSize": 11},
    }
    if box.kind == "centre":
        node["label"] |= {"fontSize": 13, "fontWeight": "bold"}
    elif box.kind == "far":
        node |= {"symbolSize": [WIDTH, FAR_HEIGHT]}
        node["label"] |= {"fontSize": 10}
    elif box.kind == "more":
        words = _more_words(_hidden(facing, box.side))
        node |= {"name": f"{words}: click to list all", "itemStyle": {"color": "transparent", "borderColor": LINK_INK, "borderType": "dashed"}}
        node["label"] |= {"formatter": words, "color": LINK_INK}
    return node


def _more_words(number: int) -> str:
    return f"and {number:,} more"


def _literal(label: str) -> str:
    """Braces would be read as a template or as rich text."""
    return label.replace("{", "❴").replace("}", "❵")


def _edge(facing: Facing, box: _Box, widest: float | None) -> dict[str, Any]:
    """To a neighbour; the mark at the neighbour shows the direction, the width the attention, the hint names all relations."""
    directions = {edge.direction for edge in box.edges}
    kind = "both" if len(directions) > 1 else "out" if "out" in directions else "in"
    start = f"inner:{_name(box.behind, 'aligned')}" if box.behind else f"port:{_name(_centre(facing, box.side), 'centre')}"
    return {
        "source": start,
        "target": f"port:{box.name}",
        "id": edge_words(box.edges, shares=True),
        "lineStyle": {"color": EDGE_INK[kind], "width": edge_width(box.attention, widest), "opacity": 0.5 if box.kind == "alone" else 0.9},
        "symbol": ["none", EDGE_MARK[kind][0]],
        "symbolSize": [0, EDGE_MARK[kind][1]],
    }


def edge_width(attention: float | None, widest: float | None) -> float:
    """In pixels; a straight line from no attention to the most that the figure shows."""
    if attention is None or not widest:
        return WITHOUT_ATTENTION
    return round(THINNEST + (WIDEST - THINNEST) * min(attention / widest, 1.0), 2)


def _links(facing: Facing) -> list[dict[str, Any]]:
    """Across the gap, one for each pair."""
    return [
        {
            "source": _name(pair.source.entity, "aligned"),
            "target": _name(pair.target.entity, "aligned"),
            "id": f"aligned: {pair.evidence}",
            "lineStyle": {"color": LINK_INK, "type": LINE[pair.evidence].echarts, "width": 3 if pair.evidence == "seed link" else 2, "opacity": 1},
        }
        for pair in (*facing.pairs, *(far.pair for far in facing.far))
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
