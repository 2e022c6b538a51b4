"""One module a format, one registry for all of them."""

from engine.datasets.readers.base import Detection, RawDataset, RawGraph, RawLinks, Reader, ReaderRegistry
from engine.datasets.readers.dbp15k import Dbp15kReader
from engine.datasets.readers.openea import OpenEAReader
from engine.datasets.readers.rdf import RdfReader
from engine.datasets.readers.tables import TablesReader

READERS = ReaderRegistry([OpenEAReader(), Dbp15kReader(), TablesReader(), RdfReader()])

__all__ = ["READERS", "Detection", "RawDataset", "RawGraph", "RawLinks", "Reader", "ReaderRegistry"]
