"""The hubness terms of CSLS, and the similarity shifted by them (see :mod:`engine.search.csls`)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from engine.search.rows import check_finite
from engine.search.similarity import Similarity


@dataclass(frozen=True)
class Hubness:
    """r(e) for both pools: the mean cosine with the k nearest of the other pool.

    Attributes:
        source: (n,) float32.
        target: (m,) float32.
        k: neighbours asked for; a smaller pool gives all that it has, an empty one 0.
    """

    source: Tensor  # (n,)
    target: Tensor  # (m,)
    k: int

    def flipped(self) -> Hubness:
        """The same with the pools' parts exchanged."""
        return Hubness(self.target, self.source, self.k)


def mean_value(values: Tensor) -> Tensor:
    """(n,) means of the (n, k) values of each query; 0 where there are none."""
    return values.mean(dim=1) if values.shape[1] else values.new_zeros(len(values))


def half_csls(similarity: Similarity, terms: Hubness) -> Similarity:
    """(n, m) half the CSLS scores, for finding.

    Raises:
        TrainingError: a hubness term is not finite.
    """
    check_finite(terms.source[:, None], "hubness terms")
    check_finite(terms.target[:, None], "hubness terms")
    return similarity.shifted(-terms.source / 2, -terms.target / 2)
