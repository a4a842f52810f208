"""Arguments as PyTorch's functions take them, made into those of operators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar, Union

import torch

from ...errors import InvalidArgument, Unsupported
from .._autocast import autocasting
from ..operators._activations import activation_of

Ints = Union[int, Sequence[int]]
Activation = Union[None, str, tuple[Any, ...]]  # "relu", or with its numbers: ("leaky_relu", 0.2)

Given = ParamSpec("Given")
Result = TypeVar("Result")


def of_axes(axes: int, function: Callable[Concatenate[int, Given], Result], text: str) -> Callable[Given, Result]:
    """`function` of that many axes, which is its first argument, under its own name: conv of 2 is conv2d. `text`: its
    documentation."""

    def made(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        return function(axes, *args, **kwargs)

    signature = inspect.signature(function)
    named: Any = made
    named.__name__ = named.__qualname__ = f"{function.__name__}{axes}d"
    named.__module__ = function.__module__
    named.__doc__ = text
    named.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
    return made


def require(holds: bool, message: str, hint: str) -> None:
    if not holds:
        raise InvalidArgument(message, hint)


def require_served(holds: bool, message: str, hint: str = "call PyTorch's function") -> None:
    if not holds:
        raise Unsupported(message, hint)


def per_axis(name: str, value: Ints, axes: int) -> tuple[int, ...]:
    """One number for all axes, or one for each: paddings of 0 or more, and others of 1 or more."""
    numbers = (value,) * axes if isinstance(value, int) else tuple(value)
    numbers = numbers * axes if len(numbers) == 1 else numbers
    if len(numbers) != axes:
        raise InvalidArgument(f"{name} is {value!r}", f"give a number, or one for each of {axes} axes")
    least = 0 if name.endswith("padding") else 1
    for number in numbers:
        if number < least:
            raise InvalidArgument(f"{name} is {value!r}", f"give {least} or more")
    return numbers


def batched(input: torch.Tensor, axes: int, name: str) -> tuple[torch.Tensor, bool]:
    """`input` with a batch in front, and whether it had one."""
    if input.dim() not in (axes + 1, axes + 2):
        raise InvalidArgument(
            f"{name} takes an input of {axes + 1} or {axes + 2} dimensions, and this has {input.dim()}",
            "give channels and spatial dimensions, with a batch in front or without one",
        )
    return (input, True) if input.dim() == axes + 2 else (input.unsqueeze(0), False)


def same_dtype(name: str, **tensors: torch.Tensor | None) -> None:
    """Requires one type of all, as PyTorch does; autocast makes them one."""
    (first_name, first), *others = tensors.items()
    assert first is not None
    for other, each in others:
        if each is not None and each.dtype != first.dtype and not autocasting(first):
            raise InvalidArgument(f"{name}: {other} is {each.dtype} and {first_name} is {first.dtype}", "convert one of them")


def needs_gradient(*tensors: torch.Tensor | None) -> bool:
    if torch.is_grad_enabled():
        for each in tensors:
            if each is not None and each.requires_grad:
                return True
    return False


def of_shape(shape: Sequence[int], result: torch.Tensor) -> torch.Tensor:
    """`result` with the extents of `shape`, which has as many elements; itself where only its number of dimensions may
    be another."""
    return result if result.dim() == len(shape) else result.view(tuple(shape))


def named_activation(activation: Activation) -> tuple[str, list[float]]:
    """Its name, and its numbers or their defaults."""
    if activation is None:
        return "", []
    name, *numbers = (activation,) if isinstance(activation, str) else activation
    defaults = list(activation_of(name).defaults.values())
    require(
        len(numbers) <= len(defaults),
        f"activation is {activation!r}",
        f"{name} takes {len(defaults)} numbers: {', '.join(activation_of(name).defaults) or 'none'}",
    )
    return name, [*map(float, numbers), *defaults[len(numbers) :]]


INT32 = torch.iinfo(torch.int32)


def as_int32(indices: torch.Tensor) -> torch.Tensor:
    """Indices of 32 bits. Those that do not fit become the largest or smallest, which are no indices either."""
    return (indices.clamp(INT32.min, INT32.max) if indices.dtype == torch.int64 else indices).to(torch.int32)


def at_most(rank: int, input: torch.Tensor) -> torch.Tensor:
    """`input` with its first dimensions made one, where it has more than `rank`; a number becomes one element."""
    if input.dim() > rank:
        return input.flatten(0, input.dim() - rank)
    return input.reshape(1) if input.dim() == 0 else input


def in_place(input: torch.Tensor, function: Any) -> torch.Tensor:
    """Writes function(input) into `input`, whose old elements its gradient may need."""
    return input.copy_(function(input.clone() if needs_gradient(input) else input))
