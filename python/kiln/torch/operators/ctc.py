"""Operators of CTC loss and its gradient.

x: N, T, C, logarithms of probabilities. targets: N, L. Lengths: N. These are int32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._launch import launch
from ._define import define
from ._indices import require_labels, require_lengths


def _words(blank: int, zero: bool) -> dict[str, Any]:
    return {"input": "log_probabilities", "blank": blank, **({"infinite": "zero"} if zero else {})}


def _outputs(x: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, zero: bool, save: bool) -> Any:
    images, steps = x.shape[:2]
    shape = (images, steps, 2 * targets.shape[1] + 1) if save else (0,)
    return x.new_empty((images,)), x.new_empty(shape, dtype=torch.float32)


def _write(
    results: Any, x: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, zero: bool, save: bool
) -> None:
    require_lengths(input_lengths, x.shape[1], "input_lengths")
    require_lengths(target_lengths, targets.shape[1], "target_lengths")
    require_labels(targets, target_lengths, x.shape[2], blank)
    loss, prefixes = results
    launch(
        "ctc_loss_forward",
        x=x,
        targets=targets,
        input_lengths=input_lengths,
        target_lengths=target_lengths,
        loss=loss,
        prefixes=prefixes if save else None,
        **_words(blank, zero),
    )


def _write_backward(
    dx: Any, dloss: Any, prefixes: Any, x: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int,
    zero: bool,
) -> None:  # fmt: skip
    launch(
        "ctc_loss_backward",
        x=x,
        targets=targets,
        input_lengths=input_lengths,
        target_lengths=target_lengths,
        dloss=dloss,
        prefixes=prefixes,
        dx=dx,
        **_words(blank, zero),
    )


def _save(results: Any, *arguments: Any) -> Sequence[Any]:
    return results[1], *arguments[:-1]


def _gradient(saved: Sequence[Any], needs: Sequence[bool], dloss: Any, dprefixes: Any) -> Sequence[Any]:
    dx = None if dloss is None else ctc_loss_backward(dloss, *saved)
    return dx, None, None, None, None, None, None


_GIVEN = "Tensor x, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, bool zero"

ctc_loss_backward = define(
    f"ctc_loss_backward(Tensor dloss, Tensor prefixes, {_GIVEN}) -> Tensor",
    lambda dloss, prefixes, x, *_: torch.empty_like(x),
    _write_backward,
)
# The loss of each image, and if `save` asks for them the prefixes, which the gradient needs and which have none
# themselves. `zero`: infinite losses are 0.
ctc_loss = define(
    f"ctc_loss({_GIVEN}, bool save) -> (Tensor, Tensor)",
    _outputs,
    _write,
    saved=_save,
    gradient=_gradient,
    autocast="f32",
)
