"""Attention as PyTorch computes it (_by_pytorch.py)."""

from __future__ import annotations

from typing import Any

import torch


def _heads_apart(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Heads of queries in groups, of which each shares a head of the keys `like`: N, K, H / K and the rest."""
    heads = like.shape[1]
    return x.unflatten(1, (heads, x.shape[1] // heads))


def _seen(q: Any, k: Any, lengths: Any, left: int, right: int, align: str) -> Any:
    """Whether a query sees a key, for N or 1 images, 1 head, and all queries and keys; None where all do."""
    queries, count = q.shape[2], k.shape[2]
    keys = torch.arange(count, device=q.device)
    of_image = None if lengths is None else lengths.clamp(0, count).view(-1, 1, 1, 1)
    place = torch.arange(queries, device=q.device).view(1, 1, -1, 1)
    if align == "end":
        place = place + (count if of_image is None else of_image) - queries
    seen = [] if of_image is None else [keys < of_image]
    seen += [keys >= place - left] if left >= 0 else []
    seen += [keys <= place + right] if right >= 0 else []
    result = None
    for each in seen:
        result = each if result is None else result & each
    return result


def _scores(
    q: Any, k: Any, bias: Any, mask: Any, lengths: Any, left: int, right: int, align: str, scale: float
) -> torch.Tensor:
    """Scores of all queries and keys, -inf where a key is hidden: N, H, M, L, in float32 at least."""
    dtype = torch.promote_types(q.dtype, torch.float32)
    products = (_heads_apart(q, k).to(dtype) @ k.unsqueeze(2).to(dtype).mT).flatten(1, 2)
    scores = products * _factor(q, scale)
    scores = scores if bias is None else scores + bias.to(dtype)
    seen = _seen(q, k, lengths, left, right, align)
    if mask is not None:
        seen = mask != 0 if seen is None else (mask != 0) & seen
    return scores if seen is None else torch.where(seen, scores, torch.full_like(scores, -torch.inf))


def _factor(q: Any, scale: float) -> float:
    return scale if scale != 0 else float(q.shape[-1]) ** -0.5


def _dropped(p: torch.Tensor, dropout: float, seed: Any) -> torch.Tensor:
    """Factors of weights: 0, or 1 / (1 - dropout). In transforms they are PyTorch's."""
    from .elementwise import dropout as kiln_dropout  # which is defined by means of this module

    return kiln_dropout(torch.ones(p.shape, device=p.device), seed, dropout).to(p.dtype)  # type: ignore[no-any-return]


def attention(
    q: Any, k: Any, v: Any, bias: Any, mask: Any, lengths: Any, left: int, right: int, align: str, scale: float,
    dropout: float, seed: Any, save: bool,
) -> Any:  # fmt: skip
    scores = _scores(q, k, bias, mask, lengths, left, right, align, scale)
    sees_none = (scores != -torch.inf).sum(-1, keepdim=True) == 0
    scores = torch.where(sees_none, torch.zeros_like(scores), scores)
    lse = torch.logsumexp(scores, -1, keepdim=True)
    p = torch.where(sees_none, torch.zeros_like(scores), (scores - lse).exp())
    p = p * _dropped(p, dropout, seed) if dropout else p
    y = (_heads_apart(p, v) @ v.unsqueeze(2).to(p.dtype)).flatten(1, 2).to(q.dtype)
    lse = torch.where(sees_none, torch.full_like(lse, -torch.inf), lse).squeeze(-1)
    return y, lse if save else lse.new_empty((0,))


def attention_backward(
    dy: Any, q: Any, k: Any, v: Any, y: Any, lse: Any, bias: Any, mask: Any, lengths: Any, left: int, right: int,
    align: str, scale: float, dropout: float, seed: Any, needs_dk: bool, needs_dv: bool, needs_dbias: bool, dlse: Any = None,
) -> Any:  # fmt: skip
    """Differentiable itself. `dlse`: the gradient of lse."""
    scores = _scores(q, k, bias, mask, lengths, left, right, align, scale)
    of_rows = torch.where(lse == -torch.inf, torch.zeros_like(lse), lse).unsqueeze(-1)
    p = (scores - of_rows).exp()
    dy = dy.to(p.dtype)
    of_values = (_heads_apart(dy, v) @ v.unsqueeze(2).to(p.dtype).mT).flatten(1, 2)
    counts = _dropped(p, dropout, seed) if dropout else None
    of_values = of_values if counts is None else of_values * counts
    shift = (dy * y.to(p.dtype)).sum(-1, keepdim=True)
    ds = p * (of_values - (shift if dlse is None else shift - dlse.unsqueeze(-1)))
    p = p if counts is None else p * counts
    products = _heads_apart(ds * _factor(q, scale), k)
    dq = (products @ k.unsqueeze(2).to(p.dtype)).flatten(1, 2).to(q.dtype)
    nothing = q.new_empty((0,))
    return (
        dq,
        (products.mT @ _heads_apart(q, k).to(p.dtype)).sum(2).to(k.dtype) if needs_dk else nothing,
        (_heads_apart(p, v).mT @ _heads_apart(dy, v)).sum(2).to(v.dtype) if needs_dv else nothing,
        ds.to(bias.dtype) if needs_dbias else nothing,
    )
