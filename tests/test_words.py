"""Comments, docstrings, names and documents are in plain words: no personification, none of the project's former dialect. The list may grow."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
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
ANY = re.compile("|".join(pattern.pattern for pattern in PATTERNS), re.IGNORECASE)
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


def plain(text: str) -> str:
    return " ".join(text.replace("_", " ").split())


def complaints(texts: Iterator[tuple[int, str]]) -> list[str]:
    """'12: "told"; write: ...' for each banned phrase; underscores separate the words of names."""
    found = []
    for line, text in texts:
        words = plain(text)
        if not ANY.search(words):
            continue
        found += [f"{line}: '{match.group()}'; write: {instead}" for pattern, instead in PATTERNS.items() for match in pattern.finditer(words)]
    return found


def complaints_by_file(paths: Iterable[Path], parts: Callable[[str], Iterator[tuple[int, str]]]) -> dict[str, list[str]]:
    """Those of each file that has any. A file without any of the phrases, wherever it may be in it, is not taken to pieces."""
    sources = ((path, path.read_text(encoding="utf-8")) for path in paths)
    found = {relative(path): complaints(parts(source)) for path, source in sources if ANY.search(plain(source.replace("#", " ")))}
    return {name: wrong for name, wrong in found.items() if wrong}


def test_comments_docstrings_and_names_are_in_plain_words() -> None:
    assert not complaints_by_file(CODE, comments_and_names)


def test_documents_are_in_plain_words() -> None:
    assert not complaints_by_file(DOCUMENTS, prose)


def test_a_file_with_a_banned_phrase_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, source in (("one.py", "# begins\n# anew\n"), ("two.py", "x = 1\n"), ("three.py", 'x = "anew"\n')):
        (tmp_path / name).write_text(source, encoding="utf-8")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert list(complaints_by_file(sorted(tmp_path.iterdir()), comments_and_names)) == ["one.py"]


def test_a_banned_phrase_is_found() -> None:
    source = '"""What an entity\n    hears."""\n\n\ndef told(whom):\n    pass  # begins anew\n'
    assert len(complaints(comments_and_names(source))) == 4
    assert len(complaints(prose("# Title\n\nThe run goes\non. `told` is code.\n\n```\nanew\n```\n"))) == 1
