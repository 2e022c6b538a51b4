"""What the app draws by itself in the browser: small tables, and parts that wait until they are scrolled to."""

from __future__ import annotations

from typing import Any

import pytest

from app import light_table, state
from tests.app.conftest import OpenPage, assert_no_crash, sent


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
