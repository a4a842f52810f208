"""Operators of attention: values, weighted by the softmax of queries times keys, and its gradients.

q: N, H, M, D. k: N, K, L, D. v: N, K, L, E, where K divides H. bias and mask: N, H, M, L, or 1 where they repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._launch import launch
from . import _attention_by_pytorch as by_pytorch
from ._define import define
from ._outputs import nothing


def _laid_out(like: torch.Tensor, width: Any) -> torch.Tensor:
    """A new tensor of N, H, M and `width`, whose first three dimensions have the order in memory that those of `like`
    have. The elements of a row stand side by side."""
    extents, strides = [*like.shape[:3], width], like.stride()
    order = [0, 1, 2]
    if all(strides[i] != 0 or extents[i] == 1 for i in order):
        order.sort(key=lambda i: strides[i], reverse=True)
    made = like.new_empty([*(extents[i] for i in order), width])
    return made.permute(*(order.index(i) for i in range(3)), 3)


def _words(left: int, right: int, align: str) -> dict[str, Any]:
    """Words that are not as usual: each costs a call its text."""
    words: dict[str, Any] = {"align": align} if align != "start" else {}
    words |= {"left": left} if left >= 0 else {}
    return words | ({"right": right} if right >= 0 else {})


def _dropout(p: float, seed: Any) -> dict[str, Any]:
    return {"dropout": p, "seed": int(seed)} if p else {}


def _outputs(
    q: Any, k: Any, v: Any, bias: Any, mask: Any, lengths: Any, left: int, right: int, align: str, scale: float,
    dropout: float, seed: Any, save: bool,
) -> Any:  # fmt: skip
    lse = q.new_empty(q.shape[:3] if save else (0,), dtype=torch.float32)
    return _laid_out(q, v.shape[3]), lse


def _write(
    results: Any, q: Any, k: Any, v: Any, bias: Any, mask: Any, lengths: Any, left: int, right: int, align: str,
    scale: float, dropout: float, seed: Any, save: bool,
) -> None:  # fmt: skip
    y, lse = results
    launch(
        "attention_forward",
        q=q,
        k=k,
        v=v,
        bias=bias,
        mask=mask,
        lengths=lengths,
        y=y,
        lse=lse if save else None,
        scale=scale,
        **_words(left, right, align),
        **_dropout(dropout, seed),
    )


def _save(results: Any, q: Any, k: Any, v: Any, *rest: Any) -> Sequence[Any]:
    y, lse = results
    return q, k, v, y, lse, *rest[:-1]


def _gradient(saved: Sequence[Any], needs: Sequence[bool], dy: Any, dlse: Any) -> Sequence[Any]:
    """`dlse` is there where gradients of gradients are asked for."""
    q, _, _, y, _, bias, *_ = saved
    given = torch.zeros_like(y) if dy is None else dy, *saved, needs[1], needs[2], needs[3]
    results = attention_backward(*given) if dlse is None else by_pytorch.attention_backward(*given, dlse)
    dq, dk, dv, dbias = (each if need else None for each, need in zip(results, needs, strict=False))
    if dbias is not None:
        repeated = [i for i in range(4) if bias.shape[i] != dbias.shape[i]]
        dbias = dbias.sum(repeated, keepdim=True) if repeated else dbias
    return dq, dk, dv, dbias, None, None, None, None, None, None, None, None, None


def _backward_outputs(
    dy: Any, q: Any, k: Any, v: Any, y: Any, lse: Any, bias: Any, mask: Any, lengths: Any, left: int, right: int,
    align: str, scale: float, dropout: float, seed: Any, dk: bool, dv: bool, dbias: bool,
) -> Any:  # fmt: skip
    return (
        _laid_out(q, q.shape[3]),
        _laid_out(k, k.shape[3]) if dk else nothing(q),
        _laid_out(v, v.shape[3]) if dv else nothing(q),
        bias.new_empty((*q.shape[:3], k.shape[2])) if dbias else nothing(q),
    )


def _write_backward(
    results: Any, dy: Any, q: Any, k: Any, v: Any, y: Any, lse: Any, bias: Any, mask: Any, lengths: Any, left: int,
    right: int, align: str, scale: float, dropout: float, seed: Any, dk: bool, dv: bool, dbias: bool,
) -> None:  # fmt: skip
    if q.numel() == 0 or k.numel() == 0:
        for each in results:
            each.zero_()
        return
    launch(
        "attention_backward",
        dy=dy,
        q=q,
        k=k,
        v=v,
        y=y,
        lse=lse,
        bias=bias,
        mask=mask,
        lengths=lengths,
        dq=results[0],
        dk=results[1] if dk else None,
        dv=results[2] if dv else None,
        dbias=results[3] if dbias else None,
        scale=scale,
        **_words(left, right, align),
        **_dropout(dropout, seed),
    )


_WORDS = (
    "Tensor? bias, Tensor? mask, Tensor? lengths, int left, int right, str align, float scale, float dropout, Tensor? seed"
)

# The gradients of q, k, v and of the scores, those that are asked for.
attention_backward = define(
    f"attention_backward(Tensor dy, Tensor q, Tensor k, Tensor v, Tensor y, Tensor lse, {_WORDS}, bool dk, bool dv, "
    "bool dbias) -> (Tensor, Tensor, Tensor, Tensor)",
    _backward_outputs,
    _write_backward,
)
# y, and what the gradient needs, if `save` asks for it. mask is uint8 and lengths int32. left and right are -1 for all
# keys, scale is 0 for 1 / sqrt(D). Weights are dropped with the probability `dropout`; the seed is a tensor on the CPU.
attention = define(
    f"attention(Tensor q, Tensor k, Tensor v, {_WORDS}, bool save) -> (Tensor, Tensor)",
    _outputs,
    _write,
    saved=_save,
    gradient=_gradient,
    autocast="lower",
)
