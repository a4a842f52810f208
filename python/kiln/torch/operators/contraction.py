"""Operators of convolutions, their gradients and matrix products.

Each applies activation(scale * result + bias + residual) to its result. Gradients are known without a scale, and with
no activation or relu; those of bilinear operators have gradients themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...errors import Unsupported
from .._launch import launch
from ._activations import epilogue
from ._define import define
from ._outputs import new
from .elementwise import activation_backward

_WINDOW = "int[] pad, int[] stride, int[] dilation, int groups"
_EPILOGUE = "str activation, float[] numbers"


def _words(pad: Any, stride: Any, dilation: Any, groups: int) -> dict[str, Any]:
    """The words of a window that are not as usual: each costs a call its text."""
    words: dict[str, Any] = {} if groups == 1 else {"groups": groups}
    for name, numbers, usual in (("pad", pad, 0), ("stride", stride, 1), ("dilation", dilation, 1)):
        for number in numbers:
            if number != usual:
                words[name] = tuple(numbers)
                break
    return words


def conv_extents(x: Sequence[Any], w: Sequence[Any], pad: Any, stride: Any, dilation: Any) -> list[Any]:
    """Extents of y = conv_forward(x, w)."""
    axes = len(x) - 2
    return [x[0], w[0]] + [
        (x[i + 2] + pad[i] + pad[i + axes] - dilation[i] * (w[i + 2] - 1) - 1) // stride[i] + 1 for i in range(axes)
    ]


def _require_gradient(scale: Any, activation: str) -> None:
    if scale is not None or activation not in ("", "relu"):
        raise Unsupported(
            f"there is no gradient through {'a scale' if scale is not None else activation} in an epilogue",
            "call it by itself, or use torch.no_grad()",
        )


def _before_relu(dy: Any, y: Any) -> Any:
    return dy if y is None else activation_backward(dy, y, "relu", [])


def _conv_outputs(
    x: Any, w: Any, bias: Any, scale: Any, residual: Any, pad: Any, stride: Any, dilation: Any, *_: Any
) -> torch.Tensor:
    return new(x, conv_extents(x.shape, w.shape, pad, stride, dilation), w)


def _write_conv(
    y: Any, x: Any, w: Any, bias: Any, scale: Any, residual: Any, pad: Any, stride: Any, dilation: Any, groups: Any,
    activation: Any, numbers: Any,
) -> None:  # fmt: skip
    chain = epilogue(bias, scale, residual, activation, numbers)
    launch("conv_forward", x=x, w=w, y=y, **_words(pad, stride, dilation, groups), **chain)


def _save_contraction(y: Any, first: Any, w: Any, bias: Any, scale: Any, *rest: Any) -> Sequence[Any]:
    """Tensors to save of a convolution, forward or by data: its factors, y where relu ended it, and its window."""
    activation = rest[-2]
    _require_gradient(scale, activation)
    return first, w, y if activation == "relu" else None, rest[-6:-2]


def _gradient_of_conv(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    x, w, y, window = saved
    dy = _before_relu(dy, y)
    dx = conv_backward_data(dy, w, None, None, None, x.shape, *window, "", []) if needs[0] else None
    dw = conv_backward_filter(x, dy, w, *window) if needs[1] else None
    db = conv_backward_bias(dy) if needs[2] else None
    return dx, dw, db, None, dy if needs[4] else None, None, None, None, None, None, None


conv = define(
    f"conv(Tensor x, Tensor w, Tensor? bias, Tensor? scale, Tensor? residual, {_WINDOW}, {_EPILOGUE}) -> Tensor",
    _conv_outputs,
    _write_conv,
    saved=_save_contraction,
    gradient=_gradient_of_conv,
    autocast="lower",
)


def _write_conv_backward_data(
    dx: Any, dy: Any, w: Any, bias: Any, scale: Any, residual: Any, extents: Any, pad: Any, stride: Any, dilation: Any,
    groups: Any, activation: Any, numbers: Any,
) -> None:  # fmt: skip
    chain = epilogue(bias, scale, residual, activation, numbers)
    launch("conv_backward_data", dy=dy, w=w, dx=dx, **_words(pad, stride, dilation, groups), **chain)


def _gradient_of_conv_backward_data(saved: Sequence[Any], needs: Sequence[bool], g: torch.Tensor) -> Sequence[Any]:
    dy, w, dx, window = saved
    g = _before_relu(g, dx)
    ddy = conv(g, w, None, None, None, *window, "", []) if needs[0] else None
    dw = conv_backward_filter(g, dy, w, *window) if needs[1] else None
    db = conv_backward_bias(g) if needs[2] else None
    return ddy, dw, db, None, g if needs[4] else None, None, None, None, None, None, None, None


conv_backward_data = define(
    "conv_backward_data(Tensor dy, Tensor w, Tensor? bias, Tensor? scale, Tensor? residual, SymInt[] extents, "
    f"{_WINDOW}, {_EPILOGUE}) -> Tensor",
    lambda dy, w, bias, scale, residual, extents, *_: new(dy, extents, w),
    _write_conv_backward_data,
    saved=_save_contraction,
    gradient=_gradient_of_conv_backward_data,
    autocast="lower",
)


def _write_conv_backward_filter(
    dw: Any, x: Any, dy: Any, like: Any, pad: Any, stride: Any, dilation: Any, groups: Any
) -> None:
    launch("conv_backward_filter", x=x, dy=dy, dw=dw, **_words(pad, stride, dilation, groups))


def _gradient_of_conv_backward_filter(saved: Sequence[Any], needs: Sequence[bool], g: torch.Tensor) -> Sequence[Any]:
    x, dy, window = saved
    dx = conv_backward_data(dy, g, None, None, None, x.shape, *window, "", []) if needs[0] else None
    ddy = conv(x, g, None, None, None, *window, "", []) if needs[1] else None
    return dx, ddy, None, None, None, None, None


# `like` gives the extents, type and layout of dw.
conv_backward_filter = define(
    f"conv_backward_filter(Tensor x, Tensor dy, Tensor like, {_WINDOW}) -> Tensor",
    lambda x, dy, like, *_: torch.empty_like(like),
    _write_conv_backward_filter,
    saved=lambda dw, x, dy, like, *window: (x, dy, window),
    gradient=_gradient_of_conv_backward_filter,
)

conv_backward_bias = define(
    "conv_backward_bias(Tensor dy) -> Tensor",
    lambda dy: dy.new_empty((dy.shape[1],)),
    lambda db, dy: launch("conv_backward_bias", dy=dy, db=db),
    saved=lambda db, dy: (dy.shape,),
    gradient=lambda saved, needs, g: (g.reshape(-1, *[1] * (len(saved[0]) - 2)).expand(saved[0]),),
)


def _gemm_outputs(a: Any, b: Any, *_: Any) -> torch.Tensor:
    left, right = a.shape, b.shape
    batch = [n if m == 1 else m for m, n in zip(left[:-2], right[:-2], strict=True)]
    return a.new_empty((*batch, left[-2], right[-1]))


def _write_gemm(
    c: Any, a: Any, b: Any, bias: Any, scale: Any, residual: Any, alpha: Any, beta: Any, activation: Any, numbers: Any
) -> None:
    chain = epilogue(bias, scale, residual, activation, numbers, beta)
    launch("gemm", a=a, b=b, c=c, alpha=alpha, **chain)


def _save_gemm(
    c: Any, a: Any, b: Any, bias: Any, scale: Any, residual: Any, alpha: Any, beta: Any, activation: Any, numbers: Any
) -> Sequence[Any]:
    _require_gradient(scale, activation)
    return a, b, c if activation == "relu" else None, alpha, beta


def _product(like: torch.Tensor, left: torch.Tensor, right: torch.Tensor, alpha: float) -> torch.Tensor:
    """alpha * left @ right in the layout of `like`, summed over the batches along which `like` repeats."""
    if like.stride(-2) == 1 and like.stride(-1) != 1:
        return _product(like.mT, right.mT, left.mT, alpha).mT
    result = gemm(left, right, None, None, None, alpha, 1.0, "", [])
    repeated = [i for i, (m, n) in enumerate(zip(like.shape, result.shape, strict=True)) if m != n]
    return result.sum(repeated, keepdim=True) if repeated else result


def _gradient_of_gemm(saved: Sequence[Any], needs: Sequence[bool], dc: torch.Tensor) -> Sequence[Any]:
    a, b, c, alpha, beta = saved
    dc = _before_relu(dc, c)
    da = _product(a, dc, b.mT, alpha) if needs[0] else None
    db = _product(b, a.mT, dc, alpha) if needs[1] else None
    dbias = conv_backward_bias(dc.reshape(dc.shape[:-1].numel(), dc.shape[-1])) if needs[2] else None
    dresidual = (dc if beta == 1 else dc * beta) if needs[4] else None
    return da, db, dbias, None, dresidual, None, None, None, None


# c = activation(alpha * scale * a @ b + bias + beta * residual)
gemm = define(
    "gemm(Tensor a, Tensor b, Tensor? bias, Tensor? scale, Tensor? residual, float alpha, float beta, "
    f"{_EPILOGUE}) -> Tensor",
    _gemm_outputs,
    _write_gemm,
    saved=_save_gemm,
    gradient=_gradient_of_gemm,
    autocast="lower",
)
