"""The recipes of docs/extending.md work: applied to a copy of the project, the new members pass their registries' tests and do what they are for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "extending.md"
BLOCK = re.compile(r"^`([\w./]+)`( \(new\))?\n\n```(python|diff)\n(.*?)^```$", re.M | re.S)
RECIPES = ("A reader", "A loss", "A baseline", "A decoder", "A name encoder", "An export format", "A page", "A setting", "An analysis table")
COPIED = ("app", "benchmarks", "engine", "tests", "docs", "pyproject.toml", ".streamlit", "sample_data/europe")
REGISTRY_TESTS = (
    "tests/data/test_formats.py",
    "tests/model/losses/test_losses.py",
    "tests/training/test_baselines.py",
    "tests/decoding/test_decoders.py",
    "tests/names/test_encoders.py",
    "tests/exporting/test_exporting.py",
    "tests/app/test_frame.py",
    "tests/analysis/test_analyse.py",
)
NEW_MEMBERS = (
    "jl or in_batch or anchors or uncorrected or pair_counts or turtle or known_links or choices_of_the_setting "
    "or (every_model and (everything or layers))"
)


@dataclass(frozen=True)
class Block:
    """A file to write, or a change of one."""

    path: str
    new: bool
    text: str


def recipes() -> dict[str, list[Block]]:
    """Heading -> its blocks."""
    sections = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]
    found = dict(zip(sections[::2], sections[1::2], strict=True))
    return {name: [Block(path, bool(new), text) for path, new, _, text in BLOCK.findall(section)] for name, section in found.items()}


def apply(block: Block, root: Path) -> None:
    path = root / block.path
    if block.new:
        assert not path.exists(), f"{block.path} exists already"
        path.write_text(block.text, encoding="utf-8")
        return
    content = path.read_text(encoding="utf-8")
    for hunk in block.text.split("@@\n"):
        before, after = ("".join(line[1:] for line in hunk.splitlines(keepends=True) if line[0] in kept) for kept in (" -", " +"))
        assert content.count(before) == 1, f"{block.path} should hold these lines once:\n{before}"
        content = content.replace(before, after)
    path.write_text(content, encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the project to which every recipe has been applied. Compiled kernels come along, so that they need not be compiled again."""
    root = tmp_path_factory.mktemp("extended")
    for name in COPIED:
        source = ROOT / name
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("screenshots", "figures"))
        else:
            shutil.copy2(source, root / name)
    for blocks in recipes().values():
        for block in blocks:
            apply(block, root)
    yield root
    shutil.rmtree(root)


def run(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "DUAL_AMN_", "COV_"))}
    return subprocess.run(
        [sys.executable, *words], cwd=copy, env=environment | {"PYTHONPATH": str(copy)}, capture_output=True, text=True, check=False, timeout=280
    )


def test_there_is_a_recipe_for_everything_and_each_registers_in_one_place() -> None:
    found = recipes()
    assert set(RECIPES) <= set(found)
    for name in RECIPES:
        blocks = [block for block in found[name] if not block.path.startswith("tests/")]
        assert blocks, name
        assert name == "A setting" or [block.new for block in blocks] == [True, False], f"{name}: one new file, and one place to register it"


def test_the_new_members_do_what_they_are_for(copy: Path) -> None:
    """A data set in the new format is trained with the new loss, encoder and setting, stored, decoded, exported, and shown."""
    done = run(copy, "-m", "pytest", "-p", "no:cacheprovider", "tests/recipes/members.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b9 passed", done.stdout), done.stdout


@pytest.mark.slow
def test_the_new_members_pass_the_tests_of_their_registries(copy: Path) -> None:
    done = run(copy, "-m", "pytest", "-p", "no:cacheprovider", *REGISTRY_TESTS, "-k", NEW_MEMBERS, "-vv")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("jl", "in_batch", "anchors", "uncorrected", "pair_counts", "turtle", "known_links"):
        assert re.search(rf"\[{name}\b.* PASSED", done.stdout) or re.search(rf"{name}\].* PASSED", done.stdout), f"no test ran over {name}"


@pytest.mark.slow
def test_the_recipes_are_clean_code(copy: Path) -> None:
    files = sorted({block.path for blocks in recipes().values() for block in blocks})
    for words in (("ruff", "check"), ("ruff", "format", "--check"), ("mypy", "--no-incremental")):
        checked = [name for name in files if words[0] == "ruff" or not name.startswith("tests/")]
        done = run(copy, "-m", *words, *checked)
        assert done.returncode == 0, done.stdout + done.stderr
