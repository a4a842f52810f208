"""Arithmetic of layers, from the extents of their tensors: what share of a model runs on Kiln."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch


def _tensors(values: Any) -> list[torch.Tensor]:
    """All of them, those in lists and tuples too."""
    found = []
    for each in values:
        if isinstance(each, torch.Tensor):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            found += _tensors(each)
    return found


@functools.cache
def _kind(name: str) -> str:
    """The kind of product that a function is; "" if it is none."""
    if name.startswith("conv"):
        return "conv_transpose" if name.startswith("conv_transpose") else "conv"
    if name in ("linear", "matmul", "mm", "bmm"):
        return "matmul"
    if name in ("addmm", "baddbmm", "scaled_dot_product_attention", "multi_head_attention_forward"):
        return name.removeprefix("b")
    if name.startswith(("lstm", "gru", "rnn")) or "attention" in name or "encoder" in name:
        return "weights"
    return ""


def _product(kind: str, given: Sequence[torch.Tensor], result: torch.Tensor) -> int:
    """Multiplications and additions of the elements of a product."""
    if kind == "conv_transpose":
        return 2 * given[0].numel() * math.prod(given[1].shape[1:])
    if kind == "conv":
        return 2 * result.numel() * math.prod(given[1].shape[1:])
    if kind == "matmul":
        return 2 * result.numel() * int(given[0].shape[-1])
    if kind == "addmm":
        return 2 * result.numel() * int(given[1].shape[-1])
    if kind == "scaled_dot_product_attention":
        query, key, value = given[:3]
        return 2 * (query.numel() // max(query.shape[-1], 1)) * key.shape[-2] * (query.shape[-1] + value.shape[-1])
    weights = sum(each.numel() for each in given if each.dim() == 2 and each.requires_grad)
    scores = 4 * given[0].numel() * given[1].shape[0] if kind == "multi_head_attention_forward" else 0
    return scores + 2 * weights * (given[0].numel() // max(given[0].shape[-1], 1))


def operations_of(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> int:
    """Floating-point operations of a function's forward pass: those of products, else one for each element of the result."""
    results = [result] if isinstance(result, torch.Tensor) else _tensors([result])
    if not results:
        return 0
    kind = _kind(name)
    if not kind:
        return results[0].numel()
    given = _tensors([*args, *kwargs.values()] if kwargs else args)
    try:
        return _product(kind, given, results[0]) or results[0].numel()
    except (IndexError, RuntimeError):  # given by name in another order, or a tensor without extents of its own (nested)
        return 0
