"""One module a format, one registry for all of them."""

from engine.data.readers.base import Detection, RawDataset, RawGraph, RawLinks, Reader, ReaderRegistry
from engine.data.readers.dbp15k import Dbp15kReader
from engine.data.readers.exports import ExportsReader
from engine.data.readers.ontologies import OntologyReader
from engine.data.readers.openea import OpenEAReader
from engine.data.readers.rdf import RdfReader
from engine.data.readers.tables import TablesReader

READERS = ReaderRegistry([OpenEAReader(), Dbp15kReader(), TablesReader(), RdfReader(), OntologyReader(), ExportsReader()])

__all__ = ["READERS", "Detection", "RawDataset", "RawGraph", "RawLinks", "Reader", "ReaderRegistry"]
