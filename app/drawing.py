"""Figures as the browser draws them: SVG by a script of 20 kB, where the library that could draw anything is a download of 4.7 MB.

The script knows the traces and settings that the app's figures use: bars, points and lines with intervals, heat maps; linear, log and category axes.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
import streamlit as st

SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
HTML = """<div class="drawing" role="figure"><div class="canvas"></div>
<button type="button" title="Save picture">⤓</button><div class="tip" hidden></div></div>"""
CSS = """
.drawing { position: relative; overflow: hidden; color: var(--st-text-color); font-family: var(--st-font, sans-serif); transition: color 1ms; }
svg { display: block; }
button { position: absolute; top: 0; right: 0; width: 1.75rem; height: 1.75rem; border: 1px solid transparent; border-radius: 0.375rem;
  background: var(--st-background-color); color: inherit; font-size: 1rem; line-height: 1; cursor: pointer; opacity: 0; }
.drawing:hover button, button:focus-visible { opacity: 1; }
@media (hover: none) { button { opacity: 0.8; } }
button:hover, button:focus-visible { border-color: var(--st-primary-color); }
.choice { cursor: pointer; }
.choice:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.tip { position: absolute; pointer-events: none; max-width: 24rem; padding: 0.25rem 0.5rem; border: 1px solid var(--st-border-color);
  border-radius: 0.375rem; background: var(--st-background-color); font-size: 0.8125rem; z-index: 1; }
"""


def draw(
    fig: go.Figure,
    *,
    key: str,
    name: str,
    picture: str,
    alt: str,
    height: int,
    on_select: Callable[[], None] | Literal["ignore", "rerun"] = "ignore",
) -> list[Mapping[str, Any]]:
    """Draw a figure.

    Args:
        fig: its texts have passed :func:`app.text.figure_label`.
        key: of the widget.
        name: of the file that a picture is saved as, without its ending.
        picture: the format of that file, "png" or "svg".
        alt: what it shows, for screen readers.
        height: in pixels.
        on_select: called when a mark is clicked; "rerun": the page is drawn again, and the mark returned.

    Returns:
        The mark that was clicked just now, if any: its ``customdata`` and ``point_index``.
    """
    data = {"spec": specification(fig), "height": height, "name": name, "format": picture, "alt": alt, "selects": on_select != "ignore"}
    component = st.components.v2.component("drawing", html=HTML, css=CSS, js=SCRIPT)
    if on_select == "ignore":
        component(key=key, data=data, height="content")
        return []
    found: Any = component(key=key, data=data, height="content", on_point_change=on_select if callable(on_select) else lambda: None)
    return [found.point] if is_point(found.point) else []


def chosen_point(key: str) -> Mapping[str, Any] | None:
    """For ``on_select``: the mark that was clicked; whatever the browser sends may be forged."""
    point = st.session_state[key]["point"]
    return point if is_point(point) else None


def is_point(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("customdata"), list) and isinstance(value.get("point_index"), int)


def specification(fig: go.Figure) -> dict[str, Any]:
    """Traces and layout as plain lists and numbers, without the library's own defaults."""
    found: dict[str, Any] = _plain({name: part for name, part in fig.to_dict().items() if name in ("data", "layout")})
    found["layout"].pop("template", None)
    return found


def _plain(value: Any) -> Any:
    """What JSON can hold: packed arrays as lists, no number as None."""
    if isinstance(value, Mapping):
        return _unpacked(value) if "bdata" in value else {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _unpacked(packed: Mapping[str, Any]) -> Any:
    values = np.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])
    shape = [int(length) for length in str(packed["shape"]).split(",")] if "shape" in packed else [-1]
    return _plain(values.reshape(shape))
