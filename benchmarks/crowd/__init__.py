"""Many people at the app at once: sessions over its WebSocket, some real browsers, and what the server makes of them."""

from benchmarks.crowd.command import build_parser, main

__all__ = ["build_parser", "main"]
