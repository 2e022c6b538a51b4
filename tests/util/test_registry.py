"""The registry: every mechanism of the engine that chooses something by name is one, with the same errors."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import engine
from engine.errors import ConfigError
from engine.util.registry import Registry

DEFINED = re.compile(r"^([A-Z_]+)(?:: [^=]+)? = (?:Registry|ReaderRegistry)\(", re.MULTILINE)
FOLDER = Path(engine.__file__).parent


def registries() -> Iterator[tuple[str, str]]:
    """Module and name of every registry of the engine."""
    for path in sorted(FOLDER.rglob("*.py")):
        module = ".".join(["engine", *path.relative_to(FOLDER).with_suffix("").parts]).removesuffix(".__init__")
        yield from ((module, name) for name in DEFINED.findall(path.read_text(encoding="utf-8")))


ALL = list(registries())


def registry_of(module: str, name: str) -> Registry[object]:
    """The registry with all its members, which the packages that hold it import."""
    importlib.import_module(module.rpartition(".")[0])
    found: Registry[object] = getattr(importlib.import_module(module), name)
    return found


def test_what_is_chosen_by_name_is_a_registry() -> None:
    whats = {registry_of(*place).what for place in ALL}
    assert {"loss", "search index", "decoder", "data format", "name encoder", "source of names", "format", "table"} <= whats


@pytest.mark.parametrize(("module", "name"), ALL)
def test_every_registry_has_members_and_names_them(module: str, name: str) -> None:
    registry = registry_of(module, name)
    assert len(registry) > 0
    for member in registry:
        assert registry.named(member) is registry[member]
    with pytest.raises(ConfigError, match="unknown") as caught:
        registry.named("no\nsuch" + 500 * "x")
    message = str(caught.value)
    assert registry.what in message
    assert "\n" not in message
    assert all(member in message for member in registry)
    with pytest.raises(ConfigError, match="there is already a"):
        registry.add(next(iter(registry)), object())
    for reserved in ("", "auto", "none"):
        with pytest.raises(ConfigError, match="cannot be called"):
            registry.add(reserved, object())


def test_a_decorator_leaves_what_it_registers_as_it_is() -> None:
    registry: Registry[tuple[type, int]] = Registry("thing")

    @registry.register("one", lambda cls: (cls, 1))
    class One:
        pass

    assert registry["one"] == (One, 1)
    assert list(registry) == ["one"]
    assert "two" not in registry
