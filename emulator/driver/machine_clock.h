// The time of a launch by its machine code (timing/), which a module has beside its PTX.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/left_in_l2.h"
#include "kiln/timing/cubin.h"
#include "kiln/timing/disassembler.h"
#include "kiln/timing/time_model.h"
#include "kiln/timing/trace.h"
#include "machine/machine.h"

namespace kiln::emulator {

/// A cubin, and what was found out about it. Thread-safe.
class MachineCode {
 public:
  /// Throws kiln::Error if the bytes are no cubin.
  explicit MachineCode(std::string cubin);

  /// Facts of a kernel; null if there is none of that name.
  const timing::KernelFacts* facts(std::string_view kernel) const;

 private:
  friend class MachineClock;

  const std::string cubin_;
  const std::vector<timing::KernelFacts> kernels_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::optional<std::string> text_;
  mutable std::map<std::string, timing::Sass, std::less<>> sass_;
  mutable std::map<std::string, timing::ModelledTime> times_;  // by launch, where no data decided
};

struct MachineLaunch {
  std::string_view kernel;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;
  uint64_t traced_instructions = 0;              ///< As many are recorded, of one SM.
  const LeftInL2& in_l2;                         ///< By the launch before.
  const std::vector<GlobalVariable>& variables;  ///< The module's, with their addresses.
};

/// The time of a launch, or why machine code does not tell it.
struct MachineTime {
  std::optional<timing::ModelledTime> time;
  std::string refusal;
  std::optional<timing::ReplayTrace> trace = std::nullopt;  ///< If one was asked for.
  LeftInL2 in_l2 = {};                                      ///< For the launch that comes next.
};

/// Thread-safe.
class MachineClock {
 public:
  /// Throws kiln::Error if nvdisasm is not found.
  explicit MachineClock(const timing::DisassemblerOptions& options) : disassembler_(options) {}

  /// The time on `card` of a launch that is about to run: data that decide branches or addresses are read from
  /// `memory`, and without `holds_data` are a refusal. The same launch takes the same time wherever its operands lie:
  /// they are timed as if they were allocated one after the other, in the order of the parameters.
  MachineTime time(const MachineCode& code, const MachineLaunch& launch, const timing::Card& card,
                   const RegionTable& memory, bool holds_data);

 private:
  const timing::Sass& sass_of(const MachineCode& code, std::string_view kernel);

  timing::Disassembler disassembler_;
};

}  // namespace kiln::emulator
