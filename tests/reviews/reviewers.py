"""What the processes of tests do: review one queue side by side, or write without an end until they are killed."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from engine.reviews import Choice, ReviewStore

DATA = "a" * 64


def processes() -> Any:
    """Processes that begin with the engine imported, so that ten of them start at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def review(path: Path, author: str, total: int, pipe: Connection) -> None:
    """Take and decide one pair after the other until none is left; send what was decided. Every click comes twice."""
    pairs = [(f"s{number}", f"t{number}") for number in range(total)]
    store, decided = ReviewStore(path), []
    pipe.send("ready")
    pipe.recv()
    while taken := store.claim(DATA, author, pairs):
        (pair,) = taken
        for _ in range(2):
            (decision,) = store.decide(DATA, Choice(*pair, "accept" if len(decided) % 2 else "reject"), author, f"{author}-{pair[0]}")
        decided.append((*decision.pair, decision.verdict, author))
        time.sleep(0.005)  # or one reviewer may be through before the others wake up
    pipe.send(decided)


def write(path: Path, turn: int, pipe: Connection) -> None:
    """Forty decisions a click; says of each click when it is kept."""
    store, number = ReviewStore(path), 0
    while True:
        store.decide(DATA, [Choice(f"s{number}-{place}", "t", "accept") for place in range(40)], "Ann", f"{turn}-{number}")
        number += 1
        pipe.send(number)
