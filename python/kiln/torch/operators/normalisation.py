"""Operators of normalisations. Statistics are float32, and have x's extents with 1 along the axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._launch import launch
from ._activations import epilogue
from ._by_pytorch import of_statistics
from ._define import define
from ._outputs import nothing
from .contraction import _before_relu, _require_gradient
from .elementwise import scaled


def _statistic(x: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    along = {axis % x.dim() for axis in axes}
    extents = [1 if axis in along else extent for axis, extent in enumerate(x.shape)]
    return x.new_empty(extents, dtype=torch.float32)


def _norm_outputs(x: Any, w: Any, b: Any, residual: Any, mean: Any, variance: Any, axes: Any, rms: bool, *_: Any) -> Any:
    return (
        torch.empty_like(x),
        nothing(_statistic(x, axes)) if rms else _statistic(x, axes),
        _statistic(x, axes),
    )


def _write_norm(
    results: Any, x: Any, w: Any, b: Any, residual: Any, mean: Any, variance: Any, axes: Any, rms: Any, epsilon: Any,
    momentum: Any, relu: Any,
) -> None:  # fmt: skip
    y, saved_mean, inv_deviation = results
    launch(
        "norm_forward",
        x=x,
        w=w,
        b=b,
        y=y,
        mean=None if rms else saved_mean,
        inv_deviation=inv_deviation,
        running_mean=mean,
        running_variance=variance,
        axes=tuple(axes),
        mode="rms" if rms else "standard",
        epsilon=epsilon,
        momentum=momentum,
        **_norm_epilogue(residual, "relu" if relu else "", []),
    )


def _norm_epilogue(residual: Any, activation: str, numbers: Any) -> dict[str, Any]:
    """Normalisations have no bias in the epilogue."""
    chain = epilogue(None, None, residual, activation, numbers)
    chain.pop("bias", None)
    return chain


def _save_norm(
    results: Any, x: Any, w: Any, b: Any, residual: Any, mean: Any, variance: Any, axes: Any, rms: Any, epsilon: Any,
    momentum: Any, relu: Any,
) -> Sequence[Any]:  # fmt: skip
    y, saved_mean, inv_deviation = results
    return x, w, None if rms else saved_mean, inv_deviation, y if relu else None, axes, rms


def _gradient_of_norm(
    saved: Sequence[Any], needs: Sequence[bool], dy: Any, dmean: Any, dinverse: Any
) -> Sequence[Any]:
    """Statistics have gradients where gradients of gradients are asked for."""
    x, _, mean, inverse, _, axes, rms = saved
    dy = torch.zeros_like(x) if dy is None else dy
    dx, dw, db, dresidual = norm_backward(dy, *saved, needs[1], needs[2], needs[3])
    if dmean is not None or dinverse is not None:
        dx = dx + of_statistics(x, mean, inverse, axes, rms, dmean, dinverse)
    given = [each if need else None for each, need in zip((dx, dw, db, dresidual), needs, strict=False)]
    return *given, None, None, None, None, None, None, None


def _norm_backward_outputs(
    dy: Any, x: Any, w: Any, mean: Any, inv_deviation: Any, y: Any, axes: Any, rms: Any, dw: Any, db: Any, dresidual: Any
) -> Any:
    return (
        torch.empty_like(x),
        torch.empty_like(w) if dw else nothing(x),
        torch.empty_like(w) if db else nothing(x),
        torch.empty_like(dy) if dresidual else nothing(x),
    )


def _write_norm_backward(
    results: Any, dy: Any, x: Any, w: Any, mean: Any, inv_deviation: Any, y: Any, axes: Any, rms: Any, dw: Any, db: Any,
    dresidual: Any,
) -> None:  # fmt: skip
    launch(
        "norm_backward",
        dy=dy,
        x=x,
        w=w,
        mean=mean,
        inv_deviation=inv_deviation,
        y=y,
        dx=results[0],
        dw=results[1] if dw else None,
        db=results[2] if db else None,
        dresidual=results[3] if dresidual else None,
        axes=tuple(axes),
        mode="rms" if rms else "standard",
    )


norm_backward = define(
    "norm_backward(Tensor dy, Tensor x, Tensor? w, Tensor? mean, Tensor inv_deviation, Tensor? y, int[] axes, bool rms, "
    "bool dw, bool db, bool dresidual) -> (Tensor, Tensor, Tensor, Tensor)",
    _norm_backward_outputs,
    _write_norm_backward,
)
# y = relu(w xhat + b + residual), the means and inverse deviations; updates the running statistics. A bias needs a w.
norm = define(
    "norm(Tensor x, Tensor? w, Tensor? b, Tensor? residual, Tensor(a!)? running_mean, Tensor(b!)? running_variance, "
    "int[] axes, bool rms, float epsilon, float momentum, bool relu) -> (Tensor, Tensor, Tensor)",
    _norm_outputs,
    _write_norm,
    saved=_save_norm,
    gradient=_gradient_of_norm,
)


def _write_norm_inference(
    y: Any, x: Any, mean: Any, variance: Any, w: Any, b: Any, residual: Any, axes: Any, epsilon: Any, activation: Any,
    numbers: Any,
) -> None:  # fmt: skip
    launch(
        "norm_inference",
        x=x,
        running_mean=mean,
        running_variance=variance,
        w=w,
        b=b,
        y=y,
        axes=tuple(axes),
        epsilon=epsilon,
        **_norm_epilogue(residual, activation, numbers),
    )


def _save_norm_inference(
    y: Any, x: Any, mean: Any, variance: Any, w: Any, b: Any, residual: Any, axes: Any, epsilon: Any, activation: Any,
    numbers: Any,
) -> Sequence[Any]:  # fmt: skip
    _require_gradient(None, activation)
    return x, mean, variance, w, y if activation == "relu" else None, axes, epsilon


def _gradient_of_norm_inference(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    x, mean, variance, w, y, axes, epsilon = saved
    dy = _before_relu(dy, y)
    inverse = (variance + epsilon).rsqrt()
    dx = scaled(dy, inverse if w is None else w * inverse) if needs[0] else None
    dw = db = None
    if needs[3] or needs[4]:  # dx of norm_backward is that of statistics which depend on x
        _, dw, db, _ = norm_backward(dy, x, w, mean, inverse, None, axes, False, needs[3], needs[4], False)
    dw, db = dw if needs[3] else None, db if needs[4] else None
    return dx, None, None, dw, db, dy if needs[5] else None, None, None, None, None


norm_inference = define(
    "norm_inference(Tensor x, Tensor running_mean, Tensor running_variance, Tensor? w, Tensor? b, Tensor? residual, "
    "int[] axes, float epsilon, str activation, float[] numbers) -> Tensor",
    lambda x, *_: torch.empty_like(x),
    _write_norm_inference,
    saved=_save_norm_inference,
    gradient=_gradient_of_norm_inference,
)

_WINDOW = "int[] axes, int size, float alpha, float beta, float k"


def _words(axes: Any, size: int, alpha: float, beta: float, k: float) -> dict[str, Any]:
    return {"axes": tuple(axes), "size": size, "lrn_alpha": alpha, "lrn_beta": beta, "lrn_k": k}


def _write_local_norm_backward(results: Any, dy: Any, x: Any, means: Any, *window: Any) -> None:
    dx, dmeans = results
    further = {} if means is None else {"means": means, "dmeans": dmeans}
    launch("local_norm_backward", x=x, dy=dy, dx=dx, **further, **_words(*window))


local_norm_backward = define(
    f"local_norm_backward(Tensor dy, Tensor x, Tensor? means, {_WINDOW}) -> (Tensor, Tensor)",
    lambda dy, x, means, *_: (torch.empty_like(x), nothing(x) if means is None else torch.empty_like(means)),
    _write_local_norm_backward,
)


def _gradient_of_local_norm(saved: Sequence[Any], needs: Sequence[bool], dy: torch.Tensor) -> Sequence[Any]:
    dx, dmeans = local_norm_backward(dy, *saved)
    return dx, dmeans if needs[1] else None, None, None, None, None, None


# `means`: what the squares are of differences from.
local_norm = define(
    f"local_norm(Tensor x, Tensor? means, {_WINDOW}) -> Tensor",
    lambda x, *_: torch.empty_like(x),
    lambda y, x, means, *window: launch(
        "local_norm_forward", x=x, y=y, **({} if means is None else {"means": means}), **_words(*window)
    ),
    saved=lambda y, x, means, *window: (x, means, *window),
    gradient=_gradient_of_local_norm,
)
