"""Load on the HTTP service: many clients on this machine, each with one connection, ask one question after the other.

    python -m benchmarks.serve RUN [--models DIR] [--clients 50] [--requests 20] [--only match pair]

Each kind of question is asked alone first, then all kinds mixed. The clients share the processor with the service, so that figures are those of a
busy machine. A time is that from sending a request to the last byte of its answer.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

import numpy as np

import engine
from engine import OpenRun

PROJECT = Path(__file__).resolve().parent.parent
KINDS = ("match", "match by label", "pair", "search", "explain")
HOST = "127.0.0.1"


@dataclass
class Times:
    """Of one kind of question.

    Attributes:
        seconds: of each answer.
        errors: answers other than 200, and connections that broke.
    """

    seconds: list[float] = field(default_factory=list)
    errors: int = 0


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description="Load on the HTTP service.")
    parser.add_argument("run")
    parser.add_argument("--models", type=Path, default=Path("models"))
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--requests", type=int, default=20, help="of each client, for each kind of question")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    parsed = build_parser().parse_args(arguments)
    run = engine.open_run(parsed.run, parsed.models, verify=False)
    asked = {kind: addresses(run, kind) for kind in parsed.only}
    with service(parsed.models) as port:
        for kind in asked:
            ask(port, asked[kind][0])  # opens the run, and loads what this kind of question needs
        print(
            f"{run.id}: {parsed.clients} clients, {parsed.requests} requests each\n{'':24}{'answers':>9}{'errors':>8}{'per s':>8}  p50, p95, p99 (ms)"
        )
        for kind, own in asked.items():
            print_times(f"{kind} alone", *load(port, {kind: own}, parsed.clients, parsed.requests))
        if len(asked) > 1:
            found, seconds = load(port, asked, parsed.clients, parsed.requests)
            for kind in asked:
                print_times(f"{kind}, mixed", {kind: found[kind]}, seconds)


def addresses(run: OpenRun, kind: str, size: int = 500) -> list[str]:
    """Questions of one kind about entities that are drawn from the run."""
    links = run.table("links").sample(frac=1, random_state=0).head(size)
    graphs = run.view.graphs
    start = f"/runs/{'/'.join(quote(part) for part in run.id.split('/'))}"
    pairs = [(int(left), int(right)) for left, right in links[["source", "target"]].to_numpy().tolist()]
    uris = [{"source": graphs["source"].uris[left], "target": graphs["target"].uris[right]} for left, right in pairs]
    if kind in ("pair", "explain"):
        return [f"{start}/{kind}?{urlencode(both)}" for both in uris]
    if kind == "match":
        return [f"{start}/match?{urlencode({'entity': both['source'], 'side': 'source'})}" for both in uris]
    labels = [graphs["source"].title(left) for left, _ in pairs]
    if kind == "search":
        return [f"{start}/search?{urlencode({'text': label[:6]})}" for label in labels]
    once = [label for label in labels if len(run.view.search(label, "source", 2)) == 1]
    return [f"{start}/match?{urlencode({'entity': label, 'side': 'source'})}" for label in once]


@contextmanager
def service(models: Path) -> Iterator[int]:
    """The service on a free port, while it runs."""
    command = [sys.executable, "-m", "engine", "serve", "--models", str(models.resolve()), "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "DUAL_AMN_TOKEN"}
    process = subprocess.Popen(command, cwd=PROJECT, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r":(\d+)/docs", line)
        if found is None:
            raise RuntimeError(f"the service did not start: {line}")
        yield int(found.group(1))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def ask(port: int, address: str) -> None:
    """One request, for which there may be much to load.

    Raises:
        RuntimeError: it is refused.
    """
    connection = http.client.HTTPConnection(HOST, port, timeout=300)
    connection.request("GET", address)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(json.loads(body)["error"]["message"])


def load(port: int, asked: Mapping[str, Sequence[str]], clients: int, requests: int) -> tuple[dict[str, Times], float]:
    """Times by kind, and the seconds that all of it took. Clients ask ``requests`` questions of each kind, in an order of their own."""
    times: dict[str, Times] = defaultdict(Times)
    lock, start = threading.Lock(), threading.Barrier(clients + 1)

    def client(number: int) -> None:
        draw = random.Random(number)
        plan = [(kind, draw.choice(own)) for kind, own in asked.items() for _ in range(requests)]
        draw.shuffle(plan)
        connection = http.client.HTTPConnection(HOST, port, timeout=300)
        start.wait()
        for kind, address in plan:
            began = time.perf_counter()
            try:
                connection.request("GET", address)
                answer = connection.getresponse()
                answer.read()
                good = answer.status == 200
            except (OSError, http.client.HTTPException):
                connection.close()
                good = False
            with lock:
                times[kind].seconds.append(time.perf_counter() - began)
                times[kind].errors += not good
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return times, time.perf_counter() - began


def print_times(heading: str, found: Mapping[str, Times], seconds: float) -> None:
    for times in found.values():
        p50, p95, p99 = np.percentile(times.seconds, [50, 95, 99]) * 1000
        answers = len(times.seconds)
        print(f"{heading:24}{answers:>9,}{times.errors:>8,}{answers / seconds:>8.0f}  {p50:.0f}, {p95:.0f}, {p99:.0f}")


if __name__ == "__main__":
    main()
