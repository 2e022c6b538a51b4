"""What must not change, or must change in one way only, when the same knowledge is written down differently.

Rows in another order and repeated triples are the same data: the run has the same id and the same bits. Other identifiers, exchanged graphs and
an unconnected part draw other initial weights, so the accuracy must agree within what seeds differ by. Scores that say nothing give chance.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import engine
from engine.api import OpenRun
from engine.decoding import DECODERS, find_candidates, get_decoder
from engine.decoding.base import NONE
from engine.evaluation.metrics import evaluate_links
from engine.search import StructuralSimilarity, csls_topk
from tests.small_europe import write_small_europe

SETTINGS = {"encoder.dim": 24, "encoder.proxies": 8, "training.epochs": 25, "training.threads": 1, "training.precision": "float32"}
SEMI = {"semi.rounds": 1, "semi.round_epochs": 5}
NOISE = 0.08
"""What Hits@1 of other initial weights differs by at most here; ten seeds spread over .05."""
ROW_FILES = ("rel_triples_1", "rel_triples_2", "attr_triples_1", "attr_triples_2", "ent_links")
FOLD = Path("721_5fold") / "1"

Change = Callable[[Path], None]


def rows_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def write_rows(path: Path, rows: list[str]) -> None:
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def link_files(folder: Path) -> list[Path]:
    return [folder / "ent_links", *sorted((folder / FOLD).iterdir())]


def shuffle_rows(folder: Path) -> None:
    for path in (*(folder / name for name in ROW_FILES), *link_files(folder)):
        rows = rows_of(path)
        random.Random(7).shuffle(rows)
        write_rows(path, rows)


def repeat_triples(folder: Path) -> None:
    for graph in "12":
        path = folder / f"rel_triples_{graph}"
        rows = rows_of(path)
        write_rows(path, [*rows, *rows[::3]])


def rename(folder: Path) -> None:
    """Other identifiers, whose order is another one."""
    for side, graph in enumerate("12"):
        triples = [row.split("\t") for row in rows_of(folder / f"rel_triples_{graph}")]
        attributes = [row.split("\t") for row in rows_of(folder / f"attr_triples_{graph}")]
        known = sorted({end for row in triples for end in (row[0], row[2])} | {row[0] for row in attributes})
        numbers = list(range(len(known)))
        random.Random(side).shuffle(numbers)
        name = {old: f"urn:entity:{graph}:{number:05d}" for old, number in zip(known, numbers, strict=True)}
        write_rows(folder / f"rel_triples_{graph}", ["\t".join([name[head], relation, name[tail]]) for head, relation, tail in triples])
        write_rows(folder / f"attr_triples_{graph}", ["\t".join([name[row[0]], *row[1:]]) for row in attributes])
        for path in link_files(folder):
            links = [row.split("\t") for row in rows_of(path)]
            for link in links:
                link[side] = name.get(link[side], link[side])
            write_rows(path, ["\t".join(link) for link in links])


def exchange(folder: Path) -> None:
    """The source becomes the target."""
    for kind in ("rel", "attr"):
        first, second = folder / f"{kind}_triples_1", folder / f"{kind}_triples_2"
        one, other = rows_of(first), rows_of(second)
        write_rows(first, other)
        write_rows(second, one)
    for path in link_files(folder):
        write_rows(path, ["\t".join(reversed(row.split("\t"))) for row in rows_of(path)])


def add_an_island(folder: Path) -> None:
    """A part in each graph that nothing else is connected to, with relations of its own."""
    for graph in "12":
        path = folder / f"rel_triples_{graph}"
        ring = [f"urn:island:{graph}:{number:02d}\tislandRoute{graph}\turn:island:{graph}:{(number + 1) % 12:02d}" for number in range(12)]
        write_rows(path, [*rows_of(path), *ring])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("metamorphic")


@pytest.fixture(scope="module")
def plain(folder: Path) -> Path:
    return write_small_europe(folder / "plain")


def trained(data: Path, variant: Any, models: Path) -> OpenRun:
    settings = SETTINGS | (SEMI if variant == "semi" else {})
    return engine.train(data, variant, models=models, settings=settings, progress=False)


@pytest.fixture(scope="module", params=["basic", pytest.param("semi", marks=pytest.mark.slow)])
def original(request: pytest.FixtureRequest, plain: Path, folder: Path) -> OpenRun:
    return trained(plain, request.param, folder / "models")


def changed(original: OpenRun, plain: Path, folder: Path, change: Change) -> OpenRun:
    variant = original.run.manifest["variant"]
    name = f"{change.__name__}-{variant}"
    data = folder / "changed" / name / plain.name
    shutil.copytree(plain, data)
    change(data)
    return trained(data, variant, folder / name)


def hits(run: OpenRun) -> dict[str, float]:
    metrics = run.run.metrics
    assert metrics is not None
    return {side: metrics[side]["hits@1"] for side in ("source_to_target", "target_to_source")}


@pytest.mark.parametrize("change", [shuffle_rows, repeat_triples], ids=lambda change: change.__name__)
def test_the_same_data_give_the_same_run(original: OpenRun, plain: Path, folder: Path, change: Change) -> None:
    again = changed(original, plain, folder, change)
    assert again.run.manifest["run_id"] == original.run.manifest["run_id"]
    assert again.run.manifest["data"]["fingerprint"] == original.run.manifest["data"]["fingerprint"]
    for side in ("source", "target"):
        assert np.array_equal(again.run.tensor("embeddings", side), original.run.tensor("embeddings", side))
    assert again.run.metrics == original.run.metrics


@pytest.mark.parametrize("change", [rename, add_an_island], ids=lambda change: change.__name__)
def test_other_names_and_an_island_change_no_more_than_a_seed_does(original: OpenRun, plain: Path, folder: Path, change: Change) -> None:
    again = changed(original, plain, folder, change)
    assert again.run.manifest["data"]["fingerprint"] != original.run.manifest["data"]["fingerprint"]
    for side, before in hits(original).items():
        assert before > 0.15, "something was learned that can change"
        assert hits(again)[side] == pytest.approx(before, abs=NOISE)


def test_exchanged_graphs_mirror_the_figures(original: OpenRun, plain: Path, folder: Path) -> None:
    before, after = hits(original), hits(changed(original, plain, folder, exchange))
    assert after["source_to_target"] == pytest.approx(before["target_to_source"], abs=NOISE)
    assert after["target_to_source"] == pytest.approx(before["source_to_target"], abs=NOISE)


# Scores that say nothing


def constant(rows: int, width: int = 8) -> torch.Tensor:
    return torch.ones(rows, width) / width**0.5


@pytest.mark.parametrize("index", ["exact", "faiss"])
def test_constant_embeddings_are_evaluated_as_chance(index: str) -> None:
    """The links lie on the diagonal, where a search that takes the first of equals would find every one of them."""
    count = 200
    links = np.stack([np.arange(count)] * 2, axis=1)
    found = evaluate_links(constant(count), constant(count), links, bootstrap=0, index=index)
    for direction in (found.source_to_target, found.target_to_source):
        assert direction.hits_at_1 <= 2 / count
        assert direction.mrr < 0.05


@pytest.mark.parametrize("groups", [1, 4])
def test_ties_within_groups_are_worth_what_a_draw_is(groups: int) -> None:
    """Within a group, entities are equal and nothing distinguishes them."""
    count = 200
    embeddings = torch.eye(8)[torch.arange(count) % groups]
    found = evaluate_links(embeddings, embeddings.clone(), np.stack([np.arange(count)] * 2, axis=1), bootstrap=0)
    assert found.target_to_source.hits_at_1 <= 2 * groups / count


@pytest.mark.parametrize("name", sorted(DECODERS))
def test_no_decoder_finds_links_among_equal_scores(name: str) -> None:
    count = 60
    order = np.random.default_rng(3).permutation(count)
    candidates = find_candidates(StructuralSimilarity(constant(count), constant(count)), top=count)
    answers = get_decoder(name).decode(candidates).predicted("source")
    right = (answers == order) & (answers != NONE)
    assert right.mean() < 0.2, "links drawn at random are found by chance alone"


def test_a_search_among_equals_returns_no_number_that_is_not_one() -> None:
    found = csls_topk(StructuralSimilarity(constant(30), constant(20)), 10, 5)
    for part in (found.source_to_target, found.target_to_source):
        assert torch.isfinite(part.csls).all()
