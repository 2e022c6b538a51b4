"""What the app draws by itself in the browser: the first page of HTML, figures, small tables, parts that wait until they are scrolled to."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from starlette.types import Message, Receive, Scope, Send

from app import drawing, light_table, state
from app.first_page import INDEX, FirstPage, first_page
from tests.app.conftest import OpenPage, assert_no_crash, sent


async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 418, "headers": []})


def answered(path: str, method: str = "GET", kind: str = "http") -> tuple[int, bytes]:
    """Status and body of an answer."""
    found: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        found.append(message)

    asyncio.run(FirstPage(elsewhere)({"type": kind, "method": method, "path": path}, receive, send))
    return found[0]["status"], b"".join(message.get("body", b"") for message in found)


@pytest.mark.parametrize("path", ["/", "/entity", "/review", "/import"])
def test_the_first_page_says_where_the_server_is(path: str) -> None:
    status, body = answered(path)
    assert status == 200
    assert b"window.__streamlit" in body
    assert body.index(b"window.__streamlit") < body.index(b'<script type="module"'), "before any script of Streamlit"


@pytest.mark.parametrize(
    ("path", "method", "kind"),
    [
        ("/entity/x", "GET", "http"),
        ("/_stcore/health", "GET", "http"),
        ("/entity", "POST", "http"),
        ("/entity", "GET", "websocket"),
        ("//entity", "GET", "http"),
    ],
)
def test_whatever_else_is_asked_for_is_streamlits(path: str, method: str, kind: str) -> None:
    assert answered(path, method, kind)[0] == 418


def test_names_and_origins_cannot_end_the_script_of_the_first_page() -> None:
    page = first_page(INDEX.read_text(encoding="utf-8"), ["</script><b>"], ["https://a.example</script>"])
    own = page[page.index("const pages") : page.index("window.__streamlit")] + page.partition("HOST_CONFIG")[2].partition("\n")[0]
    assert "</script>" not in own
    settings = re.search(r"HOST_CONFIG: (\{.*\}) \};", page)
    assert settings is not None
    assert json.loads(settings[1])["allowedOrigins"] == ["https://a.example</script>"]
    assert first_page("<html></html>", ["home"], []) == "<html></html>", "another Streamlit's page stays as it is"


def test_a_figure_is_sent_as_plain_numbers() -> None:
    fig = go.Figure(
        go.Scatter(x=np.arange(3.0), y=[1.0, float("nan"), float("inf")], customdata=pd.DataFrame({"a": ["x", "y", "z"], "b": [1, 2, 3]}))
    )
    fig.add_heatmap(z=np.arange(4).reshape(2, 2))
    found = drawing.specification(fig)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    points, cells = found["data"]
    assert points["x"] == [0.0, 1.0, 2.0]
    assert points["y"] == [1.0, None, None]
    assert points["customdata"] == [["x", 1], ["y", 2], ["z", 3]]
    assert cells["z"] == [[0, 1], [2, 3]]
    assert "template" not in found["layout"]


@pytest.mark.parametrize("forged", [None, 7, "x", [], {}, {"customdata": "x", "point_index": 0}, {"customdata": [], "point_index": "0"}])
def test_a_forged_mark_chooses_nothing(forged: object) -> None:
    assert not drawing.is_point(forged)
    assert drawing.is_point({"customdata": ["1"], "point_index": 0})


@pytest.mark.parametrize("forged", [-1, 2, "0", 0.0, True, None, [0]])
def test_a_forged_row_chooses_nothing(forged: object, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, Any] = {"key": {"row": forged}, "real": {"row": 1}}
    monkeypatch.setattr(light_table.st, "session_state", kept)
    assert light_table.clicked_row("key", 2) is None
    assert light_table.clicked_row("real", 2) == 1


def test_a_small_table_says_what_is_missing_and_how_numbers_are_shown(run: str, open_page: OpenPage) -> None:
    app = open_page("entity", run=run, side="source", entity="http://one.example/resource/Entity_5")
    assert_no_crash(app)
    matches = next(table for table in sent(app, "light_table") if table["columns"][0]["label"] == "match")
    assert matches["chosen"] == 0
    assert matches["chooses"]
    assert {head["label"]: head["format"] for head in matches["columns"]}["CSLS"] == "%.3f"
    assert all(len(row) == len(matches["columns"]) for row in matches["rows"])


def test_neighbourhoods_wait_until_they_are_scrolled_to_unless_the_link_is_about_them(run: str, open_page: OpenPage) -> None:
    asked = {"run": run, "side": "source", "entity": "http://one.example/resource/Entity_5"}
    app = open_page("entity", **asked)
    assert app.get("echarts_chart")
    del app.session_state[state.widget_key(state.SEEN, "neighbourhoods")]
    app.run()
    assert_no_crash(app)
    assert not app.get("echarts_chart")
    assert [waiting["words"] for waiting in sent(app, "on_scroll")] == ["Drawing both neighbourhoods…"]
    app.query_params["hops"] = "2"
    app.run()
    assert_no_crash(app)
    assert app.get("echarts_chart")
