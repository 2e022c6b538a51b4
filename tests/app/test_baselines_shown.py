"""What the pages show of a baseline: all that follows from matches, and one sentence for what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.pages import GROUPS
from tests.app.conftest import OpenPage, PutRun, assert_no_crash, tables, words
from tests.run_fixture import MemoryRun, of_baseline

CITY_5 = "http://one.example/resource/Entity_5"
REFUSED = {
    "relations": "The baseline LightEA has no relation importance. Choose a run of Dual-AMN.",
    "proxies": "The baseline LightEA has no proxies. Choose a run of Dual-AMN.",
    "explain": "this is a run of the baseline LightEA, which has no encoder to explain scores or match new entities with; open a run of Dual-AMN.",
}


@pytest.fixture(scope="module")
def plain_baseline(whole_run: MemoryRun) -> MemoryRun:
    return of_baseline(whole_run)


@pytest.fixture
def baseline(plain_baseline: MemoryRun, models: Path, put_run: PutRun) -> str:
    """The id of a run of a baseline in the models folder."""
    return put_run(plain_baseline, models, "towns", "lightea-s0-0123abcd")


@pytest.mark.parametrize("page", [page.name for pages in GROUPS.values() for page in pages])
def test_every_page_opens_on_a_baseline(page: str, baseline: str, open_page: OpenPage) -> None:
    given = {"entity": {"side": "source", "entity": CITY_5}, "explain": {"source": CITY_5}, "proxies": {"source": CITY_5}}.get(page, {})
    app = open_page(page, run=baseline, **given)
    assert_no_crash(app)
    said = words(app).translate(str.maketrans("", "", "\\\u2068\u2069"))
    if page in REFUSED:
        assert REFUSED[page] in said
        assert len(app.error) == (page == "explain")
    else:
        assert not app.error, said


def test_compare_shows_a_baseline_next_to_a_variant(baseline: str, models: Path, whole_run: MemoryRun, put_run: PutRun, open_page: OpenPage) -> None:
    other = put_run(whole_run, models)
    app = open_page("compare", run=[other, baseline])
    assert_no_crash(app)
    assert not app.error
    table = tables(app)[0].set_index("measure")
    assert table.loc["variant"].tolist() == ["basic", "lightea"]
