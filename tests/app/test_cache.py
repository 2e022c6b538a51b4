"""What the app keeps is of the run that is there, whatever time its manifest says."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app import cache
from engine.runs import RunStore
from tests.app.conftest import OpenPage, assert_no_crash, tables, words
from tests.run_fixture import MemoryRun, analysed, jolted, sample_run, write_run

CREATED = "2026-11-01T12:00:00+00:00"


def moved_into_its_place(other: Path, run: Path) -> None:
    run.rename(run.with_name(".old"))
    other.rename(run)


def copied_over_it(other: Path, run: Path) -> None:
    """In place, file by file, with the times of the files that are copied."""
    for file in other.iterdir():
        shutil.copy2(file, run / file.name)


@pytest.fixture
def other_run(tmp_path: Path) -> Path:
    """Of the same id and stamp, with other embeddings."""
    write_run(analysed(jolted(sample_run(), 0.5, 7)), tmp_path / "elsewhere", created=CREATED)
    return RunStore(tmp_path / "elsewhere").list()[0].path


@pytest.mark.parametrize("replace", [moved_into_its_place, copied_over_it])
def test_a_run_that_was_replaced_is_opened_again(
    replace: Callable[[Path, Path], None], whole_run: MemoryRun, other_run: Path, models: Path, open_page: OpenPage
) -> None:
    run = write_run(whole_run, models, created=CREATED)
    entity = {"run": run, "side": "source", "entity": "http://one.example/resource/Entity_5"}
    before = open_page("entity", **entity)
    opened = cache.open_listed(run)
    kept = cache.kept([opened], ("test",), lambda: "old")
    assert np.array_equal(opened.tensor("embeddings", "source"), whole_run.tensors["embeddings"]["source"])
    assert len(opened.table("matches"))
    replace(other_run, models / run)
    again = cache.open_listed(run)
    assert again is not opened
    assert not np.array_equal(again.tensor("embeddings", "source"), whole_run.tensors["embeddings"]["source"])
    assert cache.kept([again], ("test",), lambda: "new") != kept
    after = open_page("entity", **entity)
    assert_no_crash(after)
    assert not after.error
    assert scores(before) != scores(after)
    assert words(after)


def test_what_pairs_keep_is_bounded_and_pushes_out_nothing_that_all_share(run: str) -> None:
    opened, computed = cache.open_listed(run), list[str]()

    def asked(name: str) -> str:
        computed.append(name)
        return name

    cache.kept([opened], ("shared",), lambda: asked("shared"))
    for number in range(cache.KEPT_PAIRS + 1):
        cache.kept_of_pair([opened], ("pair", str(number)), lambda number=number: asked(f"pair {number}"))  # type: ignore[misc]
    for number in range(cache.KEPT_EXPORTS + 1):
        cache.kept_export(opened, ("export", str(number)), lambda number=number: asked(f"export {number}"))  # type: ignore[misc]
    computed.clear()
    cache.kept([opened], ("shared",), lambda: asked("shared"))
    cache.kept_of_pair([opened], ("pair", str(cache.KEPT_PAIRS)), lambda: asked("newest"))
    assert not computed
    cache.kept_of_pair([opened], ("pair", "0"), lambda: asked("oldest pair"))
    cache.kept_export(opened, ("export", "0"), lambda: asked("oldest export"))
    assert computed == ["oldest pair", "oldest export"], "the number of entries has an end"


def test_searches_of_all_entities_run_one_at_a_time(run: str) -> None:
    opened, running, most = cache.open_listed(run), [0], [0]

    def search() -> int:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.02)
        running[0] -= 1
        return 1

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: cache.kept_search(opened, ("search", str(number)), search), range(6)))
    assert most == [1]


def scores(app: AppTest) -> list[str]:
    return [str(score) for table in tables(app) if "CSLS" in table for score in table["CSLS"]]
