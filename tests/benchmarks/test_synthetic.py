"""Synthetic pairs: the same seed, the same pair; shaped like real data; read back as they were written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import synthetic
from benchmarks.synthetic import LIKE, Pair, Triples, as_task, generate, shape_like, write_pair
from engine.data import AlignmentTask, KnowledgeGraph, load_task
from engine.errors import ConfigError

SIZE = 3_000


@pytest.fixture(scope="module")
def pair() -> Pair:
    return generate(shape_like("dbp-wd", SIZE), seed=1)


def degrees(triples: Triples, entities: int) -> np.ndarray:
    return np.sort(np.bincount(np.concatenate([triples.heads, triples.tails]), minlength=entities))[::-1]


def ends(triples: Triples) -> set[tuple[int, int]]:
    return set(zip(triples.heads.tolist(), triples.tails.tolist(), strict=True))


def test_a_seed_gives_one_pair(pair: Pair) -> None:
    again, other = (generate(shape_like("dbp-wd", SIZE), seed=seed) for seed in (1, 2))
    for one, two in ((pair.source, again.source), (pair.target, again.target)):
        assert (one.table() == two.table()).all()
    assert (pair.counterparts == again.counterparts).all()
    assert (pair.seeds == again.seeds).all()
    assert ends(pair.source) != ends(other.source)


@pytest.mark.parametrize("like", LIKE)
def test_size_and_density_are_those_of_the_model(like: str) -> None:
    shape = shape_like(like, SIZE)
    drawn = generate(shape)
    for triples, wanted, used, relations in zip((drawn.source, drawn.target), shape.triples, drawn.relations, shape.relations, strict=True):
        assert len(triples) == wanted
        assert relations * 0.9 <= used <= relations
        assert len(np.unique(triples.table(), axis=0)) == wanted
        assert (np.unique(triples.relations) == np.arange(used)).all()
        assert degrees(triples, SIZE).min() >= 1


def test_degrees_are_as_uneven_as_in_the_data(pair: Pair) -> None:
    """DBP15K ZH-EN at this density: median 7, 90th percentile 18, 99th 63, a hundredth of the entities with .13 of all ends."""
    for triples in (pair.source, pair.target):
        found = degrees(triples, SIZE)
        assert 5 <= np.median(found) <= 8
        assert 14 <= np.quantile(found, 0.9) <= 22
        assert 40 <= np.quantile(found, 0.99) <= 80
        assert 0.08 <= found[: SIZE // 100].sum() / found.sum() <= 0.2
        assert found[0] > 25 * np.median(found)
        as_head = np.bincount(triples.heads, minlength=SIZE)
        assert as_head.max() < found[0] / 3, "hubs are hubs as tails"
        assert 0.6 <= (as_head > 0).mean() <= 0.9


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_the_share_of_common_triples(shared: float) -> None:
    drawn = generate(shape_like("dbp-wd", SIZE, shared))
    theirs = {(int(drawn.counterparts[head]), int(drawn.counterparts[tail])) for head, tail in ends(drawn.source)}
    common = np.mean([one in theirs for one in ends(drawn.target)])
    assert common == pytest.approx(shared, abs=0.05)


def test_relations_are_merged_and_renamed(pair: Pair) -> None:
    """Every source relation has one target relation that its common triples have."""
    assert pair.relations[1] < pair.relations[0]
    by_ends: dict[tuple[int, int], set[int]] = {}
    for head, relation, tail in pair.target.table().tolist():
        by_ends.setdefault((head, tail), set()).add(relation)
    common = np.argmax(np.bincount(pair.source.relations))
    rows = pair.source[np.flatnonzero(pair.source.relations == common)]
    found = [by_ends.get((int(pair.counterparts[head]), int(pair.counterparts[tail])), set()) for head, _, tail in rows.table().tolist()]
    votes = np.bincount([relation for one in found for relation in one], minlength=pair.relations[1])
    assert votes.max() > 0.6 * len(rows)


def test_links_are_one_to_one_and_a_third_are_seeds(pair: Pair) -> None:
    seeds, test = pair.links(seeds=True), pair.links(seeds=False)
    assert len(seeds) == round(0.3 * SIZE)
    both = np.concatenate([seeds, test])
    for side in (0, 1):
        assert (np.sort(both[:, side]) == np.arange(SIZE)).all()


def same_graph(one: KnowledgeGraph, two: KnowledgeGraph) -> bool:
    texts = one.name == two.name and one.entities == two.entities and one.labels == two.labels and one.relations == two.relations
    return texts and bool((one.triples == two.triples).all()) and one.triples.dtype == two.triples.dtype


def test_what_is_read_is_what_was_given_in_memory(pair: Pair, tmp_path: Path) -> None:
    write_pair(pair, tmp_path / "pair")
    read, given = load_task(tmp_path / "pair"), as_task(pair, "pair")
    assert same_graph(read.source, given.source)
    assert same_graph(read.target, given.target)
    links = [(task.train_links, task.valid_links, task.test_links, task.unsure_links) for task in (read, given)]
    assert all(np.array_equal(one, two) for one, two in zip(*links, strict=True))

    def rest(task: AlignmentTask) -> tuple[object, ...]:
        return task.name, task.format, task.split, task.fingerprint, task.findings

    assert rest(read) == rest(given)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert synthetic.main([str(tmp_path / "out"), "--entities", "1000", "--seed", "3", "--like", "dbp-yg"]) == 0
    assert "1,000 entities a side, 4,290 and 5,026 triples" in capsys.readouterr().out
    assert load_task(tmp_path / "out").fingerprint == as_task(generate(shape_like("dbp-yg", 1000), 3)).fingerprint


@pytest.mark.parametrize(("words", "said"), [(["--entities", "10"], "1,000 to"), (["--shared", "1.5"], "between 0 and 1")])
def test_what_cannot_be_drawn_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert synthetic.main([str(tmp_path), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert synthetic.main([str(tmp_path / "file"), "--entities", "1000"]) == 2
    assert "cannot be written there" in capsys.readouterr().err


def test_names_of_models_are_checked() -> None:
    with pytest.raises(ConfigError, match="known are dbp-wd, dbp-yg"):
        shape_like("dbp-xx", SIZE)
