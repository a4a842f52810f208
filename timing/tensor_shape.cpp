#include "tensor_shape.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace kiln::timing {
namespace {

// "64x256x16"; without one, the numbers are 0.
std::array<uint32_t, 3> extents_of(const std::string& text) {
  std::array<uint32_t, 3> extents{};
  if (std::sscanf(text.c_str(), "%ux%ux%u", &extents[0], &extents[1], &extents[2]) != 3) return {};
  return extents;
}

// Bits of an element of A and of B.
uint32_t element_bits(const Instruction& instruction) {
  const std::string& name = instruction.opcode;
  if (name == "DMMA") return 64;
  if (name == "BMMA") return 1;
  if (name == "QMMA") return 8;
  if (name == "IMMA") return instruction.has("S4") || instruction.has("U4") ? 4 : 8;
  return instruction.has("TF32") ? 32 : 16;
}

}  // namespace

std::array<uint32_t, 3> tensor_shape(const Instruction& instruction) {
  for (const std::string& text : instruction.modifiers) {
    const std::array<uint32_t, 3> extents = extents_of(text);
    if (extents[0] != 0) return extents;
    const uint32_t rows = text.starts_with("168") ? 16 : text.starts_with("88") ? 8 : 0;
    uint32_t depth = 0;
    if (rows != 0 && std::sscanf(text.c_str() + (rows == 16 ? 3 : 2), "%u", &depth) == 1) return {rows, 8, depth};
  }
  return {16, 8, 16};
}

uint32_t tensor_multiply_adds(const Instruction& instruction) {
  const auto [m, n, k] = tensor_shape(instruction);
  return m * n * k;
}

// A has m k elements, B k n, C and D m n, in the lanes of a warp, or of the four of a warpgroup.
uint32_t tensor_registers(const Instruction& instruction, size_t place) {
  const auto [m, n, k] = tensor_shape(instruction);
  const uint32_t lanes = instruction.opcode.ends_with("GMMA") ? 128 : 32;
  const bool of_sums = place == 0 || place == 3;
  const uint32_t sum_bits = instruction.opcode == "DMMA" ? 64 : instruction.has("F16") ? 16 : 32;
  const uint32_t elements = of_sums ? m * n : place == 1 ? m * k : place == 2 ? k * n : 0;
  const uint32_t kept = place == 1 && instruction.has("SP") ? 2 : 1;  // half of the elements of a sparse A
  return std::max(1U, elements * (of_sums ? sum_bits : element_bits(instruction)) / 32 / lanes / kept);
}

}  // namespace kiln::timing
