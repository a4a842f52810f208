// The two sides of a comparison: what can be run on each set of operands.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cudnn_graph.h"
#include "kiln/device/memory.h"
#include "kiln/plan.h"
#include "lap_timer.h"
#include "operands.h"

namespace kiln::bench {

/// Kiln's plan with its workspace.
class KilnSide {
 public:
  KilnSide(const std::shared_ptr<const device::ContextHandle>& device, const Plan& plan, const OperandSets& operands);
  const Plan& plan() const { return plan_; }
  void run(cuda_abi::CUstream stream, size_t set) const;

 private:
  Plan plan_;
  std::vector<std::vector<Address>> addresses_;  // of each set
  device::Buffer workspace_;
};

/// The bounds of the epilogue stage `clip` on both sides: those of ReLU6.
inline constexpr float clip_lo = 0, clip_hi = 6;

/// One of cuDNN's ways, bound to every set. Runs on the stream of its handle.
class CudnnSide {
 public:
  virtual ~CudnnSide() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual void run(size_t set) const = 0;
};

/// A graph's plan with what must be bound to it.
struct GraphStep {
  const std::vector<Operations::Bound>& bound;
  CudnnPlan plan;
};

/// Plans of graphs, run one after the other in one workspace.
class GraphSide : public CudnnSide {
 public:
  /// `owner`: of what the steps refer to; kept as long as the plans. `handle`: that they run with. Throws
  /// WorkspaceTooLarge, CudnnError, DriverError.
  GraphSide(const std::shared_ptr<const device::ContextHandle>& device, const CudnnHandle& handle,
            std::shared_ptr<const void> owner, std::vector<GraphStep> steps, int64_t workspace_limit,
            const OperandSets& operands);
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  void run(size_t set) const override;

 private:
  const CudnnHandle& handle_;
  std::shared_ptr<const void> owner_;
  std::vector<GraphStep> steps_;
  int64_t workspace_bytes_ = 0;
  device::Buffer workspace_;
  std::vector<std::vector<VariantPack>> packs_;  // of each set, for each plan
};

/// A call without workspace.
class CallSide : public CudnnSide {
 public:
  explicit CallSide(std::function<void(size_t set)> run) : run_(std::move(run)) {}
  int64_t workspace_bytes() const override { return 0; }
  void run(size_t set) const override { run_(set); }

 private:
  std::function<void(size_t set)> run_;
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

  /// Poisons the output of set 0, runs, waits, and gives ||output - reference|| / ||reference|| at sampled coordinates.
  /// Throws what the run throws.
  double error_of(const OperandSets& operands, const device::Stream& stream, const std::function<void()>& run) const;
  /// ||a - b|| / ||b|| over all elements.
  double difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) const;

 private:
  TensorSpec spec_;
  std::vector<std::vector<int64_t>> coordinates_;
  std::vector<double> expected_;
};

}  // namespace kiln::bench
