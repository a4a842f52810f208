"""Operators that compute each element for itself: activations, dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..._expression import expression
from .._launch import launch
from . import _by_pytorch as by_pytorch
from ._activations import activation_of
from ._by_pytorch import vjp
from ._define import define


def _write_activation(y: Any, x: Any, name: str, numbers: Sequence[float]) -> None:
    function = activation_of(name)
    given = function.numbers(numbers)
    if function.mode:
        launch("activation_forward", x=x, y=y, mode=function.mode, **function.fixed, **given)
    else:
        code = expression(f"const float v = acc;\nreturn {function.value};", **given)
        launch("activation_forward", x=x, y=y, mode="identity", epilogue=code)


def _write_activation_backward(dx: Any, dy: Any, saved: Any, name: str, numbers: Sequence[float]) -> None:
    function = activation_of(name)
    given = function.numbers(numbers)
    if function.mode:
        known = {"y" if function.of_result else "x": saved}
        launch("activation_backward", dy=dy, dx=dx, mode=function.mode, **known, **function.fixed, **given)
    else:
        code = expression(function.gradient, input=saved, **given)
        launch("activation_forward", x=dy, y=dx, mode="identity", epilogue=code)


def _gradient_of_activation(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    return activation_backward(dy, *saved), None, None


def _gradient_of_activation_backward(saved: Sequence[Any], needs: Sequence[bool], g: torch.Tensor) -> Sequence[Any]:
    _, of, name, numbers = saved
    ddy = activation_backward(g, of, name, numbers) if needs[0] else None
    second = vjp(by_pytorch.activation_backward, saved, (False, needs[1], False, False), g)[1]
    return ddy, second, None, None


activation_backward = define(
    "activation_backward(Tensor dy, Tensor saved, str name, float[] numbers) -> Tensor",
    lambda dy, saved, name, numbers: torch.empty_like(dy),
    _write_activation_backward,
    saved=lambda dx, *arguments: arguments,
    gradient=_gradient_of_activation_backward,
)
activation = define(
    "activation(Tensor x, str name, float[] numbers) -> Tensor",
    lambda x, name, numbers: torch.empty_like(x),
    _write_activation,
    saved=lambda y, x, name, numbers: (y if activation_of(name).of_result else x, name, numbers),
    gradient=_gradient_of_activation,
)


def _write_dropout(y: Any, x: Any, seed: torch.Tensor, p: float) -> None:
    launch("dropout", x=x, y=y, p=p, seed=int(seed))


def _gradient_of_dropout(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    return dropout(dy, *saved), None, None


# The seed is a tensor on the CPU, drawn by PyTorch's generator.
dropout = define(
    "dropout(Tensor x, Tensor seed, float p) -> Tensor",
    lambda x, seed, p: torch.empty_like(x),
    _write_dropout,
    saved=lambda y, x, seed, p: (seed, p),
    gradient=_gradient_of_dropout,
)

# x times a tensor that repeats where its extent is 1.
scaled = define(
    "scaled(Tensor x, Tensor scale) -> Tensor",
    lambda x, scale: torch.empty_like(x),
    lambda y, x, scale: launch("tensor_op", a=x, b=scale, y=y, mode="mul"),
)
