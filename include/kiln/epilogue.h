// Epilogues: operations on a result before it is stored, such as `kiln::bias(b) + kiln::relu`.
#pragma once

#include <array>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/base/cxx20.h"
#include "kiln/generator/expression.h"
#include "kiln/generator/request.h"
#include "kiln/tensor.h"

namespace kiln {

/// A tensor that user code reads.
struct NamedTensor {
  std::string_view name;
  Tensor tensor;
};

/// A number that user code reads.
struct NamedScalar {
  std::string_view name;
  float value = 0;
};

/// A chain of stages, applied in the order written, or user code. Copying allocates nothing.
class Epilogue {
 public:
  static constexpr int max_stages = 4;

  constexpr Epilogue() = default;
  constexpr explicit Epilogue(EpilogueStage stage) : stages_{stage}, count_(1) {}

  int count() const { return count_; }
  /// Throws Error(invalid_argument) unless 0 <= i < count().
  EpilogueStage stage(int i) const {
    if (i < 0 || i >= count_) refuse_stage(i);
    return stages_[static_cast<size_t>(i)];
  }
  const std::optional<Tensor>& bias() const { return bias_; }
  const std::optional<Tensor>& residual() const { return residual_; }
  /// A copy with another tensor for the stage `add`.
  Epilogue with_residual(const Tensor& residual) const {
    Epilogue result = *this;
    result.residual_ = residual;
    return result;
  }
  /// A copy with other tensors, one for each that the user code reads. Throws Error(invalid_argument) for another
  /// number of tensors, and for an epilogue of stages.
  Epilogue with_tensors(std::span<const Tensor> tensors) const;
  float clip_lo() const { return clip_lo_; }
  float clip_hi() const { return clip_hi_; }
  /// The user's code; null for an epilogue of stages.
  const Expression* code() const { return user_ ? &user_->code : nullptr; }
  /// The tensors and scalars that the code reads, in the order of its tensors() and scalars(). tensor() throws
  /// Error(invalid_argument) for an `i` beyond the last tensor.
  const Tensor& tensor(size_t i) const {
    if (!user_ || i >= user_->tensors.size()) refuse_tensor(i);
    return user_->tensors[i];
  }
  std::array<float, Expression::max_scalars> scalars() const {
    return user_ ? user_->scalars : std::array<float, Expression::max_scalars>{};
  }

  /// The stages of `first`, then those of `second`. Throws Error(invalid_argument) for a stage that both have, and for
  /// user code beside anything else.
  friend Epilogue operator+(const Epilogue& first, const Epilogue& second);

 private:
  friend Epilogue bias(const Tensor& values);
  friend Epilogue add(const Tensor& residual);
  friend Epilogue clip(float lo, float hi);
  friend Epilogue expression(const Expression& code, std::span<const NamedTensor> tensors,
                             std::span<const NamedScalar> scalars);

  [[noreturn]] void refuse_stage(int i) const;
  [[noreturn]] void refuse_tensor(size_t i) const;

  // Behind a pointer: options are made anew for every call, and clearing these would cost more than finding the plan.
  struct User {
    Expression code;
    std::vector<Tensor> tensors;
    std::array<float, Expression::max_scalars> scalars{};
  };

  std::array<EpilogueStage, max_stages> stages_{};
  int count_ = 0;
  std::optional<Tensor> bias_, residual_;
  float clip_lo_ = -std::numeric_limits<float>::infinity();
  float clip_hi_ = std::numeric_limits<float>::infinity();
  std::shared_ptr<const User> user_;
};

/// Adds values[k] to channel k; `values`: K elements.
Epilogue bias(const Tensor& values);
/// Adds the element of `residual` at the same position. `residual` has the extents of y, and may be y itself, with y's
/// dtype and strides.
Epilogue add(const Tensor& residual);
/// Limits to [lo, hi]; NaN stays NaN. Throws Error(invalid_argument) unless lo <= hi.
Epilogue clip(float lo, float hi);
/// User code on each result and, where it has a prologue, on each element of the input (docs/user-code.md):
/// `expression(swish)`, with the tensors and scalars that the code reads. A tensor has the extents of y, or 1 in
/// dimensions along which it repeats; or one element for each channel (of the input, if the prologue reads it). It has
/// any dtype and strides, and must not overlap memory that the call writes. For frequent calls make the Expression once
/// and keep it, because it holds the digest of the code. Throws Error(invalid_argument) unless `tensors` and `scalars`
/// name exactly the tensors and scalars that the code reads.
Epilogue expression(const Expression& code, std::span<const NamedTensor> tensors, std::span<const NamedScalar> scalars);
inline Epilogue expression(const Expression& code, std::initializer_list<NamedTensor> tensors = {},
                           std::initializer_list<NamedScalar> scalars = {}) {
  return expression(code, std::span(tensors.begin(), tensors.size()), std::span(scalars.begin(), scalars.size()));
}
/// As above, from a text: `expression("acc * sigmoid(acc)")`. Also throws as Expression does.
Epilogue expression(std::string_view text, std::span<const NamedTensor> tensors, std::span<const NamedScalar> scalars);
inline Epilogue expression(std::string_view text, std::initializer_list<NamedTensor> tensors = {},
                           std::initializer_list<NamedScalar> scalars = {}) {
  return expression(text, std::span(tensors.begin(), tensors.size()), std::span(scalars.begin(), scalars.size()));
}
/// Replaces negative values by 0; NaN stays NaN.
inline const Epilogue relu{EpilogueStage::relu};

}  // namespace kiln
