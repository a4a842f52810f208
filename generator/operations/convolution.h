// Parts shared by the definitions of convolution, of local convolution and of their gradients: attributes, and the
// rules that x, w and y obey.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/conv_pass.h"
#include "kiln/generator/window_axis.h"

namespace kiln {

/// Names that an operation gives to the operands of its convolution y = conv(x, w).
struct ConvNames {
  std::string_view x, w, y;
};

/// Whether the filter is the same for all outputs, or for those of a region of a grid.
enum class Filters { shared, local };

/// pad, stride, dilation, groups and mode; grid where filters are local.
const std::vector<AttributeDefinition>& convolution_attributes(Filters filters);

/// The operand that holds filters, w or dw.
OperandDefinition filter_operand(std::string name, Role role, Filters filters, DTypes dtypes = DTypes::floating_or_fp8);

/// The most dimensions that a tensor has: local filters of volumes have one for the regions.
inline int convolution_dimensions(Filters filters) {
  return filters == Filters::local ? 6 : 5;
}

/// Expands their short forms for `axes` spatial axes. A grid of 0 along an axis becomes one of as many regions as there
/// are outputs.
void complete_convolution_attributes(Request& request, const ConvNames& names, int axes);

/// Spatial axis `axis` of the convolution, by the extents of the three operands. Operands that the request does not
/// have (yet) keep the default.
WindowAxis convolution_axis(const Request& request, const ConvNames& names, int axis);

/// C/groups, by a w of at least two dimensions.
int64_t filter_channels(const Request& request, const ConvNames& names);

/// Filters of a region: all that w has if filters are shared. Refuses a grid that does not suit w.
int64_t filters_of(const Request& request, const ConvNames& names);

/// Refuses a w that does not suit `channels` of x or `filters` of y, and strides and the like that make no sense.
/// `axes`: of the operand called `like`.
void check_convolution_filter(const Request& request, const ConvNames& names, std::string_view like, int axes,
                              int64_t channels);

/// Refuses a y whose extents are not those of the convolution of x.
void check_convolution_output(const Request& request, const ConvNames& names);

/// The extents of y = conv(x, w).
std::vector<int64_t> convolution_extents(const Request& request, const ConvNames& names);

/// Multiplications and additions of y = conv(x, w).
double convolution_flops(const TensorSpec& y, const TensorSpec& w);

/// "local " where filters are.
inline std::string_view locality_words(Filters filters) {
  return filters == Filters::local ? "local " : "";
}
/// ", 3x3, stride 2, pad 1, dilation 2, groups 32, grid 4x4" by a request of any of the passes, whose filters are
/// called `filter`.
std::string convolution_words(const Request& request, std::string_view filter);

/// The parameters of a valid request, and the other way round, with the name of its operation: `operation`, or that of
/// the local convolution where there is a grid.
ConvPass conv_pass_of(const Request& request);
void add_conv_pass(Request& request, std::string_view operation, const ConvPass& pass);

}  // namespace kiln
