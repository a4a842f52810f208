// The two sides of a comparison: what can be run on each set of operands.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cudnn_convolution.h"
#include "kiln/device/memory.h"
#include "kiln/plan.h"
#include "lap_timer.h"
#include "operands.h"

namespace kiln::bench {

/// Kiln's plan with its workspace.
class KilnSide {
 public:
  KilnSide(const std::shared_ptr<const device::ContextHandle>& device, Plan plan, const OperandSets& operands);
  const Plan& plan() const { return plan_; }
  void run(cuda_abi::CUstream stream, size_t set) const;

 private:
  Plan plan_;
  std::vector<std::vector<Address>> addresses_;  // of each set
  device::Buffer workspace_;
};

/// One of cuDNN's plans, bound to every set. Runs on the stream of its handle.
class CudnnSide {
 public:
  CudnnSide(const std::shared_ptr<const device::ContextHandle>& device, const CudnnHandle& handle,
            const EngineConfig& config, int64_t workspace_limit, const OperandSets& operands);
  int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  void run(size_t set) const { plan_.execute(packs_[set]); }

 private:
  CudnnPlan plan_;
  device::Buffer workspace_;
  std::vector<VariantPack> packs_;
};

/// A plan that asks for more workspace than is permitted.
class WorkspaceTooLarge : public Error {
 public:
  explicit WorkspaceTooLarge(int64_t bytes);
};

/// Compares outputs with the double-precision reference.
class OutputJudge {
 public:
  OutputJudge(const Request& request, const OperandSets& operands);

  /// Poisons the output of set 0, runs, waits, and takes the output. Throws what the run throws.
  std::vector<std::byte> output_of(OperandSets& operands, const device::Stream& stream,
                                   const std::function<void()>& run) const;
  /// ||output - reference|| / ||reference|| at sampled coordinates.
  double error(const std::vector<std::byte>& output) const;
  /// ||a - b|| / ||b|| over all elements.
  double difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) const;

 private:
  TensorSpec spec_;
  std::vector<std::vector<int64_t>> coordinates_;
  std::vector<double> expected_;
};

}  // namespace kiln::bench
