"""The service on a port, until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import FrameType
from typing import Final

import torch
import uvicorn

from engine.errors import ConfigError
from engine.serving.application import guarded_application
from engine.serving.guards import MOST_AT_ONCE
from engine.serving.settings import Settings
from engine.training.device import on_termination

STOP_SECONDS: Final = 10
"""How long answers that were begun may take once the service is asked to stop."""
BACKLOG: Final = 256


def run_service(settings: Settings, say: Callable[[str], None]) -> None:
    """Answer requests until Ctrl-C or a termination signal; requests that were begun are answered.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    with listening(settings) as listener:
        torch.set_num_threads(1)
        config = uvicorn.Config(
            guarded_application(settings),
            http="h11",
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,  # addresses hold what people look for
            server_header=False,
            proxy_headers=False,
            limit_concurrency=4 * MOST_AT_ONCE,
            backlog=BACKLOG,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        say(f"Serving the runs of {settings.models} at {address_of(listener)}; its description: {address_of(listener)}/docs. Ctrl-C stops.")
        server = uvicorn.Server(config)

        def stop(number: int, frame: FrameType | None) -> None:
            """For a hang-up. uvicorn handles the other signals itself, stops, and raises them once more: this time nothing is left to end."""
            server.should_exit = True

        with on_termination(stop):
            server.run(sockets=[listener])
        say("Stopped.")


def listening(settings: Settings) -> socket.socket:
    """
    Raises:
        ConfigError: no such address on this machine, or another program has the port.
    """
    host = settings.host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError):
        raise ConfigError(f"--host '{settings.host[:100]}' is no address of this machine; use 127.0.0.1, or 0.0.0.0 for all addresses.") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"port {settings.port} of {settings.host[:100]} cannot be used ({reason}); choose another one with --port.") from None
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
