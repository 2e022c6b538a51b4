"""What is particular about SSSOM tables: a block of metadata in front, and CURIEs in place of identifiers.

Only what reading known links needs is understood of the metadata: ``curie_map``, which says what the prefixes stand for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from engine.datasets.blocks import read_blocks

IDENTITY_PREDICATES = frozenset({"sameAs", "exactMatch"})
"""Local names of owl:sameAs and skos:exactMatch: what makes a mapping a link."""
_ENTRY = re.compile(r"#\s+([\w.-]+)\s*:\s+(\S.*?)\s*")


def read_curie_map(path: Path) -> dict[str, str]:
    """Prefix -> IRI, from the metadata in front of a table; empty where there is none.

    Raises:
        DataError: as :func:`read_blocks`; bytes that are not UTF-8.
    """
    prefixes: dict[str, str] = {}
    inside = False
    for line in (line for block in read_blocks(path) for line in block.text().split("\n")):
        if not line.startswith("#"):
            break
        entry = _ENTRY.fullmatch(line)
        if inside and entry:
            prefixes[entry[1]] = _unquoted(entry[2])
        else:
            inside = line.lstrip("# ").rstrip() == "curie_map:"
    return prefixes


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def expand(curie: str, prefixes: Mapping[str, str]) -> str:
    """The identifier that a CURIE stands for; one without a known prefix stands for itself."""
    prefix, colon, rest = curie.partition(":")
    return prefixes[prefix] + rest if colon and prefix in prefixes else curie


def says_same(predicate: str, modifier: str) -> bool:
    """Whether a mapping says that its two ends are the same thing."""
    return re.split(r"[:#/]", predicate)[-1] in IDENTITY_PREDICATES and modifier.strip().lower() != "not"
