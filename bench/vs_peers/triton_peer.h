// Kernels that Triton compiled, on the operands of Kiln's requests: for comparisons, and as kernels that have been
// proved on chips. `scripts/setup --peers` puts Triton into the build folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kiln/checking/check.h"
#include "kiln/device/context.h"
#include "kiln/device/module.h"
#include "kiln/generator/request.h"

namespace kiln::bench {

/// A kernel that a script has written: NAME.json, NAME.ptx, and NAME.cubin where there is one. The description is JSON:
/// the request that the kernel computes, and the launch.
struct TritonProgram {
  std::string name, description, ptx, cubin;
};

/// All programs of a folder, by name; none where there is no such folder.
std::vector<TritonProgram> triton_programs(const std::filesystem::path& folder);

/// A program, loaded. Parameters: addresses of the operands, integers, the scale of attention where it has one, and
/// scratch memory that none needs. Throws Error(parse_error) for a description that is none, DriverError.
class TritonPeer {
 public:
  TritonPeer(std::shared_ptr<const device::ContextHandle> context, const TritonProgram& program);

  const Request& request() const { return whole_.request; }
  /// A request of less work that the same kernel computes; the same one where the description has none.
  const Request& smaller() const { return smaller_.request; }

  /// For checking::Checker and tuner::DeviceTimer. This object must outlive them.
  checking::Checkable checkable() { return checkable_of(whole_); }
  checking::Checkable smaller_checkable() { return checkable_of(smaller_); }

 private:
  /// A request, and the launch that computes it.
  struct Task {
    Request request;
    std::vector<int> integers;
    unsigned grid[2];
  };

  checking::Checkable checkable_of(const Task& task);
  void run(const Task& task, cuda_abi::CUstream stream, checking::Checkable::Operands operands,
           const RunValues& values) const;

  std::vector<std::string> operands_;
  unsigned threads_ = 0, shared_bytes_ = 0;
  bool has_scale_ = false;
  Task whole_, smaller_;
  device::Module module_;
  device::Function kernel_;
};

}  // namespace kiln::bench
