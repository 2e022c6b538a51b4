"""Lines of the threat model (docs/threat-model.md) that are about all of the code, not about one part of it."""

from __future__ import annotations

import ast
import csv
import io
import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from app.components import csv_bytes
from engine.config import DataConfig
from engine.data import load_task
from engine.data.dialects import FORMULA_STARTS
from engine.errors import EngineError
from engine.exporting import FORMATS, ExportSelection, Fold, FoldOptions, pairs_to_export, value_conflicts, write_export, write_plain, write_relations
from engine.runs.view import RunView
from tests.conftest import ROOT
from tests.run_fixture import MemoryRun, sample_run

CODE = sorted(path for folder in ("engine", "app") for path in (ROOT / folder).rglob("*.py"))
RUNS_WHAT_IT_READS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "yaml", "code", "runpy"}
RUNS_A_TEXT = {"eval", "exec", "compile", "__import__"}
RUNS_AN_ATTRIBUTE = {
    ("torch", "load"),
    ("torch", "save"),
    ("os", "system"),
    ("os", "popen"),
    ("pd", "read_pickle"),
    ("pandas", "read_pickle"),
    ("jit", "load"),
}
CONNECTS = {"urllib.request", "http.client", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "telnetlib", "urllib3"}
FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "＝1+1", " =1", "\u200b=1"]


def imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and name of each import of a file."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.lineno, node.module or ""
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def running(node: ast.AST) -> Iterator[str]:
    """What of a call would run what was read."""
    if not isinstance(node, ast.Call):
        return
    if isinstance(node.func, ast.Name) and node.func.id in RUNS_A_TEXT:
        yield node.func.id
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and (node.func.value.id, node.func.attr) in RUNS_AN_ATTRIBUTE:
        yield f"{node.func.value.id}.{node.func.attr}"
    for keyword in node.keywords:
        if keyword.arg in ("shell", "allow_pickle") and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False):
            yield str(keyword.arg)


@dataclass(frozen=True)
class Threats:
    """Lines of a file with what would run what was read, and with what would ask other machines."""

    runs: tuple[str, ...]
    asks: tuple[str, ...]

    @classmethod
    def of(cls, source: str) -> Threats:
        nodes = list(ast.walk(ast.parse(source)))
        named = list(imports(nodes))
        runs = [f"{line}: {name}" for line, name in named if name.partition(".")[0] in RUNS_WHAT_IT_READS]
        runs += [f"{node.lineno}: {found}" for node in nodes if isinstance(node, ast.Call) for found in running(node)]
        return cls(tuple(runs), tuple(f"{line}: {name}" for line, name in named if name in CONNECTS or name.partition(".")[0] in CONNECTS))


@pytest.fixture(scope="module")
def threats() -> dict[str, Threats]:
    """By file of the engine and the app."""
    return {path.relative_to(ROOT).as_posix(): Threats.of(path.read_text(encoding="utf-8")) for path in CODE}


def test_nothing_runs_what_it_reads(threats: dict[str, Threats]) -> None:
    """No pickles, no evaluation of texts, no shell: neither in the engine nor in the app."""
    assert not {path: found.runs for path, found in threats.items() if found.runs}


def test_nothing_asks_other_machines(threats: dict[str, Threats]) -> None:
    """No module can fetch an address. The processes of one training find each other by torch; the service listens."""
    assert not {path: found.asks for path, found in threats.items() if found.asks}


def test_what_is_looked_for_is_found() -> None:
    source = "import pickle\nfrom urllib import request\nimport requests.api\neval(x)\ntorch.load(x)\nrun(x, shell=True)\nrun(x, shell=False)\n"
    found = Threats.of(source)
    assert found.runs == ("1: pickle", "4: eval", "5: torch.load", "6: shell")
    assert found.asks == ("2: urllib.request", "3: requests.api")


ELSEWHERE = "http://127.0.0.1:9/x"
REMOTE = {
    "json-ld context": ("source.jsonld", json.dumps({"@context": ELSEWHERE, "@id": "http://a/x", "http://a/p": {"@id": "http://a/y"}})),
    "owl import": (
        "source.ttl",
        f"@prefix owl: <http://www.w3.org/2002/07/owl#> . <http://a/o> a owl:Ontology ; owl:imports <{ELSEWHERE}> . <http://a/x> a owl:Class .",
    ),
    "dtd": (
        "source.rdf",
        f'<?xml version="1.0"?><!DOCTYPE r SYSTEM "{ELSEWHERE}"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
    ),
    "graphml schema": (
        "source.graphml",
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{ELSEWHERE} {ELSEWHERE}"><graph edgedefault="directed"><node id="x"/><node id="y"/>'
        '<edge source="x" target="y"/></graph></graphml>',
    ),
}


@pytest.mark.parametrize("kind", REMOTE)
def test_readers_open_no_connection(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []

    def refuse(*arguments: Any, **options: Any) -> None:
        tried.append(arguments)
        raise OSError("no connections here")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    name, content = REMOTE[kind]
    (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / name.replace("source", "target")).write_text(content, encoding="utf-8")
    (tmp_path / "links.csv").write_text("source,target\nhttp://a/x,http://a/x\n", encoding="utf-8")
    with suppress(EngineError):
        load_task(tmp_path, DataConfig(), 0)
    assert not tried


def formula_run() -> MemoryRun:
    """A run whose labels, identifiers, relations, attributes and values are formulas."""
    run = sample_run()
    entities = run.tables["entities"].copy()
    for number, text in enumerate(FORMULAS):
        rows = entities["entity"] == number
        entities.loc[rows, "label"] = text
        entities.loc[rows, "uri"] = [f"{text.strip()}#{side}{number}" for side in entities.loc[rows, "graph"]]
    relations = run.tables["relations"].copy()
    relations["name"] = [f"{FORMULAS[number % len(FORMULAS)]}{number}" for number in range(len(relations))]
    attributes = run.tables["attributes"].assign(attribute="=A", value=["=1", "=2", "=3"])
    return replace(run, tables={**run.tables, "entities": entities, "relations": relations, "attributes": attributes})


def formulas_in(content: bytes, separator: str) -> list[str]:
    """Cells that a spreadsheet would run; numbers are none."""
    lines = [line for line in content.decode("utf-8-sig").splitlines(keepends=True) if not line.startswith("#")]
    rows = csv.reader(io.StringIO("".join(lines)), delimiter=separator)
    return [cell for row in rows for cell in row if cell.strip("\u200b ").startswith(FORMULA_STARTS) and not is_number(cell)]


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.suffix.endswith((".csv", ".tsv"))])
def test_no_table_that_is_written_holds_a_formula(name: str, tmp_path: Path) -> None:
    view = RunView(formula_run())
    table, fmt = pairs_to_export(view, ExportSelection()), FORMATS[name]
    path = tmp_path / f"links{fmt.suffix}"
    write_export(path, table, fmt)
    content = path.read_bytes()
    assert b"cmd|" in content
    assert not formulas_in(content, "," if fmt.suffix.endswith("csv") else "\t")


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_no_other_table_holds_one_either(ending: str, tmp_path: Path) -> None:
    view = RunView(formula_run())
    conflicts = value_conflicts(Fold.of(pairs_to_export(view, ExportSelection()), FoldOptions()))
    found = pd.DataFrame({"kind": ["relation"], "source": [FORMULAS[0]], "target": [FORMULAS[1]], "turned": [False]}).assign(
        source_implies_target=0.9, target_implies_source=0.8, support=3.0
    )
    write_plain(conflicts, tmp_path / f"conflicts{ending}")
    write_relations(view, found, tmp_path / "relations.sssom.tsv")
    assert not formulas_in((tmp_path / f"conflicts{ending}").read_bytes(), "," if ending == ".csv" else "\t")
    assert not formulas_in((tmp_path / "relations.sssom.tsv").read_bytes(), "\t")


def test_no_download_of_a_page_holds_one() -> None:
    assert not formulas_in(csv_bytes(pd.DataFrame({"label": FORMULAS, "score": -1.5})), ",")
