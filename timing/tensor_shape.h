// Shapes of the products that tensor instructions compute.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kiln/timing/sass.h"

namespace kiln::timing {

/// Rows, columns and depth: "16816" is m16n8k16, "8816" m8n8k16, "64x256x16" and "8x8x4" say it themselves.
std::array<uint32_t, 3> tensor_shape(const Instruction& instruction);

/// The multiply-adds of the shape.
uint32_t tensor_multiply_adds(const Instruction& instruction);

/// Registers of a lane that the operand in this place spans: D, A, B and C are the places 0 to 3. 1 for others.
uint32_t tensor_registers(const Instruction& instruction, size_t place);

}  // namespace kiln::timing
