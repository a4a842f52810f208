// A loaded module: its text, its variables in memory, and the code of its kernels.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.h"
#include "units/unit_table.h"

namespace kiln::emulator {

class Program {
 public:
  std::string text;  // what source positions point into
  int target_capability = 0;
  std::deque<Kernel> kernels;
  std::vector<GlobalVariable> variables;
  std::vector<Region> regions;
  std::span<const std::byte> constants;  // in `memory`
  std::shared_ptr<std::byte[]> memory;   // of the variables
};

/// load_program() for given execution units, one of unit_tables(); the other overload takes the best.
/// `tensor_hardware`: MatrixProduct::hardware of its matrix products.
std::shared_ptr<const Program> load_program(std::string_view ptx, const UnitTable& units, int tensor_hardware = 0);

}  // namespace kiln::emulator
