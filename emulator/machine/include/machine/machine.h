// The execution core: runs one kernel launch to completion on host threads. Knows nothing of the driver API.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/launch.h"
#include "ptx/load_error.h"

namespace kiln::emulator {

/// A PTX module after parsing: its kernels and global variables. Immutable once loaded; shared by launches.
class Program;

/// Executes every block of the launch. Memory written before a fault stays written, as on hardware.
LaunchOutcome run(const LaunchRequest& request);

struct GlobalVariable {
  std::string name;
  uint64_t address = 0;
  uint64_t bytes = 0;
};

/// Parses, checks and decodes PTX text. Throws LoadError with the line on malformed or unknown PTX.
std::shared_ptr<const Program> load_program(std::string_view ptx);

const Kernel* find_kernel(const Program& program, std::string_view name);  ///< null if absent
const KernelInfo& info(const Kernel& kernel);
const std::vector<GlobalVariable>& global_variables(const Program& program);
RegionGroup variables_of(const std::shared_ptr<const Program>& program);  ///< The memory they have; null without any.
/// The compute capability that its .target names, 10 x major + minor; 0 for a target that is no sm_NN.
int target_capability(const Program& program);

}  // namespace kiln::emulator
