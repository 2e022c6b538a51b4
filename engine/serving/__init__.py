"""Runs over HTTP, for programs: the same answers as the command line gives, as JSON (docs/serving.md).

``runs`` keeps runs open, ``stored`` answers from their stored lists, ``answers`` makes plain values, ``service`` has the threads, ``routes`` the
addresses, ``guards`` refuses what must not come in, ``reference`` is the page about it, ``application`` puts these together and ``server`` listens.
The packages fastapi and uvicorn are optional: only ``routes``, ``application`` and ``server`` need them.
"""

from __future__ import annotations

from engine.serving.settings import Settings, check_packages

__all__ = ["Settings", "check_packages"]
