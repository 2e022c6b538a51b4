"""Addresses of every page with any parameters: an address that is read as it is written, or one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import get_args, get_type_hints
from urllib.parse import parse_qsl, quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import state
from app.pages import PAGES
from app.state import Address, asked_focus, asked_runs
from engine.errors import EngineError
from tests.fuzz.effort import cases, in_time
from tests.fuzz.oracles import assert_sentence

KINDS = {type(page.address()).__name__: type(page.address()) for page in PAGES}
ODD = (
    *(
        "",
        " ",
        "0",
        "-1",
        "1",
        "9" * 400,
        "1e999",
        "nan",
        "inf",
        "-0.0",
        "0x10",
        "1_000",
        "\u0661",
        "yes",
        "no",
        "true",
        "None",
        "all",
        "source",
        "target",
    ),
    *(
        "a/b",
        "../..",
        "a/b/c",
        "/etc/passwd",
        "\0",
        "\n",
        "\ud800",
        "\u202e",
        "<script>",
        "' OR 1=1 --",
        "x" * 30_000,
        "%00",
        "source:x",
        "value:a=b",
        "e\u0301",
    ),
)


class Parameters:
    """As much of ``st.query_params`` as reading an address needs."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def get_all(self, name: str) -> list[str]:
        return list(self._values.get(name, []))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)


def values(kind: type[Address]) -> st.SearchStrategy[tuple[str, str]]:
    """A parameter of this page, or of another, with a value that is allowed, odd, or any text."""
    hints = get_type_hints(kind)
    literals = {text for hint in hints.values() for part in (hint, *get_args(hint)) for text in get_args(part) if isinstance(text, str)}
    names = [*hints, "run", "set", "unknown"]
    return st.tuples(st.sampled_from(names), st.sampled_from(sorted(literals | set(ODD))) | st.text(max_size=12))


def read(kind: type[Address], pairs: Iterable[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> Address:
    monkeypatch.setattr(state, "st", SimpleNamespace(query_params=Parameters(pairs)))
    return kind.read()


def pairs_of(address: Address) -> list[tuple[str, str]]:
    return [(name, one) for name, value in address.parameters().items() for one in ([value] if isinstance(value, str) else value)]


def check(kind: type[Address], pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with in_time():
            address = read(kind, pairs, monkeypatch)
    except EngineError as error:
        text = str(error)
        assert len(text) < 400
        assert "\n" not in text
        assert_sentence(error)
        return
    assert read(kind, pairs_of(address), monkeypatch) == address
    asked_runs()
    asked_focus()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.timeout(1800)
@cases(12)
@given(data=st.data())
def test_any_parameters(name: str, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(values(KINDS[name]), max_size=8))
    with pytest.MonkeyPatch.context() as monkeypatch:
        check(KINDS[name], pairs, monkeypatch)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.timeout(1800)
@cases(4)
@given(data=st.data())
def test_any_query_string(name: str, data: st.DataObject) -> None:
    """A query string that was cut, doubled or escaped wrongly."""
    pairs = data.draw(st.lists(values(KINDS[name]), min_size=1, max_size=5))
    query = urlencode([(one, two[:200].encode("utf-8", "replace")) for one, two in pairs])
    at, more = data.draw(st.integers(0, len(query))), data.draw(st.sampled_from(["&", "=", "%", "%ff", "+", ";", "#", "?", quote("\u202e"), "%zz"]))
    with pytest.MonkeyPatch.context() as monkeypatch:
        check(KINDS[name], parse_qsl(query[:at] + more + query[at:], keep_blank_values=True), monkeypatch)
