// Plan: a variant compiled and loaded, ready to be enqueued again and again.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "kiln/generator/expression.h"
#include "kiln/generator/request.h"
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

/// The values of a call that are not part of its request.
struct RunValues {
  float alpha = 1;  ///< Must be what the request's class says: 1, or 0, or anything.
  float beta = 0;   ///< As alpha.
  float clip_lo = -std::numeric_limits<float>::infinity();  ///< For the epilogue stage `clip`.
  float clip_hi = std::numeric_limits<float>::infinity();
  std::array<float, Expression::max_scalars> user{};  ///< The scalars of user code, in its order.
  /// The numbers of the operation besides (a slope, an epsilon; docs/request-syntax.md lists them), in its order.
  std::array<float, max_operation_scalars> scalars{};
  /// Its integers (a seed), in its order.
  std::array<uint64_t, max_operation_integers> integers{};
  int64_t n = -1;  ///< The batch of a request with n=?; -1 otherwise.
};

struct LoadedPlan;

/// A shared handle to a compiled and loaded variant. Copies are cheap; valid while its Context lives.
class Plan {
 public:
  explicit Plan(std::shared_ptr<const LoadedPlan> loaded) : loaded_(std::move(loaded)) {}

  const Request& request() const;
  /// "conv_implicit_gemm BLOCK_M=64,..."
  std::string variant() const;
  /// Where the choice comes from, for people: "measured on this device", "estimate", ...
  const std::string& source() const;
  /// Bytes of 256-byte aligned device memory that run() needs; calls that overlap in time need one each.
  int64_t workspace_bytes() const;
  /// Equal inputs give bitwise equal outputs.
  bool deterministic() const;

  /// Enqueues the layer on `stream` and returns. No allocation, no lookup, no lock: fit for loops and CUDA graphs.
  ///
  /// `operands`: the addresses of request().operands, in their order (x, w, y, then bias and residual where the
  /// epilogue has them, or user code's tensors by name). An output must share no element with another operand but where
  /// the operation's call allows it; the call checks that, run() does not. Throws Error(invalid_argument), nothing
  /// enqueued: a wrong number of operands, a null or misaligned address or workspace, an empty range to clip to, a
  /// value outside its class, a batch outside the bucket; Error(driver_error) if the launch is refused. Thread-safe.
  void run(Stream stream, std::initializer_list<Address> operands, void* workspace = nullptr,
           const RunValues& values = {}) const {
    run(stream, std::span<const Address>(operands.begin(), operands.size()), workspace, values);
  }
  void run(Stream stream, std::span<const Address> operands, void* workspace = nullptr,
           const RunValues& values = {}) const;

 private:
  std::shared_ptr<const LoadedPlan> loaded_;
};

}  // namespace kiln
