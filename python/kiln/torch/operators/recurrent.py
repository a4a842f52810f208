"""Operators of one recurrent layer, in one direction or both: the steps in time, behind the products of all inputs.

gates: images, steps, directions, and the elements of all gates. States: images, directions, hidden elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._launch import launch
from . import _recurrent_by_pytorch as by_pytorch
from ._define import define
from ._outputs import nothing
from .contraction import conv_backward_bias, gemm

GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
_SAVED = {"lstm": 5, "gru": 4}  # parts of `saved`; the gradient of other cells needs y alone


def _words(cell: str, direction: str) -> dict[str, Any]:
    return {"cell": None if cell == "lstm" else cell, "direction": None if direction == "forward" else direction}


def _steps_outside(each: torch.Tensor) -> bool:
    """Whether the steps are the outer dimension in memory, and images the next one."""
    return each.stride(1) > each.stride(0)


def _like(each: torch.Tensor, elements: Any, dtype: torch.dtype) -> torch.Tensor:
    """For each image, step and direction of `each` as many elements, in the same order in memory."""
    images, steps, directions, _ = each.shape
    if not _steps_outside(each):
        return each.new_empty((images, steps, directions, elements), dtype=dtype)
    return each.new_empty((steps, images, directions, elements), dtype=dtype).transpose(0, 1)


def _states(like: torch.Tensor) -> torch.Tensor:
    """New states, directions outside as PyTorch has them."""
    images, directions, hidden = like.shape
    return like.new_empty((directions, images, hidden)).transpose(0, 1)


def _outputs(
    gates: Any, r: Any, r_bias: Any, h0: Any, c0: Any, lengths: Any, cell: str, direction: str, save: bool
) -> Any:
    hidden = r.shape[2]
    return (
        _like(gates, hidden, h0.dtype),
        _states(h0),
        nothing(h0) if c0 is None else _states(c0),
        _like(gates, _SAVED[cell] * hidden, gates.dtype) if save and cell in _SAVED else nothing(gates),
    )


def _write(
    results: Any, gates: Any, r: Any, r_bias: Any, h0: Any, c0: Any, lengths: Any, cell: str, direction: str, save: bool
) -> None:
    y, hn, cn, saved = results
    launch(
        "recurrent_forward",
        gates=gates,
        r=r,
        r_bias=r_bias,
        h0=h0,
        c0=c0,
        lengths=lengths,
        y=y,
        hn=hn,
        cn=None if c0 is None else cn,
        saved=saved if save and cell in _SAVED else None,
        **_words(cell, direction),
    )


def _save(
    results: Any, gates: Any, r: Any, r_bias: Any, h0: Any, c0: Any, lengths: Any, cell: str, direction: str, save: bool
) -> Sequence[Any]:
    y, _, _, saved = results
    return r, saved if cell in _SAVED else y, y, h0, c0, lengths, cell, direction


def _states_before(y: torch.Tensor, h0: torch.Tensor, lengths: Any, direction: str) -> torch.Tensor:
    """The state before each step, in the place of that behind it, with the images and steps of y in order of memory."""
    steps = 0 if _steps_outside(y) else 1
    behind, first = y.transpose(0, 1 - steps), h0.to(y.dtype).unsqueeze(steps)
    count = y.shape[1]
    parts = []
    for place in range(y.shape[2]):
        state, start = behind[:, :, place], first[:, :, place]
        if direction == "forward" or (direction == "both" and place == 0):
            parts.append(torch.cat([start, state.narrow(steps, 0, count - 1)], steps))
            continue
        before = torch.cat([state.narrow(steps, 1, count - 1), start], steps)
        if lengths is not None:  # this direction begins at the last step of each image
            last = (lengths.long() - 1).clamp(min=0).view([1, -1, 1] if steps == 0 else [-1, 1, 1])
            before = before.scatter(steps, last.expand(start.shape), start)
        parts.append(before)
    return torch.stack(parts, 2)


def _gradient(
    saved: Sequence[Any], needs: Sequence[bool], dy: Any, dhn: Any, dcn: Any, dsaved: Any
) -> Sequence[Any]:
    """`dsaved` is there where gradients of gradients are asked for."""
    r, states, y, h0, c0, lengths, cell, direction = saved
    given = dy, dhn, dcn, *saved
    results = recurrent_backward(*given) if dsaved is None else by_pytorch.recurrent_backward(*given, dsaved)
    dgates, dproducts, dh0, dc0 = results
    dr = dr_bias = None
    if needs[1] or needs[2]:
        of_products = dproducts if cell == "gru" else dgates
        in_order = of_products.transpose(0, 1) if _steps_outside(y) else of_products
        rows = in_order.reshape(-1, *in_order.shape[2:])
        if needs[1]:
            before = _states_before(y, h0, lengths, direction).to(rows.dtype).flatten(0, 1)
            dr = gemm(rows.permute(1, 2, 0), before.transpose(0, 1), None, None, None, 1.0, 1.0, "", [])
        if needs[2]:
            dr_bias = conv_backward_bias(rows.flatten(1)).view(r.shape[:2])
    return dgates, dr, dr_bias, dh0, None if c0 is None else dc0, None, None, None, None


def _backward_outputs(
    dy: Any, dhn: Any, dcn: Any, r: Any, saved: Any, y: Any, h0: Any, c0: Any, lengths: Any, cell: str, direction: str
) -> Any:
    return (
        _like(y, r.shape[1], saved.dtype),
        _like(y, r.shape[1], saved.dtype) if cell == "gru" else nothing(saved),
        _states(h0),
        nothing(h0) if c0 is None else _states(c0),
    )


def _write_backward(
    results: Any, dy: Any, dhn: Any, dcn: Any, r: Any, saved: Any, y: Any, h0: Any, c0: Any, lengths: Any, cell: str,
    direction: str,
) -> None:  # fmt: skip
    dgates, dproducts, dh0, dc0 = results
    launch(
        "recurrent_backward",
        dy=torch.zeros_like(y) if dy is None else dy,
        r=r,
        saved=saved,
        y=y if cell == "gru" else None,
        h0=h0 if cell == "gru" else None,
        c0=c0,
        lengths=lengths,
        dhn=dhn,
        dcn=dcn,
        dgates=dgates,
        dproducts=dproducts if cell == "gru" else None,
        dh0=dh0,
        dc0=None if c0 is None else dc0,
        **_words(cell, direction),
    )


# The gradients of gates, of r h + r_bias where that is another (gru), and of the states before the first step.
recurrent_backward = define(
    "recurrent_backward(Tensor? dy, Tensor? dhn, Tensor? dcn, Tensor r, Tensor saved, Tensor y, Tensor h0, Tensor? c0, "
    "Tensor? lengths, str cell, str direction) -> (Tensor, Tensor, Tensor, Tensor)",
    _backward_outputs,
    _write_backward,
)
# y, the states behind the last step, and what the gradient needs, if `save` asks for it. lengths are int32, on the
# device; c0 is an lstm's alone.
recurrent = define(
    "recurrent(Tensor gates, Tensor r, Tensor? r_bias, Tensor h0, Tensor? c0, Tensor? lengths, str cell, str direction, "
    "bool save) -> (Tensor, Tensor, Tensor, Tensor)",
    _outputs,
    _write,
    saved=_save,
    gradient=_gradient,
)
