// The rows of the gradients of a normalisation, and the constants of their kernels: shared by the descriptors.
#pragma once

#include <string>
#include <vector>

#include "descriptor/row_blocks.h"
#include "norm/norm_rows.h"

namespace kiln::descriptor {

/// dy, x, w, b, mean, inv_deviation, y, residual, dx, dw, db, dresidual, as rows along the request's axes: those of dx.
struct NormGradientRows : Rows {
  static NormGradientRows of(const Request& request);

  std::vector<std::string> present;  ///< The operands that there are.
  NormMode mode = NormMode::standard;
  ActivationMode activation = ActivationMode::identity;
  Blend blend, parameter_blend, dresidual_blend;
  double moved_bytes = 0;
  int dy_bytes = 0;  ///< Bytes of an element of dy: kept_bytes_of().
  /// Whether dw or db is asked for, and whether they are sums over the rows of dx.
  bool has_parameters = false, same_rows = false;
  /// The same operands as the rows that dw and db are sums of.
  Rows parameters;
};

/// The numbers of the call.
namespace norm_gradient {
inline constexpr OperationScalar parameter_alpha{0}, parameter_beta{1}, dresidual_alpha{2}, dresidual_beta{3};
inline constexpr size_t first_of_activation = 4;
}  // namespace norm_gradient

/// Adds the constants of lib/norm_gradient.cuh.
void add_norm_gradient(Prelude& prelude, const NormGradientRows& rows);

}  // namespace kiln::descriptor
