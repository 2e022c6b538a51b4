"""Downloads, figure labels, the glossary."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import components, text
from app.components import csv_bytes
from app.glossary import PROBABILITY_FEATURES, TERMS, explain
from engine.data.knowledge_graph import Finding, Severity
from engine.evaluation.calibration import FEATURES
from engine.runs.view import UNCHECKED, RunView
from tests.app.conftest import OpenPage
from tests.run_fixture import sample_run


def test_a_download_holds_every_script_and_no_formula() -> None:
    data = pd.DataFrame({"name": ["北京市", "=cmd|' /C calc'!A0", "@x", "a,b\nc", None], "score": [-1.5, 2.0, None, 0.25, 1.0]})
    content = csv_bytes(data)
    assert content.startswith(b"\xef\xbb\xbf"), "the mark by which spreadsheets know UTF-8"
    back = pd.read_csv(io.BytesIO(content))
    assert back["name"].tolist()[:4] == ["北京市", "'=cmd|' /C calc'!A0", "'@x", "a,b\nc"]
    assert back["score"].tolist()[:2] == [-1.5, 2.0], "numbers stay numbers"


@given(st.text(max_size=80))
def test_labels_in_figures_are_no_markup(raw: str) -> None:
    label = text.figure_label(raw)
    assert not re.search(r"[<>$%{]", label)
    assert not re.search(r"&(?!amp;|lt;|gt;|#36;|#37;|#123;)", label)


@given(st.lists(st.text(max_size=40), max_size=4))
def test_file_names_are_names(parts: list[str]) -> None:
    assert re.fullmatch(r"[\w][\w.-]{0,119}", text.file_name(*parts), re.ASCII)
    assert ".." not in text.file_name("../..", "x")


@pytest.mark.parametrize("term", TERMS)
def test_the_glossary_explains_in_sentences(term: str) -> None:
    assert explain(term).endswith(".")
    assert f"**{term}**" in explain(term, "CSLS")


WORDS_OF_FEATURES = {"similarity": "cosine", "csls": "CSLS", "margin": "margins", "rank": "ranks", "weight": "Sinkhorn weight", "degree": "degrees"}
WORDS_OF_FEATURES |= {
    "aligned neighbours": "aligned neighbours",
    "aligned share": "(number and share)",
}


def test_the_glossary_says_what_a_probability_depends_on() -> None:
    """A feature that is added to the calibration, or taken out, has to be so here."""
    assert tuple(PROBABILITY_FEATURES) == FEATURES
    kinds = {name if name in WORDS_OF_FEATURES else name.split()[-1] for name in FEATURES}
    assert kinds == set(WORDS_OF_FEATURES)
    for kind in kinds:
        assert WORDS_OF_FEATURES[kind] in TERMS["calibrated probability"], kind


@pytest.mark.parametrize("estimated", [True, False])
def test_a_pair_says_where_its_probability_is_estimated(estimated: bool) -> None:
    view = RunView(sample_run())
    pair = replace(view.pair(20, 21), probability=0.5, estimated=estimated)
    assert components.score_line(view, pair, "source").startswith("**50%** estimated probability" if estimated else "**50%** probability")
    assert (UNCHECKED in components.score_help(view, pair)) == estimated
    assert (components.probability_column(view)["label"] == "estimated probability") == view.unchecked_probabilities


def test_values_are_shown_as_text_with_language_and_type_beside_them() -> None:
    shown = components.attribute_table([("label", '"Rom"@de'), ("area", '"3"^^<http://www.w3.org/2001/XMLSchema#int>'), ("note", "plain\x07")])
    assert shown.to_dict("list") == {
        "attribute": ["label", "area", "note"],
        "value": ["Rom", "3", "plain"],
        "language": ["de", "", ""],
        "type": ["", "int", ""],
    }
    assert list(components.attribute_table([("note", "plain")]).columns) == ["attribute", "value"]
    assert list(components.attribute_table([]).columns) == ["attribute", "value"]


def test_negative_numbers_have_a_minus_sign_and_names_keep_their_hyphens() -> None:
    assert text.with_minus("margin -0.094 (-1.452) of Baden-2 and 3-4, rank -12") == "margin −0.094 (−1.452) of Baden-2 and 3-4, rank −12"


def test_a_picture_of_a_figure_has_its_title_and_source(run: str, open_page: OpenPage) -> None:
    app = open_page("pairs", run=run)
    (spec,) = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    title = spec["layout"]["title"]
    assert title["text"]
    assert title["subtitle"]["text"] == f"Data set {run.partition('/')[0]}, run {run.partition('/')[2]}"
    (config,) = [json.loads(chart.proto.config) for chart in app.get("plotly_chart")]
    assert config["toImageButtonOptions"]["format"] == "png"
    next(one for one in app.segmented_control if one.label == "Picture").set_value("svg").run()
    (config,) = [json.loads(chart.proto.config) for chart in app.get("plotly_chart")]
    assert config["toImageButtonOptions"]["format"] == "svg"


def test_a_figures_data_in_words() -> None:
    data = pd.DataFrame({"range": ["1", "<b>2</b>"], "entities": [1234, 5], "share": [0.123456, float("nan")]})
    assert components.in_words(data) == "Data: range 1, entities 1,234, share 0.123; range <b>2</b>, entities 5."
    assert components.in_words(data.iloc[:0]) == "There is no data to show."
    many = components.in_words(pd.DataFrame({"n": range(45)}))
    assert many.startswith("Data: n 0; n 1;")
    assert many.endswith("n 39. 5 more rows are in the download.")


def finding(code: str, message: str, severity: Severity = "info") -> Finding:
    return Finding(code, severity, message, 1, (f"{code} of {message[:3]}",), "Do something.")


def test_findings_of_one_cause_are_one_with_its_gravest_first() -> None:
    nameless = [finding("a", "2 of KG1 have no name: none has a value.", "info"), finding("a", "9 of KG2 have no name: none has a value.", "warning")]
    causes = components._by_cause([nameless[0], finding("b", "Another."), nameless[1]])
    assert [[one.message[:1] for one in cause] for cause in causes] == [["9", "2"], ["A"]]
    assert components._together(causes[0]) == "9 of KG2 have no name; 2 of KG1 have no name: none has a value."
    assert components._together([finding("c", "One thing."), finding("c", "Another: thing.")]) == "One thing. Another: thing."
    assert components._together([finding("d", "Both.")] * 3) == "Both. (2 more of this kind)"
