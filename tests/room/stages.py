"""What the engine does with a disk, stage by stage: an action, and what there is before and after it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.cli.main import USER_ERROR, main
from engine.config import RunConfig
from engine.data import load_task
from engine.errors import EngineError
from engine.importing.source import Corrections
from engine.importing.staging import Upload, correct, stage
from engine.jobs import JobQueue, plan_training, summarise
from engine.jobs.trainer import work
from engine.reviews import Choice, ReviewStore
from engine.runs import RunStore
from engine.util.paths import reviews_file
from tests.data.writers import Sample, small_sample, write_csv, write_openea
from tests.jobs.conftest import SETTINGS

OPTIONS: Final = tuple(word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}"))
AUTHOR: Final = "Ann"


class RefusedError(Exception):
    """The command ended with code 2 and one sentence, which is the message."""


def command(*words: str, warns: bool = False) -> None:
    """The command in this process.

    Args:
        warns: whether a warning counts as a refusal: what is left out is named, and the result is another one.

    Raises:
        RefusedError: it ended with code 2.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(words))
    if code == USER_ERROR:
        raise RefusedError(err.getvalue())
    assert code == 0, (code, err.getvalue())
    if warns and err.getvalue().startswith("warning: "):
        (Path(words[words.index("--output") + 1])).unlink()
        raise RefusedError(err.getvalue())


@dataclass(frozen=True)
class Place:
    """Folders of a stage: data sets to read, models, imported data and outputs."""

    root: Path

    @property
    def rings(self) -> Path:
        return self.root / "in" / "rings"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def run(self) -> str:
        """The one that was prepared; its folder's name alone is looked at."""
        return next(f"rings/{name}" for name in sorted(os.listdir(self.models / "rings")) if name.startswith("basic-s0-"))

    def prepare(self) -> None:
        """Two data sets, a run, a decision and an imported data set."""
        sample = small_sample()
        write_openea(self.rings, sample)
        more = (("http://left.org/Wien", "http://left.org/near", "http://left.org/Graz"),)
        write_openea(self.root / "in" / "rings2", Sample(sample.source + more, sample.target, sample.links, sample.train))
        write_csv(self.root / "in" / "csv", sample)
        self.out.mkdir()
        command("train", str(self.rings), "--models", str(self.models), *OPTIONS)
        decide(self, 2, "earlier")
        command("import", str(self.root / "in" / "csv"), "--name", "before")


Meaning = Any


@dataclass(frozen=True)
class Stage:
    """An action and what it changes.

    Attributes:
        act: raises :class:`EngineError` or :class:`RefusedError` where it cannot be done.
        meaning: what there is, as far as the action changes it: compared before, after, and after a fault.
        again: whether the action can be repeated once it is done.
    """

    name: str
    act: Callable[[Place], object]
    meaning: Callable[[Place], Meaning]
    again: bool = True


def decide(place: Place, link: int, token: str) -> None:
    """Accept the pair of a link."""
    task = load_task(place.rings)
    source, target = task.test_links[link - 2]
    with contextlib.closing(ReviewStore(reviews_file(place.models))) as store:
        store.decide(task.fingerprint, Choice(task.source.entities[source], task.target.entities[target], "accept"), AUTHOR, token)


def decisions(place: Place) -> Meaning:
    with contextlib.closing(ReviewStore(reviews_file(place.models))) as store:
        return [(one.choice.pair, one.author) for one in store.history(load_task(place.rings).fingerprint)]


def finished_runs(place: Place) -> Meaning:
    """By id: the checksum of each run's numbers; all files of each are compared with their checksums."""
    found = {}
    store = RunStore(place.models)
    for one in store.list():
        assert one.state != "broken", one.reason
        if one.state == "finished":
            run = store.find(one.id)
            run.verify()
            found[one.id] = hashlib.sha256(run.tensor("embeddings", "source").tobytes()).hexdigest()
    return found


def literal_runs(place: Place) -> Meaning:
    """Without the semi-supervised run below, which may be whole before."""
    return {run: numbers for run, numbers in finished_runs(place).items() if "/literal-" in run}


def outputs(place: Place) -> Meaning:
    return {path.relative_to(place.out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in seen(place.out)}


def reports(place: Place) -> Meaning:
    """Without the time that the report was made at."""
    times = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?")
    return {path.name: hashlib.sha256(times.sub(b"", path.read_bytes())).hexdigest() for path in seen(place.out)}


def archives(place: Place) -> Meaning:
    """Names within."""
    found = {}
    for path in seen(place.out):
        with tarfile.open(path) as archive:
            found[path.name] = sorted(one.name for one in archive.getmembers())
    return found


def data_sets(place: Place) -> Meaning:
    parent = place.root / "data"
    folders = sorted(path for path in parent.iterdir() if not path.name.startswith(".")) if parent.is_dir() else []
    return {folder.name: load_task(folder).fingerprint for folder in folders}


def jobs(place: Place) -> Meaning:
    return [(job.name, job.state) for job in JobQueue(place.models).jobs()]


def seen(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts))


def train(*more: str) -> Callable[[Place], None]:
    return lambda place: command("train", str(place.rings), "--models", str(place.models), *OPTIONS, *more)


def update(place: Place) -> None:
    command("update", place.run, str(place.root / "in" / "rings2"), "--models", str(place.models))


def export(fmt: str) -> Callable[[Place], None]:
    def act(place: Place) -> None:
        command("export", place.run, "--format", fmt, "--output", str(place.out / f"links.{fmt}"), "--models", str(place.models), "--force")

    return act


def merged_and_split(place: Place) -> None:
    merged = place.root / "in" / "merged.parquet"
    if not merged.exists():
        command("export", place.run, "--format", "merged-parquet", "--output", str(merged), "--models", str(place.models))
    command("split", str(merged), "--out", str(place.out), "--force")


def report(place: Place) -> None:
    command("report", place.run, "--output", str(place.out / "report.html"), "--models", str(place.models), "--force")


def backup(place: Place) -> None:
    command("backup", "--output", str(place.out / "all.tar.gz"), "--models", str(place.models), "--force", warns=True)


def relations(place: Place) -> None:
    words = ("--output", str(place.out / "relations.sssom.tsv"), "--force", "--least", "0.1")
    command("relations", place.run, *words, "--models", str(place.models))


def import_files(place: Place) -> None:
    command("import", str(place.root / "in" / "csv"), "--name", "mine")


def upload(place: Place) -> None:
    """As the page does: files are brought, something is corrected."""
    folder = place.root / "in" / "csv"
    try:
        brought = [Upload(path.name, io.BytesIO(path.read_bytes())) for path in sorted(folder.iterdir())]
    except OSError as error:  # before anything of ours
        raise RefusedError("error: the browser cannot read the file.") from error
    correct(stage(brought), Corrections(swap_links=True))


def uploads(place: Place) -> Meaning:
    """Folders of uploads; each has its list of files, and all of these."""
    return len(list((place.root / "data").glob(".staging-*")))


def submit(place: Place) -> None:
    config = RunConfig.from_dict({"seed": 7}).with_values(SETTINGS)
    JobQueue(place.models).submit(plan_training(summarise(place.rings, config.data, 7), config, place.models))


def trainer(place: Place) -> None:
    """The worker takes a job; what it cannot report itself is seen by the next who looks."""
    ended = [job for job in JobQueue(place.models).jobs() if job.resumable]
    for job in ended:
        JobQueue(place.models).resume(job.id)
    if not ended:
        submit(place)
    work(place.models, successor=lambda models: None)
    job = JobQueue(place.models).jobs()[0]
    if job.state in ("failed", "lost"):
        raise RefusedError(f"error: {job.message}\n")


def delete(place: Place) -> None:
    command("runs", "delete", place.run, "--yes", "--models", str(place.models))


STAGES: Final = (
    Stage("train", train("--seed", "1"), finished_runs),
    Stage("train semi", train("--variant", "semi"), finished_runs),
    Stage("train literal", train("--variant", "literal", "--set", "literal.weight=0.5"), literal_runs),
    Stage("update", update, finished_runs, again=False),
    *(Stage(f"export {fmt}", export(fmt), outputs) for fmt in ("csv", "parquet", "sssom", "ntriples", "merged")),
    Stage("split", merged_and_split, outputs),
    Stage("report", report, reports),
    Stage("relations", relations, outputs),
    Stage("backup", backup, archives),
    Stage("import", import_files, data_sets, again=False),
    Stage("upload", upload, uploads, again=False),
    Stage("decide", lambda place: decide(place, 3, "click"), decisions),
    Stage("queue", submit, jobs),
    Stage("worker", trainer, finished_runs, again=False),  # a job that could not be reported as finished is, once it is resumed
    Stage("delete", delete, finished_runs, again=False),
)
BY_NAME: Final = {stage.name: stage for stage in STAGES}


def fresh(base: Path, place: Path) -> Place:
    """A copy of prepared folders, which the environment points at."""
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(base, place, symlinks=True)
    os.environ["DUAL_AMN_MODELS"], os.environ["DUAL_AMN_DATA"] = str(place / "models"), str(place / "data")
    return Place(place)


def sentence_of(error: EngineError | RefusedError) -> str:
    """The last line that was printed, or the message."""
    text = str(error)
    return text.rstrip("\n").split("\n")[-1] if isinstance(error, RefusedError) else text
