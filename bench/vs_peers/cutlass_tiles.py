#!/usr/bin/env python3
"""Lists the tiles that CUTLASS's own generator makes kernels of.

usage: cutlass_tiles.py PYTHON_PATH FILE

PYTHON_PATH is where the package cutlass_library is. Writes to FILE a line for each kernel: operation, types of the
factors and of the sums, compute capability, then the extents of block, warp and instruction (M N K each) and the
stages. Only kernels of dense operands with 16-byte accesses and sums in f32 or s32.
"""
import sys

sys.path.insert(0, sys.argv[1])

from cutlass_library import generator  # noqa: E402
from cutlass_library.library import ConvKind, DataTypeNames, GemmKind, IteratorAlgorithm, OperationKind  # noqa: E402

OPERATIONS = {ConvKind.Fprop: "conv_forward", ConvKind.Dgrad: "conv_backward_data", ConvKind.Wgrad: "conv_backward_filter"}
BITS = {"f16": 16, "bf16": 16, "f32": 32, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8}


class Listed:
    """Stands for the generator's manifest."""

    def __init__(self):
        self.lines = set()
        self.kernel_filter = "all"  # all alignments

    def append(self, operation):
        is_convolution = operation.operation_kind == OperationKind.Conv2d
        if not is_convolution and operation.operation_kind != OperationKind.Gemm:
            return
        if is_convolution and operation.iterator_algorithm != IteratorAlgorithm.Optimized:
            return
        if not is_convolution and operation.gemm_kind != GemmKind.Universal:  # sparse, or complex
            return
        tile = operation.tile_description
        instruction = tile.math_instruction
        factors, sums = (DataTypeNames[t] for t in (operation.A.element, instruction.element_accumulator))
        if operation.A.alignment * BITS.get(factors, 0) != 128 or sums not in ("f32", "s32"):
            return
        if list(instruction.instruction_shape) == [1, 1, 1] or instruction.opcode_class.name != "TensorOp":
            return
        name = OPERATIONS.get(operation.conv_kind) if is_convolution else "gemm"
        block, counts = tile.threadblock_shape, tile.warp_count
        warp = [b // c for b, c in zip(block, counts)]
        extents = [*block, *warp, *instruction.instruction_shape, tile.stages]
        self.lines.add((name, factors, sums, tile.minimum_compute_capability, *extents))


listed = Listed()
for generate in (generator.GenerateSM75, generator.GenerateSM80, generator.GenerateSM89):
    generate(listed, "13.0")
with open(sys.argv[2], "w", encoding="utf-8") as out:
    for line in sorted(listed.lines):
        print(*line, file=out)
