"""What is particular about SSSOM tables: a block of metadata in front, and CURIEs in place of identifiers.

Only what reading known links needs is understood of the metadata: ``curie_map``, which expands the prefixes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from engine.data.apart import EQUAL, RELATIONS, local_predicate
from engine.data.files import read_blocks
from engine.util.text import shorten

NO_TERM = frozenset({"sssom:NoTermFound", "https://w3id.org/sssom/NoTermFound"})
"""The placeholder for the end of a mapping that has none: a counterpart was looked for, and there is none."""
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
    """The identifier that a CURIE abbreviates; one without a known prefix is returned unchanged."""
    prefix, colon, rest = curie.partition(":")
    return prefixes[prefix] + rest if colon and prefix in prefixes else curie


def why_not(source: str, target: str, predicate: str, modifier: str) -> str | None:
    """Why a mapping does not say that its two ends are the same thing, for behind a number of mappings; None if it says so."""
    if modifier.strip().lower() == "not":
        return "negated (predicate_modifier Not)"
    if source in NO_TERM or target in NO_TERM:
        return "without a counterpart (sssom:NoTermFound)"
    return None if local_predicate(predicate) in EQUAL else f"with {shorten(predicate.strip(), 60) or 'no predicate'}"


def relation_apart(source: str, target: str, predicate: str, modifier: str) -> str | None:
    """The relation of a mapping that says less than equality (:mod:`engine.data.apart`); None of any other."""
    if modifier.strip().lower() == "not" or source in NO_TERM or target in NO_TERM:
        return None
    return RELATIONS.get(local_predicate(predicate))
