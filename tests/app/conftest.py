"""A models folder for the app, and the app itself without a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.pages import PAGES
from tests.run_fixture import MemoryRun, analysed, sample_run, write_run

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"
TIMEOUT = 60

OpenPage = Callable[..., AppTest]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty models folder that the app looks at, and beside it a data folder of its own."""
    folder = tmp_path / "models"
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DUAL_AMN_MODELS", str(folder))
    st.cache_data.clear()
    st.cache_resource.clear()
    return folder


@pytest.fixture
def run(models: Path) -> str:
    """The id of one run in the models folder."""
    return write_run(sample_run(), models)


@pytest.fixture(scope="session")
def whole_run() -> MemoryRun:
    """A run with every table that an engine of today stores; not to be changed."""
    return analysed(sample_run())


@pytest.fixture
def open_page(models: Path) -> OpenPage:
    """Opens a page of the app at an address."""

    def open_page(page: str, /, **parameters: str | list[str]) -> AppTest:
        app = AppTest.from_file(str(MAIN), default_timeout=TIMEOUT).run()
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.switch_page(next(known.script for known in PAGES if known.name == page)).run()

    return open_page


def words(app: AppTest) -> str:
    """Everything that a page says outside of tables and charts."""
    kinds = (app.title, app.header, app.subheader, app.markdown, app.caption, app.error, app.info, app.warning, app.code)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def links(app: AppTest) -> list[str]:
    """The page's links, those of the navigation left out."""
    found = [f"{link.proto.page}?{link.proto.query_string}" for link in app.get("page_link")]
    return found[len(PAGES) :]


def assert_no_crash(app: AppTest) -> None:
    assert not app.exception, [element.value for element in app.exception]
