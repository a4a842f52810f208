"""CTC loss."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

from ...errors import InvalidArgument
from .. import _active
from ..operators import ctc
from ..operators._indices import require_lengths
from ._arguments import as_int32, flag, integer, needs_gradient, require, require_served

__all__ = ["ctc_loss"]


def _lengths(
    name: str, given: torch.Tensor | Sequence[int], images: int, most: int
) -> tuple[torch.Tensor, list[int] | None]:
    """Lengths as int32, and as a list if they were given as one. Those on the CPU are looked at."""
    numbers = None
    if isinstance(given, torch.Tensor):
        whole = not (given.is_floating_point() or given.is_complex() or given.dtype == torch.bool)
        require(whole, f"{name} is of {given.dtype}", "give integers")
        lengths = as_int32(given).reshape(-1)
    elif isinstance(given, (list, tuple)):
        numbers = [integer(name, each) for each in given]
        lengths = as_int32(torch.tensor(numbers, dtype=torch.int64))
    else:
        raise InvalidArgument(f"{name} is {given!r}", "give a length for each image")
    require(
        lengths.shape[0] == images, f"{name} has {lengths.shape[0]} lengths", f"give one for each of {images} images"
    )
    if lengths.is_cpu and not _active.is_compiling() and _active.is_direct((lengths,)):
        require_lengths(lengths, most, name)
    return lengths, numbers


def _in_rows(targets: torch.Tensor, lengths: torch.Tensor, numbers: list[int] | None) -> torch.Tensor:
    """Labels of all images, one after the other, as rows of one length. `numbers`: the lengths, if they are known."""
    if numbers is None:
        known = not _active.is_compiling() and not _active.has_no_elements((lengths,))
        require_served(known, "ctc_loss of labels that are not in rows, in a compiled program", "give lists of lengths")
        numbers = lengths.tolist()
    most, count = max(numbers), sum(numbers)
    require(targets.shape[0] == count, f"targets has {targets.shape[0]} labels", f"give the {count} of the lengths")
    if count == 0:
        return targets.new_empty((len(numbers), 0))
    first = torch.tensor([0, *itertools.accumulate(numbers[:-1])], device=targets.device)
    places = first.unsqueeze(1) + torch.arange(most, device=targets.device)
    return targets[places.clamp(max=count - 1)]  # behind the labels of an image stand others


def ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: torch.Tensor | Sequence[int],
    target_lengths: torch.Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> torch.Tensor:
    """torch.nn.functional.ctc_loss, of several images or one, with labels in rows or one after the other; autocast
    computes it in float32. The gradient is that of the scores, as PyTorch's.

    A wrong length raises kiln.InvalidArgument; one on a GPU ends in an assertion of the device. Lengths on a GPU are
    waited for only where labels are one after the other. A label that is no class, or the blank, raises
    kiln.InvalidArgument on the CPU; on a GPU the loss is NaN.
    """
    if not _active.is_compiling() and _active.transform():
        of_pytorch: torch.Tensor = torch.nn.functional.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity
        )
        return of_pytorch
    require(reduction in ("none", "mean", "sum"), f"reduction is {reduction!r}", "give none, mean or sum")
    blank, zero = integer("blank", blank), flag("zero_infinity", zero_infinity)
    require(log_probs.dim() in (2, 3), f"log_probs has {log_probs.dim()} dimensions", "give steps, images and classes")
    x = (log_probs if log_probs.dim() == 3 else log_probs.unsqueeze(1)).transpose(0, 1)
    images, steps, classes = x.shape
    require(x.numel() > 0, f"log_probs is of {tuple(log_probs.shape)}", "give one or more of each")
    require(0 <= blank < classes, f"blank is {blank}", f"give a class, 0 to {classes - 1}")
    require(targets.dim() in (1, 2), f"targets has {targets.dim()} dimensions", "give rows of labels, or all labels")
    kinds = [isinstance(each, torch.Tensor) for each in (input_lengths, target_lengths)]
    require(kinds[0] == kinds[1], "one of the lengths is a tensor, and one is not", "give two tensors or two lists")
    inputs, _ = _lengths("input_lengths", input_lengths, images, steps)
    labels, numbers = _lengths("target_lengths", target_lengths, images, targets.shape[-1])
    rows = as_int32(targets).to(x.device)
    rows = _in_rows(rows, labels, numbers) if targets.dim() == 1 else rows
    require(rows.shape[0] == images, f"targets has labels of {rows.shape[0]} images", f"give those of {images}")
    inputs, labels = inputs.to(x.device), labels.to(x.device)
    loss, _ = ctc.ctc_loss(x, rows, inputs, labels, blank, zero, needs_gradient(log_probs))
    if reduction == "mean":
        return (loss / labels.clamp(min=1)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss if log_probs.dim() == 3 else loss.view(())
