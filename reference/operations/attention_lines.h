// Parts that the references of attention_forward and attention_backward share. A line is a query of an image and head,
// or a key of an image and key head. docs/numerics.md ("Attention") derives the errors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evaluator.h"
#include "kiln/generator/operations/attention.h"
#include "operations/bounded.h"
#include "operations/dropped.h"
#include "operations/once.h"
#include "operations/softmax_row.h"

namespace kiln::reference {

/// Scores in base 2 are larger by log2(e): beyond this they are infinite.
inline constexpr double largest_score = largest_sum / 1.4426950408889634;

/// A sum of products as lanes or tensor cores add them, of factors of these types. The latter have up to two roundings
/// for each product of 16 bits, of which denormal factors count as the smallest normal number.
class BoundedProductSum {
 public:
  BoundedProductSum(DType a, DType b)
      : is_half_(size_of(a) < 4 && size_of(b) < 4), least_a_(least_of(a)), least_b_(least_of(b)) {}

  /// `a` is exact. Where it is not finite and the other may be 0, anything is right.
  void add(double a, Bounded b) {
    const double value = a * b.value,
                 most = is_half_ ? magnitude(a, least_a_) * magnitude(b.value, least_b_) : std::fabs(value);
    const bool may_be_zero = std::fabs(b.value) <= b.error;
    if (!std::isfinite(a) && may_be_zero) {
      sum_.add({0, Bounded::unknown});
    } else {
      const double error = std::isinf(b.error) ? Bounded::unknown : std::isfinite(a) ? std::fabs(a) * b.error : 0;
      sum_.add({value, b.error == 0 ? 0 : error}, most);
    }
  }
  Bounded result() const { return sum_.result(is_half_ ? 2 : 1); }

 private:
  static double least_of(DType dtype) { return std::ldexp(1.0, traits(dtype).least_exponent); }
  static double magnitude(double value, double least) { return value == 0 ? 0 : std::max(std::fabs(value), least); }

  bool is_half_;
  double least_a_, least_b_;
  BoundedSum sum_;
};

/// A query of an image.
struct AttentionQuery {
  int64_t image, head, number;
};

/// Parts of a call that both need: its scores, and which keys a query sees.
class AttentionScores {
 public:
  /// `find` gives an operand by its name, nothing if the call has none. `scale`: the number of that name; `dropout`:
  /// the numbers of that.
  template <class Find>
  AttentionScores(const Attention& view, double scale, const DropoutMask& dropout, const Find& find)
      : view_(view),
        q_(*find("q")),
        k_(*find("k")),
        mask_(repeating(view.mask, find("mask"))),
        bias_(repeating(view.bias, find("bias"))),
        lengths_(find("lengths")),
        dropout_(dropout),
        scale_(scale == 0 ? 1 / std::sqrt(static_cast<double>(view.depth())) : scale) {}

  /// First of the heads of queries that share that head of keys; and how many do.
  int64_t first_head(int64_t key_head) const { return key_head * shared_by(); }
  int64_t shared_by() const { return view_.heads() / view_.key_heads(); }
  int64_t key_head(int64_t head) const { return head / shared_by(); }

  /// Keys of an image that count.
  int64_t keys_of(int64_t image) const {
    const int64_t keys = view_.keys();
    return lengths_ ? std::clamp<int64_t>(static_cast<int64_t>((*lengths_)({image})), 0, keys) : keys;
  }
  bool sees(const AttentionQuery& query, int64_t key) const {
    const int64_t keys = keys_of(query.image);
    if (key >= keys) return false;
    const int64_t place = query.number + (view_.align == AttentionAlign::end ? keys - view_.queries() : 0);
    if (view_.left >= 0 && key < place - view_.left) return false;
    if (view_.right >= 0 && key > place + view_.right) return false;
    return !mask_ || at(*mask_, query, key) != 0;
  }
  /// Kernels work in base 2: scale and bias are rounded once more.
  Bounded score(const AttentionQuery& query, int64_t key) const {
    BoundedProductSum products(view_.q.dtype, view_.k.dtype);
    for (int64_t i = 0; i < view_.depth(); ++i) {
      products.add(q_({query.image, query.head, query.number, i}),
                   {k_({query.image, key_head(query.head), key, i}), 0});
    }
    Bounded score = product({scale_, 3 * unit * std::fabs(scale_)}, products.result());
    if (bias_) {
      const double bias = at(*bias_, query, key);
      if (std::isfinite(bias) && std::fabs(bias) > largest_score) return {bias, Bounded::unknown};
      score = sum_of({score, {bias, std::isfinite(bias) ? 2 * unit * std::fabs(bias) : 0}});
    }
    if (std::isfinite(score.value) && std::fabs(score.value) > largest_score) score.error = Bounded::unknown;
    return score;
  }
  double scale() const { return scale_; }
  /// Factor of the weight of a key.
  Bounded counts(const AttentionQuery& query, int64_t key) const {
    if (!view_.drops) return {1, 0};
    const int64_t line = (query.image * view_.heads() + query.head) * view_.queries() + query.number;
    const double factor = dropout_.factor(static_cast<uint64_t>(line * view_.keys() + key));
    return {factor, unit * factor};
  }

 private:
  static std::optional<Repeating> repeating(const std::optional<TensorSpec>& spec, std::optional<Tensor> elements) {
    return spec ? std::optional(Repeating(*spec, std::move(*elements))) : std::nullopt;
  }
  static double at(const Repeating& operand, const AttentionQuery& query, int64_t key) {
    const Coordinate coordinate = {query.image, query.head, query.number, key};
    return operand[coordinate];
  }

  const Attention& view_;
  Tensor q_, k_;
  std::optional<Repeating> mask_, bias_;
  std::optional<Tensor> lengths_;
  DropoutMask dropout_;
  double scale_;
};

/// How the operands of both are filled: every fourth key is hidden, and lse mostly is above the scores.
inline Filling filling_of_attention(const Request& request, std::string_view operand, Values values) {
  if (operand == "lengths") return lengths_to(request.at("k").extents[2], values);
  if (operand == "lse" && values != Values::specials) {
    return [](std::span<const int64_t>, uint64_t bits) { return 2 + 2 * uniform(bits); };
  }
  if (operand != "mask") return {};
  return [](std::span<const int64_t>, uint64_t bits) { return static_cast<double>(bits % 4); };
}

}  // namespace kiln::reference
