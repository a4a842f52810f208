// gather: elements of x that stand where indices say along one dimension, the typed view of its requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kiln/generator/request.h"

namespace kiln {

/// y[..., i, ...] = x[..., indices[..., i, ...], ...] along the dimension `axis`, as numpy.take_along_axis has it.
/// Dtypes are converted as by TensorTransform; equal ones without alpha, beta and user code are copied bit by bit.
///
/// x, indices and y have one rank, 1 to 5. Along `axis` x has any extent, and indices that of y. Along every other
/// dimension x and indices have y's extent or 1, which repeats: with indices of 1 everywhere but along `axis` this is
/// numpy.take and ONNX's Gather, with those of y's extents ONNX's GatherElements.
///
/// An index counts from 0, a negative one from the end. An index outside x names 0, and no memory is read for it; a
/// prologue does not apply to it.
struct Gather {
  TensorSpec x, indices, y;
  int64_t axis = 0;
  Blend blend;
  bool dynamic_batch = false;

  static Gather of(const Request& request);
  /// Makes the request; y may have no extents (inferred). Throws as Request::parse does.
  Request request() const;
};

/// How many positions an element of `operand` may name, if those are the indices of a complete gather.
std::optional<int64_t> gathered_positions(const Request& request, std::string_view operand);

}  // namespace kiln
