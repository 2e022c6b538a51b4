"""The registry: every mechanism of the engine that chooses something by name is one, with the same errors."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import engine
from engine.errors import ConfigError
from engine.util.registry import Registry


def registries() -> Iterator[tuple[str, Registry[object]]]:
    """Every registry that a module of the engine defines, by the module's and its own name."""
    for module in pkgutil.walk_packages(engine.__path__, "engine."):
        if module.name.endswith("__main__") or ".gpu" in module.name:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Registry):
                yield f"{module.name}.{name}", value


ALL = {id(value): (name, value) for name, value in registries()}


def test_what_is_chosen_by_name_is_a_registry() -> None:
    whats = {value.what for _, value in ALL.values()}
    assert {"loss", "search index", "decoder", "data format", "name encoder", "source of names", "format", "table"} <= whats


@pytest.mark.parametrize(("name", "registry"), ALL.values(), ids=[name for name, _ in ALL.values()])
def test_every_registry_has_members_and_names_them(name: str, registry: Registry[object]) -> None:
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
