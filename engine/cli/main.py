"""The command line: ``python -m engine`` with a command; ``--help`` lists them.

Results go to standard output, progress to standard error. A user's mistake gives one line on standard error and exit code 2.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine import __version__
from engine.analysis.run_tables import seed_links
from engine.api import OpenRun, configure, open_run, summary_row
from engine.cli.applicable import check_match, check_reading, check_train, unused_settings
from engine.cli.changes import add_changes
from engine.cli.clusters import add_clusters
from engine.cli.export import add_export, add_report, add_split
from engine.cli.housekeeping import add_backup, add_clean_up
from engine.cli.importing import add_import
from engine.cli.new_entities import match_new
from engine.cli.options import (
    Commands,
    add_command,
    add_fresh,
    add_json,
    add_models,
    add_pool,
    add_reviews_file,
    add_run,
    add_settings,
    by_side,
    models_option,
    print_json,
)
from engine.cli.queue import add_queue, add_queueing, queue_instead, submit_variants
from engine.cli.serve import add_serve
from engine.cli.sharding import add_shard
from engine.cli.signals import INTERRUPTED, how_ended, interruptions, terminations, write_at_once
from engine.cli.updating import add_decisions, add_update
from engine.config import BASELINE_METHODS, PRESETS, SECTIONS, VARIANTS, RunConfig, section_options
from engine.data import inspect_task, inspection_to_dict, load_task, render_inspection
from engine.data.knowledge_graph import Side
from engine.data.library import starting_config
from engine.data.splits import OWN_TRAIN_RATIO, WORTH_A_TEST
from engine.decoding import DECODERS, GRAPH_DECODERS
from engine.errors import ConfigError, EngineError, RunError, printable, printable_lines
from engine.evaluation.decoders import evaluate_decoders
from engine.evaluation.metrics import METRICS, Pool, evaluate_links, stored_interval
from engine.evaluation.pairs import figures_sentence
from engine.explanation import lines
from engine.explanation.removal import FORMS
from engine.exporting import DECODER_NAMES, check_measurable, decoder_help, graph_evidence, write_relations
from engine.jobs.plan import Step, missing_steps
from engine.names.value_start import start_finding
from engine.pipeline import Outcome, Phase, computed_otherwise, event_text, train_run, update_config, update_run
from engine.runs import Run, RunStore, RunSummary
from engine.runs.manifest import parent_of
from engine.runs.tensors import run_similarity
from engine.runs.verdicts import status_words
from engine.training.semi import Round, rounds_protocol
from engine.training.trainer import Progress
from engine.training.worker import follow
from engine.util.distributed import joined
from engine.util.machine import as_machine_error
from engine.util.memory import check_limit
from engine.util.paths import reviews_file

USER_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    parsed = build_parser().parse_args(arguments)
    try:
        check_limit()
        command: Callable[[argparse.Namespace], int] = parsed.command
        with terminations():
            code = command(parsed)
        sys.stdout.flush()
        return code
    except EngineError as error:
        say_error(str(error))
        return USER_ERROR
    except KeyboardInterrupt as error:
        resumable = parsed.command in (train_or_find, update_or_find, prepare_command)
        words, code = how_ended(error, "; run the same command to resume from the last checkpoint" if resumable else "")
        write_at_once(f"{words}.\n".encode())
        return code
    except BrokenPipeError:  # the reader of our output has left
        drop_output()
        return 0
    except BaseException as error:  # libraries have some of their own that are no Exception
        if (machine := as_machine_error(error)) is None:
            raise
        say_error(str(machine))
        drop_output()
        return USER_ERROR


def say_error(message: str) -> None:
    with suppress(OSError):
        print(f"error: {printable(message)}", file=sys.stderr)


def drop_output() -> None:
    """What is still buffered and cannot be written goes nowhere, so that the interpreter does not try again at its end."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Parser(argparse.ArgumentParser):
    """Reports a mistake in the arguments like every other one: in one line."""

    def error(self, message: str) -> typing.NoReturn:
        self.exit(USER_ERROR, f"error: {printable(message)}; see {self.prog} --help.\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = Parser(
        prog="python -m engine",
        description="Align two knowledge graphs with Dual-AMN and inspect the result.",
        epilog="Start with: python -m engine inspect sample_data/world, then: python -m engine train sample_data/world",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_train(commands)
    add_update(commands, update_or_find)
    add_prepare(commands)
    add_runs(commands)
    add_evaluate(commands)
    add_match(commands)
    add_changes(commands)
    add_relations(commands)
    add_explain(commands)
    add_inspect(commands)
    add_shard(commands, say)
    add_queue(commands)
    add_decisions(commands)
    add_export(commands)
    add_split(commands)
    add_clusters(commands)
    add_report(commands)
    add_serve(commands)
    add_backup(commands)
    add_import(commands)
    add_options(commands)
    return parser


def add_train(commands: Commands) -> None:
    parser = add_command(
        commands,
        "train",
        train_or_find,
        help="train on a data set and store the result as a run",
        description="Train Dual-AMN on two graphs and their seed links. The same command finds a finished run and resumes an unfinished one. "
        "Ctrl-C stops training and keeps the progress.",
    )
    parser.add_argument("data", metavar="DATA", help="folder of the data set; the format is detected (docs/data_formats.md)")
    parser.add_argument(
        "--variant",
        choices=VARIANTS,
        default="basic",
        help="basic: structure and seed links only (default); semi: adds confident predictions as training pairs; literal: semi plus "
        "names and values",
    )
    parser.add_argument(
        "--baseline",
        choices=BASELINE_METHODS,
        metavar="NAME",
        help="run another method in place of Dual-AMN, to compare with: lightea (label propagation, nothing is trained), gcn-align, mtranse, paris",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed for the split, the initial weights, the batches and the dropout (default 0)")
    parser.add_argument(
        "--train-ratio",
        type=float,
        metavar="SHARE",
        help="share of the known links used for training; default: the given split; without one 0.3 of a benchmark's links, and of your "
        "own links all "
        "(0.8 if there are 500 or more)",
    )
    parser.add_argument("--epochs", type=int, metavar="N", help="number of passes over the seed links (default 20, more for small data sets)")
    parser.add_argument(
        "--preset",
        choices=tuple(PRESETS),
        default="full",
        help="fast: two thirds of the time, Hits@1 about 1 point lower; --set overrides it (default full)",
    )
    add_settings(parser, "any other setting, as listed by 'options'")
    parser.add_argument(
        "--names",
        action="append",
        default=[],
        metavar="[SIDE=]FILE",
        help="literal: file with (translated) names, JSON or TSV (docs/data_formats.md); for one graph source=FILE or target=FILE",
    )
    add_fresh(parser)
    add_queueing(parser)
    add_reviews_file(parser, "train with reviewers' decisions", "docs/reviewing.md")
    add_models(parser)
    add_json(parser)


def add_prepare(commands: Commands) -> None:
    parser = add_command(
        commands,
        "prepare",
        prepare_command,
        help="train the demo runs for the app",
        description="Train the basic variant on the sample data and submit the others to the queue, where they have no run yet. Does nothing if "
        "there are runs on other data. 'make app' starts with this.",
    )
    parser.add_argument("data", metavar="DATA", type=Path, help="folder of the sample data set")
    parser.add_argument("--all", action="store_true", help="train all variants here, one after the other, instead of submitting them to the queue")
    add_models(parser)


def add_runs(commands: Commands) -> None:
    parser = add_command(
        commands,
        "runs",
        runs,
        help="list or delete runs",
        description="List all runs, newest first, with their accuracy, or delete some of them.",
    )
    add_models(parser)
    add_json(parser)
    add_clean_up(parser)


def add_evaluate(commands: Commands) -> None:
    parser = add_command(
        commands,
        "evaluate",
        evaluate,
        help="evaluate a run on its test links",
        description="Compute Hits@k, MRR and mean rank from a run's stored embeddings, in both directions.",
    )
    add_run(parser)
    parser.add_argument("--pool", choices=typing.get_args(Pool), default="test", help="candidates: entities of the test links (default), or all")
    parser.add_argument(
        "--decoder",
        choices=DECODER_NAMES,
        metavar="NAME",
        default="csls",
        help=f"{decoder_help(sorted([*DECODERS, *GRAPH_DECODERS]))} (default csls, as in the paper)",
    )
    parser.add_argument("--index", choices=("exact", "faiss"), default="exact", help="search index for the neighbours of the hubness correction")
    add_models(parser)
    add_json(parser)


def add_match(commands: Commands) -> None:
    parser = add_command(
        commands,
        "match",
        match,
        help="show an entity's best matches",
        description="Show the best matches of an entity of either graph among the entities of the other graph, by CSLS. With --new, of entities that "
        "the run has not seen.",
    )
    add_run(parser)
    parser.add_argument("entity", metavar="ENTITY", help="URI, ID or label of the entity; with --new the file")
    parser.add_argument("--side", choices=typing.get_args(Side), help="graph of the entity (default: both; of new entities source)")
    new = "match the new entities of a file, one JSON object per line with id, label, names, triples and values (docs/python.md); nothing is trained"
    parser.add_argument("--new", action="store_true", help=new)
    parser.add_argument("--top", type=int, default=10, metavar="N", help="number of matches (default 10)")
    add_pool(parser)
    add_models(parser)
    add_json(parser)


def add_relations(commands: Commands) -> None:
    parser = add_command(
        commands,
        "relations",
        relations,
        help="show corresponding relations and attributes",
        description="Show relations and attributes of the two graphs that correspond, by the facts of matched entities: direction, probability "
        "and number of facts.",
    )
    add_run(parser)
    parser.add_argument("--least", type=float, default=0.5, metavar="P", help="minimum probability in one of the directions (default 0.5)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write them to this file as an SSSOM table")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_models(parser)
    add_json(parser)


def add_explain(commands: Commands) -> None:
    parser = add_command(
        commands,
        "explain",
        explain_command,
        help="explain a pair's score",
        description="Break a score down by channel, layer and neighbour, compare it with a rival, or recompute it without some evidence. "
        "docs/explanation.md explains the parts.",
    )
    add_run(parser)
    parser.add_argument("source", metavar="SOURCE", help="entity of the source graph: URI, ID or label")
    parser.add_argument("target", metavar="TARGET", help="entity of the target graph: URI, ID or label")
    parser.add_argument("--against", metavar="OTHER", help="candidate to compare with (default: the runner-up)")
    parser.add_argument(
        "--side", choices=typing.get_args(Side), default="source", help="side of the pair whose candidates are compared (default source)"
    )
    parser.add_argument(
        "--remove",
        action="append",
        nargs="+",
        default=[],
        metavar="WORD",
        help=f"evidence to remove before the score is recomputed: one of {FORMS}, prefixed by source: or target: if ambiguous; may be repeated",
    )
    parser.add_argument("--top", type=int, default=20, metavar="N", help="number of supporting and opposing neighbour pairs (default 20)")
    add_pool(parser)
    add_models(parser)
    add_json(parser)


def add_inspect(commands: Commands) -> None:
    parser = add_command(
        commands,
        "inspect",
        inspect_command,
        help="check a data set and report problems",
        description="Read a data set without training, count its contents and report problems.",
    )
    parser.add_argument("data", metavar="DATA", help="folder of the data set")
    parser.add_argument("--seed", type=int, default=0, help="random seed for the split if the data set has none (default 0)")
    parser.add_argument("--train-ratio", type=float, metavar="SHARE", help="share of the known links used for training, as in train")
    add_settings(parser, "setting of the section data, as in train")
    add_json(parser)


def add_options(commands: Commands) -> None:
    parser = add_command(
        commands, "options", options, help="list all settings for --set", description="List all settings with their defaults and meaning."
    )
    parser.add_argument("--expert", action="store_true", help="also list settings for research and for unusual machines")
    add_json(parser)


def names_files(files: Sequence[str]) -> dict[str, str]:
    """The settings that ``--names`` gives: ``FILE`` for both graphs, or ``source=FILE`` and ``target=FILE``.

    Raises:
        ConfigError: several files for one graph.
    """
    given = by_side("--names", files, "FILE")
    return {f"literal.names{'' if side is None else f'_{side}'}": f"file:{path}" for side, path in given.items()}


def train_or_find(parsed: argparse.Namespace) -> int:
    check_train(parsed)
    config = configure(parsed.data, parsed.variant, seed=parsed.seed, preset=parsed.preset).with_assignments(parsed.set)
    epochs = "training.epochs" if parsed.baseline is None else "baseline.epochs"
    values = {"data.train_ratio": parsed.train_ratio, epochs: parsed.epochs, "baseline.method": parsed.baseline}
    config = config.with_values(given(values) | names_files(parsed.names))
    reviews = reviews_file(parsed.models) if parsed.with_reviews == Path() else parsed.with_reviews
    with joined() as ranks, interruptions(verbose=not ranks.rank) as should_stop:
        if not ranks.rank and (unused := unused_settings(parsed, config.method)):
            say(unused)
        if ranks.rank:
            follow(parsed.data, config, ranks, should_stop, models=parsed.models)
            return 0
        if parsed.queue or parsed.estimate:
            return queue_instead(parsed, config, reviews)
        options: dict[str, Any] = {"fresh": parsed.fresh, "reviews": reviews, "on_event": report, "should_stop": should_stop, "ranks": ranks}
        outcome = train_run(parsed.data, config, RunStore(parsed.models), **options)
    show_outcome(outcome, parsed.models, config, as_json=parsed.json)
    return 0


def update_or_find(parsed: argparse.Namespace) -> int:
    parent, store = open_run(parsed.run, parsed.models).run, RunStore(parsed.models)
    config = update_config(parent, parsed.data, epochs=parsed.epochs, seed=parsed.seed, assignments=parsed.set)
    mapping = {side: Path(path) for side, path in by_side("--mapping", parsed.mapping, "FILE").items()}
    reviews = reviews_file(parsed.models) if parsed.with_reviews == Path() else parsed.with_reviews
    with interruptions() as should_stop:
        options: dict[str, Any] = {"fresh": parsed.fresh, "reviews": reviews, "on_event": report, "should_stop": should_stop}
        outcome = update_run(parent, parsed.data, config, store, mapping=mapping, **options)
    show_outcome(outcome, parsed.models, config, as_json=parsed.json)
    return 0


def prepare_command(parsed: argparse.Namespace) -> int:
    """Train here what the app cannot open without, and let the queue train the rest meanwhile; with ``--all`` everything here."""
    store = RunStore(parsed.models)
    steps = missing_steps(store, parsed.data)
    now = steps if parsed.all else tuple(step for step in steps if step.variant == "basic")
    if now and train_steps(now, parsed.data, store) == INTERRUPTED:
        return INTERRUPTED
    later = [step.variant for step in steps if step not in now]
    try:
        submitted = submit_variants(later, parsed.data, parsed.models)
    except EngineError as error:  # the app opens without them
        say(f"warning: {' and '.join(later)} cannot be queued: {error}")
        return 0
    if submitted:
        names = " and ".join(submitted)
        shown = f"Home and 'python -m engine queue{models_option(parsed.models)}' show the progress"
        say(f"{names} will train in the background, while the app runs and after it; {shown}.")
    return 0


def train_steps(steps: Sequence[Step], data: Path, store: RunStore) -> int:
    """Train some variants, one after the other; the exit code."""
    say(f"Training on {data}. Ctrl-C stops; the same command resumes.")
    with interruptions() as should_stop:
        for number, step in enumerate(steps, start=1):
            say(f"[{number}/{len(steps)}] {step.variant}: {step.does} ({step.takes} on two cores).")
            outcome = train_run(data, RunConfig(variant=step.variant), store, on_event=report, should_stop=should_stop)
            if outcome.run.manifest["status"] == "stopped":
                say(f"Stopped. The progress is kept as {outcome.run.id}; the same command resumes.")
                return INTERRUPTED
            say(f"[{number}/{len(steps)}] {step.variant}: done, {outcome.run.id}.")
            if should_stop() and number < len(steps):
                say("Stopped. The same command trains the rest.")
                return INTERRUPTED
    return 0


def show_outcome(outcome: Outcome, models: Path, config: RunConfig, *, as_json: bool) -> None:
    run = outcome.run
    where = run.id
    if outcome.reused:
        say(f"{where} already exists{f' ({reasons})' if (reasons := '; '.join(computed_otherwise(run, config))) else ''}; --fresh trains again.")
    elif run.manifest["status"] == "stopped":
        say(f"Stopped. The progress is kept as {where}; the same command resumes.")
    if as_json:
        print_json(run_summary(run))
        return
    print(f"run {where}: {run.manifest.get('seconds', 0):.0f} s, peak memory {run.manifest.get('peak_rss_mb') or 0:,.0f} MiB")
    print_metrics(run.metrics or None, test_links(run.manifest), rounds_protocol(run.manifest), known_links(run.manifest))
    if published := run.manifest.get("baseline", {}).get("hits@1"):
        both = f"{published['target_to_source']:.3f} target to source, {published['source_to_target']:.3f} source to target"
        print(f"as published, {run.manifest['baseline']['protocol']}: {both}")
    elsewhere = models_option(models)
    print_estimated(run, elsewhere)
    print(f"next: python -m engine match {where} ENTITY{elsewhere}, or: make app{f' MODELS={shlex.quote(str(models))}' if elsewhere else ''}")


def print_estimated(run: Run, elsewhere: str) -> None:
    """Of a run whose probabilities were estimated without held-out links: that they were, the suggested threshold, and how to export by it.

    Args:
        elsewhere: the option that names the models folder; "" for the usual one.
    """
    opened = OpenRun(run)
    suggested = opened.suggested_threshold() if opened.view.stored_fit.get("estimated") else None
    if suggested is None:
        return
    expected = f"expected precision {suggested.precision:.0%}, expected recall {suggested.recall:.0%}"
    print(
        "probabilities: estimated from the matches themselves, as too few links were held out to fit them on; "
        f"suggested minimum {suggested.probability:.3f} ({expected})"
    )
    print(f"next: python -m engine export {run.id} --min-probability suggested{elsewhere}")


def run_summary(run: Run) -> dict[str, Any]:
    return {
        "run": run.id,
        "status": run.manifest["status"],
        "metrics": run.metrics or None,
        "seconds": run.manifest.get("seconds"),
        "peak_rss_mb": run.manifest.get("peak_rss_mb"),
        "parent": parent_of(run.manifest),
    }


def runs(parsed: argparse.Namespace) -> int:
    if parsed.models.exists() and not parsed.models.is_dir():
        raise RunError(f"{parsed.models} is a file; --models expects the folder with the runs.")
    found = RunStore(parsed.models).list()
    if not found:
        where = f"no runs in {parsed.models}/" if parsed.models.exists() else f"no runs: the folder {parsed.models} does not exist"
        (say if parsed.json else print)(printable(f"{where}; train one: python -m engine train sample_data/world"))
    if parsed.json:
        print_json([summary_row(summary) for summary in found])
        return 0
    for summary in found:
        row = summary_row(summary)
        figure = row["reason"] or hits_words(summary)
        parent = f"  update of {row['parent']}" if row["parent"] else ""
        print(printable(f"{row['run']}  {row['state']}  {row['created']}  {figure}{parent}"))
    return 0


def test_links(manifest: Mapping[str, Any]) -> int:
    """How many test links a run has."""
    return int(manifest.get("data", {}).get("links", {}).get("test", 0))


def hits_words(summary: RunSummary) -> str:
    """Hits@1 of the published direction with its interval; empty where nothing was measured."""
    figures = (summary.metrics or {}).get("target_to_source") or {}
    found = stored_interval(figures, "hits@1", test_links(summary.manifest or {}))
    return "" if found is None else f"Hits@1 {figures['hits@1']:.3f} (95% interval {found[0][0]:.3f} to {found[0][1]:.3f}, n = {found[1]:,})"


def evaluate(parsed: argparse.Namespace) -> int:
    check_measurable(parsed.decoder)
    opened = open_run(parsed.run, parsed.models)
    run = opened.run
    links = run.table("links")
    test = links.loc[links["role"] == "test", ["source", "target"]].to_numpy(dtype="int64")
    similarity, k = run_similarity(run), run.manifest["config"]["search"]["csls_k"]
    untested = int(run.manifest.get("data", {}).get("untested", 0))
    if parsed.decoder == "csls":
        metrics = evaluate_links(similarity, test, k=k, pool=parsed.pool, index=parsed.index, untested=untested).to_dict()
        metrics |= {name: value for name, value in run.metrics.items() if name == "alignment"}  # the same for every pool
    else:
        evidence = graph_evidence(run) if parsed.decoder in GRAPH_DECODERS else None
        options: dict[str, Any] = {"index": parsed.index, "evidence": evidence, "seeds": seed_links(run), "untested": untested}
        found = evaluate_decoders(similarity, test, [parsed.decoder], k, parsed.pool, **options)
        metrics = found[parsed.decoder].to_dict()
    sample = opened.reviewed_sample()
    if parsed.json:
        print_json({**run_summary(run), "metrics": metrics, "reviewed_sample": None if sample is None else sample.to_dict()})
    else:
        print_metrics(metrics, len(test), rounds_protocol(run.manifest), known_links(run.manifest))
        if sample is not None and (sample.drawn or not len(test)):
            print(f"reviewed sample: {sample.sentence()}")
    return 0


def known_links(manifest: Mapping[str, Any]) -> int:
    """How many links a run could have trained on; 0 where its manifest does not say."""
    links = manifest.get("data", {}).get("links", {})
    return sum(int(links.get(part, 0)) for part in ("train", "valid", "test"))


def print_metrics(metrics: dict[str, Any] | None, links: int, rounds: str = "", known: int = 0) -> None:
    """A small table with the protocol below; the direction that the paper publishes comes first.

    Args:
        metrics: of the run; None where there are none.
        links: the run's test links.
        rounds: what belongs beside the figures of a run with rounds.
        known: seed, validation and test links of the run.
    """
    if metrics is None or metrics["target_to_source"]["hits@1"] is None:
        print(
            "no test links, so accuracy was not measured: review a random sample of the matches (in the app: Review, Random sample)"
            + (f", or hold out 20% of the known links for testing (--train-ratio {OWN_TRAIN_RATIO:g})." if known >= WORTH_A_TEST else ".")
        )
        return
    print(f"{'':18}" + "".join(f"{name:>11}" for name in METRICS))
    for direction in ("target_to_source", "source_to_target"):
        row = metrics[direction]
        print(f"{direction.replace('_', ' '):18}" + "".join(f"{row[name]:>11.{1 if name == 'mean_rank' else 3}f}" for name in METRICS))
        if (found := stored_interval(row, "hits@1", links)) is not None:
            (low, high), n = found
            print(f"{'':18}hits@1: 95% interval {low:.3f} to {high:.3f}, n = {n:,}")
        if row.get("precision") is not None:
            print(f"{'':18}precision {row['precision']:.3f}, recall {row['recall']:.3f}, F1 {row['f1']:.3f} of {row['predicted']:,} predictions")
    if metrics.get("alignment"):
        print(f"alignment: {figures_sentence(metrics['alignment'])}")
    print(f"{metrics['protocol']}{f'; {rounds}' if rounds else ''}")


NOTHING_KNOWN = (
    "No match: the entity's embedding is a zero vector, so all candidates are equally similar. Usually the entity has no triples in this run."
)


def match(parsed: argparse.Namespace) -> int:
    if not 1 <= parsed.top <= 1000:
        raise ConfigError(f"--top must lie between 1 and 1000; got {parsed.top}.")
    if parsed.new:
        check_match(parsed)
        return match_new(parsed)
    run = open_run(parsed.run, parsed.models)
    view = run.view
    entity = view.resolve(parsed.entity, parsed.side)
    found = view.matches(entity.side, entity.index, parsed.top, parsed.pool)
    size = view.pool_size("target" if entity.side == "source" else "source", parsed.pool)
    pool = f"{size:,} {'entities of the other graph' if parsed.pool == 'all' else 'test entities'}{view.pool_note(parsed.pool)}"
    if parsed.json:
        query = {"side": entity.side, "uri": entity.uri, "label": entity.label}
        print_json({"run": run.id, "entity": query, "pool": pool, "matches": [one.to_dict() for one in found]})
        return 0
    print(printable(f"{entity.label or entity.uri}  <{entity.uri}>  ({entity.side} graph); CSLS among {pool}"))
    if not found:
        print(NOTHING_KNOWN)
        return 0
    print(f"{'rank':>4} {'CSLS':>7} {'cosine':>7}  {'known as':<26} match")
    for one in found:
        known = status_words(one.verdict, one.added)
        print(printable(f"{one.rank:>4} {one.csls:>7.3f} {one.cosine:>7.3f}  {known:<26} {one.label or one.uri}  <{one.uri}>"))
    if any(one.names is not None for one in found):
        print("CSLS includes names; the cosine is that of the structure only.")
    return 0


def relations(parsed: argparse.Namespace) -> int:
    if not 0 <= parsed.least <= 1:
        raise ConfigError(f"--least must lie between 0 and 1; got {parsed.least:g}.")
    run = open_run(parsed.run, parsed.models)
    found = run.correspondences(parsed.least)
    if parsed.output is not None:
        write_relations(run.view, found, parsed.output, force=parsed.force)
    if parsed.json:
        print_json({"run": run.id, "correspondences": found.to_dict("records")})
        return 0
    if found.empty:
        print(f"no corresponding relations or attributes with a probability of {parsed.least:g} or more; --least 0 lists weaker ones.")
        return 0
    print(f"{'facts':>7} {'P(s→t)':>7} {'P(t→s)':>7}  {'kind':<9} source ~ target")
    for row in found.itertuples():
        sign = "~ inverse of" if row.turned else "~"
        shares = f"{row.support:>7.0f} {row.source_implies_target:>7.3f} {row.target_implies_source:>7.3f}"
        print(printable(f"{shares}  {row.kind:<9} {row.source} {sign} {row.target}"))
    if weaker := len(run.table("correspondences")) - len(found):
        print(f"{weaker:,} more with a probability below {parsed.least:g}; --least 0 lists them.")
    if parsed.output is not None:
        print(printable(f"written to {parsed.output}"))
    return 0


def explain_command(parsed: argparse.Namespace) -> int:
    if not 0 <= parsed.top <= 1000:
        raise ConfigError(f"--top must lie between 0 and 1000; got {parsed.top}.")
    run = open_run(parsed.run, parsed.models)
    report = run.explain(
        parsed.source, parsed.target, against=parsed.against, remove=parsed.remove, pool=parsed.pool, side=parsed.side, top=parsed.top
    )
    if parsed.json:
        print_json(report.to_dict())
    else:
        print(printable_lines("\n".join(lines(report, parsed.top))))
    return 0


def inspect_command(parsed: argparse.Namespace) -> int:
    check_reading(parsed, "inspect")
    config = starting_config(Path(parsed.data)).with_assignments(parsed.set).with_values(given({"data.train_ratio": parsed.train_ratio}))
    task = load_task(parsed.data, config.data, parsed.seed)
    found = inspect_task(task, start_finding(task))
    if parsed.json:
        print_json(inspection_to_dict(found))
    else:
        print(render_inspection(found))
    return 0


def options(parsed: argparse.Namespace) -> int:
    rows = [row for section in SECTIONS.values() for row in option_rows(section, expert=parsed.expert)]
    if parsed.json:
        print_json(rows)
        return 0
    for row in rows:
        print(f"{row['option']} = {'default' if row['default'] is None else row['default']}   ({row['values']})\n    {row['help']}")
    if not parsed.expert:
        print("options --expert also lists settings for research and for unusual machines.")
    return 0


def option_rows(section: Any, *, expert: bool) -> list[dict[str, Any]]:
    """Name, default, what it takes, and help of each option of a section; ``expert``: also of those that hardly anybody needs."""
    return [
        {"option": one.key, "default": one.default, "values": one.values, "help": one.help}
        for one in section_options(section)
        if expert or not one.expert
    ]


def given(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that were named on the command line."""
    return {key: value for key, value in settings.items() if value is not None}


def report(event: Phase | Progress | Round) -> None:
    """One line of progress."""
    say(event_text(event))


def say(text: str) -> None:
    """Progress that cannot be printed (the terminal or a pipe's reader is gone) must not end a training."""
    with suppress(OSError):
        print(printable_lines(text), file=sys.stderr, flush=True)


__all__ = ["build_parser", "main"]
