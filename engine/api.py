"""The functions and the one object that notebooks, the command line and the app share; ``import engine`` offers them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.config import PRESETS, DataConfig, Preset, RunConfig, Variant
from engine.data import AlignmentTask, Inspection, inspect_task, load_task
from engine.data.knowledge_graph import SIDES, Side
from engine.data.library import starting_config
from engine.errors import ConfigError, DataError, ExportError, RunError
from engine.evaluation.calibration import Calibration, Threshold
from engine.explanation import Explainer, Report, compare_with, conflict, context, explain, intervene, named_evidence, resolve_pair, sibling_runs
from engine.explanation.new_entities import EXAMPLE, NewEntities, NewEntity, PlacedEntity, new_entity
from engine.explanation.verdict import pair_summary
from engine.explore.alignment import Alignment, alignments
from engine.explore.changes import MatchChanges, VersionRun, match_changes
from engine.explore.data_profile import inspect_run, relation_profile
from engine.explore.hierarchy import contradiction_table
from engine.explore.neighbourhood import IncidentTriples, facing
from engine.explore.proxies import ProxyView
from engine.explore.relations import RelationView
from engine.explore.review_queue import ReviewQueue, SampleEstimate, estimate_from_sample
from engine.exporting import (
    FORMATS,
    Canonical,
    ExportSelection,
    ExportTable,
    Fold,
    FoldOptions,
    Format,
    Predicate,
    check_plain,
    formats_by_ending,
    get_format,
    pairs_to_export,
    reviewed_pairs,
    value_conflicts,
    with_fold,
    write_export,
    write_plain,
)
from engine.names.value_start import start_finding
from engine.pipeline import Listener, event_text, train_run, update_config, update_run
from engine.reviews import Decision, ReviewStore
from engine.runs import Run, RunStore, RunSummary
from engine.runs.manifest import parent_of
from engine.runs.tensors import has_table
from engine.runs.view import PairScore, Pool, RunView
from engine.util.files import check_new_file
from engine.util.paths import reviews_file

if TYPE_CHECKING:
    import networkx

PathLike = str | os.PathLike[str]
MODELS = "models"
MATCH_COLUMNS = ("rank", "uri", "label", "csls", "cosine", "verdict", "names", "values", "probability", "added")


class OpenRun:
    """A finished run, opened for questions: what pages, commands and notebooks look at.

    Entities are named as people type them: an identifier, its last part, or a label. What is costly is computed on first use and kept, so nothing
    that is handed out may be changed; tables are the caller's own.

    Attributes:
        run: the run's folder: manifest, files, checksums.
        view: scores and matches by index.
        models: the folder that the run is in, with reviews and other runs.
    """

    def __init__(self, run: Run, models: Path | None = None) -> None:
        self.run = run
        self.view = RunView(run)
        self.models = models or run.path.parent.parent

    def __repr__(self) -> str:
        return f"<run {self.id}: {self.config.variant}, seed {self.config.seed}, {self.manifest['status']}>"

    @property
    def id(self) -> str:
        """``dataset/run_id``, as ``open_run`` takes it."""
        return self.run.id

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What the run was made of: data, settings, versions, machine, checksums."""
        return self.run.manifest

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Hits@k, MRR and mean rank on the test links in both directions, with intervals, and of the
        alignment as pairs precision, recall and F1 ("alignment"); empty without test links."""
        return self.run.metrics

    @cached_property
    def config(self) -> RunConfig:
        """All settings of the run."""
        return RunConfig.from_dict(self.manifest["config"])

    @property
    def fingerprint(self) -> str:
        """Of the two graphs and their links; decisions belong to it, and runs with the same one can be compared."""
        return str(self.manifest.get("data", {}).get("fingerprint", ""))

    # Questions

    def matches(self, entity: str, top: int = 10, *, side: Side | None = None, pool: Pool = "all") -> pd.DataFrame:
        """The best matches of an entity of either graph, by CSLS.

        Args:
            entity: identifier, its last part, or label.
            top: how many.
            side: the graph to look the entity up in; None: both.
            pool: candidates: all entities of the other graph, or those of the test links.

        Returns:
            a row per match, best first: ``rank``, ``uri``, ``label``, ``csls``, ``cosine``, ``verdict`` (what the known links say), and ``names``,
            ``values``, ``probability``, ``added`` where the run has them (missing otherwise).

        Raises:
            EntityError: no entity, or several, fit the text.

        Example:
            >>> run.matches("Sweden", top=3)["rank"].tolist()
            [1, 2, 3]
        """
        found = self.view.resolve(entity, side)
        rows = [vars(match) for match in self.view.matches(found.side, found.index, top, pool)]
        return pd.DataFrame(rows, columns=list(MATCH_COLUMNS)).astype(
            {"names": "float64", "values": "float64", "probability": "float64", "added": "Int64"}
        )

    def align_new(self, entities: Iterable[NewEntity | Mapping[str, Any]], *, side: Side = "source", top: int = 10) -> list[PlacedEntity]:
        """The best matches of entities that the run has never seen, with its frozen weights: nothing is trained, and nothing of the run changes.

        Args:
            entities: each with ``id``, and any of ``label``, ``names``, ``triples`` (head, relation, tail, as the graph names them) and ``values``
                (attribute, value). They may have triples with each other.
            side: the graph that they belong to.
            top: how many candidates of the other graph to give.

        Returns:
            for each entity its ``matches`` (a data frame), the ``basis`` of the best one (shares of structure, names and values), how many triples
            were ``used``, and what was ``ignored``, such as a relation that the graph does not have.

        Raises:
            EntityError: an identifier that the graph has already, or that comes twice.
            ConfigError, DataError: arguments that cannot be used.
            RunError: the run has no stored weights.

        Example:
            >>> neighbour = run.table("entities").query("graph == 'source'")["uri"].iloc[0]
            >>> relation = run.table("relations").query("graph == 'source'")["name"].iloc[0]
            >>> placed = run.align_new([{"id": "new", "triples": [["new", relation, neighbour]]}], top=3)
            >>> len(placed[0].matches), placed[0].used
            (3, 1)
        """
        if side not in SIDES:
            raise ConfigError(f"unknown side '{str(side)[:40]}'; choose source or target.")
        if top < 1:
            raise ConfigError(f"top must be at least 1; got {top}.")
        if not isinstance(entities, Iterable) or isinstance(entities, str | Mapping):
            raise DataError("new entities must be given as a list.")
        records = [one if isinstance(one, NewEntity) else entity_of(one) for one in entities]
        return self._newcomers(side).place(records, top)

    def update(self, data: PathLike, **options: Any) -> OpenRun:
        """Train a run on a new version of this run's data, starting from what this one has learned: :func:`update`.

        Args:
            data: the folder of the new version.
            options: as for :func:`update`.

        Raises:
            EngineError: one sentence on what is wrong.
        """
        return update(self, data, **options)

    def _newcomers(self, side: Side) -> NewEntities:
        """Kept for each graph, with the names and weights that it loads."""
        if side not in self._new_entities:
            self._new_entities[side] = NewEntities(self.view, self.explainer, side, self._calibration)
        return self._new_entities[side]

    @cached_property
    def _new_entities(self) -> dict[Side, NewEntities]:
        return {}

    def pair(self, source: str, target: str, *, pool: Pool = "all") -> PairScore:
        """Everything that is shown for a pair: scores, ranks from both sides, verdict, probability.

        Raises:
            EntityError: no entity, or several, fit one of the texts; or one of them is not in the pool.

        Example:
            >>> run.pair("Sweden", "Schweden").verdict
            'known test link'
        """
        left, right = resolve_pair(self.view, source, target)
        return self.view.pair(left, right, pool)

    def explain(
        self,
        source: str,
        target: str,
        *,
        against: str | None = None,
        remove: Sequence[Sequence[str]] = (),
        pool: Pool = "all",
        side: Side = "source",
        top: int = 20,
    ) -> Report:
        """Why a pair scored what it scored.

        Args:
            source, target: the pair.
            against: the candidate to compare with; None: the best other one.
            remove: evidence to compute the score without, each as the words that ``explain --remove`` takes, for example ``[("Norway",)]``.
            pool: candidates, as for :meth:`matches`.
            side: the graph of the entity whose candidates compete.
            top: how many supporting and opposing pairs of neighbours to list.

        Returns:
            a report: ``print`` it, or take ``to_dict()``, or ``parts`` and ``neighbours`` as data frames. The parts add up to the CSLS score.

        Raises:
            EntityError: no entity, or several, fit one of the texts.
            EvidenceError: there is no such evidence.
            RunError: the run has no stored weights.

        Example:
            >>> report = run.explain("Sweden", "Schweden")
            >>> bool(abs(report.parts["value"].sum() - report.explanation.pair.csls) < 1e-4)
            True
        """
        left, right = resolve_pair(self.view, source, target)
        removed = [named_evidence(self.explainer, left, right, words, pool, side) for words in remove]
        found = explain(self.explainer, left, right, pool, top)
        summary = pair_summary(self.explainer, found, facing(self.adjacency, left, right))
        return Report(
            run=self.id,
            explanation=found,
            summary=(summary.verdict, *summary.lines),
            context=context(self.explainer, left, right, self._siblings(), pool),
            conflict=conflict(self.explainer, right),
            conflict_of_source=conflict(self.explainer, left, side="source"),
            comparison=compare_with(self.explainer, left, right, against, pool, side=side),
            intervention=intervene(self.explainer, left, right, frozenset().union(*removed), pool) if removed else None,
            side=side,
        )

    def _siblings(self) -> Sequence[tuple[str, RunView]]:
        """The other runs of the same data, the newest first."""
        return sibling_runs(RunStore(self.models), self.id, self.fingerprint)

    def alignment(self, side: Side = "source") -> pd.DataFrame:
        """Every entity of one graph with its best match.

        Returns:
            a row per entity: identifiers and labels of both ends, ``verdict``, ``probability``, ``csls``, ``cosine``, ``margin`` over the runner-up,
            degrees, ``claims`` (how many entities have the same best match), ``mutual``.

        Example:
            >>> "csls" in run.alignment().columns
            True
        """
        found = self.alignments[side]
        return found.described(np.arange(len(found)))

    def correspondences(self, least: float = 0.0) -> pd.DataFrame:
        """Relations and attributes of the two graphs that correspond, by the facts of matched entities.

        Args:
            least: only those of at least this probability in one of the directions.

        Returns:
            a row per correspondence, relations first, the best supported first: ``kind``, ``source``, ``target``, ``turned`` (the target relation
            runs the other way), ``source_implies_target``, ``target_implies_source`` (probabilities), ``support`` (facts in which both coincide).

        Raises:
            RunError: the run is older than this table.

        Example:
            >>> {"source", "target", "support"} <= set(run.correspondences().columns)
            True
        """
        if not self.view.has("correspondences"):
            raise RunError(f"run {self.id} has no table of correspondences, because an older version made it; train it again with --fresh.")
        table = self.table("correspondences")
        return table[table[["source_implies_target", "target_implies_source"]].max(axis=1) >= least].reset_index(drop=True)

    def contradictions(self) -> pd.DataFrame:
        """The mutual best matches that contradict the graphs' class hierarchies, two pairs a row.

        Returns:
            ``reason`` ("crosswise": one pair's classes are below the other's in one graph and above in the other; "disjoint": the matched classes are
            below disjoint ones), and the identifiers and labels of the weaker and of the stronger pair.

        Raises:
            RunError: a table of the run cannot be read.

        Example:
            >>> len(run.contradictions())
            0
        """
        alignment = self.alignments["source"]
        ends = (alignment.rows[name].to_numpy() for name in ("entity", "match"))
        return contradiction_table(self.view, alignment.contradictions, *ends)

    @property
    def parent(self) -> str:
        """The run that this one was updated from (``dataset/run_id``); "" where it was trained from the start."""
        return parent_of(self.manifest)

    def changes(self, old: OpenRun | str | None = None, *, side: Side = "source", least: float | None = None) -> pd.DataFrame:
        """What changed since another run, on an earlier version of the data or on the same data: matches gained, lost, changed and kept.

        Args:
            old: an open run, or its id in the same models folder; None: the run that this one was updated from.
            side: the graph whose entities' matches are compared.
            least: probability from which on a match counts; None: .5 where both runs have probabilities, else all matches count.

        Returns:
            a row per match of either run: ``change``; ``entity`` and ``match`` with labels, ``probability`` and ``csls``; the same of the old run
            (``old_match`` ...); ``reason``, a difference between the two versions that concerns the match ("training only" where there is none),
            and ``detail``. Without a match, identifiers are empty and numbers missing.

        Raises:
            ComparisonError: the runs have too little in common, or lack probabilities.
            RunError: this run was not updated from another one, or that is not there any more.

        Example:
            >>> run.changes(run)["change"].unique().tolist()
            ['kept']
        """
        return self.compared_with(old, side=side, least=least).described()

    def compared_with(self, old: OpenRun | str | None = None, *, side: Side = "source", least: float | None = None) -> MatchChanges:
        """The same as numbers, with counts and filters.

        Raises:
            ComparisonError, RunError: as :meth:`changes`.
        """
        if side not in SIDES:
            raise ConfigError(f"unknown side '{str(side)[:40]}'; choose source or target.")
        if old is None and not self.parent:
            raise RunError(f"run {self.id} was not updated from another run; give the run to compare with.")
        opened = old if isinstance(old, OpenRun) else open_run(old or self.parent, self.models)
        new, earlier = (VersionRun(run.view, run.alignments[side]) for run in (self, opened))
        return match_changes(new, earlier, least)

    def suggested_threshold(self) -> Threshold | None:
        """The least probability with the best balance of precision and recall (F1) to expect; None where the run has no probabilities.

        Returns:
            ``probability``, and the ``precision`` and ``recall`` that pairs of at least this probability should have.

        Raises:
            RunDamagedError: the stored calibration cannot be read.

        Example:
            >>> threshold = run.suggested_threshold()
            >>> threshold is None or 0 <= threshold.probability <= 1
            True
        """
        return None if self._calibration is None else self._calibration.balanced_threshold()

    @property
    def _calibration(self) -> Calibration | None:
        """
        Raises:
            RunDamagedError: it cannot be read.
        """
        fit = self.view.stored_fit
        return Calibration.from_dict(fit) if fit.get("calibrated") else None

    def neighbourhood(self, entity: str, hops: int = 1, *, side: Side | None = None) -> networkx.MultiDiGraph:
        """The triples around an entity as a networkx graph, to draw or to compute with.

        Args:
            entity: identifier, its last part, or label.
            hops: how many edges away; the graph has every triple that lies on such a path.
            side: the graph to look the entity up in; None: both.

        Returns:
            nodes are identifiers with ``label`` and ``hops``; edges from head to tail have ``relation``.

        Raises:
            EntityError: no entity, or several, fit the text.
            ConfigError: fewer than one hop.

        Example:
            >>> around = run.neighbourhood("Sweden")
            >>> {around.nodes[one]["hops"] for one in around} == {0, 1}
            True
        """
        import networkx

        if hops < 1:
            raise ConfigError(f"hops must be at least 1; got {hops}.")
        found = self.view.resolve(entity, side)
        graph = self.view.graphs[found.side]
        triples = self.table("triples")
        heads, relations, tails = triples.loc[triples["graph"] == found.side, ["head", "relation", "tail"]].to_numpy().T
        distance = np.full(len(graph), -1)
        distance[found.index] = 0
        inside = np.zeros(len(heads), dtype=bool)
        for hop in range(1, hops + 1):
            touched = (distance[heads] == hop - 1) | (distance[tails] == hop - 1)
            inside |= touched
            reached = np.concatenate([heads[touched], tails[touched]])
            distance[reached[distance[reached] < 0]] = hop
        around = networkx.MultiDiGraph()
        around.add_nodes_from((graph.uris[one], {"label": graph.labels[one], "hops": int(distance[one])}) for one in np.flatnonzero(distance >= 0))
        names = self.relation_names[found.side]
        around.add_edges_from(
            (graph.uris[head], graph.uris[tail], {"relation": names[relation]})
            for head, relation, tail in zip(heads[inside], relations[inside], tails[inside], strict=True)
        )
        return around

    def decisions(self) -> Sequence[Decision]:
        """The reviewers' decisions on the run's data that count: the latest of each reviewer on each pair; none without reviews.

        Raises:
            ReviewError: the reviewers' database cannot be read.

        Example:
            >>> len(run.decisions())
            0
        """
        path = reviews_file(self.models)
        if not path.exists():
            return []
        with closing(ReviewStore(path)) as store:
            return store.standing(self.fingerprint)

    def reviewed_sample(self) -> SampleEstimate | None:
        """The share of right matches, estimated from the random sample that reviewers decided; None where the models folder has no reviews.

        Raises:
            ReviewError: the reviewers' database cannot be read.

        Example:
            >>> run.reviewed_sample() is None
            True
        """
        return estimate_from_sample(self.queue, self.decisions()) if reviews_file(self.models).exists() else None

    def report(self) -> str:
        """The run as one HTML page: figures, tables and examples, readable without a server; everything that the data says is escaped.

        Raises:
            RunError: the run has no stored alignment.

        Example:
            >>> run.report().startswith("<!DOCTYPE html>")
            True
        """
        from engine.reporting import report_html  # takes a moment, and few programs need it

        return report_html(self)

    # What is stored

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the stored tables (docs/run_tables.md)."""
        return tuple(sorted(name.removesuffix(".parquet") for name in self.run.files if name.endswith(".parquet")))

    def has(self, table: str) -> bool:
        """Whether the run stores such a table; runs of older versions lack some."""
        return has_table(self.run, table)

    def table(self, name: str) -> pd.DataFrame:
        """A stored table.

        Raises:
            RunError: the run has no such table, or it is damaged.

        Example:
            >>> "train" in set(run.table("links")["role"])
            True
        """
        if not self.has(name):
            raise RunError(f"run {self.id} has no table '{name}', because an older version made it; train again to get it.")
        return self._read(name)

    def _read(self, name: str) -> pd.DataFrame:
        return self.run.table(name)

    def tensor(self, name: str, key: str) -> npt.NDArray[Any]:
        """A stored tensor, memory-mapped; for example ``tensor("embeddings", "source")``, (E1, D) float32.

        Raises:
            RunError: the run has no such tensor.
        """
        return self.run.tensor(name, key)

    def json(self, name: str) -> Mapping[str, Any]:
        """A stored JSON object: ``decoders``, ``calibration``; empty where the run has none.

        Raises:
            RunDamagedError: the file was changed.
        """
        return self.run.json(name) if f"{name}.json" in self.run.files else {}

    # Views of parts

    @cached_property
    def adjacency(self) -> IncidentTriples:
        return IncidentTriples(self.view)

    @cached_property
    def explainer(self) -> Explainer:
        return Explainer(self.view, self.adjacency)

    @cached_property
    def relations(self) -> RelationView:
        return RelationView(self.view, self.table)

    @cached_property
    def proxies(self) -> ProxyView:
        return ProxyView(self.view, self.table, self.tensor)

    @cached_property
    def alignments(self) -> Mapping[Side, Alignment]:
        return alignments(self.view)

    @cached_property
    def queue(self) -> ReviewQueue:
        return ReviewQueue(self.view, self.alignments["source"])

    @cached_property
    def inspection(self) -> Inspection:
        return inspect_run(self.run)

    @cached_property
    def relation_profiles(self) -> Mapping[Side, pd.DataFrame]:
        return {side: relation_profile(self.table("triples"), self.table("relations"), side) for side in SIDES}

    @cached_property
    def relation_names(self) -> Mapping[Side, Sequence[str]]:
        """Names by number."""
        return {side: profile.sort_values("relation")["name"].tolist() for side, profile in self.relation_profiles.items()}


def entity_of(record: Any) -> NewEntity:
    """
    Raises:
        DataError: no new entity.
    """

    def plain(value: Any) -> Any:
        return [plain(one) for one in value] if isinstance(value, list | tuple) else value

    try:
        return new_entity({name: plain(value) for name, value in record.items()} if isinstance(record, Mapping) else record)
    except ValueError as error:
        raise DataError(f"{error}; expected an entity like {EXAMPLE}.") from None


def read(data: PathLike, *, seed: int = 0, settings: Mapping[str, Any] | None = None) -> AlignmentTask:
    """Read two graphs and their known links from a folder of any known format (docs/data_formats.md).

    Args:
        data: the data set's folder.
        seed: draws the split where the data gives none.
        settings: of the section ``data``, for example ``{"data.train_ratio": 0.2}``; they go before those that an import stored.

    Returns:
        the task: ``source`` and ``target`` graphs, (n, 2) links of local indices by part, ``findings`` of the reader.

    Raises:
        DataError: a file is missing or does not hold what it should (with file and line).
        ConfigError: an unknown setting.

    Example:
        >>> task = engine.read("sample_data/europe")
        >>> task.train_links.shape[1]
        2
    """
    return load_task(Path(data), _data_config(data, settings), seed)


def inspect(data: PathLike | AlignmentTask, *, seed: int = 0, settings: Mapping[str, Any] | None = None) -> Inspection:
    """Sizes of a data set, and everything in it that would make figures wrong or results disappointing; ``print`` it.

    Args:
        data: a folder, or what :func:`read` returned.
        seed, settings: as for :func:`read`; for a folder only.

    Raises:
        DataError: as :func:`read`.
        ConfigError: as :func:`read`.

    Example:
        >>> found = engine.inspect("sample_data/europe")
        >>> found.links["test"] > 0
        True
    """
    task = data if isinstance(data, AlignmentTask) else read(data, seed=seed, settings=settings)
    return inspect_task(task, start_finding(task))


def configure(
    data: PathLike, variant: Variant = "basic", *, seed: int = 0, preset: Preset = "full", settings: Mapping[str, Any] | None = None
) -> RunConfig:
    """All settings of a run: the defaults, what an import stored with the data, the preset, then those given here.

    Raises:
        ConfigError: an unknown setting, preset, or value.
    """
    if preset not in PRESETS:
        raise ConfigError(f"unknown preset '{str(preset)[:40]}'; choose one of {', '.join(PRESETS)}.")
    return replace(starting_config(Path(data)), variant=variant, seed=seed).with_values(PRESETS[preset]).with_values(settings or {})


def train(
    data: PathLike,
    variant: Variant = "basic",
    *,
    seed: int = 0,
    models: PathLike | None = None,
    preset: Preset = "full",
    settings: Mapping[str, Any] | None = None,
    reviews: PathLike | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
    should_stop: Callable[[], bool] = lambda: False,
) -> OpenRun:
    """Train a run and keep it under ``models``, or find it finished there; an interrupted one is resumed.

    Args:
        data: the data set's folder.
        variant: "basic" (structure and seed links), "semi" (adds its own confident pairs), "literal" (semi, and names).
        seed: draws the split, the initial weights, the batches and the dropout.
        models: the folder that runs are kept in; None: what ``DUAL_AMN_MODELS`` names, else ``models``.
        preset: "full", or "fast": two thirds of the time for about one point of Hits@1.
        settings: anything that ``python -m engine options`` lists, for example ``{"encoder.dim": 64}``; they go before the preset's.
        reviews: reviewers' database, or a run's ``reviews.parquet``, to train with (docs/reviewing.md).
        fresh: train again even if the run exists; the earlier one is kept.
        progress: True prints a line per epoch to standard error; or a function that is called with each event.
        should_stop: asked after each step; True ends training, and what was learned so far is kept as a run of its own.

    Raises:
        EngineError: one sentence on what is wrong; earlier runs stay as they are.

    Example:
        >>> run = engine.train("sample_data/europe", settings={"training.epochs": 20, "encoder.dim": 32}, progress=False)
        >>> 0 < run.metrics["target_to_source"]["hits@1"] < 1
        True
    """
    listener: Listener = progress if callable(progress) else _print_event if progress else _ignore
    outcome = train_run(
        Path(data),
        configure(data, variant, seed=seed, preset=preset, settings=settings),
        RunStore(_runs_folder(models)),
        fresh=fresh,
        reviews=None if reviews is None else Path(reviews),
        on_event=listener,
        should_stop=should_stop,
    )
    return OpenRun(outcome.run, _runs_folder(models))


def update(
    run: OpenRun | str,
    data: PathLike,
    *,
    mapping: PathLike | Mapping[Side, PathLike] | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    models: PathLike | None = None,
    reviews: PathLike | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
    should_stop: Callable[[], bool] = lambda: False,
) -> OpenRun:
    """Train a run on a new version of its data, starting from what it has learned, or find such a run finished.

    Entities go by their identifiers, or by a mapping file. Links keep their part (training, validation or test). Reviewers' decisions are
    carried over; those whose evidence changed are marked to be looked at again (docs/updating.md).

    Args:
        run: an open run, or its id under ``models``: the parent.
        data: the folder of the new version.
        mapping: file with old and new identifiers of entities, for both graphs or by graph.
        epochs: number of epochs before the rounds; None: a share of the parent's.
        seed: None: the parent's.
        settings: instead of the parent's.
        models: the folder that the new run is kept in, where ``run`` is an id; else that of the open run.
        reviews: reviewers' decisions to train with; None: those that the parent was trained with, as far as their entities are still there.
        fresh, progress, should_stop: as for :func:`train`.

    Raises:
        EngineError: one sentence on what is wrong, such as data that is no version of the run's; earlier runs stay as they are.

    Example:
        >>> later = engine.update(run, "sample_data/europe", epochs=1, progress=False)
        >>> later.manifest["parent"]["run"] == run.id
        True
    """
    opened = run if isinstance(run, OpenRun) else open_run(run, models)
    files: dict[Side | None, Path] = {}
    if mapping is not None:
        files = {side: Path(path) for side, path in mapping.items()} if isinstance(mapping, Mapping) else {None: Path(mapping)}
    outcome = update_run(
        opened.run,
        Path(data),
        update_config(opened.run, Path(data), epochs=epochs, seed=seed, settings=settings),
        RunStore(opened.models),
        mapping=files,
        fresh=fresh,
        reviews=None if reviews is None else Path(reviews),
        on_event=progress if callable(progress) else _print_event if progress else _ignore,
        should_stop=should_stop,
    )
    return OpenRun(outcome.run, opened.models)


def open_run(run: str, models: PathLike | None = None, *, verify: bool = True) -> OpenRun:
    """Open a finished run.

    Args:
        run: ``dataset/run_id``, or the run id alone where one data set only has it.
        models: the folder that runs are kept in; None: what ``DUAL_AMN_MODELS`` names, else ``models``.
        verify: compare all files with their checksums first; False opens at once.

    Raises:
        RunNotFoundError: there is no such run, or it is not finished.
        RunVersionError: a newer engine made it.
        RunDamagedError: a file was changed.

    Example:
        >>> engine.open_run(run.id).config.variant
        'basic'
    """
    folder = _runs_folder(models)
    found = RunStore(folder).find(run)
    if verify:
        found.verify()
    return OpenRun(found, folder)


def list_runs(models: PathLike | None = None) -> pd.DataFrame:
    """All runs under a folder, newest first.

    Args:
        models: as in :func:`open_run`.

    Returns:
        ``run``, ``state`` ("finished", "in training", "partial", "broken" ...), ``variant``, ``created`` (UTC), ``hits@1`` in the published direction
        (missing without test links), ``parent`` (the run that it is an update of, or ""), ``reason`` (what is wrong with a broken one).

    Example:
        >>> run.id in set(engine.list_runs()["run"])
        True
    """
    columns = ["run", "state", "variant", "created", "hits@1", "parent", "reason"]
    return pd.DataFrame([summary_row(summary) for summary in RunStore(_runs_folder(models)).list()], columns=columns)


def summary_row(summary: RunSummary) -> dict[str, Any]:
    """What a list says of a run; Hits@1 is that of the published direction."""
    hits = ((summary.metrics or {}).get("target_to_source") or {}).get("hits@1")
    state = "in training" if summary.active else summary.state
    parent = parent_of(summary.manifest or {})
    row = {"run": summary.id, "state": state, "variant": summary.variant, "created": summary.created, "hits@1": hits}
    return {**row, "parent": parent, "reason": summary.reason}


def export(
    run: OpenRun | str,
    path: PathLike | None = None,
    *,
    format: str | None = None,
    models: PathLike | None = None,
    min_probability: float | Literal["suggested"] | None = None,
    decoder: str | None = None,
    side: Side = "source",
    seeds: bool = True,
    known_links: bool = True,
    part: Literal["all", "reviewed"] = "all",
    predicate: Predicate | None = None,
    repair: bool = False,
    canonical: Canonical = "source",
    least_correspondence: float = 0.5,
    conflicts: PathLike | None = None,
    force: bool = False,
) -> ExportTable:
    """Write a run's alignment to a file that other tools read (docs/exporting.md).

    Args:
        run: an open run, or its id.
        models: of a run that is named: as in :func:`open_run`.
        path: the file, which appears when it is whole; None: ``links-DATA-RUN`` with the format's ending, in the working folder.
        format: "csv", "tsv", "parquet", "sssom", ...; None: by the file's ending, csv without a file.
        min_probability: only pairs that are right with at least this probability, and known links; "suggested": that of
            :meth:`OpenRun.suggested_threshold`.
        decoder: what makes an alignment of the scores; None: one-to-one where the known links allow it.
        side: the graph whose entities' matches are taken.
        seeds: whether to include the links that the model was trained on.
        known_links: whether known links replace predictions that contradict them.
        part: "reviewed" for the pairs that reviewers accepted.
        predicate: what sssom and ntriples say of a pair; None: the format's own.
        repair: leave out, of each two pairs that contradict the graphs' class hierarchies, the weaker one.
        canonical: of the merged formats: whose identifier a folded entity gets, or "minted" for a new one.
        least_correspondence: of the merged formats: probability that relations and attributes need, both ways, to become one.
        conflicts: a .csv or .tsv file for the values of folded entities that differ (:func:`engine.exporting.value_conflicts`); None writes none.
        force: replace a file that is there already.

    Returns:
        what was written; ``expectation()`` says how many of the pairs should be right.

    Raises:
        ExportError: no pairs, no probabilities to suggest a threshold by, or the file cannot be written.
        ConfigError: an unknown format or decoder.

    Example:
        >>> table = engine.export(run, "links.sssom.tsv", force=True)
        >>> len(table) > 100
        True
    """
    opened = run if isinstance(run, OpenRun) else open_run(run, models)
    fmt = get_format(format) if format is not None else format_of(path)
    with closing(ReviewStore(reviews_file(opened.models))) as store:
        reviewed = reviewed_pairs(store, opened.fingerprint)
    if part == "reviewed" and not any(pair.accepted for pair in reviewed):
        raise ExportError(f"reviewers have not accepted any pair of {opened.run.dataset}; review some first, or export all pairs.")
    least = suggested_probability(opened) if min_probability == "suggested" else min_probability
    selection = ExportSelection(part, decoder, side, least, seeds, known_links, repair=repair)
    table, folding = pairs_to_export(opened.view, selection, reviewed), FoldOptions(canonical, least_correspondence)
    output = Path(path or fmt.file_name(opened.id))
    if conflicts is not None:  # before anything is written
        check_plain(Path(conflicts), force=force)
        check_new_file(output, force=force)
    fold = Fold.of(table, folding) if conflicts is not None and len(table) else None
    write_export(output, table, with_fold(fmt, folding if fold is None else fold), predicate, force=force)
    if conflicts is not None and fold is not None:  # no fold only without pairs, which are refused above
        write_plain(value_conflicts(fold), Path(conflicts), force=force)
    return table


def suggested_probability(run: OpenRun) -> float:
    """
    Raises:
        ExportError: the run has no probabilities.
    """
    if (threshold := run.suggested_threshold()) is None:
        raise ExportError(
            f"run {run.id} has no probabilities, so no threshold can be suggested; export without a minimum probability. "
            f"{run.view.why_no_probabilities}"
        )
    return threshold.probability


def format_of(path: PathLike | None) -> Format:
    """The format whose ending a file has, the longest one that fits; csv without a file.

    Raises:
        ConfigError: no format has such an ending.
    """
    if path is None:
        return get_format("csv")
    fitting = formats_by_ending(Path(path))
    if not fitting:
        known = ", ".join(f"{one.suffix} ({one.name})" for one in FORMATS.values())
        raise ConfigError(f"the ending of '{Path(path).name}' does not determine a format; use one of {known}, or give format=.")
    return fitting[0]


def default_models() -> Path:
    """The folder of runs where none is given: what ``DUAL_AMN_MODELS`` names, else ``models`` in the working folder."""
    return Path(os.environ.get("DUAL_AMN_MODELS") or MODELS)


def _runs_folder(given: PathLike | None) -> Path:
    return default_models() if given is None else Path(given)


def _data_config(data: PathLike, settings: Mapping[str, Any] | None) -> DataConfig:
    given = settings or {}
    if foreign := sorted(key for key in given if not key.startswith("data.")):
        raise ConfigError(f"only settings of the section data apply here; got {', '.join(foreign)}.")
    return starting_config(Path(data)).with_values(given).data


def _print_event(event: Any) -> None:
    print(event_text(event), file=sys.stderr, flush=True)


def _ignore(event: Any) -> None:
    """No progress is wanted."""
