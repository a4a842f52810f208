// The window of a convolution or pooling node: what ONNX's attributes mean for one input.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace kiln::onnx_frontend {

/// A value for each spatial axis, in the order of the dimensions.
using PerAxis = std::vector<int64_t>;

struct Window {
  PerAxis kernel, pad_begin, pad_end, stride, dilation;
  /// Extents of the output. In ceil_mode a last window that would start in the end padding is dropped, as frameworks do
  /// and ONNX says since opset 22.
  PerAxis outputs;
};

/// The window of a Conv (`kernel` is the filter's), MaxPool or AveragePool (`kernel` is read) over an input of
/// `extents`: N, C and the spatial axes. Throws Error(parse_error) naming the node for attributes that make no sense.
Window window_of(const onnx::NodeProto& node, const std::vector<int64_t>& extents,
                 const std::optional<PerAxis>& kernel = std::nullopt);

/// The spatial extents that a MaxUnpool gives for an input of `extents` where no input of its own says them.
PerAxis unpooled_outputs(const onnx::NodeProto& node, const std::vector<int64_t>& extents);

/// The window of a ConvTranspose over an input of `extents`: that of the convolution whose gradient by its input it is.
/// `outputs` are the extents of its result. output_shape and auto_pad become pads, as ONNX says.
Window transposed_window_of(const onnx::NodeProto& node, const std::vector<int64_t>& extents, const PerAxis& kernel);

}  // namespace kiln::onnx_frontend
