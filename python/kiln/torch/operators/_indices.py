"""Indices that have to name something, and lengths."""

from __future__ import annotations

import torch

from ..._calls import are_taken
from ...errors import InvalidArgument


def require_indices(indices: torch.Tensor, count: int, subject: str, what: str, also: int | None = None) -> None:
    """Raises InvalidArgument for an index that is not below `count`, nor `also`. On a GPU it ends in a device-side
    assertion, as PyTorch's own: nothing waits for the device."""
    if are_taken():
        return
    known = (indices >= 0) & (indices < count)
    if also is not None:
        known = known | (indices == also)
    if indices.is_cuda:
        torch._assert_async(known.all())
    elif not known.all():
        wrong = int(indices[~known][0])
        hint = f"give 0 to {count - 1}" + ("" if also is None else ", or ignore_index")
        raise InvalidArgument(f"{subject} {wrong} is no {what} of {count}", hint)


def require_lengths(lengths: torch.Tensor, most: int, name: str) -> None:
    """Raises InvalidArgument for a length that is not of 0 to `most`; on a GPU as require_indices() does."""
    if are_taken():
        return
    known = (lengths >= 0) & (lengths <= most)
    if lengths.is_cuda:
        torch._assert_async(known.all())
    elif not known.all():
        raise InvalidArgument(f"{name} has {int(lengths[~known][0])}", f"give 0 to {most}")


def require_labels(targets: torch.Tensor, lengths: torch.Tensor, count: int, blank: int) -> None:
    """Raises InvalidArgument for a label that counts and is no class, or the blank. On a GPU labels are not looked at:
    the loss is NaN."""
    if are_taken() or targets.is_cuda:
        return
    labels = targets[torch.arange(targets.shape[1]) < lengths.unsqueeze(1)]
    require_indices(labels, count, "the label", "class")
    if (labels == blank).any():
        raise InvalidArgument(f"a label is the blank, {blank}", "leave blanks out of the labels")
