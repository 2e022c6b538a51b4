"""Ends of links that look like identifiers of the graph and are spelt otherwise: reported, and repaired where that is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.data import load_task
from engine.data.links import to_iri, to_uri
from engine.importing import Corrections, find_staged, preview, store, understand
from engine.importing.staging import Upload, correct, stage
from tests.importing.conftest import NAMES, files

SPELT = (
    "http://x/Tromsø",
    "http://x/Troms%C3%B8",
    "http://x/Zu\u0308rich",
    "http://x/AT&T",
    "Málaga",
    "http://x/a b",
    "http://x/%c3%a5",
    "http://x/é%20b",
)
OTHERWISE = (
    "http://x/Troms%C3%B8",
    "http://x/Tromsø",
    "http://x/Zürich",
    "http://x/AT%26T",
    "Ma\u0301laga",
    "http://x/a%20b",
    "http://x/å",
    "http://x/%C3%A9 b",
)


def ring(entities: tuple[str, ...], relation: str) -> str:
    around = zip(entities, entities[1:] + entities[:1], strict=True)
    return "head,relation,tail\n" + "".join(f"{one},{relation},{other}\n" for one, other in around)


def linked(ends: tuple[str, ...]) -> str:
    return "source,target\n" + "".join(f"{end},b:{name}\n" for end, name in zip(ends, NAMES, strict=True))


def with_spelling(known: tuple[str, ...], ends: tuple[str, ...]) -> dict[str, str]:
    return {"graph_1": ring(known, "near"), "graph_2": ring(tuple(f"b:{name}" for name in NAMES), "nah"), "links": linked(ends)}


@pytest.mark.parametrize(("known", "end"), list(zip(SPELT, OTHERWISE, strict=True)))
def test_a_single_end(tmp_path: Path, known: str, end: str) -> None:
    rest = tuple(f"a:{name}" for name in NAMES[1:])
    material = files(tmp_path, **with_spelling((known, *rest), (end, *rest)))
    found = {finding.code: finding for finding in preview(material, Corrections()).findings}
    if end in (to_iri(known, "source"), to_uri(known, "source")):  # what an export of ours makes of it, and undone without a question
        assert "links-spelt-otherwise" not in found
        return
    assert found["links-spelt-otherwise"].count == 1
    assert found["links-spelt-otherwise"].advice == "Use the graphs' spelling."
    assert "only by Unicode normalisation or percent-encoding" in found["links-spelt-otherwise"].message
    repaired = understand(material, Corrections(repair_links=True))
    assert not {finding.code for finding in repaired.preview.findings} & {"links-spelt-otherwise", "unknown-link-entities"}
    assert set(repaired.raw.links["all"].sources) == {known, *rest}
    assert repaired.preview.graphs["source"].summary.entities == len(NAMES)


@pytest.mark.parametrize("end", ["http://x/a%2Fb", "http://x/A", "http://x/a%3Fb", "http://x/a%FFb", "http://x/a%00"])
def test_what_means_something_else_is_left_alone(tmp_path: Path, end: str) -> None:
    known = ("http://x/a/b", "http://x/a", "http://x/a?b", "http://x/a\u00ffb", *(f"a:{name}" for name in NAMES[4:]))
    material = files(tmp_path, **with_spelling(known, (end, *known[1:])))
    found = understand(material, Corrections(repair_links=True))
    assert end in found.raw.links["all"].sources
    assert not {finding.code for finding in found.preview.findings} & {"links-spelt-otherwise"}


def test_what_fits_two_identifiers_is_reported_and_stays(tmp_path: Path) -> None:
    known = ("http://x/Z\u00fc", "http://x/Zu\u0308", *(f"a:{name}" for name in NAMES[2:]))
    found = understand(files(tmp_path, **with_spelling(known, ("http://x/Z%c3%bc", *known[1:]))), Corrections(repair_links=True))
    assert "http://x/Z%c3%bc" in found.raw.links["all"].sources
    (finding,) = [one for one in found.preview.findings if one.code == "links-spelt-otherwise"]
    assert "1 fits several identifiers and cannot be repaired" in finding.message


def test_when_no_end_is_known_the_reason_is_said_and_the_repair_fixes_it(tmp_path: Path) -> None:
    known = tuple(f"http://x/{name}\u00fc" for name in NAMES)
    ends = tuple(f"http://x/{name}u\u0308" for name in NAMES)
    material = files(tmp_path, **with_spelling(known, ends))
    found = {finding.code: finding for finding in preview(material, Corrections()).findings}
    assert found["links-unknown"].severity == "error"
    assert found["links-spelt-otherwise"].count == len(NAMES)
    assert "\\u0308" in found["links-spelt-otherwise"].examples[0], "two spellings that look the same are shown as escapes"
    stored = store(material, Corrections(repair_links=True), "mended")
    task = load_task(stored.path)
    assert task.source.num_entities == len(NAMES)
    assert len(task.train_links) + len(task.test_links) == len(NAMES)


def test_the_command_has_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = tuple(f"http://x/{name}\u00fc" for name in NAMES)
    given = with_spelling(known, (f"http://x/{NAMES[0]}u\u0308", *known[1:]))
    paths = {name: tmp_path / f"{name}.csv" for name in given}
    for name, path in paths.items():
        path.write_text(given[name], encoding="utf-8")
    words = ["import", str(paths["graph_1"]), str(paths["graph_2"]), "--links", str(paths["links"]), "--dry-run"]
    assert main(words) == 0
    assert "--repair-links" in capsys.readouterr().out
    assert main([*words, "--repair-links", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert not [finding for finding in found["findings"] if finding["code"] == "links-spelt-otherwise"]


def test_the_correction_is_kept_and_older_ones_can_be_read(tmp_path: Path) -> None:
    assert Corrections.from_dict(Corrections(repair_links=True).to_dict()).repair_links
    older = Corrections().to_dict()
    del older["repair_links"]
    assert not Corrections.from_dict(older).repair_links
    path = tmp_path / "graph.csv"
    path.write_text("a,b,c\n", encoding="utf-8")
    with path.open("rb") as content:
        staged = stage([Upload(path.name, content, "graph 1")])
    correct(staged, Corrections(repair_links=True))
    assert find_staged(staged.token).corrections.repair_links
