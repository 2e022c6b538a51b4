"""The paper's ablation of the architecture: one part of the encoder off at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.plan import Plan, Report
from benchmarks.runs import Experiment, Result
from benchmarks.tables import NOTHING, by_group, markdown, seeds, spread
from engine.evaluation.paper import paper_ablation, paper_figure

FULL = "full"
PARTS = ("relational_attention", "relational_projection", "multi_hop", "proxy_matching")
HEADER = ("data", "variant", "encoder", "seeds", "Hits@1", "MRR", "drop", "paper", "paper's drop", "difference of drops")
NOTE = "drop: Hits@1 of the full encoder minus that of the line, of the same seed and so of the same split."


def experiments(plan: Plan) -> list[Experiment]:
    return plan.experiments({FULL: (), **{part: (f"encoder.{part}=no",) for part in PARTS}})


def table(results: Sequence[Result]) -> str:
    """A line per data set, variant and part: figures, what is lost without the part, and the same of the paper."""
    groups = by_group(results)
    rows = [line(group, groups.get((data, variant, FULL), [])) for (data, variant, _), group in groups.items()]
    return f"{markdown(HEADER, rows)}\n\n{NOTE}"


def line(group: Sequence[Result], full: Sequence[Result]) -> list[str]:
    data, variant, part = group[0].group
    lost, theirs = drops(group, full), papers_figures(group[0])
    ours = [spread([one.metric(name) for one in group]) for name in ("hits@1", "mrr")]
    cells = [data, variant, part if part == FULL else f"without {part}", seeds(group), *ours]
    cells.append(spread(lost, "+") if lost and part != FULL else NOTHING)
    if part not in theirs:
        return [*cells, NOTHING, NOTHING, NOTHING]
    cells.append("{:.3f} {:.3f}".format(*theirs[part]))
    if part == FULL:
        return [*cells, NOTHING, NOTHING]
    papers_drop = theirs[FULL][0] - theirs[part][0]
    return [*cells, f"{papers_drop:+.3f}", spread([one - papers_drop for one in lost], "+") if lost else NOTHING]


def drops(group: Sequence[Result], full: Sequence[Result]) -> list[float]:
    """Hits@1 that each seed loses; without those whose full run is not there yet."""
    whole = {one.experiment.seed: one.metric("hits@1") for one in full}
    return [whole[one.experiment.seed] - one.metric("hits@1") for one in group if one.experiment.seed in whole]


def papers_figures(result: Result) -> Mapping[str, tuple[float, float]]:
    """Hits@1 and MRR by part, the full encoder among them; empty where the paper reports none for such a run."""
    figure = paper_figure(*result.sizes, "basic")
    parts = paper_ablation(*result.sizes)
    if result.experiment.variant != "basic" or not result.papers_split or figure is None or not parts:
        return {}
    return {FULL: (figure.hits_at_1, figure.mrr), **parts}


REPORT = Report("one part of the encoder off at a time, beside the paper's ablation", experiments, table)
