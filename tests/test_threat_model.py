"""Every line of the threat model names tests, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

DOCUMENT = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
ROWS = [
    row for row in re.findall(r"^\| (.+) \|$", DOCUMENT[DOCUMENT.index("## Reaching") :], re.M) if not row.startswith(("---", "what may be tried"))
]


@cache
def named_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


def test_there_are_lines_on_everyone() -> None:
    assert len(ROWS) > 50
    for heading in ("Reaching the app", "Uploading", "Training", "Reviewing", "Authors of links", "Authors of data", "Dependencies"):
        assert f"\n## {heading}" in DOCUMENT


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[:50])
def test_each_line_names_tests_that_exist(row: str) -> None:
    tried, happens, named = row.split(" | ")
    found = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", named)
    assert tried
    assert happens
    assert found
    assert not re.sub(r"`tests/[\w/]+\.py::test_\w+`(, )?", "", named)
    for file, name in found:
        assert name in named_in(ROOT / file), f"{file} has no {name}"
