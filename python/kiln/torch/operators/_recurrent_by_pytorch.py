"""Recurrent layers as PyTorch computes them, step by step (_by_pytorch.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch


def _directions(r: torch.Tensor, direction: str) -> Iterator[tuple[int, bool]]:
    """The place of each direction among tensors, and whether it is the reverse one."""
    return ((place, direction == "reverse" or place == 1) for place in range(r.shape[0]))


def _steps(images: torch.Tensor, lengths: Any, reverse: bool) -> list[tuple[int, Any]]:
    """Steps in the order of a direction, and which images have each; None for all."""
    order = range(images.shape[1])
    masks = [None if lengths is None else (t < lengths).unsqueeze(1) for t in order]
    return [(t, masks[t]) for t in (reversed(order) if reverse else order)]


def _where(mask: Any, value: torch.Tensor, other: Any = None) -> torch.Tensor:
    """`value` of the images that have a step, and of the others `other`, or 0."""
    if mask is None:
        return value
    return torch.where(mask, value, torch.zeros_like(value) if other is None else other)


def _step(cell: str, gates: Any, products: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
    """The state and the cell state behind a step, and what is saved."""
    if cell == "lstm":
        i, f, g, o = (gates + products).chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c = f * c + i * g
        return o * c.tanh(), c, torch.cat([i, f, g, o, c], 1)
    if cell == "gru":
        (gate_q, gate_z, gate_n), (q, z, product) = gates.chunk(3, 1), products.chunk(3, 1)
        q, z = (gate_q + q).sigmoid(), (gate_z + z).sigmoid()
        n = (gate_n + q * product).tanh()
        return (1 - z) * n + z * h, None, torch.cat([q, z, n, product], 1)
    h = (gates + products).tanh() if cell == "tanh" else (gates + products).relu()
    return h, None, h


def recurrent(
    gates: Any, r: Any, r_bias: Any, h0: Any, c0: Any, lengths: Any, cell: str, direction: str, save: bool
) -> Any:
    sides = []
    for place, reverse in _directions(r, direction):
        h, c = h0[:, place], None if c0 is None else c0[:, place]
        y: list[Any] = [None] * gates.shape[1]
        saved: list[Any] = [None] * gates.shape[1]
        for t, mask in _steps(gates, lengths, reverse):
            products = h.to(r.dtype) @ r[place].t()
            products = products if r_bias is None else products + r_bias[place]
            h_next, c_next, kept = _step(cell, gates[:, t, place], products, h, c)
            h = _where(mask, h_next.to(h0.dtype), h)
            c = None if c is None else _where(mask, c_next.to(c0.dtype), c)
            y[t], saved[t] = _where(mask, h), _where(mask, kept.to(gates.dtype))
        sides.append((torch.stack(y, 1), h, c, torch.stack(saved, 1)))
    ys, hs, cs, saves = zip(*sides, strict=True)
    return (
        torch.stack(ys, 2),
        torch.stack(hs, 1),
        h0.new_empty((0,)) if c0 is None else torch.stack(cs, 1),
        torch.stack(saves, 2) if save and cell in ("lstm", "gru") else gates.new_empty((0,)),
    )


def _step_backward(
    cell: str, dh: Any, dc: Any, saved: Any, dsaved: Any, h: Any, c: Any, r: Any
) -> tuple[Any, Any, Any, Any]:
    """The gradients of a step's gates, of its products, and of the state and the cell state before it, h and c."""
    if cell == "lstm":
        (i, f, g, o, behind), (di, df, dg, do, dbehind) = saved.chunk(5, 1), dsaved.chunk(5, 1)
        squashed = behind.tanh()
        dc = dc + dh * o * (1 - squashed * squashed) + dbehind
        di, df, dg, do = di + dc * g, df + dc * c, dg + dc * i, do + dh * squashed
        dgates = torch.cat([di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)], 1)
        return dgates, dgates, dgates @ r, dc * f
    if cell == "gru":
        (q, z, n, product), (dq, dz, dn, dproduct) = saved.chunk(4, 1), dsaved.chunk(4, 1)
        dz, dn = (dz + dh * (h - n)) * z * (1 - z), (dn + dh * (1 - z)) * (1 - n * n)
        dq = (dq + dn * product) * q * (1 - q)
        dproducts = torch.cat([dq, dz, dproduct + dn * q], 1)
        return torch.cat([dq, dz, dn], 1), dproducts, dproducts @ r + dh * z, None
    dh = dh + dsaved
    dgates = dh * (1 - saved * saved) if cell == "tanh" else dh * (saved > 0)
    return dgates, dgates, dgates @ r, None


def _states_before(steps: Sequence[tuple[int, Any]], first: Any, behind: Any) -> dict[int, Any]:
    """The states before each step, of those behind each."""
    before = {}
    for t, mask in steps:
        before[t] = first
        first = _where(mask, behind[:, t], first)
    return before


def recurrent_backward(
    dy: Any, dhn: Any, dcn: Any, r: Any, saved: Any, y: Any, h0: Any, c0: Any, lengths: Any, cell: str, direction: str,
    dsaved: Any = None,
) -> Any:  # fmt: skip
    """Differentiable itself. `dsaved`: the gradient of what the forward saved."""
    dsaved = torch.zeros_like(saved) if dsaved is None else dsaved
    sides = []
    for place, reverse in _directions(r, direction):
        steps = _steps(y, lengths, reverse)
        h = _states_before(steps, h0[:, place], y[:, :, place])
        c = {} if c0 is None else _states_before(steps, c0[:, place], saved[:, :, place].chunk(5, 2)[-1])
        dh = torch.zeros_like(h0[:, place]) if dhn is None else dhn[:, place]
        dc = None if c0 is None else torch.zeros_like(c0[:, place]) if dcn is None else dcn[:, place]
        dgates: list[Any] = [None] * y.shape[1]
        dproducts: list[Any] = [None] * y.shape[1]
        for t, mask in reversed(steps):
            whole = dh if dy is None else dh + dy[:, t, place]
            given = saved[:, t, place], dsaved[:, t, place], h[t], c.get(t), r[place]
            of_gates, of_products, dh_before, dc_before = _step_backward(cell, whole, dc, *given)
            dh = _where(mask, dh_before.to(h0.dtype), dh)
            dc = None if dc is None else _where(mask, dc_before.to(c0.dtype), dc)
            dgates[t], dproducts[t] = _where(mask, of_gates), _where(mask, of_products)
        sides.append((torch.stack(dgates, 1), torch.stack(dproducts, 1), dh, dc))
    gates, products, dh0, dc0 = zip(*sides, strict=True)
    return (
        torch.stack(gates, 2).to(saved.dtype),
        torch.stack(products, 2).to(saved.dtype) if cell == "gru" else saved.new_empty((0,)),
        torch.stack(dh0, 1),
        h0.new_empty((0,)) if c0 is None else torch.stack(dc0, 1),
    )
