"""Operators that move elements: images at another size, rows of a table, borders, and pixels between channels and images."""

from __future__ import annotations

import fractions
import functools
from collections.abc import Sequence
from typing import Any

import torch

from .._launch import launch
from . import _by_pytorch as by_pytorch
from ._define import define
from ._indices import require_indices
from ._outputs import new


# Kiln's mode, coordinates and rounding for each of PyTorch.
_RESIZES = {
    "nearest": ("nearest", "asymmetric", "floor"),
    "nearest-exact": ("nearest", "half_pixel", "prefer_ceil"),
    **{mode: ("linear", "half_pixel", "prefer_floor") for mode in ("linear", "bilinear", "trilinear")},
    "bicubic": ("cubic", "half_pixel", "prefer_floor"),
}
_MOST = (1 << 31) - 1  # of a numerator or denominator


def _fraction(scale: float) -> tuple[int, int]:
    """A scale as Kiln takes it; 0 is the ratio of the extents."""
    fraction = fractions.Fraction(scale).limit_denominator(_MOST)
    return (fraction.numerator, fraction.denominator) if scale else (0, 0)


@functools.lru_cache(maxsize=1024)
def _nearest(mode: str, extent: int, outputs: int, scale: float) -> tuple[list[int], bool]:
    """Elements that PyTorch takes along an axis, and whether they are the nearest ones: it computes positions in f32."""
    shift = 0.5 if mode == "nearest-exact" else 0.0
    up, down = _fraction(scale) if scale else (outputs, extent)
    exact = [min((2 * i + int(2 * shift)) * down // (2 * up), extent - 1) for i in range(outputs)]
    step = torch.tensor(1 / scale) if scale else torch.tensor(float(extent)) / outputs
    taken = ((torch.arange(outputs) + shift) * step).floor().long().clamp(0, extent - 1).tolist()
    return taken, taken == exact


def _take(y: torch.Tensor, x: torch.Tensor, places: dict[int, torch.Tensor]) -> None:
    """y = the elements of x at `places` of each dimension there, one dimension behind another."""
    for dimension, at in places.items():
        is_last = dimension == next(reversed(places))
        result = y if is_last else new(x, [*x.shape[:dimension], at.numel(), *x.shape[dimension + 1 :]])
        shape = [-1 if each == dimension else 1 for each in range(x.dim())]
        launch("gather", x=x, indices=at.view(shape), y=result, axis=dimension)
        x = result


def _taken(x: Any, y: Any, mode: str, scales: Any) -> list[list[int]] | None:
    """The elements of x that PyTorch takes along each axis, where they are others than the nearest ones; else nothing."""
    if not mode.startswith("nearest"):
        return None
    axes = [
        _nearest(mode, before, behind, scale)
        for before, behind, scale in zip(x.shape[2:], y.shape[2:], scales, strict=True)
    ]
    return None if all(is_exact for _, is_exact in axes) else [taken for taken, _ in axes]


def _resizing(x: Any, y: Any, mode: str, aligned: bool, scales: Any) -> dict[str, Any]:
    """Kiln's words for images like x at the size of y."""
    kiln_mode, coordinates, rounding = _RESIZES[mode]
    if kiln_mode == "linear" and (x.device.type == "cpu" or x.shape == y.shape):  # an axis that stays is copied
        scales = [scale * (before != behind) for scale, before, behind in zip(scales, x.shape[2:], y.shape[2:])]
    words = {"mode": kiln_mode, "coordinates": "align_corners" if aligned else coordinates, "rounding": rounding}
    if any(scales) and not aligned:
        up, down = zip(*map(_fraction, scales), strict=True)
        words |= {"up": up, "down": down}
    return words


def _write_resize(y: Any, x: Any, extents: Any, mode: str, aligned: bool, scales: Any) -> None:
    taken = _taken(x, y, mode, scales)
    if taken is None:
        launch("resize", x=x, y=y, **_resizing(x, y, mode, aligned, scales))
    else:
        lists = [torch.tensor(each, dtype=torch.int32, device=x.device) for each in taken]
        _take(y, x, {i + 2: at for i, at in enumerate(lists)})


def _write_resize_backward(dx: Any, dy: Any, extents: Any, mode: str, aligned: bool, scales: Any) -> None:
    if _taken(dx, dy, mode, scales) is None:
        launch("resize_backward", dy=dy, dx=dx, **_resizing(dx, dy, mode, aligned, scales))
    else:
        dx.copy_(by_pytorch.resize_backward(dy, extents, mode, aligned, scales))


def _gradient_of_resize(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    extents, words = saved
    return resize_backward(dy, extents, *words), None, None, None, None


def _gradient_of_resize_backward(saved: Sequence[Any], needs: Sequence[bool], g: torch.Tensor) -> Sequence[Any]:
    extents, words = saved
    return resize(g, extents[2:], *words), None, None, None, None


# `mode`: PyTorch's. `scales`: those that were given, 0 for the ratio of the extents.
resize = define(
    "resize(Tensor x, SymInt[] extents, str mode, bool aligned, float[] scales) -> Tensor",
    lambda x, extents, *_: new(x, (*x.shape[:2], *extents)),
    _write_resize,
    saved=lambda y, x, extents, *words: (x.shape, words),
    gradient=_gradient_of_resize,
)
# `extents`: all of x.
resize_backward = define(
    "resize_backward(Tensor dy, SymInt[] extents, str mode, bool aligned, float[] scales) -> Tensor",
    lambda dy, extents, *_: new(dy, extents),
    _write_resize_backward,
    saved=lambda dx, dy, extents, *words: (dy.shape, words),
    gradient=_gradient_of_resize_backward,
)


def _write_embedding(y: Any, weight: Any, indices: Any, padding: int, by_frequency: bool) -> None:
    require_indices(indices, weight.shape[0], "the index", "row")
    at = indices.to(torch.int32).reshape(-1, 1)
    launch("gather", x=weight, indices=at, y=y.view(-1, weight.shape[1]), axis=0)


def _write_embedding_backward(dweight: Any, dy: Any, indices: Any, padding: int, rows: int) -> None:
    at = indices.to(torch.int32).reshape(-1, 1)
    if padding >= 0:
        at = at.masked_fill(at == padding, rows)  # which is no row, and so left out
    launch("scatter", updates=dy.reshape(-1, dy.shape[-1]), indices=at, y=dweight, axis=0)


def _gradient_of_embedding(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    indices, padding, by_frequency, rows = saved
    if by_frequency:  # a row's gradient is that of its mean
        dweight = torch.ops.aten.embedding_dense_backward(dy, indices, rows, padding, True)
    else:
        dweight = embedding_backward(dy, indices, padding, rows)
    return dweight, None, None, None


# The last two are of its gradient: the row without one, or -1, and whether rows count by how often they were taken.
embedding = define(
    "embedding(Tensor weight, Tensor indices, int padding, bool by_frequency) -> Tensor",
    lambda weight, indices, *_: weight.new_empty((*indices.shape, weight.shape[1])),
    _write_embedding,
    saved=lambda y, weight, *others: (*others, weight.shape[0]),
    gradient=_gradient_of_embedding,
)
# `rows`: of the table.
embedding_backward = define(
    "embedding_backward(Tensor dy, Tensor indices, int padding, SymInt rows) -> Tensor",
    lambda dy, indices, padding, rows: dy.new_empty((rows, dy.shape[-1])),
    _write_embedding_backward,
)


# The rows of x at `places`, and zeros where a place is their number. `back`: for each row of x its place in the result,
# which no other row has, or the result's number of rows.
take_rows = define(
    "take_rows(Tensor x, Tensor places, Tensor back) -> Tensor",
    lambda x, places, back: x.new_empty((places.shape[0], x.shape[1])),
    lambda y, x, places, back: launch("gather", x=x, indices=places.unsqueeze(1), y=y, axis=0),
    saved=lambda y, x, places, back: (places, back),
    gradient=lambda saved, needs, dy: (take_rows(dy, saved[1], saved[0]), None, None),
)


def padded_extents(x: Any, pad: Sequence[int]) -> list[Any]:
    """`pad`: as PyTorch has it, the last dimension first."""
    extents = list(x.shape)
    for i in range(len(pad) // 2):
        extents[-1 - i] = extents[-1 - i] + pad[2 * i] + pad[2 * i + 1]
    return extents


def _cropped(x: torch.Tensor, pad: Sequence[int]) -> torch.Tensor:
    """Without the elements that negative numbers take away."""
    for i in range(len(pad) // 2):
        before, behind = (max(-each, 0) for each in pad[2 * i : 2 * i + 2])
        x = x.narrow(-1 - i, before, x.shape[-1 - i] - before - behind)
    return x


def _sources(mode: str, extent: int, before: int, behind: int, device: Any) -> torch.Tensor:
    """Index of the input's element along a dimension, for each element of the result."""
    at = torch.arange(-before, extent + behind, dtype=torch.int32, device=device)
    if mode == "replicate":
        return at.clamp(0, extent - 1)
    if mode == "circular":
        return at.remainder(extent)
    return (extent - 1) - ((extent - 1) - at.abs()).abs()


def _write_pad(y: Any, x: Any, pad: Any, mode: str, value: float) -> None:
    axes = len(pad) // 2
    if mode in ("constant", "circular"):
        x, pad = _cropped(x, pad), [max(each, 0) for each in pad]
    if mode == "constant":
        sides = [[0] * (x.dim() - axes) + [pad[2 * i + side] for i in reversed(range(axes))] for side in (0, 1)]
        if x.numel() == 0:
            y.fill_(value)
        else:
            launch("tensor_transform", x=x, y=y, pad=(*sides[0], *sides[1]), value=value)
        return
    places = {}
    for i in range(axes):
        dimension = x.dim() - 1 - i
        if pad[2 * i] or pad[2 * i + 1]:
            places[dimension] = _sources(mode, x.shape[dimension], pad[2 * i], pad[2 * i + 1], x.device)
    if places:
        _take(y, x, places)
    else:
        launch("tensor_transform", x=x, y=y)


pad = define(
    "pad(Tensor x, SymInt[] pad, str mode, float value) -> Tensor",
    lambda x, pad, *_: new(x, padded_extents(x, pad)),
    _write_pad,
)


def _blocks(x: torch.Tensor, factor: int, channels_last: bool) -> torch.Tensor:
    """A large image as images, rows, rows of a block, columns and columns of a block.

    With channels last these are rows of all images, rows of a block, columns, columns of a block and channels.
    """
    if channels_last:
        last = x.permute(0, 2, 3, 1)
        rows = last.shape[0] * last.shape[1] // factor
        return last.view(rows, factor, last.shape[2] // factor, factor, last.shape[3])
    return x.view(-1, x.shape[-2] // factor, factor, x.shape[-1] // factor, factor)


def _channels(x: torch.Tensor, factor: int, channels_last: bool) -> torch.Tensor:
    """A small image, whose channels are elements of a block, with the dimensions of _blocks()."""
    if channels_last:
        last = x.permute(0, 2, 3, 1)
        rows = last.shape[0] * last.shape[1]
        apart = last.view(rows, last.shape[2], last.shape[3] // factor**2, factor, factor)
        return apart.permute(0, 3, 1, 4, 2)
    return x.view(-1, factor, factor, *x.shape[-2:]).permute(0, 3, 1, 4, 2)


def _write_shuffle(y: Any, x: Any, factor: int) -> None:
    last = not x.is_contiguous()
    launch("tensor_transform", x=_channels(x, factor, last), y=_blocks(y, factor, last))


def _write_unshuffle(y: Any, x: Any, factor: int) -> None:
    last = not x.is_contiguous()
    launch("tensor_transform", x=_blocks(x, factor, last), y=_channels(y, factor, last))


def _shuffled(x: Any, factor: int) -> list[Any]:
    return [*x.shape[:-3], x.shape[-3] // factor**2, x.shape[-2] * factor, x.shape[-1] * factor]


def _unshuffled(x: Any, factor: int) -> list[Any]:
    return [*x.shape[:-3], x.shape[-3] * factor**2, x.shape[-2] // factor, x.shape[-1] // factor]


# x without gaps, channels last or not.
pixel_shuffle = define(
    "pixel_shuffle(Tensor x, int factor) -> Tensor", lambda x, factor: new(x, _shuffled(x, factor)), _write_shuffle
)
pixel_unshuffle = define(
    "pixel_unshuffle(Tensor x, int factor) -> Tensor",
    lambda x, factor: new(x, _unshuffled(x, factor)),
    _write_unshuffle,
)
