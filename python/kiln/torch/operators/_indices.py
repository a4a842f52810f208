"""Indices that have to name something."""

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
        hint = "give 0 or more and less" + ("" if also is None else ", or ignore_index")
        raise InvalidArgument(f"{subject} {wrong} is no {what} of {count}", hint)
