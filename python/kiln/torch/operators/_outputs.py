"""New tensors for results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_channels_last = {4: torch.channels_last, 5: torch.channels_last_3d}


def new(like: torch.Tensor, extents: Sequence[Any], *others: torch.Tensor) -> torch.Tensor:
    """Without gaps, of the type of `like`; with channels last where those of `like` or one of `others` are."""
    layout = _channels_last.get(len(extents))
    if layout is not None:
        for each in (like, *others):
            if each.dim() == len(extents) and each.is_contiguous(memory_format=layout) and not each.is_contiguous():
                return torch.empty(tuple(extents), dtype=like.dtype, device=like.device, memory_format=layout)
    return like.new_empty(tuple(extents))


def nothing(like: torch.Tensor) -> torch.Tensor:
    """In place of a result that is not computed: operators have a fixed number of them."""
    return like.new_empty((0,))
