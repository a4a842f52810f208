// Kernels that Triton compiled, on the operands of Kiln's requests: for comparisons, and as kernels that have been
// proved on chips. `scripts/setup --peers` puts Triton into the build folder.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kiln/checking/check.h"
#include "kiln/device/context.h"
#include "kiln/device/module.h"
#include "kiln/generator/request.h"

namespace kiln::bench {

/// A request that a kernel of Triton computes, and the launch that does.
struct TritonTask {
  Request request;
  std::vector<int> integers;
  std::array<unsigned, 2> grid{};
};

/// A kernel that a script has written: NAME.ptx, NAME.cubin where there is one, and NAME.json, which says the rest.
/// Parameters: addresses of the operands, integers, the scale of attention where it has one, and scratch memory that
/// none needs.
struct TritonProgram {
  std::string name, ptx, cubin, entry;
  int capability = 0;  ///< As 80; 0 where the script does not say.
  std::vector<std::string> operands;
  unsigned threads = 0, shared_bytes = 0;
  bool has_scale = false;
  TritonTask whole, smaller;  ///< `smaller`: of less work; the same where the script says none.
};

/// All programs of a folder, by name; none where there is no such folder. Throws Error(parse_error) for a NAME.json
/// that describes no program.
std::vector<TritonProgram> triton_programs(const std::filesystem::path& folder);

/// A program, loaded; the program must outlive it. Throws DriverError.
class TritonPeer {
 public:
  TritonPeer(std::shared_ptr<const device::ContextHandle> context, const TritonProgram& program);

  /// The program's `whole` or `smaller`, for checking::Checker and tuner::DeviceTimer. This object must outlive them.
  checking::Checkable checkable(const TritonTask& task) const;

 private:
  void run(const TritonTask& task, cuda_abi::CUstream stream, checking::Checkable::Operands operands,
           const RunValues& values) const;

  const TritonProgram& program_;
  device::Module module_;
  device::Function kernel_;
};

}  // namespace kiln::bench
