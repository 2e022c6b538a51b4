"""What to do about a finding of an import: on the page, where the means are at hand, and on the command line, where they are options."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.data.knowledge_graph import Finding
from engine.data.splits import OWN_TRAIN_RATIO


@dataclass(frozen=True)
class Remedy:
    """What to do, in the words of the page and in those of the command line."""

    page: str
    command: str


REMEDIES: Final[Mapping[str, Remedy]] = {
    "links-swapped": Remedy("Swap their columns.", "Swap their columns with --swap-links."),
    "links-unknown": Remedy(
        "Check that identifiers are written alike, or bring other links instead.",
        "Check that identifiers are written alike, or give other links with --links FILE.",
    ),
    "links-partly-unknown": Remedy("Check how these identifiers are written.", "Check how these identifiers are written in --links FILE."),
    "links-spelt-otherwise": Remedy("Spell them as the graphs do.", "Spell them as the graphs do with --repair-links."),
    "one-graph-twice": Remedy("Choose the other graph's file for one of them.", "Give the source graph's file first and the target graph's second."),
    "shared-triples": Remedy(*["Check that these are two graphs and not one in two versions."] * 2),
    "columns-mixed-up": Remedy(
        "Check which column holds the relations.", "Say which column holds the relations with --columns graph1:relation=NUMBER (or graph2)."
    ),
    "header-as-triple": Remedy(
        "Say that this file's first row is a header, or leave it as a triple.",
        "Say that the first row is a header with --columns graph1:header=yes (or graph2), or leave it as a triple.",
    ),
    "blanks-around-identifiers": Remedy(
        "Switch on 'Remove blanks around cells' below the rows of this file if they do not belong to its identifiers.",
        "Remove blanks around cells with --columns graph1:trim=yes (or graph2, links) if they do not belong to identifiers.",
    ),
    "index-column": Remedy(
        "If it holds identifiers, choose it as a column below the rows of this file.",
        "If it holds identifiers, say which column is which with --columns graph1:head=1,relation=2,tail=3 (or graph2, links).",
    ),
    "header-as-link": Remedy(
        "Say that this file's first row is a header, below its rows.",
        "Say that the first row is a header with --columns links:header=yes, or that it is a link with header=no.",
    ),
    "files-passed-over": Remedy(
        "If one of them belongs to the data, choose it under 'Which file is what', or give it a name that says what it is.",
        "If one of them belongs to the data, give it with --links, --attributes1 or --attributes2, or a name that says what it is.",
    ),
    "names-as-triples": Remedy("Take them as names.", "Take them as names with --names-from-triples."),
    "no-seeds": Remedy(
        "Bring a file of known links, or take seeds from names where names suggest some.",
        "Bring known links with --links FILE, or take seeds with --seeds-from-names where names suggest some.",
    ),
    "few-seeds": Remedy(
        "Take seeds from names as well, where names suggest some.",
        "Bring more with --links FILE, or take seeds with --seeds-from-names where names suggest some.",
    ),
    "no-test-links": Remedy(
        "Review a random sample of the matches to measure it. Where the links suffice, the page Train offers to keep a fifth of them for a test.",
        f"Review a sample of the matches to measure it, or keep a fifth of the links for a test with --train-ratio {OWN_TRAIN_RATIO:g}.",
    ),
    "name-languages": Remedy(
        "Choose another one for either graph below the attribute that holds the names.",
        "Choose others with --name-language en,de, or with --name-language source=de --name-language target=en.",
    ),
    "entities-without-name": Remedy(
        "Identifiers stand in for them. If an attribute holds names, choose it; names in a file of their own can be brought with the graphs.",
        "Identifiers stand in for them. If an attribute holds names, say so with --name-attribute NAME; "
        "names in files of their own are given with --attributes1 and --attributes2.",
    ),
}
"""By a finding's code: what an import alone can notice, and findings of an inspection that an import can do something about."""


def on_the_page(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings with what to do about them on the import page."""
    return tuple(_with_advice(finding, REMEDIES[finding.code].page) if finding.code in REMEDIES else finding for finding in findings)


def on_the_command_line(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings with the options that fix them."""
    return tuple(_with_advice(finding, REMEDIES[finding.code].command) if finding.code in REMEDIES else finding for finding in findings)


def _with_advice(finding: Finding, advice: str) -> Finding:
    return dataclasses.replace(finding, advice=advice)
