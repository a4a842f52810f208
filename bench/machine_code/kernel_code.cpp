#include "kernel_code.h"

#include <algorithm>
#include <vector>

namespace kiln::bench {
namespace {

bool is_tensor(std::string_view opcode) {
  return opcode.ends_with("MMA");
}

// Indices of instructions, both included.
struct Range {
  uint32_t first, last;

  bool contains(const Range& other) const { return first <= other.first && other.last <= last; }
};

CodeLoop loop_of(const timing::Sass& sass, const Range& range) {
  CodeLoop loop;
  for (uint32_t i = range.first; i <= range.last; ++i) ++loop.opcodes[sass.instructions[i].opcode];
  return loop;
}

// Loops that have tensor instructions.
std::vector<Range> product_loops(const timing::Sass& sass) {
  std::vector<Range> found;
  for (uint32_t i = 0; i < sass.instructions.size(); ++i) {
    const timing::Instruction& instruction = sass.instructions[i];
    if (instruction.opcode != "BRA") continue;
    for (const timing::Operand& operand : instruction.operands) {
      if (operand.kind != timing::Operand::Kind::label || operand.value > instruction.address) continue;
      const Range range{sass.index_of(operand.value), i};
      if (loop_of(sass, range).tensor_instructions() > 0) found.push_back(range);
    }
  }
  return found;
}

}  // namespace

uint32_t CodeLoop::count(std::string_view opcode) const {
  const auto found = opcodes.find(opcode);
  return found == opcodes.end() ? 0 : found->second;
}

uint32_t CodeLoop::instructions() const {
  uint32_t sum = 0;
  for (const auto& [opcode, count] : opcodes) sum += count;
  return sum;
}

uint32_t CodeLoop::tensor_instructions() const {
  uint32_t sum = 0;
  for (const auto& [opcode, count] : opcodes) sum += is_tensor(opcode) ? count : 0;
  return sum;
}

double CodeLoop::per_product() const {
  const uint32_t products = tensor_instructions();
  return products == 0 ? 0 : static_cast<double>(instructions()) / products;
}

KernelCode kernel_code(const timing::Sass& sass, const timing::KernelFacts& facts) {
  KernelCode code;
  code.kernel = facts.name;
  code.registers = facts.registers;
  code.local_instructions = static_cast<uint32_t>(
      std::count_if(sass.instructions.begin(), sass.instructions.end(), [](const timing::Instruction& instruction) {
        return instruction.opcode == "LDL" || instruction.opcode == "STL";
      }));
  const std::vector<Range> loops = product_loops(sass);
  for (const Range& range : loops) {
    const bool has_inner = std::any_of(loops.begin(), loops.end(), [&](const Range& other) {
      return range.contains(other) && !other.contains(range);
    });
    if (has_inner) continue;
    CodeLoop loop = loop_of(sass, range);
    const auto weight = [](const CodeLoop& l) { return std::pair(l.tensor_instructions(), l.instructions()); };
    if (weight(loop) > weight(code.main_loop)) code.main_loop = std::move(loop);
  }
  return code;
}

}  // namespace kiln::bench
