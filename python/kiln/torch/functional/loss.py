"""Softmax and losses."""

from __future__ import annotations

import torch

from .._autocast import as_autocast
from ..operators import rows
from ._arguments import INT32, as_int32, at_most, integer, needs_gradient, number, require, require_served

__all__ = ["cross_entropy", "log_softmax", "nll_loss", "softmax"]


def _softmax(input: torch.Tensor, dim: int, dtype: torch.dtype | None, log: bool) -> torch.Tensor:
    rank, dim = max(input.dim(), 1), integer("dim", dim)
    require(-rank <= dim < rank, f"dim is {dim}", f"give a dimension from {-rank} to {rank - 1}")
    require(dtype is None or isinstance(dtype, torch.dtype), f"dtype is {dtype!r}", "give a type of PyTorch's")
    require_served(dtype != torch.float64, "a result in float64")
    given = as_autocast(input, "log_softmax.int" if log else "softmax.int") if dtype is None else input.to(dtype)
    if given.dim() <= 5:
        return rows.softmax(at_most(5, given), dim % rank, log).view(input.shape)
    place = dim % rank
    outer, inner = given.shape[:place].numel(), given.shape[place + 1 :].numel()
    rows_of = given.reshape(outer, given.shape[place], inner)
    return rows.softmax(rows_of, 1, log).view(input.shape)


def softmax(input: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """torch.nn.functional.softmax; autocast computes it in float32 on a GPU."""
    return _softmax(input, dim, dtype, False)


def log_softmax(input: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """torch.nn.functional.log_softmax; autocast computes it in float32 on a GPU."""
    return _softmax(input, dim, dtype, True)


def _classified(
    name: str, input: torch.Tensor, target: torch.Tensor, reduction: str, weight: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, tuple[int, ...]]:
    """Logits and targets of rows, weights of classes, and the extents of the losses."""
    require(reduction in ("none", "mean", "sum"), f"reduction is {reduction!r}", "give none, mean or sum")
    require(not needs_gradient(weight), "weight requires a gradient", "give weights of classes without requires_grad")
    require_served(not target.dtype.is_floating_point, f"{name} with targets that are probabilities")
    require(input.dim() >= 1, f"{name} takes an input of 1 dimension or more", "give a number for each class")
    x = input if input.dim() > 1 else input.unsqueeze(0)
    expected = (x.shape[0], *x.shape[2:]) if input.dim() > 1 else ()
    require(target.shape == expected, f"target is of {tuple(target.shape)}", f"give {tuple(expected)}")
    if x.dim() > 5:
        x = x.flatten(4)
    targets = as_int32(target).reshape(x.shape[0], *x.shape[2:])
    return x, targets, None if weight is None else weight.to(torch.float32), expected


def _ignored(index: int) -> int:
    return max(min(integer("ignore_index", index), INT32.max), INT32.min)


def cross_entropy(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """torch.nn.functional.cross_entropy of class indices, in one kernel; autocast computes it in float32.

    Targets are converted to int32; one that is no class raises kiln.InvalidArgument, or on a GPU ends in an assertion of
    the device. Targets that are probabilities are not served, nor what `reduction` stands for since long.
    """
    require_served(size_average is None and reduce is None, "size_average or reduce is given", "give reduction")
    label_smoothing = number("label_smoothing", label_smoothing)
    require(0 <= label_smoothing <= 1, f"label_smoothing is {label_smoothing}", "give a number from 0 to 1")
    x, targets, weights, expected = _classified("cross_entropy", input, target, reduction, weight)
    loss = rows.cross_entropy(x, targets, weights, reduction, _ignored(ignore_index), label_smoothing)
    return loss.view(expected) if reduction == "none" else loss


def nll_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """torch.nn.functional.nll_loss; autocast computes it in float32. Targets are as those of cross_entropy."""
    require_served(size_average is None and reduce is None, "size_average or reduce is given", "give reduction")
    x, targets, weights, expected = _classified("nll_loss", input, target, reduction, weight)
    require(
        weight is None or weight.shape == x.shape[1:2],
        f"weight has the shape {None if weight is None else tuple(weight.shape)}",
        f"give a number for each of {x.shape[1]} classes",
    )
    require_served(x.numel() > 0, "nll_loss of no elements")
    loss = rows.nll_loss(x, targets, weights, reduction, _ignored(ignore_index))
    return loss.view(expected) if reduction == "none" else loss
