"""What is particular to each format, and what all readers have in common."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.config import DataConfig
from engine.data import READERS, KnowledgeGraph, load_task
from engine.data.readers import Detection, ReaderRegistry
from engine.errors import ConfigError, DataError
from tests.data.writers import WRITERS, as_csv, as_tsv, ntriples, put, same_as, small_sample, tabbed, write_dbp15k, write_rdf


def triples_of(graph: KnowledgeGraph) -> list[tuple[str, str, str]]:
    return [(graph.entities[head], graph.relations[relation], graph.entities[tail]) for head, relation, tail in graph.triples]


@pytest.mark.parametrize("name", READERS)
class TestEveryReader:
    def test_says_who_it_is(self, name: str) -> None:
        reader = READERS[name]
        assert reader.name == name
        assert reader.description
        assert "\n" not in reader.description

    def test_is_covered_by_the_round_trip(self, name: str) -> None:
        assert name in {reader for reader, _ in WRITERS.values()}

    def test_misses_something_in_an_empty_folder(self, name: str, tmp_path: Path) -> None:
        detection = READERS[name].detect(tmp_path)
        assert detection.score == 0
        assert detection.missing

    @pytest.mark.parametrize("gz", [False, True])
    def test_recognises_its_own_and_no_other(self, name: str, gz: bool, tmp_path: Path) -> None:
        for form, (reader, write) in WRITERS.items():
            write(tmp_path / form, small_sample(), gz=gz)
            assert (READERS[name].detect(tmp_path / form).score == 1) == (reader == name)
            if reader == name:
                assert load_task(tmp_path / form).format == name


class TestRegistry:
    def test_a_name_is_taken_once(self) -> None:
        with pytest.raises(ConfigError, match="already a data format called 'openea'"):
            ReaderRegistry([READERS["openea"], READERS["openea"]])

    def test_a_folder_of_several_formats(self, tmp_path: Path) -> None:
        WRITERS["openea"][1](tmp_path, small_sample())
        WRITERS["rdf"][1](tmp_path, small_sample())
        task = load_task(tmp_path)
        assert task.format == "openea"
        assert [finding.code for finding in task.findings] == ["several-formats", "files-passed-over"]
        assert load_task(tmp_path, DataConfig(format="rdf")).format == "rdf"

    def test_a_new_reader_takes_part(self, tmp_path: Path) -> None:
        class Mine:
            name = "mine"
            description = "anything with a file called mine"

            def detect(self, folder: Path) -> Detection:
                return Detection(1.0) if (folder / "mine").exists() else Detection(0.0, ("mine",))

            files = READERS["openea"].files
            read = READERS["openea"].read

        registry = ReaderRegistry([*READERS.values(), Mine()])
        put(tmp_path / "mine", "")
        assert registry.choose(tmp_path)[0].name == "mine"


class TestDbp15k:
    def test_mixed_line_ends_blank_labels_and_bare_names(self, tmp_path: Path) -> None:
        put(tmp_path / "ent_ids_1", "0\thttp://dbpedia.org/resource/AC/DC\r\n3\thttp://dbpedia.org/resource/Caf%C3%A9_M%C3%BCller\r\n")
        put(tmp_path / "ent_ids_2", "1\tAC/DC\n2\tCafé_Müller")
        put(tmp_path / "triples_1", "0\t0\t3\r\n3\t0\t3")
        put(tmp_path / "triples_2", "2\t1\t1\n")
        put(tmp_path / "ref_ent_ids", "0\t1\r\n3\t2")
        task = load_task(tmp_path)
        assert task.source.labels == ("AC/DC", "Café Müller")
        assert task.target.labels == ("AC/DC", "Café Müller")
        assert task.source.relations == ("0",)
        assert task.target.relations == ("1",)
        assert triples_of(task.target) == [("Café_Müller", "1", "AC/DC")]

    def test_names_that_have_several_ids(self, tmp_path: Path) -> None:
        write_dbp15k(tmp_path, small_sample())
        put(tmp_path / "ent_ids_2", "".join(f"{number}\tSame\n" for number in range(1, 12, 2)))
        task = load_task(tmp_path)
        assert len(set(task.target.entities)) == 6
        assert "Same#1" in task.target.entities
        assert "repeated-names" in {finding.code for finding in task.findings}

    def test_relations_that_rel_ids_lacks(self, tmp_path: Path) -> None:
        write_dbp15k(tmp_path, small_sample())
        put(tmp_path / "rel_ids_2", "5\tother\n")
        task = load_task(tmp_path)
        assert task.target.relations == ("1", "other")
        assert "relations-without-name" in {finding.code for finding in task.findings}


class TestTables:
    HEADS = (
        ("head", "relation", "tail"),
        ("h", "r", "t"),
        ("Subject", "Predicate", "Object"),
        ("s", "p", "o"),
        ("source", "type", "target"),
        (":START_ID", ":TYPE", ":END_ID"),
        ("head_id", "relation_id", "tail_id"),
    )

    @pytest.mark.parametrize("header", HEADS, ids=",".join)
    @pytest.mark.parametrize("shuffled", [False, True])
    def test_names_of_columns(self, header: tuple[str, str, str], shuffled: bool, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        rows = [("http://left.org/Rome", "near", "http://left.org/Bern"), ("http://left.org/Berlin", "near", "http://left.org/Rome")]
        order = (2, 0, 1) if shuffled else (0, 1, 2)
        table = as_csv(["weight", *(header[at] for at in order)], [["1.5", *(row[at] for at in order)] for row in rows])
        put(tmp_path / "triples_1.csv", table)
        assert sorted(triples_of(load_task(tmp_path).source)) == sorted(rows)

    def test_by_position(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "triples_1.csv", "http://left.org/Rome,near,http://left.org/Bern,and more\n")
        assert triples_of(load_task(tmp_path).source) == [("http://left.org/Rome", "near", "http://left.org/Bern")]

    def test_semicolons(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "links.csv", "source;target\nhttp://left.org/Rome;http://right.org/Rome\n")
        assert len(load_task(tmp_path).train_links) == 1

    def test_quotation_marks_are_characters_in_tsv(self, tmp_path: Path) -> None:
        WRITERS["tsv"][1](tmp_path, small_sample())
        put(tmp_path / "triples_1.tsv", as_tsv(("h", "r", "t"), [('"a"@en', "r", "http://left.org/Rome")]))
        assert '"a"@en' in load_task(tmp_path).source.entities

    def test_sssom(self, tmp_path: Path) -> None:
        WRITERS["tsv"][1](tmp_path, small_sample())
        rows = as_tsv(("subject_id", "predicate_id", "object_id"), [("http://left.org/Rome", "skos:exactMatch", "http://right.org/Rome")])
        put(tmp_path / "links.tsv", f"# mapping_set_id: x\n# license: y\n{rows}")
        assert len(load_task(tmp_path).train_links) == 1

    @pytest.mark.parametrize(
        ("first", "second", "links"),
        [
            ("kg1.csv", "kg2.csv", "links.csv"),
            ("source_triples.csv", "target_triples.csv", "ent_links.csv"),
            ("rel_triples_1.csv", "rel_triples_2.csv", "entity-alignment.csv"),
            ("left.csv", "right.csv", "seeds.csv"),
            ("en.csv", "zh.csv", "sameAs.csv"),
        ],
    )
    def test_names_of_files(self, first: str, second: str, links: str, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        for old, new in (("triples_1.csv", first), ("triples_2.csv", second), ("links.csv", links)):
            (tmp_path / old).rename(tmp_path / new)
        task = load_task(tmp_path)
        assert task.source.name == "left.org"
        assert len(task.train_links) == 2

    def test_a_file_for_each_part(self, tmp_path: Path) -> None:
        sample = small_sample()
        WRITERS["csv"][1](tmp_path, sample)
        (tmp_path / "links.csv").unlink()
        for name, links in (
            ("train_links", sample.links[:1]),
            ("links-valid", sample.links[1:3]),
            ("test.links", sample.links[3:5]),
            ("unsure_links", sample.links[5:]),
        ):
            put(tmp_path / f"{name.replace('.', '_')}.csv", as_csv(("source", "target"), links))
        task = load_task(tmp_path)
        assert [len(links) for links in task.all_links()] == [1, 2, 2, 1]
        assert task.split == "given: train_links.csv"

    def test_a_part_in_two_files(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "train_links.csv", "http://left.org/Rome,http://right.org/Rome\n")
        with pytest.raises(DataError, match=r"train_links.csv: train links stand here and in links.csv"):
            load_task(tmp_path)

    def test_integer_ids_in_parquet(self, tmp_path: Path) -> None:
        for number in (1, 2):
            self.put_parquet(tmp_path / f"kg{number}.parquet", {"head": [1, 2], "relation": ["r", "r"], "tail": [2, 3]})
        self.put_parquet(tmp_path / "links.parquet", {"source": [1, 2], "target": [1, 3]})
        task = load_task(tmp_path)
        assert task.source.entities == ("1", "2", "3")
        assert task.source.labels == ("", "", "")

    @pytest.mark.parametrize(
        ("column", "words"),
        [([1.5, 2.5], "is of type double, expected text"), (["a", None], "has no value in row 2"), ([[1], [2]], "is of type list")],
    )
    def test_parquet_columns_that_cannot_be_identifiers(self, column: list[object], words: str, tmp_path: Path) -> None:
        WRITERS["parquet"][1](tmp_path, small_sample())
        self.put_parquet(tmp_path / "links.parquet", {"source": column, "target": ["a", "b"]})
        with pytest.raises(DataError, match=words):
            load_task(tmp_path)

    def test_numbers_as_attribute_values_in_parquet(self, tmp_path: Path) -> None:
        WRITERS["parquet"][1](tmp_path, small_sample())
        self.put_parquet(tmp_path / "attributes_1.parquet", {"entity": ["http://left.org/Rome"], "attribute": ["area"], "value": [1285.5]})
        assert load_task(tmp_path).source.attributes["value"].tolist() == ["1285.5"]

    @staticmethod
    def put_parquet(path: Path, columns: dict[str, list[object]]) -> None:
        buffer = io.BytesIO()
        pq.write_table(pa.table(columns), buffer)
        put(path, buffer.getvalue())


class TestRdf:
    TURTLE = """
        @prefix : <http://right.org/> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        @prefix owl: <http://www.w3.org/2002/07/owl#> .
        :Rome rdfs:label "Rom"@de ; :nah :Bern, _:somewhere ; owl:sameAs <http://left.org/Rome> .
        :Bern :nah [ :nah :Wien ] ; :height 540 .
        :Oslo rdfs:label "Oslo" .
    """

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        write_rdf(tmp_path, dataclasses.replace(small_sample(), links=small_sample().links[:1], train=()))
        put(tmp_path / "target.ttl", self.TURTLE)
        return tmp_path

    def test_iris_blank_nodes_literals(self, folder: Path) -> None:
        target = load_task(folder).target
        bern, oslo, rome, wien = (f"http://right.org/{name}" for name in ("Bern", "Oslo", "Rome", "Wien"))
        unnamed = target.entities[0]
        assert re.fullmatch(r"_:\[[0-9a-f]{16}\]", unnamed)
        assert target.entities == (unnamed, "_:somewhere", bern, oslo, rome, wien)
        assert len(target.triples) == 4
        assert sorted(target.attributes["value"]) == ['"540"^^<http://www.w3.org/2001/XMLSchema#integer>', '"Rom"@de', "Oslo"]
        assert target.labels[target.index[rome]] == "Rom"

    def test_anonymous_nodes_are_called_the_same_each_time(self, folder: Path) -> None:
        assert load_task(folder).fingerprint == load_task(folder).fingerprint

    def test_same_as_inside_of_a_graph_is_left_out(self, folder: Path) -> None:
        task = load_task(folder)
        assert "http://www.w3.org/2002/07/owl#sameAs" not in task.target.relations
        assert "http://left.org/Rome" not in task.target.entities
        assert {"identity-triples", "attribute-only-entities"} == {finding.code for finding in task.findings}

    def test_links_may_be_reversed(self, folder: Path) -> None:
        put(folder / "links.nt", same_as([(right, left) for left, right in small_sample().links[:1]]))
        task = load_task(folder)
        assert task.source.entities[task.train_links[0, 0]] == "http://left.org/Rome"

    def test_links_as_a_table(self, folder: Path) -> None:
        (folder / "links.nt").unlink()
        put(folder / "links.tsv", tabbed(small_sample().links[:1]))
        assert len(load_task(folder).train_links) == 1

    def test_a_links_file_without_links(self, folder: Path) -> None:
        put(folder / "links.nt", ntriples([("http://left.org/Rome", "http://left.org/near", "http://left.org/Bern")]))
        with pytest.raises(DataError, match="no owl:sameAs"):
            load_task(folder)


class TestNames:
    def test_of_the_data_set(self, tmp_path: Path) -> None:
        for folder, name in (("zh-en_v1.1", "zh-en_v1.1"), (".hidden", "hidden-"), ("中文", "data-"), ("a b; rm", "a-b-rm-"), ("中", "data-")):
            WRITERS["openea"][1](tmp_path / folder, small_sample())
            found = load_task(tmp_path / folder).name
            assert found == name if name == folder else found.startswith(name)
        assert load_task(tmp_path / "中文").name != load_task(tmp_path / "中").name

    def test_of_entities_by_a_wanted_attribute(self, tmp_path: Path) -> None:
        sample = dataclasses.replace(
            small_sample(), source_attributes=tuple((head, "http://left.org/nick", f"N{at}") for at, (head, _, _) in enumerate(small_sample().source))
        )
        WRITERS["openea"][1](tmp_path, sample)
        assert load_task(tmp_path).source.labels[0] == "Berlin"
        assert load_task(tmp_path, DataConfig(name_attribute="nick")).source.labels[0] == "N2"
        with pytest.raises(DataError, match=r"neither graph has an attribute 'alias'.*http://left.org/nick"):
            load_task(tmp_path, DataConfig(name_attribute="alias"))
