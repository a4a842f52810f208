"""Operators of softmax and cross entropy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._launch import launch
from ._define import define
from ._indices import require_indices


def _mode(log: bool) -> str:
    return "log" if log else "accurate"


softmax_backward = define(
    "softmax_backward(Tensor y, Tensor dy, int axis, bool log) -> Tensor",
    lambda y, dy, axis, log: torch.empty_like(y),
    lambda dx, y, dy, axis, log: launch("softmax_backward", y=y, dy=dy, dx=dx, axis=axis, mode=_mode(log)),
)
softmax = define(
    "softmax(Tensor x, int axis, bool log) -> Tensor",
    lambda x, axis, log: torch.empty_like(x),
    lambda y, x, axis, log: launch("softmax_forward", x=x, y=y, axis=axis, mode=_mode(log)),
    saved=lambda y, x, axis, log: (y, axis, log),
    gradient=lambda saved, needs, dy: (softmax_backward(saved[0], dy, *saved[1:]), None, None),
)

_LOSS = "str reduction, int ignore, float smoothing"


def _loss_outputs(x: Any, targets: Any, weights: Any, reduction: str, *_: Any) -> torch.Tensor:
    return x.new_empty(targets.shape if reduction == "none" else ())


def _words(reduction: str, ignore: int, smoothing: float) -> dict[str, Any]:
    return {"reduction": reduction, "ignore": ignore, "smoothing": smoothing or None}


def _write_loss(loss: Any, x: Any, targets: Any, weights: Any, *words: Any) -> None:
    require_indices(targets, x.shape[1], "the target", "class", words[1])
    output = {"losses" if words[0] == "none" else "loss": loss}
    launch("cross_entropy_forward", x=x, targets=targets, weights=weights, **output, **_words(*words))


def _write_loss_backward(dx: Any, dloss: Any, x: Any, targets: Any, weights: Any, *words: Any) -> None:
    given = {"dlosses" if words[0] == "none" else "dloss": dloss}
    launch("cross_entropy_backward", x=x, targets=targets, weights=weights, dx=dx, **given, **_words(*words))


def _gradient_of_loss(saved: Sequence[Any], needs: Sequence[bool], dloss: torch.Tensor) -> Sequence[Any]:
    return cross_entropy_backward(dloss, *saved), None, None, None, None, None


cross_entropy_backward = define(
    f"cross_entropy_backward(Tensor dloss, Tensor x, Tensor targets, Tensor? weights, {_LOSS}) -> Tensor",
    lambda dloss, x, *_: torch.empty_like(x),
    _write_loss_backward,
)
# Targets are int32, weights float32.
cross_entropy = define(
    f"cross_entropy(Tensor x, Tensor targets, Tensor? weights, {_LOSS}) -> Tensor",
    _loss_outputs,
    _write_loss,
    saved=lambda loss, *arguments: arguments,
    gradient=_gradient_of_loss,
    autocast="f32",
)


def _counted(targets: Any, weights: Any, classes: int, ignore: int) -> tuple[Any, Any]:
    """Targets, outside of all classes where they are ignored, and how much each row counts for."""
    ignored = targets == ignore
    at = targets.masked_fill(ignored, classes)
    counts = (~ignored).to(torch.float32)
    if weights is not None:
        launch("gather", x=weights, indices=at.flatten(), y=counts.view(-1), axis=0)
    return at, counts


def _write_nll_loss(loss: Any, x: Any, targets: Any, weights: Any, reduction: str, ignore: int) -> None:
    require_indices(targets, x.shape[1], "the target", "class", ignore)
    at, counts = _counted(targets, weights, x.shape[1], ignore)
    losses = torch.empty_like(at, dtype=torch.float32)
    launch("gather", x=x, indices=at.unsqueeze(1), y=losses.unsqueeze(1), axis=1, alpha=-1.0)
    if weights is not None:
        losses *= counts
    if reduction == "none":
        loss.copy_(losses)
        return
    total = losses.new_empty(1)
    launch("reduce", x=losses.flatten(), y=total, axes=0, mode="add")
    loss.copy_(total[0] if reduction == "sum" else total[0] / counts.sum())


def _write_nll_loss_backward(dx: Any, dloss: Any, targets: Any, weights: Any, reduction: str, ignore: int) -> None:
    at, counts = _counted(targets, weights, dx.shape[1], ignore)
    shares = counts / counts.sum() if reduction == "mean" else counts
    launch("scatter", updates=(shares * dloss).unsqueeze(1), indices=at.unsqueeze(1), y=dx, axis=1, alpha=-1.0)


def _gradient_of_nll_loss(saved: Sequence[Any], needs: Sequence[bool], dloss: torch.Tensor) -> Sequence[Any]:
    x, *others = saved
    return nll_loss_backward(dloss, x, *others), None, None, None, None


nll_loss_backward = define(
    "nll_loss_backward(Tensor dloss, Tensor x, Tensor targets, Tensor? weights, str reduction, int ignore) -> Tensor",
    lambda dloss, x, *_: torch.empty_like(x),
    lambda dx, dloss, x, *given: _write_nll_loss_backward(dx, dloss, *given),
)
# x: logarithms of probabilities. Targets are int32, weights float32.
nll_loss = define(
    "nll_loss(Tensor x, Tensor targets, Tensor? weights, str reduction, int ignore) -> Tensor",
    _loss_outputs,
    _write_nll_loss,
    saved=lambda loss, *arguments: arguments,
    gradient=_gradient_of_nll_loss,
    autocast="f32",
)
