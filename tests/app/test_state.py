"""Addresses: what is written is read again, what makes no sense is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.pages import PAGES
from app.state import Address, DegreeAddress, EntityAddress, PairsAddress, ProxiesAddress
from tests.app.conftest import OpenPage, assert_no_crash


def read_back(address: Address) -> str:
    """What a page reads from the address that the other one is written as."""

    def script(kind: str) -> None:
        import streamlit as st

        from app import state
        from engine.errors import EngineError

        try:
            st.text(repr(getattr(state, kind).read()))
        except EngineError as error:
            st.text(f"refused: {error}")

    app = AppTest.from_function(script, args=(type(address).__name__,))
    for name, value in address.parameters().items():
        app.query_params[name] = value
    return str(app.run().text[0].value)


@pytest.mark.parametrize(
    "address",
    [
        EntityAddress(("a/b", "a/c"), "target", "http://x/y?z=1&w=ü", None, "test"),
        PairsAddress(("a/b",), known=("right", "unknown"), probability_from=0.25, degree_to=3, reverse=True, page=7, search="دمشق"),
        ProxiesAddress(("a/b",), "relation", 0, "http://x/1", "http://y/1", "attention"),
        EntityAddress(("a/b",), "source", "Bonn ", "\u00a0Bonn\u3000", expand=("source:Bonn ", "target: Bonn")),
        PairsAddress(("a/b",), relation="near "),
        *(page.address() for page in PAGES),
    ],
    ids=lambda address: type(address).__name__,
)
def test_addresses_are_read_as_they_are_written(address: Address) -> None:
    assert read_back(address) == repr(address)


def test_defaults_are_left_out() -> None:
    assert DegreeAddress(("a/b",)).parameters() == {"run": ["a/b"]}
    assert replace(PairsAddress(), page=2).parameters() == {"page": "2"}


@pytest.mark.parametrize(
    ("page", "parameters", "message"),
    [
        ("degree", {"rate": "accuracy"}, "Expected 'hits@1', 'hits@10' or 'mrr'"),
        ("proxies", {"proxy": "first"}, "Expected a whole number"),
        ("proxies", {"proxy": "9" * 5000}, "Expected a whole number"),
        ("proxies", {"channel": "<b>"}, "Expected 'entity' or 'relation'"),
        ("pairs", {"probability_from": "nan"}, "Expected a number"),
        ("pairs", {"known": ["right", "false"]}, "Expected 'seed', 'right', 'wrong', 'probable' or 'unknown'"),
        ("pairs", {"reverse": "1"}, "Expected 'yes' or 'no'"),
        ("relations", {"search": "x" * 30_000}, "longer than any identifier"),
    ],
)
def test_senseless_parameters_get_a_sentence(run: str, open_page: OpenPage, page: str, parameters: dict[str, Any], message: str) -> None:
    app = open_page(page, run=run, **parameters)
    assert_no_crash(app)
    assert message in app.error[0].value.replace("\\", "")
