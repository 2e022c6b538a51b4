"""Numbers and what they count."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.errors import printable, printable_lines
from engine.reviews.decisions import check_author
from engine.runs import RunStore
from engine.util.text import count
from tests.run_fixture import sample_run, write_run


def test_one_and_many() -> None:
    assert [count(number, "run") for number in (0, 1, 2, 1200)] == ["0 runs", "1 run", "2 runs", "1,200 runs"]
    assert [count(number, "entity is", "entities are") for number in (1, 2)] == ["1 entity is", "2 entities are"]


def test_a_backup_of_one_thing_counts_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "data"))
    (tmp_path / "data" / "mine").mkdir(parents=True)
    (tmp_path / "data" / "mine" / "triples_1.tsv").write_text("a\tb\tc\n", encoding="utf-8")
    write_run(sample_run(), tmp_path / "models")
    assert len(RunStore(tmp_path / "models").list()) == 1
    assert main(["backup", "--output", str(tmp_path / "all.tar.gz"), "--models", str(tmp_path / "models")]) == 0
    message = capsys.readouterr().out
    assert "1 run, 1 imported data set" in message
    assert not re.search(r"\b1 \w+( data)? ?\w*s[,;.]", message)


@pytest.mark.parametrize(
    "text",
    ["می\u200cخواهم", "क\u094d\u200dष", "ක\u0dca\u200dර", "👩\u200d🔬", "👩🏽\u200d🚀", "❤\ufe0f\u200d🔥", "علی\u200cرضا", "Zürich", "北京"],
)
def test_joiners_stay_where_a_writing_needs_them(text: str) -> None:
    assert printable(text) == text
    assert check_author(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay\u200dpal", "pay\\u200dpal"),
        ("а\u200cб", "а\\u200cб"),
        ("\u200cx", "\\u200cx"),
        ("م\u200c\u200cن", "م\u200c\\u200cن"),
        ("م\u202eن", "م\\u202eن"),
        ("م\u200bن", "م\\u200bن"),
        ("ａ\u200dｂ", "ａ\\u200dｂ"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb", "a\\nb"),
    ],
)
def test_everything_else_that_cannot_be_seen_is_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_ends_of_lines_stay_where_several_lines_are_printed() -> None:
    assert printable_lines("a\x07\nb") == "a\\x07\nb"
