// scatter: elements that are brought together where indices say along one dimension, the typed view of its requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kiln/generator/request.h"

namespace kiln {

/// Results of the updates that name one element; in brackets that of none.
enum class ScatterMode {
  add,  ///< their sum (0)
  mul,  ///< their product (1)
  min,  ///< the least; NaN if one is NaN (+inf)
  max,  ///< as min (-inf)
};

std::string_view to_string(ScatterMode mode);

/// y[..., p, ...] = all updates[..., i, ...] with indices[..., i, ...] = p, brought together by `mode`, along the
/// dimension `axis`. With mode=add that is the gradient of Gather by x.
///
/// updates, indices and y have one rank, 1 to 5. Along `axis` y has any extent, and indices that of updates. Along
/// every other dimension updates have y's extent, and indices that or 1, which repeats: with indices of 1 everywhere
/// but along `axis` this is PyTorch's index_add and the gradient of an embedding, with those of the extents of updates
/// scatter_reduce and ONNX's ScatterElements.
///
/// An index counts from 0, a negative one from the end. What an index outside y names is left out.
struct Scatter {
  TensorSpec updates, indices, y;
  int64_t axis = 0;
  ScatterMode mode = ScatterMode::add;
  Blend blend;
  bool dynamic_batch = false;

  static Scatter of(const Request& request);
  /// Makes the request; y has to have extents. Throws as Request::parse does.
  Request request() const;
};

}  // namespace kiln
