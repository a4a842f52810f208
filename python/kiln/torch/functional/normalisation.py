"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...errors import InvalidArgument
from .._autocast import as_autocast, autocast_type, autocasting, cast_by_autocast
from ..operators import normalisation
from ._arguments import (
    Activation,
    flag,
    integer,
    integers,
    named_activation,
    needs_gradient,
    number,
    require,
    require_served,
    same_dtype,
)
from .activation import activated, with_epilogue

__all__ = [
    "batch_norm",
    "divisive_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "rms_norm",
]


def _in_f32(dtype: torch.dtype, first: torch.Tensor, *others: torch.Tensor | None) -> list[Any]:
    """As they are computed within autocast, which gives a result of `dtype`; as they are without."""
    tensors = (first, *others)
    # Where PyTorch's result is not float32, its parameters may be.
    is_refused = any(each is not None and each.dtype not in (dtype, first.dtype, torch.float32) for each in others)
    if not autocasting(first) or (dtype != torch.float32 and is_refused):
        return list(tensors)
    return [each if each is None or not cast_by_autocast(each) else each.to(torch.float32) for each in tensors]


def _parameters(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, extents: Sequence[Any]
) -> tuple[Any, Any]:
    """w and b with those extents. Gradients of a bias alone are made with a weight of ones."""
    if weight is None and bias is not None:
        weight = torch.ones_like(bias)
    w, b = (each if each is None else each.reshape(tuple(extents)) for each in (weight, bias))
    return w, b


def _require_constant(name: str, *running: torch.Tensor | None) -> None:
    require(
        not needs_gradient(*running), f"{name}: running statistics require a gradient", "give them without requires_grad"
    )


def eps_and_momentum(name: str, eps: float, momentum: float = 0.0, training: bool = True) -> tuple[float, float]:
    """Both, read before a compiler records the call, whose own error comes when the program runs. Without `training` the
    momentum may be any number."""
    eps, momentum = number(f"{name}: eps", eps), number(f"{name}: momentum", momentum)
    if name == "batch_norm":  # PyTorch refuses 0 from some version on
        require(eps > 0, f"{name}: eps is {eps}", "give more than 0")
    require(eps >= 0, f"{name}: eps is {eps}", "give 0 or more")
    if flag("training", training):
        require(0 <= momentum <= 1, f"{name}: momentum is {momentum}", "give a number from 0 to 1")
    return eps, momentum


def _of_channels(x: torch.Tensor) -> list[int]:
    return [1, x.shape[1], *[1] * (x.dim() - 2)]


def batch_norm(
    input: torch.Tensor,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    residual: torch.Tensor | None = None,
    activation: Activation = None,
) -> torch.Tensor:
    """torch.nn.functional.batch_norm, with an epilogue of Kiln's own: activation(batch norm + residual).

    Statistics are float32; running ones of another type are converted, and updated in it. `residual`: has the extents
    of the input. `activation`: the name of one of this module's activations, or a tuple of it and its numbers.
    """
    require(input.dim() >= 2, "batch_norm takes an input of 2 dimensions or more", "give channels as the second")
    eps, momentum = eps_and_momentum("batch_norm", eps, momentum, training)
    x = input if input.dim() <= 5 else input.flatten(4)
    rest = residual if residual is None or residual.dim() <= 5 else residual.flatten(4)
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    channels = x.shape[1:2]
    for key, each in given.items():
        if each is not None and each.shape != channels:
            raise InvalidArgument(
                f"batch_norm: {key} has the shape {tuple(each.shape)}", f"give a number for each of {channels[0]} channels"
            )
    _require_constant("batch_norm", running_mean, running_var)
    axes = (0, *range(2, x.dim()))
    extents = _of_channels(x)
    w, b = _parameters(x, weight, bias, extents)
    if training:
        name, numbers = named_activation(activation)
        require(
            input.numel() != input.shape[1],
            f"batch_norm in training has one value per channel of {tuple(input.shape)}",
            "give more than 1",
        )
        with _Updated(running_mean, running_var, extents) as running:
            y = normalisation.norm(x, w, b, rest, *running, axes, False, eps, momentum, name == "relu")[0]
        if name not in ("", "relu"):
            y = activated(y, name, numbers)
    else:
        if running_mean is None or running_var is None:
            raise InvalidArgument("there are no running statistics", "give them, or training=True")
        mean, variance = (each.to(torch.float32).reshape(extents) for each in (running_mean, running_var))
        y = with_epilogue(
            lambda *end: normalisation.norm_inference(x, mean, variance, w, b, rest, axes, eps, *end),
            activation, input, weight, bias, residual,
        )  # fmt: skip
    return y.view(input.shape)


class _Updated:
    """Running statistics as Kiln updates them: float32, with x's rank. Others are converted, and written back."""

    def __init__(self, mean: torch.Tensor | None, variance: torch.Tensor | None, extents: Sequence[int]) -> None:
        self.given = (mean, variance)
        self.extents = extents
        self.used: list[Any] = []

    def __enter__(self) -> list[Any]:
        for each in self.given:
            self.used.append(each if each is None else each.detach().to(torch.float32).view(tuple(self.extents)))
        return self.used

    def __exit__(self, kind: Any, *_: Any) -> None:
        for given, used in zip(self.given, self.used, strict=True):
            if kind is None and given is not None and given.dtype != torch.float32:
                with torch.no_grad():
                    given.copy_(used.view(given.shape))


def _rows(
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
    rms: bool,
) -> torch.Tensor:
    shape = integers("normalized_shape", normalized_shape)
    require(
        isinstance(normalized_shape, (tuple, list)) and len(shape) > 0 and tuple(input.shape[-len(shape) :]) == shape,
        f"normalized_shape is {shape}, and the input {tuple(input.shape)}",
        "give the last extents of the input",
    )
    eps, _ = eps_and_momentum("rms_norm" if rms else "layer_norm", eps)
    for given, what in ((weight, "weight"), (bias, "bias")):
        require(given is None or tuple(given.shape) == shape, f"{what} has other extents", f"give {shape}")
    dtype = autocast_type(input, "rms_norm" if rms else "layer_norm")
    input, weight, bias = _in_f32(dtype, input, weight, bias)
    if len(shape) > 3:
        x, axes = input.flatten(-len(shape)), 1
    else:
        x, axes = input, len(shape)
    x = x if x.dim() <= 6 else x.flatten(0, x.dim() - 6)
    extents = [*[1] * (x.dim() - axes), *x.shape[x.dim() - axes :]]
    w, b = _parameters(x, weight, bias, extents)
    places = list(range(x.dim() - axes, x.dim()))
    y = normalisation.norm(x, w, b, None, None, None, places, rms, eps, 0.0, False)[0]
    return y.view(input.shape).to(dtype)


def layer_norm(
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """torch.nn.functional.layer_norm; autocast computes it in float32."""
    return _rows(input, normalized_shape, weight, bias, eps, False)


def rms_norm(
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    eps: float | None = None,
) -> torch.Tensor:
    """torch.nn.functional.rms_norm, which PyTorch has from 2.4 on. `eps`: by default that of the input's type."""
    return _rows(input, normalized_shape, weight, None, torch.finfo(input.dtype).eps if eps is None else eps, True)


def group_norm(
    input: torch.Tensor,
    num_groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """torch.nn.functional.group_norm; autocast computes it in float32."""
    require(input.dim() >= 2, "group_norm takes an input of 2 dimensions or more", "give channels as the second")
    num_groups = integer("num_groups", num_groups)
    require(
        num_groups > 0 and input.shape[1] % num_groups == 0,
        f"num_groups is {num_groups}, and there are {input.shape[1]} channels",
        "give a number that divides them",
    )
    eps, _ = eps_and_momentum("group_norm", eps)
    dtype = autocast_type(input, "group_norm")
    input, weight, bias = _in_f32(dtype, input, weight, bias)
    x = input if input.dim() <= 5 else input.flatten(4)
    grouped = x.view(x.shape[0], num_groups, x.shape[1] // num_groups, *x.shape[2:])
    extents = [1, num_groups, grouped.shape[2], *[1] * (x.dim() - 2)]
    w, b = _parameters(x, weight, bias, extents)
    axes = tuple(range(2, grouped.dim()))
    y = normalisation.norm(grouped, w, b, None, None, None, axes, False, eps, 0.0, False)[0]
    return y.view(input.shape).to(dtype)


def instance_norm(
    input: torch.Tensor,
    running_mean: torch.Tensor | None = None,
    running_var: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> torch.Tensor:
    """torch.nn.functional.instance_norm. Running statistics become the mean over the batch of each image's."""
    require(input.dim() >= 3, "instance_norm takes an input of 3 dimensions or more", "give spatial ones")
    if not flag("use_input_stats", use_input_stats):
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    _require_constant("instance_norm", running_mean, running_var)
    eps, momentum = eps_and_momentum("instance_norm", eps, momentum)
    x = input if input.dim() <= 5 else input.flatten(4)
    require(x[0, 0].numel() > 1, f"instance_norm has one element per channel of {tuple(input.shape)}", "give more than 1")
    w, b = _parameters(x, weight, bias, _of_channels(x))
    images = (x.shape[0], *[1] * (x.dim() - 1))
    running = [
        None if each is None else each.detach().to(torch.float32).reshape(_of_channels(x)).repeat(images)
        for each in (running_mean, running_var)
    ]
    y = normalisation.norm(x, w, b, None, *running, tuple(range(2, x.dim())), False, eps, momentum, False)[0]
    with torch.no_grad():
        for given, updated in zip((running_mean, running_var), running, strict=True):
            if given is not None and updated is not None:
                given.copy_(updated.mean(0).view(given.shape))
    return y.view(input.shape)


def _window(size: int, alpha: float, beta: float, k: float) -> tuple[int, float, float, float]:
    size = integer("size", size)
    require(size > 0, f"size is {size}", "give 1 or more")
    return size, number("alpha", alpha), number("beta", beta), number("k", k)


def local_response_norm(
    input: torch.Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> torch.Tensor:
    """torch.nn.functional.local_response_norm of odd sizes: PyTorch's window of an even one leans the other way."""
    require(input.dim() >= 3, "local_response_norm takes an input of 3 dimensions or more", "give channels as the second")
    size, alpha, beta, k = _window(size, alpha, beta, k)
    require_served(size % 2 == 1, f"local_response_norm of the even size {size}")
    input = as_autocast(input, "avg_pool3d" if input.dim() > 3 else "avg_pool2d")  # which PyTorch makes it of
    x = input if input.dim() <= 5 else input.flatten(4)
    return normalisation.local_norm(x, None, (1,), size, alpha, beta, k).view(input.shape)


def divisive_norm(
    input: torch.Tensor,
    size: int,
    means: torch.Tensor | None = None,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 2.0,
    dim: Sequence[int] = (-2, -1),
) -> torch.Tensor:
    """input / (k + alpha / n * s)^beta, where s is the sum of (input - means)^2 over a window along `dim`.

    The window has n = size^len(dim) elements, those outside of the input too. `means` has the extents of the input;
    without it they are 0. Local contrast normalisation is that of x - means, with the window's weighted means of x.
    PyTorch has no such function; this is cuDNN's divisive normalisation.
    """
    given = integers("dim", dim)
    axes = tuple(axis % input.dim() if -input.dim() <= axis < input.dim() else axis for axis in given)
    require(1 <= len(set(axes)) == len(axes) <= 3, f"dim is {given}", "give one to three dimensions, each once")
    require(all(0 <= axis < input.dim() for axis in axes), f"dim is {given}", f"the input has {input.dim()}")
    size, alpha, beta, k = _window(size, alpha, beta, k)
    same_dtype("divisive_norm", input=input, means=means)
    require(
        means is None or means.shape == input.shape,
        f"means is {None if means is None else tuple(means.shape)}",
        f"give the input's extents, {tuple(input.shape)}",
    )
    require_served(input.dim() <= 5, f"divisive_norm of {input.dim()} dimensions", "make some of them one")
    return normalisation.local_norm(input, means, axes, size, alpha, beta, k)
