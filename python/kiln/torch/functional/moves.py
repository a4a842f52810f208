"""Functions that move elements: images at another size, rows of a table, borders, pixels of channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Union

import torch

from .._autocast import as_autocast
from ..operators import moves
from . import pooling
from ._arguments import INT32, flag, integer, integers, needs_gradient, number, require, require_served

__all__ = ["embedding", "interpolate", "pad", "pixel_shuffle", "pixel_unshuffle"]

Scales = Union[float, Sequence[float]]

_axes_of = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "area": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
    "bicubic": (2,),
}


def _each(name: str, value: Any, axes: int) -> Sequence[Any]:
    given = value if isinstance(value, (list, tuple)) else [value] * axes
    require(len(given) == axes, f"{name} is {value!r}", f"give a number, or one for each of {axes} axes")
    return given


def _factor(value: Any) -> float:
    """A scale: PyTorch takes none of a tensor."""
    require(not isinstance(value, torch.Tensor), f"scale_factor has {value!r}", "give a number")
    scale = number("scale_factor", value)
    require(math.isfinite(scale), f"scale_factor has {value!r}", "give a number")
    return scale


def interpolate(
    input: torch.Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: Scales | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> torch.Tensor:
    """torch.nn.functional.interpolate. Elements of the nearest modes are those that PyTorch takes, whose positions are
    rounded to float32. antialias is not served."""
    axes = input.dim() - 2
    served = _axes_of.get(mode, ()) if isinstance(mode, str) else ()
    require(axes in served, f"mode is {mode!r} for an input of {input.dim()} dimensions", "give another mode or input")
    require((size is None) != (scale_factor is None), "size and scale_factor are both given, or none", "give one of them")
    if align_corners is not None:
        flag("align_corners", align_corners)
        interpolates = mode in ("linear", "bilinear", "trilinear", "bicubic")
        require(interpolates, f"align_corners is {align_corners} with mode {mode!r}", "leave it out")
    require(not recompute_scale_factor or size is None, "recompute_scale_factor is given with a size", "leave it out")
    require(all(extent > 0 for extent in input.shape[1:]), f"input is of {tuple(input.shape)}", "give elements")
    require_served(not antialias, "interpolate with antialias")
    require_served(
        input.dtype.is_floating_point or mode in ("nearest", "nearest-exact"),
        f"interpolate of {input.dtype} in mode {mode}",
    )
    scales = [0.0] * axes
    if scale_factor is None:
        assert size is not None
        extents = list(integers("size", _each("size", size, axes)))
    else:
        factors = [_factor(each) for each in _each("scale_factor", scale_factor, axes)]
        extents = [int(extent * each) for extent, each in zip(input.shape[2:], factors, strict=True)]
        if mode != "area" and not recompute_scale_factor and not align_corners:
            require_served(all(1 / 128 <= each <= 128 for each in factors), f"scale_factor is {scale_factor!r}")
            scales = factors
            for extent, outputs, scale in zip(input.shape[2:], extents, scales, strict=True):
                # PyTorch's kernels differ: some take the ratio of the extents then.
                is_near = mode == "nearest" and outputs in (extent, 2 * extent) and scale * extent != outputs
                require_served(not is_near, f"scale_factor {scale} of {extent} elements to {outputs}")
    require(all(extent > 0 for extent in extents), f"the result has the extents {extents}", "give 1 or more")
    if mode == "area":
        return getattr(pooling, f"adaptive_avg_pool{axes}d")(input, extents)  # type: ignore[no-any-return]
    kind = "_upsample_nearest_exact" if mode == "nearest-exact" else f"upsample_{mode}"
    input = as_autocast(input, f"{kind}{axes}d")
    return moves.resize(input, extents, mode, bool(align_corners), scales)  # type: ignore[no-any-return]


def embedding(
    input: torch.Tensor,
    weight: torch.Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> torch.Tensor:
    """torch.nn.functional.embedding: rows of `weight`. An index that is no row raises kiln.InvalidArgument, or on a GPU
    ends in an assertion of the device. The gradient repeats bit for bit, on GPUs too; with scale_grad_by_freq it is
    PyTorch's. max_norm and sparse gradients are not served."""
    require(weight.dim() == 2, f"embedding takes a table of 2 dimensions, and this has {weight.dim()}", "give rows")
    require(input.dtype in (torch.int32, torch.int64), f"indices are {input.dtype}", "give int64 or int32")
    require_served(max_norm is None, "embedding with max_norm, which writes the table")
    require_served(not flag("sparse", sparse) or not needs_gradient(weight), "embedding with sparse gradients")
    rows = weight.shape[0]
    padding_idx = None if padding_idx is None else integer("padding_idx", padding_idx)
    require_served(rows <= INT32.max, "a table of more than 2^31 - 1 rows")
    require(
        padding_idx is None or -rows <= padding_idx < rows,
        f"padding_idx is {padding_idx}, and the table has {rows} rows",
        "give one of its rows",
    )
    padding = -1 if padding_idx is None else padding_idx % rows
    flag("scale_grad_by_freq", scale_grad_by_freq)
    return moves.embedding(weight, input, padding, scale_grad_by_freq)  # type: ignore[no-any-return]


def _require_held(dtype: torch.dtype, value: float) -> None:
    """Raises unless padding with `value` gives what PyTorch writes, which rounds integers otherwise and refuses values
    that are too large."""
    if dtype.is_floating_point:
        finite = abs(value) < float("inf")
        require(not finite or abs(value) <= torch.finfo(dtype).max, f"value is {value}", f"give one that {dtype} holds")
        return
    limits = torch.iinfo(dtype)
    require_served(value.is_integer() and abs(value) <= 1 << 24, f"pad of {dtype} with {value}")
    require_served(limits.min <= value <= limits.max, f"pad of {dtype} with {value}")


def pad(
    input: torch.Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> torch.Tensor:
    """torch.nn.functional.pad: constant, reflect, replicate or circular. Negative numbers take elements away. The
    gradient is PyTorch's."""
    require(isinstance(pad, (tuple, list)), f"pad is {pad!r}", "give a tuple or list")
    sides = list(integers("pad", pad))
    value = None if value is None else number("value", value)
    axes, rank = len(sides) // 2, input.dim()
    require(len(sides) % 2 == 0 and axes <= rank, f"pad is {pad!r}", "give two numbers for each of the last dimensions")
    require(mode in ("constant", "reflect", "replicate", "circular"), f"mode is {mode!r}", "give PyTorch's")
    require_served(mode != "constant" or any(each > 0 for each in sides), "pad that adds nothing")
    if mode == "constant":
        require_served(not input.dtype.is_complex and input.dtype != torch.bool, f"pad of {input.dtype}")
        _require_held(input.dtype, value or 0.0)
    else:
        require(not value, f"value is {value} with mode {mode!r}", "leave it out")
        ranks = (axes + 2,) if mode == "circular" else (axes + 1, axes + 2)
        require(axes <= 3 and rank in ranks, f"pad is {pad!r} for {rank} dimensions", "give those without the batch")
        some = [*input.shape[1:]] if mode != "circular" and rank == axes + 2 else []  # a batch may be empty
        require(all(extent > 0 for extent in some), f"the input is of {tuple(input.shape)}", "give elements")
        for i in range(axes):
            extent = input.shape[-1 - i]
            require(extent > 0, f"the input is of {tuple(input.shape)}", "give elements")
            most = {"reflect": extent - 1, "circular": extent}.get(mode, INT32.max)
            widest = max(sides[2 * i : 2 * i + 2])
            require(widest <= most, f"pad has {widest} for {extent} elements in mode {mode!r}", f"give {most} or less")
    extents = moves.padded_extents(input, sides)
    require(all(each > 0 for each in extents[rank - axes :]), f"the result is of {tuple(extents)}", "take less away")
    require_served(rank <= 5 or axes < 5, f"pad of {axes} dimensions of {rank}")
    operator = {"reflect": "reflection", "replicate": "replication"}.get(mode, mode)
    input = as_autocast(input, f"{operator}_pad{axes}d")
    x = input.flatten(0, rank - 5) if rank > 5 else input
    return moves.pad(x, sides, mode, value or 0.0).view(extents)  # type: ignore[no-any-return]


def _without_gaps(input: torch.Tensor) -> torch.Tensor:
    if input.is_contiguous() or (input.dim() == 4 and input.is_contiguous(memory_format=torch.channels_last)):
        return input
    return input.contiguous()


def pixel_shuffle(input: torch.Tensor, upscale_factor: int) -> torch.Tensor:
    """torch.nn.functional.pixel_shuffle"""
    upscale_factor = integer("upscale_factor", upscale_factor)
    require(input.dim() >= 3 and upscale_factor > 0, f"upscale_factor is {upscale_factor}", "give 1 or more, and images")
    require(
        input.shape[-3] % upscale_factor**2 == 0,
        f"the input has {input.shape[-3]} channels, which {upscale_factor}^2 does not divide",
        "give as many for each pixel of a block",
    )
    return moves.pixel_shuffle(_without_gaps(input), upscale_factor)  # type: ignore[no-any-return]


def pixel_unshuffle(input: torch.Tensor, downscale_factor: int) -> torch.Tensor:
    """torch.nn.functional.pixel_unshuffle"""
    downscale_factor = integer("downscale_factor", downscale_factor)
    require(
        input.dim() >= 3 and downscale_factor > 0, f"downscale_factor is {downscale_factor}", "give 1 or more, and images"
    )
    require(
        all(extent % downscale_factor == 0 for extent in input.shape[-2:]),
        f"the input has {tuple(input.shape[-2:])} pixels, which {downscale_factor} does not divide",
        "give whole blocks",
    )
    require_served(input.numel() > 0, "pixel_unshuffle of no elements")  # PyTorch's result keeps the input's extents
    return moves.pixel_unshuffle(_without_gaps(input), downscale_factor)  # type: ignore[no-any-return]
