// The trusted program of a request with user code on a device, part by part; see trusted_program().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kiln/device/context.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "kiln/execution/executable.h"
#include "kiln/generator/run_values.h"
#include "kiln/reference/prologue_slack.h"

namespace kiln::checking {

/// The operands of the program in memory of a device. Its steps are the prologue, if the code has one, the operation,
/// and the bounds of the epilogue. Not thread-safe. Waits for the device.
class TrustedRun {
 public:
  using Memory = std::vector<std::byte>;

  /// `contents`: what each of the operands `names` holds. `n`: the batch.
  TrustedRun(std::shared_ptr<const device::ContextHandle> context, const execution::Executable& trusted,
             std::vector<std::string> names, const std::vector<Memory>& contents, int64_t n);

  /// The prologue and the operation, on what the operands hold.
  void run_to_result(const RunValues& values) { run(0, trusted_.steps() - 1, values); }
  void run_bounds(const RunValues& values) { run(trusted_.steps() - 1, 1, values); }

  /// How far the operand `result` may move, in logical order, infinite where that is not known. There is a prologue.
  /// The operands that the call reads, and what the operation writes, hold something else afterwards.
  std::vector<float> slack(const reference::SlackCall& call, const std::string& result);

  void put(const std::string& name, const Memory& content);
  Memory get(const std::string& name) const;

 private:
  size_t place_of(const std::string& name) const;
  void run(size_t first, size_t count, const RunValues& values);

  std::shared_ptr<const device::ContextHandle> context_;
  const execution::Executable& trusted_;
  std::vector<std::string> names_;
  int64_t n_;
  std::vector<device::Buffer> buffers_;
  device::Buffer workspace_;
  device::Stream stream_;
};

/// The elements of a packed f32 operand.
std::vector<float> floats_of(const std::vector<std::byte>& bytes);

}  // namespace kiln::checking
