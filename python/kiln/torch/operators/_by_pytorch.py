"""Kiln's operators as PyTorch computes them: in transforms and tracers, and for gradients that Kiln does not have.

Each takes the arguments of the operator of its name. PyTorch differentiates them in any mode, and any number of times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from ._attention_by_pytorch import attention as attention
from ._attention_by_pytorch import attention_backward as attention_backward
from ._recurrent_by_pytorch import recurrent as recurrent
from ._recurrent_by_pytorch import recurrent_backward as recurrent_backward


def _function(name: str, axes: int) -> Any:
    return getattr(F, f"{name}{axes}d")


def activation(v: torch.Tensor, name: str, numbers: Sequence[float]) -> torch.Tensor:
    if name == "gelu_tanh":
        return F.gelu(v, approximate="tanh")
    home = torch if name in ("sigmoid", "tanh") else F
    return getattr(home, name)(v, *numbers) if name else v  # type: ignore[no-any-return]


def _ended(
    y: torch.Tensor, bias: Any, scale: Any, residual: Any, name: str, numbers: Any, axis: int, beta: float = 1.0
) -> torch.Tensor:
    """activation(scale * y + bias + beta * residual), with a scale and a bias for each place of `axis`."""
    extents = [-1 if i == axis % y.dim() else 1 for i in range(y.dim())]
    y = y if scale is None else y * scale.reshape(extents)
    y = y if bias is None else y + bias.reshape(extents)
    y = y if residual is None else y + (residual if beta == 1 else beta * residual)
    return activation(y, name, numbers)


def _padded(x: torch.Tensor, pad: Sequence[int]) -> torch.Tensor:
    """`pad` has the numbers in front of all axes, then those behind."""
    axes = len(pad) // 2
    sides = [each for i in reversed(range(axes)) for each in (pad[i], pad[i + axes])]
    return F.pad(x, sides) if any(sides) else x


def conv(
    x: Any, w: Any, bias: Any, scale: Any, residual: Any, pad: Any, stride: Any, dilation: Any, groups: Any,
    name: Any, numbers: Any,
) -> torch.Tensor:  # fmt: skip
    call = _function("conv", x.dim() - 2)
    y = call(_padded(x, pad), w, None, tuple(stride), 0, tuple(dilation), groups)
    return _ended(y, bias, scale, residual, name, numbers, 1)


def conv_backward_data(
    dy: Any, w: Any, bias: Any, scale: Any, residual: Any, extents: Any, pad: Any, stride: Any, dilation: Any,
    groups: Any, name: Any, numbers: Any,
) -> torch.Tensor:  # fmt: skip
    axes = dy.dim() - 2
    whole = _function("conv_transpose", axes)(dy, w, None, tuple(stride), 0, 0, groups, tuple(dilation))
    behind = [extents[i + 2] + pad[i] - whole.shape[i + 2] for i in range(axes)]
    x = _padded(whole, [*(-each for each in pad[:axes]), *behind])
    return _ended(x, bias, scale, residual, name, numbers, 1)


def conv_backward_filter(x: Any, dy: Any, like: Any, pad: Any, stride: Any, dilation: Any, groups: Any) -> torch.Tensor:
    axes = x.dim() - 2
    words = (list(stride), [0] * axes, list(dilation), False, [0] * axes, groups, [False, True, False])
    result: torch.Tensor = torch.ops.aten.convolution_backward(dy, _padded(x, pad), like, None, *words)[1]
    return result


def conv_backward_bias(dy: torch.Tensor) -> torch.Tensor:
    return dy.sum([axis for axis in range(dy.dim()) if axis != 1])


def gemm(
    a: Any, b: Any, bias: Any, scale: Any, residual: Any, alpha: Any, beta: Any, name: Any, numbers: Any
) -> torch.Tensor:
    c = torch.matmul(a, b)
    return _ended(c if alpha == 1 else alpha * c, bias, scale, residual, name, numbers, -1, beta)


def vjp(function: Any, arguments: Sequence[Any], needs: Sequence[bool], *gradients: Any) -> list[Any]:
    """Gradients of those arguments that need them, which have gradients themselves."""
    with torch.enable_grad():
        # Aliases: what an argument was made of has no part in the gradient by another one.
        given = [each.view_as(each) if need else each for each, need in zip(arguments, needs, strict=False)]
        given += arguments[len(given) :]
        inputs = [each for each, need in zip(given, needs, strict=False) if need]
        for each in inputs:
            if not each.requires_grad:
                each.requires_grad_()
        results = function(*given)
    pairs = [
        (result, gradient)
        for result, gradient in zip(results if isinstance(results, tuple) else (results,), gradients, strict=True)
        if gradient is not None and result.requires_grad
    ]
    if not pairs or not inputs:
        return [None for _ in arguments]
    made = iter(
        torch.autograd.grad(
            [each for each, _ in pairs], inputs, [each for _, each in pairs],
            create_graph=torch.is_grad_enabled(), allow_unused=True,
        )
    )  # fmt: skip
    return [next(made) if need else None for need in needs]


def activation_backward(dy: Any, saved: Any, name: str, numbers: Any) -> torch.Tensor:
    if name == "relu":  # of these `saved` is the result
        return torch.where(saved > 0, dy, torch.zeros_like(dy))
    if name == "sigmoid":
        return dy * saved * (1 - saved)  # type: ignore[no-any-return]
    if name == "tanh":
        return dy * (1 - saved * saved)  # type: ignore[no-any-return]
    with torch.enable_grad():  # which the gradients of this need
        return vjp(lambda x: activation(x, name, numbers), (saved,), (True,), dy)[0]  # type: ignore[no-any-return]


def dropout(x: torch.Tensor, seed: torch.Tensor, p: float) -> torch.Tensor:
    return F.dropout(x, p)


def scaled(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x * scale


def norm(
    x: Any, w: Any, b: Any, residual: Any, running_mean: Any, running_variance: Any, axes: Any, rms: bool,
    epsilon: float, momentum: float, relu: bool,
) -> Any:  # fmt: skip
    f = x.float()
    mean = f.mean(axes, keepdim=True)
    centred = f if rms else f - mean
    variance = centred.square().mean(axes, keepdim=True)
    inverse = (variance + epsilon).rsqrt()
    y = _shifted(centred * inverse, w, b, residual, relu).to(x.dtype)
    with torch.no_grad():
        count = math.prod(x.shape[axis] for axis in axes)
        for running, value in ((running_mean, mean), (running_variance, variance * (count / max(count - 1, 1)))):
            if running is not None:
                running.mul_(1 - momentum).add_(value.detach(), alpha=momentum)
    return y, (mean.new_empty((0,)) if rms else mean), inverse


def _shifted(y: Any, w: Any, b: Any, residual: Any, relu: bool) -> torch.Tensor:
    y = y if w is None else y * w
    y = y if b is None else y + b
    y = y if residual is None else y + residual
    return torch.relu(y) if relu else y


def norm_backward(
    dy: Any, x: Any, w: Any, mean: Any, inverse: Any, y: Any, axes: Any, rms: bool, dw: bool, db: bool, dresidual: bool
) -> Any:
    nothing = x.new_empty((0,))
    dy = dy if y is None else torch.where(y > 0, dy, torch.zeros_like(dy))
    f = x.float()
    unit = (f if mean is None else f - mean) * inverse
    g = dy.float()
    gw = g if w is None else g * w
    dx = gw - unit * (gw * unit).mean(axes, keepdim=True)
    dx = (dx if rms else dx - gw.mean(axes, keepdim=True)) * inverse

    def of_parameter(value: torch.Tensor) -> torch.Tensor:
        along = [axis for axis, extent in enumerate(w.shape) if extent == 1 and value.shape[axis] != 1]
        return (value.sum(along, keepdim=True) if along else value).to(w.dtype)

    return (
        dx.to(x.dtype),
        of_parameter(g * unit) if dw else nothing,
        of_parameter(g) if db else nothing,
        dy if dresidual else nothing,
    )


def of_statistics(x: Any, mean: Any, inverse: Any, axes: Any, rms: bool, dmean: Any, dinverse: Any) -> Any:
    """The gradient of x by the statistics that a normalisation makes of it."""
    f = x.float()
    count = math.prod(x.shape[axis] for axis in axes)
    dx = torch.zeros_like(f)
    if dmean is not None and not rms:
        dx = dx + dmean / count
    if dinverse is not None:
        dx = dx - dinverse * inverse**3 * (f if rms else f - mean) / count
    return dx.to(x.dtype)


def norm_inference(
    x: Any, mean: Any, variance: Any, w: Any, b: Any, residual: Any, axes: Any, epsilon: Any, name: Any, numbers: Any
) -> torch.Tensor:
    y = _shifted((x.float() - mean) * (variance + epsilon).rsqrt(), w, b, residual, False)
    return activation(y.to(x.dtype), name, numbers)


def local_norm(x: Any, means: Any, axes: Any, size: int, alpha: float, beta: float, k: float) -> torch.Tensor:
    sums = (x if means is None else x - means).float().square()
    for axis in axes:
        rows = F.pad(sums.movedim(axis, -1), ((size - 1) // 2, size // 2))
        sums = rows.unfold(-1, size, 1).sum(-1).movedim(-1, axis)
    return (x * (k + alpha / size ** len(axes) * sums) ** -beta).to(x.dtype)  # type: ignore[no-any-return]


def local_norm_backward(dy: Any, x: Any, means: Any, *window: Any) -> Any:
    with torch.enable_grad():
        dx, dmeans = vjp(lambda x, means: local_norm(x, means, *window), (x, means), (True, means is not None), dy)
    return dx, x.new_empty((0,)) if means is None else dmeans


def _pooled(x: Any, extents: Any, window: Any, pad: Any, stride: Any, dilation: Any) -> Any:
    """The window as PyTorch's functions take it: padding of one side, and whether the last one may be incomplete."""
    axes = x.dim() - 2
    floor = [
        (x.shape[i + 2] + 2 * pad[i] - dilation[i] * (window[i] - 1) - 1) // stride[i] + 1 for i in range(axes)
    ]
    return tuple(window), tuple(stride), tuple(pad[:axes]), any(a != b for a, b in zip(floor, extents[2:], strict=True))


def pool(x: Any, mode: str, extents: Any, window: Any, pad: Any, stride: Any, dilation: Any) -> torch.Tensor:
    if mode == "max":
        return max_pool(x, extents, window, pad, stride, dilation)[0]  # type: ignore[no-any-return]
    size, step, padding, ceil = _pooled(x, extents, window, pad, stride, dilation)
    call = _function("avg_pool", x.dim() - 2)
    return call(x, size, step, padding, ceil, mode == "avg_padded")  # type: ignore[no-any-return]


def max_pool(x: Any, extents: Any, window: Any, pad: Any, stride: Any, dilation: Any) -> Any:
    size, step, padding, ceil = _pooled(x, extents, window, pad, stride, dilation)
    y, indices = _function("max_pool", x.dim() - 2)(x, size, step, padding, tuple(dilation), ceil, True)
    return y, indices.to(torch.int32)


def _gradient_of_linear(function: Any, extents: Any, dy: torch.Tensor) -> torch.Tensor:
    """The gradient by an input of `extents`, whose values do not matter."""
    with torch.enable_grad():
        zeros = dy.new_zeros(tuple(extents)).requires_grad_()
        return vjp(function, (zeros,), (True,), dy)[0]  # type: ignore[no-any-return]


def pool_backward(dy: Any, x: Any, indices: Any, mode: str, extents: Any, *window: Any) -> torch.Tensor:
    if mode == "max":
        places = max_pool(x, dy.shape, *window)[1] if indices is None else indices
        flat = torch.zeros_like(dy.flatten(2)[..., :1]).expand(*dy.shape[:2], math.prod(extents[2:]))
        return flat.scatter_add(2, places.flatten(2).long(), dy.flatten(2)).reshape(tuple(extents))
    return _gradient_of_linear(lambda x: pool(x, mode, dy.shape, *window), extents, dy)


def unpool_backward(dy: Any, indices: Any, *window: Any) -> torch.Tensor:
    return dy.flatten(2).gather(2, indices.flatten(2).long()).view(indices.shape)  # type: ignore[no-any-return]


def softmax(x: torch.Tensor, axis: int, log: bool) -> torch.Tensor:
    return torch.log_softmax(x, axis) if log else torch.softmax(x, axis)


def softmax_backward(y: torch.Tensor, dy: torch.Tensor, axis: int, log: bool) -> torch.Tensor:
    if log:
        return dy - y.exp() * dy.sum(axis, keepdim=True)
    return y * (dy - (dy * y).sum(axis, keepdim=True))


def cross_entropy(x: Any, targets: Any, weights: Any, reduction: str, ignore: int, smoothing: float) -> torch.Tensor:
    of_classes = None if weights is None else weights.to(x.dtype)
    return F.cross_entropy(
        x, targets.long(), of_classes, ignore_index=ignore, reduction=reduction, label_smoothing=smoothing
    )


def cross_entropy_backward(dloss: Any, x: Any, targets: Any, weights: Any, *words: Any) -> torch.Tensor:
    with torch.enable_grad():
        return vjp(lambda x: cross_entropy(x, targets, weights, *words), (x,), (True,), dloss)[0]  # type: ignore[no-any-return]


def nll_loss(x: Any, targets: Any, weights: Any, reduction: str, ignore: int) -> torch.Tensor:
    of_classes = None if weights is None else weights.to(x.dtype)
    return F.nll_loss(x, targets.long(), of_classes, ignore_index=ignore, reduction=reduction)


def nll_loss_backward(dloss: Any, x: Any, targets: Any, weights: Any, *words: Any) -> torch.Tensor:
    with torch.enable_grad():
        return vjp(lambda x: nll_loss(x, targets, weights, *words), (x,), (True,), dloss)[0]  # type: ignore[no-any-return]


def ctc_loss(x: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, zero: bool, save: bool) -> Any:
    """PyTorch keeps prefixes to itself: they are NaN, and its gradient does not read them."""
    loss = torch.ctc_loss(x.transpose(0, 1), targets.long(), input_lengths, target_lengths, blank, 0, zero)
    shape = (*x.shape[:2], 2 * targets.shape[1] + 1) if save else (0,)
    return loss, torch.full(shape, math.nan, device=x.device)


def ctc_loss_backward(dloss: Any, prefixes: Any, x: Any, *given: Any) -> torch.Tensor:
    with torch.enable_grad():
        return vjp(lambda x: ctc_loss(x, *given, False)[0], (x,), (True,), dloss)[0]  # type: ignore[no-any-return]


def resize(x: Any, extents: Any, mode: str, aligned: bool, scales: Any) -> torch.Tensor:
    words: dict[str, Any] = {"mode": mode} if mode.startswith("nearest") else {"mode": mode, "align_corners": aligned}
    if not any(scales):
        return F.interpolate(x, tuple(extents), **words)
    return F.interpolate(x, scale_factor=tuple(scales), recompute_scale_factor=False, **words)


def resize_backward(dy: Any, extents: Any, *words: Any) -> torch.Tensor:
    return _gradient_of_linear(lambda x: resize(x, dy.shape[2:], *words), extents, dy)


def im2col(x: Any, extents: Any, window: Any, pad: Any, stride: Any, dilation: Any) -> torch.Tensor:
    y = F.unfold(x, tuple(window), tuple(dilation), tuple(pad[:2]), tuple(stride))
    return y.reshape(tuple(extents))


def col2im(x: Any, extents: Any, window: Any, pad: Any, stride: Any, dilation: Any) -> torch.Tensor:
    return F.fold(x.flatten(2), tuple(extents[2:]), tuple(window), tuple(dilation), tuple(pad[:2]), tuple(stride))


_SAMPLED = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


def grid_sample(x: Any, grid: Any, mode: str, padding: str, ends: str) -> torch.Tensor:
    return F.grid_sample(x, grid, _SAMPLED[mode], padding, ends == "centres")


def grid_sample_backward_data(dy: Any, grid: Any, extents: Any, *words: Any) -> torch.Tensor:
    return _gradient_of_linear(lambda x: grid_sample(x, grid, *words), extents, dy)


def grid_sample_backward_grid(dy: Any, x: Any, grid: Any, *words: Any) -> torch.Tensor:
    with torch.enable_grad():
        return vjp(lambda grid: grid_sample(x, grid, *words), (grid,), (True,), dy)[0]  # type: ignore[no-any-return]


def affine_grid(theta: Any, extents: Any, ends: str) -> torch.Tensor:
    return F.affine_grid(theta, [theta.shape[0], 1, *extents], ends == "centres")


def affine_grid_backward(dgrid: Any, ends: str) -> torch.Tensor:
    extents, axes = dgrid.shape[1:-1], dgrid.shape[-1]
    return _gradient_of_linear(lambda theta: affine_grid(theta, extents, ends), (dgrid.shape[0], axes, axes + 1), dgrid)


def embedding(weight: Any, indices: Any, padding: int, by_frequency: bool) -> torch.Tensor:
    return torch.embedding(weight, indices, padding, by_frequency)


def embedding_backward(dy: torch.Tensor, indices: Any, padding: int, rows: int) -> torch.Tensor:
    return torch.ops.aten.embedding_dense_backward(dy, indices, rows, padding, False)  # type: ignore[no-any-return]


def take_rows(x: torch.Tensor, places: Any, back: Any) -> torch.Tensor:
    return torch.cat([x, x.new_zeros((1, x.shape[1]))])[places.long()]


def pad(x: Any, pad: Any, mode: str, value: float) -> torch.Tensor:
    return F.pad(x, tuple(pad), mode, **({"value": value} if mode == "constant" else {}))


def pixel_shuffle(x: torch.Tensor, factor: int) -> torch.Tensor:
    return F.pixel_shuffle(x, factor)


def pixel_unshuffle(x: torch.Tensor, factor: int) -> torch.Tensor:
    return F.pixel_unshuffle(x, factor)


def local_conv(
    x: Any, w: Any, bias: Any, pad: Any, stride: Any, dilation: Any, groups: int, grid: Any
) -> torch.Tensor:
    axes = x.dim() - 2
    patches = _padded(x, pad)
    for i in range(axes):  # each axis gets one of the window, behind all others
        span = dilation[i] * (w.shape[i + 3] - 1) + 1
        patches = patches.unfold(i + 2, span, stride[i])[..., :: dilation[i]]
    outputs = patches.shape[2 : 2 + axes]
    region = torch.zeros(tuple(outputs), dtype=torch.long, device=x.device)
    for i, (regions, extent) in enumerate(zip(grid, outputs, strict=True)):
        along = torch.arange(extent, device=x.device) * regions // extent
        region = region * regions + along.view([-1 if j == i else 1 for j in range(axes)])
    filters = w[region].flatten(0, axes - 1).flatten(3)  # outputs, K, C / groups, window
    outputs_first = patches.flatten(2 + axes).flatten(2, 1 + axes)  # N, C, outputs, window
    per_group = w.shape[1] // groups
    parts = [
        torch.einsum("ncow,okcw->nko", mine, own)
        for mine, own in zip(
            outputs_first.chunk(groups, 1), filters.split(per_group, 1), strict=True
        )
    ]
    y = torch.cat(parts, 1).view(x.shape[0], w.shape[1], *outputs)
    return _ended(y, bias, None, None, "", [], 1)


def local_conv_backward_data(dy: Any, w: Any, extents: Any, *window: Any) -> torch.Tensor:
    with torch.enable_grad():
        zeros = dy.new_zeros(tuple(extents)).requires_grad_()
        return vjp(lambda x: local_conv(x, w, None, *window), (zeros,), (True,), dy)[0]  # type: ignore[no-any-return]


def local_conv_backward_filter(x: Any, dy: Any, like: Any, *window: Any) -> torch.Tensor:
    with torch.enable_grad():
        zeros = torch.zeros_like(like).requires_grad_()
        return vjp(lambda w: local_conv(x, w, None, *window), (zeros,), (True,), dy)[0]  # type: ignore[no-any-return]
