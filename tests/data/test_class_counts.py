"""Classes of ontologies, counted by a second parser: a SPARQL query of pyoxigraph's store, which knows nothing of this project's readers."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given, settings

from engine.data.knowledge_graph import Finding
from engine.data.readers.ontology import VOCABULARIES
from engine.data.readers.rdf import read_graph
from tests.data.test_ontologies import Drawn, as_rdf_xml, converted, drawn
from tests.data.writers import put
from tests.effort import examples

CLASSES = """PREFIX owl: <http://www.w3.org/2002/07/owl#>
SELECT DISTINCT ?class WHERE { { ?class a owl:Class } UNION { ?class a <http://www.w3.org/2000/01/rdf-schema#Class> }
  FILTER(isIRI(?class)) FILTER NOT EXISTS { ?class owl:deprecated true } }"""


def judged(text: str) -> set[str]:
    """The classes that a text in Turtle declares, without those of the vocabulary and deprecated ones."""
    store = ox.Store()
    store.load(text.encode(), format=ox.RdfFormat.TURTLE)
    found = {solution["class"].value for solution in store.query(CLASSES)}  # type: ignore[union-attr]
    return {name for name in found if not name.startswith(VOCABULARIES)}


@settings(max_examples=examples(10), deadline=None)
@given(drawn)
def test_every_reader_counts_the_classes_that_a_query_counts(tmp_path_factory: pytest.TempPathFactory, ontology: Drawn) -> None:
    folder, expected = tmp_path_factory.mktemp("counted"), judged(ontology.turtle())
    written = {
        "a.ttl": ontology.turtle(),
        "a.owl": as_rdf_xml(ontology.turtle()),
        "a.ofn": ontology.functional(),
        "a.owx": converted(ontology.functional(), "owx"),
        "a.obo": ontology.obo(),
    }
    for name, text in written.items():
        findings: list[Finding] = []
        assert set(read_graph(put(folder / name, text), findings).entities) == expected
        words = "1 class" if len(expected) == 1 else f"{len(expected):,} classes"
        assert f"was read as an ontology: {words}, " in next(one.message for one in findings if one.code == "ontology-read")


def test_an_ontology_that_a_package_ships() -> None:
    """Of people, not drawn: LinkML's own model, where the package is installed."""
    package = pytest.importorskip("linkml_runtime")
    path = Path(package.__file__).parent / "linkml_model" / "owl" / "meta.owl.ttl"
    if not path.exists():
        pytest.skip("this version ships no ontology")
    expected = judged(path.read_text(encoding="utf-8"))
    found = set(read_graph(path, []).entities)
    assert len(expected) > 30
    assert expected <= found
    assert len(found - expected) <= 0.1 * len(expected), "things that are classes by their place only"
