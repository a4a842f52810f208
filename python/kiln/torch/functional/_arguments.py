"""Arguments as PyTorch's functions take them, made into those of operators.

number(), integer() and flag() read each number, integer and bool of the functions here. They refuse the types that
PyTorch's own parser of arguments refuses, so that PyTorch raises its error in an optimized model.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar, Union

import torch

from ...errors import InvalidArgument, Unsupported
from .._autocast import autocasting
from ..operators._activations import activation_of

Ints = Union[int, Sequence[int]]
Activation = Union[None, str, tuple[Any, ...]]  # "relu", or with its numbers: ("leaky_relu", 0.2)

First = TypeVar("First")
Given = ParamSpec("Given")
Result = TypeVar("Result")


def of_first(
    first: First, function: Callable[Concatenate[First, Given], Result], name: str, text: str
) -> Callable[Given, Result]:
    """`function` with its first argument given, under a name of its own. `text`: its documentation."""

    def made(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        return function(first, *args, **kwargs)

    signature = inspect.signature(function)
    named: Any = made
    named.__name__ = named.__qualname__ = name
    named.__module__ = function.__module__
    named.__doc__ = text
    named.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
    return made


def of_axes(axes: int, function: Callable[Concatenate[int, Given], Result], text: str) -> Callable[Given, Result]:
    """`function` of that many axes, which is its first argument: conv of 2 is conv2d. `text`: its documentation."""
    return of_first(axes, function, f"{function.__name__}{axes}d", text)


def require(holds: bool, message: str, hint: str) -> None:
    if not holds:
        raise InvalidArgument(message, hint)


def require_served(holds: bool, message: str, hint: str = "call PyTorch's function") -> None:
    if not holds:
        raise Unsupported(message, hint)


# Symbols of a compiler, which PyTorch has from 2.0 on.
_symbolic_integers = (torch.SymInt,) if hasattr(torch, "SymInt") else ()
_symbolic_floats = (torch.SymFloat,) if hasattr(torch, "SymFloat") else ()


def _kind(value: Any) -> str:
    """The kind of a scalar, in the letters of NumPy's types: "b" a bool, "i" or "u" an integer, "f" a float. "" for
    anything else: complex numbers, and tensors with a dimension or a gradient."""
    if isinstance(value, bool):
        return "b"
    if isinstance(value, (int, *_symbolic_integers)):
        return "i"
    if isinstance(value, (float, *_symbolic_floats)):
        return "f"
    if isinstance(value, torch.Tensor):
        if value.dim() or value.requires_grad or value.is_complex():
            return ""
        return "b" if value.dtype == torch.bool else "f" if value.is_floating_point() else "i"
    numpy = sys.modules.get("numpy")
    return value.dtype.kind if numpy is not None and isinstance(value, numpy.generic) else ""


def number(name: str, value: Any) -> float:
    """A number where PyTorch takes a float: a bool too."""
    if type(value) is float:
        return value
    if _kind(value) not in ("b", "i", "u", "f"):
        raise InvalidArgument(f"{name} is {value!r}", "give a number")
    try:
        return float(value)
    except OverflowError:
        raise InvalidArgument(f"{name} is an integer that no float is near to", "give a smaller one") from None


def integer(name: str, value: Any) -> int:
    """An integer where PyTorch takes one: no bool."""
    if type(value) is int:
        return value
    if _kind(value) not in ("i", "u"):
        raise InvalidArgument(f"{name} is {value!r}", "give an integer")
    return value if isinstance(value, _symbolic_integers) else int(value)


def flag(name: str, value: Any) -> bool:
    """A bool where PyTorch takes nothing else."""
    if type(value) is not bool:
        raise InvalidArgument(f"{name} is {value!r}", "give True or False")
    return value


def integers(name: str, value: Any) -> tuple[int, ...]:
    """An integer, or a list or tuple of them. A tensor stands for one in a list alone: PyTorch 1.13 takes no other."""
    if isinstance(value, (tuple, list)):
        return tuple([each if type(each) is int else integer(name, each) for each in value])
    require(not isinstance(value, torch.Tensor), f"{name} is {value!r}", "give an integer")
    return (integer(name, value),)


def per_axis(name: str, value: Ints, axes: int) -> tuple[int, ...]:
    """One number for all axes, or one for each: paddings of 0 or more, and others of 1 or more."""
    numbers = integers(name, value)
    numbers = numbers * axes if len(numbers) == 1 else numbers
    if len(numbers) != axes:
        raise InvalidArgument(f"{name} is {value!r}", f"give a number, or one for each of {axes} axes")
    least = 0 if name.endswith("padding") else 1
    for each in numbers:
        if each < least:
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
    """Requires one type of all, as PyTorch does, with fractions; autocast makes them one."""
    (first_name, first), *others = tensors.items()
    assert first is not None
    if not first.dtype.is_floating_point:
        raise InvalidArgument(
            f"{name}: {first_name} is {first.dtype}, which is no floating-point type",
            "convert it; kiln.conv_forward and kiln.gemm multiply 8-bit integers",
        )
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


# Whether an activation has a result by its numbers, and what to give instead.
_has_result: Mapping[str, tuple[Callable[..., bool], str]] = {
    "celu": (lambda alpha: alpha != 0, "give another number"),
    "hardtanh": (lambda low, high: low <= high, "give a min_val that is no larger"),
    "softshrink": (lambda lambd: lambd >= 0, "give 0 or more"),
}


def numbers_of(name: str, given: Mapping[str, Any]) -> list[float]:
    """The numbers of the activation of that name, by the names that messages have for them."""
    numbers = [number(each, value) for each, value in given.items()]
    if name in _has_result:
        holds, hint = _has_result[name]
        require(holds(*numbers), ", ".join(f"{each} is {value}" for each, value in given.items()), hint)
    return numbers


def named_activation(activation: Activation) -> tuple[str, list[float]]:
    """Its name, and its numbers or their defaults."""
    if activation is None:
        return "", []
    name, *numbers = (activation,) if isinstance(activation, str) else activation
    defaults = activation_of(name).defaults
    require(
        len(numbers) <= len(defaults),
        f"activation is {activation!r}",
        f"{name} takes {len(defaults)} numbers: {', '.join(defaults) or 'none'}",
    )
    return name, numbers_of(name, {**defaults, **dict(zip(defaults, numbers, strict=False))})


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
