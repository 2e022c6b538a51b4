"""A run updated to a new version of its data, compared with training again on that version: accuracy and time.

    python -m benchmarks.update DATA [--variant semi] [--share 0.05] [--seed 0] [--threads N] [--epochs N] [--set SECTION.OPTION=VALUE] [--keep DIR]

makes two versions of a data set (:mod:`benchmarks.versions`), trains on the first, updates that run to the second, and trains on the second with
the same settings. Each of the three is a process of its own. Accuracy is that on the test links of the second version, which both runs have;
"new" counts those of entities that the first version does not have.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.children import Run as Call
from benchmarks.children import in_a_process
from benchmarks.tables import markdown, print_report
from benchmarks.versions import add_shares, write_versions
from engine.config import VARIANTS, RunConfig, Variant
from engine.data import load_task
from engine.data.knowledge_graph import SIDES
from engine.errors import ConfigError
from engine.pipeline import train_run, update_config, update_run
from engine.runs import Run, RunStore
from engine.util.arrays import BoolArray, IntArray

HEADER: Final = ("run", "Hits@1 target to source, source to target", "MRR", "new", "seconds", "of which training", "epochs")
MOST: Final = 0.25
"""Share of the time of training again that an update may take."""
NEAR: Final = 0.005
"""How far its Hits@1 may be below that of training again."""


@dataclass(frozen=True)
class Step:
    """A training or an update (``parent``), which a process of its own carries out."""

    data: Path
    models: Path
    variant: Variant
    seed: int
    settings: tuple[str, ...]
    epochs: int | None = None
    parent: str = ""
    changes: tuple[str, ...] = ()


def carry_out(step: Step) -> str:
    """Id of the finished run."""
    store = RunStore(step.models)
    if not step.parent:
        config = RunConfig(variant=step.variant, seed=step.seed).with_assignments(step.settings)
        return train_run(step.data, config, store).run.id
    parent = store.find(step.parent)
    config = update_config(parent, step.data, epochs=step.epochs, assignments=step.changes)
    return update_run(parent, step.data, config, store).run.id


def measured(
    data: Path,
    variant: Variant,
    share: float,
    seed: int,
    settings: Sequence[str],
    changes: Sequence[str],
    epochs: int | None,
    folder: Path,
    call: Call,
) -> str:
    """A table with both runs, and what follows from it."""
    first, second = write_versions(load_task(data), folder, share, seed=seed)
    models = folder / "models"
    before = Step(first, models, variant, seed, tuple(settings))
    parent = call(carry_out, before, f"training on {first.name}")
    update = Step(second, models, variant, seed, tuple(settings), epochs, parent, tuple(changes))
    updated = call(carry_out, update, f"the update to {second.name}")
    again = call(carry_out, Step(second, models, variant, seed, tuple(settings)), f"training on {second.name}")
    return report(*(RunStore(models).find(one) for one in (parent, updated, again)))


def report(parent: Run, updated: Run, again: Run) -> str:
    tests = [test_links(run) for run in (updated, again)]
    if not np.array_equal(tests[0], tests[1]):
        raise ConfigError("the update and the training have other test links; use data with a given split.")
    fresh = unknown_ends(parent, updated, tests[0])
    table = markdown(
        HEADER,
        [row("first version", parent, None), row("update", updated, tests[0][fresh]), row("trained again", again, tests[0][fresh])],
    )
    hits = [run.metrics["target_to_source"]["hits@1"] for run in (updated, again)]
    total = updated.manifest["seconds"] / again.manifest["seconds"]
    training = updated.manifest["training"]["seconds"] / again.manifest["training"]["seconds"]
    counts = updated.manifest["parent"]["counts"]
    sizes = "; ".join(
        f"{side} graph: {one['carried']:,} carried, {one['new']:,} new, {one['gone']:,} gone" for side in SIDES for one in [counts[side]["entities"]]
    )
    close = "within" if hits[0] >= hits[1] - NEAR else "not within"
    fast = "at most" if total <= MOST else "more than"
    verdict = f"Hits@1 {hits[0] - hits[1]:+.3f}, {close} {NEAR:g}; {total:.2f} of the time ({training:.2f} of the training), {fast} {MOST:g}."
    return "\n\n".join(
        [f"{updated.dataset}, n = {len(tests[0]):,} test links, of which {int(fresh.sum()):,} with a new entity; {sizes}.", table, verdict]
    )


def row(name: str, run: Run, new: IntArray | None) -> list[str]:
    metrics, training = run.metrics, run.manifest["training"]
    backward, forward = metrics["target_to_source"], metrics["source_to_target"]
    hits = "-" if new is None or not len(new) else f"{hits_of(run, new):.3f}"
    accuracy = f"{backward['hits@1']:.3f} {forward['hits@1']:.3f}"
    return [name, accuracy, f"{backward['mrr']:.3f}", hits, f"{run.manifest['seconds']:.1f}", f"{training['seconds']:.1f}", str(training["epochs"])]


def test_links(run: Run) -> IntArray:
    links = run.table("links")
    found: IntArray = links.loc[links["role"] == "test", ["source", "target"]].to_numpy(dtype=np.int64)
    return found[np.lexsort(found.T[::-1])]


def unknown_ends(parent: Run, updated: Run, links: IntArray) -> BoolArray:
    """(n,) whether an end of a link is not in the parent's data."""
    found = np.zeros(len(links), dtype=bool)
    for at, side in enumerate(SIDES):
        known = set(parent.table("entities", ["uri"], {"graph": side})["uri"])
        names = updated.table("entities", ["uri"], {"graph": side})["uri"].tolist()
        found |= np.array([names[one] not in known for one in links[:, at].tolist()], dtype=bool)
    return found


def hits_of(run: Run, links: IntArray) -> float:
    """Share of links whose target entity has its counterpart as best match among all source entities."""
    best = run.table("matches", ["entity", "match"], {"graph": "target", "rank": 1})
    matches = dict(zip(best["entity"].tolist(), best["match"].tolist(), strict=True))
    return float(np.mean([matches.get(target) == source for source, target in links.tolist()]))


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.update", description="A run updated to new data, compared with training again.")
    parser.add_argument("data", type=Path, help="folder of a data set with a given split")
    parser.add_argument("--variant", choices=VARIANTS, default="basic")
    add_shares(parser)
    parser.add_argument("--threads", type=int, help="CPU threads (default: all cores)")
    parser.add_argument("--epochs", type=int, help="epochs of the update before the rounds (default: as update has it)")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.OPTION=VALUE", help="a setting of both trainings")
    parser.add_argument("--set-update", action="append", default=[], metavar="SECTION.OPTION=VALUE", help="a setting of the update alone")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep data and runs in this folder (default: a temporary one)")
    return parser


def main(arguments: Sequence[str] | None = None, call: Call = in_a_process) -> int:
    parsed = build_parser().parse_args(arguments)
    threads = [f"training.threads={parsed.threads}"] if parsed.threads else []
    settings, changes = [*parsed.set, *threads], [*threads, *parsed.set_update]
    with ExitStack() as stack:
        folder = parsed.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def study() -> str:
            return measured(parsed.data, parsed.variant, parsed.share, parsed.seed, settings, changes, parsed.epochs, folder, call)

        return print_report(study, None)


if __name__ == "__main__":
    sys.exit(main())
