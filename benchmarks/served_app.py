"""The app on a free port, and the addresses of its pages for some run: for pictures and for timings in a browser."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlencode

from app.cache import a_run_a_variant, list_runs
from app.pages import ENTITY, EXPLAIN, HOME, PAGES, REVIEW
from app.state import Address, EntityAddress, ExplainAddress, ReviewAddress
from engine.errors import EntityError
from engine.runs import RunStore
from engine.runs.view import RunView

PROJECT = Path(__file__).resolve().parent.parent
BROWSER_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
QUIET = "[data-testid=stApp][data-test-script-state=notRunning]"
START_SECONDS = 60
END_SECONDS = 20


def addresses(models: Path, run: str | None, entity: str) -> dict[str, str]:
    """Name of each picture -> path and query of its page."""
    store = RunStore(models)
    opened = store.find(run or next(summary.id for summary in store.list() if summary.manifest))
    runs = list_runs(models)
    card = runs.find(opened.id)
    several = tuple(one.run for one in a_run_a_variant(runs.of_same_data(card), [card]))
    view = RunView(opened)
    try:
        shown = view.resolve(entity)
    except EntityError:
        shown = view.well_connected("source", 1)[0]
    found = {page.name: path(page.name, Address(several[: page.most])) for page in PAGES if page is not HOME}
    start = found.pop(ENTITY.name)
    found["explain"] = path(EXPLAIN.name, ExplainAddress(several, **{shown.side: shown.uri}))  # type: ignore[arg-type]
    found["review"] = path(REVIEW.name, ReviewAddress(several[:1], reviewer="Ann"))
    return {"home": "/", "start": start, "entity": path(ENTITY.name, EntityAddress(several, shown.side, shown.uri)), **found}


def path(page: str, address: Address) -> str:
    return f"/{page}?{urlencode(address.parameters(), doseq=True)}"


@contextmanager
def served(models: Path, data: Path | None = None, log: IO[bytes] | None = None) -> Iterator[tuple[str, int]]:
    """The app's address and the number of its process, while it runs.

    Args:
        data: where imported data sets are kept; None: as the environment says.
        log: where standard error goes; None: to that of this process.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.address", "127.0.0.1", "--server.port", str(port)]
    folders = {"DUAL_AMN_MODELS": models} | ({"DUAL_AMN_DATA": data} if data else {})
    environment = {**os.environ, **{name: str(folder.resolve()) for name, folder in folders.items()}}
    process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.DEVNULL, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", process)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:  # it waits for a connection whose other end is gone
            process.kill()
            process.wait()


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    """Until it answers.

    Raises:
        RuntimeError: the app ended at once.
        TimeoutError: it never answers.
    """
    for _ in range(START_SECONDS * 4):
        if process.poll() is not None:
            raise RuntimeError(f"the app ended at once, with code {process.returncode}")
        try:
            with urllib.request.urlopen(address, timeout=1):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.25)
    raise TimeoutError(f"{address} did not answer within {START_SECONDS} s")
