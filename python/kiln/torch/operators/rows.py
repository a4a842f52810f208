"""Operators of softmax and cross entropy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..._calls import are_taken
from ...errors import InvalidArgument
from .._launch import launch
from ._define import define


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
    autocast="f32",
)

_LOSS = "str reduction, int ignore, float smoothing"


def _loss_outputs(x: Any, targets: Any, weights: Any, reduction: str, *_: Any) -> torch.Tensor:
    return x.new_empty(targets.shape if reduction == "none" else ())


def _words(reduction: str, ignore: int, smoothing: float) -> dict[str, Any]:
    return {"reduction": reduction, "ignore": ignore, "smoothing": smoothing or None}


def _require_classes(targets: torch.Tensor, classes: int, ignore: int) -> None:
    """Raises InvalidArgument for a target that is no class. On a GPU it ends in a device-side assertion, as PyTorch's own:
    nothing waits for the device."""
    if are_taken():
        return
    known = ((targets >= 0) & (targets < classes)) | (targets == ignore)
    if targets.is_cuda:
        torch._assert_async(known.all())
    elif not known.all():
        wrong = int(targets[~known][0])
        raise InvalidArgument(f"the target {wrong} is no class of {classes}", "give 0 or more and less, or ignore_index")


def _write_loss(loss: Any, x: Any, targets: Any, weights: Any, *words: Any) -> None:
    _require_classes(targets, x.shape[1], words[1])
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
