"""Activations and dropout, element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from .._autocast import as_autocast
from ..operators import elementwise
from ._arguments import (
    Activation,
    at_most,
    flag,
    in_place,
    named_activation,
    needs_gradient,
    number,
    numbers_of,
    of_shape,
    require,
)

__all__ = [
    "celu",
    "dropout",
    "elu",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]


def activate(
    input: torch.Tensor, name: str, numbers: Mapping[str, float] | None = None, inplace: bool = False
) -> torch.Tensor:
    """The activation of that name, with its numbers by PyTorch's names; any extents, the layout of `input`."""
    return activated(input, name, numbers_of(name, numbers) if numbers else [], inplace)


def activated(input: torch.Tensor, name: str, numbers: list[float], inplace: bool = False) -> torch.Tensor:
    """The same with numbers that are read already."""
    if inplace:
        return in_place(input, lambda given: activated(given, name, numbers))
    return of_shape(input.shape, elementwise.activation(at_most(5, input), name, numbers))


def with_epilogue(
    call: Callable[..., torch.Tensor], activation: Activation, *tensors: torch.Tensor | None
) -> torch.Tensor:
    """call(name, numbers), which ends in that activation; in a kernel of its own where a gradient of `tensors` is asked
    for that the epilogue does not have."""
    name, numbers = named_activation(activation)
    if name in ("", "relu") or not needs_gradient(*tensors):
        return call(name, numbers)
    return activated(call("", []), name, numbers)


def relu(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """max(input, 0); its gradient is computed from the result."""
    return activate(input, "relu", inplace=inplace)


def relu6(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """min(max(input, 0), 6)"""
    return activate(input, "relu6", inplace=inplace)


def leaky_relu(input: torch.Tensor, negative_slope: float = 0.01, inplace: bool = False) -> torch.Tensor:
    """input above 0, else negative_slope * input"""
    return activate(input, "leaky_relu", {"negative_slope": negative_slope}, inplace)


def elu(input: torch.Tensor, alpha: float = 1.0, inplace: bool = False) -> torch.Tensor:
    """input above 0, else alpha * (exp(input) - 1)"""
    return activate(input, "elu", {"alpha": alpha}, inplace)


def selu(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """1.0507 * elu(input, 1.6733)"""
    return activate(input, "selu", inplace=inplace)


def celu(input: torch.Tensor, alpha: float = 1.0, inplace: bool = False) -> torch.Tensor:
    """input above 0, else alpha * (exp(input / alpha) - 1)"""
    return activate(input, "celu", {"alpha": alpha}, inplace)


def gelu(input: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """input times the normal distribution of input; approximate="tanh" by a tanh"""
    return activate(input, gelu_named(approximate))


def gelu_named(approximate: str) -> str:
    """The activation that gelu() is."""
    require(approximate in ("none", "tanh"), f"approximate is {approximate!r}", "give none or tanh")
    return "gelu_tanh" if approximate == "tanh" else "gelu"


def silu(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """input * sigmoid(input)"""
    return activate(input, "silu", inplace=inplace)


def sigmoid(input: torch.Tensor) -> torch.Tensor:
    """1 / (1 + exp(-input)); its gradient is computed from the result."""
    return activate(input, "sigmoid")


def tanh(input: torch.Tensor) -> torch.Tensor:
    """The hyperbolic tangent; its gradient is computed from the result."""
    return activate(input, "tanh")


def hardtanh(
    input: torch.Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> torch.Tensor:
    """min(max(input, min_val), max_val)"""
    return activate(input, "hardtanh", {"min_val": min_val, "max_val": max_val}, inplace)


def hardswish(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """input * relu6(input + 3) / 6"""
    return activate(input, "hardswish", inplace=inplace)


def hardsigmoid(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """relu6(input + 3) / 6"""
    return activate(input, "hardsigmoid", inplace=inplace)


def softplus(input: torch.Tensor, beta: float = 1.0, threshold: float = 20.0) -> torch.Tensor:
    """log(1 + exp(beta * input)) / beta; input where beta * input is above the threshold"""
    return activate(as_autocast(input, "softplus"), "softplus", {"beta": beta, "threshold": threshold})


def mish(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """input * tanh(softplus(input))"""
    return activate(input, "mish", inplace=inplace)


def softsign(input: torch.Tensor) -> torch.Tensor:
    """input / (1 + |input|)"""
    return activate(input, "softsign")


def logsigmoid(input: torch.Tensor) -> torch.Tensor:
    """log(sigmoid(input))"""
    return activate(input, "logsigmoid")


def tanhshrink(input: torch.Tensor) -> torch.Tensor:
    """input - tanh(input)"""
    return activate(input, "tanhshrink")


def softshrink(input: torch.Tensor, lambd: float = 0.5) -> torch.Tensor:
    """input moved towards 0 by lambd; 0 from -lambd to lambd"""
    return activate(input, "softshrink", {"lambd": lambd})


def hardshrink(input: torch.Tensor, lambd: float = 0.5) -> torch.Tensor:
    """input; 0 from -lambd to lambd"""
    return activate(input, "hardshrink", {"lambd": lambd})


def threshold(input: torch.Tensor, threshold: float, value: float, inplace: bool = False) -> torch.Tensor:
    """input above the threshold, else value"""
    return activate(input, "threshold", {"threshold": threshold, "value": value}, inplace)


def new_seed() -> torch.Tensor:
    """Seed of a mask, drawn from PyTorch's generator on the CPU."""
    return torch.randint(0, (1 << 63) - 1, (), dtype=torch.int64)


def dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    """0 with probability p, else input / (1 - p); without `training`, input itself.

    The seed is drawn from PyTorch's generator on the CPU, so torch.manual_seed() makes the mask repeat; nothing is drawn
    where p is 0 or 1, as PyTorch has it. The mask is not PyTorch's.
    """
    p = number("p", p)
    require(0 <= p <= 1, f"p is {p}", "give a probability, from 0 to 1")
    if not flag("training", training) or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0.0) if inplace else input * 0.0
    if inplace:
        return in_place(input, lambda given: dropout(given, p))
    return of_shape(input.shape, elementwise.dropout(at_most(5, input), new_seed(), p))
