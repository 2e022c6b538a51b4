"""Names of the two graphs: short, readable, different, and of no influence on a run's identity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import RunConfig
from engine.data import load_task
from engine.data.labels import graph_names
from engine.pipeline import make_run_id
from tests.data.writers import small_sample, write_openea

ZH, EN, FR = (f"http://{host}/resource/A" for host in ("zh.dbpedia.org", "dbpedia.org", "fr.dbpedia.org"))
WD, GEO, NE = "http://www.wikidata.org/entity/Q1", "https://sws.geonames.org/9782192/", "ne:states_provinces/998"


@pytest.mark.parametrize(
    ("source", "target", "names"),
    [
        ([ZH], [EN], ("DBpedia (zh)", "DBpedia (en)")),
        ([EN], [FR], ("DBpedia (en)", "DBpedia (fr)")),
        ([EN], [WD], ("DBpedia", "Wikidata")),
        ([FR], ["wd:Q1"], ("DBpedia (fr)", "Wikidata")),
        ([EN], ["Alien:_Resurrection", "1984"], ("DBpedia", "KG2")),
        ([GEO, GEO, "geonames:admin1/HU.19"], [NE, NE, "cldr:currency/ALL"], ("GeoNames", "Natural Earth")),
        (["ne:event/1"], ["geonames:country/DE"], ("ne", "GeoNames")),
        (["http://www.example.org/1"], ["HTTP://nothing/1"], ("example.org", "KG2")),
        (["http://example.org/1"], ["https://example.org/2"], ("example.org (KG1)", "example.org (KG2)")),
        ([EN], ["dbr:A"], ("DBpedia (KG1)", "DBpedia (KG2)")),
        ([ZH], [ZH], ("DBpedia (zh) (KG1)", "DBpedia (zh) (KG2)")),
        (["https://id.wikipedia.org/A"], ["https://simple.wikipedia.org/A"], ("Wikipedia (id)", "Wikipedia")),
        (["http://notdbpedia.org/A"], ["http://dbpedia.org.evil.example/A"], ("notdbpedia.org", "dbpedia.org.evil.example")),
        ([ZH, FR], [EN, WD], ("KG1", "KG2")),
        (["A"], ["B"], ("KG1", "KG2")),
        ([], [], ("KG1", "KG2")),
    ],
)
def test_known_hosts_prefixes_and_languages(source: list[str], target: list[str], names: tuple[str, str]) -> None:
    assert graph_names(source, target) == names


identifiers = st.lists(st.one_of(st.sampled_from([ZH, EN, FR, WD, GEO, NE, "http://KG1/a", "kg2:a", "x"]), st.text(max_size=80)), max_size=5)


@given(identifiers, identifiers)
def test_names_always_differ_and_are_one_short_line(source: list[str], target: list[str]) -> None:
    first, second = graph_names(source, target)
    assert first != second
    for name in (first, second):
        assert name.isprintable()
        assert 0 < len(name) <= 80


def test_samples(repository: Path) -> None:
    task = load_task(repository / "sample_data" / "europe")
    assert (task.source.name, task.target.name) == ("GeoNames", "Natural Earth")


def test_a_name_makes_no_other_run(tmp_path: Path) -> None:
    write_openea(tmp_path / "data", small_sample())
    task = load_task(tmp_path / "data")
    assert (task.source.name, task.target.name) == ("left.org", "right.org")
    renamed = replace(task, source=replace(task.source, name="Another name"))
    assert make_run_id(renamed, RunConfig()) == make_run_id(task, RunConfig())
