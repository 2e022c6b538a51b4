"""What the owner of the data says about it, where the engine understood something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from engine.data.tabular import Layout

SeedChoice = Literal["none", "exact", "near"]
SEED_CHOICES: Final[tuple[SeedChoice, ...]] = get_args(SeedChoice)
NAMING: Final = ("name_attribute", "name_language", "name_language_source", "name_language_target")
"""Corrections that are settings of a data set's reading as well: of a training and of ``inspect``."""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Corrections:
    """All of it; as it is by default, nothing is corrected.

    Attributes:
        roles: "graph 1", "links", ... -> name of the file that plays this role.
        tables: role -> what is known of that file's table.
        name_attribute: the attribute that holds the names; None looks for it.
        name_language: languages of names to prefer, as ``data.name_language``; None: no preference.
        name_language_source, name_language_target: the same for one graph.
        swap_links: take the links' second column for the source.
        repair_links: spell ends of links as the graphs do where they differ by Unicode normalisation or percent-encoding only.
        names_from_triples: take triples that look like names for names.
        seeds: seed links from names: none, exactly equal ones, or nearly equal ones too.
        rejected: pairs of these that are not to be seeds, by identifier.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Layout] = field(default_factory=dict)
    name_attribute: str | None = None
    name_language: str | None = None
    name_language_source: str | None = None
    name_language_target: str | None = None
    swap_links: bool = False
    repair_links: bool = False
    seeds: SeedChoice = "none"
    rejected: frozenset[Pair] = frozenset()
    names_from_triples: bool = False

    @property
    def naming(self) -> dict[str, str]:
        """``data.option`` -> value: how names are to be read, where the owner said so."""
        return {f"data.{name}": value for name in NAMING if (value := getattr(self, name)) is not None}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``import.json`` stores them."""
        return {
            "roles": dict(self.roles),
            "tables": {
                role: {"delimiter": one.delimiter, "header": one.header, "columns": dict(one.columns), "trim": one.trim}
                for role, one in self.tables.items()
            },
            **{name: getattr(self, name) for name in NAMING},
            "swap_links": self.swap_links,
            "repair_links": self.repair_links,
            "names_from_triples": self.names_from_triples,
            "seeds": self.seeds,
            "rejected": sorted(map(list, self.rejected)),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Corrections:
        """The inverse of :meth:`to_dict`.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        if value["seeds"] not in SEED_CHOICES:
            raise ValueError(value["seeds"])
        return cls(
            roles=dict(value["roles"]),
            tables={
                role: Layout(one["delimiter"], one["header"], dict(one["columns"]), one.get("trim") is True) for role, one in value["tables"].items()
            },
            **{name: value.get(name) for name in NAMING},
            swap_links=bool(value["swap_links"]),
            repair_links=bool(value.get("repair_links", False)),
            names_from_triples=value.get("names_from_triples") is True,
            seeds=value["seeds"],
            rejected=frozenset((str(left), str(right)) for left, right in value["rejected"]),
        )
