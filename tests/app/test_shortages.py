"""What ran out is shown as one sentence on every page, and the page is there again once there is room."""

from __future__ import annotations

import errno
import os

import pytest
import streamlit as st

from app.pages import PAGES
from engine.runs import Run, RunStore
from tests.app.conftest import OpenPage, assert_no_crash

ERRORS = {
    "open files": (OSError(errno.EMFILE, os.strerror(errno.EMFILE), "some.parquet"), "too many open files"),
    "memory": (MemoryError(), "out of memory"),
    "memory of torch": (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"), "out of memory"),
    "disk": (OSError(errno.EIO, os.strerror(errno.EIO), "some.parquet"), "check the disk"),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_what_ran_out_is_shown(kind: str, run: str, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    error, words = ERRORS[kind]
    for place, name, page in ((RunStore, "list", "home"), (Run, "table", "pairs")):
        st.cache_data.clear()
        st.cache_resource.clear()
        with monkeypatch.context() as patch:
            patch.setattr(place, name, lambda *_, **__: (_ for _ in ()).throw(error))
            app = open_page(page, run=run)
            assert_no_crash(app)
            assert [one.value for one in app.error if words in one.value.lower()], [one.value for one in app.error]
        app.run()
        assert_no_crash(app)
        assert not app.error


@pytest.mark.slow
@pytest.mark.parametrize("page", [page.name for page in PAGES])
def test_no_page_shows_a_traceback(page: str, run: str, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, _ in ERRORS.values():
        st.cache_data.clear()
        st.cache_resource.clear()
        with monkeypatch.context() as patch:
            for place, name in ((Run, "table"), (Run, "tensor"), (RunStore, "find")):
                patch.setattr(place, name, lambda *_, error=error, **__: (_ for _ in ()).throw(error))
            assert_no_crash(open_page(page, run=run))
