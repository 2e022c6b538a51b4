"""Tables as people make them: delimiters, lines in and rows out, columns in front, blanks, values of all types."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.data import READERS, inspect_task, load_task, render_inspection
from engine.data import files as blocks
from engine.data.tabular import FOUND_OUT, LINK_ROLES, TRIPLE_ROLES, Layout, Role, read_table
from engine.errors import DataError
from engine.importing import Corrections, folder_material, glance, preview
from tests.data.writers import WRITERS, small_sample
from tests.effort import examples
from tests.importing.conftest import files

KG1 = "head,relation,tail\na1,near,b1\nb1,near,c1\nc1,in,a1\n"
KG2 = "head,relation,tail\na2,nah,b2\nb2,nah,c2\nc2,in,a2\n"
LINKS = "source,target\na1,a2\nb1,b2\nc1,c2\n"


def folder(path: Path, **contents: str | bytes) -> Path:
    """Two graphs and links, and what a test puts in their place or beside them: ``kg1__tsv`` is the file kg1.tsv."""
    path.mkdir(exist_ok=True)
    for key, content in ({"kg1": KG1, "kg2": KG2, "links": LINKS} | contents).items():
        stem, _, ending = key.partition("__")
        (path / f"{stem}.{ending or 'csv'}").write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_gzip_file_of_several_members_is_read_whole(tmp_path: Path) -> None:
    content = KG1.encode()
    (tmp_path / "kg1.csv.gz").write_bytes(b"".join(map(gzip.compress, (content[:3], b"", content[3:30], content[30:]))))
    assert list(read_table(tmp_path / "kg1.csv.gz", TRIPLE_ROLES)["tail"].columns[0]) == ["b1", "c1", "a1"]


@pytest.mark.parametrize("name", ["._kg1.csv", ".~lock.kg1.csv#", "__MACOSX", "Thumbs.db", "desktop.ini", ".kg1.csv"])
def test_what_programs_leave_behind_is_no_data(name: str, tmp_path: Path) -> None:
    plain = load_task(folder(tmp_path / "data"))
    (tmp_path / "data" / name).write_bytes(b"\0\5\26\7")
    assert load_task(tmp_path / "data").fingerprint == plain.fingerprint
    found = preview(folder_material(tmp_path / "data"), Corrections())
    assert found.fingerprint == plain.fingerprint
    assert {file.name for file in found.files} == {"kg1.csv", "kg2.csv", "links.csv"}


def cells(path: Path, content: str | bytes, *roles: Role, layout: Layout = FOUND_OUT) -> list[list[str]]:
    """Rows of the columns that play these roles."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    found = read_table(path, roles or TRIPLE_ROLES, layout)
    return [list(row) for row in zip(*(found[role.name].columns[0] for role in roles or TRIPLE_ROLES), strict=True)]


PROSE = "Paris, Île-de-France, France, Europe"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"Q1;isIn;{PROSE}\nQ2;isIn;Rome, Italy\n", [["Q1", "isIn", PROSE], ["Q2", "isIn", "Rome, Italy"]]),
        (f"Q1;isIn;{PROSE}\nQ2;isIn;{PROSE}\n", [["Q1", "isIn", PROSE]] * 1 + [["Q2", "isIn", PROSE]]),
        ("Q1;isIn;Paris, IDF, France\nQ2;isIn;Rome, Lazio, Italy\n", [["Q1", "isIn", "Paris, IDF, France"], ["Q2", "isIn", "Rome, Lazio, Italy"]]),
        ("Q1;isIn;a,b,c\nQ2;isIn;d,e,f\n", [["Q1", "isIn", "a,b,c"], ["Q2", "isIn", "d,e,f"]]),
        (
            "Paris, France;isIn;Europe, World\nRome, Italy;isIn;Europe, World\n",
            [["Paris, France", "isIn", "Europe, World"], ["Rome, Italy", "isIn", "Europe, World"]],
        ),
        ("Q1,isIn,a;b;c\nQ2,isIn,d;e;f\n", [["Q1", "isIn", "a;b;c"], ["Q2", "isIn", "d;e;f"]]),
        ("head;relation;tail\nQ1;isIn;a,b\n", [["Q1", "isIn", "a,b"]]),
        ("Q1|isIn|a,b;c\nQ2|isIn|d,e;f\n", [["Q1", "isIn", "a,b;c"], ["Q2", "isIn", "d,e;f"]]),
        ("Q1\tisIn\ta,b,c,d\nQ2\tisIn\te,f,g,h\n", [["Q1", "isIn", "a,b,c,d"], ["Q2", "isIn", "e,f,g,h"]]),
        ('Q1;isIn;"a;b"\nQ2;isIn;"c, d; e"\n', [["Q1", "isIn", "a;b"], ["Q2", "isIn", "c, d; e"]]),
        ("sep=;\nQ1;isIn;a,b\n", [["Q1", "isIn", "a,b"]]),
        ("\ufeffsep=;\r\nQ1;isIn;a\r\n", [["Q1", "isIn", "a"]]),
        ('"sep=,"\nhead,relation,tail\nQ1,isIn,a;b\n', [["Q1", "isIn", "a;b"]]),
        ("SEP=\t\nQ1\tisIn\ta,b\n", [["Q1", "isIn", "a,b"]]),
        ("sep=^\nQ1^isIn^a,b\n", [["Q1", "isIn", "a,b"]]),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_the_delimiter_under_which_every_row_has_its_columns_wins(content: str, expected: list[list[str]], zipped: bool, tmp_path: Path) -> None:
    data = gzip.compress(content.encode()) if zipped else content.encode()
    assert cells(tmp_path / ("kg1.csv.gz" if zipped else "kg1.csv"), data) == expected
    material = files(tmp_path, graph_1=data, graph_2=KG2)
    (understood, _) = glance(material, Corrections())
    assert understood.table is not None
    assert [[row[at] for at in (0, 1, 2)] for row in understood.table.sample[: len(expected)]] == expected[:5], "the import page shows the same"


def test_a_row_of_another_length_does_not_change_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "kg1.csv").write_text("a,near,b\n" * 20 + "a,near\n" + "c,near,d;e;f\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"kg1.csv:21: expected 3 columns"):
        read_table(tmp_path / "kg1.csv", TRIPLE_ROLES)


@given(cell=st.lists(st.text(st.sampled_from("ab é漢.-"), min_size=1, max_size=5).map("x{}".format), min_size=6, max_size=30))
@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_plain_tables_are_read_with_any_delimiter(delimiter: str, cell: list[str], tmp_path: Path) -> None:
    rows = [cell[at : at + 3] for at in range(0, len(cell) - 2, 3)]
    content = "".join(delimiter.join(row) + "\n" for row in rows)
    assert cells(tmp_path / "kg1.csv", content) == rows


def codes(path: Path) -> dict[str, tuple[int, str]]:
    found = inspect_task(load_task(path)).findings
    return {finding.code: (finding.count, finding.message) for finding in found}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("attributes_1", 'e1,label,Zeus\ne2,label,"Heroes\na1,label,Gods\nb1,label,Low"\nc1,label,Sea\n'),
        ("kg1", 'a1,near,b1\nb1,near,"c1\nc1,in,a1\nc1,near,x"\na1,in,c1\n'),
        ("links", 'source,target\na1,a2\nb1,"b2\nc1,c2"\n'),
    ],
)
def test_lines_that_a_lone_quotation_mark_swallows_are_reported(name: str, content: str, tmp_path: Path) -> None:
    path = folder(tmp_path / "data", **{name: content})
    if name == "kg1":  # an entity with a line end in it is refused with its line
        with pytest.raises(DataError, match=r"kg1.csv:2: the tail holds a control character"):
            load_task(path)
    elif name == "links":
        with pytest.raises(DataError, match=r"links.csv:3: the target holds a control character"):
            load_task(path)
    else:
        number, message = codes(path)["swallowed-rows"]
        assert number == 2
        assert message.startswith("attributes_1.csv: 2 separate rows are inside a cell")
        understood = next(file for file in preview(folder_material(path), Corrections()).files if file.role == "attributes 1")
        assert [(one.lines, one.rows, one.used) for one in understood.counts] == [(5, 3, 3)]


def test_texts_of_several_lines_are_counted_and_no_cause_for_alarm(tmp_path: Path) -> None:
    found = codes(folder(tmp_path / "data", attributes_1='entity,attribute,value\na1,note,"One, two, three\nand, then, more"\nb1,label,B\n'))
    assert "swallowed-rows" not in found
    assert found["rows-over-several-lines"] == (1, "attributes_1.csv: 1 row goes on over several lines; 1 line is part of such a row.")


def test_an_unclosed_quotation_mark_is_found_where_it_opens(tmp_path: Path) -> None:
    (tmp_path / "kg1.csv").write_text(KG1 + 'a1,near,"b1\n' + "a1,near,c1\n" * 40, encoding="utf-8")
    with pytest.raises(DataError, match=r"kg1.csv:5: this is not valid CSV .*the row that begins here, which continues to line 45"):
        read_table(tmp_path / "kg1.csv", TRIPLE_ROLES)


@pytest.mark.parametrize("block", [40, 2**16])
def test_lines_in_and_rows_out_agree_for_every_file(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "FIRST_BLOCK", block)
    monkeypatch.setattr(blocks, "BLOCK", block)
    path = folder(
        tmp_path / "data",
        kg1="sep=,\n" + KG1 + "\na1,near,b1\n\n",
        links__tsv="#about: these\n#more\nsource\ttarget\na1\ta2\nb1\tb2\nb1\tb2\nc1\tc2\n",
        attributes_1='entity,attribute,value\na1,label,A\na1,label,A\nb1,label," "\nb1,note,"x\n\ny"\n',
    )
    (path / "links.csv").unlink()
    counts = {Path(one.file).name: one for one in inspect_task(load_task(path)).files}
    assert {name: (one.lines, one.rows, one.used, one.left_out) for name, one in counts.items()} == {
        "kg1.csv": (6, 4, 3, (("repeated", 1),)),
        "kg2.csv": (4, 3, 3, ()),
        "links.tsv": (7, 4, 3, (("repeated", 1),)),
        "attributes_1.csv": (6, 4, 2, (("repeated, or without a value", 2),)),
    }
    report = render_inspection(inspect_task(load_task(path)))
    assert "1 repeated" in report
    assert "attributes_1.csv" in report


@pytest.mark.parametrize("form", [name for name in WRITERS if name not in ("rdf", "ontology")])
def test_every_file_of_every_format_is_counted(form: str, tmp_path: Path) -> None:
    WRITERS[form][1](tmp_path / "data", small_sample())
    task = load_task(tmp_path / "data")
    read = {path.name for path in READERS[task.format].files(tmp_path / "data")}
    counted = {Path(one.file).name for one in task.files}
    assert {name for name in read if "triples" in name or "links" in name or "ref" in name} <= counted
    assert all(one.rows == one.used + sum(rows for _, rows in one.left_out) and one.lines >= one.rows > 0 for one in task.files)


INDEXED = "0,a1,near,b1\n1,b1,near,c1\n2,c1,in,a1\n"


@pytest.mark.parametrize("content", [INDEXED, ",von,art,nach\n" + INDEXED, "Unnamed: 0,von,art,nach\n1,a1,near,b1\n2,b1,near,c1\n3,c1,in,a1\n"])
def test_an_index_column_in_front_is_left_out(content: str, tmp_path: Path) -> None:
    expected = [["a1", "near", "b1"], ["b1", "near", "c1"], ["c1", "in", "a1"]]
    assert cells(tmp_path / "kg1.csv", content) == expected
    assert codes(folder(tmp_path / "data", kg1=content))["index-column"] == (3, "kg1.csv: the first column counts the rows and was left out.")
    frame = [line.split(",") for line in INDEXED.split()]
    columns = {name: [row[at] for row in frame] for at, name in enumerate(("Spalte", "von", "art", "nach"))}
    pq.write_table(pa.table(columns | {"Spalte": [0, 1, 2]}), tmp_path / "kg1.parquet")
    assert list(read_table(tmp_path / "kg1.parquet", TRIPLE_ROLES)["head"].columns[0]) == ["a1", "b1", "c1"]
    assert cells(tmp_path / "one.csv", "0,a1,a2\n1,b1,b2\n2,c1,c2\n", *LINK_ROLES[:2]) == [["a1", "a2"], ["b1", "b2"], ["c1", "c2"]]


@pytest.mark.parametrize(
    ("content", "roles"),
    [
        ("0,near,5,0.25\n1,near,7,0.5\n2,near,9,1.0\n", TRIPLE_ROLES),  # how sure somebody is
        ("0,near,5,x\n1,near,7,y\n2,in,9,z\n", TRIPLE_ROLES),  # fewer relations than would-be relations
        ("0,105,train\n1,106,train\n2,107,test\n", LINK_ROLES[:2]),
        ("0,105,0.5\n1,106,0.25\n", LINK_ROLES[:2]),
        ("4,a,near,b\n5,c,near,d\n", TRIPLE_ROLES),
    ],
)
def test_numbers_that_may_be_identifiers_stay(content: str, roles: tuple[Role, ...], tmp_path: Path) -> None:
    assert cells(tmp_path / "kg1.csv", content, *roles)[0][0] == content[0]


def test_a_blank_after_the_comma_is_reported_and_can_be_removed(tmp_path: Path) -> None:
    spaced = "a1, near, b1\nb1, near, c1\nc1, in, a1\n"
    path = folder(tmp_path / "data", kg1=spaced)
    assert codes(path)["blanks-around-identifiers"] == (
        3,
        "3 identifiers of the source graph begin or end with a blank; without it, 3 of them would be the same as another one.",
    )
    wrong = preview(folder_material(path), Corrections())
    assert wrong.graphs["source"].summary.entities == 6
    right = Corrections(tables={"graph 1": Layout(trim=True)})
    assert Corrections.from_dict(json.loads(json.dumps(right.to_dict()))) == right
    found = preview(folder_material(path), right)
    assert found.fingerprint == load_task(folder(tmp_path / "plain")).fingerprint
    assert "blanks-around-identifiers" not in {finding.code for finding in found.findings}
    quoted = 'a1, "near", "b, 1"\n'
    assert cells(tmp_path / "kg1.csv", quoted, layout=Layout(trim=True)) == [["a1", "near", "b, 1"]]
