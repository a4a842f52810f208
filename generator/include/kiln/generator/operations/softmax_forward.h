// softmax_forward: softmax and log-softmax over one axis, the typed view of its requests.
#pragma once

#include <cstdint>
#include <string_view>

#include "kiln/generator/request.h"

namespace kiln {

enum class SoftmaxMode {
  accurate,  ///< exp(x - max) / sum(exp(x - max))
  log,       ///< x - max - log(sum(exp(x - max)))
};

/// The word of requests; "?" for a value that is none.
std::string_view to_string(SoftmaxMode mode);

/// Softmax over `axis` of a tensor of 1 to 5 dimensions; x and y have equal extents and may have different strides.
///
/// A row that holds NaN or +inf, or nothing but -inf, gives NaN throughout, as PyTorch does.
struct SoftmaxForward {
  TensorSpec x, y;
  int64_t axis = 1;
  SoftmaxMode mode = SoftmaxMode::accurate;
  Blend blend;
  bool dynamic_batch = false;

  static SoftmaxForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred).
  Request request() const;

  /// Elements of one row (along the axis).
  int64_t row_length() const { return x.extents[static_cast<size_t>(axis)]; }
};

}  // namespace kiln
