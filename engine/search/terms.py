"""The hubness terms of CSLS, and the similarity shifted by them (see :mod:`engine.search.csls`)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from engine.search.rows import check_finite
from engine.search.similarity import Similarity

ZERO_TERM = 4.0
"""Hubness term of a zero row, in multiples of the largest similarity: CSLS with it lies below that of any other pair, which is at least -3 - r."""


@dataclass(frozen=True)
class Hubness:
    """r(e) for both pools: the mean cosine with the k nearest of the other pool; of zero rows ``ZERO_TERM``, so that they come last.

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


def zero_term(similarity: Similarity) -> float:
    """The hubness term of zero rows."""
    return ZERO_TERM * max(similarity.largest, 1.0)


def zeros_last(similarity: Similarity, terms: Hubness) -> Hubness:
    """The terms with those of zero rows replaced.

    The mean cosine of a zero row is 0, the lowest of all: without this it would be the best match of every entity that is far from all others, and of
    every other zero row.
    """
    rows, columns = similarity.zero_rows()
    term = zero_term(similarity)
    return Hubness(terms.source.masked_fill(rows, term), terms.target.masked_fill(columns, term), terms.k)


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
