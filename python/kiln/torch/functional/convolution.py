"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ...errors import InvalidArgument
from ..operators import contraction, local
from ._arguments import (
    Activation,
    Ints,
    batched,
    integer,
    of_axes,
    per_axis,
    require,
    require_served,
    same_dtype,
)
from .activation import with_epilogue

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "local_conv1d",
    "local_conv2d",
    "local_conv3d",
]

_EPILOGUE = """
    The result is activation(scale * convolution + bias + residual) in one kernel. `scale`: a number for each channel of
    the result, as a batch normalisation in inference has it; it has no gradient. `residual`: has the extents of the
    result. `activation`: the name of one of this module's activations, or a tuple of it and its numbers.
"""


def _opened(
    name: str, axes: int, input: torch.Tensor, weight: torch.Tensor, bias: Any, stride: Ints, dilation: Ints
) -> tuple[torch.Tensor, tuple[int, ...], tuple[int, ...]]:
    """The input with a batch, strides and dilations of each axis."""
    x, _ = batched(input, axes, name)
    same_dtype(name, input=input, weight=weight, bias=bias)
    if weight.dim() != axes + 2:
        raise InvalidArgument(f"{name} takes a weight of {axes + 2} dimensions", f"this has {weight.dim()}")
    return x, per_axis("stride", stride, axes), per_axis("dilation", dilation, axes)


def _computed(
    call: Callable[..., torch.Tensor],
    x: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    residual: torch.Tensor | None,
    activation: Activation,
) -> torch.Tensor:
    """call(residual, activation, numbers) as the input has it: with a batch or without one."""
    has_batch = x.dim() == input.dim()
    rest = residual if residual is None or has_batch else residual.unsqueeze(0)
    y = with_epilogue(lambda *end: call(rest, *end), activation, input, weight, bias, residual)
    return y if has_batch else y.squeeze(0)


def conv(
    axes: int,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    scale: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    activation: Activation = None,
) -> torch.Tensor:
    name = f"conv{axes}d"
    x, strides, dilations = _opened(name, axes, input, weight, bias, stride, dilation)
    groups = integer("groups", groups)
    if isinstance(padding, str):
        require(padding in ("same", "valid"), f"padding is {padding!r}", "give numbers, same or valid")
        totals = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilations, weight.shape[2:], strict=True)]
        require(
            padding == "valid" or all(s == 1 for s in strides), "padding='same' is for a stride of 1", "give numbers"
        )
        pad = (*(total // 2 for total in totals), *(total - total // 2 for total in totals))
    else:
        pad = per_axis("padding", padding, axes) * 2
    for extent, before, behind, dilated, size in zip(x.shape[2:], pad, pad[axes:], dilations, weight.shape[2:]):
        window = dilated * (size - 1) + 1
        if extent + before + behind < window:
            raise InvalidArgument(
                f"{name} of {extent} elements, padded by {before} and {behind}, has a window of {window}",
                "give a larger input or more padding",
            )

    def call(rest: Any, *end: Any) -> torch.Tensor:
        return contraction.conv(x, weight, bias, scale, rest, pad, strides, dilations, groups, *end)

    return _computed(call, x, input, weight, bias, residual, activation)


def conv_transpose(
    axes: int,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
    *,
    scale: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    activation: Activation = None,
) -> torch.Tensor:
    name = f"conv_transpose{axes}d"
    x, strides, dilations = _opened(name, axes, input, weight, bias, stride, dilation)
    pads, more = per_axis("padding", padding, axes), per_axis("output_padding", output_padding, axes)
    groups = integer("groups", groups)
    extents = [x.shape[0], weight.shape[1] * groups]
    for i in range(axes):
        require(
            more[i] < max(strides[i], dilations[i]),
            f"output_padding is {output_padding!r}",
            "give less than the stride or the dilation",
        )
        require_served(more[i] < strides[i], "output_padding has to be less than the stride")
        window = dilations[i] * (weight.shape[i + 2] - 1) + 1
        extents.append((x.shape[i + 2] - 1) * strides[i] - 2 * pads[i] + window + more[i])

    def call(rest: Any, *end: Any) -> torch.Tensor:
        return contraction.conv_backward_data(
            x, weight, bias, scale, rest, extents, pads * 2, strides, dilations, groups, *end
        )

    return _computed(call, x, input, weight, bias, residual, activation)


def local_conv(
    axes: int,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    grid: Ints | None = None,
) -> torch.Tensor:
    name = f"local_conv{axes}d"
    x, has_batch = batched(input, axes, name)
    same_dtype(name, input=input, weight=weight, bias=bias)
    require(weight.dim() == axes + 3, f"{name} takes a weight of {axes + 3} dimensions", f"this has {weight.dim()}")
    strides, dilations = per_axis("stride", stride, axes), per_axis("dilation", dilation, axes)
    pad = per_axis("padding", padding, axes) * 2
    outputs = contraction.conv_extents(x.shape, weight.shape[1:], pad, strides, dilations)[2:]
    require(all(extent > 0 for extent in outputs), f"the window of {name} is larger than the padded input", "pad more")
    regions = tuple(outputs) if grid is None else per_axis("grid", grid, axes)
    require(
        weight.shape[0] == math.prod(regions),
        f"weight has filters for {weight.shape[0]} regions",
        f"give filters for {'x'.join(map(str, regions))}",
    )
    y = local.local_conv(x, weight, bias, pad, strides, dilations, integer("groups", groups), regions)
    return y if has_batch else y.squeeze(0)


def _documented(name: str) -> str:
    return f"torch.nn.functional.{name}, with an epilogue of Kiln's own.\n{_EPILOGUE}"


def _of_local(axes: int) -> str:
    return f"""Convolution with filters of their own for each output, or for each region of a `grid` of them.

    As torch.nn.functional.conv{axes}d, but `weight` has the regions as its first dimension: regions, out_channels,
    in_channels / groups, and the window. `grid`: how many regions there are along each axis; output i of n lies in
    region floor(i * grid / n). Without it each output is a region, in row-major order.
    """


conv1d = of_axes(1, conv, _documented("conv1d"))
conv2d = of_axes(2, conv, _documented("conv2d"))
conv3d = of_axes(3, conv, _documented("conv3d"))
conv_transpose1d = of_axes(1, conv_transpose, _documented("conv_transpose1d"))
conv_transpose2d = of_axes(2, conv_transpose, _documented("conv_transpose2d"))
conv_transpose3d = of_axes(3, conv_transpose, _documented("conv_transpose3d"))
local_conv1d = of_axes(1, local_conv, _of_local(1))
local_conv2d = of_axes(2, local_conv, _of_local(2))
local_conv3d = of_axes(3, local_conv, _of_local(3))
