"""docs/data_formats.md says what is so: its examples load, and its tables name what there is."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from engine.config import DataConfig
from engine.data import READERS, load_task
from engine.data.tabular import ATTRIBUTE_ROLES, LINK_ROLES, TRIPLE_ROLES, Role
from tests.data.writers import put

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "data_formats.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))
EXAMPLE = re.compile(r"^`([\w./]+)`\n```\n(.*?)```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", READERS)
def test_the_example_of_each_format_loads(name: str, tmp_path: Path) -> None:
    for file, content in EXAMPLE.findall(SECTIONS[name]):
        put(tmp_path / file, content)
    task = load_task(tmp_path)
    assert task.format == name
    assert len(task.train_links) == 1
    assert all(task.source.labels[left] for left, _ in task.train_links)


def test_all_findings_are_explained() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "engine" / "data").rglob("*.py"))
    codes = set(re.findall(r'Finding\(\s*"([a-z-]+)"', sources))
    explained = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", "".join(re.findall(r"^\| (`.*?) \|", SECTIONS["Findings"], re.MULTILINE))))
    assert codes == explained


def test_all_options_are_explained() -> None:
    assert set(re.findall(r"^\| `data\.(\w+)`", SECTIONS["Splits"], re.MULTILINE)) == {field.name for field in dataclasses.fields(DataConfig)}


@pytest.mark.parametrize("role", [*TRIPLE_ROLES, *LINK_ROLES, *ATTRIBUTE_ROLES], ids=lambda role: role.name)
def test_all_names_of_columns_are_listed(role: Role) -> None:
    listed = [
        tuple(words.strip().split(", ")) for words in re.findall(r"^\|[^|]*\| \w+(?: \(optional\))? \| ([^|:]+)", SECTIONS["tables"], re.MULTILINE)
    ]
    assert role.words in listed
