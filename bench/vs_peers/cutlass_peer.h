// Kernels of CUTLASS on the operands of Kiln's requests: for comparisons, and as kernels that have been proved on
// chips. `scripts/setup --peers` puts CUTLASS's headers into the build folder.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cutlass_arguments.h"
#include "cutlass_source.h"
#include "kiln/checking/device_operands.h"
#include "kiln/device/context.h"
#include "kiln/device/memory.h"
#include "kiln/device/module.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/compile.h"
#include "kiln/store/file_store.h"

namespace kiln::bench {

/// Says why CUTLASS cannot be compiled by `nvrtc`; nothing if it can.
std::optional<std::string> why_no_cutlass(const device::Nvrtc& nvrtc);

/// PTX of the kernel that a CutlassPeer has; the same errors.
std::string cutlass_ptx(const device::Nvrtc& nvrtc, store::FileStore& kernels, const Request& request,
                        const Target& target, const CutlassChoice& choice);

/// A kernel of CUTLASS, compiled and loaded for one request. Runs of one object must not overlap.
class CutlassPeer {
 public:
  /// `products`: PTX is enough for the emulated device; its clock by machine code needs a cubin.
  /// Throws Error(unsupported), with the reason, if the kernel cannot compute the request; Error(compile_failed).
  CutlassPeer(std::shared_ptr<const device::ContextHandle> context, const device::Nvrtc& nvrtc,
              store::FileStore& kernels, const Request& request, const Target& target, const CutlassChoice& choice,
              execution::Products products = execution::Products::ptx);

  /// For checking::Checker and tuner::DeviceTimer. This object must outlive it.
  checking::Checkable checkable();
  /// Makes the parameters of runs with these arguments, which need nothing but the kernel from then on: so that what is
  /// timed and not run (device::TimeOnly) has them.
  void prepare(checking::Checkable::Operands operands, const RunValues& values);

  /// ptxas' report; nothing where there is no cubin.
  std::optional<device::KernelResources> resources() const;
  const CutlassLaunch& launch() const { return launch_; }

 private:
  struct Arguments {
    std::array<cuda_abi::CUdeviceptr, 3> operands{};
    float alpha = 1, beta = 0;
    bool operator==(const Arguments&) const = default;
  };

  Arguments arguments_of(checking::Checkable::Operands operands, const RunValues& values) const;
  void run(cuda_abi::CUstream stream, checking::Checkable::Operands operands, const RunValues& values);
  void make_parameters(const Arguments& arguments);

  std::shared_ptr<const device::ContextHandle> context_;
  CutlassSource source_;
  execution::KernelImage image_;
  device::Module module_;
  device::Function kernel_;
  std::optional<device::Function> adding_;  ///< The second kernel.
  device::Buffer made_;                     ///< A CutlassLaunch, then the parameters.
  device::Buffer semaphores_;               ///< One for each tile where the sum has slices; each run leaves zeros.
  Arguments made_for_;
  device::Buffer slices_;  ///< Sums of slices that a second kernel adds.
  std::vector<std::byte> parameters_;
  CutlassLaunch launch_{};
};

}  // namespace kiln::bench
