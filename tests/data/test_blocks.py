"""Files that are read in blocks give what reading them whole gives, wherever the blocks are cut and whichever way a block goes."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine.config import DataConfig
from engine.data import files as blocks
from engine.data import load_task
from engine.data.files import read_blocks
from engine.data.rows import read_tabbed, read_tabbed_literals
from engine.data.tabular import DECLARED_ROLES, open_table
from engine.data.texts import Texts
from engine.errors import DataError
from tests.data.writers import put, small_sample, tabbed, write_openea
from tests.effort import examples
from tests.reference import ingestion as reference

NAMES = ("head", "relation", "tail")
PIECES = [
    "a",
    "é",
    "漢",
    "𝄞",
    "\t",
    "\t",
    "\n",
    "\r\n",
    "\r",
    '"',
    '""',
    ",",
    "#",
    " ",
    "\ufeff",
    "\x1f",
    "\x7f",
    "\x85",
    "\u2028",
    "\x00",
    "%",
    "\\",
]
JUNK = st.lists(st.sampled_from(PIECES), max_size=30).map(lambda pieces: "".join(pieces).encode())
DAMAGE = st.one_of(JUNK, JUNK, JUNK, st.binary(max_size=4))
SIZES = st.tuples(st.sampled_from([4, 7, 40, 2**16]), st.sampled_from([3, 17, 64, 2**24]))
BODY = settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def lines(delimiter: str, width: int, *, quoted: bool = False) -> st.SearchStrategy[bytes]:
    """Whole lines with nothing odd about them, now and then in quotation marks."""
    cell = st.text(st.sampled_from("abcé漢#. "), min_size=1, max_size=4).map(lambda text: f"x{text}")
    if quoted:
        cell = st.one_of(cell, cell.map(lambda text: f'"{text}"'), cell.map(lambda text: f'"{text}{delimiter}"'), st.just(""), st.just('""'))
    ends = st.sampled_from(["\n", "\n", "\n", "\r\n"])
    line = st.tuples(st.lists(cell, min_size=width, max_size=width), ends).map(lambda made: delimiter.join(made[0]) + made[1])
    return st.lists(line, max_size=12).map(lambda made: "".join(made).encode())


def files(delimiter: str, width: int, *, quoted: bool = False) -> st.SearchStrategy[bytes]:
    plain = lines(delimiter, width, quoted=quoted)
    return st.one_of(plain, st.tuples(plain, DAMAGE, plain).map(b"".join), st.tuples(st.just(b"\xef\xbb\xbf"), plain, plain).map(b"".join))


@contextmanager
def cut(sizes: tuple[int, int]) -> Iterator[None]:
    with mock.patch.object(blocks, "FIRST_BLOCK", sizes[0]), mock.patch.object(blocks, "BLOCK", sizes[1]):
        yield


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def rows_of(columns: Sequence[Texts], lines: Sequence[int]) -> list[reference.Row]:
    return [(int(line), list(cells)) for line, *cells in zip(lines, *columns, strict=True)]


def same_or_both_refused(expected: Callable[[], object], found: Callable[[], object]) -> None:
    try:
        wanted = expected()
    except reference.RefusedError:
        with pytest.raises(DataError):
            found()
        return
    assert found() == wanted


class TestEveryFormat:
    @BODY
    @given(files("\t", 3), SIZES)
    @example(b"a\tb\tc\n\xef\xbb\xbfd\te\tf\n", (4, 3))
    @example(b"a\tb\tc\r\r\n", (4, 3))
    @example(b"a\tb\tc\rd\te\tf", (4, 3))
    @example(b"a\tb\tc\n\t\t\n", (2**16, 2**24))
    def test_tabbed(self, tmp_path: Path, content: bytes, sizes: tuple[int, int]) -> None:
        path = written(tmp_path, "rows", content)

        def found() -> object:
            with cut(sizes):
                rows = read_tabbed(path, NAMES)
            return rows_of(rows.columns, rows.lines)

        same_or_both_refused(lambda: reference.tabbed(content, 3), found)

    @BODY
    @given(files("\t", 3), SIZES)
    @example(b"a\tb\t\nc\td\te\tf\n\t\t\n", (4, 3))
    def test_literals(self, tmp_path: Path, content: bytes, sizes: tuple[int, int]) -> None:
        path = written(tmp_path, "attributes", content)

        def found() -> object:
            with cut(sizes):
                rows = read_tabbed_literals(path, NAMES)
            return rows_of(rows.columns, rows.lines), rows.skipped

        same_or_both_refused(lambda: reference.literals(content), found)

    @BODY
    @given(st.one_of(files("\t", 1), files("\t", 2)), SIZES)
    @example(b"a\nb\n\nc\n", (4, 2**24))
    @example(b"# a\n\n#b\nc\td\n#e\tf\n", (4, 3))
    @example(b"xa\txa\n\x1f\x8bxa\txa\n", (4, 3))
    @example(b"a\tb\nx\x01\tb\n", (4, 3))
    @example("x\u0691\tb\nx\u0691\tc\n".encode(), (4, 3))
    def test_tsv(self, tmp_path: Path, content: bytes, sizes: tuple[int, int]) -> None:
        same_or_both_refused(lambda: reference.tsv(content), lambda: table_rows(written(tmp_path, "t.tsv", content), sizes))

    @BODY
    @given(st.one_of(files(",", 1, quoted=True), files(",", 2, quoted=True)), SIZES)
    @example(b'"a\nb",c\n"d,e","f"\n', (4, 3))
    @example(b'a,"b""c"\nd,e\n', (4, 2**24))
    @example(b'h,i\n"a"x,b\n', (4, 2**24))
    def test_csv(self, tmp_path: Path, content: bytes, sizes: tuple[int, int]) -> None:
        def expected() -> object:
            rows = reference.comma_separated(content)
            # The line that a row begins in is counted in LF from block to block, so stray CR may shift it.
            return [cells for _, cells in rows] if b"\r" in content.replace(b"\r\n", b"") else rows

        def found() -> object:
            rows = table_rows(written(tmp_path, "t.csv", content), sizes)
            return [cells for _, cells in rows] if b"\r" in content.replace(b"\r\n", b"") else rows

        if b";" not in content:
            same_or_both_refused(expected, found)


def table_rows(path: Path, sizes: tuple[int, int]) -> list[reference.Row]:
    with cut(sizes):
        table = open_table(path)
    columns = [table.column(position, DECLARED_ROLES[0], False) for position in range(len(table.names))]
    return rows_of(columns, table.lines)


IDENTIFIERS = st.sampled_from(["a", "b", "Ä", "é", "𝄞", "漢字", "z%20", "http://x.org/a b", "A", "'=1", '"q"', "#n"])
TRIPLES = st.lists(st.tuples(IDENTIFIERS, st.sampled_from(["r", "s", "é"]), IDENTIFIERS), min_size=1, max_size=20)
ATTRIBUTES = st.lists(st.tuples(IDENTIFIERS, st.sampled_from(["name", "x"]), st.sampled_from(["1", "", "  ", "ü\tv", '"w"@en'])), max_size=8)
LINKS = st.lists(st.tuples(IDENTIFIERS, st.one_of(IDENTIFIERS, st.just("nowhere"))), min_size=1, max_size=12)
ENDS = st.sampled_from(["\n", "\r\n", "\n\n"])


class TestTasks:
    @settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.tuples(TRIPLES, TRIPLES), st.tuples(ATTRIBUTES, ATTRIBUTES), LINKS, LINKS, ENDS, SIZES)
    def test_graphs_links_and_fingerprint(
        self,
        tmp_path: Path,
        triples: tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]],
        attributes: tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]],
        links: list[tuple[str, str]],
        unsure: list[tuple[str, str]],
        end: str,
        sizes: tuple[int, int],
    ) -> None:
        for number in (0, 1):
            put(tmp_path / f"rel_triples_{number + 1}", tabbed(triples[number]).replace("\n", end))
            put(tmp_path / f"attr_triples_{number + 1}", tabbed(attributes[number]).replace("\n", end))
        put(tmp_path / "ent_links", tabbed(links).replace("\n", end))
        put(tmp_path / "unsure_links", tabbed(unsure).replace("\n", end))
        graphs = [reference.graph_of(triples[side], attributes[side], [pair[side] for pair in [*links, *unsure]]) for side in (0, 1)]
        described = [{end for head, _, tail in triples[side] for end in (head, tail)} | {row[0] for row in attributes[side]} for side in (0, 1)]
        straight, crossed = ([sum(pair[side] in described[side ^ flip] for pair in links) for side in (0, 1)] for flip in (0, 1))
        swapped = all(there > here for there, here in zip(crossed, straight, strict=True))
        if any(one.startswith("'") for pair in [*links, *unsure] for one in pair):
            return  # may be the defused form of another identifier
        with cut(sizes):
            if swapped or not all(straight):
                with pytest.raises(DataError, match="swapped" if swapped else "check the identifiers"):
                    load_task(tmp_path)
                return
            task = load_task(tmp_path, DataConfig(train_ratio=0.5))
        for graph, wanted in zip((task.source, task.target), graphs, strict=True):
            assert list(graph.entities) == wanted.entities
            assert list(graph.relations) == wanted.relations
            assert list(map(tuple, graph.triples.tolist())) == wanted.triples
            assert list(graph.attributes.itertuples(index=False, name=None)) == wanted.attributes
        numbered = [{(graphs[0].entities.index(left), graphs[1].entities.index(right)) for left, right in pairs} for pairs in (links, unsure)]
        known, doubtful = sorted(numbered[0]), sorted(numbered[1] - numbered[0])
        measured = [tuple(pair) for part in (task.train_links, task.valid_links, task.test_links) for pair in part.tolist()]
        untested = set(known) - set(measured)  # an end of them is in no triple, so they are probable pairs
        assert sorted([*measured, *untested]) == known
        assert all(0 in (task.source.degrees[source], task.target.degrees[target]) for source, target in untested)
        assert sorted(map(tuple, task.unsure_links.tolist())) == sorted([*doubtful, *untested])
        assert task.fingerprint == reference.fingerprint_of(graphs, known, doubtful)


LONG = "".join(f"e{number}\tr{number % 3}\te{number * 7 % 500}\n" for number in range(2000))


class TestLargeFiles:
    @pytest.mark.parametrize(
        ("line", "words"),
        [
            (b"a\tb", "rel_triples_1:1501: expected 3 columns separated by tabs (head, relation, tail), found 2"),
            (b"a\tb\tc\td", "rel_triples_1:1501: expected 3 columns separated by tabs (head, relation, tail), found 4"),
            (b"a\t\tc", "rel_triples_1:1501: the relation is empty"),
            (b"a\tb\xc2\xa0\xe2\x80\xa8\tc\r", "rel_triples_1:1501: the tail holds a control character"),
            (b"a\tb\t" + 4097 * b"c", "rel_triples_1:1501: the tail is 4,097 characters long"),
            (b"a\tb\xff\tc", "rel_triples_1:1501: these bytes are not UTF-8"),
            (b"a\tb\x00\tc", "rel_triples_1:1501: there is a NUL byte"),
            (b"a\tb\x0b\tc", "rel_triples_1:1501: the relation holds a control character"),
        ],
    )
    @pytest.mark.parametrize("gz", [False, True])
    def test_what_is_wrong_has_its_line(self, line: bytes, words: str, gz: bool, tmp_path: Path) -> None:
        sample = small_sample()
        write_openea(tmp_path, sample)
        good = LONG.encode().splitlines(keepends=True)
        ending = b"\r\n" if line.endswith(b"\r") else b"\n"
        (tmp_path / "rel_triples_1").unlink()
        put(tmp_path / "rel_triples_1", b"".join([*good[:1500], line + ending, *good[1500:]]), gz=gz)
        with cut((64, 4096)), pytest.raises(DataError) as caught:
            load_task(tmp_path)
        assert words.replace("rel_triples_1:", "rel_triples_1.gz:" if gz else "rel_triples_1:") in str(caught.value)

    def test_blocks_are_whole_lines_and_say_where_they_begin(self, tmp_path: Path) -> None:
        path = put(tmp_path / "lines", LONG, gz=True)
        with cut((64, 1000)):
            found = list(read_blocks(path))
        assert len(found) > 10
        assert b"".join(block.content for block in found) == LONG.encode()
        assert [block.line for block in found] == [1 + sum(one.content.count(b"\n") for one in found[:number]) for number in range(len(found))]

    def test_order_and_repetition_of_lines_do_not_matter(self, tmp_path: Path) -> None:
        tasks = []
        for number in (0, 1):
            folder = tmp_path / str(number)
            rows = LONG.splitlines(keepends=True)
            random.Random(number).shuffle(rows)
            for side in "12":
                put(folder / f"rel_triples_{side}", "".join(rows + rows[: 100 * number]), gz=bool(number))
            put(folder / "ent_links", tabbed([(f"e{one}", f"e{one}") for one in range(0, 500, 7)]))
            with cut((100, 10_000)):
                tasks.append(load_task(folder, seed=3))
        assert tasks[0].fingerprint == tasks[1].fingerprint
        assert tasks[0].train_links.tolist() == tasks[1].train_links.tolist()
        assert [finding.count for finding in tasks[1].findings if finding.code == "duplicate-triples"] == [100, 100]

    def test_a_line_without_end(self, tmp_path: Path) -> None:
        path = tmp_path / "line.gz"
        path.write_bytes(gzip.compress(random.Random(1).randbytes(4000).hex().encode()))
        with mock.patch.object(blocks, "MAX_BYTES", 2000), cut((64, 64)), pytest.raises(DataError, match="line of more than"):
            list(read_blocks(path))
