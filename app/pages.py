"""Which pages there are, in their order; the router, the navigation, links and tests all go by this list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NoReturn, TypeVar

import streamlit as st

from app.state import (
    Address,
    ChangesAddress,
    CompareAddress,
    DataSetAddress,
    DegreeAddress,
    EntityAddress,
    ExplainAddress,
    ExportAddress,
    ImportAddress,
    PairsAddress,
    ProxiesAddress,
    RelationsAddress,
    ReviewAddress,
    TrainAddress,
)

A = TypeVar("A", bound=Address)


@dataclass(frozen=True)
class Page(Generic[A]):
    """A page.

    Attributes:
        name: in the address, and of its file under ``views`` (but for ``module``).
        question: what the page answers, in one line.
        address: what its address can say.
        least: how many runs it needs; 0 for pages that do without.
        most: how many it shows together.
        module: its file under ``views``, where that cannot have the page's name.
    """

    name: str
    title: str
    icon: str
    question: str
    address: type[A]
    least: int = 1
    most: int = 1
    module: str = ""

    @property
    def script(self) -> str:
        return f"views/{self.module or self.name}.py"


HOME: Final = Page(
    "home", "Home", ":material/home:", "Align two knowledge graphs, see why each pair matches, review and export the result.", Address, least=0
)
ENTITY: Final = Page("entity", "Entity", ":material/travel_explore:", "One entity, its best matches, and their neighbourhoods.", EntityAddress)
EXPLAIN: Final = Page(
    "explain", "Explain", ":material/balance:", "How a pair's score is made up, and how it compares with other candidates.", ExplainAddress
)
PAIRS: Final = Page("pairs", "Pairs", ":material/table_rows:", "All predicted pairs: filter, sort, open.", PairsAddress)
REVIEW: Final = Page("review", "Review", ":material/rule:", "Accept or reject predicted pairs, least certain first.", ReviewAddress)
RELATIONS: Final = Page(
    "relations", "Relations", ":material/graph_3:", "Relation importance: which relations the model weights most.", RelationsAddress
)
PROXIES: Final = Page("proxies", "Proxies", ":material/hub:", "Proxy matching: how the two graphs are compared.", ProxiesAddress)
DEGREE: Final = Page("degree", "Degree", ":material/bar_chart:", "How accuracy depends on the number of triples per entity.", DegreeAddress, most=4)
COMPARE: Final = Page(
    "compare", "Compare", ":material/compare_arrows:", "Differences in accuracy, predictions, settings and cost.", CompareAddress, least=2, most=4
)
CHANGES: Final = Page(
    "changes",
    "What changed",
    ":material/difference:",
    "Matches gained, lost and changed since an earlier run, with the reasons.",
    ChangesAddress,
)
DATASET: Final = Page(
    "dataset", "Data set", ":material/database:", "Sizes, links, data quality, relations and triples of the two graphs.", DataSetAddress
)
TRAIN: Final = Page("train", "Train", ":material/model_training:", "Start a training run and follow the queue.", TrainAddress, least=0)
IMPORT: Final = Page(
    "import", "Import", ":material/upload:", "Create a data set from two graphs and known links.", ImportAddress, least=0, module="importing"
)
EXPORT: Final = Page(
    "export", "Export", ":material/file_export:", "Download the alignment as CSV, TSV, Parquet, SSSOM, RDF or OpenEA links.", ExportAddress
)

GROUPS: Final[Mapping[str, tuple[Page[Any], ...]]] = {
    "": (HOME,),
    "Explore": (ENTITY, EXPLAIN, PAIRS),
    "Review and export": (REVIEW, EXPORT),
    "Understand the model": (RELATIONS, PROXIES, DEGREE, COMPARE, CHANGES),
    "Data and runs": (DATASET, IMPORT, TRAIN),
}
"""The sections of the navigation, by their headings."""
PAGES: Final = tuple(page for group in GROUPS.values() for page in group)


def link(page: Page[A], address: A, label: str, *, icon: str | None = None, help: str | None = None) -> None:
    """A link that opens a page at an address, in this tab or in another one. ``label`` is Markdown."""
    st.page_link(page.script, label=label, icon=icon, help=help, query_params=address.parameters())


def go(page: Page[A], address: A) -> NoReturn:
    """Open a page at an address now, for example after a click in a figure."""
    st.switch_page(page.script, query_params=address.parameters())
