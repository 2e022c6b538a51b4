"""Ontologies in OBO, OWL/XML, functional-style or Manchester syntax, beside others in RDF; those in RDF alone are read as RDF is."""

from __future__ import annotations

from pathlib import Path

from engine.data.readers.base import Detection
from engine.data.readers.rdf import RdfReader
from engine.data.readers.syntaxes import syntax_by_ending


class OntologyReader(RdfReader):
    name = "ontology"
    description = "ontologies in OBO, OWL/XML, functional-style or Manchester syntax (or one of them in RDF), and links as of RDF"

    def is_graph(self, path: Path) -> bool:
        return bool(syntax_by_ending(path)) or super().is_graph(path)

    def detect(self, folder: Path) -> Detection:
        found = self.sorted_files(folder)
        graphs = [path for role, paths in found.roles.items() if role.startswith("graph") for path in paths]
        if not any(map(syntax_by_ending, graphs)):
            return Detection(0, ("two ontologies (.obo, .ofn, .omn, .owx; one may be in RDF)",))
        return found.detection
