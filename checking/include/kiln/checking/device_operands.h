// DeviceOperands: what a request is run on where it is checked or timed.
#pragma once

#include <cuda_abi/driver.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/checking/guarded_buffer.h"
#include "kiln/device/context.h"
#include "kiln/execution/executable.h"
#include "kiln/generator/request.h"
#include "kiln/generator/run_values.h"
#include "kiln/reference/fill.h"

namespace kiln::checking {

/// Anything that computes a request as Executable::run() does.
struct Checkable {
  using Operands = std::span<const cuda_abi::CUdeviceptr>;

  std::function<void(cuda_abi::CUstream stream, Operands operands, const RunValues& values, int64_t n,
                     cuda_abi::CUdeviceptr workspace)>
      run;
  int64_t workspace_bytes = 0;
  /// Does run() in two parts, in one workspace: the steps that depend on the weights alone, and the rest.
  std::function<void(cuda_abi::CUstream stream, Operands operands, cuda_abi::CUdeviceptr workspace)> prepare;
  decltype(run) run_prepared;

  /// `variant` must outlive it.
  Checkable(const execution::Executable& variant);  // NOLINT(google-explicit-constructor)
  /// Wraps a function that prepares nothing from weights alone.
  Checkable(decltype(run) function, int64_t workspace)
      : run(std::move(function)), workspace_bytes(workspace), prepare([](auto&&...) {}), run_prepared(run) {}
};

/// Contents of an operand in host memory, as they are or are to be.
using Memory = std::vector<std::byte>;

/// Contents of each operand of `request` before a call: inputs are filled, the others are NaN everywhere.
std::vector<Memory> contents_of(const Request& request, reference::Values values, uint64_t seed);

/// The operands of one request on a device, each between red zones, and the values of its calls. Not thread-safe.
class DeviceOperands {
 public:
  struct One {
    std::string name;
    TensorSpec spec;
    GuardedBuffer device;
    bool is_written;
    bool is_batched;  ///< Calls of a dynamic request cover as much of dimension 0 as their batch is.

    /// Extent of dimension 0 that a call of batch `n` covers.
    int64_t first_extent(int64_t n) const { return is_batched ? n : spec.extents.front(); }
  };

  /// Throws DriverError(out_of_memory) if they do not fit. For checks operands are aligned_no_better than the request
  /// says. Times are taken of operands as_allocated, but for those whose alignment is below the default: these lie as
  /// the request says there, too.
  DeviceOperands(std::shared_ptr<const device::ContextHandle> context, Request request,
                 Placement placement = Placement::aligned_no_better);

  const std::vector<One>& all() const { return all_; }
  const Request& request() const { return request_; }
  /// No stage of the blend or epilogue is without effect.
  const RunValues& values() const { return values_; }

  /// Moves them; upload() with inputs comes before the next run then.
  void place(Placement placement);

  /// Copies contents_of() the request to the device. Without `inputs` only to what is written; with them the red zones
  /// are made anew, too.
  void upload(const std::vector<Memory>& contents, bool inputs, cuda_abi::CUstream stream);

  /// Enqueues what `variant` makes of constant weights, once for all runs in this workspace; nothing for others.
  void prepare(const Checkable& variant, cuda_abi::CUdeviceptr workspace, cuda_abi::CUstream stream) const;
  /// Enqueues one run of `variant` for a batch of `n`, after prepare(). `workspace`: of Checkable::workspace_bytes.
  void run(const Checkable& variant, int64_t n, cuda_abi::CUdeviceptr workspace, cuda_abi::CUstream stream) const;

 private:
  std::vector<cuda_abi::CUdeviceptr> addresses() const;

  std::shared_ptr<const device::ContextHandle> context_;
  Request request_;
  RunValues values_;
  std::vector<One> all_;
};

}  // namespace kiln::checking
