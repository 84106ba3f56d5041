"""How is a curve of position learned? By two layers that never compute in bfloat16."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import leaky_relu, linear

from lgcourse.embeddings.base import full_precision, wide


class SmallMLP(nn.Module):
    """outer(leaky_relu(inner(x))), computed in float32 or wider whatever the weights are stored in.

    Args:
        inputs, hidden, outputs: the widths.
        slope: slope of the leaky ReLU below 0; 0 for a plain ReLU.

    >>> import torch
    >>> SmallMLP(1, 32, 4).bfloat16()(torch.zeros(3, 5, 1)).shape
    torch.Size([3, 5, 4])
    """

    def __init__(self, inputs: int, hidden: int, outputs: int, slope: float = 0.0):
        super().__init__()
        self.inner, self.outer = nn.Linear(inputs, hidden), nn.Linear(hidden, outputs)
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs; x is float32 or wider."""
        with full_precision(x):
            x = linear(x, *(wide(p).to(x.dtype) for p in (self.inner.weight, self.inner.bias)))
            x = leaky_relu(x, self.slope)
            return linear(x, *(wide(p).to(x.dtype) for p in (self.outer.weight, self.outer.bias)))

    def single(self, output: Tensor, x: Tensor) -> Tensor:
        """Return one output for each number x, without a matrix product, so that it can be traced.

        Args:
            output: which output, broadcast with x.
            x: numbers, the only input.
        """
        result = wide(self.outer.bias[output])
        for unit in range(self.inner.out_features):
            on = x * wide(self.inner.weight[unit, 0]) + wide(self.inner.bias[unit])
            result = result + wide(self.outer.weight[output, unit]) * leaky_relu(on, self.slope)
        return result
