"""Operators of pooling, its gradient, and unpooling. Indices are int32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._launch import launch
from ._define import define
from ._outputs import new

_WINDOW = "int[] window, int[] pad, int[] stride, int[] dilation"


def _words(window: Any, pad: Any, stride: Any, dilation: Any) -> dict[str, Any]:
    return {"window": tuple(window), "pad": tuple(pad), "stride": tuple(stride), "dilation": tuple(dilation)}


def _write_pool(y: Any, x: Any, mode: str, extents: Any, *window: Any) -> None:
    launch("pool_forward", x=x, y=y, mode=mode, **_words(*window))


def _write_max_pool(results: Any, x: Any, extents: Any, *window: Any) -> None:
    launch("pool_forward", x=x, y=results[0], indices=results[1], mode="max", **_words(*window))


def _write_pool_backward(dx: Any, dy: Any, x: Any, indices: Any, mode: str, extents: Any, *window: Any) -> None:
    launch("pool_backward", dy=dy, x=x, indices=indices, dx=dx, mode=mode, **_words(*window))


def _write_unpool_backward(dx: Any, dy: Any, indices: Any, *window: Any) -> None:
    launch("unpool_backward", dy=dy, indices=indices, dx=dx, **_words(*window))


def _gradient_of_pool(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    x, extents, mode, window = saved
    return pool_backward(dy, x, None, mode, extents, *window), None, None, *[None] * len(window)


def _gradient_of_max_pool(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor, _: Any) -> Sequence[Any]:
    indices, extents, window = saved
    return pool_backward(dy, None, indices, "max", extents, *window), None, *[None] * len(window)


def _gradient_of_pool_backward(saved: Sequence[Any], needs: Sequence[bool], g: torch.Tensor) -> Sequence[Any]:
    x, indices, mode, extents, window = saved
    if x is not None:  # of maxima: where they are is what indices say
        _, indices = max_pool(x, extents, *window)
    ddy = pool(g, mode, extents, *window) if indices is None else unpool_backward(g, indices, *window)
    return ddy, *[None] * (4 + len(window))


# `extents` of y, which say whether the last window may begin in the padding (ceil_mode).
pool = define(
    f"pool(Tensor x, str mode, SymInt[] extents, {_WINDOW}) -> Tensor",
    lambda x, mode, extents, *_: new(x, extents),
    _write_pool,
    saved=lambda y, x, mode, extents, *window: (x if mode == "max" else None, x.shape, mode, window),
    gradient=_gradient_of_pool,
)
max_pool = define(
    f"max_pool(Tensor x, SymInt[] extents, {_WINDOW}) -> (Tensor, Tensor)",
    lambda x, extents, *_: (y := new(x, extents), torch.empty_like(y, dtype=torch.int32)),
    _write_max_pool,
    saved=lambda results, x, extents, *window: (results[1], x.shape, window),
    gradient=_gradient_of_max_pool,
)
# By x or indices where the mode is max. With indices it is unpooling too, of dy to `extents`.
pool_backward = define(
    f"pool_backward(Tensor dy, Tensor? x, Tensor? indices, str mode, SymInt[] extents, {_WINDOW}) -> Tensor",
    lambda dy, x, indices, mode, extents, *_: new(dy, extents),
    _write_pool_backward,
    saved=lambda dx, dy, x, indices, mode, extents, *window: (x, indices, mode, dy.shape, window),
    gradient=_gradient_of_pool_backward,
)
unpool_backward = define(
    f"unpool_backward(Tensor dy, Tensor indices, {_WINDOW}) -> Tensor",
    lambda dy, indices, *_: new(dy, indices.shape),
    _write_unpool_backward,
)
