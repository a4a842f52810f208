#!/usr/bin/python3
"""Writes columns_torch.txt: im2col and col2im by PyTorch, in double, for torch_table_test.cpp.

    /usr/bin/python3 tests/reference/columns_torch.py > tests/reference/columns_torch.txt
"""
import torch
import torch.nn.functional as F

from torch_table import call, draw, extents


def listed(values):
    return ",".join(map(str, values))


def unfolded(x, window, pad, stride, dilation):
    """Columns of any number of axes: PyTorch's unfold() has two."""
    axes = len(window)
    x = F.pad(x, [each for i in reversed(range(axes)) for each in (pad[i], pad[axes + i])])
    for i in range(axes):
        x = x.unfold(2 + i, dilation[i] * (window[i] - 1) + 1, stride[i])[..., :: dilation[i]]
    outputs = x.shape[2 : 2 + axes]
    x = x.permute(0, 1, *range(2 + axes, 2 + 2 * axes), *range(2, 2 + axes))
    return x.reshape(x.shape[0], -1, *outputs)


def columns(x_shape, window, pad, stride, dilation):
    x = draw(*x_shape).requires_grad_()
    y = unfolded(x, window, pad, stride, dilation)
    if len(window) == 2 and pad[:2] == pad[2:]:
        assert torch.equal(y.flatten(2), F.unfold(x, window, dilation, pad[:2], stride))
    dy = draw(*y.shape)
    y.backward(dy)
    if len(window) == 2 and pad[:2] == pad[2:]:
        assert torch.allclose(x.grad, F.fold(dy.flatten(2), x.shape[2:], window, dilation, pad[:2], stride))
    how = f"window={listed(window)} pad={listed(pad)} stride={listed(stride)} dilation={listed(dilation)}"
    call(f"im2col x=f32:{extents(x)} {how}", {"x": x}, {"y": y})
    call(f"col2im x=f32:{extents(y)} y=f32:{extents(x)} {how}", {"x": dy}, {"y": x.grad})


columns((2, 3, 9), (3,), (1, 1), (2,), (1,))
columns((1, 2, 9), (2,), (0, 3), (1,), (4,))
columns((2, 2, 4, 5), (3, 3), (1, 1, 1, 1), (1, 1), (1, 1))
columns((1, 3, 4, 6), (2, 3), (0, 0, 0, 0), (2, 3), (1, 1))
columns((1, 2, 7, 5), (3, 2), (2, 1, 2, 1), (2, 1), (2, 3))
columns((1, 2, 5, 7), (2, 3), (1, 0, 2, 3), (3, 2), (1, 2))
columns((1, 2, 2, 3), (2, 2), (4, 4, 4, 4), (3, 3), (1, 1))
columns((2, 2, 3, 2), (3, 2), (0, 0, 0, 0), (1, 1), (1, 1))
columns((1, 2, 6, 6), (1, 1), (0, 0, 0, 0), (4, 4), (1, 1))
columns((1, 2, 3, 4, 3), (2, 2, 2), (1, 0, 1, 1, 1, 0), (1, 2, 1), (1, 1, 2))
