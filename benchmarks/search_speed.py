"""The search for the best matches by CSLS: time beside a matrix product's, memory beside that of the embeddings.

    python -m benchmarks.search_speed [--entities 100000] [--dim 600] [--top 10] [--csls-k 10] [--index exact] [--threads N] [--device auto]
                                      [--out FILE] [--baseline FILE] [--record FILE]

Rows of unit length are drawn, each with a counterpart near it; both directions are searched. Two passes over all pairs are needed, one for the
hubness terms and one for the matches, and are timed apart. An approximate index computes less than the operations that are counted here: its share of
the ceiling is then above what a machine can do, and its recall is measured beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.children import Run, in_a_process
from benchmarks.machine import Probe, resident_mib, timed
from benchmarks.phases import Stopwatch, check_place, heading, keep, optional, phase_table, record, this_command
from benchmarks.speed import add_guard, failure_code, with_guard
from benchmarks.training_phases import FLOAT, TINY, compared, evenly
from engine.errors import ConfigError, EngineError
from engine.search import INDEXES, CslsTopK, StructuralSimilarity, csls_topk, hubness, normalise_rows
from engine.search.exact import best_of_rows
from engine.training.device import choose_device, choose_threads

NOISE = 0.5  # added to a counterpart, in lengths of its row
SELECTED = 2_048  # rows of the tile whose best are selected by themselves, and a share of its columns
RECALLED = 1_000  # source entities whose exact matches an approximate index is compared with
MOST = 10_000_000


@dataclass(frozen=True)
class SearchCase:
    """What to search: ``entities`` rows of ``dim`` values a side, the ``top`` best of each, CSLS over ``csls_k`` neighbours."""

    entities: int
    dim: int
    top: int
    csls_k: int
    index: str
    device: str
    threads: int | None
    seed: int

    @property
    def name(self) -> str:
        return f"search {self.entities:,} x {self.dim}{'' if self.index == 'exact' else f' {self.index}'}"


def measure_search(case: SearchCase) -> dict[str, Any]:
    """Search, after a small search that warms up; more than once where that is short.

    Raises:
        EngineError: a device, threads or an index that there is not.
    """
    device, threads = choose_device(case.device), choose_threads(case.threads)
    watch, probe = Stopwatch(device), Probe(device)
    source, target = embeddings(case, device)
    csls_topk(source[:TINY], target[:TINY], case.csls_k, case.top, index=case.index)
    probe.measure()
    start = resident_mib()
    similarity = StructuralSimilarity(source, target)
    terms = watch.several("hubness", lambda: hubness(similarity, case.csls_k, case.index))
    probe.measure()
    found = watch.several("matches", lambda: csls_topk(similarity, case.csls_k, case.top, index=case.index, terms=terms))
    probe.measure()
    for phase in watch.phases:
        watch.has_to(phase, compared(case.entities, case.entities, case.dim, passes=1))
    conditions = {"device": device.type, "threads": threads, "top": case.top, "csls_k": case.csls_k, "index": case.index}
    return record(case.name, watch, probe, conditions, start_mib=start, **outcome(case, watch, start, source, target, found))


def outcome(case: SearchCase, watch: Stopwatch, start: float | None, source: Tensor, target: Tensor, found: CslsTopK) -> dict[str, Any]:
    """Seconds in all, memory above the embeddings, and how much of the exact result was found."""
    peak, on_card = watch.peak, watch.device_peak
    stored = 2 * FLOAT * case.entities * case.dim / 2**20
    above = peak - start if peak is not None and start is not None else None
    return {
        "entities": case.entities,
        "dim": case.dim,
        "seconds": sum(phase.seconds for phase in watch.phases.values()),
        "embeddings_mib": stored,
        "above_embeddings_mib": above if on_card is None else on_card - stored,
        "recall": 1.0 if case.index == "exact" else recall(source, target, found, case),
        "selection": selection(source, target, case.csls_k),
    }


def selection(source: Tensor, target: Tensor, k: int) -> dict[str, float]:
    """Seconds to select the k best of the rows and of the columns of a tile, as a card would: by groups, and by sorting everything."""
    scores = source[:SELECTED] @ target[: 32 * SELECTED].T
    found = {}
    for side, table in (("rows", scores), ("columns", scores.T)):
        count = min(k, table.shape[1])
        for name, way in (("groups", partial(best_of_rows, table, count)), ("topk", partial(torch.topk, table, count))):
            timed(source.device, way)  # warms up
            found[f"{side} by {name}"] = timed(source.device, way)[1]
    return found


def recall(source: Tensor, target: Tensor, found: CslsTopK, case: SearchCase) -> float:
    """Share of the exact best matches of some source entities that are among the found ones."""
    rows = evenly(len(source), RECALLED, source.device)
    exact = csls_topk(source, target, case.csls_k, case.top).source_to_target.indices[rows]  # (r, top)
    listed = found.source_to_target.indices[rows]
    return float((exact[:, :, None] == listed[:, None, :]).any(2).double().mean())


def embeddings(case: SearchCase, device: torch.device) -> tuple[Tensor, Tensor]:
    """(n, dim) rows of unit length, and in another order their counterparts."""
    generator = torch.Generator().manual_seed(case.seed)
    source = normalise_rows(torch.randn(case.entities, case.dim, generator=generator))
    noise = torch.randn(case.entities, case.dim, generator=generator).mul_(NOISE / case.dim**0.5)
    order = torch.randperm(case.entities, generator=generator)
    return source.to(device), normalise_rows(noise.add_(source[order])).to(device)


def summary(one: Mapping[str, Any]) -> str:
    """What the issue of a search is judged by, in one line."""
    share = sum(2.0 * one["entities"] ** 2 * one["dim"] for _ in one["phases"]) / one["seconds"] / 1e9 / one["ceilings"]["float32"]
    above = optional(one["above_embeddings_mib"], ",.0f")
    return (
        f"{one['case']}: {one['seconds']:.2f} s in all, {share:.0%} of the product's speed; {above} MiB above the embeddings "
        f"({one['embeddings_mib']:,.0f} MiB); recall {one['recall']:.3f}."
    )


def main(arguments: Sequence[str] | None = None, run: Run = in_a_process) -> int:
    """Measure, write, compare; returns the exit code."""
    parsed = build_parser().parse_args(arguments)

    def measured() -> list[Mapping[str, Any]]:
        case = chosen(parsed)
        return [{**run(measure_search, case, case.name), "command": this_command("benchmarks.search_speed", arguments)}]

    try:
        check_place(parsed.out)
        records = measured()
        text = "\n\n".join([heading(records), phase_table(records), *map(summary, records)])
        keep(records, text, parsed.out)
    except (EngineError, KeyboardInterrupt) as problem:
        return failure_code(problem)
    print(text)
    return with_guard(records, parsed, measured)


def chosen(parsed: argparse.Namespace) -> SearchCase:
    """
    Raises:
        ConfigError: a number that makes no sense.
    """
    if not TINY <= parsed.entities <= MOST or min(parsed.dim, parsed.top, parsed.csls_k) < 1 or not parsed.tolerance > 1:
        raise ConfigError(f"--entities must lie between {TINY} and {MOST:,}, --dim, --top and --csls-k be at least 1, --tolerance above 1.")
    names = ("entities", "dim", "top", "csls_k", "index", "device", "threads", "seed")
    return SearchCase(**{name: getattr(parsed, name) for name in names})


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_speed", description="Time and memory of the search for matches by CSLS.")
    parser.add_argument("--entities", type=int, default=100_000, help="rows a side (default: 100,000)")
    parser.add_argument("--dim", type=int, default=600, help="values of a row (default: 600)")
    parser.add_argument("--top", type=int, default=10, help="matches of each entity (default: 10)")
    parser.add_argument("--csls-k", type=int, default=10, help="neighbours of the hubness terms (default: 10)")
    parser.add_argument("--index", default="exact", choices=sorted(INDEXES))
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the table here, and the measurements beside it (.jsonl)")
    add_guard(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
