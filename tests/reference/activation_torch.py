#!/usr/bin/python3
"""Writes activation_torch.txt: activations and their derivatives by PyTorch, in double, for activation_test.cpp.

    /usr/bin/python3 tests/reference/activation_torch.py > tests/reference/activation_torch.txt

A line is: mode, x, f(x), f'(x). Every x is exact in f32; kinks are among them.
"""
import torch

from activation_functions import FUNCTIONS

POSITIVE = [2.0**-30, 2.0**-10, 0.25, 0.5, 0.625, 0.75, 1.0, 1.25, 1.5, 2.0, 2.75, 3.0, 3.5, 5.0, 8.0, 13.0, 30.0, 100.0]
ARGUMENTS = [-x for x in reversed(POSITIVE)] + [0.0] + POSITIVE

for name, function in FUNCTIONS.items():
    x = torch.tensor(ARGUMENTS, dtype=torch.float64, requires_grad=True)
    y = function(x)
    y.sum().backward()
    for row in zip(ARGUMENTS, y.tolist(), x.grad.tolist()):
        print(name, *("%.17g" % value for value in row))
