"""The paper's decoder, and the same with mutual agreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.decoding.base import NONE, Decoding, best_pairs, register_decoder
from engine.decoding.candidates import Candidates, Lists
from engine.util.arrays import IntArray


@register_decoder
@dataclass(frozen=True)
class CslsDecoder:
    """Everyone's nearest by CSLS (Dual-AMN, section 6.1): never abstains, several may choose the same."""

    name: ClassVar[str] = "csls"
    title: ClassVar[str] = "best match by CSLS"
    one_to_one: ClassVar[bool] = False
    abstains: ClassVar[bool] = False

    def decode(self, candidates: Candidates) -> Decoding:
        by_source, by_target = (best_pairs(lists, candidates.csls)[0] for lists in (candidates.by_source, candidates.by_target))
        return Decoding(self.name, candidates, candidates.csls, by_source, by_target, candidates.tolerance)


@register_decoder
@dataclass(frozen=True)
class MutualDecoder:
    """Pairs that are each other's nearest by CSLS, and alone in that: a tie is no answer. All other entities get none."""

    name: ClassVar[str] = "mutual"
    title: ClassVar[str] = "mutual best matches"
    one_to_one: ClassVar[bool] = True
    abstains: ClassVar[bool] = True

    def decode(self, candidates: Candidates) -> Decoding:
        by_source, by_target = (clear_best(lists, candidates) for lists in (candidates.by_source, candidates.by_target))
        agreed = np.intersect1d(by_source, by_target)
        return Decoding(
            self.name,
            candidates,
            candidates.csls,
            np.where(np.isin(by_source, agreed), by_source, NONE),
            np.where(np.isin(by_target, agreed), by_target, NONE),
            candidates.tolerance,
        )


def clear_best(lists: Lists, candidates: Candidates) -> IntArray:
    """Position of each list's best pair, -1 where the list is empty or its second-best is as good."""
    best, second = best_pairs(lists, candidates.csls)
    tied = second != NONE
    tied[tied] = candidates.csls[best[tied]] - candidates.csls[second[tied]] <= candidates.tolerance
    return np.where(tied, NONE, best)
