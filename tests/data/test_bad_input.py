"""Each way in which input can be bad: one sentence with file and line, or it is dealt with and said."""

from __future__ import annotations

import gzip
import os
import re
import shutil
from pathlib import Path

import pytest

from engine.config import DataConfig
from engine.data import AlignmentTask, load_task
from engine.errors import ConfigError, DataError
from tests.data.writers import WRITERS, put, small_sample, tabbed, write_dbp15k, write_openea

NEEDED = {
    "openea": ["rel_triples_1", "rel_triples_2"],
    "dbp15k": ["ent_ids_1", "ent_ids_2", "triples_1", "triples_2", "ref_ent_ids"],
    "csv": ["triples_1.csv", "triples_2.csv", "links.csv"],
    "tsv": ["triples_1.tsv", "triples_2.tsv", "links.tsv"],
    "parquet": ["triples_1.parquet", "triples_2.parquet", "links.parquet"],
    "rdf": ["source.nt", "target.ttl"],
    "ontology": ["source.ofn", "target.obo"],
    "xml": ["source.graphml", "target.gexf"],
    "jsonl": ["source.jsonl", "target.ndjson"],
}
EVERY_NEEDED_FILE = [(form, name) for form, names in NEEDED.items() for name in names]
MAY_BE_EMPTY = ("links.csv", "links.tsv", "ref_ent_ids")
EVERY_TEXT_FILE = [(form, name) for form, name in EVERY_NEEDED_FILE if form != "parquet"]


@pytest.fixture
def openea(tmp_path: Path) -> Path:
    write_openea(tmp_path, small_sample())
    return tmp_path


@pytest.fixture
def dbp15k(tmp_path: Path) -> Path:
    write_dbp15k(tmp_path, small_sample())
    return tmp_path


def refuse(folder: Path, place: str, words: str, config: DataConfig | None = None) -> None:
    """Loading must fail with a message that begins at this place (file:line) and holds these words."""
    with pytest.raises(DataError) as caught:
        load_task(folder, config)
    message = str(caught.value)
    assert message.startswith(f"{folder / place}: ") or (not place and message.startswith(f"{folder}: ")), message
    assert words in message
    assert "\n" not in message


def codes(task: AlignmentTask) -> dict[str, int]:
    return {finding.code: finding.count for finding in task.findings}


class TestMissingFile:
    @pytest.mark.parametrize(("form", "name"), [(form, name) for form, name in EVERY_NEEDED_FILE if "links" not in name])
    def test_is_named(self, form: str, name: str, tmp_path: Path) -> None:
        WRITERS[form][1](tmp_path, small_sample())
        (tmp_path / name).unlink()
        reader = WRITERS[form][0]
        with pytest.raises(DataError) as caught:
            load_task(tmp_path)
        assert f"this looks like format '{reader}'" in str(caught.value)
        side = "source" if "1" in name or "source" in name else "target" if "2" in name or "target" in name else "links"
        assert name in str(caught.value) or side in str(caught.value)

    def test_when_the_format_is_given(self, openea: Path) -> None:
        (openea / "rel_triples_2").unlink()
        refuse(openea, "rel_triples_2", "this file is missing", DataConfig(format="openea"))

    def test_training_links_of_a_fold(self, openea: Path) -> None:
        (openea / "721_5fold/1/train_links").unlink()
        refuse(openea, "721_5fold/1/train_links", "this file is missing")

    def test_folder(self, tmp_path: Path) -> None:
        refuse(tmp_path / "nothing", "", "there is no such folder")

    def test_file_instead_of_a_folder(self, openea: Path) -> None:
        refuse(openea / "ent_links", "", "this is a file; give the folder")

    def test_a_folder_in_a_file_s_place(self, openea: Path) -> None:
        (openea / "rel_triples_1").unlink()
        (openea / "rel_triples_1").mkdir()
        with pytest.raises(DataError, match="rel_triples_1 could not be found"):
            load_task(openea)

    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
    def test_no_permission(self, openea: Path) -> None:
        (openea / "ent_links").chmod(0)
        refuse(openea, "ent_links", "cannot be read")


class TestEmptyFile:
    @pytest.mark.parametrize(("form", "name"), [(form, name) for form, name in EVERY_NEEDED_FILE if name not in MAY_BE_EMPTY])
    def test_is_named(self, form: str, name: str, tmp_path: Path) -> None:
        WRITERS[form][1](tmp_path, small_sample())
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(DataError) as caught:
            load_task(tmp_path)
        assert caught.value.path == tmp_path / name

    @pytest.mark.parametrize("content", ["\n\n", "\r\n", "\ufeff"])
    def test_blank_lines_count_as_empty(self, content: str, openea: Path) -> None:
        put(openea / "rel_triples_1", content)
        refuse(openea, "rel_triples_1", "this file is empty")

    def test_a_table_with_nothing_but_a_header(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "triples_1.csv", "head,relation,tail\n")
        refuse(tmp_path, "triples_1.csv", "has no rows")

    @pytest.mark.parametrize("content", ["source,target\n", "", "\n"])
    def test_the_only_table_of_links_without_rows_says_that_none_are_known(self, content: str, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "links.csv", content)
        task = load_task(tmp_path)
        assert not any(map(len, task.all_links()))
        assert "no-links-in-file" in codes(task)
        put(tmp_path / "test_links.csv", "http://left.org/Rome,http://right.org/Rome\n")
        refuse(tmp_path, "links.csv", "this")

    @pytest.mark.parametrize("content", ["", "source\ttarget\n"])
    def test_an_empty_part_of_a_fold_has_no_links(self, content: str, openea: Path) -> None:
        put(openea / "721_5fold/1/valid_links", "http://left.org/Wien\thttp://right.org/Wien\n")
        assert all(len(links) for links in (load_task(openea).train_links, load_task(openea).valid_links, load_task(openea).test_links))
        for part, kind in (("train", "seed"), ("valid", "validation"), ("test", "test")):
            put(openea / f"721_5fold/1/{part}_links", content)
            task = load_task(openea)
            assert not len(getattr(task, f"{part}_links"))
            assert f"{part}_links has no links, so there are no {kind} links." in [finding.message for finding in task.findings]
        assert (len(task.train_links), len(task.valid_links)) == (0, 0), "nothing is drawn in place of what is said to be empty"

    @pytest.mark.parametrize("content", ["source,target\n", "", "\n"])
    def test_an_empty_table_of_a_part_has_no_links(self, content: str, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        (tmp_path / "links.csv").unlink()
        put(tmp_path / "train_links.csv", content)
        put(tmp_path / "test_links.csv", "http://left.org/Rome,http://right.org/Rome\n")
        task = load_task(tmp_path)
        assert (len(task.train_links), len(task.test_links)) == (0, 1), "a test link does not become a seed link"
        assert next(finding for finding in task.findings if finding.code == "no-links-in-file").severity == "warning"
        put(tmp_path / "train_links.csv", "http://left.org/Rome,http://right.org/Rome\n")
        for part in ("valid", "test"):
            put(tmp_path / f"{part}_links.csv", content)
        task = load_task(tmp_path)
        assert (len(task.train_links), len(task.valid_links), len(task.test_links)) == (1, 0, 0)
        assert [finding.severity for finding in task.findings if finding.code == "no-links-in-file"] == ["info", "info"]

    @pytest.mark.parametrize(("name", "left"), [("sup_ent_ids", (0, 6)), ("ref_ent_ids", (2, 0))])
    def test_an_empty_part_of_dbp15k_has_no_links(self, name: str, left: tuple[int, int], dbp15k: Path) -> None:
        put(dbp15k / name, "")
        task = load_task(dbp15k)
        assert (len(task.train_links), len(task.test_links)) == left
        assert "no-links-in-file" in codes(task)

    def test_without_folds_an_empty_file_of_links_says_that_none_are_known(self, openea: Path) -> None:
        shutil.rmtree(openea / "721_5fold")
        for content in ("", "source\ttarget\n"):
            put(openea / "ent_links", content)
            task = load_task(openea)
            assert not any(map(len, task.all_links()))
            assert {"source", "target"}.isdisjoint((*task.source.entities, *task.target.entities))
            assert "no-links-in-file" in codes(task)
        put(openea / "rel_triples_1", "source\tnear\tRome\n")
        put(openea / "rel_triples_2", "target\tnear\tRome\n")
        assert load_task(openea).num_seed_links == 1, "entities of these names"

    @pytest.mark.parametrize("name", ["721_5fold/1/valid_links", "721_5fold/1/test_links", "unsure_links", "attr_triples_1"])
    def test_what_need_not_be_there_may_be_empty(self, name: str, openea: Path) -> None:
        put(openea / name, "")
        assert len(load_task(openea).train_links) == 2


class TestWrongColumnCount:
    def test_openea(self, openea: Path) -> None:
        put(openea / "rel_triples_1", "a\tr\tb\n\na\tr\n")
        refuse(openea, "rel_triples_1:3", "expected 3 columns separated by tabs (head, relation, tail), found 2")

    def test_blanks_for_tabs(self, openea: Path) -> None:
        put(openea / "ent_links", "a b\n")
        refuse(openea, "ent_links:1", "found 1")

    def test_dbp15k(self, dbp15k: Path) -> None:
        put(dbp15k / "triples_2", "1\t6\t3\t4\n")
        refuse(dbp15k, "triples_2:1", "found 4")

    @pytest.mark.parametrize(("ending", "separator"), [("csv", ","), ("tsv", "\t")])
    def test_tables(self, ending: str, separator: str, tmp_path: Path) -> None:
        WRITERS[ending][1](tmp_path, small_sample())
        put(tmp_path / f"triples_1.{ending}", separator.join("abc") + "\n" + separator.join("ab") + "\n")
        refuse(tmp_path, f"triples_1.{ending}:2", "expected 3 columns as in the first row, found 2")

    def test_too_few_columns_throughout(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "triples_1.csv", "a,b\nc,d\n")
        refuse(tmp_path, "triples_1.csv:1", "expected at least 3 columns (head, relation, tail), found 2")

    def test_a_header_without_a_needed_column(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "triples_1.csv", "head,how,tail\na,b,c\n")
        refuse(tmp_path, "triples_1.csv:1", "no column is known to hold the relation (found: head, how, tail)")

    def test_line_of_a_quoted_field_with_line_breaks(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "attributes_1.csv", 'entity,attribute,value\na,b,"two\nlines"\nc,d\n')
        refuse(tmp_path, "attributes_1.csv:4", "found 2")

    def test_attribute_lines_are_counted_instead(self, openea: Path) -> None:
        """Published attribute files have broken lines, and names are all that is wanted from them."""
        put(openea / "attr_triples_1", "http://left.org/Rome\tname\tRoma\n of line breaks\nhttp://left.org/Rome\tnote\ta\ttab\n")
        task = load_task(openea)
        assert codes(task)["short-attribute-lines"] == 1
        assert task.source.attributes["value"].tolist() == ["Roma", "a\ttab"]

    def test_attribute_file_without_any_good_line(self, openea: Path) -> None:
        put(openea / "attr_triples_1", "\na b c\n")
        refuse(openea, "attr_triples_1:2", "no line has them")

    def test_broken_turtle(self, tmp_path: Path) -> None:
        WRITERS["rdf"][1](tmp_path, small_sample())
        put(tmp_path / "target.ttl", "<http://a.org/a> <http://a.org/p> <http://a.org/b> .\n\n<http://a.org/a> oops .\n")
        refuse(tmp_path, "target.ttl:3", "not valid RDF")


class TestEncoding:
    @pytest.mark.parametrize(("form", "name"), EVERY_TEXT_FILE)
    def test_bytes_that_are_not_utf8(self, form: str, name: str, tmp_path: Path) -> None:
        WRITERS[form][1](tmp_path, small_sample())
        path = tmp_path / name
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:2], b"caf\xe9\n", *lines[2:]]))
        refuse(tmp_path, f"{name}:3", "not UTF-8")

    def test_the_line_is_right_behind_a_byte_order_mark(self, openea: Path) -> None:
        put(openea / "ent_links", b"\xef\xbb\xbfa\tb\nc\xff\td\n")
        refuse(openea, "ent_links:2", "not UTF-8")

    @pytest.mark.parametrize("codec", ["utf-16", "utf-16-be"])
    def test_utf16(self, codec: str, openea: Path) -> None:
        put(openea / "ent_links", "\ufeff".encode(codec) + "a\tb\n".encode("utf-16-le"))
        refuse(openea, "ent_links:1", "UTF-16")

    def test_nul_byte(self, openea: Path) -> None:
        put(openea / "ent_links", "a\tb\nc\td\0\n")
        refuse(openea, "ent_links:2", "NUL")

    @pytest.mark.parametrize(("form", "name"), EVERY_TEXT_FILE)
    def test_byte_order_mark_and_crlf_change_nothing(self, form: str, name: str, tmp_path: Path) -> None:
        WRITERS[form][1](tmp_path, small_sample())
        plain = load_task(tmp_path)
        path = tmp_path / name
        path.write_bytes(b"\xef\xbb\xbf" + re.sub(rb"\r?\n", b"\r\n", path.read_bytes()))
        again = load_task(tmp_path)
        assert again.fingerprint == plain.fingerprint
        assert again.train_links.tolist() == plain.train_links.tolist()

    @pytest.mark.parametrize(("form", "name"), EVERY_TEXT_FILE)
    @pytest.mark.parametrize("last", [b"", b"\r"])
    def test_line_ends_of_old_mac_programs_change_nothing(self, form: str, name: str, last: bytes, tmp_path: Path) -> None:
        WRITERS[form][1](tmp_path, small_sample())
        plain = load_task(tmp_path).fingerprint
        path = tmp_path / name
        path.write_bytes(re.sub(rb"\r?\n", b"\r", path.read_bytes().rstrip(b"\r\n")) + last)
        assert load_task(tmp_path).fingerprint == plain

    def test_a_file_with_line_ends_of_both_kinds(self, openea: Path) -> None:
        put(openea / "ent_links", "http://left.org/Rome\thttp://right.org/Rome\rhttp://left.org/Bern\thttp://right.org/Bern\n")
        refuse(openea, "ent_links:1", "line ends of old Mac programs")

    @pytest.mark.parametrize(("form", "name"), EVERY_TEXT_FILE)
    def test_missing_final_newline_changes_nothing(self, form: str, name: str, tmp_path: Path) -> None:
        WRITERS[form][1](tmp_path, small_sample())
        plain = load_task(tmp_path)
        path = tmp_path / name
        path.write_bytes(path.read_bytes().rstrip(b"\r\n"))
        assert load_task(tmp_path).fingerprint == plain.fingerprint


class TestIds:
    @pytest.mark.parametrize("bad", ["x", "1.0", "-1", "１", "1_0", " 1", "²", "9" * 19, "9" * 4000])
    @pytest.mark.parametrize(
        ("name", "row"), [("ent_ids_1", "{}\tname"), ("triples_1", "{}\t0\t2"), ("triples_1", "0\t{}\t2"), ("ref_ent_ids", "0\t{}")]
    )
    def test_not_a_number(self, name: str, row: str, bad: str, dbp15k: Path) -> None:
        path = dbp15k / name
        lines = path.read_text().splitlines()
        put(path, "\n".join([*lines, row.format(bad)]))
        refuse(dbp15k, f"{name}:{len(lines) + 1}", "expected a whole number")

    def test_the_same_id_twice(self, dbp15k: Path) -> None:
        put(dbp15k / "ent_ids_1", (dbp15k / "ent_ids_1").read_text() + "0\tagain\n")
        refuse(dbp15k, "ent_ids_1:7", "id 0 is repeated here")

    def test_unknown_entity_in_a_triple(self, dbp15k: Path) -> None:
        put(dbp15k / "triples_1", "0\t0\t2\n0\t0\t98\n")
        refuse(dbp15k, "triples_1:2", "tail id 98 is not in ent_ids_1")

    @pytest.mark.parametrize("identifier", ["", " ", "\u3000", "x" * 5000, "a\x07b"])
    def test_no_identifier(self, identifier: str, openea: Path) -> None:
        put(openea / "rel_triples_1", f"a\tr\tb\n{identifier}\tr\tb\n")
        refuse(openea, "rel_triples_1:2", "correct or remove this line")


class TestLinks:
    def test_unknown_id(self, dbp15k: Path) -> None:
        put(dbp15k / "ref_ent_ids", "0\t1\n2\t99\n")
        refuse(dbp15k, "ref_ent_ids:2", "target id 99 is not in ent_ids_2")

    def test_unknown_identifier_becomes_an_isolated_entity(self, openea: Path) -> None:
        put(openea / "ent_links", (openea / "ent_links").read_text() + "http://left.org/Rom\thttp://right.org/Rome\n")
        task = load_task(openea)
        assert codes(task)["unknown-link-entities"] == 1
        message = next(finding.message for finding in task.findings if finding.code == "unknown-link-entities")
        assert message == "1 linked entity is not in rel_triples_1; it was added as an entity without triples."
        assert task.source.degrees[task.source.index["http://left.org/Rom"]] == 0

    def test_all_unknown(self, openea: Path) -> None:
        for name in ("ent_links", "721_5fold/1/train_links", "721_5fold/1/test_links"):
            put(openea / name, "Rome\thttp://right.org/Rome\n")
        refuse(openea, "721_5fold/1/train_links", "no source entity of these links (the first is 'Rome') is in the source graph")

    def test_swapped_columns(self, openea: Path) -> None:
        swapped = tabbed([(right, left) for left, right in small_sample().links])
        for name in ("ent_links", "721_5fold/1/train_links", "721_5fold/1/test_links"):
            put(openea / name, swapped)
        refuse(openea, "721_5fold/1/train_links", "columns of these links are swapped")

    def test_duplicates_are_dropped(self, openea: Path) -> None:
        path = openea / "721_5fold/1/train_links"
        put(path, path.read_text() * 3)
        task = load_task(openea)
        assert len(task.train_links) == 2
        assert codes(task)["duplicate-links"] == 4

    def test_a_single_pair_works(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "links.csv", "http://left.org/Rome,http://right.org/Rome\n")
        task = load_task(tmp_path, DataConfig(valid_ratio=0.5))
        assert (len(task.train_links), len(task.valid_links), len(task.test_links)) == (1, 0, 0)

    @pytest.mark.parametrize("form", WRITERS)
    def test_no_training_links_where_that_is_asked_for(self, form: str, tmp_path: Path) -> None:
        """All links then test what training starts from names and values."""
        WRITERS[form][1](tmp_path, small_sample())
        task = load_task(tmp_path, DataConfig(train_ratio=0.0))
        assert (len(task.train_links), len(task.test_links)) == (0, 6)

    @pytest.mark.parametrize(("form", "pattern"), [("csv", "links.csv"), ("parquet", "links.parquet"), ("openea", "721*/*/*")])
    def test_no_links_at_all(self, form: str, pattern: str, tmp_path: Path) -> None:
        WRITERS[form][1](tmp_path, small_sample())
        for path in [*tmp_path.glob(pattern), *tmp_path.glob("ent_links")]:
            path.unlink()
        for folder in tmp_path.glob("721_5fold"):
            shutil.rmtree(folder)
        task = load_task(tmp_path)
        assert not any(map(len, task.all_links()))
        assert task.source.num_entities

    def test_a_file_that_may_hold_the_links_is_asked_about(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        (tmp_path / "links.csv").rename(tmp_path / "third.csv")
        refuse(tmp_path, "", "a links file (found third.csv)")

    def test_only_test_links(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        (tmp_path / "links.csv").rename(tmp_path / "test_links.csv")
        put(tmp_path / "test_links.csv", "http://left.org/Rome,http://right.org/Rome\n")
        refuse(tmp_path, "", "none as train")

    def test_unknown_word_for_a_part(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "links.csv", "source,target,split\na,b,train\nc,d,trian\n")
        refuse(tmp_path, "links.csv:3", "found 'trian'")


class TestGraphs:
    @pytest.mark.parametrize("name", ["source.nt", "target.ttl"])
    def test_one_graph_empty(self, name: str, tmp_path: Path) -> None:
        WRITERS["rdf"][1](tmp_path, small_sample())
        put(tmp_path / name, '<http://left.org/Rome> <http://left.org/name> "Rome" .\n')
        refuse(tmp_path, name, "no relation triples")

    def test_relations_without_triples_are_kept_and_reported(self, dbp15k: Path) -> None:
        put(dbp15k / "rel_ids_1", "0\tnear\n77\tunused\n")
        assert load_task(dbp15k).source.relations == ("near", "unused")

    def test_duplicate_triples_are_dropped(self, openea: Path) -> None:
        path = openea / "rel_triples_2"
        put(path, path.read_text() + path.read_text())
        task = load_task(openea)
        assert len(task.target.triples) == 6
        assert codes(task)["duplicate-triples"] == 6

    def test_line_of_ten_megabytes(self, openea: Path) -> None:
        put(openea / "rel_triples_1", f"a\tr\tb\n{'x' * 10_000_000}\tr\tb\n")
        refuse(openea, "rel_triples_1:2", "10,000,000 characters long")
        put(openea / "rel_triples_1", f"a\tr\tb\n{'x' * 10_000_000}\n")
        refuse(openea, "rel_triples_1:2", "found 1")

    @pytest.mark.parametrize("form", ["openea", "csv"])
    def test_literal_of_ten_megabytes(self, form: str, tmp_path: Path) -> None:
        WRITERS[form][1](tmp_path, small_sample())
        separator, name = ("\t", "attr_triples_1") if form == "openea" else (",", "attributes_1.csv")
        put(tmp_path / name, separator.join(("http://left.org/Rome", "name", "x" * 10_000_000)))
        task = load_task(tmp_path)
        assert len(task.source.attributes["value"].iloc[0]) == 10_000_000
        assert len(task.source.labels[task.source.index["http://left.org/Rome"]]) <= 500


class TestOtherFormats:
    def test_a_folder_of_something_else(self, tmp_path: Path) -> None:
        put(tmp_path / "photo.jpg", b"\xff\xd8")
        with pytest.raises(DataError) as caught:
            load_task(tmp_path)
        for words in ("openea needs rel_triples_1", "dbp15k needs ent_ids_1", "tables needs one file for the source graph", "rdf needs"):
            assert words in str(caught.value)

    def test_an_unknown_format(self, openea: Path) -> None:
        with pytest.raises(ConfigError, match="unknown data format 'spreadsheet'; choose one of openea, dbp15k, tables, rdf, ontology, exports"):
            load_task(openea, DataConfig(format="spreadsheet"))

    @pytest.mark.parametrize("form", WRITERS)
    def test_a_format_that_does_not_fit(self, form: str, tmp_path: Path) -> None:
        WRITERS[form][1](tmp_path, small_sample())
        for reader in {"openea", "dbp15k", "tables", "rdf"} - {WRITERS[form][0]}:
            with pytest.raises(DataError, match=r"missing|could not be found"):
                load_task(tmp_path, DataConfig(format=reader))

    def test_two_files_for_one_graph(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "more_triples_1.csv", "a,b,c\n")
        with pytest.raises(DataError, match=r"source graph \(found more_triples_1.csv and triples_1.csv\)"):
            load_task(tmp_path)

    def test_no_parquet(self, tmp_path: Path) -> None:
        WRITERS["parquet"][1](tmp_path, small_sample())
        put(tmp_path / "links.parquet", "source,target\n")
        refuse(tmp_path, "links.parquet", "no readable Parquet file")

    def test_damaged_column_names_in_parquet(self, tmp_path: Path) -> None:
        WRITERS["parquet"][1](tmp_path, small_sample())
        path = tmp_path / "triples_1.parquet"
        path.write_bytes(path.read_bytes().replace(b"relation", b"\xffelation"))
        refuse(tmp_path, "triples_1.parquet", "no readable Parquet file")

    def test_unclosed_quotation_mark(self, tmp_path: Path) -> None:
        WRITERS["csv"][1](tmp_path, small_sample())
        put(tmp_path / "links.csv", 'source,target\n"a,b\n')
        refuse(tmp_path, "links.csv:2", "not valid CSV")


class TestDamagedGzip:
    @pytest.mark.parametrize("form", [form for form in WRITERS if form != "sqlite"])  # databases are never packed
    def test_cut_short(self, form: str, tmp_path: Path) -> None:
        WRITERS[form][1](tmp_path, small_sample(), gz=True)
        victim = min(tmp_path.glob("*_1*.gz"), default=next(tmp_path.glob("source.*.gz"), None))
        victim.write_bytes(victim.read_bytes()[:-9])
        refuse(tmp_path, victim.name, "gzip file is damaged")

    def test_changed_inside(self, tmp_path: Path) -> None:
        write_openea(tmp_path, small_sample(), gz=True)
        path = tmp_path / "rel_triples_1.gz"
        data = bytearray(path.read_bytes())
        data[20:24] = b"\xff\xff\xff\xff"
        path.write_bytes(bytes(data))
        refuse(tmp_path, "rel_triples_1.gz", "gzip file is damaged")

    def test_gzipped_under_a_plain_name(self, openea: Path) -> None:
        path = openea / "rel_triples_1"
        path.write_bytes(gzip.compress(path.read_bytes()))
        assert len(load_task(openea).source.triples) == 6
