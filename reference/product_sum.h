// Sums of products of two operands' elements: what convolutions, their gradients and matrix products are, and how far
// tensor cores may be from them (docs/numerics.md, "Tensor cores").
#pragma once

#include <optional>
#include <string_view>

#include "evaluator.h"
#include "kiln/generator/dtype.h"

namespace kiln::reference {

/// Arithmetic of a tensor core that a request's products may run on: the one rule of which requests those are.
struct TensorCores {
  bool permitted = false;
  bool bytes = false;               ///< Both factors are in 8 bits: sums may keep 13 bits of fraction.
  bool promotes = false;            ///< Such sums go on in f32 after promoted_products at most.
  double least_a = 0, least_b = 0;  ///< Magnitude that a smaller factor counts with in errors; 0 still counts with 0.
  double cut_a = 0, cut_b = 0;      ///< Magnitude below which a factor may be cut to 0.
  /// Type that `fast` permits sums of up to narrow_products in: that of the storage, or Bindings::input_type.
  std::optional<DType> narrow_sums = {};

  static constexpr int64_t promoted_products = 128, narrow_products = 32;

  /// For factors of types `a` and `b`.
  static TensorCores of(const Arithmetic& arithmetic, DType a, DType b);
  /// For the operands of these names.
  static TensorCores of(const Request& request, const Bindings& bindings, std::string_view a, std::string_view b);
};

/// The sum of one output element, term by term.
class ProductSum {
 public:
  explicit ProductSum(const TensorCores& cores) : cores_(cores) {}

  void add(double a, double b);
  /// An unspecified output: see Expected.
  void leave_open() { sum_.unspecified = true; }
  /// The sum, with the errors that the rule permits.
  Expected finished() const;

 private:
  TensorCores cores_;
  Expected sum_;
  double largest_ = 0;  // of the terms' magnitudes
};

}  // namespace kiln::reference
