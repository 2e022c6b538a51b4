"""A pair's explanation and its summary, computed once for all pages that show them."""

from __future__ import annotations

from typing import Final

import streamlit as st

from app import cache, components, text
from app.cache import OpenRun
from engine.explanation import Explanation, explain
from engine.explanation.verdict import pair_summary
from engine.explore.neighbourhood import facing
from engine.runs.view import Pool

LISTED: Final = 40
"""Pairs of neighbours that are listed one by one."""


def explanation(run: OpenRun, source: int, target: int, pool: Pool) -> Explanation:
    """
    Raises:
        RunError: the run has no weights, or such as do not fit.
    """
    question = ("explanation", str(source), str(target), pool)
    return cache.kept_of_pair([run], question, lambda: explain(run.explainer, source, target, pool, LISTED))


def summary(run: OpenRun, found: Explanation, heading: str) -> None:
    """The verdict, then the facts that it rests on: the same as on the command line.

    Args:
        run: the run.
        found: the explanation.
        heading: Markdown of the verdict, with ``{}`` where it goes.
    """
    faced = facing(run.adjacency, found.pair.source.index, found.pair.target.index, LISTED)
    summarised = pair_summary(run.explainer, found, faced)
    st.markdown(heading.format(text.plain(summarised.verdict.text, 400)))
    components.labelled_lines(summarised.lines)
