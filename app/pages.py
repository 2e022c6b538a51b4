"""Which pages there are, in their order; the router, the navigation, links and tests all go by this list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, NoReturn, TypeVar

import streamlit as st

from app.state import (
    Address,
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


HOME: Final = Page("home", "Home", ":material/home:", "What have I got, and what shall I do?", Address, least=0)
ENTITY: Final = Page(
    "entity", "Entity", ":material/travel_explore:", "What is this entity, and what does it match in the other graph?", EntityAddress
)
EXPLAIN: Final = Page("explain", "Explain", ":material/balance:", "Why did this pair match, and why not another one?", ExplainAddress)
PAIRS: Final = Page("pairs", "Pairs", ":material/table_rows:", "The whole alignment: where should I look?", PairsAddress)
REVIEW: Final = Page("review", "Review", ":material/rule:", "Which pair shall I decide next?", ReviewAddress)
RELATIONS: Final = Page("relations", "Relations", ":material/graph_3:", "What has the model learned to listen to?", RelationsAddress)
PROXIES: Final = Page("proxies", "Proxies", ":material/hub:", "How does the model see across from one graph to the other?", ProxiesAddress)
DEGREE: Final = Page("degree", "Degree", ":material/bar_chart:", "Whom does it fail: entities with few triples, or with many?", DegreeAddress, most=4)
COMPARE: Final = Page(
    "compare", "Compare", ":material/compare_arrows:", "What did one run buy over another, and at what price?", CompareAddress, least=2, most=4
)
DATASET: Final = Page("dataset", "Data set", ":material/database:", "What is in the two graphs, and what do they have in common?", DataSetAddress)
TRAIN: Final = Page(
    "train", "Train", ":material/model_training:", "Can it do mine? What is being trained, and what shall be trained next?", TrainAddress, least=0
)
IMPORT: Final = Page("import", "Import", ":material/upload:", "How do I bring my own two graphs?", ImportAddress, least=0, module="importing")
EXPORT: Final = Page("export", "Export", ":material/file_export:", "How do I take the alignment home?", ExportAddress)

GROUPS: Final[tuple[tuple[Page[Any], ...], ...]] = (
    (HOME,),
    (ENTITY, EXPLAIN, PAIRS, REVIEW),
    (RELATIONS, PROXIES, DEGREE, COMPARE),
    (DATASET, IMPORT, TRAIN, EXPORT),
)
PAGES: Final = tuple(page for group in GROUPS for page in group)


def link(page: Page[A], address: A, label: str, *, icon: str | None = None, help: str | None = None) -> None:
    """A link that opens a page at an address, in this tab or in another one. ``label`` is Markdown."""
    st.page_link(page.script, label=label, icon=icon, help=help, query_params=address.parameters())


def go(page: Page[A], address: A) -> NoReturn:
    """Open a page at an address now, for example after a click in a figure."""
    st.switch_page(page.script, query_params=address.parameters())
