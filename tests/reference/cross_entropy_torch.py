#!/usr/bin/python3
"""Writes cross_entropy_torch.txt: cross entropy and its gradient by PyTorch, in double, for cross_entropy_test.cpp.

    /usr/bin/python3 tests/reference/cross_entropy_torch.py > tests/reference/cross_entropy_torch.txt

Five lines a case: the extents of x and the reduction; x; the targets, of which -100 is ignored; the loss; dx given a dloss
of 1.25 (for each row where there is no reduction). Every x is exact in f32.
"""
import torch
import torch.nn.functional as F

CASES = [((1, 1), "mean"), ((5, 7), "none"), ((5, 7), "mean"), ((5, 7), "sum"), ((2, 3, 5), "mean"), ((2, 4, 2, 3), "none"),
         ((1, 3, 2, 1, 2), "sum")]


def numbers(tensor):
    return " ".join("%.17g" % value for value in tensor.reshape(-1).tolist())


for extents, reduction in CASES:
    count = int(torch.tensor(extents).prod())
    x = torch.tensor([(i * 7919 % 257 - 128) / 16 for i in range(count)], dtype=torch.float64).reshape(extents)
    x.requires_grad_(True)
    rows = extents[:1] + extents[2:]
    targets = torch.tensor([-100 if i % 6 == 4 else i * 5 % extents[1] for i in range(count // extents[1])]).reshape(rows)
    loss = F.cross_entropy(x, targets, reduction=reduction)
    (loss.sum() * 1.25).backward()
    print("x".join(map(str, extents)), reduction)
    for line in (x, targets.double(), loss, x.grad):
        print(numbers(line.detach()))
