"""What can be chosen by name: one mechanism for losses, indexes, decoders, readers, name encoders and all else that has several kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from engine.errors import ConfigError
from engine.util.text import shorten

Member = TypeVar("Member")
Registered = TypeVar("Registered")
RESERVED: Final = frozenset({"", "auto", "none"})
"""Names that settings and commands give another meaning."""


class Registry(Mapping[str, Member]):
    """Members by name, in the order in which they were added.

    Args:
        what: they are, as an error message calls one of them ("decoder").
        spelled: how a member's name is written where it is offered; None: as it is.
    """

    def __init__(self, what: str, spelled: Callable[[str], str] | None = None) -> None:
        self.what = what
        self._spelled = spelled or str
        self._members: dict[str, Member] = {}

    def add(self, name: str, member: Member) -> None:
        """Add a member.

        Raises:
            ConfigError: the name is taken or has another meaning.
        """
        if name in self._members:
            raise ConfigError(f"there is already a {self.what} called '{shorten(name)}'.")
        if name in RESERVED:
            raise ConfigError(f"a {self.what} cannot be called '{name}'.")
        self._members[name] = member

    def register(self, name: str, make: Callable[[Registered], Member]) -> Callable[[Registered], Registered]:
        """Decorator of a class or function: ``make`` turns it into the member, and it stays as it is."""

        def decorate(registered: Registered) -> Registered:
            self.add(name, make(registered))
            return registered

        return decorate

    def named(self, name: str) -> Member:
        """The member of this name.

        Raises:
            ConfigError: there is none; lists those that there are.
        """
        if name not in self._members:
            known = ", ".join(map(self._spelled, self))
            raise ConfigError(f"unknown {self.what} '{shorten(name)}'; choose one of {known}.")
        return self._members[name]

    def __getitem__(self, name: str) -> Member:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)
