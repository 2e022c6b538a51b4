"""What an import notices about files: headers, swapped columns, files passed over, names among triples, formats that are registered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.config import DataConfig
from engine.data import READERS, inspect_task, load_task
from engine.data.readers import Detection, RawDataset, RawGraph, RawLinks
from engine.data.tabular import Layout
from engine.errors import DataError, DataImportError
from engine.importing import Corrections, Preview, folder_material, glance, preview, render_preview
from tests.importing.conftest import GRAPH_1, GRAPH_2, LINKS, NAMES, SWAPPED, files

NONE = Corrections()


def messages(found: Preview) -> dict[str, str]:
    return {finding.code: finding.message for finding in found.findings}


def data_folder(path: Path, **contents: str) -> Path:
    path.mkdir()
    for name, content in contents.items():
        (path / f"{name}.csv").write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("links", [LINKS, SWAPPED])
def test_a_header_of_unknown_words_in_a_links_file(links: str, tmp_path: Path) -> None:
    content = "HR;CRM\n" + links.split("\n", 1)[1].replace(",", ";")
    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=content)
    swap = links == SWAPPED
    wrong = preview(material, Corrections(swap_links=swap))
    assert "the first row (" in messages(wrong)["header-as-link"]
    assert "looks like a header" in messages(wrong)["header-as-link"]
    assert next(finding.code for finding in wrong.findings if finding.severity == "warning") == "header-as-link"
    right = preview(material, Corrections(swap_links=swap, tables={"links": Layout(header=True)}))
    assert "header-as-link" not in messages(right)
    assert sum(right.links.values()) == 8
    kept = preview(material, Corrections(swap_links=swap, tables={"links": Layout(header=False)}))
    assert "header-as-link" not in messages(kept), "its owner said so"


def test_a_header_in_the_links_of_a_folder_is_noticed_by_inspect(tmp_path: Path) -> None:
    folder = data_folder(tmp_path / "data", kg1=GRAPH_1, kg2=GRAPH_2, links="HR,CRM\n" + LINKS.split("\n", 1)[1])
    assert "header-as-link" in {finding.code for finding in inspect_task(load_task(folder)).findings}


def test_the_card_says_which_column_is_the_source_after_the_links_were_swapped(tmp_path: Path) -> None:
    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=SWAPPED)
    swapped = Corrections(swap_links=True)
    table = next(file.table for file in glance(material, swapped) if file.role == "links")
    assert table is not None
    assert table.places == {"source": 1, "target": 0}
    # choosing the columns again turns them round from where they are shown
    again = Corrections(swap_links=True, tables={"links": Layout(header=True, columns=table.columns_with("source", 0))})
    shown = next(file.table for file in glance(material, again) if file.role == "links")
    assert shown is not None
    assert shown.places == {"source": 0, "target": 1}
    assert "links-swapped" in messages(preview(material, again))


@pytest.mark.parametrize("name", ["goldlinks", "对齐links", "Entlinks_2024"])
def test_a_link_word_within_a_name_is_enough_where_no_other_file_has_links(name: str, tmp_path: Path) -> None:
    folder = data_folder(tmp_path / "data", kg1=GRAPH_1, kg2=GRAPH_2, **{name: LINKS})
    assert sum(preview(folder_material(folder), NONE).links.values()) == 8
    assert len(load_task(folder).train_links) + len(load_task(folder).test_links) == 8


def test_every_file_that_is_passed_over_is_named(tmp_path: Path) -> None:
    folder = data_folder(tmp_path / "data", kg1=GRAPH_1, kg2=GRAPH_2, links=LINKS, gold=LINKS)
    (folder / "README.md").write_text("x", encoding="utf-8")
    (folder / "more.nq").write_text("x", encoding="utf-8")
    found = [finding for finding in preview(folder_material(folder), NONE).findings if finding.code == "files-passed-over"]
    assert [(finding.severity, finding.message) for finding in found] == [
        ("warning", "2 files were passed over: gold.csv, more.nq."),
        ("info", "1 file was passed over: README.md."),
    ]
    said = [finding.message for finding in load_task(folder).findings if finding.code == "files-passed-over"]
    assert said == ["2 files were passed over: gold.csv, more.nq."]


def test_names_among_triples_can_be_taken_as_names(tmp_path: Path) -> None:
    labels = "".join(f"a:{name},label,{name} City\n" for name in NAMES)
    material = files(tmp_path, graph_1=GRAPH_1 + labels, graph_2=GRAPH_2, links=LINKS)
    wrong = preview(material, NONE)
    assert wrong.graphs["source"].summary.entities == 16
    assert messages(wrong)["names-as-triples"] == (
        "8 triples of the source graph with the relation 'label' look like names: as triples they make 8 entities of texts."
    )
    right = Corrections(names_from_triples=True)
    assert Corrections.from_dict(json.loads(json.dumps(right.to_dict()))) == right
    found = preview(material, right)
    summary = found.graphs["source"].summary
    assert (summary.entities, summary.triples, summary.named) == (8, 8, 8)
    assert "names-as-triples" not in messages(found)
    assert found.files[0].counts[0].left_out == (("taken as names", 8),)
    assert "8 taken as names" in render_preview(found)


def test_a_relation_called_name_between_entities_stays(tmp_path: Path) -> None:
    related = "".join(f"a:{one},name,a:{other}\n" for one, other in zip(NAMES, reversed(NAMES), strict=True))
    assert "names-as-triples" not in messages(preview(files(tmp_path, graph_1=GRAPH_1 + related, graph_2=GRAPH_2, links=LINKS), NONE))


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        (pa.array([1.5, float("nan"), None]), {"1.5"}),
        (pa.array(["Rome", None, ""]), {"Rome"}),
        (pa.array(["nan", None, "None"]), {"nan", "None"}),
        (pa.array(["Rome", None, "Rome"]).dictionary_encode(), {"Rome"}),
        (pa.array([None, 3, 4]), {"3", "4"}),
    ],
)
def test_missing_values_in_parquet_are_none(values: pa.Array, kept: set[str], tmp_path: Path) -> None:
    folder = data_folder(tmp_path / "data", kg1=GRAPH_1, kg2=GRAPH_2, links=LINKS)
    table = pa.table({"entity": ["a:Rome", "a:Paris", "a:Oslo"], "attribute": ["size", "size", "size"], "value": values})
    pq.write_table(table, folder / "attributes_1.parquet")
    assert set(load_task(folder).source.attributes["value"]) == kept
    (understood,) = (file for file in preview(folder_material(folder), NONE).files if file.role == "attributes 1")
    assert understood.table is not None
    assert {row[2] for row in understood.table.sample} - {""} == kept
    assert [(one.rows, one.used) for one in understood.counts] == [(3, len(kept) if values.type != pa.dictionary(pa.int32(), pa.string()) else 2)]


@pytest.mark.parametrize("content", ['[{"head": "a"}]', '{\n "@context": {},\n "@graph": [1, 2]\n}', '[\n["a","p","b"],\n["c","p","d"]]\n'])
def test_json_is_no_comma_table(content: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^graph_1\.jsonl:1: this is JSON in one piece; write one object per line"):
        preview(files(tmp_path, graph_1__jsonl=content, graph_2=GRAPH_2, links=LINKS), NONE)
    with pytest.raises(DataImportError, match=r"^graph_1\.json is JSON in one piece; of JSON are read"):
        preview(files(tmp_path, graph_1__json=content, graph_2=GRAPH_2, links=LINKS), NONE)


class JsonLines:
    """A format as somebody else might add it."""

    name = "jsonlines"
    description = "JSON Lines: one.jl, two.jl, links.jl"
    endings = (".jl",)
    names = ("one.jl", "two.jl", "links.jl")

    def detect(self, folder: Path) -> Detection:
        missing = tuple(name for name in self.names if not (folder / name).is_file())
        return Detection(1 - len(missing) / 3, missing)

    def files(self, folder: Path) -> Sequence[Path]:
        return [folder / name for name in self.names]

    def read(self, folder: Path, config: DataConfig) -> RawDataset:
        sources, targets = zip(*self._rows(folder / "links.jl"), strict=True)
        graphs = [self.read_graph(folder / name) for name in self.names[:2]]
        return RawDataset(graphs[0], graphs[1], {"all": RawLinks(folder / "links.jl", sources, targets)})

    def read_graph(self, path: Path) -> RawGraph:
        heads, relations, tails = zip(*self._rows(path), strict=True)
        return RawGraph(path, heads, relations, tails)

    @staticmethod
    def _rows(path: Path) -> Iterator[list[str]]:
        return map(json.loads, path.read_text(encoding="utf-8").splitlines())


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(READERS, "_members", dict(READERS._members))
    READERS.add(JsonLines.name, JsonLines())


def json_lines(csv: str) -> str:
    return "".join(json.dumps(line.split(",")) + "\n" for line in csv.splitlines()[1:])


@pytest.mark.usefixtures("registered")
def test_a_reader_that_is_registered_works_in_imports_too(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, content in zip(JsonLines.names, (GRAPH_1, GRAPH_2, LINKS), strict=True):
        (folder / name).write_text(json_lines(content), encoding="utf-8")
    whole = preview(folder_material(folder), NONE)
    assert whole.format == "jsonlines"
    assert whole.fingerprint == load_task(folder).fingerprint
    single = preview(files(tmp_path, graph_1__jl=json_lines(GRAPH_1), graph_2__jl=json_lines(GRAPH_2), links=LINKS), NONE)
    assert single.fingerprint == whole.fingerprint
    assert single.files[0].form == "jsonlines"
