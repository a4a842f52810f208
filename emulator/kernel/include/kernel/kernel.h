// A decoded kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/dim3.h"
#include "kernel/instruction.h"
#include "kernel/value_flow.h"
#include "memory/region_table.h"

namespace kiln::emulator {

struct ParameterSlot {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

/// Static facts of a kernel.
struct KernelInfo {
  std::string name;
  std::vector<ParameterSlot> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;            ///< per thread
  uint32_t max_threads = 0;            ///< from .maxntid or .reqntid, 0 if absent
  std::optional<Dim3> required_block;  ///< from .reqntid
  bool needs_cluster = false;          ///< cannot be launched here
  uint32_t registers_estimate = 0;     ///< 32-bit registers live at once, an estimate: PTX has no allocation
};

/// One entry point of a program.
class Kernel {
 public:
  KernelInfo info;
  Code code;
  ValueFlow values;
  /// The program's variables as valid addresses, sorted.
  std::span<const Region> variables;
  /// Where those of state space .const are.
  std::span<const std::byte> constants;
};

}  // namespace kiln::emulator
