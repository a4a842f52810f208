"""Operators of images as columns of windows, and back. Columns: N, C times the elements of a window, P, Q."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._launch import launch
from ._define import define
from .pooling import _WINDOW, _words


def _write_im2col(y: Any, x: Any, extents: Any, *window: Any) -> None:
    launch("im2col", x=x, y=y, **_words(*window))


def _write_col2im(y: Any, x: Any, extents: Any, *window: Any) -> None:
    launch("col2im", x=x, y=y, **_words(*window))


def _gradient_of_im2col(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    extents, window = saved
    return col2im(dy, extents, *window), None, *[None] * len(window)


def _gradient_of_col2im(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    extents, window = saved
    return im2col(dy, extents, *window), None, *[None] * len(window)


# `extents`: of the result.
im2col = define(
    f"im2col(Tensor x, SymInt[] extents, {_WINDOW}) -> Tensor",
    lambda x, extents, *_: x.new_empty(tuple(extents)),
    _write_im2col,
    saved=lambda y, x, extents, *window: (x.shape, window),
    gradient=_gradient_of_im2col,
)
col2im = define(
    f"col2im(Tensor x, SymInt[] extents, {_WINDOW}) -> Tensor",
    lambda x, extents, *_: x.new_empty(tuple(extents)),
    _write_col2im,
    saved=lambda y, x, extents, *window: (x.shape, window),
    gradient=_gradient_of_col2im,
)
