#!/usr/bin/python3
"""Writes rows_torch.txt: reductions and normalisations by PyTorch, in double, for torch_table_test.cpp.

    /usr/bin/python3 tests/reference/rows_torch.py > tests/reference/rows_torch.txt
"""
import torch

from activation_functions import FUNCTIONS
from torch_table import call, draw, extents


def flattened(x, axes):
    """Kept dimensions first, then the axes as one."""
    kept = [d for d in range(x.dim()) if d not in axes]
    return x.permute(*kept, *axes).reshape(*[x.shape[d] for d in kept], -1)


REDUCTIONS = {
    "add": lambda x: x.sum(-1),
    "mul": lambda x: x.prod(-1),
    "min": lambda x: x.min(-1).values,
    "max": lambda x: x.max(-1).values,
    "amax": lambda x: x.abs().max(-1).values,
    "mean": lambda x: x.mean(-1),
    "norm1": lambda x: torch.linalg.vector_norm(x, 1, -1),
    "norm2": lambda x: torch.linalg.vector_norm(x, 2, -1),
    "mul_no_zeros": lambda x: torch.where(x == 0, torch.ones_like(x), x).prod(-1),
}
POSITIONS = {"min": lambda x: x.argmin(-1), "max": lambda x: x.argmax(-1), "amax": lambda x: x.abs().argmax(-1)}

for mode, function in REDUCTIONS.items():
    for shape, axes in (((3, 5), [1]), ((2, 3, 4), [0, 2]), ((2, 3, 2, 2), [1, 2, 3])):
        x = draw(*shape)
        rows = flattened(x, axes)
        results = {"y": function(rows)}
        reduced = "x".join("1" if d in axes else str(extent) for d, extent in enumerate(shape))
        indices = ""
        if mode in POSITIONS:
            indices = " indices=i32:" + reduced
            results["indices"] = POSITIONS[mode](rows)
        listed = ",".join(map(str, axes))
        call(f"reduce x=f32:{extents(x)}{indices} axes={listed} mode={mode}", {"x": x}, results)

F = torch.nn.functional


def positive(*shape):
    return draw(*shape).abs() + 0.5


def norm(request, x, w, b, y, dims, operands, results, parameter):
    """A forward call and, from its statistics, the backward one. `parameter`: extents of w beside x."""
    epsilon = float(torch.tensor(1e-5, dtype=torch.float32))
    mean = x.mean(dims, keepdim=True)
    inverse = (x.var(dims, unbiased=False, keepdim=True) + epsilon) ** -0.5
    axes = ",".join(map(str, dims))
    stats = f"mean=f32:{extents(mean)} inv_deviation=f32:{extents(mean)}"
    call(f"norm_forward x=f32:{extents(x)} w=f32:{parameter} b=f32:{parameter} {stats}{request} axes={axes}",
         {"x": x, "w": w, "b": b, **operands}, {"y": y, "mean": mean, "inv_deviation": inverse, **results})
    if request:
        return
    shape = [int(extent) for extent in parameter.split("x")]
    scale = w.reshape(shape) * inverse
    call(f"norm_affine x=f32:{extents(x)} w=f32:{parameter} b=f32:{parameter} axes={axes}", {"x": x, "w": w, "b": b},
         {"scale": scale, "shift": b.reshape(shape) - mean * scale})


EPSILON = float(torch.tensor(1e-5, dtype=torch.float32))

x, w, b = draw(3, 4, 5), draw(4, 5), draw(4, 5)
norm("", x, w, b, F.layer_norm(x, (4, 5), w, b, EPSILON), [1, 2], {}, {}, "1x4x5")
x, w, b = draw(2, 3, 2, 4), draw(3), draw(3)
norm("", x, w, b, F.instance_norm(x, None, None, w, b, True, 0.1, EPSILON), [2, 3], {}, {}, "1x3x1x1")
x, w, b = draw(2, 6, 4), draw(6), draw(6)
grouped = F.group_norm(x, 2, w, b, EPSILON)
norm("", x.reshape(2, 2, 3, 4), w, b, grouped, [2, 3], {}, {}, "1x2x3x1")
x, w, b, mean, variance = draw(3, 4, 2, 2), draw(4), draw(4), draw(4), positive(4)
residual = draw(3, 4, 2, 2)
new_mean, new_variance = mean.clone(), variance.clone()
y = F.relu(F.batch_norm(x, new_mean, new_variance, w, b, True, 0.125, EPSILON) + residual)
norm(" running_mean=f32:1x4x1x1 running_variance=f32:1x4x1x1 epilogue=add+relu", x, w, b, y, [0, 2, 3],
     {"running_mean": mean, "running_variance": variance, "residual": residual},
     {"running_mean": new_mean, "running_variance": new_variance}, "1x4x1x1")
call("norm_inference x=f32:3x4x2x2 w=f32:1x4x1x1 b=f32:1x4x1x1 axes=0,2,3",
     {"x": x, "w": w, "b": b, "running_mean": mean, "running_variance": variance},
     {"y": F.batch_norm(x, mean, variance, w, b, False, 0.1, EPSILON)})


def exact_rows(shape, dims, centred=True):
    """Statistics must be exact in f32 to be operands: each row is -1 and 1 in turns, scaled, so epsilon is left out.
    Returns x and the scale of each row."""
    x = draw(*shape)
    rows = flattened(x, dims)
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(rows.shape[-1] // 2)
    kept = [extent for d, extent in enumerate(shape) if d not in dims]
    centre, scale = draw(*kept), 2.0 ** torch.randint(-1, 3, kept).to(torch.float64)
    if not centred:
        centre = torch.zeros_like(centre)
    order = [d for d in range(len(shape)) if d not in dims] + list(dims)
    values = (centre.unsqueeze(-1) + scale.unsqueeze(-1) * signs).reshape([shape[d] for d in order])
    return values.permute([order.index(d) for d in range(len(shape))]).clone().requires_grad_(), scale


def gradients(wide, shape, dims, parameter, forward, relu=False, residual=False, activation=None):
    x, scale = exact_rows(shape, dims)
    w, b, dy = draw(*parameter), draw(*parameter), draw(*shape)
    other = draw(*shape).requires_grad_()
    w.requires_grad_()
    b.requires_grad_()
    y = forward(x, w, b) + (other if residual else 0)
    if relu:
        y = F.relu(y)
    if activation:
        y = FUNCTIONS[activation](y)
    y.backward(dy)
    axes = ",".join(map(str, dims))
    operands = {"dy": dy, "x": x, "w": w, "mean": x.mean(dims), "inv_deviation": (1 / scale)}
    request = f"norm_backward dy=f32:{extents(x)} w=f32:{wide} dw=f32:{wide} db=f32:{wide}"
    if relu:
        request += f" y=f32:{extents(x)}"
        operands["y"] = torch.sign(y)  # what matters of it
    results = {"dx": x.grad, "dw": w.grad, "db": b.grad}
    if residual:
        request += f" dresidual=f32:{extents(x)}"
        results["dresidual"] = other.grad
    if activation:
        request += f" b=f32:{wide} residual=f32:{extents(x)} activation={activation}"
        operands.update({"b": b, "residual": other})
    call(f"{request} axes={axes}", operands, results)


gradients("1x4x2", (3, 4, 2), [1, 2], (4, 2), lambda x, w, b: F.layer_norm(x, (4, 2), w, b, 0.0))
gradients("1x3x1x1", (2, 3, 2, 2), [2, 3], (3,), lambda x, w, b: F.instance_norm(x, None, None, w, b, True, 0.1, 0.0))
gradients("1x3x1x1", (4, 3, 2, 1), [0, 2, 3], (3,), lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, 0.0))
gradients("1x3x1x1", (4, 3, 2, 1), [0, 2, 3], (3,),
          lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, 0.0), relu=True)


def local_response(shape, size):
    """PyTorch's even windows are mirrored: so is x, then."""
    x, dy = draw(*shape).requires_grad_(), draw(*shape)
    mirrored = x.flip(1) if size % 2 == 0 else x
    y = F.local_response_norm(mirrored, size, 2.0, 0.75, 1.0)
    y = y.flip(1) if size % 2 == 0 else y
    y.backward(dy)
    call(f"local_norm_forward x=f32:{extents(x)} size={size}", {"x": x.detach()}, {"y": y.detach()})
    call(f"local_norm_backward x=f32:{extents(x)} size={size}", {"x": x.detach(), "dy": dy}, {"dx": x.grad})


local_response((2, 7, 2, 3), 5)
local_response((2, 6, 4), 3)
local_response((3, 5, 2), 4)
local_response((1, 3, 2, 2), 9)


# ---- what frameworks have by other names, or not at all: automatic differentiation of the formulas

gradients("1x2x3x1", (2, 2, 3, 4), [2, 3], (6,),
          lambda x, w, b: F.group_norm(x.reshape(2, 6, 4), 2, w, b, 0.0).reshape(2, 2, 3, 4))
gradients("1x3x1x1", (4, 3, 2, 1), [0, 2, 3], (3,),
          lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, 0.0), relu=True, residual=True)
gradients("1x3x2x2", (4, 3, 2, 2), [0], (3, 2, 2),
          lambda x, w, b: F.batch_norm(x.reshape(4, 12, 1), None, None, w.reshape(12), b.reshape(12), True, 0.1,
                                       0.0).reshape(4, 3, 2, 2))
gradients("1x2x1x1x1", (2, 2, 2, 3, 2), [0, 2, 3, 4], (2,),
          lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, 0.0))


def root_mean_square(shape, dims):
    (x, scale), w, dy = exact_rows(shape, dims, centred=False), draw(*shape[dims[0]:]).requires_grad_(), draw(*shape)
    y = x / x.pow(2).mean(dims, keepdim=True).sqrt() * w
    y.backward(dy)
    wide = "x".join("1" if d not in dims else str(extent) for d, extent in enumerate(shape))
    axes = ",".join(map(str, dims))
    call(f"norm_backward dy=f32:{extents(x)} w=f32:{wide} dw=f32:{wide} mode=rms axes={axes}",
         {"dy": dy, "x": x, "w": w, "inv_deviation": 1 / scale}, {"dx": x.grad, "dw": w.grad})


root_mean_square((3, 8), [1])
root_mean_square((2, 3, 4), [1, 2])


def divisive(shape, size):
    """x / (1 + 2 mean of squared differences in the window)^0.75, the divisor the same at the border."""
    x, means, dy = draw(*shape).requires_grad_(), draw(*shape).requires_grad_(), draw(*shape)
    pool = {3: F.avg_pool1d, 4: F.avg_pool2d, 5: F.avg_pool3d}[len(shape)]
    y = x * (1 + 2 * pool((x - means) ** 2, size, 1, size // 2)) ** -0.75
    y.backward(dy)
    axes = ",".join(str(d) for d in range(2, len(shape)))
    spec = f"x=f32:{extents(x)} means=f32:{extents(x)}"
    call(f"local_norm_forward {spec} axes={axes} size={size}", {"x": x, "means": means}, {"y": y})
    call(f"local_norm_backward {spec} dmeans=f32:{extents(x)} axes={axes} size={size}",
         {"x": x, "means": means, "dy": dy}, {"dx": x.grad, "dmeans": means.grad})


divisive((2, 2, 7), 3)
divisive((1, 2, 4, 5), 3)
divisive((1, 1, 5, 4, 5), 3)


# ---- behind every activation

for mode, function in FUNCTIONS.items():
    x, w, b, residual = draw(3, 2, 2), draw(2), draw(2), draw(3, 2, 2)
    y = function(F.batch_norm(x, None, None, w, b, True, 0.1, EPSILON) + residual)
    norm(f" activation={mode} epilogue=add", x, w, b, y, [0, 2], {"residual": residual}, {}, "1x2x1")
    if mode != "identity":
        gradients("1x2x1", (4, 2, 1), [0, 2], (2,), lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, 0.0),
                  residual=True, activation=mode)
x, w, b, mean, variance = draw(3, 2, 2), draw(2), draw(2), draw(2), positive(2)
call("norm_inference x=f32:3x2x2 w=f32:1x2x1 b=f32:1x2x1 axes=0,2 activation=mish",
     {"x": x, "w": w, "b": b, "running_mean": mean, "running_variance": variance},
     {"y": F.mish(F.batch_norm(x, mean, variance, w, b, False, 0.1, EPSILON))})
