// Reference of one operation: the part that it implements, and the parts that all share, which are operands, blend,
// epilogue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "filling.h"
#include "kiln/generator/operation_list.h"
#include "kiln/reference/convert.h"
#include "kiln/reference/reference.h"
#include "slack.h"

namespace kiln::reference {

/// A tensor in host memory. `tensor({n, c, h, w})` is the element at that coordinate.
class Tensor {
 public:
  /// Small tensors are decoded once, large ones, of which a check samples a few outputs, where they are read.
  Tensor(const TensorSpec& spec, const std::byte* data);

  double operator[](std::span<const int64_t> coordinate) const;
  double operator()(std::initializer_list<int64_t> coordinate) const {
    return (*this)[{coordinate.begin(), coordinate.size()}];
  }

 private:
  TensorSpec spec_;
  const std::byte* data_;
  std::vector<double> decoded_;  // by offset; empty for a large tensor
};

/// The exponent of the lowest bit that is set in `value`; Expected::quantum_of_zero for 0.
int quantum_of(double value);

/// Adds a term that is itself exact (a product of two stored elements, a stored element).
void add_term(Expected& sum, double term);

/// The largest that a partial sum may be: sums are f32.
inline constexpr double largest_sum = std::numeric_limits<float>::max();

/// Multiplies the magnitudes by `factor`. A sum that may overflow stays infinite, however small the product.
void scale_magnitudes(Expected& sum, double factor);

/// Whether no f32 sum of such terms rounds, whatever its order, with `digits` bits in the significand.
bool sums_are_exact(const Expected& sum, int digits);

/// Evaluates the elements of one call; see Oracle.
class Oracle::Evaluator {
 public:
  /// Looks up the operands; throws as Oracle does.
  Evaluator(Request request, const Bindings& bindings, std::string_view output);
  virtual ~Evaluator() = default;
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// operation_at(); the result blended, through the epilogue.
  Expected at(std::span<const int64_t> coordinate) const;
  virtual std::vector<Expected> all() const;
  const TensorSpec& output() const { return request_.at(output_name_); }

 protected:
  /// The operation itself at one output element. Exponentials aside, its roundings are those of f32 arithmetic.
  virtual Expected operation_at(std::span<const int64_t> coordinate) const = 0;
  Expected finish(Expected result, std::span<const int64_t> coordinate) const;
  /// finish() if this evaluates the result, else `result` blended, as it is stored.
  Expected finished(Expected result, std::span<const int64_t> coordinate) const;

  const Request& request() const { return request_; }
  /// The operand that this evaluates.
  const std::string& output_name() const { return output_name_; }
  /// The number of that name of Operation::scalars().
  double scalar(std::string_view name) const;
  /// The integer of that name of Operation::integers().
  uint64_t integer(std::string_view name) const;
  Tensor tensor(const std::string& operand) const;
  /// Nothing where the request has no such operand.
  std::optional<Tensor> optional_tensor(const std::string& operand) const;

 private:
  Expected stored(Expected result) const;
  /// `alpha` or `beta` of an output besides the result, which has class `any`.
  double further_scale(std::string_view which) const;
  void blend(Expected& result, std::span<const int64_t> coordinate) const;
  void apply(EpilogueStage stage, Expected& result, std::span<const int64_t> coordinate) const;

  Request request_;  // with the batch of this call
  Bindings bindings_;
  std::string output_name_;
  bool is_result_;  // what the epilogue applies to
  Blend blend_;     // of this output
  double alpha_ = 1, beta_ = 0;
  std::optional<Tensor> before_, bias_, residual_;
};

using MakeEvaluator = std::unique_ptr<const Oracle::Evaluator> (*)(Request, const Bindings&, std::string_view);

template <class OfOperation>
std::unique_ptr<const Oracle::Evaluator> make_evaluator(Request request, const Bindings& bindings,
                                                        std::string_view output) {
  return std::make_unique<OfOperation>(std::move(request), bindings, output);
}

/// The mathematics of one operation: its outputs, and how far they move with those of a prologue.
struct Reference {
  MakeEvaluator evaluator;
  slack::Answer slack = nullptr;     ///< Null: a call of the operation says it.
  slack::Call call = nullptr;        ///< Which one; null: slack::with_magnitudes(), unless there is `slack`.
  slack::Indices indices = nullptr;  ///< Names that an output of element names may give.
  /// The number of Operation::scalars() that stands where the operand of prologues has no element.
  std::optional<size_t> padding = std::nullopt;
  FillingOf filling = nullptr;  ///< For operands whose numbers mean something; null: there are none.
};

/// Throws Error(unsupported) if the operation has none.
Reference reference_of(std::string_view operation);

/// One per operation, in its file under operations/: dropout_reference() is that of dropout.
#define KILN_DECLARE(name) Reference name##_reference();
KILN_OPERATIONS(KILN_DECLARE)
#undef KILN_DECLARE

}  // namespace kiln::reference
