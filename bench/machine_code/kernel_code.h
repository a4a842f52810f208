// Figures of a kernel's machine code: registers, spills, and the loop that multiplies.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kiln/timing/cubin.h"
#include "kiln/timing/sass.h"

namespace kiln::bench {

/// Instructions between a branch that goes back and its destination, both included. They are counted as they stand:
/// those that a branch within the loop passes over count too.
struct CodeLoop {
  std::map<std::string, uint32_t, std::less<>> opcodes;  ///< Instructions by opcode, without modifiers.

  uint32_t count(std::string_view opcode) const;
  uint32_t instructions() const;
  uint32_t tensor_instructions() const;  ///< HMMA, IMMA, QMMA and the like.
  /// Instructions for each tensor instruction; 0 if there is none.
  double per_product() const;
};

struct KernelCode {
  std::string kernel;
  int registers = 0;                ///< Per thread.
  uint32_t local_instructions = 0;  ///< Loads and stores of local memory, which spills are.
  /// The loop without an inner one that has the most tensor instructions, and of these the most instructions. Empty if
  /// no loop has a tensor instruction.
  CodeLoop main_loop;
};

KernelCode kernel_code(const timing::Sass& sass, const timing::KernelFacts& facts);

}  // namespace kiln::bench
