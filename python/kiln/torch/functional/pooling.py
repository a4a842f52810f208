"""Pooling and unpooling."""

from __future__ import annotations

from typing import Any

import torch

from ..._calls import are_taken
from .. import _active
from .._autocast import as_autocast
from ..operators import contraction
from ..operators import pooling as operators
from ._arguments import Ints, as_int32, batched, flag, integer, integers, of_axes, per_axis, require, require_served

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]


class _Window:
    """The window of a pooling, and the extents that it gives."""

    def __init__(
        self,
        x: torch.Tensor,
        kernel_size: Ints,
        stride: Ints | None,
        padding: Ints,
        dilation: Ints = 1,
        ceil_mode: bool = False,
    ) -> None:
        axes = x.dim() - 2
        self.size = per_axis("kernel_size", kernel_size, axes)
        given = stride is not None and not (isinstance(stride, (list, tuple)) and not stride)
        self.stride = per_axis("stride", stride, axes) if given else self.size  # type: ignore[arg-type]
        self.padding = per_axis("padding", padding, axes)
        self.dilation = per_axis("dilation", dilation, axes)
        flag("ceil_mode", ceil_mode)
        self.extents = [x.shape[0], x.shape[1]]
        for i in range(axes):
            require(
                2 * self.padding[i] <= self.size[i],
                f"padding is {self.padding} and kernel_size {self.size}",
                "give a padding of half of the kernel's size at most",
            )
            span = x.shape[i + 2] + 2 * self.padding[i] - self.dilation[i] * (self.size[i] - 1) - 1
            extent = -(-span // self.stride[i]) + 1 if ceil_mode else span // self.stride[i] + 1
            if ceil_mode and (extent - 1) * self.stride[i] >= x.shape[i + 2] + self.padding[i]:
                extent -= 1  # the last window would begin in the padding
            require(extent > 0, f"an input of {tuple(x.shape)} gives no output", "give a larger one")
            self.extents.append(extent)

    def words(self) -> tuple[Any, ...]:
        return self.size, self.padding * 2, self.stride, self.dilation


def max_pool(
    axes: int,
    input: torch.Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    # PyTorch's operator that gives indices too has no type of its own.
    given = input if return_indices else as_autocast(input, f"max_pool{axes}d")
    x, has_batch = batched(given, axes, f"max_pool{axes}d")
    window = _Window(x, kernel_size, stride, padding, dilation, ceil_mode)
    if not return_indices:
        y = operators.pool(x, "max", window.extents, *window.words())
        return y if has_batch else y.squeeze(0)
    y, indices = operators.max_pool(x, window.extents, *window.words())
    indices = indices.to(torch.int64)
    return (y, indices) if has_batch else (y.squeeze(0), indices.squeeze(0))


def avg_pool(
    axes: int,
    input: torch.Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> torch.Tensor:
    x, has_batch = batched(as_autocast(input, f"avg_pool{axes}d"), axes, f"avg_pool{axes}d")
    window = _Window(x, kernel_size, stride, padding, 1, ceil_mode)
    mode = "avg_padded" if flag("count_include_pad", count_include_pad) else "avg"
    if divisor_override is None:
        y = operators.pool(x, mode, window.extents, *window.words())
    else:
        y = _sum_pool(x, window, 1 / _divisor(divisor_override))
    return y if has_batch else y.squeeze(0)


def _divisor(divisor: int) -> int:
    divisor = integer("divisor_override", divisor)
    require(divisor != 0, "divisor_override is 0", "give another number")
    return divisor


def _sum_pool(x: torch.Tensor, window: _Window, factor: float) -> torch.Tensor:
    """A convolution of each channel with a filter of one number: pooling with a divisor of its own."""
    filters = x.new_full((x.shape[1], 1, *window.size), factor)
    behind = [
        max(pad, (extent - 1) * stride + size - length - pad)
        for pad, extent, stride, size, length in zip(
            window.padding, window.extents[2:], window.stride, window.size, x.shape[2:], strict=True
        )
    ]
    pad = (*window.padding, *behind)
    with torch.autocast(x.device.type, enabled=False):  # which has no type of its own for pooling
        return contraction.conv(x, filters, None, None, None, pad, window.stride, window.dilation, x.shape[1], "", [])


def _adaptive(axes: int, input: torch.Tensor, output_size: Any, maximum: bool, return_indices: bool = False) -> Any:
    name = f"adaptive_{'max' if maximum else 'avg'}_pool{axes}d"
    x, has_batch = batched(as_autocast(input, name), axes, name)
    if isinstance(output_size, (tuple, list)):
        sizes: Any = output_size
    else:
        sizes = integers("output_size", output_size) * axes
        # PyTorch looks for a list in what is no int of Python, but along one axis.
        require(axes == 1 or sizes[0] is output_size, f"output_size is {output_size!r}", "give an int")
    require(len(sizes) == axes, f"output_size is {output_size!r}", f"give a number, or one for each of {axes} axes")
    wanted = [
        length if size is None and axes > 1 else integer("output_size", size)
        for size, length in zip(sizes, x.shape[2:], strict=True)
    ]
    window = []
    for size, length in zip(wanted, x.shape[2:], strict=True):
        require_served(
            size > 0 and length > 0 and length % size == 0,
            f"{name} of {length} elements to {size}: its windows are not equal",
        )
        window.append(length // size)
    if maximum:
        y = max_pool(axes, x, window, window, 0, 1, False, return_indices)
    else:
        y = avg_pool(axes, x, window, window, 0, False, True)
    if has_batch:
        return y
    return tuple(each.squeeze(0) for each in y) if isinstance(y, tuple) else y.squeeze(0)


def _in_windows(indices: torch.Tensor, size: Any, strides: Any, pads: Any, extents: Any) -> bool:
    """Whether each index lies in the window of its place. Waits for the device."""
    rest, inside = indices, torch.ones_like(indices, dtype=torch.bool)
    for i in reversed(range(len(extents))):
        at = rest if i == 0 else rest % extents[i]
        rest = torch.div(rest, extents[i], rounding_mode="floor")
        place = torch.arange(indices.shape[i - len(extents)], device=indices.device)
        first = (place * strides[i] - pads[i]).view([-1, *[1] * (len(extents) - 1 - i)])
        inside &= (at >= first) & (at < first + size[i]) & (at >= 0) & (at < extents[i])
    return bool(inside.all())


def adaptive_max_pool(axes: int, input: torch.Tensor, output_size: Any, return_indices: bool = False) -> Any:
    return _adaptive(axes, input, output_size, True, return_indices)


def adaptive_avg_pool(axes: int, input: torch.Tensor, output_size: Any) -> torch.Tensor:
    return _adaptive(axes, input, output_size, False)  # type: ignore[no-any-return]


def max_unpool(
    axes: int,
    input: torch.Tensor,
    indices: torch.Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Any = None,
) -> torch.Tensor:
    name = f"max_unpool{axes}d"
    x, has_batch = batched(input, axes, name)
    require(indices.shape == input.shape, f"indices are of {tuple(indices.shape)}", f"give {tuple(input.shape)}")
    for word, each in {"kernel_size": kernel_size, "stride": stride, "padding": padding}.items():
        fits = not isinstance(each, (tuple, list)) or len(each) == axes
        require(fits, f"{word} is {each!r}", f"give a number, or one for each of {axes} axes")
    size = per_axis("kernel_size", kernel_size, axes)
    strides = per_axis("stride", stride, axes) if stride is not None else size
    pads = per_axis("padding", padding, axes)
    require_served(
        all(each <= step for each, step in zip(size, strides, strict=True)),
        f"{name} with windows that overlap, kernel_size {size} and stride {strides}: elements would add up",
    )
    if output_size is None:
        extents = [
            (length - 1) * step + each - 2 * pad
            for length, step, each, pad in zip(x.shape[2:], strides, size, pads, strict=True)
        ]
    else:
        extents = list(integers("output_size", output_size))[-axes:]
    require_served(not _active.is_compiling(), f"{name} in a compiled program: nobody would look at the indices")
    require_served(all(extent > 0 for extent in extents), f"{name} to {tuple(extents)}, which has no element")
    require_served(
        are_taken() or bool(_active.transform()) or _in_windows(indices, size, strides, pads, extents),
        f"{name} with indices outside of their windows",
    )
    places = as_int32(indices) if has_batch else as_int32(indices).unsqueeze(0)
    words = (size, pads * 2, strides, (1,) * axes)
    y = operators.pool_backward(x, None, places, "max", [*x.shape[:2], *extents], *words)
    return y if has_batch else y.squeeze(0)


_NOTES = {
    "max_pool": "Indices are of 32 bits in Kiln, and converted to int64.",
    "avg_pool": "With divisor_override it is a convolution of each channel.",
    "adaptive_max_pool": "Only where the output's extents divide the input's, so that windows are equal.",
    "adaptive_avg_pool": "Only where the output's extents divide the input's, so that windows are equal.",
    "max_unpool": "Of indices that max_pool gave for windows that do not overlap; others are not served. They are "
    "converted to 32 bits, and looked at, for which a GPU is waited for.",
}


def _documented(name: str) -> str:
    return f"torch.nn.functional.{name}. {_NOTES[name[:-2]]}"


max_pool1d = of_axes(1, max_pool, _documented("max_pool1d"))
max_pool2d = of_axes(2, max_pool, _documented("max_pool2d"))
max_pool3d = of_axes(3, max_pool, _documented("max_pool3d"))
avg_pool1d = of_axes(1, avg_pool, _documented("avg_pool1d"))
avg_pool2d = of_axes(2, avg_pool, _documented("avg_pool2d"))
avg_pool3d = of_axes(3, avg_pool, _documented("avg_pool3d"))
adaptive_max_pool1d = of_axes(1, adaptive_max_pool, _documented("adaptive_max_pool1d"))
adaptive_max_pool2d = of_axes(2, adaptive_max_pool, _documented("adaptive_max_pool2d"))
adaptive_max_pool3d = of_axes(3, adaptive_max_pool, _documented("adaptive_max_pool3d"))
adaptive_avg_pool1d = of_axes(1, adaptive_avg_pool, _documented("adaptive_avg_pool1d"))
adaptive_avg_pool2d = of_axes(2, adaptive_avg_pool, _documented("adaptive_avg_pool2d"))
adaptive_avg_pool3d = of_axes(3, adaptive_avg_pool, _documented("adaptive_avg_pool3d"))
max_unpool1d = of_axes(1, max_unpool, _documented("max_unpool1d"))
max_unpool2d = of_axes(2, max_unpool, _documented("max_unpool2d"))
max_unpool3d = of_axes(3, max_unpool, _documented("max_unpool3d"))
