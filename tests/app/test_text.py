"""Texts made harmless, numbers with sense."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import text
from engine.util import paths


@given(st.text(max_size=200))
def test_plain_leaves_no_markup_unescaped(raw: str) -> None:
    escaped = text.plain(raw)
    assert not re.search(r"(?<!\\)(?:\\\\)*[<>*_`\[\]:$#&~|]", escaped)
    assert "\n" not in escaped


@given(st.text(max_size=600))
def test_clip_is_one_short_line(raw: str) -> None:
    line = text.clip(raw, 50)
    assert len(line) <= 50
    assert not any(char in line for char in "\n\r\t\0\u202e\u2066")


@pytest.mark.parametrize("name", ["دمشق", "北京市", "Ōsaka", "न्यूयॉर्क", "👩‍👩‍👧", "می‌خواهم"])
def test_names_of_any_script_stay_as_they_are(name: str) -> None:
    assert text.clip(name) == name
    assert text.plain(name) == f"\u2068{name}\u2069"


def test_paths_are_shown_as_they_are_within_the_servers_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "data (1)"))
    monkeypatch.setenv("DUAL_AMN_IMPORT", str(tmp_path / "models" / "offered"))
    for message, shown in {
        f"{tmp_path}/models/world/a/manifest.json: torn": "world/a/manifest.json: torn",
        f"cannot write to {tmp_path}/models: full": "cannot write to the models folder: full",
        f"a link out of {tmp_path}/models; remove it, in {tmp_path}/models.": "a link out of the models folder; remove it, in the models folder.",
        f"{tmp_path}/models/offered/x.csv": "offered/x.csv",
        f"{tmp_path}/models-2/x, {tmp_path}/models.old/x": f"{tmp_path}/models-2/x, {tmp_path}/models.old/x",
        f"'{tmp_path}/data (1)/mine' is gone": "'mine' is gone",
        str(paths.SAMPLES / "world"): "sample_data/world",
        "models/x stays": "models/x stays",
    }.items():
        assert text.without_places(message) == shown


def test_empty_names_stay_empty() -> None:
    assert text.plain("") == text.plain(" \n ") == ""


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ("2026-11-01T12:00:00+00:00", "just now"),
        ("2026-11-01T11:59:00+00:00", "1 minute ago"),
        ("2026-11-01T10:00:00", "2 hours ago"),
        ("2026-10-30T12:00:00+02:00", "2 days ago"),
        ("2027-01-01T00:00:00+00:00", "just now"),
        ("some time", "some time"),
    ],
)
def test_age(created: str, expected: str) -> None:
    assert text.age(created, datetime(2026, 11, 1, 12, 0, 30, tzinfo=UTC)) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (125, "2 min 5 s"), (4800, "1 h 20 min")])
def test_duration(seconds: float, expected: str) -> None:
    assert text.duration(seconds) == expected


def test_counts() -> None:
    assert text.count(1, "run") == "1 run"
    assert text.count(1200, "run") == "1,200 runs"
    assert text.count(2, "entity", "entities") == "2 entities"


@pytest.mark.parametrize(("share", "message"), [(0, "0%"), (0.004, "under 1%"), (0.337, "34%"), (0.996, "over 99%"), (1, "100%")])
def test_percent(share: float, message: str) -> None:
    assert text.percent(share) == message


@given(st.text(max_size=60))
def test_what_was_escaped_is_plain_again_in_names_for_screen_readers(raw: str) -> None:
    assert text.unmarked(f"**{text.plain(raw)}** is :blue[{text.plain(raw)}].") == f"{text.clip(raw)} is {text.clip(raw)}."


def test_scores_have_three_decimals_and_a_minus_sign() -> None:
    assert [text.score(value) for value in (0.6428, -0.0654, 0)] == ["0.643", "−0.065", "0.000"]


def test_our_markup_is_left_out_of_names() -> None:
    assert text.unmarked("Largest: :blue[●] **Rome** (`a`), 2 \\* 3") == "Largest: ● Rome (a), 2 * 3"
