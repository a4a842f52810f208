#!/usr/bin/env python3
"""Has Triton compile a matrix product and a convolution to PTX, without a GPU.

usage: triton_kernels.py FOLDER PYTHON_PATH

Writes to FOLDER, for each kernel, NAME.ptx and NAME.json: the request that it computes, and its launch. PYTHON_PATH is
where Triton is. The convolution multiplies blocks of pixels by filters, tap by tap, as the template of PyTorch's
Inductor does.
"""
import json
import pathlib
import sys

folder, python_path = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, python_path)

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

TYPES = {"f32": "*fp32", "f16": "*fp16", "bf16": "*bf16", "f8e4m3": "*fp8e4nv", "f8e5m2": "*fp8e5"}


@triton.jit
def product(a, b, c, m, n, k, a_row, b_row, c_row, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for begin in range(0, k, BLOCK_K):
        at = begin + inner
        left = tl.load(a + rows[:, None] * a_row + at[None, :], mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0)
        right_mask = (at[:, None] < k) & (columns[None, :] < n)
        right = tl.load(b + at[:, None] * b_row + columns[None, :], mask=right_mask, other=0.0)
        total = tl.dot(left, right, total)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * c_row + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


@triton.jit
def convolution(x, w, y, N: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr,
                R: tl.constexpr, S: tl.constexpr, P: tl.constexpr, Q: tl.constexpr, PAD: tl.constexpr,
                STRIDE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    filters = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    q = pixel % Q
    p = pixel // Q % P
    n = pixel // (P * Q)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    STEPS: tl.constexpr = (C + BLOCK_K - 1) // BLOCK_K
    for step in range(R * S * STEPS):
        channels = step % STEPS * BLOCK_K + tl.arange(0, BLOCK_K)
        r = step // STEPS // S
        s = step // STEPS % S
        row = p * STRIDE - PAD + r
        column = q * STRIDE - PAD + s
        inside = (n < N) & (row >= 0) & (row < H) & (column >= 0) & (column < W)
        place = ((n * H + row) * W + column) * C
        left_mask = inside[:, None] & (channels[None, :] < C)
        left = tl.load(x + place[:, None] + channels[None, :], mask=left_mask, other=0.0)
        weights = (filters[None, :] * R * S + r * S + s) * C + channels[:, None]
        right = tl.load(w + weights, mask=(channels[:, None] < C) & (filters[None, :] < K), other=0.0)
        total = tl.dot(left, right, total)
    mask = (n[:, None] < N) & (filters[None, :] < K)
    tl.store(y + pixel[:, None] * K + filters[None, :], total.to(y.dtype.element_ty), mask=mask)


def compile_to(name, kernel, capability, request, operands, integers, constants, grid, stages=3):
    """`operands`: names and types in the order of the parameters; `integers`: names and values of those behind them."""
    signature = {operand: TYPES[dtype] for operand, dtype in operands.items()}
    signature |= {integer: "i32" for integer in integers}
    signature |= {constant: "constexpr" for constant in constants}
    aligned = [i for i in range(len(operands))]
    aligned += [len(operands) + i for i, value in enumerate(integers.values()) if value % 16 == 0]
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants,
                       attrs={(i,): [["tt.divisibility", 16]] for i in aligned})
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32),
                          options={"num_warps": 4, "num_stages": stages})
    (folder / f"{name}.ptx").write_text(made.asm["ptx"])
    (folder / f"{name}.json").write_text(json.dumps({
        "name": name, "capability": capability, "request": request, "entry": made.metadata.name,
        "operands": list(operands), "integers": list(integers.values()), "grid": grid,
        "threads": 32 * made.metadata.num_warps, "shared_bytes": made.metadata.shared}, indent=1))


def compile_product(name, capability, types, extents, more=""):
    m, n, k = extents
    a, b, c = types
    block = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
    compile_to(f"product_{name}_{capability}", product, capability,
               f"gemm a={a}:{m}x{k} b={b}:{k}x{n} c={c}:{m}x{n}{more}",
               {"a": a, "b": b, "c": c}, {"m": m, "n": n, "k": k, "a_row": k, "b_row": n, "c_row": n}, block,
               [-(-m // 64), -(-n // 64)])


def compile_convolution(name, capability, dtype, n, h, w, c, k, r, s, pad, stride):
    p, q = (h + 2 * pad - r) // stride + 1, (w + 2 * pad - s) // stride + 1
    sizes = {"N": n, "H": h, "W": w, "C": c, "K": k, "R": r, "S": s, "P": p, "Q": q, "PAD": pad, "STRIDE": stride,
             "BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32}
    request = (f"conv_forward x={dtype}:{n}x{c}x{h}x{w}:nhwc w={dtype}:{k}x{c}x{r}x{s}:nhwc "
               f"y={dtype}:{n}x{k}x{p}x{q}:nhwc pad={pad} stride={stride}")
    compile_to(f"convolution_{name}_{capability}", convolution, capability, request,
               {"x": dtype, "w": dtype, "y": dtype}, {}, sizes, [-(-n * p * q // 64), -(-k // 32)])


folder.mkdir(parents=True, exist_ok=True)
for old in [*folder.glob("*.ptx"), *folder.glob("*.json")]:
    old.unlink()
for dtype in ("f16", "bf16"):
    compile_product(dtype, 80, (dtype, dtype, dtype), (80, 144, 112))
    compile_convolution(dtype, 80, dtype, 2, 7, 9, 32, 48, 3, 3, 1, 1)
    compile_convolution(dtype + "_strided", 80, dtype, 1, 11, 8, 16, 32, 3, 5, 2, 2)
compile_product("f16_odd", 80, ("f16", "f16", "f16"), (67, 33, 45))
compile_product("tf32", 80, ("f32", "f32", "f32"), (80, 144, 112), " tf32")
for a, b in (("f8e4m3", "f8e4m3"), ("f8e5m2", "f8e5m2")):
    compile_product(a, 89, (a, b, "f32"), (80, 144, 112))
