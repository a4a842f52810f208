"""Operators of grid sampling, affine grids and their gradients.

x: N, C, H, W or N, C, D, H, W. grid: N, P, Q, 2 or N, Z, P, Q, 3. theta: N, 2, 3 or N, 3, 4. `mode`, `padding`, `ends`:
Kiln's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._launch import launch
from ._define import define
from ._outputs import new


def _words(mode: str, padding: str, ends: str) -> dict[str, str]:
    return {"mode": mode, "padding": padding, "ends": ends}


def _write(y: Any, x: Any, grid: Any, *words: str) -> None:
    launch("grid_sample", x=x, grid=grid, y=y, **_words(*words))


def _write_backward_data(dx: Any, dy: Any, grid: Any, extents: Any, *words: str) -> None:
    launch("grid_sample_backward_data", dy=dy, grid=grid, dx=dx, **_words(*words))


def _write_backward_grid(dgrid: Any, dy: Any, x: Any, grid: Any, *words: str) -> None:
    launch("grid_sample_backward_grid", dy=dy, x=x, grid=grid, dgrid=dgrid, **_words(*words))


def _gradient(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    x, grid, *words = saved
    dx = grid_sample_backward_data(dy, grid, x.shape, *words) if needs[0] else None
    dgrid = grid_sample_backward_grid(dy, x, grid, *words) if needs[1] else None
    return dx, dgrid, None, None, None


def _write_affine_grid(grid: Any, theta: Any, extents: Any, ends: str) -> None:
    launch("affine_grid", theta=theta, grid=grid, ends=ends)


def _write_affine_grid_backward(dtheta: Any, dgrid: Any, ends: str) -> None:
    launch("affine_grid_backward", dgrid=dgrid, dtheta=dtheta, ends=ends)


grid_sample = define(
    "grid_sample(Tensor x, Tensor grid, str mode, str padding, str ends) -> Tensor",
    lambda x, grid, *_: new(x, [*x.shape[:2], *grid.shape[1:-1]]),
    _write,
    saved=lambda y, *arguments: arguments,
    gradient=_gradient,
)
# `extents`: of x.
grid_sample_backward_data = define(
    "grid_sample_backward_data(Tensor dy, Tensor grid, SymInt[] extents, str mode, str padding, str ends) -> Tensor",
    lambda dy, grid, extents, *_: new(dy, extents),
    _write_backward_data,
)
grid_sample_backward_grid = define(
    "grid_sample_backward_grid(Tensor dy, Tensor x, Tensor grid, str mode, str padding, str ends) -> Tensor",
    lambda dy, x, grid, *_: torch.empty_like(grid),
    _write_backward_grid,
)
# `extents`: of the positions of an image.
affine_grid = define(
    "affine_grid(Tensor theta, SymInt[] extents, str ends) -> Tensor",
    lambda theta, extents, _: theta.new_empty((theta.shape[0], *extents, theta.shape[1])),
    _write_affine_grid,
    saved=lambda grid, theta, extents, ends: (ends,),
    gradient=lambda saved, needs, dgrid: (affine_grid_backward(dgrid, *saved), None, None),
    autocast="lower",
)
affine_grid_backward = define(
    "affine_grid_backward(Tensor dgrid, str ends) -> Tensor",
    lambda dgrid, _: dgrid.new_empty((dgrid.shape[0], dgrid.shape[-1], dgrid.shape[-1] + 1)),
    _write_affine_grid_backward,
)
