// LayerClass: what layers of different sizes have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// A request's canonical line in two parts. Layers of one class are the same but for their sizes: operation, types,
/// layouts, attributes, arithmetic, epilogue and the extents of a convolution's filter (with them the channels) are in
/// the class, batch and other extents are sizes. Of a tensor with strides the class says that alone.
struct LayerClass {
  std::string text;  ///< The line with `?` for each extent that is a size: `conv_forward x=f16:?x?x?x?:nhwc ...`.
  std::vector<int64_t> sizes;  ///< Extents of the `?` in their order; as many in all layers of a class.
};

/// Takes `key`, the canonical line of a request, apart. Never fails: what is no line makes a class of its own.
LayerClass layer_class_of(std::string_view key);

/// Sum of the sizes' ratios in powers of two: 1 where one extent is twice the other's. Both of one class.
double distance_between(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

}  // namespace kiln
