#!/usr/bin/python3
"""Writes rows_torch.txt: reductions by PyTorch, in double, for rows_torch_test.cpp.

    /usr/bin/python3 tests/reference/rows_torch.py > tests/reference/rows_torch.txt

A call is a request, then `name values...` for each operand in logical order (all exact in f32), then `=name values...`
for what comes out.
"""
import torch

torch.manual_seed(1)


def draw(*shape):
    """Multiples of 1/64, zeros and equal ones among them."""
    return torch.randint(-100, 100, shape).to(torch.float64) / 64


def show(name, tensor):
    print(name, *("%.17g" % value for value in tensor.reshape(-1).tolist()))


def call(request, operands, results):
    print("request", request)
    for name, tensor in operands.items():
        show(name, tensor)
    for name, tensor in results.items():
        show("=" + name, tensor)


def flattened(x, axes):
    """Kept dimensions first, then the axes as one."""
    kept = [d for d in range(x.dim()) if d not in axes]
    return x.permute(*kept, *axes).reshape(*[x.shape[d] for d in kept], -1)


REDUCTIONS = {
    "add": lambda x: x.sum(-1),
    "mul": lambda x: x.prod(-1),
    "min": lambda x: x.min(-1).values,
    "max": lambda x: x.max(-1).values,
    "amax": lambda x: x.abs().max(-1).values,
    "mean": lambda x: x.mean(-1),
    "norm1": lambda x: torch.linalg.vector_norm(x, 1, -1),
    "norm2": lambda x: torch.linalg.vector_norm(x, 2, -1),
    "mul_no_zeros": lambda x: torch.where(x == 0, torch.ones_like(x), x).prod(-1),
}
POSITIONS = {"min": lambda x: x.argmin(-1), "max": lambda x: x.argmax(-1), "amax": lambda x: x.abs().argmax(-1)}

for mode, function in REDUCTIONS.items():
    for shape, axes in (((3, 5), [1]), ((2, 3, 4), [0, 2]), ((2, 3, 2, 2), [1, 2, 3])):
        x = draw(*shape)
        rows = flattened(x, axes)
        results = {"y": function(rows)}
        reduced = "x".join("1" if d in axes else str(extent) for d, extent in enumerate(shape))
        indices = ""
        if mode in POSITIONS:
            indices = " indices=i32:" + reduced
            results["indices"] = POSITIONS[mode](rows)
        extents, listed = "x".join(map(str, shape)), ",".join(map(str, axes))
        call(f"reduce x=f32:{extents}{indices} axes={listed} mode={mode}", {"x": x}, results)
