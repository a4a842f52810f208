// Plan: a variant compiled and loaded, ready to be enqueued again and again.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/epilogue.h"
#include "kiln/generator/request.h"
#include "kiln/generator/run_values.h"
#include "kiln/tensor.h"

namespace kiln {

/// A CUstream or cudaStream_t; null is the default stream.
using Stream = void*;

/// A device address, from a pointer or a Tensor.
struct Address {
  const void* pointer = nullptr;

  Address() = default;
  Address(const void* address) : pointer(address) {}         // NOLINT(google-explicit-constructor)
  Address(const Tensor& tensor) : pointer(tensor.data()) {}  // NOLINT(google-explicit-constructor)
};

/// What a run does with an operand's memory.
enum class OperandRole {
  input,    ///< Read.
  output,   ///< Written; what it held does not matter.
  updated,  ///< Read, then written: running statistics, an output that is blended with what it held.
};

/// What an address of Plan::run() stands for.
struct PlanOperand {
  std::string name;  ///< "x", "w", "y", "epilogue.gate": as docs/request-syntax.md has it.
  OperandRole role = OperandRole::input;
  TensorSpec spec;         ///< With n=? that of the top of the bucket.
  bool has_batch = false;  ///< With n=?: its first extent is the batch, which each run brings.
};

/// An integer of 64 bits that an operation takes: a seed.
struct NamedInteger {
  std::string_view name;
  uint64_t value = 0;
};

struct LoadedPlan;

/// A shared handle to a compiled and loaded variant. Copies are cheap; valid while its Context lives. Moving copies, so
/// there is no empty Plan.
class Plan {
 public:
  /// Throws Error(invalid_argument) for null: Context::plan() makes plans.
  explicit Plan(std::shared_ptr<const LoadedPlan> loaded);
  Plan(const Plan&) = default;
  Plan& operator=(const Plan&) = default;

  const Request& request() const;
  /// What run() takes the addresses of, in that order.
  std::vector<PlanOperand> operands() const;
  /// "conv_implicit_gemm BLOCK_M=64,..."
  std::string variant() const;
  /// Where the choice comes from, for people: "measured on this device", "estimate", ...
  const std::string& source() const;
  /// The digest of what was compiled, as it is stored with times: equal kernels and launches have equal ones.
  const std::string& program() const;
  /// Bytes of 256-byte aligned device memory that run() needs; calls that overlap in time need one each.
  int64_t workspace_bytes() const;
  /// Equal inputs give bitwise equal outputs.
  bool deterministic() const;
  /// The part of workspace_bytes() that depends only on the weights: Winograd's transformed filters. A caller whose
  /// weights stay the same gives prepare_weights() that much memory of its own, once. 0: there is nothing to prepare.
  int64_t prepared_bytes() const;
  /// Bytes of workspace that run_prepared() needs.
  int64_t prepared_workspace_bytes() const { return workspace_bytes() - prepared_bytes(); }

  /// usual_values(request()), but for what is given: `alpha`, `beta`, `clip_lo`, `clip_hi` and the numbers and integers
  /// of the operation by the names that docs/request-syntax.md has for them. Throws Error(invalid_argument) for a name
  /// that the operation does not know, or one that is given twice.
  RunValues values(std::span<const NamedScalar> numbers, std::span<const NamedInteger> integers = {}) const;
  RunValues values(std::initializer_list<NamedScalar> numbers,
                   std::initializer_list<NamedInteger> integers = {}) const {
    return values(std::span(numbers.begin(), numbers.size()), std::span(integers.begin(), integers.size()));
  }

  /// Enqueues the layer on `stream` and returns. No allocation, no lookup, no lock: fit for loops and CUDA graphs.
  ///
  /// `operands`: the addresses of operands(), in their order (x, w, y, then bias and residual where the epilogue has
  /// them, or user code's tensors by name). An output must share no element with another operand, unless the
  /// operation's call allows it; the call checks that, run() does not. `values`: values() makes them; in a RunValues{}
  /// the numbers of the operation are 0. Throws Error(invalid_argument), nothing enqueued: a wrong number of operands,
  /// a null or misaligned address or workspace, one of host memory that the device does not reach, one that reaches
  /// beyond the end of its allocation of device memory, an empty range to clip to, a value outside its class, a number
  /// that the operation cannot work with (docs/request-syntax.md), a batch outside the bucket; Error(driver_error) if
  /// the launch is refused. Thread-safe.
  void run(Stream stream, std::initializer_list<Address> operands, void* workspace = nullptr,
           const RunValues& values = {}) const {
    run(stream, std::span<const Address>(operands.begin(), operands.size()), workspace, values);
  }
  void run(Stream stream, std::span<const Address> operands, void* workspace = nullptr,
           const RunValues& values = {}) const;

  /// Enqueues the work that depends only on the weights, and returns; nothing if prepared_bytes() is 0.
  ///
  /// `prepared`: prepared_bytes() of 256-byte aligned device memory. Its contents are for this plan only, and for as
  /// long as the weights stay as they are. `operands`: as run() takes them; those that are not weights may be null.
  /// Throws as run() does. Thread-safe.
  void prepare_weights(Stream stream, std::initializer_list<Address> operands, void* prepared) const {
    prepare_weights(stream, std::span<const Address>(operands.begin(), operands.size()), prepared);
  }
  void prepare_weights(Stream stream, std::span<const Address> operands, void* prepared) const;
  /// run() without that work: `prepared` holds what prepare_weights() made, which was enqueued before on this stream or
  /// is otherwise complete. `workspace`: prepared_workspace_bytes(); runs that overlap in time need one each and may
  /// share `prepared`. `operands`: all of them; the weights are checked and not read.
  void run_prepared(Stream stream, std::initializer_list<Address> operands, const void* prepared,
                    void* workspace = nullptr, const RunValues& values = {}) const {
    run_prepared(stream, std::span<const Address>(operands.begin(), operands.size()), prepared, workspace, values);
  }
  void run_prepared(Stream stream, std::span<const Address> operands, const void* prepared, void* workspace = nullptr,
                    const RunValues& values = {}) const;

 private:
  std::shared_ptr<const LoadedPlan> loaded_;
};

}  // namespace kiln
