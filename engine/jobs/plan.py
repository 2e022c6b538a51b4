"""What a training will be before it is queued, and the trainings that the app needs at first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.config import DataConfig, RunConfig, Variant
from engine.data import AlignmentTask, load_task, safe_name
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ConfigError
from engine.names import absolute_paths, named_paths
from engine.pipeline import make_run_id, prepare_update, reviews_of
from engine.reviews import Snapshot, with_reviews
from engine.runs import Run, RunStore
from engine.training.estimate import Estimate, Sizes, estimate_training, measured_machine, task_sizes
from engine.training.start import why_not_trained

# From a data set and settings to what would be trained: checked, named and measured before anything starts.

ReviewsOf = Callable[[str], Snapshot]


@dataclass(frozen=True)
class DataSummary:
    """What a plan needs of a data set, without the data.

    Attributes:
        name: as runs call it.
        fingerprint, split: as of :class:`engine.data.AlignmentTask`.
        reviews: what reviewers say of it, which is trained on too; None: nothing, or not asked for.
        several_names: as of :class:`engine.data.AlignmentTask`.
    """

    path: Path
    name: str
    fingerprint: str
    split: str
    sizes: Sizes
    reviews: Snapshot | None = None
    several_names: frozenset[str] = frozenset()

    @property
    def own_links(self) -> bool:
        return self.sizes.own_links

    @property
    def num_seed_links(self) -> int:
        return self.sizes.train


@dataclass(frozen=True)
class Plan:
    """A training that could be asked for.

    Attributes:
        dataset, run_id: what the run will be called.
        finished: whether there is such a run already.
        structure_ready: whether there is the semi run that a literal one adds names to.
        reviews: as of :class:`DataSummary`.
        parent: the run that is updated to a new version of its data; "" for a training from the start.
    """

    data: Path
    config: RunConfig
    dataset: str
    run_id: str
    sizes: Sizes
    finished: bool
    structure_ready: bool = False
    reviews: Snapshot | None = None
    parent: str = ""

    @property
    def name(self) -> str:
        """``dataset/run_id``"""
        return f"{self.dataset}/{self.run_id}"


def summarise(path: Path, config: DataConfig, seed: int, reviews: ReviewsOf | None = None) -> DataSummary:
    """Read a data set for what it is called and how large it is.

    Args:
        reviews: gives the decisions on the data of a fingerprint that are to be trained on.

    Raises:
        DataError, ConfigError: as :func:`engine.data.load_task`.
        ReviewError: there are none, or they leave nothing to train on.
    """
    return summarise_task(path, load_task(path, config, seed), reviews)


def summarise_task(path: Path, task: AlignmentTask, reviews: ReviewsOf | None = None) -> DataSummary:
    """The same of a data set that was read.

    Raises:
        ReviewError: as above.
    """
    snapshot = None
    if reviews is not None:
        snapshot = reviews(task.fingerprint)
        task, _ = with_reviews(task, snapshot)
    return DataSummary(path.resolve(), task.name, task.fingerprint, task.split, task_sizes(task), snapshot, task.several_names)


@dataclass(frozen=True)
class UpdateSummary:
    """What a plan needs of an update, without the data.

    Attributes:
        parent: the run that is updated.
        data: the new version as it is trained on: links have the part that they have in the parent.
        counts: by graph, how many entities are carried over, new and gone.
    """

    parent: str
    data: DataSummary
    counts: Mapping[Side, Mapping[str, int]]


def summarise_update(parent: Run, path: Path, config: RunConfig, models: Path) -> UpdateSummary:
    """Compare a data set with a run's data; nothing is trained.

    Args:
        parent: the run to be updated.
        path: the new version.
        config: of :func:`engine.pipeline.update_config`.
        models: the folder of the runs.

    Raises:
        DataError, RunError, ReviewError: as :func:`engine.pipeline.update_run`.
    """
    prepared = prepare_update(parent, path, config)
    task, reviews = prepared.task, reviews_of(prepared, parent, models, None)
    if reviews is not None:
        task, _ = with_reviews(task, reviews)
    data = DataSummary(path.resolve(), task.name, task.fingerprint, task.split, task_sizes(task), None, task.several_names)
    return UpdateSummary(parent.id, data, {side: prepared.versions.carried[side].counts()["entities"] for side in SIDES})


def plan_update(update: UpdateSummary, config: RunConfig, models: Path) -> Plan:
    """What would be trained.

    Raises:
        RunError: the models folder cannot hold such a run.
    """
    return replace(plan_training(update.data, config, models), parent=update.parent)


def why_refused(path: Path, config: RunConfig, reviews: Snapshot | None = None) -> str:
    """Why a training would be refused for want of seed links and of anything else to start from; "" where it would not be.

    Args:
        path: the data set's folder.
        config: its variant, what is read and what is started from.
        reviews: decisions that are trained on too.

    Raises:
        DataError, ConfigError: as :func:`engine.data.load_task`.
        ReviewError: the decisions leave nothing to train on.
    """
    task = load_task(path, config.data, config.seed)
    if reviews is not None:
        task, _ = with_reviews(task, reviews)
    return why_not_trained(task, config)


def plan_training(data: DataSummary, config: RunConfig, models: Path) -> Plan:
    """What would be trained.

    Raises:
        RunError: the models folder cannot hold such a run.
    """
    store = RunStore(models)

    def exists(wanted: RunConfig) -> bool:
        return store.path_of(data.name, make_run_id(data, wanted)).exists()

    ready = config.variant == "literal" and exists(replace(config, variant="semi"))
    return Plan(data.path, config, data.name, make_run_id(data, config), data.sizes, exists(config), ready, data.reviews)


def estimate_plan(plan: Plan, models: Path) -> Estimate:
    """Time and memory of a planned training on this machine, corrected by the runs that it has finished."""
    machine = measured_machine(plan.config.training.threads)
    return estimate_training(plan.sizes, plan.config, machine, RunStore(models).list(), structure_ready=plan.structure_ready)


def reachable(config: RunConfig, folders: Sequence[Path]) -> RunConfig:
    """Whoever asks through a browser must not make the server read any file of its disk.

    Args:
        config: perhaps with paths in the settings of names and of their encoder.
        folders: what lies in one of these may be read.

    Returns:
        The settings with these very paths from the root of the disk: the trainer, which works in a folder of its own, opens what was checked.

    Raises:
        ConfigError: a path that lies elsewhere.
    """
    for key, paths in named_paths(config.literal).items():
        if not all(_inside(path, folders) for path in paths):
            raise ConfigError(
                f"{key} names a file outside the folders of this server; copy it into the data set's folder, or train on the command line."
            )
    return config.with_values(absolute_paths(config.literal, models_by_name=False))


def absolute(config: RunConfig) -> RunConfig:
    """All paths in the settings from the root of the disk: the trainer works in a folder of its own.

    Raises:
        ConfigError: something in them cannot be a path.
    """
    return config.with_values(absolute_paths(config.literal))


def _inside(name: str, folders: Sequence[Path]) -> bool:
    try:
        path = Path(name).resolve()
        return any(path.is_relative_to(folder.resolve()) for folder in folders)
    except (OSError, ValueError, RuntimeError):  # no path at all, or a loop of links
        return False


# Runs to look at for whoever comes without any: a sample data set in every variant, one after the other.
#
# What exists is never trained again, and who has runs of other data is not made to wait. A training that was interrupted is not finished, so it is
# resumed the next time.


@dataclass(frozen=True)
class Step:
    """A variant to be trained, and the words shown meanwhile.

    Attributes:
        does: what it does, in half a sentence.
        takes: how long about, on the sample data and two cores.
    """

    variant: Variant
    does: str
    takes: str


STEPS = (
    Step("basic", "trains on structure and seed links", "about a minute"),
    Step("semi", "adds confident predictions as training pairs, in rounds", "a few minutes"),
    Step("literal", "adds names and values to the semi run", "about a minute"),
)


def missing_steps(store: RunStore, folder: Path) -> tuple[Step, ...]:
    """What is to be trained before there is a run of each variant; nothing where other data has runs, or has begun one.

    Args:
        store: where runs are kept.
        folder: the sample data set.
    """
    sample = safe_name(folder)
    summaries = store.list()
    if any(summary.dataset != sample for summary in summaries):
        return ()
    finished = {summary.variant for summary in summaries if summary.state == "finished"}
    return tuple(step for step in STEPS if step.variant not in finished)
