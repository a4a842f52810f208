#!/usr/bin/python3
"""Writes cross_entropy_torch.txt: cross entropy and its gradient by PyTorch, in double, for cross_entropy_test.cpp.

    /usr/bin/python3 tests/reference/cross_entropy_torch.py > tests/reference/cross_entropy_torch.txt

Five lines a case: the extents of x, the reduction, the smoothing and whether class c has the weight 1/2 + c / 4; x; the
targets, of which -100 is ignored; the loss; dx given a dloss of 1.25 (for each row where there is no reduction). Every number
that is given is exact in f32.
"""
import torch
import torch.nn.functional as F

CASES = [((1, 1), "mean", 0, 0), ((5, 7), "none", 0, 0), ((5, 7), "mean", 0, 0), ((5, 7), "sum", 0, 0),
         ((2, 3, 5), "mean", 0, 0), ((2, 4, 2, 3), "none", 0, 0), ((1, 3, 2, 1, 2), "sum", 0, 0), ((5, 7), "mean", 0, 1),
         ((2, 3, 5), "none", 0, 1), ((5, 7), "mean", 0.125, 0), ((2, 3, 5), "none", 0.125, 1), ((5, 7), "mean", 0.125, 1),
         ((5, 7), "sum", 1, 1)]


def numbers(tensor):
    return " ".join("%.17g" % value for value in tensor.reshape(-1).tolist())


for extents, reduction, smoothing, weighted in CASES:
    count = int(torch.tensor(extents).prod())
    x = torch.tensor([(i * 7919 % 257 - 128) / 16 for i in range(count)], dtype=torch.float64).reshape(extents)
    x.requires_grad_(True)
    rows = extents[:1] + extents[2:]
    targets = torch.tensor([-100 if i % 6 == 4 else i * 5 % extents[1] for i in range(count // extents[1])]).reshape(rows)
    weights = torch.tensor([0.5 + c / 4 for c in range(extents[1])], dtype=torch.float64) if weighted else None
    loss = F.cross_entropy(x, targets, weight=weights, reduction=reduction, label_smoothing=smoothing)
    (loss.sum() * 1.25).backward()
    print("x".join(map(str, extents)), reduction, smoothing, weighted)
    for line in (x, targets.double(), loss, x.grad):
        print(numbers(line.detach()))
