"""Accuracy over data sets, variants and seeds, beside the paper's figures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from benchmarks.plan import Plan, Report
from benchmarks.runs import DIRECTION, METRICS, Experiment, Result
from benchmarks.tables import NOTHING, by_group, markdown, seeds, spread
from engine.evaluation.paper import paper_figure, recognise

HEADER = (
    *("data", "variant", "seeds", "Hits@1", "Hits@10", "MRR", "source to target Hits@1"),
    *("paper", "difference", "seconds", "peak MiB"),
)
PUBLISHED: Mapping[str, Mapping[str, float]] = {"DBP15K ZH-EN": {"lightea": 0.756, "gcn-align": 0.434, "mtranse": 0.209}}
"""Hits@1 of baselines by the measure of their publications; of GCN-Align and MTransE as the paper's table has it."""


def experiments(plan: Plan) -> list[Experiment]:
    return plan.experiments({"": ()})


def table(results: Sequence[Result]) -> str:
    """A line per data set and variant: mean and standard deviation over the seeds, the paper's figure and the difference of Hits@1."""
    return markdown(HEADER, [line(group) for group in by_group(results).values()])


def line(group: Sequence[Result]) -> list[str]:
    first = group[0]
    paper, difference = NOTHING, NOTHING
    if first.papers_split and (figure := paper_figure(*first.sizes, first.experiment.variant)):
        paper = f"{figure.hits_at_1:.3f} {figure.hits_at_10:.3f} {figure.mrr:.3f}"
        difference = f"{statistics.mean(one.metric('hits@1') for one in group) - figure.hits_at_1:+.3f}"
    elif first.papers_split and (known := PUBLISHED.get(recognise(*first.sizes) or "", {}).get(first.experiment.variant)):
        own = [one.run.manifest["baseline"]["hits@1"][DIRECTION] for one in group]
        paper, difference = f"{known:.3f}", f"{statistics.mean(own) - known:+.3f} ({statistics.mean(own):.3f} by the publication's measure)"
    ours = [spread([one.metric(name) for one in group]) for name in METRICS]
    other = spread([one.metric("hits@1", "source_to_target") for one in group])
    seconds = statistics.median(one.run.manifest["seconds"] for one in group)
    memory = max(one.run.manifest["peak_rss_mb"] or 0 for one in group)
    data, variant, _ = first.group
    return [data, variant, seeds(group), *ours, other, paper, difference, f"{seconds:.0f}", f"{memory:.0f}"]


REPORT = Report("accuracy beside the paper's figures (the default)", experiments, table)
