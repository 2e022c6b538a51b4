"""RMSprop as in Keras, which the authors used; and two others, for baselines.

The step is torch's own. ``torch.optim.RMSprop`` around it would load torch's compiler, a second and 80 MiB that a short training notices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.optim.rmsprop import rmsprop

from engine.util.devices import has_kernels

RHO = 0.9
EPSILON = 1e-7  # outside the root
LEAST_SUM = 1e-10  # outside the root, of Adagrad


class Optimiser(ABC):
    """What optimisers share: the parameters, and a tensor for each of them that the steps so far have left.

    Attributes:
        averages: of the parameters that had a gradient so far, by their number.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], learning_rate: float) -> None:
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self.averages: dict[int, Tensor] = {}

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @abstractmethod
    def step(self) -> None:
        """Change every parameter that has a gradient."""

    def live(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Each parameter that has a gradient, the gradient, and what the steps so far have left."""
        for number, one in enumerate(self.parameters):
            if one.grad is not None:
                if number not in self.averages:
                    self.averages[number] = self.at_first(one, one.grad)
                yield one, one.grad, self.averages[number]

    def at_first(self, one: Tensor, grad: Tensor) -> Tensor:
        """What a parameter begins with at its first gradient, before any step."""
        return torch.zeros_like(one)

    def load(self, averages: Mapping[int, Tensor]) -> None:
        """Continue with these averages, on the parameters' devices."""
        self.averages = {number: average.to(self.parameters[number].device, copy=True) for number, average in averages.items()}


class RmsProp(Optimiser):
    """Mean squares of the gradients, by parameter.

    Args:
        settled: the parameters have been trained before: averages begin with the first squared gradient and not with 0, which would make the first
            steps about three times as long as all later ones.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], learning_rate: float, *, settled: bool = False) -> None:
        super().__init__(parameters, learning_rate)
        self.settled = settled

    def at_first(self, one: Tensor, grad: Tensor) -> Tensor:
        return grad.square() if self.settled else super().at_first(one, grad)

    @torch.no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        live = list(self.live())
        if not live:
            return
        parameters, gradients, averages = (list(column) for column in zip(*live, strict=True))
        rmsprop(
            parameters,
            gradients,
            averages,
            grad_avgs=[],
            momentum_buffer_list=[],
            state_steps=[torch.zeros(()) for _ in live],  # required, but unused
            foreach=not has_kernels(parameters[0].device),
            lr=self.learning_rate,
            alpha=RHO,
            eps=EPSILON,
            weight_decay=0.0,
            momentum=0.0,
            centered=False,
        )


class Momentum(Optimiser):
    """Gradient descent with momentum.

    Args:
        share: of the former steps that each step repeats.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], learning_rate: float, share: float = 0.9) -> None:
        super().__init__(parameters, learning_rate)
        self.share = share

    @torch.no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        for one, grad, former in self.live():
            one.sub_(former.mul_(self.share).add_(grad), alpha=self.learning_rate)


class Adagrad(Optimiser):
    """Steps that shrink with the squares of all gradients so far (Duchi et al., JMLR 2011), by element; ``averages`` are their sums."""

    @torch.no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        for one, grad, sums in self.live():
            one.addcdiv_(grad, sums.addcmul_(grad, grad).sqrt().add_(LEAST_SUM), value=-self.learning_rate)
