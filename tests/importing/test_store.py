"""Storing: nothing is lost on the way, nothing is overwritten, nothing is half there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.importing import language_corrections
from engine.cli.main import main
from engine.config import RunConfig
from engine.data import load_task
from engine.data.library import RECORD, data_sets, starting_config
from engine.errors import ConfigError, DataImportError
from engine.importing import Corrections, check_dataset_name, folder_material, free_name, preview, store
from engine.importing.staging import PARTIAL
from engine.pipeline import make_run_id
from engine.util import paths
from tests.data.writers import WRITERS, Sample, small_sample
from tests.effort import examples
from tests.importing.conftest import GRAPH_1, GRAPH_2, LINKS, SWAPPED, files

NONE = Corrections()


@pytest.mark.parametrize("form", WRITERS)
def test_what_is_stored_is_the_same_data(form: str, tmp_path: Path) -> None:
    WRITERS[form][1](tmp_path / "mine", small_sample())
    before = load_task(tmp_path / "mine")
    stored = store(folder_material(tmp_path / "mine"), NONE, "mine")
    after = load_task(stored.path)
    assert after.fingerprint == before.fingerprint == stored.fingerprint
    assert after.source.labels == before.source.labels
    assert (after.train_links == before.train_links).all()
    assert (after.test_links == before.test_links).all()


texts = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=8).filter(lambda text: bool(text.strip()))
triples = st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=8)


@hypothesis.settings(deadline=None, max_examples=examples(40))
@given(source=triples, target=triples, attributes=st.lists(st.tuples(texts, texts, st.text(st.characters(blacklist_categories=("Cs",)))), max_size=5))
def test_any_identifier_and_value_survives(
    source: list[tuple[str, str, str]],
    target: list[tuple[str, str, str]],
    attributes: list[tuple[str, str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    sample = Sample(tuple(source), tuple(target), ((source[0][0], target[0][0]),), source_attributes=tuple(attributes))
    WRITERS["parquet"][1](folder / "mine", sample)
    found = preview(folder_material(folder / "mine"), NONE)
    if found.problems:
        return  # the same graph twice, or links that could point either way
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DUAL_AMN_DATA", str(folder / "data"))
        stored = store(folder_material(folder / "mine"), NONE, "mine")
        before, after = load_task(folder / "mine"), load_task(stored.path)
    assert after.fingerprint == before.fingerprint == found.fingerprint
    assert after.source.labels == before.source.labels


def test_entities_and_relations_without_triples_survive(tmp_path: Path) -> None:
    WRITERS["dbp15k"][1](tmp_path / "mine", small_sample())
    with (tmp_path / "mine" / "ent_ids_1").open("a", encoding="utf-8") as file:
        file.write("999\thttp://left.org/Alone\n")
    (tmp_path / "mine" / "rel_ids_1").write_text("0\tnear\n77\tunused\n", encoding="utf-8")
    before = load_task(tmp_path / "mine")
    after = load_task(store(folder_material(tmp_path / "mine"), NONE, "mine").path)
    assert "http://left.org/Alone" in after.source.entities
    assert "unused" in after.source.relations
    assert after.fingerprint == before.fingerprint


@pytest.mark.parametrize("name", ["europe", "world"])
def test_the_sample_data_keep_fingerprint_split_and_labels(name: str) -> None:
    folder = paths.SAMPLES / name
    before = load_task(folder)
    after = load_task(store(folder_material(folder), NONE, "copy").path)
    assert after.fingerprint == before.fingerprint
    assert after.source.labels == before.source.labels
    assert after.target.labels == before.target.labels
    for part in ("train_links", "valid_links", "test_links", "unsure_links"):
        assert (getattr(after, part) == getattr(before, part)).all()


def test_the_record_says_where_it_comes_from(tmp_path: Path, data: Path) -> None:
    said = Corrections(swap_links=True, seeds="exact", rejected=frozenset({("a:Oslo", "b:Oslo")}))
    links = SWAPPED.split("\n")[0] + "\nb:Rome,a:Rome\n"
    stored = store(files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=links), said, "cities")
    record = json.loads((data / "cities" / RECORD).read_text(encoding="utf-8"))
    assert Corrections.from_dict(record["corrections"]) == said
    assert {file["name"]: file["role"] for file in record["files"]} == {"graph_1.csv": "graph 1", "graph_2.csv": "graph 2", "links.csv": "links"}
    assert record["files"][0]["sha256"] == hashlib.sha256(GRAPH_1.encode()).hexdigest()
    assert ["a:Paris", "b:Paris", "exact", 1.0] in record["seed from names"]
    assert len(record["seed from names"]) == 6
    assert record["counts"]["source"]["triples"] == 8
    assert record["fingerprint"] == load_task(stored.path).fingerprint
    assert data_sets()[0] == stored
    assert stored.links == 7


def test_the_name_attribute_is_kept_as_a_setting_for_training(tmp_path: Path) -> None:
    attributes = "entity,attribute,value\na:Rome,motto,SPQR\n"
    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS, attributes_1=attributes)
    assert store(material, Corrections(name_attribute="motto"), "mine").settings == {"data.name_attribute": "motto"}


def test_nothing_is_stored_while_something_is_wrong(tmp_path: Path, data: Path) -> None:
    with pytest.raises(DataImportError, match=r"wrong way round.*Swap their columns"):
        store(files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=SWAPPED), NONE, "mine")
    assert not data.exists()


@pytest.mark.parametrize("name", ["", " ", "../x", "a/b", "a b", ".hidden", "_x", "x" * 81, "ä", "a\0b", "..", "a\nb", "-x", "x."])
def test_names_that_cannot_be(name: str, data: Path) -> None:
    with pytest.raises(DataImportError) as caught:
        check_dataset_name(name)
    assert "\n" not in str(caught.value)
    check_dataset_name(free_name(name))


def test_a_name_that_is_taken_is_not_overwritten_and_another_one_offered(tmp_path: Path, data: Path) -> None:
    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS)
    store(material, NONE, "mine")
    before = {path.name: path.read_bytes() for path in (data / "mine").iterdir()}
    for taken in ("mine", "MINE", "europe"):
        with pytest.raises(DataImportError, match=f"not overwritten; take another name, for example '{taken}-2'"):
            store(material, NONE, taken)
    assert {path.name: path.read_bytes() for path in (data / "mine").iterdir()} == before


def test_of_two_at_once_one_wins_and_the_other_is_reported(tmp_path: Path, data: Path) -> None:
    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS)

    def attempt(_: int) -> str:
        try:
            return store(material, NONE, "mine").name
        except DataImportError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(attempt, range(4)))
    assert outcomes.count("mine") == 1
    assert all("take another name" in outcome for outcome in outcomes if outcome != "mine")
    assert [path.name for path in data.iterdir()] == ["mine"]


def test_a_full_disk_leaves_nothing(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        with pytest.raises(DataImportError, match="no space left on device"):
            store(material, NONE, "mine")
    assert not list(data.iterdir())
    shutil.rmtree(data)


def test_what_a_killed_import_left_is_no_data_set(data: Path) -> None:
    (data / f"{PARTIAL}0").mkdir(parents=True)
    assert {one.name for one in data_sets()} == {"europe", "world"}


def in_tongues(*tongues: str, graph: str) -> str:
    """Attributes of two cities with a name in each language."""
    rows = [f'{graph}:{name},label,"""{name} {tongue}""@{tongue}"\n' for name in ("Rome", "Paris") for tongue in tongues]
    return "entity,attribute,value\n" + "".join(rows)


TONGUES_1, TONGUES_2 = in_tongues("de", "fr", graph="a"), in_tongues("en", "fr", graph="b")


def test_the_languages_of_names_are_counted_kept_and_used(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS, attributes_1=TONGUES_1, attributes_2=TONGUES_2)
    plain = preview(material, NONE)
    assert plain.graphs["source"].languages == (("de", 2), ("fr", 2))
    assert (plain.graphs["source"].preferred, plain.graphs["target"].preferred) == ("fr", "fr")
    said = Corrections(name_language_source="de", name_language_target="en")
    chosen = preview(material, said)
    assert (chosen.graphs["source"].preferred, chosen.graphs["target"].preferred) == ("de", "en")
    assert chosen.fingerprint == plain.fingerprint
    stored = store(material, said, "tongues")
    assert stored.settings == {"data.name_language_source": "de", "data.name_language_target": "en"}
    assert Corrections.from_dict(json.loads((stored.path / RECORD).read_text(encoding="utf-8"))["corrections"]) == said
    config = starting_config(stored.path)
    task = load_task(stored.path, config.data)
    assert task.source.labels[task.source.index["a:Rome"]] == "Rome de"
    assert task.target.labels[task.target.index["b:Rome"]] == "Rome en"
    assert make_run_id(task, config) != make_run_id(task, RunConfig()), "other names, another run"
    capsys.readouterr()
    assert main(["inspect", str(stored.path)]) == 0
    assert "Preferred: de (source), en (target)." in " ".join(capsys.readouterr().out.split())
    assert main(["inspect", str(stored.path), "--set", "data.name_language_source=none"]) == 0
    assert "Preferred: fr (source), en (target)." in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {}),
        (["de,en"], {"name_language": "de,en"}),
        (["source=de"], {"name_language_source": "de"}),
        (["source=de", "target=en,fr"], {"name_language_source": "de", "name_language_target": "en,fr"}),
    ],
)
def test_languages_on_the_command_line(options: list[str], expected: dict[str, str]) -> None:
    assert language_corrections(options) == expected


@pytest.mark.parametrize("options", [["de", "en"], ["source=de", "source=en"], ["de", "target=en"], ["target=en", "de"], ["source="], [","]])
def test_languages_that_say_two_things_or_nothing_are_refused(options: list[str]) -> None:
    with pytest.raises(ConfigError, match="--name-language"):
        language_corrections(options)


def test_records_of_older_imports_open(tmp_path: Path) -> None:
    old = {"roles": {}, "tables": {}, "name_attribute": "motto", "swap_links": False, "seeds": "none", "rejected": []}
    assert Corrections.from_dict(old) == Corrections(name_attribute="motto")
    assert starting_config(tmp_path) == RunConfig()
    (tmp_path / RECORD).write_text('{"settings": {"data.none_such": "1"}}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"import\.json cannot be used: .*none_such"):
        starting_config(tmp_path)
    for damaged in ("{", "[]", '{"settings": 3}'):
        (tmp_path / RECORD).write_text(damaged, encoding="utf-8")
        assert starting_config(tmp_path) == RunConfig()
