#!/usr/bin/python3
"""Writes activation_torch.txt: activations and their derivatives by PyTorch, in double, for activation_test.cpp.

    /usr/bin/python3 tests/reference/activation_torch.py > tests/reference/activation_torch.txt

A line is: mode, x, f(x), f'(x). Every x is exact in f32; kinks are among them. The numbers that functions take are those
of Operation::scalars().
"""
import torch
import torch.nn.functional as F

SLOPE, OFFSET, LOW, HIGH = 0.375, 0.5, -1.0, 1.0

FUNCTIONS = {
    "identity": lambda x: x * 1.0,
    "relu": F.relu,
    "clipped_relu": lambda x: F.hardtanh(x, 0.0, HIGH),
    "clip": lambda x: torch.clamp(x, LOW, HIGH),
    "leaky_relu": lambda x: F.leaky_relu(x, SLOPE),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "elu": lambda x: F.elu(x, SLOPE),
    "selu": F.selu,
    "softplus": lambda x: F.softplus(x, SLOPE, 1e6),
    "swish": lambda x: x * torch.sigmoid(SLOPE * x),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hard_swish": F.hardswish,
    "hard_sigmoid": lambda x: torch.clamp(SLOPE * x + OFFSET, 0.0, 1.0),
    "mish": F.mish,
}

POSITIVE = [2.0**-30, 2.0**-10, 0.25, 0.5, 0.625, 0.75, 1.0, 1.25, 1.5, 2.0, 2.75, 3.0, 3.5, 5.0, 8.0, 13.0, 30.0, 100.0]
ARGUMENTS = [-x for x in reversed(POSITIVE)] + [0.0] + POSITIVE

for name, function in FUNCTIONS.items():
    x = torch.tensor(ARGUMENTS, dtype=torch.float64, requires_grad=True)
    y = function(x)
    y.sum().backward()
    for row in zip(ARGUMENTS, y.tolist(), x.grad.tolist()):
        print(name, *("%.17g" % value for value in row))
