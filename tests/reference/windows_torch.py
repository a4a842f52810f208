#!/usr/bin/python3
"""Writes windows_torch.txt: convolutions, poolings, products, softmax, and the gradients of each, by PyTorch, in double,
for torch_table_test.cpp.

    /usr/bin/python3 tests/reference/windows_torch.py > tests/reference/windows_torch.txt
"""
import torch

from torch_table import call, draw, extents

F = torch.nn.functional


def listed(values):
    return ",".join(map(str, values))


def leaf(*shape):
    return draw(*shape).requires_grad_()


# ---- convolution

CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def convolution(x_shape, w_shape, pad, stride, dilation, groups=1):
    x, w, b = leaf(*x_shape), leaf(*w_shape), leaf(w_shape[0])
    y = CONVOLUTIONS[len(pad)](x, w, b, stride, pad, dilation, groups)
    dy = draw(*y.shape)
    y.backward(dy)
    how = f"pad={listed(pad)} stride={listed(stride)} dilation={listed(dilation)} groups={groups}"
    tensors = {"x": x.detach(), "w": w.detach(), "dy": dy}
    spec = {name: f"{name}=f32:{extents(tensor)}" for name, tensor in tensors.items()}
    call(f"conv_forward {spec['x']} {spec['w']} {how} epilogue=bias", {"x": x, "w": w, "bias": b}, {"y": y})
    call(f"conv_backward_data {spec['dy']} {spec['w']} dx=f32:{extents(x)} {how}", {"dy": dy, "w": w}, {"dx": x.grad})
    call(f"conv_backward_filter {spec['x']} {spec['dy']} dw=f32:{extents(w)} {how}", {"x": x, "dy": dy}, {"dw": w.grad})
    call(f"conv_backward_bias {spec['dy']}", {"dy": dy}, {"db": b.grad})


convolution((2, 3, 9), (4, 3, 3), [1], [2], [1])
convolution((2, 4, 7, 6), (6, 2, 3, 2), [1, 0], [1, 2], [2, 1], groups=2)
convolution((1, 3, 5, 8), (6, 1, 3, 3), [2, 1], [2, 3], [1, 1], groups=3)
convolution((2, 2, 4, 5, 6), (3, 2, 2, 3, 3), [1, 0, 1], [2, 1, 1], [1, 2, 1])
convolution((1, 1, 1, 1), (1, 1, 1, 1), [0, 0], [1, 1], [1, 1])


def transposed_convolution(dy_shape, w_shape, pad, stride, output_pad, dilation, groups=1):
    """Transposed convolution of training frameworks: the gradient by the data, with the bias and its sums left out."""
    dy, w = draw(*dy_shape), draw(*w_shape)
    dx = TRANSPOSED[len(pad)](dy, w, None, stride, pad, output_pad, groups, dilation)
    call(f"conv_backward_data dy=f32:{extents(dy)} w=f32:{extents(w)} pad={listed(pad)} stride={listed(stride)} "
         f"output_pad={listed(output_pad)} dilation={listed(dilation)} groups={groups}", {"dy": dy, "w": w}, {"dx": dx})


transposed_convolution((2, 3, 4), (3, 2, 3), [1], [3], [2], [1])
transposed_convolution((1, 4, 3, 5), (4, 3, 3, 3), [1, 1], [2, 2], [1, 0], [1, 1], groups=2)
transposed_convolution((1, 2, 3, 2, 3), (2, 2, 2, 3, 2), [0, 1, 0], [2, 1, 2], [1, 0, 1], [1, 2, 1])


def local_convolution(x_shape, channels, taps, pad, stride, grid):
    """Each region's filters by an ordinary convolution, of whose outputs only the region's are taken."""
    probe = F.conv2d(draw(*x_shape), draw(channels, x_shape[1], *taps), None, stride, pad)
    rows, columns = probe.shape[2:]
    x, w = leaf(*x_shape), leaf(grid[0] * grid[1] * channels, x_shape[1], *taps)
    y = torch.zeros_like(probe)
    for p in range(rows):
        for q in range(columns):
            region = p * grid[0] // rows * grid[1] + q * grid[1] // columns
            filters = w[region * channels:(region + 1) * channels]
            mask = torch.zeros(rows, columns, dtype=torch.float64)
            mask[p, q] = 1
            y = y + F.conv2d(x, filters, None, stride, pad) * mask
    dy = draw(*y.shape)
    y.backward(dy)
    how = f"pad={listed(pad)} stride={listed(stride)} grid={listed(grid)}"
    call(f"local_conv_forward x=f32:{extents(x)} w=f32:{extents(w)} {how}", {"x": x, "w": w}, {"y": y})
    call(f"local_conv_backward_data dy=f32:{extents(y)} w=f32:{extents(w)} dx=f32:{extents(x)} {how}",
         {"dy": dy, "w": w}, {"dx": x.grad})
    call(f"local_conv_backward_filter x=f32:{extents(x)} dy=f32:{extents(y)} dw=f32:{extents(w)} {how}",
         {"x": x, "dy": dy}, {"dw": w.grad})


local_convolution((2, 2, 4, 5), 3, (3, 3), [1, 1], [1, 2], [4, 3])
local_convolution((1, 2, 5, 4), 2, (2, 3), [0, 1], [1, 1], [3, 2])


# ---- pooling

MAXIMA = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGES = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
UNPOOLINGS = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}


def pooling(shape, window, pad, stride, ceil=False):
    """Pooling in every mode; x has ties."""
    how = f"window={listed(window)} pad={listed(pad)} stride={listed(stride)}"
    for mode in ("max", "avg", "avg_padded"):
        x = (torch.randint(-3, 4, shape).to(torch.float64) / 2).requires_grad_()
        spatial = len(window)
        if mode == "max":
            y, indices = MAXIMA[spatial](x, window, stride, pad, ceil_mode=ceil, return_indices=True)
        else:
            y = AVERAGES[spatial](x, window, stride, pad, ceil, mode == "avg_padded")
        dy = draw(*y.shape)
        y.backward(dy)
        spec = f"x=f32:{extents(x)}", f"y=f32:{extents(y)}", f"dy=f32:{extents(y)}", f"dx=f32:{extents(x)}"
        call(f"pool_forward {spec[0]} {spec[1]} mode={mode} {how}", {"x": x}, {"y": y})
        given = {"dy": dy, "x": x} if mode == "max" else {"dy": dy}
        named = f"{spec[2]} {spec[0]}" if mode == "max" else f"{spec[2]} {spec[3]}"
        call(f"pool_backward {named} mode={mode} {how}", given, {"dx": x.grad})
        if mode != "max":
            continue
        call(f"pool_forward {spec[0]} {spec[1]} indices=i32:{extents(y)} mode=max {how}", {"x": x},
             {"y": y, "indices": indices})
        call(f"pool_backward {spec[2]} indices=i32:{extents(y)} {spec[3]} mode=max {how}", {"dy": dy, "indices": indices},
             {"dx": x.grad})


pooling((2, 3, 11), [3], [1], [2])
pooling((1, 2, 7, 8), [3, 2], [1, 0], [2, 2])
pooling((2, 1, 6, 7), [3, 3], [1, 1], [1, 2])
pooling((1, 2, 4, 5, 6), [2, 3, 2], [1, 1, 0], [2, 1, 2])


def global_pooling(shape):
    pooling(shape, list(shape[2:]), [0] * (len(shape) - 2), [1] * (len(shape) - 2))


global_pooling((2, 3, 3, 5))
global_pooling((1, 2, 2, 3, 4))


def unpooling(shape, window):
    """Windows side by side: where several name a position PyTorch keeps one of them, here they add up."""
    x = torch.randperm(torch.Size(shape).numel()).to(torch.float64).reshape(shape) / 64
    pooled, indices = MAXIMA[len(window)](x, window, return_indices=True)
    values = draw(*pooled.shape)
    y = UNPOOLINGS[len(window)](values, indices, window, output_size=shape)
    how = f"window={listed(window)} stride={listed(window)}"
    call(f"pool_backward dy=f32:{extents(pooled)} indices=i32:{extents(pooled)} dx=f32:{extents(x)} mode=max {how}",
         {"dy": values, "indices": indices}, {"dx": y})


unpooling((2, 3, 9), [3])
unpooling((1, 2, 6, 4), [2, 2])
unpooling((1, 2, 4, 2, 6), [2, 1, 3])

# ---- softmax: y may be anything that f32 holds

for shape, axis in (((3, 7), 1), ((2, 5, 3), 1), ((2, 3, 2, 4), 0), ((4, 1), 1)):
    for mode, forward, backward in (("accurate", F.softmax, torch._softmax_backward_data),
                                    ("log", F.log_softmax, torch._log_softmax_backward_data)):
        x, y, dy = draw(*shape), draw(*shape), draw(*shape)
        call(f"softmax_forward x=f32:{extents(x)} axis={axis} mode={mode}", {"x": x}, {"y": forward(x, axis)})
        call(f"softmax_backward y=f32:{extents(y)} axis={axis} mode={mode}", {"y": y, "dy": dy},
             {"dx": backward(dy, y, axis, torch.float64)})

# ---- products

x, w, b = leaf(5, 7), leaf(4, 7), leaf(4)
y = F.linear(x, w, b)
dy = draw(5, 4)
y.backward(dy)
call("gemm a=f32:5x7 b=f32:7x4 epilogue=bias", {"a": x, "b": w.t(), "bias": b}, {"c": y})
call("gemm a=f32:5x4 b=f32:4x7", {"a": dy, "b": w}, {"c": x.grad})
call("gemm a=f32:4x5 b=f32:5x7", {"a": dy.t(), "b": x}, {"c": w.grad})
call("conv_backward_bias dy=f32:5x4", {"dy": dy}, {"db": b.grad})
a, b = draw(2, 3, 4, 5), draw(2, 1, 5, 3)
call("gemm a=f32:2x3x4x5 b=f32:2x1x5x3", {"a": a, "b": b}, {"c": a @ b})


# ---- the gradient of unpooling; windows that overlap name a position several times

def unpooling_gradient(shape, window, pad, stride):
    x = torch.randperm(torch.Size(shape).numel()).to(torch.float64).reshape(shape) / 64
    pooled, indices = MAXIMA[len(window)](x, window, stride, pad, return_indices=True)
    values, dy = leaf(*pooled.shape), draw(*shape)
    UNPOOLINGS[len(window)](values, indices, window, stride, pad, output_size=shape).backward(dy)
    call(f"unpool_backward dy=f32:{extents(dy)} indices=i32:{extents(pooled)} window={listed(window)} pad={listed(pad)} "
         f"stride={listed(stride)}", {"dy": dy, "indices": indices}, {"dx": values.grad})


unpooling_gradient((2, 3, 11), [3], [1], [2])
unpooling_gradient((1, 2, 7, 8), [3, 2], [1, 0], [2, 2])
unpooling_gradient((1, 2, 4, 5, 6), [2, 3, 2], [1, 1, 0], [2, 1, 2])
