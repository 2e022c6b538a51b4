"""Comments, docstrings, names and documents are in plain words: no personification, none of the project's former dialect. The list may grow."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

BANNED = {
    r"told|tells|telling|tell(?= )": "reports, shows, names; reported by, decided by",
    r"hears?|heard|overheard|listens? to": "receives messages from; attends to",
    r"speaks?|spoke|thinks?|nobody|whom": "say it of the data: supports, opposes; no entity, no one",
    r"stands? (?:in|at|on|as|there|beside|before|behind|between|first|apart|alone|open|outside|around)|stood": "is in, is at; comes first, precedes",
    r"go(?:es)? on with|going on|goes on|gone on|went on": "continues, resumes",
    r"anew|afresh|beneath|mend(?:s|ed)?": "again, redrawn; below; fixes, fixed",
    r"taken? away|takes away|turn(?:s|ed)? round|so many|shall": "removed; reversed; this number of",
    r"forgiv\w+|doomed|sureness": "tolerates, exclude_true_links; DeletionCandidate; Confidence",
}
PATTERNS = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): instead for words, instead in BANNED.items()}
CODE = sorted(path for folder in ("engine", "app", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py") if path != Path(__file__))
DOCUMENTS = sorted((ROOT / "docs").glob("*.md"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def comments_and_names(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each comment, docstring and name that is defined; texts that a user sees are no part of it."""
    yield from ((token.start[0], token.string) for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.COMMENT)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def prose(document: str) -> Iterator[tuple[int, str]]:
    """Paragraphs without code, so that a phrase across the end of a line is found."""
    fences = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
    text = fences.sub(lambda code: "\n" * code.group().count("\n") or "code", document)
    yield from ((text.count("\n", 0, part.start()) + 1, part.group()) for part in re.finditer(r"(?:.+\n?)+", text))


def complaints(texts: Iterator[tuple[int, str]]) -> list[str]:
    """'12: "told"; write: ...' for each banned phrase; underscores separate the words of names."""
    found = []
    for line, text in texts:
        words = " ".join(text.replace("_", " ").split())
        found += [f"{line}: '{match.group()}'; write: {instead}" for pattern, instead in PATTERNS.items() for match in pattern.finditer(words)]
    return found


@pytest.mark.parametrize("path", CODE, ids=relative)
def test_comments_docstrings_and_names_are_in_plain_words(path: Path) -> None:
    assert not complaints(comments_and_names(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_documents_are_in_plain_words(path: Path) -> None:
    assert not complaints(prose(path.read_text(encoding="utf-8")))


def test_a_banned_phrase_is_found() -> None:
    source = '"""What an entity\n    hears."""\n\n\ndef told(whom):\n    pass  # begins anew\n'
    assert len(complaints(comments_and_names(source))) == 4
    assert len(complaints(prose("# Title\n\nThe run goes\non. `told` is code.\n\n```\nanew\n```\n"))) == 1
