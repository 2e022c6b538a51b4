"""Commands in processes of their own that start at once: what a command imports, which takes seconds, is imported once for all of them."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection


def run_command(words: Sequence[str], out: Connection, err: Connection) -> None:
    """``python -m engine`` with these words: what it writes to either stream goes to who started it."""
    for stream, end in ((1, out), (2, err)):
        os.dup2(end.fileno(), stream)
        end.close()
    sys.stdout, sys.stderr = (open(stream, "w", buffering=1, encoding="utf-8", closefd=False) for stream in (1, 2))  # noqa: SIM115
    from engine.cli.main import main

    sys.exit(main(list(words)))


class Forked:
    """The command in a child of a process that has imported everything and computed nothing; it can be killed and signalled as any other."""

    def __init__(self, words: Sequence[str]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["engine.cli.main", "engine.pipeline", "engine.jobs.trainer"])
        readers, writers = zip(*(context.Pipe(duplex=False) for _ in range(2)), strict=True)
        self.process = context.Process(target=run_command, args=(words, *writers))
        self.process.start()
        self.stdout, self.stderr = (open(os.dup(reader.fileno()), encoding="utf-8") for reader in readers)  # noqa: SIM115
        for end in (*readers, *writers):
            end.close()

    def kill(self) -> None:
        self.process.kill()

    def send_signal(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def end(self, timeout: float) -> tuple[int, str, str]:
        """Its exit code, or minus the signal that ended it, and the part of its output that is still unread."""
        with self.stdout, self.stderr:
            err, out = self.stderr.read(), self.stdout.read()
        self.process.join(timeout)
        code = self.process.exitcode
        assert code is not None, "still running"
        self.process.close()
        return code, out, err
