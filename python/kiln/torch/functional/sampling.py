"""Grid sampling and affine grids."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .._active import is_compiling
from .._autocast import as_autocasts
from ..operators import sampling
from ._arguments import flag, integers, require, require_served

__all__ = ["affine_grid", "grid_sample"]

_MODES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
_PADDINGS = ("zeros", "border", "reflection")
_MOST = 2**24  # elements along an axis


def _ends(align_corners: bool | None) -> str:
    return "centres" if align_corners is not None and flag("align_corners", align_corners) else "edges"


def _require_short_axes(extents: Sequence[int], message: str) -> None:
    """Not of extents that a compiled program leaves open, which it would limit: Kiln refuses longer ones by itself."""
    require_served(is_compiling() or all(extent <= _MOST for extent in extents), message)


def grid_sample(
    input: torch.Tensor,
    grid: torch.Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> torch.Tensor:
    """torch.nn.functional.grid_sample. The input's gradient is the same whatever order its terms are added in."""
    require(mode in _MODES, f"mode is {mode!r}", f"give one of {', '.join(_MODES)}")
    require(padding_mode in _PADDINGS, f"padding_mode is {padding_mode!r}", f"give one of {', '.join(_PADDINGS)}")
    ends = _ends(align_corners)
    axes = input.dim() - 2
    require(axes in (2, 3), f"input has {input.dim()} dimensions", "give 4 or 5")
    require(
        grid.dim() == input.dim() and grid.shape[-1] == axes,
        f"grid is of {tuple(grid.shape)}",
        f"give {axes} coordinates for each position, in {input.dim()} dimensions",
    )
    require(grid.shape[0] == input.shape[0], f"grid is of {tuple(grid.shape)}", "give it the batch of the input")
    require(mode != "bicubic" or axes == 2, f"mode is 'bicubic' for an input of {input.dim()} dimensions", "give 4")
    require(all(extent > 0 for extent in input.shape[2:]), f"input is of {tuple(input.shape)}", "give elements")
    _require_short_axes(input.shape[2:], "grid_sample of more than 2^24 elements along an axis")
    input, grid = as_autocasts("grid_sampler", input, grid)
    require_served(input.dtype == grid.dtype, f"grid_sample of {input.dtype} at {grid.dtype}")
    return sampling.grid_sample(input, grid, _MODES[mode], padding_mode, ends)  # type: ignore[no-any-return]


def affine_grid(theta: torch.Tensor, size: Sequence[int], align_corners: bool | None = None) -> torch.Tensor:
    """torch.nn.functional.affine_grid."""
    size = integers("size", size)
    require(len(size) in (4, 5), f"size has {len(size)} numbers", "give 4 or 5")
    axes = len(size) - 2
    require(all(extent > 0 for extent in size), f"size is {size}", "give positive numbers")
    require(
        tuple(theta.shape) == (size[0], axes, axes + 1),
        f"theta is of {tuple(theta.shape)}",
        f"give {(size[0], axes, axes + 1)} for size {size}",
    )
    _require_short_axes(size[2:], "affine_grid of more than 2^24 positions along an axis")
    return sampling.affine_grid(theta, size[2:], _ends(align_corners))  # type: ignore[no-any-return]
