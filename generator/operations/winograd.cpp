#include "kiln/generator/operations/winograd.h"

#include <fmt/format.h>

#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_forward.h"

namespace kiln {
namespace {

bool is_plain(const WindowAxis& axis) {
  return axis.window == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.extent == axis.outputs;
}

// `input`: what the tiles are taken from.
template <class Conv>
std::optional<std::string> refusal(const Conv& conv, const char* name, const TensorSpec& input) {
  if (input.dtype != DType::f32) {
    return fmt::format("{} is {}, and Winograd's transforms are of f32", name, to_string(input.dtype));
  }
  if (!conv.arithmetic.fast) {
    return "sums by Winograd's transforms err more than f32 sums and spread infinities: `fast` permits them";
  }
  const int axes = conv.axes();
  if (axes < 2) return "the filter is not 3x3";
  for (int i = 0; i < axes; ++i) {
    const WindowAxis axis = conv.axis(i);
    if (i < axes - 2) {
      if (!is_plain(axis)) return "the filter reaches over more than a plane of 3x3";
      continue;
    }
    if (axis.window != 3) return "the filter is not 3x3";
    if (axis.stride != 1 || axis.dilation != 1) return "the stride or the dilation is not 1";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> winograd_refusal(const Request& request) {
  if (request.operation == "conv_forward") return refusal(ConvForward::of(request), "x", request.at("x"));
  if (request.operation == "conv_backward_data") return refusal(ConvBackwardData::of(request), "dy", request.at("dy"));
  return "it is no convolution, and no gradient of one by its input";
}

}  // namespace kiln
