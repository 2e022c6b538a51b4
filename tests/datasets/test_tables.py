"""Tables as people make them: what stands between the cells, lines in and rows out, columns in front, blanks, values of all types."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from engine.datasets import load_task
from engine.datasets.tabular import TRIPLE_ROLES, read_table
from engine.importing import Corrections, folder_material, preview

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
