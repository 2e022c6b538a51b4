"""Corresponding relations as SSSOM."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from engine.errors import ExportError
from engine.exporting import predicate_of, write_relations
from engine.runs.view import RunView
from tests.exporting.test_exporting import sssom_problems, view

__all__ = ["view"]

FOUND = pd.DataFrame(
    {
        "kind": ["relation", "relation", "attribute", "relation"],
        "source": ["http://a.org/p/capital", "born in", "naïve\tname", "=1+1"],
        "target": ["http://b.org/hauptstadt", "http://b.org/geburtsort", "http://b.org/name", "<b>"],
        "turned": [False, True, False, False],
        "source_implies_target": [0.9, 0.8, 0.9, 0.2],
        "target_implies_source": [0.7, 0.6, 0.1, 0.3],
        "support": [10.0, 5.0, 4.0, 2.0],
    }
)


@pytest.mark.parametrize(
    ("forward", "backward", "turned", "predicate"),
    [
        (0.9, 0.7, False, "owl:equivalentProperty"),
        (0.9, 0.1, False, "rdfs:subPropertyOf"),
        (0.1, 0.9, False, "skos:narrowMatch"),
        (0.3, 0.2, False, "skos:closeMatch"),
        (0.9, 0.7, True, "owl:inverseOf"),
        (0.9, 0.1, True, "skos:relatedMatch"),
    ],
)
def test_predicates(forward: float, backward: float, turned: bool, predicate: str) -> None:
    assert predicate_of(forward, backward, turned=turned) == predicate


def test_they_are_valid_by_the_sssom_package(view: RunView, tmp_path: Path) -> None:
    path = tmp_path / "relations.sssom.tsv"
    write_relations(view, FOUND, path)
    assert sssom_problems(path) == ["4"]
    rows = pd.read_csv(path, sep="\t", comment="#")
    assert rows["predicate_id"].tolist() == ["owl:equivalentProperty", "owl:inverseOf", "rdfs:subPropertyOf", "skos:closeMatch"]
    assert rows["confidence"].tolist() == [0.7, 0.6, 0.9, 0.3]


def test_a_file_that_is_there_is_kept(view: RunView, tmp_path: Path) -> None:
    path = tmp_path / "relations.sssom.tsv"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ExportError, match="already"):
        write_relations(view, FOUND, path)
    assert path.read_text(encoding="utf-8") == "mine"
    write_relations(view, FOUND, path, force=True)
    assert "mapping_set_id" in path.read_text(encoding="utf-8")


def test_nothing_gives_an_empty_table(view: RunView, tmp_path: Path) -> None:
    write_relations(view, FOUND[:0], tmp_path / "none.tsv")
    assert len(pd.read_csv(tmp_path / "none.tsv", sep="\t", comment="#")) == 0
