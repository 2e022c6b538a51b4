"""A data folder of the test's own, and small data sets in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.importing import Material, Role, SourceFile


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where imports are stored."""
    folder = tmp_path / "data"
    monkeypatch.setenv("DUAL_AMN_DATA", str(folder))
    return folder


NAMES = ("Rome", "Paris", "Berlin", "Oslo", "Bern", "Vienna", "Lisbon", "Madrid")
GRAPH_1 = "head,relation,tail\n" + "".join(f"a:{one},near,a:{other}\n" for one, other in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))
GRAPH_2 = "head,relation,tail\n" + "".join(f"b:{one},nah,b:{other}\n" for one, other in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))
LINKS = "source,target\n" + "".join(f"a:{name},b:{name}\n" for name in NAMES)
SWAPPED = "source,target\n" + "".join(f"b:{name},a:{name}\n" for name in NAMES)


def files(folder: Path, **contents: str | bytes) -> Material:
    """Files by role: ``graph_1="..."`` is the file graph_1.csv in the role "graph 1"; ``graph_1__ttl`` has another ending."""
    found = []
    for key, content in contents.items():
        stem, _, ending = key.partition("__")
        name = f"{stem}.{ending or 'csv'}"
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        role: Role = stem.replace("_", " ")  # type: ignore[assignment]
        found.append(SourceFile(path, name, role))
    return Material(tuple(found))
