"""Images as columns of windows, and back."""

from __future__ import annotations

from typing import Any

import torch

from ..operators import columns
from ._arguments import Ints, batched, per_axis, require, require_served

__all__ = ["fold", "unfold"]


def _pair(name: str, value: Ints) -> tuple[int, ...]:
    require(not isinstance(value, (list, tuple)) or len(value) == 2, f"{name} is {value!r}", "give a number, or two")
    return per_axis(name, value, 2)


class _Windows:
    """Windows over images of `extents`, and how many there are along each axis."""

    def __init__(
        self, extents: Any, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
    ) -> None:
        self.size = _pair("kernel_size", kernel_size)
        self.dilation = _pair("dilation", dilation)
        self.padding = _pair("padding", padding)
        self.stride = _pair("stride", stride)
        self.taps = self.size[0] * self.size[1]
        self.outputs = []
        for i in range(2):
            span = extents[i] + 2 * self.padding[i] - self.dilation[i] * (self.size[i] - 1) - 1
            require(span >= 0, f"an image of {tuple(extents)} has no window of {self.size}", "give a larger one")
            self.outputs.append(span // self.stride[i] + 1)

    def words(self) -> tuple[Any, ...]:
        return self.size, self.padding * 2, self.stride, self.dilation


def _require_fractions(name: str, input: torch.Tensor) -> None:
    require_served(input.dtype.is_floating_point, f"{name} of {input.dtype}")


def unfold(
    input: torch.Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> torch.Tensor:
    """torch.nn.functional.unfold."""
    _require_fractions("unfold", input)
    x, has_batch = batched(input, 2, "unfold")
    require(all(extent > 0 for extent in x.shape[1:]), f"input is of {tuple(input.shape)}", "give elements")
    windows = _Windows(x.shape[2:], kernel_size, dilation, padding, stride)
    extents = [x.shape[0], x.shape[1] * windows.taps, *windows.outputs]
    y = columns.im2col(x, extents, *windows.words()).flatten(2)
    return y if has_batch else y.squeeze(0)


def fold(
    input: torch.Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> torch.Tensor:
    """torch.nn.functional.fold. Sums are in one order, so that they repeat bit for bit."""
    _require_fractions("fold", input)
    x, has_batch = batched(input, 1, "fold")
    extents = _pair("output_size", output_size)
    windows = _Windows(extents, kernel_size, dilation, padding, stride)
    require(
        x.shape[1] > 0 and x.shape[1] % windows.taps == 0,
        f"input is of {tuple(input.shape)}",
        f"give a multiple of {windows.taps} channels, the elements of a window",
    )
    count = windows.outputs[0] * windows.outputs[1]
    require(x.shape[2] == count, f"input is of {tuple(input.shape)}", f"give {count} columns, the windows of the output")
    x = x.reshape([x.shape[0], x.shape[1], *windows.outputs])
    y = columns.col2im(x, [x.shape[0], x.shape[1] // windows.taps, *extents], *windows.words())
    return y if has_batch else y.squeeze(0)  # type: ignore[no-any-return]
