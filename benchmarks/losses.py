"""The paper's ablation of the loss, as curves: Hits@1 on validation links against epochs and against seconds."""

from __future__ import annotations

import csv
import io
import statistics
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.curves import Curve, Panel, draw
from benchmarks.plan import Plan, Report
from benchmarks.runs import Experiment, Result
from benchmarks.tables import NOTHING, by_group, markdown, seeds, spread
from engine.config import LossConfig

KINDS: tuple[str, ...] = typing.get_args(typing.get_type_hints(LossConfig)["kind"])
DEFAULTS = ("data.valid_ratio=0.2", "training.validate_every=1")
NEAR = 0.95
HEADER = (
    *("data", "variant", "loss", "seeds", "epochs", "validation Hits@1", "best", "at epoch"),
    *(f"epochs to {NEAR:g} of the best loss", "seconds", "seconds in all", "test Hits@1", "test MRR"),
)
NOTE = (
    "Validation Hits@1: mean of both directions among the entities of the validation links, a smaller pool than the test's; where the data gives no "
    "validation links they are taken out of the training links. Seconds are those of training, validations included. All but the test's figures are "
    "read off the mean curve of the seeds."
)
COLUMNS = ("data", "variant", "loss", "seed", "epoch", "seconds", "training_loss", "validation_hits@1", "validation_mrr")


@dataclass(frozen=True)
class Moment:
    """An epoch that was validated."""

    epoch: int
    seconds: float
    loss: float
    hits_at_1: float
    mrr: float


def experiments(plan: Plan) -> list[Experiment]:
    return plan.experiments({kind: (f"loss.kind={kind}",) for kind in KINDS}, DEFAULTS)


def moments(result: Result) -> list[Moment]:
    """The validated epochs of a run."""
    lines = [line for line in result.run.trace() if line.get("validation")]
    return [Moment(line["epoch"], line["seconds"], line["loss"], line["validation"]["hits@1"], line["validation"]["mrr"]) for line in lines]


def mean_curve(group: Sequence[Result]) -> list[Moment]:
    """Over the seeds, epoch by epoch."""
    by_epoch: dict[int, list[Moment]] = {}
    for result in group:
        for moment in moments(result):
            by_epoch.setdefault(moment.epoch, []).append(moment)
    return [
        Moment(epoch, *(statistics.mean(getattr(one, name) for one in found) for name in ("seconds", "loss", "hits_at_1", "mrr")))
        for epoch, found in sorted(by_epoch.items())
    ]


def table(results: Sequence[Result]) -> str:
    """A line per data set, variant and loss."""
    curves = {group: (found, mean_curve(found)) for group, found in by_group(results).items()}
    rows = []
    for (data, variant, kind), (found, curve) in curves.items():
        rivals = [moment.hits_at_1 for group, (_, other) in curves.items() if group[:2] == (data, variant) for moment in other]
        test = [spread([one.metric(name) for one in found]) for name in ("hits@1", "mrr")] if found[0].run.metrics else [NOTHING] * 2
        rows.append([data, variant, kind, seeds(found), *figures(curve, NEAR * max(rivals, default=1.0)), *test])
    return f"{markdown(HEADER, rows)}\n\n{NOTE}"


def figures(curve: Sequence[Moment], bar: float) -> list[str]:
    """Where a curve ends, where it is best, and when it first reaches the bar."""
    if not curve:
        return [NOTHING] * 7
    best, last = max(curve, key=lambda moment: moment.hits_at_1), curve[-1]
    reached = next((moment for moment in curve if moment.hits_at_1 >= bar), None)
    when = [NOTHING] * 2 if reached is None else [str(reached.epoch), f"{reached.seconds:.1f}"]
    return [str(last.epoch), f"{last.hits_at_1:.3f}", f"{best.hits_at_1:.3f}", str(best.epoch), *when, f"{last.seconds:.1f}"]


def files(results: Sequence[Result]) -> Mapping[str, str]:
    """Every point as CSV, and the curves as SVG; for each data set and variant."""
    written: dict[str, str] = {}
    for data, variant in dict.fromkeys(result.group[:2] for result in results):
        name = f"losses-{next(result.run.dataset for result in results if result.group[0] == data)}-{variant}"
        chosen = [result for result in results if result.group[:2] == (data, variant)]
        written |= {f"{name}.csv": points(chosen), f"{name}.svg": chart(f"Hits@1 on validation links: {data}, {variant}", chosen)}
    return written


def points(results: Sequence[Result]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in results:
        for one in moments(result):
            writer.writerow([*result.group, result.experiment.seed, one.epoch, one.seconds, one.loss, one.hits_at_1, one.mrr])
    return buffer.getvalue().rstrip("\n")


def chart(title: str, results: Sequence[Result]) -> str:
    curves = {kind: mean_curve(group) for (_, _, kind), group in by_group(results).items()}
    by_epochs = [Curve(kind, [(one.epoch, one.hits_at_1) for one in curve]) for kind, curve in curves.items()]
    by_seconds = [Curve(kind, [(one.seconds, one.hits_at_1) for one in curve]) for kind, curve in curves.items()]
    return draw(title, "Hits@1", [Panel("epochs", by_epochs), Panel("seconds of training", by_seconds)])


REPORT = Report("Hits@1 of each loss against epochs and seconds, as a table, CSV and SVG", experiments, table, files)
