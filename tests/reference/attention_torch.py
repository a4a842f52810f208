#!/usr/bin/python3
"""Writes attention_torch.txt: attention by its formula in PyTorch, and gradients by its autograd, in double, for
torch_table_test.cpp.

    /usr/bin/python3 tests/reference/attention_torch.py > tests/reference/attention_torch.txt
"""
import math

import torch

from torch_table import call, draw, extents

TYPES = {"mask": "u8", "lengths": "i32"}  # of operands that are not f32


def visible(images, queries, keys, left, right, align, lengths):
    """Whether a query sees a key by its place: images, 1, queries, keys."""
    count = torch.full((images,), keys) if lengths is None else torch.tensor(lengths).clamp(0, keys)
    count = count.reshape(images, 1, 1, 1)
    key = torch.arange(keys)
    place = torch.arange(queries).reshape(-1, 1) + (count - queries if align == "end" else 0)
    sees = (key < count).expand(images, 1, queries, keys)
    if left >= 0:
        sees = sees & (key >= place - left)
    if right >= 0:
        sees = sees & (key <= place + right)
    return sees


def attention(images, heads, key_heads, queries, keys, depth, width, left=-1, right=-1, align="start", bias=None,
              mask=None, lengths=None, scale=0):
    """A layer and its gradients. `bias`, `mask`: extents; a quarter of the mask is 0. `lengths`: one for each image."""
    q, k = draw(images, heads, queries, depth), draw(images, key_heads, keys, depth)
    v, dy = draw(images, key_heads, keys, width), draw(images, heads, queries, width)
    operands = {"q": q, "k": k, "v": v}
    if bias:
        operands["bias"] = draw(*bias)
    if mask:
        operands["mask"] = torch.randint(4, mask)
    if lengths:
        operands["lengths"] = torch.tensor(lengths)

    added = torch.zeros(images, heads, queries, keys, dtype=torch.float64)
    added = (added + operands["bias"] if bias else added).requires_grad_()
    for tensor in (q, k, v):
        tensor.requires_grad_()
    shared = heads // key_heads
    products = q @ k.repeat_interleave(shared, 1).transpose(-1, -2)
    scores = (scale or 1 / math.sqrt(depth)) * products + added
    sees = visible(images, queries, keys, left, right, align, lengths).expand(scores.shape)
    if mask:
        sees = sees & (operands["mask"] != 0)
    sees_any = sees.any(-1, keepdim=True)
    scores = torch.where(sees_any, scores.masked_fill(~sees, -math.inf), torch.zeros_like(scores))
    y = (sees_any * scores.softmax(-1)) @ v.repeat_interleave(shared, 1)
    lse = scores.logsumexp(-1).masked_fill(~sees_any.squeeze(-1), -math.inf)
    y.backward(dy)

    words = "".join(f" {name}={value}" for name, value, default in
                    [("left", left, -1), ("right", right, -1), ("align", align, "start")] if value != default)
    number = {"scale": torch.tensor([scale])}
    results = {"y": y, "lse": lse}
    call(f"attention_forward {written(operands | results)}{words}", operands | number, results)
    given = {"dy": dy, "y": y, "lse": lse, **operands}
    results = {"dq": q.grad, "dk": k.grad, "dv": v.grad, "dbias": added.grad}
    # y and lse are rounded to f32.
    call(f"attention_backward {written(given | results)}{words}", given | number, results, tolerance=1e-5)


def written(operands):
    return " ".join(f"{name}={TYPES.get(name, 'f32')}:{extents(tensor)}" for name, tensor in operands.items())


attention(2, 3, 3, 4, 5, 3, 2)
attention(1, 4, 2, 5, 7, 4, 3, right=0, scale=0.375)
attention(2, 4, 1, 3, 7, 2, 3, right=0, align="end", lengths=[5, 9])
attention(1, 2, 2, 7, 4, 2, 5, right=0, align="end", scale=-0.5)
attention(1, 2, 2, 7, 4, 2, 3, left=1, right=0)
attention(3, 2, 1, 4, 6, 3, 2, left=2, right=1, align="end", lengths=[0, 6, -1])
attention(2, 2, 1, 3, 6, 3, 4, bias=(1, 2, 3, 6), mask=(2, 1, 1, 6), scale=2)
attention(2, 2, 2, 5, 3, 3, 2, bias=(2, 1, 1, 3), mask=(1, 2, 5, 1), lengths=[2, 3])
attention(2, 2, 1, 3, 4, 2, 2, left=2, bias=(2, 2, 3, 1), mask=(2, 2, 3, 4))
attention(2, 3, 1, 1, 5, 4, 1, bias=(1, 1, 1, 1))
attention(1, 2, 2, 3, 1, 1, 2, bias=(1, 2, 3, 1))
