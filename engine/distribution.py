"""Several processes that train together: who they are, and what they tell each other.

Every process ("rank") holds the graphs and the parameters. The candidates that a step compares its pairs with are divided among them: each computes the
final embeddings, the products and the gradient of its own part, and small sums go round (per pair what the softmax needs, and at the end the gradients).
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Ranks(Protocol):
    """The processes of a training. All of them must call the same methods in the same order."""

    @property
    def rank(self) -> int:
        """This process, from 0."""
        ...

    @property
    def size(self) -> int: ...

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes, which may be written into ``values``."""
        ...

    def max(self, values: Tensor) -> Tensor:
        """The maximum over all processes, likewise."""
        ...

    def most(self, number: int) -> int:
        """The largest of the processes' numbers."""
        ...


class Alone:
    """One process."""

    rank = 0
    size = 1

    def sum(self, values: Tensor) -> Tensor:
        return values

    def max(self, values: Tensor) -> Tensor:
        return values

    def most(self, number: int) -> int:
        return number


ALONE = Alone()
