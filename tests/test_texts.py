"""Texts that a user sees are in plain words: no personification, and one term for each thing, as app/glossary.py has it."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator

from app.glossary import TERMS
from app.pages import PAGES
from engine.cli.main import build_parser
from engine.config import SECTIONS, section_options
from tests.conftest import ROOT
from tests.test_words import BANNED, CODE, relative

BANNED_IN_TEXTS = BANNED | {
    r"right now|for good|at work|by heart|died|this very|any more": "now; permanently; running; overfitting; lost; this; no longer",
    r"takes? home|look from|by itself|by themselves|at least so|says? nothing|would be without|keep their word": "exports; swap sides; automatically",
    r"somebody|everybody|whoever|anybody": "the user, reviewer or administrator",
    r"beside|mostly|alike|twins?|equal share|equally shared": "next to; usually; similar; counterpart; uniform",
    r"taken? apart|takes? apart|why not this one|claims": "broken down; candidate to compare with; competing",
    r"least (?:probability|triples)|thoroughness|hits? alone": "minimum; training effort",
    r"the address (?:says|names|asks)|may not enter|asked for": "this link; does not have access; submitted",
    r"(?:is|are|was|were) (?:right|wrong)|right (?:ones|pairs|matches)|wrong (?:ones|pairs|matches)": "correct, incorrect",
    r"millionths of a bit|flips?|flipped": "10⁻⁶ bit; changed predictions",
    r"\d+ %": "a share is 95%, without a space",
}
PATTERNS = {re.compile(rf"\b(?:{words})(?!\w)", re.IGNORECASE): instead for words, instead in BANNED_IN_TEXTS.items()}
ANY = re.compile("|".join(pattern.pattern for pattern in PATTERNS), re.IGNORECASE)
FILES = [path for path in CODE if path.relative_to(ROOT).parts[0] in ("app", "engine")]
SQL = re.compile(r"^\W*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|EXISTS)\b")
STORED = frozenset({"within 1 %", "within 10 %"})
"""Names in run folders, which stay as they are."""


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Line and words of each string that may be shown: no docstring, no SQL, no single word."""
    tree = ast.parse(source)
    hidden = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            hidden |= {id(part) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            words = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden:
            words = node.value
        else:
            continue
        if " " in words.strip() and not SQL.match(words) and words not in STORED:
            yield node.lineno, " ".join(words.split())


def complaints(source: str) -> list[str]:
    """The line, the banned phrase, the text around it and what to write instead."""
    found = []
    for line, words in texts(source):
        if not ANY.search(words):
            continue
        found += [
            f"{line}: '{match.group()}' in '{words[:80]}'; write: {instead}" for one, instead in PATTERNS.items() for match in one.finditer(words)
        ]
    return found


def test_texts_are_in_plain_words() -> None:
    found = {relative(path): complaints(path.read_text(encoding="utf-8")) for path in FILES}
    assert not {name: wrong for name, wrong in found.items() if wrong}


def test_a_banned_phrase_in_a_text_is_found() -> None:
    source = '"""The docstring hears."""\nsay("train anew")\nsay(f"{n} are right, 95 % of {m}")\nrun("DELETE FROM jobs WHERE who is right now")\n'
    assert [one.partition(";")[0] for one in complaints(source)] == [
        "2: 'anew' in 'train anew'",
        "3: 'are right' in '{} are right, 95 % of {}'",
        "3: '95 %' in '{} are right, 95 % of {}'",
    ]


def test_pages_and_terms_are_explained_in_short_sentences() -> None:
    lines = {page.name: page.question for page in PAGES} | dict(TERMS)
    for name, line in lines.items():
        assert line.endswith("."), name
    assert all(len(page.question.split()) <= 20 for page in PAGES)


def test_every_setting_has_its_help() -> None:
    for section in SECTIONS.values():
        for option in section_options(section):
            assert len(option.help.split()) >= 3, option.key
            assert not option.help.endswith("."), option.key


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in dict.fromkeys(action.choices.values()):
                yield from parsers(one)


def test_every_command_and_argument_has_its_help() -> None:
    for parser in parsers(build_parser()):
        assert parser.description, parser.prog
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                assert {choice.dest for choice in action._choices_actions} == set(action.choices), parser.prog
            else:
                assert action.help, (parser.prog, action.dest)
                assert not action.help.endswith("."), (parser.prog, action.dest)


HALVES = re.compile(r"""^( *)[A-Za-z_][\w.]*(?:: [^=\n]+)? = .*["']\n\1[rf]?["'](?!["']{2})""", re.MULTILINE)


def lone_texts(source: str) -> list[int]:
    """Lines that hold a text and do nothing with it: the second half of one that lacks its brackets. Docstrings have three quotes."""
    if not HALVES.search(source):
        return []
    alone = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
    written = (node for node in alone if isinstance(node.value, ast.JoinedStr) or isinstance(getattr(node.value, "value", None), str))
    lines = source.splitlines()
    return [node.lineno for node in written if not lines[node.lineno - 1].lstrip().lstrip("rf").startswith('"""')]


def test_no_text_loses_its_second_half() -> None:
    found = {relative(path): lines for path in CODE if (lines := lone_texts(path.read_text(encoding="utf-8")))}
    assert not found
    assert lone_texts('"""Docs."""\nTEXT = "one "\n"two"\n') == [3]
