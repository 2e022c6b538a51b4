"""The crowd's own checks find what they are there to find; and two sessions do what fifty do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from app.text import plain
from benchmarks.crowd import command as crowd
from benchmarks.crowd.record import Answer, Interaction, Look, Record, button_name, misplaced, name_of, shared_looks
from benchmarks.crowd.report import Outcome, missed, report
from benchmarks.crowd.server import Server
from engine.reviews import Choice, Decision, Verdict
from engine.reviews.decisions import Pair
from engine.runs.entities import short_id
from tests.run_fixture import analysed, sample_run, write_run

PAIRS: list[Pair] = [(f"http://one.example/resource/{name}", f"http://two.example/resource/{name}_(x)") for name in ("A_b", "C", "Ü*[d]")]


def look(author: str, pair: Pair, since: float = 0.0, until: float = 1.0) -> Look:
    words = " ↔ ".join(f":gray[graph {plain(short_id(uri), 50)}]" for uri in pair)
    return Look(author, name_of("accept", pair), words, since, until)


def kept(number: int, author: str, pair: Pair, verdict: Verdict, *, withdrawn: bool = False) -> Decision:
    return Decision(number, Choice(*pair, verdict), author, "2026-11-30T00:00:00+00:00", f"click {number}", withdrawn)


def test_decisions_that_are_stored_as_they_were_made() -> None:
    one, two = look("Ann", PAIRS[0]), look("Ann", PAIRS[2])
    made = {"Ann": [Answer(one, "accept"), Answer(one, None), Answer(two, "reject")]}
    history = [kept(1, "Ann", PAIRS[0], "accept", withdrawn=True), kept(2, "Ann", PAIRS[2], "reject")]
    assert not misplaced(made, history)
    assert "2 decisions, 1 are stored" in misplaced(made, history[:1])[0]
    assert "undid" in misplaced(made, [replace(history[0], withdrawn=False), history[1]])[0]
    assert "3 are stored" in misplaced(made, [*history, kept(3, "Ann", PAIRS[2], "reject")])[0]
    assert "another verdict" in misplaced(made, [history[0], kept(2, "Ann", PAIRS[2], "accept")])[0]
    assert "another pair than the button's" in misplaced(made, [history[0], kept(2, "Ann", PAIRS[1], "reject")])[0]
    assert "made by no one" in misplaced(made, [*history, kept(3, "Bob", PAIRS[1], "accept")])[0]
    two.words = one.words
    assert "another pair than the page showed" in misplaced(made, history)[0]


def test_a_pair_that_two_are_shown_at_once() -> None:
    assert len(shared_looks([look("Ann", PAIRS[0], 0, 5), look("Bob", PAIRS[0], 4, 6)])) == 1
    assert not shared_looks([look("Ann", PAIRS[0], 0, 5), look("Bob", PAIRS[0], 5, 6), look("Bob", PAIRS[1], 0, 5), look("Ann", PAIRS[0], 2, 3)])


def test_the_name_of_a_button_in_an_identifier_and_in_a_class() -> None:
    name = name_of("accept", PAIRS[0])
    assert button_name(f"$$ID-0123456789abcdef-{name}") == name
    assert button_name(f"stElementContainer st-key-{name.replace(':', '-')} other") == name
    assert not button_name("$$ID-0123456789abcdef-None")


def outcome(*seconds: float, memory: tuple[float, ...] = (500.0, 510.0, 510.0, 510.0, 510.0, 510.0), log: str = "") -> Outcome:
    record = Record(interactions=[Interaction("review", "decision", one, False, 1.0) for one in seconds])
    server = Server([(at * 60.0, mib, 9) for at, mib in enumerate(memory)], 12.0)
    return Outcome(2, 0, (3.0, 10.0), 0, 5.0, record, server, log, [], (0.1, 0.2, 0.3))


def test_missed_goals_are_named() -> None:
    good = outcome(0.5, 1.0)
    assert not missed(good)
    assert "| page: review | 2 | 0.75 |" in report(good)
    assert "All goals are met" in report(good)
    assert "2.85 s" in missed(outcome(0.1, 3.0))[0]
    assert "2,100 MiB" in " ".join(missed(outcome(0.1, memory=(500.0, 2100.0, 500.0, 500.0, 500.0, 500.0))))
    assert "grew" in missed(outcome(0.1, memory=(500.0, 520.0, 540.0, 560.0, 580.0, 600.0)))[0]
    assert "1 traceback" in missed(outcome(0.1, log="Traceback (most recent call last):\n"))[0]
    assert missed(outcome())


@pytest.mark.slow
def test_two_sessions_without_browsers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2):
        write_run(analysed(sample_run(number)), tmp_path, "towns", f"basic-s{number}")
    out = tmp_path / "report.md"
    arguments = [str(tmp_path), "--sessions", "2", "--browsers", "0", "--minutes", "0.2", "--pause", "0.1", "0.3", "--out", str(out)]
    with ThreadPoolExecutor(1) as thread:  # of its own: after browser tests an event loop may be running in this one
        thread.submit(crowd.main, arguments).result()
    report = out.read_text(encoding="utf-8")
    assert "Problems" not in report
    assert " 0 errors, 0 tracebacks" in report
    assert " 0 lost, doubled or on another pair" in report
    assert "kind: page" in report
    assert capsys.readouterr().out.strip() == report.strip()
