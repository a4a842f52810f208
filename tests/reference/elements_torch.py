#!/usr/bin/python3
"""Writes elements_torch.txt: element-wise arithmetic, comparison and selection, copies between layouts and dtypes with
padding, and what is set to one value, by PyTorch, in double, for torch_table_test.cpp.

    /usr/bin/python3 tests/reference/elements_torch.py > tests/reference/elements_torch.txt
"""
import math

import torch

from torch_table import call, draw, extents

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8}
QUANTIZED = {"i8": torch.qint8, "u8": torch.quint8}


def stored(values, dtype):
    """As a tensor of that dtype holds them: integers to the nearest one, saturated. f32 is left in double, as the
    reference leaves its results."""
    if dtype == "f32":
        return values
    if dtype in QUANTIZED:
        return torch.quantize_per_tensor(values.to(torch.float32), 1, 0, QUANTIZED[dtype]).int_repr()
    if dtype == "i32":
        limits = torch.iinfo(torch.int32)
        return values.round().clamp(limits.min, limits.max).to(torch.int32)
    return values.to(DTYPES[dtype])


def spec(name, tensor, dtype="f32", layout=""):
    return f"{name}={dtype}:{extents(tensor)}{layout}"


def exact(*values):
    return torch.tensor(values, dtype=torch.float64)


# ---- tensor_op

BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "min": torch.minimum,
          "max": torch.maximum, "pow": torch.pow, "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le,
          "gt": torch.gt, "ge": torch.ge}
UNARY = {"sqrt": torch.sqrt, "exp": torch.exp, "log": torch.log, "abs": torch.abs, "neg": torch.neg,
         "not": torch.logical_not}


def special(*shape):
    return exact(0, -0.0, 1, -1, 2, -3, 0.5, math.inf, -math.inf, math.nan).reshape(shape)


def binary(mode, a, b):
    call(f"tensor_op {spec('a', a)} {spec('b', b)} mode={mode}", {"a": a, "b": b}, {"y": BINARY[mode](a, b)})


for mode in BINARY:
    binary(mode, draw(2, 3, 5), draw(2, 3, 5))
    binary(mode, special(10, 1), special(1, 10))  # each with each, and both inputs repeat
    binary(mode, draw(3, 1, 1, 5), draw(1, 2, 1, 1))
binary("add", draw(2, 1, 3, 1, 2), draw(1, 3, 1, 2, 1))
binary("pow", draw(7).abs(), draw(7))
for mode, function in UNARY.items():
    for a in (draw(3, 7), draw(7).abs(), special(2, 5)):
        call(f"tensor_op {spec('a', a)} mode={mode}", {"a": a}, {"y": function(a)})

for a, b, c in ((special(10), draw(10), draw(10)), (draw(3, 1, 5) > 0, draw(1, 2, 1), draw(3, 2, 5)),
                (exact(0, 1, 0).reshape(1, 3), special(10, 1), draw(1, 3))):
    inputs = {"a": a.to(torch.float64), "b": b, "c": c}
    y = torch.where(a != 0, b, c)
    call(f"tensor_op {spec('a', a, 'u8' if a.dtype == torch.bool else 'f32')} {spec('b', b)} {spec('c', c)} "
         f"{spec('y', y)} mode=select", inputs, {"y": y})


def blended(request, operands, result, before, alpha, beta):
    """The request's alpha and beta are classes: `any`, or these very numbers."""
    call(request, {**operands, "y": before, "alpha": torch.tensor(alpha), "beta": torch.tensor(beta)},
         {"y": alpha * result + beta * before})


a, b, before = draw(3, 5), draw(1, 5), draw(3, 5)
operands = {"a": a, "b": b}
for mode in ("add", "mul", "le"):
    request = f"tensor_op {spec('a', a)} {spec('b', b)} mode={mode}"
    blended(f"{request} alpha=any beta=any", operands, BINARY[mode](a, b), before, 0.75, -1.5)
    blended(f"{request} beta=1", operands, BINARY[mode](a, b), before, 1, 1)
    call(f"{request} alpha=0", operands, {"y": torch.zeros(3, 5)})
for dtype in DTYPES:  # integers saturate, others round
    a, b = stored(8 * draw(2, 7), dtype), stored(8 * draw(1, 7), dtype)
    call(f"tensor_op {spec('a', a, dtype)} {spec('b', b, dtype)} mode=sub", {"a": a, "b": b},
         {"y": stored(a.to(torch.float64) - b.to(torch.float64), dtype)})

# ---- tensor_transform: between dtypes

# Ties, the ends of each type and what lies beyond them. PyTorch leaves open which integer NaN becomes.
EDGES = torch.cat([exact(0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, -128.5, -129, 254.5, 255.5, 300, -1000, 1e6),
                   exact(65503, 65519, 65520, -65520, 2**-14, 2**-24, 2**-25, 3 * 2**-25, -(2**-26), 1.5 * 2**-24),
                   exact(*(1 + odd * 2.0**-digits for digits in (8, 9, 11, 12) for odd in (1, 3, -1))),
                   exact(1 + 2**-11 + 2**-23, 1 + 2**-8 + 2**-23, 2147483520, -2147483648)])
FARTHER = exact(math.inf, -math.inf, math.nan, 3e38, -3.4028234663852886e38, 1e-40, 2**-133, 2**-134)
for dtype in DTYPES:
    edges = torch.cat([EDGES, FARTHER]) if dtype in ("f16", "bf16") else EDGES
    for values in (edges.to(torch.float32), draw(3, 5) * 64):
        call(f"tensor_transform {spec('x', values)} {spec('y', values, dtype)}", {"x": values},
             {"y": stored(values.to(torch.float64), dtype)})
    x = stored(64 * draw(3, 5), dtype)
    call(f"tensor_transform {spec('x', x, dtype)} {spec('y', x)} alpha=any", {"x": x, "alpha": torch.tensor(-0.375)},
         {"y": -0.375 * x.to(torch.float64)})
    call(f"tensor_transform {spec('x', x, dtype)}", {"x": x}, {"y": x})
integers = torch.tensor([2**31 - 1, -(2**31), 2**24 + 1, 2**24 + 3, -(2**25) - 2], dtype=torch.int32)
call("tensor_transform x=i32:5", {"x": integers}, {"y": integers})
call("tensor_transform x=i32:5 y=f32:5", {"x": integers}, {"y": integers.to(torch.float32)})

# ---- tensor_transform: layouts. An operand whose line begins with @ is given in the order of memory.


def strided(request, shape, strides, memory):
    call(request.format("x".join(map(str, shape)), ",".join(map(str, strides))), {"@x": memory},
         {"y": torch.as_strided(memory, shape, strides)})


for shape, layout, strides in (((2, 3, 5), "nwc", (15, 1, 3)), ((2, 3, 4, 5), "nhwc", (60, 1, 15, 3)),
                               ((2, 3, 2, 3, 5), "ndhwc", (90, 1, 45, 15, 3))):
    memory = draw(torch.Size(shape).numel())
    strided(f"tensor_transform x=f32:{{0}}:{layout} y=f32:{{0}}", shape, strides, memory)
strided("tensor_transform x=f32:{0}:{1}", (3, 5), (1, 3), draw(15))
strided("tensor_transform x=f32:{0}:{1} y=f32:{0}:nhwc", (2, 3, 3, 4), (105, 35, 7, 1), draw(193))  # a crop of 5x7
strided("tensor_transform x=f32:{0}:{1} y=f32:{0}", (3, 4), (8, 2), draw(23))
strided("tensor_transform x=f32:{0}:{1} y=f32:{0}", (3, 4), (0, 1), draw(4))
strided("tensor_transform x=f32:{0}:{1} y=f32:{0}", (3, 3), (1, 1), draw(5))


def padded(shape, begin, end, value=None):
    x = draw(*shape)
    how = ",".join(map(str, begin + end))
    sides = [pad for pair in zip(reversed(begin), reversed(end)) for pad in pair]
    number = {} if value is None else {"value": torch.tensor(value)}
    call(f"tensor_transform {spec('x', x)} pad={how}", {"x": x, **number},
         {"y": torch.nn.functional.pad(x, sides, value=0.625 if value is None else value)})


padded((5,), [2], [1])
padded((2, 3), [1, 0], [0, 2], -1.5)
padded((2, 1, 3, 5), [0, 0, 1, 2], [0, 0, 2, 1], 0.0)
padded((1, 2, 1, 3, 2), [0, 1, 0, 0, 1], [1, 0, 2, 0, 0], math.inf)

x, before = draw(3, 5), draw(3, 5)
blended("tensor_transform x=f32:3x5 alpha=any beta=any", {"x": x}, x, before, -0.5, 0.25)  # what tensor_add asks for
x, before = draw(1, 3, 1, 1), draw(2, 3, 2, 3)
blended("tensor_transform x=f32:1x3x1x1 y=f32:2x3x2x3 alpha=any beta=1", {"x": x}, x, before, 1.25, 1)

# ---- tensor_set
for dtype in ("f32", *DTYPES):
    for value in (0.1, -1.5, 300.0):
        y = torch.full((2, 3), value, dtype=torch.float32).to(torch.float64)
        call(f"tensor_set y={dtype}:2x3", {"value": y[0, 0]}, {"y": stored(y, dtype)})
