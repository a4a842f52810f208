// What the definitions of convolution and of its gradients share: attributes, and the rules that x, w and y obey.
#pragma once

#include <string_view>
#include <vector>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/conv_pass.h"
#include "kiln/generator/window_axis.h"

namespace kiln {

/// What an operation calls the operands of the convolution y = conv(x, w) that it is about.
struct ConvNames {
  std::string_view x, w, y;
};

/// pad, stride, dilation, groups and mode.
const std::vector<AttributeDefinition>& convolution_attributes();

/// Expands their short forms for `axes` spatial axes.
void complete_convolution_attributes(Request& request, int axes);

/// Spatial axis `axis` of the convolution, by the extents of the three operands. Those that the request does not have
/// (yet) keep the default.
WindowAxis convolution_axis(const Request& request, const ConvNames& names, int axis);

/// Refuses a w that does not suit `channels` of x or `filters` of y, and strides and the like that make no sense.
/// `axes`: of the operand called `like`.
void check_convolution_filter(const Request& request, const ConvNames& names, std::string_view like, int axes,
                              int64_t channels);

/// Refuses a y whose extents are not those of the convolution of x.
void check_convolution_output(const Request& request, const ConvNames& names);

/// The extents of y = conv(x, w).
std::vector<int64_t> convolution_extents(const Request& request, const ConvNames& names);

/// Multiplications and additions of conv(x, w) with `outputs` elements of y and the filter `w`.
double convolution_flops(int64_t outputs, const TensorSpec& w);

/// The parameters of a valid request, and the other way round.
ConvPass conv_pass_of(const Request& request);
void add_conv_pass(Request& request, const ConvPass& pass);

}  // namespace kiln
