"""Identifiers of blank nodes that do not depend on the order of a file.

A blank node with a label keeps it. One without (``[]`` in Turtle, nested elements in RDF/XML, objects without ``@id`` in JSON-LD) gets a hash
of what is said of it and of where it hangs. Such nodes form a forest: each is the object of one triple at most. So the hash is exact: nodes with
the same hash are interchangeable, and are numbered.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Final

Columns = tuple[Sequence[str], Sequence[str], Sequence[str]]
Facts = list[tuple[str, str, str]]

DIGITS: Final = 16
_RANDOM: Final = re.compile(r"_:[0-9a-f]{24,32}")
"""What the parser calls a node without a label."""
_LABELS: Final = re.compile(r"""_:([^\s<>"'()\[\]{};,]+)|nodeID\s*=\s*["']([^"']+)["']""")


def anonymous_nodes(nodes: Collection[str], text: str) -> set[str]:
    """Those of a file's blank nodes (``_:name``) that have no label in the file."""
    suspects = {node for node in nodes if _RANDOM.fullmatch(node)}
    if not suspects:
        return suspects
    for match in _LABELS.finditer(text):
        label = match[1] or match[2]
        suspects -= {f"_:{label}", f"_:{label.rstrip('.')}"}  # a label may hold points, but the last one ends the statement
    return suspects


def stable_names(nodes: Collection[str], triples: Columns, attributes: Columns) -> dict[str, str]:
    """Identifiers for nodes without a label: ``_:[HASH]``, which no label can be.

    Args:
        nodes: the nodes without a label, as the parser calls them.
        triples: heads, relations, tails.
        attributes: entities, attributes, values.
    """
    forest = _Forest(set(nodes), triples, attributes)
    below: dict[str, str] = {}
    for node in reversed(forest.order):
        said = [*forest.facts[node], *((relation, "[]", below.get(child, "")) for relation, child in forest.children[node])]
        below[node] = _hash("below", *(part for fact in sorted(said) for part in fact))
    names: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for node in forest.order:
        above = [(names.get(head, head), relation) for head, relation in forest.above[node]]
        place = _hash("place", below[node], *(part for link in sorted(above) for part in link))
        names[node] = f"_:[{_hash(place, str(seen[place]))[:DIGITS]}]"
        seen[place] += 1
    return names


class _Forest:
    """What is said of nodes without a label, and how they hang together.

    Attributes:
        facts: node -> what is said of it without other such nodes.
        children: node -> relations to such nodes.
        above: node -> triples of which it is the object: head and relation.
        order: all nodes, each behind the one that it hangs on.
    """

    def __init__(self, nodes: set[str], triples: Columns, attributes: Columns) -> None:
        self.facts: dict[str, Facts] = defaultdict(list)
        self.children: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self.above: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for entity, attribute, value in zip(*attributes, strict=True):
            if entity in nodes:
                self.facts[entity].append((attribute, "value", value))
        for head, relation, tail in zip(*triples, strict=True):
            if tail in nodes:
                self.above[tail].append((head, relation))
                if head in nodes:
                    self.children[head].append((relation, tail))
            elif head in nodes:
                self.facts[head].append((relation, "entity", tail))
        self.order = self._ordered(nodes)

    def _ordered(self, nodes: set[str]) -> list[str]:
        """Roots first. Every node comes, even in a graph that is no forest."""
        roots = [node for node in sorted(nodes) if not any(head in nodes for head, _ in self.above[node])]
        order: dict[str, None] = {}
        for root in (*roots, *sorted(nodes)):
            waiting = [root]
            while waiting:
                node = waiting.pop()
                if node not in order:
                    order[node] = None
                    waiting += [child for _, child in self.children[node]]
        return list(order)


def _hash(*parts: str) -> str:
    """Hexadecimal; lengths come along, so that no two lists of texts give the same."""
    hasher = hashlib.sha256()
    for part in parts:
        content = part.encode(errors="surrogatepass")
        hasher.update(len(content).to_bytes(8, "little") + content)
    return hasher.hexdigest()
