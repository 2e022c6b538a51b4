"""A models folder for the app, and the app itself without a browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest, local_script_runner

from app.pages import PAGES
from app.state import SEEN, widget_key
from benchmarks.served_app import BROWSER_OPTIONS, served
from tests.run_fixture import MemoryRun, analysed, jolted, sample_run, write_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"
TIMEOUT = 60
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
PATIENCE = 90_000  # milliseconds, for a browser on a machine that is busy

OpenPage = Callable[..., AppTest]
PutRun = Callable[..., str]


@pytest.fixture(scope="session", autouse=True)
def installed_components() -> Iterator[None]:
    """Streamlit reads what every installed package says of itself whenever an app is opened, which takes longer than most pages: here once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture(scope="session", autouse=True)
def ends_awaited() -> Iterator[None]:
    """Streamlit looks every millisecond whether a page is done, which takes time from the page itself: here its thread is waited for."""
    look = local_script_runner.require_widgets_deltas

    def wait(runner: local_script_runner.LocalScriptRunner, timeout: float = TIMEOUT) -> None:
        assert runner._script_thread is not None
        runner._script_thread.join(timeout)
        if not runner.script_stopped():
            look(runner, 0)  # which ends it and says so

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_script_runner, "require_widgets_deltas", wait)
        yield


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty models folder that the app looks at, and beside it a data folder of its own."""
    folder = tmp_path / "models"
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DUAL_AMN_MODELS", str(folder))
    st.cache_data.clear()
    st.cache_resource.clear()
    return folder


@pytest.fixture(scope="session")
def put_run(tmp_path_factory: pytest.TempPathFactory) -> PutRun:
    """As ``write_run``, for runs that no test changes: the same run of the same name is written once, and copied after that."""
    written: dict[tuple[int, str], tuple[MemoryRun, Path, str]] = {}

    def put_run(run: MemoryRun, models: Path, *names: str, **manifest: Any) -> str:
        asked = id(run), repr((names, sorted(manifest.items())))
        if asked not in written:
            folder = tmp_path_factory.mktemp("written")
            written[asked] = run, folder, write_run(run, folder, *names, **manifest)
        _, folder, name = written[asked]
        shutil.copytree(folder, models, dirs_exist_ok=True)
        return name

    return put_run


@pytest.fixture(scope="session")
def small_run() -> MemoryRun:
    """A run of embeddings and matches alone; not to be changed."""
    return sample_run()


@pytest.fixture
def run(small_run: MemoryRun, models: Path, put_run: PutRun) -> str:
    """The id of one run in the models folder."""
    return put_run(small_run, models)


@pytest.fixture(scope="session")
def whole_run() -> MemoryRun:
    """A run with every table that an engine of today stores; not to be changed."""
    return analysed(sample_run())


@pytest.fixture(scope="session")
def registered_pages(installed_components: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The pages as the router registers them, the same in every session: opened once, so that each test opens its page alone, as a browser does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DUAL_AMN_DATA", str(tmp_path_factory.mktemp("no_data")))
        patch.setenv("DUAL_AMN_MODELS", str(tmp_path_factory.mktemp("no_models")))
        app = AppTest.from_file(str(MAIN), default_timeout=TIMEOUT).run()
    assert_no_crash(app)
    return app._registered_pages


@pytest.fixture
def open_page(models: Path, registered_pages: Any) -> OpenPage:
    """Opens a page of the app at an address."""

    def open_page(page: str, /, **parameters: str | list[str]) -> AppTest:
        app = AppTest.from_file(str(MAIN), default_timeout=TIMEOUT)
        app._registered_pages = registered_pages
        app.session_state[widget_key(SEEN, "neighbourhoods")] = True  # a browser would have scrolled there
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.switch_page(next(known.script for known in PAGES if known.name == page)).run()

    return open_page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The one browser of these tests; what must know nothing of the others is opened in a context of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(BROWSER_OPTIONS), timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def app_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models folder of the app that browsers share, with two runs of the same data; the basic one is the newer.

    Tests that need other runs add some, of data sets of their own and older than these.
    """
    models = tmp_path_factory.mktemp("models")
    better, worse = (analysed(jolted(sample_run(), amount, seed)) for amount, seed in ((0.15, 3), (0.3, 4)))
    write_run(better, models, "towns", "semi-s0", variant="semi", created="2026-10-30T12:00:00+00:00")
    write_run(worse, models, "towns", "basic-s0")
    return models


@pytest.fixture(scope="session")
def app_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of imported data sets of the app that browsers share."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def app(app_models: Path, app_data: Path) -> Iterator[str]:
    """The address of the app that browsers share."""
    with served(app_models, app_data) as (address, _):
        yield address


def of_other_data(run: MemoryRun, name: str, fingerprint: str) -> MemoryRun:
    """The run as one of another data set, older than the runs that the shared app begins with."""
    data = {**run.manifest["data"], "name": name, "fingerprint": fingerprint}
    return replace(run, manifest={**run.manifest, "dataset": name, "data": data, "created": "2026-10-01T12:00:00+00:00"})


def words(app: AppTest) -> str:
    """Everything that a page says outside of tables and charts."""
    kinds = (app.title, app.header, app.subheader, app.markdown, app.caption, app.error, app.info, app.warning, app.code)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def sent(app: AppTest, component: str) -> list[dict[str, Any]]:
    """What the page sends to the app's own parts of this name in the browser."""
    found = [element.proto for element in app.get("bidi_component")]
    return [json.loads(proto.json) for proto in found if proto.component_name == component]


def figures(app: AppTest) -> list[dict[str, Any]]:
    """The specifications of the page's figures."""
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def tables(app: AppTest) -> list[pd.DataFrame]:
    """All tables of the page: the grids, then those that are read rather than sorted, with their values and not the words for them."""
    light = [pd.DataFrame(one["rows"], columns=[head["label"] for head in one["columns"]]) for one in sent(app, "light_table")]
    return [*(element.value for element in (*app.dataframe, *app.table)), *light]


def links(app: AppTest) -> list[str]:
    """The page's links, those of the sidebar left out."""
    return [f"{link.proto.page}?{link.proto.query_string}" for link in app.main.get("page_link")]


def sidebar_links(app: AppTest) -> list[str]:
    """Those of the navigation, then those to recent entities."""
    return [f"{link.proto.page}?{link.proto.query_string}" for link in app.sidebar.get("page_link")]


def with_open(app: AppTest, name: str, *parts: object) -> AppTest:
    """The page once an expander is opened, so that what is in it is drawn; ``name`` and ``parts``: of its key."""
    app.session_state[widget_key(name, *parts)] = True
    return app.run()


def assert_no_crash(app: AppTest) -> None:
    assert not app.exception, [element.value for element in app.exception]
