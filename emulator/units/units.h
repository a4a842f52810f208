// The parts of one instruction set's UnitTable, each defined in its own file.
#pragma once

#include "units/unit_table.h"

#ifndef KILN_EMULATOR_ISA
#error "the execution units are compiled with KILN_EMULATOR_ISA set to avx512, avx2 or baseline"
#endif

namespace kiln::emulator::KILN_EMULATOR_ISA {

Handler integer(IntegerOp op, ptx::Type type);
Handler carry(CarryOp op, ptx::Type type);
Handler compare(Compare compare, ptx::Type type, bool flush);
Handler set_pair(Compare compare, ptx::Type type, bool flush);
Handler predicate_logic(IntegerOp op);
Handler pack(uint32_t part_bytes, uint32_t parts);
Handler unpack(uint32_t part_bytes, uint32_t parts);
Handler floating(FloatOp op, ptx::Type type, const FloatTraits& traits);
Handler half(FloatOp op, ptx::Type type, const FloatTraits& traits);
Handler approximate(FloatOp op, ptx::Type type, const FloatTraits& traits);
Handler test(TestOp op, ptx::Type type);
const Instruction* fma_run(Warp& warp, const Instruction* i);
Handler convert(const Conversion& conversion);
int64_t conversion_steps(const Conversion& conversion);
Handler exchange(Exchange op, ptx::Type type);
Handler matrix_product(const MatrixProduct& product);
Handler hardware_product(const MatrixProduct& product);
HandlerPair matrix_load(const MatrixAccess& access);
HandlerPair matrix_store(const MatrixAccess& access);
const Instruction* matrix_transpose(Warp& warp, const Instruction* i);
HandlerPair load(const Access& access);
HandlerPair store(const Access& access);
HandlerPair atomic(const Atomic& atomic);
HandlerPair copy_async(uint32_t shared_address_bytes);

const UnitTable& table();

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
