"""The whole of it: every kind of model and data, the same result twice, through a run folder, and documented."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from engine.analysis import TABLES, TENSORS, Analysis, analyse
from engine.analysis.run_tables import APART, hubness_tensors, match_table, run_tables, start_table
from engine.analysis.schema import OPTIONAL, frame
from engine.config import RunConfig
from engine.data import load_task
from engine.data.knowledge_graph import AlignmentTask
from engine.data.versions import Renaming
from engine.evaluation.assessment import empty_probabilities, query_rank_table
from engine.evaluation.metrics import evaluate_links
from engine.names import all_names
from engine.names.value_similarity import value_evidence
from engine.names.weight import DENSE_KEYS, SPARSE_KEYS
from engine.reviews import Snapshot
from engine.runs import RunStore
from engine.search import CslsTopK, csls_topk, normalise_rows
from engine.training.semi import no_selection
from engine.training.trainer import Trainer, split_embeddings
from tests.analysis.worlds import World, random_graph, random_matches, random_model, random_task, random_world
from tests.conftest import ROOT

MODEL_TABLES = {"relation_importance", "relation_twins", "proxy_top", "pair_divergence"}
VARIATIONS: dict[str, tuple[dict[str, object], set[str]]] = {
    "everything": ({}, set()),
    "edge units": ({"message_unit": "edge"}, set()),
    "no attention": ({"relational_attention": False}, {"relation_importance"}),
    "no projection": ({"relational_projection": False}, set()),
    "no proxies": ({"proxy_matching": False}, {"proxy_top", "pair_divergence"}),
    "no multi-hop": ({"multi_hop": False}, set()),
    "no layers": ({"layers": 0}, {"relation_importance"}),
    "entity channel": ({"channels": "entity"}, set()),
    "relation channel": ({"channels": "relation"}, set()),
    "relations unused": ({"channels": "entity", "layers": 0, "proxy_matching": False}, MODEL_TABLES),
}


def analysed(world: World) -> Analysis:
    return analyse(world.task, world.model, world.evaluation, world.matches)


@pytest.mark.parametrize("name", VARIATIONS)
def test_every_model_is_analysed(name: str) -> None:
    options, empty = VARIATIONS[name]
    world = random_world(1, **options)
    analysis = analysed(world)
    assert set(analysis.tables) == set(TABLES)
    for table, rows in analysis.tables.items():
        assert {column: str(dtype) for column, dtype in rows.dtypes.items()} == dict(TABLES[table])
        if table != "correspondences":  # random graphs hardly have any
            assert (len(rows) == 0) == (table in empty)
    channels = [] if "proxy_top" in empty else list(world.model.channels)
    assert set(analysis.tensors) == {f"{side}_{channel}" for channel in channels for side in ("source", "target")}
    for table in MODEL_TABLES - empty - {"relation_twins"}:
        assert set(analysis.tables[table]["channel"]) == set(world.model.channels)


def test_the_same_input_gives_the_same_tables() -> None:
    first, again = (analysed(random_world(7)) for _ in range(2))
    for name, table in first.tables.items():
        pd.testing.assert_frame_equal(table, again.tables[name], check_exact=True)
    assert all(torch.equal(tensor.whole(), again.tensors[name].whole()) for name, tensor in first.tensors.items())


def test_without_test_links_only_rates_are_missing() -> None:
    tables = analysed(random_world(3, links=False)).tables
    assert (tables["degree"]["queries"] == 0).all()
    assert tables["degree"]["mrr"].isna().all()
    assert tables["degree"]["entities"].sum() == 14 + 17
    assert not len(tables["relation_hits"])
    assert all(len(tables[name]) for name in MODEL_TABLES)


@pytest.mark.parametrize(("sizes", "relations", "triples"), [((1, 1), (1, 1), 0), ((2, 1), (1, 1), 3), ((5, 4), (0, 2), 9), ((3, 3), (0, 0), 0)])
def test_the_smallest_graphs(sizes: tuple[int, int], relations: tuple[int, int], triples: int) -> None:
    rng = np.random.default_rng(0)
    task = random_task(rng, sizes, relations, triples)
    source, target = (torch.randn(size, 3) for size in sizes)
    evaluation = evaluate_links(source, target, task.test_links, bootstrap=0)
    for options in ({}, {"message_unit": "edge"}):
        tables = analyse(task, random_model(task, **options), evaluation, random_matches(rng, *sizes)).tables
        assert tables["degree"]["entities"].sum() == sum(sizes)
        assert len(tables["hubness_counts"]) == sum(sizes)
        occurring = sum(len(np.unique(graph.triples[:, 1])) for graph in (task.source, task.target))
        assert len(tables["relation_importance"]) == 2 * 2 * 2 * occurring


def test_relations_without_triples_are_left_out() -> None:
    rng = np.random.default_rng(0)
    task = random_task(rng)
    padded = random_graph(rng, "a", 14, 60, 20)  # at least 40 relations without a triple
    task = AlignmentTask("drawn", "drawn", padded, task.target, *task.all_links(), split="", fingerprint="0" * 64)
    world = random_world()
    tables = analyse(task, random_model(task), world.evaluation, world.matches).tables
    used = set(np.unique(padded.triples[:, 1]).tolist())
    for name in ("relation_importance", "relation_twins", "relation_hits"):
        rows = tables[name][tables[name]["graph"] == "source"]
        assert set(rows["relation"]) <= used
    assert set(tables["relation_twins"].query("graph == 'target'")["twin"]) <= used


def test_a_frame_must_fit_its_schema() -> None:
    with pytest.raises(ValueError, match=r"lacks .*entity"):
        frame("proxy_top", {"channel": [], "graph": [], "proxy": [], "rank": [], "similarity": []})
    with pytest.raises(ValueError, match=r"unknown .*colour"):
        frame("hubness_counts", {"graph": [], "entity": [], "n_1": [], "colour": []})


@pytest.fixture(scope="module")
def europe() -> tuple[AlignmentTask, Trainer, CslsTopK, Analysis]:
    task = load_task(ROOT / "sample_data" / "europe")
    trainer = Trainer(task, RunConfig().with_values({"encoder.dim": 24, "encoder.proxies": 16, "training.epochs": 15}))
    trainer.train()
    source, target = (normalise_rows(part) for part in split_embeddings(trainer.embed(), task.source.num_entities))
    found = csls_topk(source, target, 10, 10)
    evaluation = evaluate_links(source, target, task.test_links, bootstrap=0)
    return task, trainer, found, analyse(task, trainer.model, evaluation, match_table(found))


def test_a_trained_run_shows_what_it_should(europe: tuple[AlignmentTask, Trainer, CslsTopK, Analysis]) -> None:
    task, _, _, analysis = europe
    degree = analysis.tables["degree"]
    assert degree.groupby("graph")["queries"].sum().to_dict() == {"source": 819, "target": 819}
    twins = analysis.tables["relation_twins"].query("graph == 'source' and rank == 1").set_index("relation")
    names = {task.source.relations[relation]: (task.target.relations[row["twin"]], row["turned"]) for relation, row in twins.iterrows()}
    pair = next(name for name in names if name.endswith("inCountry")), next(name for name in task.target.relations if name.endswith("liegtIn"))
    assert names[pair[0]] == (pair[1], False)
    divergence = analysis.tables["pair_divergence"].query("channel == 'entity'").groupby("role")["divergence"].mean()
    assert divergence["train"] < divergence[""]  # what was trained to agree does


def test_a_run_folder_holds_them(europe: tuple[AlignmentTask, Trainer, CslsTopK, Analysis], tmp_path: Path) -> None:
    analysis = europe[-1]
    with RunStore(tmp_path).create("europe", "run") as writer:
        for name, table in analysis.tables.items():
            writer.write_table(name, table)
        writer.write_tensors(TENSORS, analysis.tensors)
        run = writer.finish({"variant": "basic", "status": "finished", "created": "2026-11-01T12:00:00+00:00"})
    for name, table in analysis.tables.items():
        pd.testing.assert_frame_equal(run.table(name), table)
    for name, tensor in analysis.tensors.items():
        np.testing.assert_array_equal(run.tensor(TENSORS, name), tensor.whole().numpy())


def documented(heading: str) -> list[str]:
    """First cells of the table below a heading of docs/run_tables.md."""
    text = (ROOT / "docs" / "run_tables.md").read_text(encoding="utf-8")
    section = re.split(r"^#{2,3} ", text.split(f"\n{heading}\n")[1], flags=re.M)[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.M)


def test_the_document_names_every_column(europe: tuple[AlignmentTask, Trainer, CslsTopK, Analysis]) -> None:
    task, _, found, analysis = europe
    tables = run_tables(task, found) | {"query_ranks": query_rank_table({}), "probabilities": empty_probabilities()} | dict(analysis.tables)
    tables["reviews"] = Snapshot("", ()).table()
    tables["start"] = start_table(no_selection())
    tables["renamed"] = Renaming({}).table()
    tables[APART] = task.apart
    values = value_evidence(task, task.train_links)
    tables |= {"value_attributes": values.attributes, "value_features": values.features}
    tables["names"] = all_names(task.source, task.source.labels).table("source")
    columns = {name: table.columns.tolist() for name, table in tables.items()}
    text = (ROOT / "docs" / "run_tables.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### `(\w+)`$", text, re.M)) == set(columns)
    for name, expected in columns.items():
        assert documented(f"### `{name}`") == expected
    assert all(set(extra) <= set(columns[name]) for name, extra in OPTIONAL.items())


def test_the_document_names_every_tensor(europe: tuple[AlignmentTask, Trainer, CslsTopK, Analysis]) -> None:
    task, _, found, analysis = europe
    text = (ROOT / "docs" / "run_tables.md").read_text(encoding="utf-8").split("\n## Tensors\n")[1]
    named: dict[str, set[str]] = {}
    for file, names in re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, re.M):
        named.setdefault(file, set()).update(re.findall(r"`([\w.]+)`", names))
    none = evaluate_links(torch.ones(2, 2), torch.ones(2, 2), task.test_links[:0], bootstrap=0)
    hubness = hubness_tensors(found, none, task.source.num_entities, task.target.num_entities)
    assert named == {
        "embeddings": {"source", "target"},
        "hubness": set(hubness),
        "model": set(),
        "names": {*DENSE_KEYS, *SPARSE_KEYS},
        "values": set(SPARSE_KEYS),
        TENSORS: set(analysis.tensors),
    }
