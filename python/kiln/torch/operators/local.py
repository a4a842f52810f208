"""Operators of local convolution: filters of their own for each output, or for each region of a grid.

w: regions, K, C / groups, and the window; `grid`: regions along each axis. Each of the three is linear in both of its
factors, and their gradients are made of one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._launch import launch
from ._define import define
from ._outputs import new
from .contraction import conv_backward_bias, conv_extents

_WINDOW = "int[] pad, int[] stride, int[] dilation, int groups, int[] grid"


def _words(pad: Any, stride: Any, dilation: Any, groups: int, grid: Any) -> dict[str, Any]:
    window = {"pad": tuple(pad), "stride": tuple(stride), "dilation": tuple(dilation)}
    return {**window, "groups": groups, "grid": tuple(grid)}


def _outputs(x: Any, w: Any, bias: Any, pad: Any, stride: Any, dilation: Any, *_: Any) -> torch.Tensor:
    return new(x, conv_extents(x.shape, w.shape[1:], pad, stride, dilation))


def _write(y: Any, x: Any, w: Any, bias: Any, *window: Any) -> None:
    chain = {} if bias is None else {"bias": bias, "epilogue": "bias"}
    launch("local_conv_forward", x=x, w=w, y=y, **chain, **_words(*window))


def _gradient(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    x, w, window = saved
    dx = local_conv_backward_data(dy, w, x.shape, *window) if needs[0] else None
    dw = local_conv_backward_filter(x, dy, w, *window) if needs[1] else None
    db = conv_backward_bias(dy) if needs[2] else None
    return dx, dw, db, None, None, None, None, None


local_conv = define(
    f"local_conv(Tensor x, Tensor w, Tensor? bias, {_WINDOW}) -> Tensor",
    _outputs,
    _write,
    saved=lambda y, x, w, bias, *window: (x, w, window),
    gradient=_gradient,
    autocast="lower",
)


def _gradient_of_data(saved: Sequence[Any], needs: Sequence[bool], g: torch.Tensor) -> Sequence[Any]:
    dy, w, window = saved
    ddy = local_conv(g, w, None, *window) if needs[0] else None
    dw = local_conv_backward_filter(g, dy, w, *window) if needs[1] else None
    return ddy, dw, None, None, None, None, None, None


local_conv_backward_data = define(
    f"local_conv_backward_data(Tensor dy, Tensor w, SymInt[] extents, {_WINDOW}) -> Tensor",
    lambda dy, w, extents, *_: new(dy, extents),
    lambda dx, dy, w, extents, *window: launch("local_conv_backward_data", dy=dy, w=w, dx=dx, **_words(*window)),
    saved=lambda dx, dy, w, extents, *window: (dy, w, window),
    gradient=_gradient_of_data,
)


def _gradient_of_filter(saved: Sequence[Any], needs: Sequence[bool], g: torch.Tensor) -> Sequence[Any]:
    x, dy, window = saved
    dx = local_conv_backward_data(dy, g, x.shape, *window) if needs[0] else None
    ddy = local_conv(x, g, None, *window) if needs[1] else None
    return dx, ddy, None, None, None, None, None, None


# `like` gives the extents, type and layout of dw.
local_conv_backward_filter = define(
    f"local_conv_backward_filter(Tensor x, Tensor dy, Tensor like, {_WINDOW}) -> Tensor",
    lambda x, dy, like, *_: torch.empty_like(like),
    lambda dw, x, dy, like, *window: launch("local_conv_backward_filter", x=x, dy=dy, dw=dw, **_words(*window)),
    saved=lambda dw, x, dy, like, *window: (x, dy, window),
    gradient=_gradient_of_filter,
)
