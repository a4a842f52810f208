#!/usr/bin/env python3
"""Has Triton compile flash attention for the layers of a file, without a GPU: kernels for bench_vs_peers --triton.

usage: triton_attention.py FOLDER PEERS CAPABILITY REQUESTS [CONFIGURATION...]

Writes to FOLDER, for each layer and each configuration, as 128x64x3x4 for blocks of 128 queries and 64 keys, 3 stages
and 4 warps, unless named those that Triton's tutorial on fused attention tries,
NAME.ptx, NAME.cubin and NAME.json: the request that it computes with its launch, and the same of a smaller one to check. PEERS is
where scripts/setup --peers has put Triton, CAPABILITY as in 80. The layers are lines attention_forward with packed q, k
and v of f16 or bf16, as many queries as keys, and nothing else but right=0.

The kernel is the algorithm of that tutorial (Dao et al. 2022, one pass over the keys in powers of 2): keys that all
queries of a block see, then those on the diagonal.
"""
import itertools
import json
import pathlib
import re
import sys

folder, peers, capability, requests = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
sys.path.insert(0, f"{peers}/python")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

TYPES = {"f16": "*fp16", "bf16": "*bf16"}
LAYER = re.compile(r"attention_forward q=(b?f16):(\d+)x(\d+)x(\d+)x(\d+) k=\1:\2x\3x\4x\5 v=\1:\2x\3x\4x\5( right=0)?$")


@triton.jit
def add_keys(total, highest, result, left, k, v, first, end, rows, factor, D: tl.constexpr, BLOCK_N: tl.constexpr,
             MASKED: tl.constexpr):
    columns = tl.arange(0, BLOCK_N)
    elements = tl.arange(0, D)
    for begin in range(first, end, BLOCK_N):
        begin = tl.multiple_of(begin, BLOCK_N)
        keys = tl.load(k + (begin + columns)[None, :] * D + elements[:, None])
        scores = tl.dot(left, keys)
        if MASKED:
            scores = scores * factor + tl.where(rows[:, None] >= (begin + columns)[None, :], 0, -1e6)
            above = tl.maximum(highest, tl.max(scores, 1))
            scores -= above[:, None]
        else:
            above = tl.maximum(highest, tl.max(scores, 1) * factor)
            scores = scores * factor - above[:, None]
        weights = tl.math.exp2(scores)
        rescale = tl.math.exp2(highest - above)
        total = total * rescale + tl.sum(weights, 1)
        result = result * rescale[:, None]
        values = tl.load(v + (begin + columns)[:, None] * D + elements[None, :])
        result = tl.dot(weights.to(values.dtype), values, result)
        highest = above
    return total, highest, result


@triton.jit
def attention(q, k, v, y, queries, scale, D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr,
              BLOCK_N: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * queries * D
    first = tl.program_id(0) * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    elements = tl.arange(0, D)
    at = rows[:, None] * D + elements[None, :]
    left = tl.load(q + head + at)
    factor = scale * 1.44269504  # log2(e)
    highest = tl.zeros((BLOCK_M,), dtype=tl.float32) - float("inf")
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    result = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    seen_by_all = first if CAUSAL else queries
    total, highest, result = add_keys(total, highest, result, left, k + head, v + head, 0, seen_by_all, rows, factor, D,
                                      BLOCK_N, False)
    if CAUSAL:
        total, highest, result = add_keys(total, highest, result, left, k + head, v + head, first, first + BLOCK_M, rows,
                                          factor, D, BLOCK_N, True)
    tl.store(y + head + at, (result / total[:, None]).to(y.dtype.element_ty))


def launch_of(dtype, images, heads, queries, depth, causal, block_m):
    lines = f"{images}x{heads}x{queries}x{depth}"
    return {"request": f"attention_forward q={dtype}:{lines} k={dtype}:{lines} v={dtype}:{lines}{causal}",
            "integers": [queries], "grid": [queries // block_m, images * heads]}


def compile_layer(number, dtype, images, heads, queries, depth, causal, config):
    block_m, block_n, stages, warps = config
    if queries % block_m or (causal and block_m % block_n):
        return
    constants = {"D": depth, "CAUSAL": bool(causal), "BLOCK_M": block_m, "BLOCK_N": block_n}
    signature = {name: TYPES[dtype] for name in "qkvy"} | {"queries": "i32", "scale": "fp32"}
    signature |= {name: "constexpr" for name in constants}
    source = ASTSource(fn=attention, signature=signature, constexprs=constants,
                       attrs={(i,): [["tt.divisibility", 16]] for i in range(5)})
    name = f"attention_{number}_{block_m}x{block_n}_stages={stages}_warps={warps}"
    try:
        made = triton.compile(source, target=GPUTarget("cuda", capability, 32),
                              options={"num_warps": warps, "num_stages": stages})
    except Exception as error:  # as its autotuner does: a configuration that does not fit is left out
        print(f"{name}: {error}".splitlines()[0], file=sys.stderr)
        return
    (folder / f"{name}.ptx").write_text(made.asm["ptx"])
    (folder / f"{name}.cubin").write_bytes(made.asm["cubin"])
    description = launch_of(dtype, images, heads, queries, depth, causal, block_m)
    (folder / f"{name}.json").write_text(json.dumps({
        "name": name, "entry": made.metadata.name, "operands": list("qkvy"), "has_scale": True,
        "threads": 32 * made.metadata.num_warps,
        "shared_bytes": made.metadata.shared, **description,
        "smaller": launch_of(dtype, 1, 2, 256, depth, causal, block_m)}, indent=1))


configurations = [tuple(map(int, each.split("x"))) for each in sys.argv[5:]]
configurations = configurations or list(itertools.product((64, 128), (32, 64, 128), (2, 3, 4), (4, 8)))
folder.mkdir(parents=True, exist_ok=True)
for number, line in enumerate(pathlib.Path(requests).read_text().splitlines()):
    if not line or line.startswith("#"):
        continue
    match = LAYER.match(line)
    if match is None:
        sys.exit(f"triton_attention.py: {line}: not a layer that it knows")
    dtype, *extents, causal = match.groups()
    for config in configurations:
        compile_layer(number, dtype, *map(int, extents), causal or "", config)
