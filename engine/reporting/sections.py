"""What a report says of a run, section by section; a section that the run stores nothing for is left out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

from engine.config import RunConfig
from engine.data.inspection import Inspection
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ConfigError, RunError
from engine.evaluation.metrics import rate_interval, stored_interval
from engine.evaluation.pairs import figures_sentence
from engine.explanation import Explainer, explain, runner_up
from engine.explanation.summary import summary_lines
from engine.explore.alignment import Alignment
from engine.explore.comparison import settings_of
from engine.explore.neighbourhood import IncidentTriples, facing
from engine.explore.proxies import Channel, ProxyView
from engine.explore.relations import RelationView, Setting
from engine.reporting.drawing import Mark, bar_figure, interval_figure, reliability_figure
from engine.reporting.markup import Html, data_table, disclosure, element, label, shown, together
from engine.runs.tensors import RunLike
from engine.runs.verdicts import KNOWN
from engine.runs.view import UNCHECKED, RunView
from engine.util.arrays import IntArray
from engine.util.machine import is_of_machine
from engine.util.text import count, duration

DIRECTIONS: Final[tuple[tuple[str, str], ...]] = (("target_to_source", "target to source"), ("source_to_target", "source to target"))
"""Keys of a run's metrics, the published direction first, and their names."""
RATES: Final = ("hits@1", "hits@5", "hits@10")
MOST_RELATIONS: Final = 12
EXAMPLES: Final = 5
BINS: Final = 10
EVIDENCE: Final = 20
UNKNOWN: Final = "–"


class ReportedRun(Protocol):
    """What of an open run is read for its report."""

    @property
    def id(self) -> str: ...
    @property
    def manifest(self) -> Mapping[str, Any]: ...
    @property
    def metrics(self) -> Mapping[str, Any]: ...
    @property
    def run(self) -> RunLike: ...
    @property
    def view(self) -> RunView: ...
    @property
    def alignments(self) -> Mapping[Side, Alignment]: ...
    @property
    def inspection(self) -> Inspection: ...
    @property
    def relations(self) -> RelationView: ...
    @property
    def proxies(self) -> ProxyView: ...
    @property
    def adjacency(self) -> IncidentTriples: ...
    @property
    def explainer(self) -> Explainer: ...
    def has(self, table: str) -> bool: ...
    def table(self, name: str) -> pd.DataFrame: ...
    def json(self, name: str) -> Mapping[str, Any]: ...


def percent(share: float | None, digits: int = 1) -> str:
    """'82.1%'."""
    return UNKNOWN if share is None or np.isnan(share) else f"{100 * share:.{digits}f}%"


def with_interval(share: float, ends: tuple[float, float], n: int) -> str:
    """'82.1% (95% interval 79.3% to 84.5%, n = 819)'."""
    return f"{percent(share)} (95% interval {percent(ends[0])} to {percent(ends[1])}, n = {n:,})"


def figure_with_table(drawn: Html, caption: str, table: Html) -> Html:
    """A figure, what it shows, and the same content as a table."""
    return element("figure", drawn, element("figcaption", caption), disclosure("The same as a table", table))


# Data set


def data_section(run: ReportedRun) -> Iterator[object]:
    """Both graphs, their links, and what is suspicious: all that ``inspect`` finds, and not only what was noticed when the data were read."""
    data = run.manifest.get("data", {})
    names = [str(data.get(side, {}).get("name", side)) for side in SIDES]
    named = {side: sum(map(bool, run.view.graphs[side].labels)) for side in SIDES}
    rows: list[Sequence[object]] = [
        [what, *(_number(data.get(side, {}).get(what)) for side in SIDES)] for what in ("entities", "relations", "triples", "attributes")
    ]
    rows.append(["entities with a name", *(f"{named[side]:,}" for side in SIDES)])
    yield data_table(["number of", *(f"{mark} {name}" for mark, name in zip("●◆", names, strict=True))], rows, (1, 2), "Size of both graphs")
    links = data.get("links", {})
    words = {"train": "seed links", "valid": "validation links", "test": "test links", "unsure": "probable links"}
    yield element("p", "Known links: ", ", ".join(f"{int(links.get(part, 0)):,} {word}" for part, word in words.items()), ".")
    if findings := run.inspection.findings:
        listed = element("ul", *(element("li", shown(one.message or one.code, 400)) for one in findings))
        yield disclosure(f"{count(len(findings), 'finding')} of the data check", listed)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else UNKNOWN


# Accuracy


def accuracy_section(run: ReportedRun) -> Iterator[object]:
    """Hits@k of both directions with intervals, the alignment as pairs, and the decoders."""
    metrics, links = run.metrics, int(run.manifest.get("data", {}).get("links", {}).get("test", 0))
    marks: list[tuple[str, list[Mark | None]]] = []
    rows: list[Sequence[object]] = []
    for rate in RATES:
        found = [_measured(metrics.get(key, {}), rate, links) for key, _ in DIRECTIONS]
        marks.append((rate.capitalize(), [None if one is None else one[0] for one in found]))
        rows.append(
            [rate.capitalize(), *(UNKNOWN if one is None else with_interval(one[0].value, (one[0].low, one[0].high), one[1]) for one in found)]
        )
    if all(mark is None for _, row in marks for mark in row):
        yield element("p", "There are no test links, so no accuracy is measured on links.")
        return
    rows.append(["MRR", *(_score(metrics.get(key, {}).get("mrr")) for key, _ in DIRECTIONS)])
    yield figure_with_table(
        interval_figure("Accuracy", "Hits@1, Hits@5 and Hits@10 in both directions with 95% intervals", marks, "share of the test entities"),
        "● target to source, the published direction; ◆ source to target. Lines are 95% intervals.",
        data_table(["metric", *(name for _, name in DIRECTIONS)], rows, (), "Accuracy in both directions"),
    )
    yield element("p", "Protocol: ", shown(metrics.get("protocol", ""), 400), ".")
    if figures := metrics.get("alignment"):
        yield element("p", "The alignment as a set of pairs: ", shown(figures_sentence(figures), 400), ".")
    yield from _decoders(run, links)


def _measured(figures: Mapping[str, Any], rate: str, links: int) -> tuple[Mark, int] | None:
    found = stored_interval(figures, rate, links)
    if found is None:
        return None
    (low, high), n = found
    return Mark(float(figures[rate]), low, high, percent(float(figures[rate]), 0)), n


def _decoders(run: ReportedRun, links: int) -> Iterator[object]:
    key, direction = DIRECTIONS[0]
    found = {name: one for name, figures in run.json("decoders").items() if (one := _measured(figures.get(key, {}), "hits@1", links)) is not None}
    if not found:
        return
    yield element("h3", "Decoders")
    yield figure_with_table(
        interval_figure(
            "Hits@1 by decoder", "Hits@1 of each decoder with its 95% interval", [(name, [mark]) for name, (mark, _) in found.items()], "Hits@1"
        ),
        f"Hits@1 by decoder, {direction}, with 95% intervals.",
        data_table(["decoder", "Hits@1"], [[name, with_interval(mark.value, (mark.low, mark.high), n)] for name, (mark, n) in found.items()]),
    )


def _score(value: Any) -> str:
    return UNKNOWN if value is None else f"{float(value):.3f}"


def degree_section(run: ReportedRun) -> Iterator[object]:
    """Hits@1 by the number of triples of an entity."""
    if not run.has("degree"):
        return
    table = run.table("degree")
    table = table[table["queries"] > 0].sort_values("least_degree")
    if table.empty:
        return
    buckets = table["bucket"].drop_duplicates().tolist()
    by_side = {side: table[table["graph"] == side].set_index("bucket") for side in ("target", "source")}
    marks, rows = [], []
    for bucket in buckets:
        found = [by_side[side].loc[bucket] if bucket in by_side[side].index else None for side in ("target", "source")]
        marks.append((str(bucket), [None if one is None else _rate(one) for one in found]))
        rows.append([str(bucket), *(UNKNOWN if one is None else _row_words(one) for one in found)])
    yield figure_with_table(
        interval_figure("Hits@1 by number of triples", "Hits@1 by the number of triples per entity, with 95% intervals", marks, "Hits@1"),
        "Hits@1 by the number of triples per entity. ● target to source; ◆ source to target. Lines are 95% intervals.",
        data_table(["triples per entity", "target to source", "source to target"], rows),
    )


def _rate(row: Any) -> Mark:
    return Mark(float(row["hits@1"]), float(row["hits@1_low"]), float(row["hits@1_high"]))


def _row_words(row: Any) -> str:
    return with_interval(float(row["hits@1"]), (float(row["hits@1_low"]), float(row["hits@1_high"])), int(row["queries"]))


# Inside the model


def relation_section(run: ReportedRun) -> Iterator[object]:
    """The relations with the highest importance in the first layer of the entity channel."""
    if not run.has("relation_importance") or not run.relations.layers:
        return
    view = run.relations
    setting = Setting(view.layers[0], view.channels[0], "forward")
    ranked = view.ranked(setting).head(MOST_RELATIONS)
    if ranked.empty:
        return
    bars, rows = [], []
    for row in ranked.to_dict("records"):
        name, graph = str(row["title"]), "●" if row["graph"] == "source" else "◆"
        bars.append((f"{graph} {name}", float(row["importance"]), f"{row['importance']:.2f}".replace("-", "−")))
        hits = UNKNOWN if pd.isna(row["hits@1"]) else with_interval(row["hits@1"], (row["hits@1_low"], row["hits@1_high"]), int(row["queries"]))
        rows.append([together([f"{graph} ", label(name)]), f"{row['importance']:.3f}", f"{int(row['frequency']):,}", hits])
    words = f"Layer {setting.layer}, {setting.channel} channel, messages from tail to head. ● source graph; ◆ target graph."
    yield figure_with_table(
        bar_figure("Relation importance", f"The {len(bars)} relations with the highest importance", bars, "importance (v·r)"),
        f"Relation importance: the {len(bars)} highest of {count(int(ranked['of'].iloc[0]), 'directed relation')}. {words}",
        data_table(["relation", "importance", "triples", "Hits@1 of test entities that have it"], rows, (1, 2)),
    )


def proxy_section(run: ReportedRun) -> Iterator[object]:
    """How often linked entities are nearest to the same proxy."""
    if not run.has("proxy_top") or "proxies.safetensors" not in run.manifest.get("files", {}):
        return
    bars, rows = [], []
    for channel in run.proxies.channels:
        found = run.proxies.agreement(channel)
        if found.same is None:
            continue
        bars += [(f"{channel}: linked", found.same, percent(found.same)), (f"{channel}: random", found.chance, percent(found.chance))]
        agreement = with_interval(found.same, rate_interval(found.same, found.links), found.links)
        rows.append([f"{channel} channel", agreement, percent(found.chance), *map(_divergence_words, _divergences(run.proxies, channel))])
    if rows:
        yield figure_with_table(
            bar_figure(
                "Nearest-proxy agreement", "Share of linked pairs with the same nearest proxy, compared with random pairs", bars, "share of the pairs"
            ),
            "Nearest-proxy agreement: the share of linked pairs whose two entities have the same nearest proxy, and of random pairs.",
            data_table(
                ["channel", "linked pairs", "random pairs", *(f"median divergence of {pairs} pairs" for pairs in ("linked", "random"))],
                rows,
                (2, 3, 4),
            ),
        )
        yield element("p", "Divergence is the Jensen–Shannon divergence of the two entities' attention over the proxies, in 10⁻⁶ bit.")


def _divergences(proxies: ProxyView, channel: Channel) -> tuple[float, float]:
    """Medians of linked and of random pairs, in bits."""
    known, drawn = proxies.known_divergence(channel)["divergence"].to_numpy(dtype=np.float64), proxies.drawn_divergence(channel)
    return float(np.median(known)) if len(known) else float("nan"), float(np.median(drawn)) if len(drawn) else float("nan")


def _divergence_words(bits: float) -> str:
    return UNKNOWN if np.isnan(bits) else f"{1e6 * bits:,.0f}"


def probability_section(run: ReportedRun) -> Iterator[object]:
    """Whether probabilities are what they promise, where known links decide."""
    alignment, fit = run.alignments["source"], dict(run.json("calibration"))
    if not alignment.calibrated:
        yield element("p", run.view.why_no_probabilities)
        return
    if run.view.unchecked_probabilities:
        yield element("p", f"The probabilities are estimated. {UNCHECKED}")
    probability = alignment.rows["probability"].to_numpy(dtype=np.float64)
    judged = np.isin(alignment.known, [KNOWN.index("right"), KNOWN.index("wrong")]) & ~np.isnan(probability)
    right = alignment.known == KNOWN.index("right")
    bins = np.clip((np.nan_to_num(probability) * BINS).astype(np.int64), 0, BINS - 1)
    points, rows = [], []
    for number in range(BINS):
        inside, of_bin = judged & (bins == number), int(((bins == number) & ~np.isnan(probability)).sum())
        ends = f"{number / BINS:.0%} to {(number + 1) / BINS:.0%}"
        if not (n := int(inside.sum())):
            rows.append([ends, f"{of_bin:,}", UNKNOWN, UNKNOWN])
            continue
        mean, share = float(probability[inside].mean()), float(right[inside].mean())
        low, high = rate_interval(share, n)
        points.append((mean, Mark(share, low, high)))
        rows.append([ends, f"{of_bin:,}", percent(mean), with_interval(share, (low, high), n)])
    if points:
        yield figure_with_table(
            reliability_figure(
                "Calibration", "Share of correct pairs by mean probability with 95% intervals; the diagonal is perfect calibration", points
            ),
            "Share of correct pairs by probability, among pairs that a validation or test link decides. The dashed diagonal is perfect calibration.",
            data_table(["probability", "pairs", "mean probability", "share correct where known"], rows, (1, 2)),
        )
    if (fitted := dict(fit.get("fit") or {})).get("on_test_links"):
        error = float(fitted["calibration_error"])
        yield element("p", f"The probabilities were fitted on the same links; their cross-validated calibration error is {error:.3f}.")
    if suggested := fit.get("suggested"):
        kind = "estimated" if run.view.unchecked_probabilities else "expected"
        words = f"{kind} precision {percent(suggested['precision'])}, {kind} recall {percent(suggested['recall'])}"
        yield element("p", f"Suggested minimum probability: {suggested['probability']:.2f} ({words}).")


# Examples


def example_section(run: ReportedRun) -> Iterator[object]:
    """Pairs with the best scores, pairs in doubt, and pairs that known links contradict, with what their scores rest on."""
    alignment = run.alignments["source"]
    for title, words, positions in chosen_examples(alignment, unchecked=run.view.unchecked_probabilities):
        if len(positions):
            yield element("h3", title)
            yield element("p", words)
            yield from (_example(run, alignment, int(position)) for position in positions)


def chosen_examples(alignment: Alignment, *, unchecked: bool) -> Iterator[tuple[str, str, IntArray]]:
    """Title, words and positions of each kind of example; seed links are none, and no pair is an example twice.

    Args:
        unchecked: the probabilities are estimated, so that no pair is certain.
    """
    rows, known = alignment.rows, alignment.known
    csls = rows["csls"].to_numpy(dtype=np.float64)
    sure = np.nan_to_num(rows["probability"].to_numpy(dtype=np.float64), nan=-1.0) if alignment.calibrated else csls
    margin = np.nan_to_num(rows["margin"].to_numpy(dtype=np.float64), nan=np.inf)
    doubt = np.nan_to_num(np.abs(rows["probability"].to_numpy(dtype=np.float64) - 0.5), nan=1.0) if alignment.calibrated else margin
    wrong = known == KNOWN.index("wrong")
    left = known != KNOWN.index("seed")
    kinds = (
        (
            *_best_words(alignment.calibrated, unchecked),
            left & rows["mutual"].to_numpy(dtype=bool) & ~wrong,
            (-csls, -sure),
        ),
        (
            "Uncertain pairs",
            "Probability nearest 50%." if alignment.calibrated else "The smallest margin over the runner-up.",
            left & ~wrong,
            (margin, doubt),
        ),
        ("Incorrect pairs", "Pairs that contradict a known link, those with the highest score first.", wrong, (-csls,)),
    )
    for title, words, mask, keys in kinds:
        candidates = np.flatnonzero(mask & left)
        chosen = candidates[np.lexsort([key[candidates] for key in keys])][:EXAMPLES]
        left[chosen] = False
        yield title, words, chosen


def _best_words(calibrated: bool, unchecked: bool) -> tuple[str, str]:
    """Title and words of the examples with the best scores, which are certain only where held-out links check the probabilities."""
    if not calibrated:
        return "Pairs with the highest CSLS", "Mutual best matches. Without probabilities, how likely they are to be correct is not known."
    if unchecked:
        return "Pairs with the highest estimated probability", "Mutual best matches. No held-out links check these probabilities."
    return "Certain pairs", "Mutual best matches with the highest probability."


def _example(run: ReportedRun, alignment: Alignment, position: int) -> Html:
    row = alignment.rows.iloc[position]
    pair = run.view.pair(int(row["entity"]), int(row["match"]))
    probability = "" if pair.probability is None else f"{pair.probability:.0%} {pair.probability_word}, "
    head = element("h4", "● ", label(pair.source.title), " ↔ ◆ ", label(pair.target.title))
    ids = element("p", label(pair.source.uri, 120), " ↔ ", label(pair.target.uri, 120), class_="ids")
    verdict = element("p", f"{probability}CSLS {pair.csls:.3f}. ", _verdict_words(alignment, position))
    return element("article", head, ids, verdict, *_explanation(run, pair.source.index, pair.target.index))


def _verdict_words(alignment: Alignment, position: int) -> str:
    words = {
        "right": "Correct: a known link.",
        "wrong": "Incorrect: a known link gives one of the two another counterpart.",
        "probable": "A probable link.",
        "unknown": "No known link covers this pair.",
        "seed": "A seed link.",
    }
    return words[KNOWN[int(alignment.known[position])]]


def _explanation(run: ReportedRun, source: int, target: int) -> Iterator[Html]:
    try:
        found = explain(run.explainer, source, target, "all", EVIDENCE)
        faced = facing(run.adjacency, source, target)
        lines = summary_lines(found, faced, runner_up(run.explainer, source, target))
    except RunError as error:
        if is_of_machine(error):
            raise
        yield element("p", f"This score cannot be explained: {error}")
        return
    yield element("dl", *(part for line in lines for part in (element("dt", line.label), element("dd", shown(line.text, 600)))))


# Settings


def settings_section(run: ReportedRun) -> Iterator[object]:
    """The command that repeats the run, all settings, versions and cost."""
    manifest = run.manifest
    variant = str(manifest.get("variant"))
    try:
        config = RunConfig.from_dict(manifest["config"])
        changed, variant = config.assignments(), config.variant
    except (ConfigError, KeyError, TypeError):  # of another version
        changed = ()
    data = manifest.get("data", {}).get("path") or "FOLDER"
    words = ["python -m engine train", shlex.quote(str(data)), "--variant", variant, "--seed", str(manifest.get("seed"))]
    words += [part for one in changed for part in ("--set", shlex.quote(one))]
    yield element("p", "The command of this run:")
    yield element("pre", element("code", shown(" ".join(words), 4000)))
    yield disclosure("All settings", data_table(["setting", "value"], list(settings_of(manifest).items())))
    versions = ", ".join(f"{name} {version}" for name, version in dict(manifest.get("versions", {})).items())
    cost = [duration(float(manifest["seconds"]))] if isinstance(manifest.get("seconds"), int | float) else []
    cost += [f"{manifest['peak_rss_mb']:,.0f} MiB of memory"] if isinstance(manifest.get("peak_rss_mb"), int | float) else []
    yield element("p", f"Cost: {', '.join(cost) or UNKNOWN}. Versions: {versions}.")
