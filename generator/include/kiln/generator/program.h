// Program: the kernels of one variant and how to launch them, as pure data.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/generator/argument.h"

namespace kiln {

/// A number, or several, that a source leaves open: a variable in constant memory, written once when the kernels are
/// loaded.
struct Extent {
  std::string name;
  std::vector<int64_t> values;
  int bytes = 4;  ///< size of each value: 4 or 8
  bool operator==(const Extent&) const = default;
};

/// Self-contained CUDA C++17, and the values of what it leaves open: sources of many sizes may be the same code.
struct Source {
  Source(std::string code_ = {}, std::vector<Extent> extents_ = {})
      : code(std::move(code_)), extents(std::move(extents_)) {}
  Source(const char* code_) : code(code_) {}

  std::string code;
  std::vector<Extent> extents;
  bool operator==(const Source&) const = default;
};

/// Demands of a launch on the device beyond grid, block and shared memory (CUDA driver API, CUlaunchAttribute).
struct LaunchAttributes {
  /// Blocks that run on neighbouring SMs and reach each other's shared memory, 8 at the most; the grid is rounded up to
  /// multiples. Compute capability 9.0.
  std::array<unsigned, 3> cluster{1, 1, 1};
  /// All blocks run at once and may wait for each other. Only of a persistent launch: how many fit, the device says.
  bool cooperative = false;
  /// May begin before the launch ahead of it in the stream has ended: the kernel says griddepcontrol.wait before it
  /// touches what that one wrote. Compute capability 9.0; without effect elsewhere.
  bool programmatic = false;
  bool operator==(const LaunchAttributes&) const = default;
};

/// Start one kernel. A grid with a zero extent (an empty batch) starts nothing.
struct Launch {
  size_t source = 0;  ///< index into Program::sources
  std::string entry;  ///< an extern "C" __global__ function of that source
  std::array<Count, 3> grid;
  /// The grid's x is cut to the blocks that the device runs at once, by its SMs and the kernel's occupancy: the kernel
  /// goes through the items of the rest in steps of gridDim.x, and is right with any.
  bool persistent = false;
  std::array<unsigned, 3> block{1, 1, 1};
  unsigned dynamic_shared_bytes = 0;  ///< with the kernel's static ones up to Arch::shared_per_block
  LaunchAttributes attributes{};
  std::vector<Argument> arguments;
  bool operator==(const Launch&) const = default;
};

/// Fill part of the workspace with zero bytes.
struct ClearWorkspace {
  int64_t offset = 0;  ///< bytes
  int64_t bytes = 0;
  bool operator==(const ClearWorkspace&) const = default;
};

using Step = std::variant<Launch, ClearWorkspace>;

/// Calls `use` with every launch among `steps`, in order.
template <class Steps, class Use>
void for_each_launch(Steps&& steps, Use use) {
  for (auto& step : steps) {
    using Given = std::conditional_t<std::is_const_v<std::remove_reference_t<decltype(step)>>, const Launch, Launch>;
    std::visit(Match{[&](Given& launch) { use(launch); }, [](const ClearWorkspace&) {}}, step);
  }
}

/// Bytes of the workspace up to the last that one of the steps may touch.
int64_t workspace_end(const std::vector<Step>& steps);

/// The steps that read nothing but weights: the first ones, which fill the front of the workspace. A caller whose
/// weights stay the same runs them once and keeps that memory (Plan::prepare_weights).
struct Preparation {
  size_t steps = 0;
  int64_t bytes = 0;  ///< a multiple of 256, or all of the workspace
  bool operator==(const Preparation&) const = default;
};

/// Everything needed to compile and run one variant. Steps run in order on one stream.
struct Program {
  std::vector<Source> sources;
  std::vector<Step> steps;
  int64_t workspace_bytes = 0;  ///< 256-byte aligned device memory that the caller provides
  Preparation preparation{};
  bool deterministic = true;  ///< bitwise reproducible on one device

  /// Identifies the code of the sources (code_of()), their extents and the launches: programs whose sources differ in
  /// comments or layout have equal digests. `preparation` does not count: it changes neither.
  std::string digest() const;
  /// The same for who has the code of each source.
  std::string digest_with(std::span<const std::string> codes) const;
  bool operator==(const Program&) const = default;
};

}  // namespace kiln
