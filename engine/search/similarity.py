"""What is searched: a matrix of similarities between two pools that is never written down as a whole.

Search, CSLS, ranks and evaluation only ask for blocks of it and for single pairs, so the same code serves structure alone, names alone and both:

- :class:`StructuralSimilarity`: inner products of embeddings (cosine where rows have unit length);
- :class:`SparseSimilarity`: inner products of sparse rows, such as TF-IDF weights of a name's character n-grams;
- :class:`LiteralSimilarity`: s_ij + w l_ij, the paper's literal variant (section 6), with attribute values beside it.

Blocks are float32 and serve to *find*. Every score that is shown or compared comes from ``pairs``, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from engine.errors import ConfigError
from engine.search.kernels import SparseRows, add_best_products, add_sparse_products, pair_dots, scale_nameless, sparse_pair_dots
from engine.search.rows import check_finite, check_matrix, normalise_rows, not_finite
from engine.util.arrays import IntArray, row_starts, spans
from engine.util.threads import cut, spread

GATHER_BYTES = 64 * 2**20
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
ResultCo = TypeVar("ResultCo", covariant=True)
First = TypeVar("First", contravariant=True)


class Similarity(Protocol):
    """Similarities of n source and m target entities."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        ...

    @property
    def device(self) -> torch.device:
        """Where blocks and pairs are computed."""
        ...

    @property
    def largest(self) -> float:
        """The largest absolute value that is to be expected; rounding errors, and so what counts as a tie, grow with it."""
        ...

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        """(height, width) float32 similarities of a range of source and a range of target entities, written into ``out`` where it is given.

        A block only finds: its values may differ from ``pairs`` in the last bits.
        """
        ...

    def pairs(self, left: Tensor, right: Tensor) -> Tensor:
        """(P,) float64 similarities of source entities ``left`` and target entities ``right``: the one scorer.

        A pair's value does not depend on the other pairs, nor on which side it is asked from.
        """
        ...

    def transposed(self) -> Similarity:
        """(m, n): seen from the target side."""
        ...

    def select(self, rows: Tensor, columns: Tensor) -> Similarity:
        """Restricted to a pool: ``rows`` (n',) of the source and ``columns`` (m',) of the target entities."""
        ...

    def shifted(self, row_terms: Tensor, column_terms: Tensor) -> Similarity:
        """With (n,) and (m,) float32 terms added: similarity_ij + row_terms_i + column_terms_j."""
        ...

    def zero_rows(self) -> tuple[Tensor, Tensor]:
        """(n,), (m,) bool: entities of which nothing is known. Their similarity with everything is 0, which says neither near nor far."""
        ...

    def check(self) -> None:
        """Raise TrainingError if what similarities are computed from is not finite."""
        ...


class TakesSimilarity(Protocol[First, Parameters, ResultCo]):
    """A function of a similarity, or of the two matrices that make one."""

    @overload
    def __call__(self, similarity: First, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> ResultCo: ...
    @overload
    def __call__(self, source: Tensor, target: Tensor, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> ResultCo: ...


def accepting_matrices(
    wrap: Callable[[Tensor, Tensor], Any],
) -> Callable[[Callable[Concatenate[First, Parameters], Result]], TakesSimilarity[First, Parameters, Result]]:
    """Decorator: lets ``function(similarity, ...)`` be called as ``function(source, target, ...)`` too; ``wrap`` makes one of the matrices."""

    def decorate(function: Callable[Concatenate[First, Parameters], Result]) -> TakesSimilarity[First, Parameters, Result]:
        @wraps(function)
        def call(first: Any, *rest: Any, **options: Any) -> Result:
            if isinstance(first, Tensor):
                return function(cast(First, wrap(first, rest[0])), *rest[1:], **options)
            return function(cast(First, first), *rest, **options)

        return cast("TakesSimilarity[First, Parameters, Result]", call)

    return decorate


def on_similarity(function: Callable[Concatenate[Similarity, Parameters], Result]) -> TakesSimilarity[Similarity, Parameters, Result]:
    """Decorator: in place of a similarity, (n, D) and (m, D) float32 rows are taken, with inner products for similarities."""
    return accepting_matrices(StructuralSimilarity)(function)


class StructuralSimilarity:
    """Inner products of rows; cosine where the rows have unit length.

    Args:
        source: (n, D) float32.
        target: (m, D) float32, on the same device.

    Raises:
        ValueError: shapes, types or devices that do not go together (a defect of the caller).
    """

    largest = 1.0

    def __init__(self, source: Tensor, target: Tensor) -> None:
        for matrix, name in ((source, "queries"), (target, "keys")):
            check_matrix(matrix, name)
            if matrix.dtype != torch.float32:
                raise ValueError(f"{name} must be float32; got {matrix.dtype}")
        if source.shape[1] != target.shape[1]:
            raise ValueError(f"queries {tuple(source.shape)} and keys {tuple(target.shape)} differ in width")
        if source.device != target.device:
            raise ValueError(f"queries are on {source.device}, keys on {target.device}")
        self.source, self.target = source, target

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.source), len(self.target)

    def forget(self) -> None:
        """Give the rows up; nothing can be asked any more."""
        self.source, self.target = (rows.new_empty((0, rows.shape[1])) for rows in (self.source, self.target))

    @property
    def width(self) -> int:
        """D."""
        return self.source.shape[1]

    @property
    def device(self) -> torch.device:
        return self.source.device

    def rows(self, side: int, step: int) -> Iterator[Tensor]:
        """All rows of one side, 0 or 1, a number of them at a time."""
        matrix = self.target if side else self.source
        return (matrix[part] for part in cut(len(matrix), step))

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        return torch.mm(self.source[rows], self.target[columns].T, out=out)

    def add_block(self, rows: slice, columns: slice, weight: float, out: Tensor) -> None:
        """Add ``weight`` times the block to ``out``."""
        torch.addmm(out, self.source[rows], self.target[columns].T, alpha=weight, out=out)

    def pairs(self, left: Tensor, right: Tensor) -> Tensor:
        if self.device.type == "cpu":
            rows = self.source.detach().contiguous().numpy(), self.target.detach().contiguous().numpy()
            return torch.from_numpy(pair_dots(*rows, as_indices(left), as_indices(right)))
        step = max(GATHER_BYTES // (16 * max(self.source.shape[1], 1)), 1)
        out = torch.empty(len(left), dtype=torch.float64, device=self.device)
        for part in cut(len(left), step):
            out[part] = (self.source[left[part]].double() * self.target[right[part]].double()).sum(dim=1)
        return out

    def transposed(self) -> StructuralSimilarity:
        return StructuralSimilarity(self.target, self.source)

    def select(self, rows: Tensor, columns: Tensor) -> StructuralSimilarity:
        return StructuralSimilarity(chosen_rows(self.source, rows), chosen_rows(self.target, columns))

    def shifted(self, row_terms: Tensor, column_terms: Tensor) -> Similarity:
        return Shifted(self, row_terms, column_terms)

    def named(self) -> tuple[Tensor, Tensor]:
        """(n,), (m,) bool: rows with a name; a zero row means an entity without a name."""
        return self.source.any(dim=1), self.target.any(dim=1)

    def zero_rows(self) -> tuple[Tensor, Tensor]:
        return without(self.named())

    def check(self) -> None:
        check_finite(self.source, "queries")
        check_finite(self.target, "keys")


class RoundedSimilarity(StructuralSimilarity):
    """Inner products of rows, found by those of the rows as bfloat16 numbers: quicker where the device multiplies these; pairs are scored as ever."""

    def __init__(self, source: Tensor, target: Tensor) -> None:
        super().__init__(source, target)
        self._rounded = source.bfloat16(), target.bfloat16()

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        product = torch.mm(self._rounded[0][rows], self._rounded[1][columns].T)
        return product.float() if out is None else out.copy_(product)


@dataclass(frozen=True)
class UnscaledEmbeddings:
    """Embeddings of any length, as training leaves them: they become a cosine similarity once a pool is selected.

    Attributes:
        source: (n, D).
        target: (m, D), on the same device.
        rounded: whether pools are searched by bfloat16 products.
    """

    source: Tensor  # (n, D)
    target: Tensor  # (m, D)
    rounded: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.source), len(self.target)

    def select(self, rows: Tensor, columns: Tensor) -> StructuralSimilarity:
        """The pool's cosines.

        Raises:
            TrainingError: an embedding of the pool is not finite.
        """
        kind = RoundedSimilarity if self.rounded else StructuralSimilarity
        return kind(normalise_rows(self.source[rows.to(self.source.device)]), normalise_rows(self.target[columns.to(self.target.device)]))


class SparseSimilarity:
    """Inner products of sparse rows, computed from the target's posting lists: work grows with the features that two rows share.

    Args:
        source: (n, F) scipy sparse matrix or array; rows of unit length, zero rows for entities without a name.
        target: (m, F), the same.

    Raises:
        ValueError: the two differ in width.
    """

    largest = 1.0
    device = torch.device("cpu")

    def __init__(self, source: Any, target: Any) -> None:
        if source.shape[1] != target.shape[1]:
            raise ValueError(f"source rows {source.shape} and target rows {target.shape} differ in width")
        self.source, self.target = canonical(source), canonical(target)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.source.shape[0]), int(self.target.shape[0])

    @cached_property
    def _rows(self) -> tuple[SparseRows, SparseRows]:
        return arrays_of(self.source), arrays_of(self.target)

    @cached_property
    def _postings(self) -> SparseRows:
        """For each feature the target entities that have it, ascending."""
        return arrays_of(canonical(self.target.T))

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        if out is None:
            out = torch.empty(_length(rows, self.shape[0]), _length(columns, self.shape[1]))
        out.zero_()
        self.add_block(rows, columns, 1.0, out)
        return out

    def add_block(self, rows: slice, columns: slice, weight: float, out: Tensor) -> None:
        """Add ``weight`` times the block to ``out``, which may live on another device."""
        scores = out if out.device.type == "cpu" else torch.zeros(out.shape)
        top, left = rows.indices(self.shape[0])[0], columns.indices(self.shape[1])[0]
        table, source, postings = scores.numpy(), self._rows[0], self._postings
        spread(
            lambda start, stop: add_sparse_products(table, start, stop, top, left, np.float32(weight), source, postings),
            table.shape[0],
            table.size,
        )
        if scores is not out:
            out += scores.to(out.device)

    def add_best(self, own: IntArray, others: IntArray, weight: float, out: Tensor) -> None:
        """Add ``weight`` times the largest product of two groups' rows to ``out``; products are taken to be at least 0.

        Args:
            own: (height + 1,) where each group of source rows begins; groups are adjacent and not empty.
            others: (width + 1,) the same of target rows.
            weight: a factor.
            out: (height, width), may live on another device.
        """
        scores = out if out.device.type == "cpu" else torch.zeros(out.shape)
        table, source, postings = scores.numpy(), self._rows[0], self._postings
        names = int(own[-1] - own[0]) * int(others[-1] - others[0])
        spread(lambda start, stop: add_best_products(table, start, stop, np.float32(weight), own, others, source, postings), table.shape[0], names)
        if scores is not out:
            out += scores.to(out.device)

    def pairs(self, left: Tensor, right: Tensor) -> Tensor:
        found = sparse_pair_dots(*self._rows, as_indices(left), as_indices(right))
        return torch.from_numpy(found).to(left.device)

    def transposed(self) -> SparseSimilarity:
        return SparseSimilarity(self.target, self.source)

    def select(self, rows: Tensor, columns: Tensor) -> SparseSimilarity:
        return SparseSimilarity(self.source[as_indices(rows)], self.target[as_indices(columns)])

    def shifted(self, row_terms: Tensor, column_terms: Tensor) -> Similarity:
        return Shifted(self, row_terms, column_terms)

    def named(self) -> tuple[Tensor, Tensor]:
        """(n,), (m,) bool: rows that say something."""
        return torch.from_numpy(np.diff(self.source.indptr) > 0), torch.from_numpy(np.diff(self.target.indptr) > 0)

    def zero_rows(self) -> tuple[Tensor, Tensor]:
        return without(self.named())

    def check(self) -> None:
        for matrix, name in ((self.source, "source names"), (self.target, "target names")):
            if not np.isfinite(matrix.data).all():
                raise not_finite(torch.from_numpy(matrix.data[:, None]), name)


class PairParts(NamedTuple):
    """What the similarities of P pairs are made of, each (P,) float64.

    Attributes:
        structure: s.
        names: l, NaN where either entity has no name.
        values: v, 0 where nothing is shared.
    """

    structure: Tensor
    names: Tensor
    values: Tensor


class LiteralSimilarity:
    """s_ij + w l_ij + u v_ij: structure and names (paper section 6, "Dual-AMN (Lit)"), and other attribute values.

    Where either entity has no name, nothing is known about l_ij and it is taken to be s_ij: the pair keeps its structural score, on the scale
    of the others. Zero in its place would put every pair without names behind every pair with alike names. Values are evidence where they are shared,
    and add nothing else.

    Args:
        structure: s, of n source and m target entities.
        names: l, of the same entities.
        weight: w, at least 0.
        values: v, of the same entities, in 0 .. 1; None where values do not count.
        value_weight: u, at least 0.

    Raises:
        ConfigError: a weight that is negative or not finite.
        ValueError: the similarities are of different entities.
    """

    def __init__(
        self,
        structure: StructuralSimilarity,
        names: NameSimilarity,
        weight: float = 1.0,
        values: SparseSimilarity | None = None,
        value_weight: float = 0.0,
    ) -> None:
        for part, what in ((names, "names"), (values, "values")):
            if part is not None and structure.shape != part.shape:
                raise ValueError(f"structure {structure.shape} and {what} {part.shape} are not of the same entities")
        for number, what in ((weight, "names"), (value_weight, "values")):
            if not (math.isfinite(number) and number >= 0):
                raise ConfigError(f"the weight of the {what} must be a number of at least 0; got {number}.")
        self.structure, self.names, self.weight = structure, names, float(weight)
        self.values, self.value_weight = values, float(value_weight) if values is not None else 0.0

    @property
    def shape(self) -> tuple[int, int]:
        return self.structure.shape

    @property
    def device(self) -> torch.device:
        return self.structure.device

    @property
    def largest(self) -> float:
        return 1.0 + self.weight + self.value_weight

    @cached_property
    def named(self) -> tuple[Tensor, Tensor]:
        """(n,), (m,) bool: the entities that have a name."""
        rows, columns = self.names.named()
        return rows.to(self.device), columns.to(self.device)

    @cached_property
    def _all_named(self) -> bool:
        return all(bool(side.all()) for side in self.named)

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        scores = self.structure.block(rows, columns, out)
        if not self._all_named:
            self._fall_back(scores, self.named[0][rows], self.named[1][columns])
        self.names.add_block(rows, columns, self.weight, scores)
        if self.values is not None and self.value_weight:
            self.values.add_block(rows, columns, self.value_weight, scores)
        return scores

    def _fall_back(self, scores: Tensor, rows: Tensor, columns: Tensor) -> None:
        """s to s + w s where a name is missing, in place."""
        if scores.device.type != "cpu":
            scores.mul_(torch.where(rows[:, None] & columns, 1.0, 1.0 + self.weight))
            return
        table, named, factors = scores.numpy(), rows.numpy(), torch.where(columns, 1.0, 1.0 + self.weight).numpy()
        factor = np.float32(1.0 + self.weight)
        spread(lambda start, stop: scale_nameless(table, start, stop, named, factors, factor), table.shape[0], table.size)

    def pairs(self, left: Tensor, right: Tensor) -> Tensor:
        return self.together(self.parts(left, right))

    def together(self, parts: PairParts) -> Tensor:
        """(P,) float64 similarities out of what :meth:`parts` says of the pairs."""
        with_names = parts.structure + self.weight * torch.where(parts.names.isnan(), parts.structure, parts.names)
        return with_names + self.value_weight * parts.values

    def parts(self, left: Tensor, right: Tensor) -> PairParts:
        """s, l and v of given pairs, for explanations."""
        structure = self.structure.pairs(left, right)
        names = self.names.pairs(left, right).to(structure.device)
        known = self.named[0][left] & self.named[1][right]
        values = torch.zeros_like(structure) if self.values is None else self.values.pairs(left, right).to(structure.device)
        return PairParts(structure, torch.where(known, names, torch.nan), values)

    def _with(self, structure: StructuralSimilarity, names: NameSimilarity, values: SparseSimilarity | None) -> LiteralSimilarity:
        return LiteralSimilarity(structure, names, self.weight, values, self.value_weight)

    def transposed(self) -> LiteralSimilarity:
        return self._with(self.structure.transposed(), self.names.transposed(), self.values and self.values.transposed())

    def select(self, rows: Tensor, columns: Tensor) -> LiteralSimilarity:
        parts = self.structure.select(rows, columns), self.names.select(rows, columns)
        return self._with(*parts, self.values and self.values.select(rows, columns))

    def with_weight(self, weight: float) -> LiteralSimilarity:
        """The same with another weight of the names."""
        return LiteralSimilarity(self.structure, self.names, weight, self.values, self.value_weight)

    def shifted(self, row_terms: Tensor, column_terms: Tensor) -> Similarity:
        return Shifted(self, row_terms, column_terms)

    def zero_rows(self) -> tuple[Tensor, Tensor]:
        """Entities that have neither structure nor, where these count, a name or a value."""
        rows, columns = self.structure.zero_rows()
        for part, weight in ((self.names, self.weight), (self.values, self.value_weight)):
            if part is not None and weight:
                own, others = part.named()
                rows, columns = rows & ~own.to(self.device), columns & ~others.to(self.device)
        return rows, columns

    def check(self) -> None:
        self.structure.check()
        self.names.check()
        if self.values is not None:
            self.values.check()


class Around:
    """A similarity that is another one, but for what a subclass does otherwise."""

    def __init__(self, base: Similarity) -> None:
        self.base = base

    @property
    def shape(self) -> tuple[int, int]:
        return self.base.shape

    @property
    def device(self) -> torch.device:
        return self.base.device

    @property
    def largest(self) -> float:
        return self.base.largest

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        return self.base.block(rows, columns, out)

    def pairs(self, left: Tensor, right: Tensor) -> Tensor:
        return self.base.pairs(left, right)

    def transposed(self) -> Similarity:
        return self.base.transposed()

    def select(self, rows: Tensor, columns: Tensor) -> Similarity:
        return self.base.select(rows, columns)

    def shifted(self, row_terms: Tensor, column_terms: Tensor) -> Similarity:
        return Shifted(self, row_terms, column_terms)

    def zero_rows(self) -> tuple[Tensor, Tensor]:
        return self.base.zero_rows()

    def check(self) -> None:
        self.base.check()


class Shifted(Around):
    """A similarity with a term for each row and each column added."""

    def __init__(self, base: Similarity, row_terms: Tensor, column_terms: Tensor) -> None:
        super().__init__(base)
        self.row_terms, self.column_terms = row_terms, column_terms

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        return self.base.block(rows, columns, out).add_(self.row_terms[rows, None]).add_(self.column_terms[columns])

    def pairs(self, left: Tensor, right: Tensor) -> Tensor:
        return self.base.pairs(left, right) + (self.row_terms[left].double() + self.column_terms[right].double())

    def transposed(self) -> Similarity:
        return Shifted(self.base.transposed(), self.column_terms, self.row_terms)

    def select(self, rows: Tensor, columns: Tensor) -> Similarity:
        return Shifted(self.base.select(rows, columns), self.row_terms[rows], self.column_terms[columns])

    def shifted(self, row_terms: Tensor, column_terms: Tensor) -> Similarity:
        return Shifted(self.base, self.row_terms + row_terms, self.column_terms + column_terms)

    def check(self) -> None:
        super().check()
        check_finite(self.row_terms[:, None], "row terms")
        check_finite(self.column_terms[:, None], "column terms")


class BestNames(Around):
    """Similarity of entities that may have several names: that of their best pair of names.

    Args:
        base: of all names, those of an entity next to each other; a name of less weight has a shorter row, an entity without a name one zero row.
        source, target: (n + 1,), (m + 1,) where each entity's names begin; no entity without a row.

    Raises:
        ValueError: the beginnings do not fit the names.
    """

    base: StructuralSimilarity | SparseSimilarity

    def __init__(self, base: StructuralSimilarity | SparseSimilarity, source: IntArray, target: IntArray) -> None:
        for starts, size in zip((source, target), base.shape, strict=True):
            if not len(starts) or starts[0] != 0 or starts[-1] != size or (np.diff(starts) < 1).any():
                raise ValueError(f"the entities' names must cover the {size} rows, one or more each")
        super().__init__(base)
        self.starts = (source.astype(np.int64, copy=False), target.astype(np.int64, copy=False))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.starts[0]) - 1, len(self.starts[1]) - 1

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        if out is None:
            out = torch.empty(_length(rows, self.shape[0]), _length(columns, self.shape[1]), device=self.device)
        out.zero_()
        self.add_block(rows, columns, 1.0, out)
        return out

    def add_block(self, rows: slice, columns: slice, weight: float, out: Tensor) -> None:
        """Add ``weight`` times the block to ``out``, without a table of all the block's names."""
        if not out.numel():
            return
        top, left = rows.indices(self.shape[0])[0], columns.indices(self.shape[1])[0]
        own, others = (self.starts[0][top : top + out.shape[0] + 1], self.starts[1][left : left + out.shape[1] + 1])
        if isinstance(self.base, SparseSimilarity):
            self.base.add_best(own, others, weight, out)
        else:
            self._add_strips(own, others, weight, out)

    def _add_strips(self, own: IntArray, others: IntArray, weight: float, out: Tensor) -> None:
        across = slice(int(others[0]), int(others[-1]))
        for part in cut(len(own) - 1, max(out.shape[0] // 4, 1)):
            ends = own[part.start : part.stop + 1]
            table = self.base.block(slice(int(ends[0]), int(ends[-1])), across).cpu().numpy()
            best = np.maximum.reduceat(np.maximum.reduceat(table, ends[:-1] - ends[0], axis=0), others[:-1] - others[0], axis=1)
            out[part] += weight * torch.from_numpy(best).to(out.device)

    def pairs(self, left: Tensor, right: Tensor) -> Tensor:
        values, begins, _, _ = self._meetings(left, right)
        return torch.from_numpy(np.maximum.reduceat(values, begins)) if len(begins) else torch.empty(0, dtype=torch.float64)

    def meeting(self, left: int, right: int) -> tuple[int, int]:
        """Which of the two entities' names are the best pair, counted from 0 within each; of equals the first."""
        values, _, own, others = self._meetings(torch.tensor([left]), torch.tensor([right]))
        best = int(values.argmax())
        return int(own[best] - self.starts[0][left]), int(others[best] - self.starts[1][right])

    def _meetings(self, left: Tensor, right: Tensor) -> tuple[npt.NDArray[np.float64], IntArray, IntArray, IntArray]:
        """Similarity of every name of each left entity with every name of the right one, where each pair's begin, and the names' rows."""
        rows, columns = as_indices(left), as_indices(right)
        wide = self.starts[1][columns + 1] - self.starts[1][columns]
        counts = (self.starts[0][rows + 1] - self.starts[0][rows]) * wide
        within = spans(np.zeros_like(counts), counts)
        own = np.repeat(self.starts[0][rows], counts) + within // np.repeat(wide, counts)
        others = np.repeat(self.starts[1][columns], counts) + within % np.repeat(wide, counts)
        values = self.base.pairs(torch.from_numpy(own), torch.from_numpy(others)).cpu().numpy()
        return values, row_starts(counts)[:-1], own, others

    def transposed(self) -> BestNames:
        return BestNames(self.base.transposed(), self.starts[1], self.starts[0])

    def select(self, rows: Tensor, columns: Tensor) -> BestNames:
        kept = [selected_names(starts, as_indices(chosen)) for starts, chosen in zip(self.starts, (rows, columns), strict=True)]
        base = self.base.select(torch.from_numpy(kept[0][0]), torch.from_numpy(kept[1][0]))
        return BestNames(base, kept[0][1], kept[1][1])

    def named(self) -> tuple[Tensor, Tensor]:
        """(n,), (m,) bool: entities of which some name says something."""
        sides = [
            torch.from_numpy(np.logical_or.reduceat(rows.cpu().numpy(), starts[:-1])) if len(starts) > 1 else torch.zeros(0, dtype=torch.bool)
            for rows, starts in zip(self.base.named(), self.starts, strict=True)
        ]
        return sides[0], sides[1]

    def zero_rows(self) -> tuple[Tensor, Tensor]:
        return without(self.named())


def selected_names(starts: IntArray, entities: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of the chosen entities' names, and where each of them begins among these."""
    counts = starts[entities + 1] - starts[entities]
    return spans(starts[entities], counts), row_starts(counts)


NameSimilarity = StructuralSimilarity | SparseSimilarity | BestNames
"""Similarity of names: rows of unit length, zero rows for entities without a name."""


def canonical(matrix: Any) -> sparse.csr_array:
    """CSR with float32 values, sorted int32 columns and nothing stored twice or stored as zero."""
    rows = sparse.csr_array(matrix, dtype=np.float32)
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()  # the caller's arrays are not ours to change
        rows.sum_duplicates()
        rows.eliminate_zeros()
    return rows


def arrays_of(rows: sparse.csr_array) -> SparseRows:
    """(indptr, indices, values) with the types that the kernels are compiled for."""
    return rows.indptr.astype(np.int64, copy=False), rows.indices.astype(np.int32, copy=False), rows.data


def chosen_rows(matrix: Tensor, rows: Tensor) -> Tensor:
    """(r, D) some rows; the matrix itself where these are all of them in their order."""
    rows = rows.to(matrix.device)
    whole = len(rows) == len(matrix) and torch.equal(rows, torch.arange(len(matrix), device=matrix.device))
    return matrix if whole else matrix[rows]


def without(sides: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The other rows of both sides."""
    return ~sides[0], ~sides[1]


def as_indices(indices: Tensor) -> IntArray:
    """A contiguous int64 array on the CPU."""
    return np.ascontiguousarray(indices.detach().cpu().numpy(), dtype=np.int64)


def _length(part: slice, size: int) -> int:
    return len(range(*part.indices(size)))
