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

/// The use that a run makes of an operand's memory.
enum class OperandRole {
  input,    ///< Read.
  output,   ///< Written; the old content does not matter.
  updated,  ///< Read, then written: running statistics, an output that is blended with its old content.
};

/// An operand of Plan::run(), which takes its address.
struct PlanOperand {
  std::string name;  ///< "x", "w", "y", "epilogue.gate": the name in docs/request-syntax.md.
  OperandRole role = OperandRole::input;
  TensorSpec spec;         ///< With n=? the spec for the largest batch of the bucket.
  bool has_batch = false;  ///< With n=?: the first extent is the batch, which each run gives.
};

/// An integer of 64 bits that an operation takes, such as a seed.
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
  /// The operands whose addresses run() takes, in this order.
  std::vector<PlanOperand> operands() const;
  /// "conv_implicit_gemm BLOCK_M=64,..."
  std::string variant() const;
  /// The origin of the choice, for people: "measured on this device", "estimate", ...
  const std::string& source() const;
  /// Whether it is of an open kernel, which serves until the request's own plan is made (FirstCall::at_once).
  bool is_open() const;
  /// Whether Context::plan() gives another one for the request by now: the request's own in place of an open kernel's,
  /// a better one that tuning found, or one that is made anew because the Context gave this one up. This one stays as
  /// it is.
  bool is_superseded() const;
  /// The digest of the compiled program, which is stored with times. Equal kernels and launches have equal digests.
  const std::string& program() const;
  /// Bytes of 256-byte aligned device memory that run() needs. Runs that overlap in time need a workspace each.
  int64_t workspace_bytes() const;
  /// Whether equal inputs give bitwise equal outputs.
  bool deterministic() const;
  /// Bytes of workspace_bytes() whose contents depend only on the weights: Winograd's transformed filters. A caller
  /// whose weights stay the same gives prepare_weights() that much memory, once. 0: there is nothing to prepare.
  int64_t prepared_bytes() const;
  /// Bytes of workspace that run_prepared() needs.
  int64_t prepared_workspace_bytes() const { return workspace_bytes() - prepared_bytes(); }

  /// The values of a run: usual_values(request()), with the given ones in place. Names are `alpha`, `beta`, `clip_lo`,
  /// `clip_hi`, and the operation's numbers and integers of docs/request-syntax.md. Throws Error(invalid_argument) for
  /// a name that the operation does not know, and for a name given twice.
  RunValues values(std::span<const NamedScalar> numbers, std::span<const NamedInteger> integers = {}) const;
  RunValues values(std::initializer_list<NamedScalar> numbers,
                   std::initializer_list<NamedInteger> integers = {}) const {
    return values(std::span(numbers.begin(), numbers.size()), std::span(integers.begin(), integers.size()));
  }

  /// Enqueues the layer on `stream` and returns without waiting. Allocates nothing, looks nothing up and takes no lock,
  /// so it suits loops and CUDA graphs.
  ///
  /// `operands`: the addresses of operands(), in their order (x, w, y, then bias and residual if the epilogue has them,
  /// or user code's tensors by name). An output must share no element with another operand, unless the operation's call
  /// allows it. The operation's call checks this; run() does not. `values`: made by values(); in a RunValues{} the
  /// numbers of the operation are 0.
  ///
  /// Thread-safe. Throws Error(driver_error) if the launch is refused. Throws Error(invalid_argument), nothing
  /// enqueued, for
  /// - a wrong number of operands;
  /// - an address or workspace that is null, misaligned, of host memory that the device does not reach, or of an
  ///   operand that extends beyond the end of its allocation of device memory;
  /// - an empty range to clip to, a value outside its class, a number that the operation cannot work with
  ///   (docs/request-syntax.md), a batch outside the bucket.
  void run(Stream stream, std::initializer_list<Address> operands, void* workspace = nullptr,
           const RunValues& values = {}) const {
    run(stream, std::span<const Address>(operands.begin(), operands.size()), workspace, values);
  }
  void run(Stream stream, std::span<const Address> operands, void* workspace = nullptr,
           const RunValues& values = {}) const;

  /// Enqueues the work that depends only on the weights, and returns without waiting. Does nothing if prepared_bytes()
  /// is 0.
  ///
  /// `prepared`: prepared_bytes() of 256-byte aligned device memory. Its contents serve this plan only, and only until
  /// the weights change. `operands`: as for run(); operands other than weights may be null. Throws as run().
  /// Thread-safe.
  void prepare_weights(Stream stream, std::initializer_list<Address> operands, void* prepared) const {
    prepare_weights(stream, std::span<const Address>(operands.begin(), operands.size()), prepared);
  }
  void prepare_weights(Stream stream, std::span<const Address> operands, void* prepared) const;
  /// Enqueues the layer without the work of prepare_weights(). `prepared`: the memory that prepare_weights() filled,
  /// earlier on this stream or completely. `workspace`: prepared_workspace_bytes(). Runs that overlap in time need a
  /// workspace each, and may share `prepared`. `operands`: all of them; the weights are checked and not read. Throws as
  /// run(). Thread-safe.
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
