"""What the Dual-AMN paper reports (WWW 2021: tables 3 and 4, means of five runs, and the ablation), to compare with our own figures.

A data set is recognised by its size, entities and triples of both graphs, and not by its name: folders are renamed, files are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Size = tuple[int, int]  # entities, relation triples

TRIPLE_TOLERANCE = 0.001  # copies differ in a few duplicate triples, which readers drop; two SRPRS sets lie only 0.2 % apart


@dataclass(frozen=True)
class PaperFigure:
    """One cell of the paper's tables."""

    dataset: str
    variant: str
    hits_at_1: float
    hits_at_10: float
    mrr: float
    seconds: float


SIZES: dict[str, tuple[Size, Size]] = {
    "DBP15K ZH-EN": ((19_388, 70_414), (19_572, 95_142)),
    "DBP15K JA-EN": ((19_814, 77_214), (19_780, 93_484)),
    "DBP15K FR-EN": ((19_661, 105_998), (19_993, 115_722)),
    "SRPRS FR-EN": ((15_000, 33_532), (15_000, 36_508)),
    "SRPRS DE-EN": ((15_000, 37_377), (15_000, 38_363)),
    "SRPRS DBP-WD": ((15_000, 38_421), (15_000, 40_159)),
    "SRPRS DBP-YG": ((15_000, 33_748), (15_000, 36_569)),
    "DWY100K DBP-WD": ((100_000, 463_294), (100_000, 448_774)),
    "DWY100K DBP-YG": ((100_000, 428_952), (100_000, 502_563)),
}

# Hits@1, Hits@10, MRR
RESULTS: dict[str, dict[str, tuple[float, float, float]]] = {
    "DBP15K ZH-EN": {"basic": (0.731, 0.923, 0.799), "semi": (0.808, 0.940, 0.857), "literal": (0.861, 0.964, 0.901)},
    "DBP15K JA-EN": {"basic": (0.726, 0.927, 0.799), "semi": (0.801, 0.949, 0.855), "literal": (0.892, 0.978, 0.925)},
    "DBP15K FR-EN": {"basic": (0.756, 0.948, 0.827), "semi": (0.840, 0.965, 0.888), "literal": (0.954, 0.994, 0.970)},
    "SRPRS FR-EN": {"basic": (0.452, 0.748, 0.552), "semi": (0.481, 0.778, 0.568), "literal": (0.802, 0.932, 0.851)},
    "SRPRS DE-EN": {"basic": (0.591, 0.820, 0.670), "semi": (0.614, 0.823, 0.687), "literal": (0.891, 0.972, 0.923)},
    "SRPRS DBP-WD": {"basic": (0.513, 0.801, 0.609), "semi": (0.546, 0.813, 0.635)},
    "SRPRS DBP-YG": {"basic": (0.495, 0.790, 0.596), "semi": (0.518, 0.795, 0.613)},
    "DWY100K DBP-WD": {"basic": (0.786, 0.952, 0.848), "semi": (0.869, 0.969, 0.908)},
    "DWY100K DBP-YG": {"basic": (0.866, 0.977, 0.907), "semi": (0.907, 0.981, 0.935)},
}

# Hits@1, MRR of the basic variant with one part of the encoder off, by the option that switches it off.
ABLATION: dict[str, dict[str, tuple[float, float]]] = {
    "DBP15K ZH-EN": {
        "relational_attention": (0.705, 0.781),
        "relational_projection": (0.702, 0.779),
        "multi_hop": (0.656, 0.743),
        "proxy_matching": (0.711, 0.785),
    },
}

# Whole runs on the paper's TITAN X.
SECONDS: dict[str, dict[str, float]] = {
    "DBP15K": {"basic": 35, "semi": 85, "literal": 101},
    "SRPRS": {"basic": 27, "semi": 79, "literal": 96},
    "DWY100K": {"basic": 1094, "semi": 3169, "literal": 3257},
}


def recognise(source: Size, target: Size) -> str | None:
    """The paper's name for a data set with these sizes, whichever graph comes first; None for any other data."""
    for name, (first, second) in SIZES.items():
        if (_alike(source, first) and _alike(target, second)) or (_alike(source, second) and _alike(target, first)):
            return name
    return None


def paper_figure(source: Size, target: Size, variant: str) -> PaperFigure | None:
    """What the paper reports for this data set and variant; None where it reports nothing.

    The paper trains on 30 % of the links and ranks the target's entities' counterparts within the test entities; a run with
    another split cannot be compared with it.
    """
    name = recognise(source, target)
    result = RESULTS.get(name, {}).get(variant) if name else None
    if name is None or result is None:
        return None
    return PaperFigure(name, variant, *result, seconds=SECONDS[name.split()[0]][variant])


def paper_ablation(source: Size, target: Size) -> Mapping[str, tuple[float, float]]:
    """Hits@1 and MRR that the paper reports for the basic variant with a part off, by ``encoder`` option; empty where it reports none."""
    return ABLATION.get(recognise(source, target) or "", {})


def _alike(size: Size, known: Size) -> bool:
    return size[0] == known[0] and abs(size[1] - known[1]) <= TRIPLE_TOLERANCE * known[1]
