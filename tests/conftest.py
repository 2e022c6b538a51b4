"""Shared by all tests: the repository's root, and one thread so that tests run side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository's root."""
    return ROOT
