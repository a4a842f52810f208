// The oracle: what a request's output should be, by plain loops in double precision. The tests, `kiln verify` and the
// tuner's sampled check compare kernels with it. docs/numerics.md states the rules; tolerance.h judges against them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/generator/run_values.h"

namespace kiln::reference {

/// The arguments of one call, in host memory. Memory is borrowed: it must outlive whatever reads through it.
struct Bindings {
  /// Operand name -> memory from the operand's first element, at least span() elements of its TensorSpec (of the
  /// call's batch if the request is dynamic): its contents before the call. Only those that is_read() are needed.
  std::map<std::string, std::span<const std::byte>> operands = {};
  /// As kernels receive them; those of user code are not read. n -1 of a dynamic request: the top of the bucket.
  RunValues values = {};
  /// Where the request is without_user_code(), which holds the operand of prologues in f32: the type that it had.
  std::optional<DType> input_type = {};
};

/// Expected value of one output element, and the figures for a bound on the error of f32 arithmetic (docs/numerics.md
/// derives the bound).
struct Expected {
  /// The result before rounding to storage, in double.
  double value = 0;
  /// Sum of the magnitudes of all terms that were added up: |x_i * w_i|, |beta * y|, |bias|, ... scaled like value;
  /// infinite if it overflowed before. In products that tensor cores may compute, denormal factors count as the
  /// smallest normal number.
  double magnitude = 0;
  /// magnitude without the infinite terms. Where it is beyond f32, sums may overflow to either infinity.
  double finite_magnitude = 0;
  /// Roundings on the way of any one term to the result, in whatever order a kernel adds them up.
  int64_t roundings = 0;
  /// Every term and sum is a multiple of 2^quantum: if magnitude <= 2^(24 + quantum), f32 makes no error at all.
  int quantum = quantum_of_zero;
  /// Error that exponentials, logarithms and sums of fp8 bring besides, in units of 2^-24.
  double transcendental = 0;
  /// The definition leaves this element open: a NaN or infinite filter element meets padding.
  bool unspecified = false;
  /// `value` is not finite, and which of NaN and the infinities it is, is open: see Winograd in docs/numerics.md.
  bool any_not_finite = false;
  /// The bits are those of an input's element: an infinity stays one where storing it would saturate.
  bool copied = false;
  /// How the element is stored.
  DType storage = DType::f32;

  static constexpr int quantum_of_zero = 4096;  ///< Zero is a multiple of everything.
  static constexpr int no_quantum = -4096;      ///< Not a multiple of anything that helps.
};

/// Evaluates single elements of one output of a call. Immutable; thread-safe; costs one output's loop per at().
class Oracle {
 public:
  /// `output`: an operand that is_written(); the request's result if empty.
  /// Throws Error(invalid_argument) if there is no such output, an operand is missing or its memory too small, or the
  /// batch does not fit the bucket; Error(unsupported) for an operation that has no reference.
  Oracle(const Request& request, const Bindings& bindings, std::string_view output = {});
  ~Oracle();
  Oracle(Oracle&&) noexcept;
  Oracle& operator=(Oracle&&) noexcept;

  /// The element of the output at `coordinate` (logical order, inside the output's extents).
  Expected at(std::span<const int64_t> coordinate) const;
  /// The elements at those coordinates, in their order; on all of the machine's threads.
  std::vector<Expected> at_each(std::span<const std::vector<int64_t>> coordinates) const;
  /// Every element of the output in logical order (last dimension fastest). Cheaper than as many calls of at().
  std::vector<Expected> all() const;
  /// The output's spec, with the batch of this call.
  const TensorSpec& output() const;

  /// How one operation computes an element; one implementation per file under operations/.
  class Evaluator;

 private:
  std::unique_ptr<const Evaluator> evaluator_;
};

/// One element of the result. For many elements of one call, keep an Oracle.
Expected at(const Request& request, const Bindings& bindings, std::span<const int64_t> coordinate);

/// The value of every element of an output, in logical order.
std::vector<double> evaluate(const Request& request, const Bindings& bindings, std::string_view output = {});

using Coordinate = std::vector<int64_t>;

/// At most `count` distinct coordinates of `spec` for checks of large layers: its corners first, where borders and
/// tails are, then pseudo-random ones that depend only on `seed`. All coordinates, in order, if there are no more.
std::vector<Coordinate> sample_coordinates(const TensorSpec& spec, int64_t count, uint64_t seed);

}  // namespace kiln::reference
