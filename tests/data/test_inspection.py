from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from engine.config import DataConfig
from engine.data import Finding, Inspection, inspect_task, inspection_to_dict, load_task, render_inspection
from tests.data.writers import WRITERS, Sample, small_sample
from tests.names.tasks import attribute_rows, graph, task


def inspect(sample: Sample, folder: Path, config: DataConfig | None = None, form: str = "openea") -> Inspection:
    WRITERS[form][1](folder, sample)
    return inspect_task(load_task(folder, config))


def found(inspection: Inspection, code: str) -> list[Finding]:
    return [finding for finding in inspection.findings if finding.code == code]


def anonymous(sample: Sample) -> Sample:
    """The same structure with identifiers that reveal nothing."""
    names = sorted({end for head, _, tail in (*sample.source, *sample.target) for end in (head, tail)})
    opaque = {name: f"http://x.org/{at * 7919}" for at, name in enumerate(names)}
    source, target = (tuple((opaque[head], relation, opaque[tail]) for head, relation, tail in graph) for graph in (sample.source, sample.target))
    links, train = (tuple((opaque[left], opaque[right]) for left, right in part) for part in (sample.links, sample.train))
    return Sample(source, target, links, train)


SAMPLE = anonymous(small_sample())


def test_a_clean_data_set_only_lacks_names_and_seeds(tmp_path: Path) -> None:
    inspection = inspect(SAMPLE, tmp_path)
    assert {finding.code for finding in inspection.findings} == {"few-seeds", "entities-without-name"}
    assert dict(inspection.links) == {"train": 2, "valid": 0, "test": 4, "unsure": 0}
    summary = inspection.source
    assert (summary.entities, summary.relations, summary.triples, summary.named, summary.dangling) == (6, 1, 6, 0, 0)
    assert dict(summary.degrees) == {"min": 2, "p10": 2, "median": 2, "p90": 2, "max": 2, "mean": 2.0}


def test_without_attributes_no_more_is_claimed_than_that(tmp_path: Path) -> None:
    both = found(inspect(SAMPLE, tmp_path / "bare"), "entities-without-name")
    assert len(both) == 2
    for finding in both:
        assert finding.message.startswith("6 entities of the ")
        assert "the data has no attributes of this graph" in finding.message
        assert "data.name_attribute" not in finding.advice, "there is none to choose"
    heights = tuple((head, "height", "7") for head, _, _ in SAMPLE.source)
    with_heights = dataclasses.replace(SAMPLE, source_attributes=heights)
    (source, _) = found(inspect(with_heights, tmp_path / "heights"), "entities-without-name")
    assert "none of the name attributes has a value" in source.message
    assert "data.name_attribute" in source.advice


def test_self_loops(tmp_path: Path) -> None:
    entity = SAMPLE.target[0][0]
    inspection = inspect(dataclasses.replace(SAMPLE, target=(*SAMPLE.target, (entity, "http://x.org/nah", entity))), tmp_path)
    (finding,) = found(inspection, "self-loops")
    assert (finding.count, finding.examples) == (1, (f"{entity} | http://x.org/nah",))
    assert (inspection.source.self_loops, inspection.target.self_loops) == (0, 1)


def test_isolated_entities_and_idle_seeds(tmp_path: Path) -> None:
    lost = ("http://x.org/1", SAMPLE.links[0][1])
    inspection = inspect(dataclasses.replace(SAMPLE, links=(*SAMPLE.links, lost), train=(*SAMPLE.train, lost)), tmp_path)
    assert found(inspection, "isolated-entities")[0].examples == ("http://x.org/1",)
    assert found(inspection, "unknown-link-entities")[0].count == 1
    assert found(inspection, "idle-seeds")[0].count == 1
    assert inspection.source.isolated == 1


def test_relations_without_triples(tmp_path: Path) -> None:
    WRITERS["dbp15k"][1](tmp_path, SAMPLE)
    (tmp_path / "rel_ids_2").write_text("1\tnah\n2\tidle\n")
    (finding,) = found(inspect_task(load_task(tmp_path)), "relations-without-triples")
    assert finding.examples == ("idle",)


def test_links_that_are_not_one_to_one(tmp_path: Path) -> None:
    extra = (SAMPLE.links[0][0], SAMPLE.links[5][1])
    inspection = inspect(dataclasses.replace(SAMPLE, links=(*SAMPLE.links, extra)), tmp_path, DataConfig(train_ratio=0.5))
    assert [finding.examples for finding in found(inspection, "links-not-one-to-one")] == [(SAMPLE.links[0][0],), (SAMPLE.links[5][1],)]


def test_an_entity_trained_and_tested(tmp_path: Path) -> None:
    extra = (SAMPLE.train[0][0], SAMPLE.links[5][1])
    inspection = inspect(dataclasses.replace(SAMPLE, links=(*SAMPLE.links, extra)), tmp_path)
    (finding,) = found(inspection, "entity-leakage")
    assert finding.examples == (f"{extra[0]} = {extra[1]}",)


def test_overlapping_identifiers(tmp_path: Path) -> None:
    """The same identifiers on both sides: kept apart, and a warning where they are the answer."""
    inspection = inspect(dataclasses.replace(SAMPLE, target=SAMPLE.source, links=tuple((left, left) for left, _ in SAMPLE.links), train=()), tmp_path)
    (finding,) = found(inspection, "overlapping-identifiers")
    assert (finding.severity, finding.count) == ("warning", 6)
    assert "6 links connect such an identifier with itself" in finding.message
    assert found(inspection, "telling-identifiers")


def test_revealing_labels_and_identifiers(tmp_path: Path) -> None:
    inspection = inspect(small_sample(), tmp_path)
    (labels,) = found(inspection, "telling-labels")
    assert (labels.count, labels.severity) == (4, "warning")
    assert "100% of the test links" in labels.message
    assert "nearly solve" in labels.advice
    assert found(inspection, "telling-identifiers")[0].examples[0] == "http://left.org/Berlin = http://right.org/Berlin"


def test_names_that_several_bear_settle_nothing(tmp_path: Path) -> None:
    names = {end: "Euro" for head, _, tail in (*SAMPLE.source, *SAMPLE.target) for end in (head, tail)}
    attributes = tuple((entity, "name", name) for entity, name in names.items())
    linked = [{link[side] for link in SAMPLE.links} for side in (0, 1)]
    sample = dataclasses.replace(
        SAMPLE,
        source_attributes=tuple(row for row in attributes if row[0] in linked[0]),
        target_attributes=tuple(row for row in attributes if row[0] in linked[1]),
    )
    (finding,) = found(inspect(sample, tmp_path), "telling-labels")
    assert "100% of the test links connect entities of the same name. Comparing names alone finds 0.0%" in finding.message
    assert "nearly" not in finding.advice


def test_names_are_compared_without_case_accents_and_punctuation(tmp_path: Path) -> None:
    left, right = SAMPLE.links[3]
    sample = dataclasses.replace(
        SAMPLE,
        source_attributes=tuple((link[0], "name", "São-Paulo" if link[0] == left else f"a{at}") for at, link in enumerate(SAMPLE.links)),
        target_attributes=tuple((link[1], "Name", "SAO PAULO" if link[1] == right else f"b{at}") for at, link in enumerate(SAMPLE.links)),
    )
    (finding,) = found(inspect(sample, tmp_path), "telling-labels")
    assert finding.examples == ("São-Paulo = SAO PAULO",)


def test_identity_relations(tmp_path: Path) -> None:
    head, _, tail = SAMPLE.source[0]
    inspection = inspect(dataclasses.replace(SAMPLE, source=(*SAMPLE.source, (head, "http://www.w3.org/2002/07/owl#sameAs", tail))), tmp_path)
    assert found(inspection, "identity-relations")[0].count == 1


def test_no_test_links(tmp_path: Path) -> None:
    assert found(inspect(SAMPLE, tmp_path, DataConfig(train_ratio=1.0)), "no-test-links")


def test_the_gravest_first(tmp_path: Path) -> None:
    severities = [finding.severity for finding in inspect(small_sample(), tmp_path).findings]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)


def test_json(tmp_path: Path) -> None:
    inspection = inspect(small_sample(), tmp_path)
    values = json.loads(json.dumps(inspection_to_dict(inspection)))
    assert values["source"]["entities"] == 6
    assert values["findings"][0]["code"] == inspection.findings[0].code


@pytest.mark.parametrize("evil", ["\x1b[2J\x1b[31mred", "\u202eesrever", "\u2028next", "\x85", "tab\x9b31m"])
def test_hostile_names_are_escaped(evil: str, tmp_path: Path) -> None:
    """Labels are cleaned on reading, identifiers are shown escaped; the report stays one that a terminal cannot be steered by."""
    identifier = f"http://x.org/{evil}"
    loops = (("http://x.org/a", "r", "http://x.org/a"),)
    sample = dataclasses.replace(
        SAMPLE, source=(*SAMPLE.source, *loops), links=((identifier, SAMPLE.links[0][1]), *SAMPLE.links[1:]), train=SAMPLE.links[1:2]
    )
    if "\x1b" in evil:
        identifier = identifier.replace("\x1b", "")
        sample = dataclasses.replace(sample, links=((identifier, SAMPLE.links[0][1]), *SAMPLE.links[1:]))
    sample = dataclasses.replace(sample, source_attributes=tuple((link[0], "name", evil) for link in sample.links))
    text = render_inspection(inspect(sample, tmp_path))
    assert not [character for character in text if character != "\n" and (ord(character) < 32 or 127 <= ord(character) < 160)]
    assert not set(text) & set("\u202e\u2028")
    assert all(len(line) <= 100 for line in text.split("\n"))


def test_report_says_what_was_read(tmp_path: Path) -> None:
    text = render_inspection(inspect(small_sample(), tmp_path / "cities"))
    for words in ("cities (format openea)", "given: 721_5fold/1", "left.org", "2 train, 0 valid, 4 test", "[telling-labels]", "e.g. Berlin = Berlin"):
        assert words in text


def test_report_of_nothing_suspicious(tmp_path: Path) -> None:
    text = render_inspection(dataclasses.replace(inspect(SAMPLE, tmp_path), findings=()))
    assert text.endswith("Nothing suspicious was found.")


def linked_names(links: list[tuple[int, int]], names: tuple[list[str], list[str]]) -> list[Finding]:
    graphs = [graph(side, [f"{side}{i}" for i in range(len(mine))], mine) for side, mine in zip("st", names, strict=True)]
    known, none = np.array(links, dtype=np.int64).reshape(-1, 2), np.zeros((0, 2), dtype=np.int64)
    return [finding for finding in inspect_task(task(*graphs, train=known, test=none)).findings if finding.code == "contradicted-links"]


TOWNS = ["Rome", "Bonn", "Oslo", "Bern", "Kyiv"]


def test_links_against_the_names_are_reported() -> None:
    (found,) = linked_names([(0, 1), (1, 2), (2, 3), (4, 4)], (TOWNS, TOWNS))
    assert found.message == (
        "3 of 4 known links connect an entity with another one than the only one of the same name; 1 connects entities of the same name."
    )
    assert found.examples[0] == "Rome = Bonn"


@pytest.mark.parametrize(
    ("links", "names"),
    [
        ([(0, 0), (1, 1), (2, 3)], (TOWNS, TOWNS)),
        ([(0, 1), (1, 0)], (TOWNS, ["Roma", "Beuel", "Christiania", "Berne", "Kiev"])),
        ([(0, 0), (1, 1)], (["", "NA", "Oslo", "Bern", "Kyiv"], ["Oslo", "Oslo", "Bern", "", "NA"])),
        ([], (TOWNS, TOWNS)),
    ],
)
def test_links_that_names_support_or_say_nothing_of_are_not(links: list[tuple[int, int]], names: tuple[list[str], list[str]]) -> None:
    assert not linked_names(links, names)


DOTTED = ["12.345", "1.234", "987.654"]


def dotted(
    source: list[str], target: list[str], names: tuple[str, str] = ("population", "population"), code: str = "dotted-thousands"
) -> list[Finding]:
    rows = [[(i, f"http://x.org/{name}", value) for i, value in enumerate(values)] for name, values in zip(names, (source, target), strict=True)]
    graphs = [graph(side, [f"{side}{i}" for i in range(9)], attributes=attribute_rows(mine)) for side, mine in zip("st", rows, strict=True)]
    return [finding for finding in inspect_task(task(*graphs)).findings if finding.code == code]


def test_numbers_with_a_dot_between_thousands_get_a_hint() -> None:
    (found,) = dotted(DOTTED, ["12345", "1,234", "987654"])
    assert "'http://x.org/population' of the source graph" in found.message
    assert "12345" in found.advice
    assert dotted(["3", "4"], ["1.234.567", *DOTTED])[0].message.startswith(
        "All numbers of the attribute 'http://x.org/population' of the target graph"
    )


@pytest.mark.parametrize(
    "values",
    [
        *(["12.345", "1.2", "987.654"], DOTTED[:2], ["0.123", "0.456", "0.789"], ["12.345", "1.234", "many"], [], ["12345", "12,345", "9"]),
        [f'"{value}"^^<http://www.w3.org/2001/XMLSchema#decimal>' for value in DOTTED],
    ],
)
def test_decimals_get_none(values: list[str]) -> None:
    assert not dotted(values, ["1", "2"])


def test_what_is_read_rightly_is_neither_reported_nor_an_example() -> None:
    assert not dotted(["1.234.567", "2.345.678", "3.456.789", "12.345"], ["1", "2"])
    (found,) = dotted(["1.234.567", *DOTTED], ["1", "2"])
    assert found.message.endswith("(12.345); a single dot is read as a decimal point.")


def test_dates_whose_day_is_unclear_get_a_hint() -> None:
    slashed = ["03/04/1912", "01/02/1913", "31/12/1914", "05-06-1915"]
    (found,) = dotted(slashed, ["1912-04-03"], code="ambiguous-dates")
    assert "source graph" in found.message
    assert "(03/04/1912)" in found.message
    for clear in (slashed[:2], [*slashed, "1912-04-03"], ["13/04/1912", "14/04/1912", "15/04/1912"], ["01/01/1912", "02/02/1912", "03/03/1912"]):
        assert not dotted(clear, ["1912-04-03"], code="ambiguous-dates")
    assert not dotted(slashed, slashed, code="ambiguous-dates")


def test_numbers_that_both_graphs_write_alike_get_none() -> None:
    assert not dotted(DOTTED, DOTTED)
    assert len(dotted(DOTTED, DOTTED, ("population", "area"))) == 2


def test_names_that_say_nothing_are_not_equal() -> None:
    here, there = (graph(side, [f"{side}{i}" for i in range(9)], ["NA"] * 9) for side in "st")
    assert "telling-labels" not in {finding.code for finding in inspect_task(task(here, there)).findings}


def test_examples_of_links_show_identifiers_where_there_is_no_name() -> None:
    here, there = graph("s", ["s0", "s1", "s2"], ["", "A", "B"]), graph("t", ["t0", "t1", "t2"], ["Rome", "A", "B"])
    known = np.array([[0, 1], [1, 2], [2, 1]])
    none = np.empty((0, 2), dtype=np.int64)
    findings = inspect_task(task(here, there, train=known, test=none)).findings
    (found,) = (finding for finding in findings if finding.code == "contradicted-links")
    assert found.examples == ("s0 = A", "A = B", "B = A")


def test_names_that_are_taken_as_missing_are_reported() -> None:
    here, there = graph("s", ["s0", "s1", "s2"], ["Na", "", "Cl"]), graph("t", ["t0", "t1", "t2"], ["NA", "none", "Cl"])
    findings = [finding for finding in inspect_task(task(here, there)).findings if finding.code == "names-taken-as-missing"]
    assert [(finding.count, finding.examples) for finding in findings] == [(1, ("Na",)), (2, ("NA", "none"))]
    taken, more = "1 name of the source graph is taken as missing and not compared", "with the 1 entity that has none, 2 of 3 entities"
    assert findings[0].message == f"{taken}; {more} have no name to compare."
    assert findings[1].message == "2 names of the target graph are taken as missing and not compared."
