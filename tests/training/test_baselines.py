"""The baselines: their equations against plain loops over single triples, and their runs as users see them."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engine.cli.main import main
from engine.config import BASELINE_METHODS, SECTIONS, RunConfig
from engine.data import AlignmentTask
from engine.errors import ConfigError, EngineError, StoppedError, TrainingError
from engine.model.adjacency import build_adjacency
from engine.runs import Run, RunStore
from engine.training.baselines import BASELINES, Fit, Session, gcn_align, measured
from engine.training.baselines.gcn_align import LEAST_WEIGHT, Convolution, drawn_negatives, margin_loss, normalised_adjacency
from engine.training.baselines.lightea import HOPS, directions, link_labels, project_hops, propagated, triple_labels
from engine.training.baselines.mtranse import drawn_ends, mapping_loss, translation_loss
from engine.training.baselines.paris import matched_directions
from engine.training.optimiser import Momentum
from engine.training.start import why_not_trained
from tests.analysis.worlds import random_task

EUROPE = Path(__file__).resolve().parents[2] / "sample_data" / "europe"
SEEDS = range(3)


def drawn(seed: int) -> AlignmentTask:
    return random_task(np.random.default_rng(seed))


def settings(method: str, **values: object) -> RunConfig:
    return RunConfig().with_values({"baseline.method": method, "training.checkpoint_seconds": 0.0, **values})


def unit(vector: np.ndarray) -> np.ndarray:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def test_the_setting_offers_what_is_registered() -> None:
    assert set(BASELINES) == set(BASELINE_METHODS)
    assert "baseline" in SECTIONS
    for method in BASELINES.values():
        effort = method.effort(1000, 5000, 20, settings(method.name))
        assert effort.epochs >= 1
        assert min(effort.operations, effort.numbers, effort.width) > 0


# The equations


@pytest.mark.parametrize("seed", SEEDS)
def test_labels_are_propagated_triple_by_triple(seed: int) -> None:
    task = drawn(seed)
    triples, count, kinds = np.unique(task.stacked_triples(), axis=0), task.num_entities, 2 * task.num_relations
    graph = build_adjacency(task.stacked_triples(), count, task.num_relations)
    labels = link_labels(task.stacked_links(task.train_links), count, 6, torch.Generator().manual_seed(seed))
    both = [*((h, r, t) for h, r, t in triples.tolist()), *((t, r + task.num_relations, h) for h, r, t in triples.tolist())]
    entities, relations = labels.numpy().astype(float), np.zeros((kinds, 6))
    expected = [(entities, relations)]
    for _ in range(HOPS):
        heads, seen, summed = defaultdict(set), defaultdict(set), np.zeros((count, 6))
        for head, relation, tail in both:
            heads[relation].add(head)
            seen[tail].add(relation)
            summed[head] += entities[tail] + 2 * entities[head]
        for entity, own in seen.items():
            summed[entity] += sum(relations[one] for one in own)
        relations = np.array([unit(sum((entities[one] for one in heads[kind]), np.zeros(6))) for kind in range(kinds)])
        entities = np.array([unit(row) for row in summed])
        expected.append((entities, relations))
    for found, wanted in zip(propagated(graph, labels), expected, strict=True):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), other, atol=1e-5)

    heads_of_all = torch.randn(kinds, 3), torch.randn(count, 3, 2)
    tensor = np.zeros((count, 3, 2))
    for head, relation, tail in both:
        tensor[head] += heads_of_all[0][relation].numpy()[:, None] * heads_of_all[1][tail].numpy()
    np.testing.assert_allclose(triple_labels(graph, heads_of_all[1], heads_of_all[0]).numpy(), tensor, atol=1e-5)


def test_projections_keep_angles_where_they_are_as_wide_as_the_labels() -> None:
    task = drawn(5)
    graph = build_adjacency(task.stacked_triples(), task.num_entities, task.num_relations)
    labels = link_labels(task.stacked_links(task.train_links), task.num_entities, 4, torch.Generator().manual_seed(0))
    hops = list(propagated(graph, labels))
    entities, relations = project_hops(graph, labels, 4 * (HOPS + 1), Session(settings("lightea")))
    for at, projected in enumerate((entities.flatten(1), relations)):
        beside = torch.nn.functional.normalize(torch.cat([hop[at] for hop in hops], dim=1), dim=1)
        np.testing.assert_allclose(projected @ projected.T, beside @ beside.T, atol=1e-5)
    wide = directions(5, 12, torch.Generator().manual_seed(1))
    assert wide.shape == (5, 12)
    np.testing.assert_allclose(wide.norm(dim=0), 1, atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_graph_convolutions_are_those_of_a_dense_matrix(seed: int) -> None:
    task = drawn(seed)
    triples, count = task.stacked_triples(), task.num_entities
    dense = np.eye(count)
    for head, relation, tail in triples.tolist():
        own = triples[triples[:, 1] == relation]
        if head != tail:
            dense[head, tail] += max(len(set(own[:, 2].tolist())) / len(own), LEAST_WEIGHT)
            dense[tail, head] += max(len(set(own[:, 0].tolist())) / len(own), LEAST_WEIGHT)
    root = np.diag(dense.sum(1) ** -0.5)
    dense = root @ dense @ root
    rows, columns, values = normalised_adjacency(triples, count, task.num_relations)
    found = np.zeros((count, count))
    found[rows, columns] = values
    np.testing.assert_allclose(found, dense, atol=1e-6)

    features, matrix = torch.randn(count, 5, requires_grad=True), torch.from_numpy(dense).float()
    links, negatives = torch.from_numpy(task.stacked_links(task.train_links)), drawn_negatives(task, np.random.default_rng(seed))
    gradients = []
    for embeddings in (Convolution.of(task).embed(features), matrix @ torch.relu(matrix @ features)):
        features.grad = None
        margin_loss(embeddings, links, negatives, 1.0).backward()
        assert features.grad is not None
        gradients.append(features.grad.clone())
    np.testing.assert_allclose(*gradients, atol=1e-5)
    assert gradients[0].abs().max() > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_later_negatives_are_near_and_never_the_counterpart(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gcn_align, "NEAREST", 4)
    task, z = drawn(seed), torch.randn(31, 5)
    links, unit_rows, count = task.stacked_links(task.train_links), torch.nn.functional.normalize(z, dim=1), task.source.num_entities
    found = gcn_align.near_negatives(z, torch.from_numpy(links), task, np.random.default_rng(seed))
    for own, members in ((0, range(count)), (1, range(count, task.num_entities))):
        for link, chosen in zip(links.tolist(), found[own].tolist(), strict=True):
            cosines = {one: float(unit_rows[one] @ unit_rows[link[1 - own]]) for one in members if one != link[own]}
            assert set(chosen) <= set(sorted(cosines, key=lambda one: -cosines[one])[:4])


@pytest.mark.parametrize("seed", SEEDS)
def test_losses_are_means_over_single_triples_and_links(seed: int) -> None:
    task = drawn(seed)
    count = task.num_entities
    z, links, (sources, targets) = torch.randn(count, 4), task.stacked_links(task.train_links), drawn_negatives(task, np.random.default_rng(seed))
    assert int(sources.max()) < task.source.num_entities <= int(targets.min())
    terms = []
    for row, (u, v) in enumerate(links.tolist()):
        near = float((z[u] - z[v]).abs().sum())
        terms += [max(0.0, near + 1.5 - float((z[u] - z[n]).abs().sum())) for n in targets[row].tolist()]
        terms += [max(0.0, near + 1.5 - float((z[v] - z[n]).abs().sum())) for n in sources[row].tolist()]
    assert float(margin_loss(z, torch.from_numpy(links), (sources, targets), 1.5)) == pytest.approx(np.mean(terms), abs=1e-5)

    relations, mapping, triples = torch.randn(task.num_relations, 4), torch.randn(4, 4), task.stacked_triples()
    wrong, translated = drawn_ends(task, triples[:, 0], 3, np.random.default_rng(seed)), []
    for (h, r, t), drawn_for in zip(triples.tolist(), wrong.tolist(), strict=True):
        assert all((one < task.source.num_entities) == (h < task.source.num_entities) for one in drawn_for)
        right = float((z[h] + relations[r] - z[t]).norm())
        for other, tail in ((drawn_for[0], t), (drawn_for[1], t), (h, drawn_for[2])):
            translated.append(max(0.0, right + 0.5 - float((z[other] + relations[r] - z[tail]).norm())))
    assert float(translation_loss(z, relations, torch.from_numpy(triples), wrong, 0.5)) == pytest.approx(np.mean(translated), abs=1e-5)
    mapped = [float((mapping @ z[u] - z[v]).norm()) for u, v in links.tolist()]
    assert float(mapping_loss(z, mapping, torch.from_numpy(links))) == pytest.approx(np.mean(mapped), abs=1e-5)
    nothing = torch.empty((0, 3), dtype=torch.int64)
    assert float(translation_loss(z, relations, nothing, nothing[:, :1], 0.5)) == float(mapping_loss(z, mapping, nothing[:, :2])) == 0


def test_the_cosine_of_a_match_of_paris_is_its_probability() -> None:
    pairs, probabilities = np.array([[0, 5], [1, 4], [2, 7]]), np.array([1.0, 0.7, 0.2])
    vectors = matched_directions(pairs, probabilities, 9, 64, torch.Generator().manual_seed(2))
    np.testing.assert_allclose((vectors[pairs[:, 0]] * vectors[pairs[:, 1]]).sum(1), probabilities, atol=1e-5)
    assert vectors.norm(dim=1).round().tolist() == [1, 1, 1, 0, 1, 1, 0, 1, 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_hits_as_published_count_no_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, target = (torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(size, 3))).float(), dim=1) for size in (9, 8))
    target[3] = target[5]
    links = np.stack([rng.permutation(9)[:7], rng.permutation(8)[:7]], axis=1)
    found = measured(source, target, links)
    for name, side in (("source_to_target", 0), ("target_to_source", 1)):
        hits = 0
        cosines = source @ target.T if side == 0 else (source @ target.T).T
        for link in links:
            scores = {int(other[1 - side]): float(cosines[link[side], other[1 - side]]) for other in links}
            own = scores.pop(int(link[1 - side]))
            hits += all(own > one + 1e-6 for one in scores.values())
        assert found[name]["hits@1"] == pytest.approx(hits / len(links))


# The loop


class Memory:
    """Checkpoints in memory."""

    saved: tuple[dict[str, Tensor], dict[str, object]] | None = None

    def save(self, tensors: dict[str, Tensor], state: dict[str, object]) -> None:
        self.saved = {name: tensor.clone() for name, tensor in tensors.items()}, dict(state)

    def load(self) -> tuple[dict[str, Tensor], dict[str, object]] | None:
        return self.saved


@pytest.mark.parametrize("method", BASELINE_METHODS)
def test_the_same_seed_gives_the_same_bits_also_after_an_interruption(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = drawn(1)
    monkeypatch.setattr(gcn_align, "RANDOM_EPOCHS", 0)
    config = settings(method, **{"baseline.dim": 8, "baseline.width": 32, "baseline.epochs": 4})
    unbroken = BASELINES[method].embed(task, Session(config)).embeddings
    assert unbroken.shape[0] == task.num_entities
    assert torch.isfinite(unbroken).all()
    memory, done = Memory(), []

    def session(stop: Callable[[], bool]) -> Session:
        return Session(config, memory, done.append, stop)

    try:
        resumed = BASELINES[method].embed(task, session(lambda: len(done) == 2))
    except StoppedError:
        resumed = BASELINES[method].embed(task, session(lambda: False))
        assert [one.epoch for one in done] == [1, 2, 3, 4]
        assert resumed.earlier > 0
    assert torch.equal(unbroken, resumed.embeddings)
    other = BASELINES[method].embed(task, Session(RunConfig(seed=1, baseline=config.baseline))).embeddings
    assert not torch.equal(unbroken, other)


def test_a_checkpoint_of_other_settings_is_refused() -> None:
    task, memory = drawn(1), Memory()
    start = settings("gcn-align", **{"baseline.dim": 4, "baseline.epochs": 2})
    BASELINES["gcn-align"].embed(task, Session(start, memory))
    with pytest.raises(TrainingError, match="other data or settings"):
        BASELINES["gcn-align"].embed(task, Session(start.with_values({"baseline.epochs": 3}), memory))


def test_a_loss_that_is_not_finite_ends_it() -> None:
    parameter = nn.Parameter(torch.zeros(1))
    fit = Fit(Session(settings("mtranse")), drawn(0), Momentum([parameter], 0.1), 3, lambda epoch: iter([parameter.sum() / 0]))
    with pytest.raises(TrainingError, match=r"epoch 1; use a smaller baseline\.learning_rate"):
        fit.run()


# Settings and refusals


def test_what_cannot_be_is_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="the baseline paris has no variants"):
        RunConfig(variant="semi").with_values({"baseline.method": "paris"})
    without = AlignmentTask(**{**vars(drawn(0)), "train_links": np.empty((0, 2), dtype=np.int64)})
    for method in BASELINE_METHODS:
        assert why_not_trained(without, settings(method)).startswith(f"the baseline {method} needs known links")
        assert not why_not_trained(drawn(0), settings(method))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    models = tmp_path_factory.mktemp("baselines")
    assert command("train", str(EUROPE), "--baseline", "lightea", "--set", "baseline.width=256", models=models)[0] == 0
    store = RunStore(models)
    return store.find(store.list()[0].id)


def command(*words: str, models: Path) -> tuple[int, str, str]:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main([*words, "--models", str(models)])
    return code, out.getvalue(), err.getvalue()


def models_of(run: Run) -> Path:
    return run.path.parent.parent


def test_a_baseline_is_a_run_like_others(run: Run) -> None:
    assert run.run_id.startswith("lightea-s0-")
    assert run.manifest["variant"] == "lightea"
    assert run.manifest["baseline"]["protocol"] == "Hits@1 within the pool of test entities by the Sinkhorn decoder"
    hits = run.manifest["baseline"]["hits@1"]
    decoded = run.json("decoders")["sinkhorn"]
    assert hits == {side: decoded[side]["hits@1"] for side in ("source_to_target", "target_to_source")}
    assert min(hits.values()) > 0.5  # .22 by chance among the ten nearest
    assert RunConfig.from_dict(run.manifest["config"]).method == "lightea"
    assert "model.safetensors" not in run.files
    for table in ("relation_importance", "relation_twins", "proxy_top", "pair_divergence"):
        assert run.table(table).empty
    assert len(run.table("correspondences"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluate", "--decoder", "sinkhorn"], "hits@1"),
        (["match", "Bavaria"], "csls"),
        (["relations", "--least", "0.9"], "incountry ~ liegtin"),
    ],
    ids=["evaluate", "match", "relations"],
)
def test_commands_on_a_baseline(run: Run, words: list[str], said: str) -> None:
    code, out, err = command(words[0], run.id, *words[1:], models=models_of(run))
    assert (code, err) == (0, "")
    assert said in out.lower()


def test_the_same_command_finds_it_and_its_report_repeats_it(run: Run, tmp_path: Path) -> None:
    words = ["train", str(EUROPE), "--baseline", "lightea", "--set", "baseline.width=256", "--set", "encoder.dim=7"]
    code, out, err = command(*words, models=models_of(run))
    assert code == 0
    assert f"{run.id} already exists" in err
    assert "note: encoder.dim has no effect on the baseline lightea." in err
    assert "as published, Hits@1 within the pool of test entities by the Sinkhorn decoder: 0." in out
    page = tmp_path / "report.html"
    assert command("report", run.id, "--out", str(page), models=models_of(run))[0] == 0
    assert "--variant basic --seed 0 --set baseline.method=lightea" in page.read_text(encoding="utf-8")


def test_questions_to_what_it_lacks_are_refused(run: Run) -> None:
    models = models_of(run)
    code, _, err = command("explain", run.id, "source:Bavaria", "target:Bayern", models=models)
    assert code == 2
    assert "this is a run of the baseline LightEA, which has no encoder to explain scores or match new entities with; open a run of Dual-AMN." in err
    code, _, err = command("update", run.id, str(EUROPE), models=models)
    assert code == 2
    assert "is a run of the baseline LightEA, which cannot be updated" in err
    code, _, err = command("train", str(EUROPE), "--baseline", "mtranse", "--variant", "literal", models=models)
    assert code == 2
    assert "the baseline mtranse has no variants" in err
    with pytest.raises(EngineError, match="unknown baseline 'xyz'"):
        BASELINES.named("xyz")
