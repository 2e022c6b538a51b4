"""``python -m engine export`` as users see it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.data.links import read_links
from engine.exporting import FORMATS, split_merged
from engine.reviews import ReviewStore
from engine.runs import RunStore
from engine.util.paths import reviews_file
from tests.explore.test_review_queue import queue_of
from tests.run_fixture import sample_run, write_run


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_run(sample_run(), folder)
    return folder


def export(models: Path, *words: str) -> int:
    return main(["export", "towns/basic-s0-0123abcd", "--models", str(models), *words])


@pytest.mark.parametrize("fmt", FORMATS)
def test_each_format_under_its_own_name(
    models: Path, fmt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert export(models, "--format", fmt, "--decoder", "mutual", "--json") == 0
    message = json.loads(capsys.readouterr().out.splitlines()[-1])
    (path,) = tmp_path.iterdir()
    assert message["file"] == path.name == f"{FORMATS[fmt].stem}-towns-basic-s0-0123abcd{FORMATS[fmt].suffix}"
    if FORMATS[fmt].stem == "links":
        assert len(read_links(path).sources) == message["pairs"] > 20
    else:
        assert split_merged(path, tmp_path / "out")["links.parquet"] == message["pairs"] > 20
    assert message["judged"] >= message["right"] > 0


def test_a_file_that_is_there_stays_unless_it_may_go(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("precious", encoding="utf-8")
    assert export(models, "--output", str(path)) == 2
    assert "already exists" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "precious"
    assert export(models, "--output", str(path), "--force", "--without-seeds") == 0
    assert "seed" not in capsys.readouterr().out
    assert len(read_links(path).sources) == 52


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--reviewed"], "reviewers have not accepted any pair of towns"),
        (["--min-probability", "0.5"], "has no calibrated probabilities"),
        (["--min-probability", "7"], "between 0 and 1"),
        (["--min-probability", "suggested"], "no threshold can be suggested; export without a minimum probability. This run has no probabilities."),
        (["--format", "csv", "--predicate", "owl:sameAs"], "has no predicate"),
        (["--format", "xlsx"], "invalid choice"),
        (["--output", "."], "is a folder"),
        (["--output", "no/such/place.csv"], "does not exist"),
    ],
)
def test_mistakes_are_reported_in_one_line(
    models: Path, words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = export(models, *words)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    assert code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_reviewed_sample_is_printed_where_it_was_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models, path = tmp_path / "models", tmp_path / "out.csv"
    write_run(sample_run(), models)
    queue = queue_of(RunStore(models).find("towns/basic-s0-0123abcd"))
    order = queue.order("sample").tolist()
    with closing(ReviewStore(reviews_file(models))) as store:
        store.decide(queue.fingerprint, queue.choice(order[1], "accept"), "Ann", "1")
        assert export(models, "--output", str(path)) == 0
        assert "reviewed sample" not in capsys.readouterr().out, "the first pair drawn is not decided yet"
        store.decide(queue.fingerprint, queue.choice(order[0], "accept"), "Ann", "2")
    assert export(models, "--output", str(path), "--force") == 0
    assert "reviewed sample of the best matches: Of the first 2 pairs of the random sample, 2 were accepted and 0 rejected" in capsys.readouterr().out
    assert export(models, "--output", str(path), "--force", "--json") == 0
    drawn = json.loads(capsys.readouterr().out.splitlines()[-1])["reviewed_sample"]
    assert (drawn["drawn"], drawn["right"], drawn["population"]) == (2, 2, len(order))
