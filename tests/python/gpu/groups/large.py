"""Tensors of more than 2^31 elements."""

import torch
import torch.nn.functional as F

import kiln

from checks import DEVICE, check
from tensors import compare, exact, tensor


@check("more than 2^31 elements: u8 copy and cast", cuda=True)
def _():
    n = (1 << 31) + 5000
    x = torch.randint(0, 255, (n,), dtype=torch.uint8, device=DEVICE)
    y = kiln.tensor_transform(x)
    assert torch.equal(x, y)
    z = kiln.activation_forward(x.view(-1, 8)[:, :7], mode="identity")  # another stride
    assert torch.equal(z, x.view(-1, 8)[:, :7])


@check("more than 2^31 elements: softmax and reduce of f16", cuda=True)
def _():
    x = torch.empty(1_060_000, 2048, dtype=torch.float16, device=DEVICE).normal_()
    y = kiln.softmax_forward(x)
    notes = compare(("last rows", y[-64:], exact(x[-64:]).softmax(1)), ("first rows", y[:64], exact(x[:64]).softmax(1)))
    s = kiln.reduce(x, axes=1, mode="max")
    assert torch.equal(s, x.amax(1, keepdim=True))
    return notes


@check("more than 2^31 elements: pool and conv 1x1 of f16 channels last", cuda=True)
def _():
    x = torch.empty(42, 1024, 1024, 52, dtype=torch.float16, device=DEVICE).normal_().permute(0, 3, 1, 2)
    assert x.numel() > 1 << 31
    y = kiln.pool_forward(x, window=2, stride=2)
    assert torch.equal(y[-1], F.max_pool2d(x[-1:], 2)[0]) and torch.equal(y[0], F.max_pool2d(x[:1], 2)[0])
    w = tensor((8, 52, 1, 1), "f16")
    z = kiln.conv_forward(x, w)
    return compare(("last image", z[-1:, :, -40:], F.conv2d(exact(x[-1:, :, -40:]), exact(w))))
