"""What the members that docs/extending.md adds are for. Runs in a copy that has them (tests/recipes/test_recipes.py), so it is not collected here."""

from __future__ import annotations

import json
from pathlib import Path

import pyoxigraph as ox
import pytest
from streamlit.testing.v1 import AppTest

import engine
from engine.api import OpenRun
from engine.cli.main import main
from engine.errors import DataError
from tests.data.writers import WRITERS, Sample

SETTINGS = {
    "data.format": "jl",
    "encoder.dim": 16,
    "encoder.proxies": 4,
    "literal.encoder": "pair_counts",
    "literal.names": "uri",
    "loss.kind": "in_batch",
    "semi.rounds": 1,
    "training.clip_norm": 0.5,
    "training.epochs": 3,
}
NAMES = [f"{first}{second}" for first in ("Aber", "Bel", "Cor", "Dun", "Eis", "Fal") for second in ("dale", "ford", "ham", "mont", "stadt", "wick")]


def data(folder: Path) -> Path:
    """Two rings of 36 entities; half of them are seed links."""
    sides = [[f"http://{side}.example/{name}" for name in NAMES] for side in ("left", "right")]
    rings = [tuple((here, "http://x.example/near", there) for here, there in zip(ends, [*ends[1:], ends[0]], strict=True)) for ends in sides]
    links = tuple(zip(*sides, strict=True))
    WRITERS["jl"][1](folder, Sample(rings[0], rings[1], links, links[::2]))
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def trained(models: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenRun:
    return engine.train(data(tmp_path_factory.mktemp("rings")), "literal", models=models, settings=SETTINGS, progress=False)


def test_the_reader_reads_and_names_the_line_that_it_cannot(tmp_path: Path) -> None:
    task = engine.read(data(tmp_path))
    assert task.format == "jl"
    assert (task.source.num_entities, len(task.train_links), len(task.test_links)) == (36, 18, 18)
    with (tmp_path / "graph_1.jl").open("a") as file:
        file.write('["only", "two"]\n')
    with pytest.raises(DataError, match=r"graph_1\.jl.*37.*expected a list of three texts"):
        engine.read(tmp_path)


def test_the_loss_and_the_setting_train(trained: OpenRun) -> None:
    assert trained.config.loss.kind == "in_batch"
    assert trained.manifest["config"]["training"]["clip_norm"] == 0.5


def test_the_baseline_runs(models: Path, tmp_path: Path) -> None:
    run = engine.train(data(tmp_path), models=models, settings={"data.format": "jl", "baseline.method": "anchors"}, progress=False)
    assert run.manifest["baseline"]["title"] == "Anchors"
    assert run.metrics["target_to_source"]["hits@1"] > 0.5, "every other entity of the rings is a seed link"


def test_the_encoder_compares_names(trained: OpenRun) -> None:
    assert trained.config.literal.encoder == "pair_counts"
    assert trained.metrics["target_to_source"]["hits@1"] > 0.8, "names are the same in both graphs"


def test_the_decoder_decodes(trained: OpenRun, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "uncorrected" in trained.json("decoders")
    assert main(["evaluate", trained.id, "--models", str(models), "--decoder", "uncorrected"]) == 0
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    assert "uncorrected: nearest by cosine" in " ".join(capsys.readouterr().out.split())


def test_the_format_exports(trained: OpenRun, tmp_path: Path) -> None:
    path = tmp_path / "links.ttl"
    table = engine.export(trained, path, decoder="uncorrected")
    statements = list(ox.parse(path=path))
    assert len(statements) == len(table) > 18
    assert {one.predicate.value for one in statements} == {"http://www.w3.org/2002/07/owl#sameAs"}


def test_the_page_renders(trained: OpenRun, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_MODELS", str(models))
    app = AppTest.from_file(Path.cwd() / "app" / "main.py", default_timeout=60).run().switch_page("views/known_links.py").run()
    assert not app.exception
    assert not app.error
    assert app.title[0].value == "Known links"
    assert sorted(one.value for one in app.metric) == ["18", "18"]
    assert len(app.dataframe[0].value) == 36


def test_the_setting_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["options", "--json"]) == 0
    rows = {row["option"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["training.clip_norm"]["default"] is None
    assert "in_batch" in rows["loss.kind"]["values"]


def test_the_analysis_table_is_stored(trained: OpenRun, models: Path) -> None:
    opened = engine.open_run(trained.id, models)
    assert "leaf_entities" in opened.tables
    assert opened.table("leaf_entities").to_dict("list") == {"graph": ["source", "target"], "entities": [36, 36], "leaves": [0, 0]}
