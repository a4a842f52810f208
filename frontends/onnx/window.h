// The window of a convolution or pooling node: what ONNX's attributes mean for one input.
#pragma once

#include <onnx/onnx_pb.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace kiln::onnx_frontend {

/// Along h and w.
struct Window {
  std::array<int64_t, 2> kernel{1, 1};
  std::array<int64_t, 2> pad_begin{0, 0}, pad_end{0, 0};
  std::array<int64_t, 2> stride{1, 1}, dilation{1, 1};
  /// Extents of the output. In ceil_mode a last window that would start in the end padding is dropped, as frameworks do
  /// and ONNX says since opset 22.
  std::array<int64_t, 2> outputs{0, 0};
};

/// The window of a two-dimensional Conv (`kernel` is the filter's), MaxPool or AveragePool (`kernel` is read) over an
/// input of `extents` N,C,H,W. Throws Error(parse_error) naming the node for attributes that make no sense.
Window window_of(const onnx::NodeProto& node, const std::vector<int64_t>& extents,
                 std::optional<std::array<int64_t, 2>> kernel = std::nullopt);

}  // namespace kiln::onnx_frontend
