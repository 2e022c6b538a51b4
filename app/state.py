"""Every key of the address and of the session, in one place; what an address says is checked here before anything else sees it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import streamlit as st

from engine.datasets.knowledge_graph import SIDES, Side
from engine.entities import Entity
from engine.errors import EntityError
from engine.matching import Pool

HOME_PAGE: Final = "views/home.py"
ENTITY_PAGE: Final = "views/entity.py"

# Parameters of an address
RUN: Final = "run"
SIDE: Final = "side"
ENTITY: Final = "entity"
MATCH: Final = "match"
POOL: Final = "pool"

# Keys of the session
RUN_CHOICE: Final = "run_choice"
SEARCH: Final = "search"
SEARCH_SIDE: Final = "search_side"
POOL_CHOICE: Final = "pool_choice"
MATCH_TABLE: Final = "match_table"
FACING_FIGURE: Final = "facing_figure"

LONGEST_PARAMETER: Final = 20_000


@dataclass(frozen=True)
class Address:
    """What the address asks for; not yet checked against a run."""

    run: str | None = None
    side: Side | None = None
    entity: str | None = None
    match: str | None = None
    pool: Pool = "all"

    def parameters(self) -> dict[str, str]:
        """As query parameters; defaults are left out."""
        named = {RUN: self.run, SIDE: self.side, ENTITY: self.entity, MATCH: self.match, POOL: None if self.pool == "all" else self.pool}
        return {name: value for name, value in named.items() if value}


def read_address() -> Address:
    """The current address.

    Raises:
        EntityError: a parameter has a value that can never make sense.
    """
    side = _parameter(SIDE)
    if side is not None and side not in SIDES:
        raise EntityError(f"the address says side={side[:40]}; expected 'source' or 'target'.")
    pool = _parameter(POOL)
    if pool not in (None, "all", "test"):
        raise EntityError(f"the address says pool={pool[:40]}; expected 'all' or 'test'.")
    return Address(
        run=_parameter(RUN),
        side="source" if side == "source" else "target" if side == "target" else None,
        entity=_parameter(ENTITY),
        match=_parameter(MATCH),
        pool="test" if pool == "test" else "all",
    )


def entity_address(run: str, entity: Entity, match: Entity | None = None, pool: Pool = "all") -> Address:
    """The address of an entity's page."""
    return Address(run, entity.side, entity.uri, None if match is None else match.uri, pool)


def show_address(address: Address) -> None:
    """Make the browser's address bar say what the page shows; a link to the page that is open already changes the page but not the bar."""
    st.query_params.from_dict(address.parameters())


def set_parameter(name: str, value: str | None) -> None:
    """Change one parameter of the address; None removes it."""
    if value is None:
        st.query_params.pop(name, None)
    else:
        st.query_params[name] = value


def widget_key(name: str, *parts: object) -> str:
    """A session key that belongs to some content: other content, another widget with its own state."""
    return f"{name}:{blake2b(repr(parts).encode(), digest_size=8).hexdigest()}"


def _parameter(name: str) -> str | None:
    value = st.query_params.get(name, "").strip()
    if len(value) > LONGEST_PARAMETER:
        raise EntityError(f"the address's '{name}' is {len(value):,} characters long, more than any identifier.")
    return value or None
