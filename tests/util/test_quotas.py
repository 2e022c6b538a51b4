"""Quotas are what the environment says, or a sentence about it."""

from __future__ import annotations

import pytest

from engine.errors import ConfigError
from engine.util.quotas import queue_quota, storage_quota


def test_without_variables_there_are_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DUAL_AMN_STORAGE", "DUAL_AMN_QUEUE"):
        monkeypatch.delenv(name, raising=False)
    assert storage_quota() == 50 * 2**30
    assert queue_quota() == 50


def test_variables_change_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_STORAGE", "0.5")
    monkeypatch.setenv("DUAL_AMN_QUEUE", "3")
    assert (storage_quota(), queue_quota()) == (2**29, 3)


@pytest.mark.parametrize("value", ["many", "-1", "nan", "inf", "1e99"])
def test_anything_else_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("DUAL_AMN_QUEUE", value)
    with pytest.raises(ConfigError, match="DUAL_AMN_QUEUE"):
        queue_quota()
