"""What the pages show of runs with more in them: rounds, names, probabilities."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from engine.runs import RunStore
from engine.runs.view import RunView
from tests.app.conftest import OpenPage, assert_no_crash, tables, words
from tests.run_fixture import sample_run, write_run

CITY_5 = "http://one.example/resource/Entity_5"


@pytest.fixture
def knowing_run(models: Path) -> str:
    """The sample run, with a probability for one best match and a round that trained on it."""
    plain = RunStore(models).find(write_run(sample_run(), models))
    best = RunView(plain).matches("source", 5, top=1)[0]
    tables = {
        **{name: plain.table(name) for name in ("entities", "relations", "triples", "attributes", "links", "matches")},
        "probabilities": pd.DataFrame({"graph": ["source"], "entity": [5], "match": [best.entity], "probability": [0.875]}),
        "selections": pd.DataFrame({"round": [1, 2], "source": [5, 5], "target": [best.entity, best.entity], "score": [0.7, 0.9]}),
    }
    with RunStore(models).create(plain.dataset, "semi-s0-00000000") as writer:
        for name, table in tables.items():
            writer.write_table(name, table)
        for name, keys in (("embeddings", ("source", "target")), ("hubness", ("source_all", "target_all", "source_test", "target_test"))):
            writer.write_tensors(name, {key: plain.tensor(name, key) for key in keys})
        unsealed = {key: value for key, value in plain.manifest.items() if key not in ("files", "seal")}
        return writer.finish({**unsealed, "variant": "semi"}).id


def test_rounds_and_probabilities_are_shown_where_there_are_any(knowing_run: str, open_page: OpenPage) -> None:
    app = open_page("entity", run=knowing_run, side="source", entity=CITY_5)
    assert_no_crash(app)
    next(toggle for toggle in app.toggle if toggle.label == "More columns").set_value(True).run()
    table = next(table for table in tables(app) if "match" in table.columns)
    assert table["estimated probability"].tolist()[0] == pytest.approx(0.88)
    assert table["added"].tolist()[0] == "round 1"
    assert "names" not in table.columns
    assert "added in round 1" in words(app)
    assert "**88%** estimated probability · " in words(app)


def test_a_basic_run_has_no_such_columns(run: str, open_page: OpenPage) -> None:
    app = open_page("entity", run=run, side="source", entity=CITY_5)
    assert_no_crash(app)
    next(toggle for toggle in app.toggle if toggle.label == "More columns").set_value(True).run()
    table = next(table for table in tables(app) if "rank" in table.columns)
    assert not {"names", "probability", "added"} & set(table.columns)
