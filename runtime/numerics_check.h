// KILN_CHECK_NUMERICS: NaN and infinities in the operands and results of calls.
#pragma once

#include <cuda_abi/driver.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "kiln/base/environment.h"

namespace kiln {

struct LoadedPlan;

/// Looks at tensors on the host, and waits for the stream of each call: for finding where a NaN comes from.
/// Thread-safe.
class NumericsCheck {
 public:
  /// `announce`: says what is found, with NumericsPolicy::warn; plans may outlive the Context.
  NumericsCheck(NumericsPolicy policy, std::function<void(const std::string&)> announce)
      : policy_(policy), announce_(std::move(announce)) {}

  /// Looks at what a run of `plan` with batch `n` is about to read, or has written. `operands`: addresses in the order
  /// of the request. Throws Error(not_finite) with NumericsPolicy::error, and what the driver reports.
  void look_at_operands(const LoadedPlan& plan, cuda_abi::CUstream stream,
                        std::span<const cuda_abi::CUdeviceptr> operands, int64_t n);
  void look_at_results(const LoadedPlan& plan, cuda_abi::CUstream stream,
                       std::span<const cuda_abi::CUdeviceptr> operands, int64_t n);

 private:
  void look(const LoadedPlan& plan, cuda_abi::CUstream stream, std::span<const cuda_abi::CUdeviceptr> operands,
            int64_t n, bool at_results);
  void tell(const std::string& request, const std::string& found);
  /// Whether this was not said before.
  bool is_new(const std::string& what);

  const NumericsPolicy policy_;
  const std::function<void(const std::string&)> announce_;
  std::mutex mutex_;
  std::set<std::string> said_;
};

}  // namespace kiln
