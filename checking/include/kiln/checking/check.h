// Checker: is what a variant computes right, and does it touch nothing else?
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/checking/device_operands.h"
#include "kiln/device/context.h"
#include "kiln/execution/executable.h"
#include "kiln/generator/request.h"
#include "kiln/reference/fill.h"

namespace kiln::checking {

struct CheckOptions {
  /// Each of these is filled into the inputs in turn. Never zeros: they hide errors, and time better than real data.
  /// `specials` is left out where the check is not in full, because there the definition leaves elements open.
  std::vector<reference::Values> fills{reference::Values::uniform};
  uint64_t seed = 1;
  int64_t samples = 200;  ///< Coordinates that are compared with the reference where the check is not in full.
  /// A request with at most this work and this many outputs is checked in full: every element with the reference.
  double full_flops = 2e7;
  int64_t full_elements = 1 << 18;
  /// The most work and traffic of one run of what smaller_request() gives.
  double smaller_flops = 5e8;
  double smaller_bytes = 2e7;
};

/// The same request for a smaller batch: its results stand for those of `request` where a device would take too long to
/// run that, but tells how long it takes (device::TimeOnly). Nothing if `request` is small itself, or there is none.
///
/// The batch is at least 2. It leaves the same remainder as that of `request` when divided by the largest power of two
/// up to 16 for which that can be, so that tiles and vectors end alike.
///
/// Where that is not small enough, convolutions (but not local ones), pooling and their gradients have fewer outputs
/// along their spatial dimensions, the outermost first, chosen as the batch is. Their inputs lack as many steps of the
/// window: what windows leave over is what it was. A tensor without gaps is made without gaps again.
std::optional<Request> smaller_request(const Request& request, const CheckOptions& options);

/// Whether every output element of `request` is compared with the double-precision reference. If not, every element is
/// compared with the trusted variant's on the device, and that one and the variant at sampled coordinates with the
/// reference.
bool is_checked_in_full(const Request& request, const CheckOptions& options);

/// Whether the check of `request` needs the result of trusted_program(): it is not in full, or user code
/// makes the result, which no reference knows.
bool needs_trusted(const Request& request, const CheckOptions& options);

/// Result of the check of one variant.
struct Verdict {
  bool passed = false;
  double max_error = 0;  ///< Distance from the expected value, of the element that comes closest to its bound.
  double bound = 0;      ///< The most that this element may be off.
  std::string text;      ///< In words: `largest error 1.2e-07 of 3.4e-06 allowed`, or what was wrong and where.
};

/// Operands of one request on a device, between red zones; and what a right variant makes of them.
///
/// With user code the reference ends where the code begins: the trusted variant's `acc`, in f32, is compared with it,
/// and a variant's results with what the user's code itself makes of every acc within the bounds (docs/numerics.md).
///
/// For every fill, and for a dynamic request at several batches (0, 1, one below a bucket's end, ...): outputs and
/// workspace are poisoned with NaN, the variant runs, and then the red zones before and after every buffer, the inputs,
/// and what lies between and after the output's elements must be as they were. On the emulated device the buffers end
/// where their allocations end instead, so that its own checks see a read beyond.
///
/// Not thread-safe. Waits for the device.
class Checker {
 public:
  /// Throws DriverError(out_of_memory) if the operands do not fit.
  Checker(std::shared_ptr<const device::ContextHandle> context, Request request, CheckOptions options);
  ~Checker();
  Checker(Checker&&) noexcept;
  Checker& operator=(Checker&&) noexcept;

  const Request& request() const;
  /// Names of the request's operands: what Executables checked here must be made with.
  std::vector<std::string> operand_names() const;

  /// Runs the trusted program (made with trusted_operand_names()), checks it with the reference and keeps its results.
  /// Needed before check() if needs_trusted().
  Verdict trust(const execution::Executable& trusted);

  /// Throws DriverError if the device reports a fault (then the context may be lost), Error(internal) if trust() was
  /// needed and did not pass.
  Verdict check(const Checkable& variant);

  /// As check(), where the trusted variant cannot be had: what is not checked in full is compared with the reference
  /// at CheckOptions::samples coordinates, and not elsewhere. Throws Error(internal) if there is user code.
  Verdict check_with_reference(const Checkable& variant);

  /// The operands for timed runs: as_allocated, inputs as the first fill has them. They are this until the next check.
  const DeviceOperands& timed_operands();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kiln::checking
