"""What the service may do, and for which requests."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.errors import ConfigError

TOKEN_VARIABLE: Final = "DUAL_AMN_TOKEN"
SHORTEST_TOKEN: Final = 16
PACKAGES: Final = ("fastapi", "uvicorn")
LOOPBACK_NAMES: Final = frozenset({"localhost"})


@dataclass(frozen=True)
class Settings:
    """How the service was started.

    Attributes:
        models: the folder with the runs.
        host: the address that it listens on.
        port: 0 for any free one.
        token: what each request must bring; "" for none.
        allow_reviews: whether decisions may be stored.
    """

    models: Path
    host: str = "127.0.0.1"
    port: int = 8600
    token: str = ""
    allow_reviews: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"--port must lie between 0 and 65535; got {self.port}.")
        if not self.token and not is_loopback(self.host):
            raise ConfigError(
                f"--host {self.host[:100]} can be reached from other machines, which needs a token; set the variable {TOKEN_VARIABLE}, "
                "or listen on 127.0.0.1."
            )
        if not self.token and self.allow_reviews:
            raise ConfigError(f"--allow-reviews needs a token, so that no one else can decide; set the variable {TOKEN_VARIABLE}.")
        check_secret(self.token)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address; a name other than localhost is taken to be reachable from elsewhere."""
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK_NAMES


def token_of_environment() -> str:
    """The token that requests must bring; "" where none is set."""
    return os.environ.get(TOKEN_VARIABLE, "")


def check_secret(token: str) -> None:
    """
    Raises:
        ConfigError: a token that is easily guessed, or that a header cannot carry. The message does not repeat it.
    """
    if token and (not token.isascii() or not token.isprintable() or " " in token):
        raise ConfigError(f"{TOKEN_VARIABLE} must consist of ASCII letters, digits and punctuation without spaces.")
    if token and len(token) < SHORTEST_TOKEN:
        how = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise ConfigError(f"{TOKEN_VARIABLE} needs at least {SHORTEST_TOKEN} characters; make one with: {how}")


def check_packages(names: Sequence[str] = PACKAGES) -> None:
    """
    Raises:
        ConfigError: a package that only the service needs is not installed.
    """
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        listed = " and ".join(f"'{name}'" for name in missing)
        raise ConfigError(f"the HTTP service needs {listed}, which is not installed; install it: pip install -r requirements-extras.txt")
