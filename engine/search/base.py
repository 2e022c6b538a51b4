"""What every search index offers, and the registry of indexes.

An index finds, for each row of a similarity, the columns with the largest values. Shifted by the hubness terms the same search finds CSLS
neighbours (see :mod:`engine.search.csls`), so one interface serves both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from torch import Tensor

from engine.search.rows import check_finite, check_matrix, normalise_rows, not_finite
from engine.search.similarity import Similarity, StructuralSimilarity
from engine.util.registry import Registry

__all__ = [
    "DEFAULT_BUDGET",
    "ENOUGH_BUDGET",
    "INDEXES",
    "CslsNeighbours",
    "SearchIndex",
    "TopK",
    "check_finite",
    "check_matrix",
    "get_index",
    "normalise_rows",
    "not_finite",
    "register_index",
]

DEFAULT_BUDGET = 256 * 2**20
"""Bytes that a block of scores may take."""
ENOUGH_BUDGET = 128 * 2**20
"""Bytes from which on a larger block makes nothing faster, unless whole rows are needed and are long."""


@dataclass(frozen=True)
class TopK:
    """The k best candidates of each query, best first; among equal scores the lower index comes first.

    Attributes:
        values: (n, k) float32 scores, descending along a row.
        indices: (n, k) int64 rows of the candidates.
        exact: (n, k) float64 what :meth:`~engine.search.similarity.Similarity.pairs` gives for them, without terms; None where it is not known yet.
    """

    values: Tensor  # (n, k)
    indices: Tensor  # (n, k)
    exact: Tensor | None = None  # (n, k)


@dataclass(frozen=True)
class CslsNeighbours:
    """The best by CSLS from either side, found by half of the score, and the hubness terms that make it up."""

    terms: Hubness
    of_source: TopK
    of_target: TopK


class SearchIndex(Protocol):
    """Search for the largest similarities. Implementations return tensors on the similarity's device."""

    @property
    def name(self) -> str: ...

    @abstractmethod
    def search(self, similarity: Similarity, k: int) -> TopK:
        """The k best target entities of each of n source entities, among m.

        Args:
            similarity: (n, m).
            k: at least 1; clipped to m.

        Returns:
            (n, min(k, m)) values and indices.

        Raises:
            TrainingError: what similarities are computed from is not finite.
            ConfigError: this index cannot search this kind of similarity.
        """
        ...

    @abstractmethod
    def search_both(self, similarity: Similarity, k: int) -> tuple[TopK, TopK]:
        """``search`` of the similarity and of its transpose, in one pass where the index can do that."""
        ...

    def hubness(self, similarity: Similarity, k: int) -> Hubness:
        """Hubness terms of k neighbours."""
        of_source, of_target = both_directions(self, similarity, k)
        return zeros_last(similarity, Hubness(mean_value(of_source.values), mean_value(of_target.values), k))

    def search_csls(self, similarity: Similarity, k: int, top: int) -> CslsNeighbours:
        """The ``top`` best by CSLS with hubness terms of k neighbours."""
        return self.search_csls_within(similarity, self.hubness(similarity, k), top)

    def search_csls_within(self, similarity: Similarity, terms: Hubness, top: int) -> CslsNeighbours:
        """The ``top`` best by CSLS with given hubness terms."""
        return CslsNeighbours(terms, *both_directions(self, half_csls(similarity, terms), top))

    def top_k(self, queries: Tensor, keys: Tensor, k: int) -> TopK:
        """``search`` of the inner products of (n, D) and (m, D) float32 rows."""
        return self.search(StructuralSimilarity(queries, keys), k)


class Divided(Similarity):
    """A similarity whose rows lie in several processes (:mod:`engine.search.divided`): blocks of it are expensive, so rows are searched where they
    lie."""

    @abstractmethod
    def search_both(self, index: SearchIndex, k: int) -> tuple[TopK, TopK]:
        """What the index's ``search_both`` would give; it is asked about parts of the entities."""
        ...

    @abstractmethod
    def count_better(self, links: Tensor, bars: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """See :func:`engine.search.ranks.count_better`."""
        ...


def both_directions(index: SearchIndex, similarity: Similarity, k: int) -> tuple[TopK, TopK]:
    """The k best of each source and each target entity, wherever their rows lie."""
    return similarity.search_both(index, k) if isinstance(similarity, Divided) else index.search_both(similarity, k)


IndexClass = TypeVar("IndexClass", bound=type)
INDEXES: Registry[Callable[[], SearchIndex]] = Registry("search index")


def register_index(name: str) -> Callable[[IndexClass], IndexClass]:
    """Class decorator: makes an index available under a name."""

    def as_it_is(cls: IndexClass) -> Callable[[], SearchIndex]:
        return cls

    return INDEXES.register(name, as_it_is)


def get_index(index: str | SearchIndex) -> SearchIndex:
    """An index by its registered name; an instance is passed through.

    Raises:
        ConfigError: no index has this name.
    """
    return INDEXES.named(index)() if isinstance(index, str) else index


def check_k(k: int) -> None:
    """Raise ValueError unless k is at least 1."""
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}")


# The hubness terms of CSLS, and the similarity shifted by them (see :mod:`engine.search.csls`).

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
