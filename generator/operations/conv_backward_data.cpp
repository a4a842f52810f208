#include "kiln/generator/operations/conv_backward_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "operations/convolution.h"
#include "operations/operations.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/stages.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

class ConvBackwardDataOperation final : public Operation {
 public:
  explicit ConvBackwardDataOperation(Filters filters)
      : filters_(filters),
        operands_{
            {.name = "dy",
             .role = Role::input,
             .extents = "N K Q; N K P Q; N K Z P Q",
             .dtypes = DTypes::floating_or_fp8},
            filter_operand("w", Role::input, filters),
            in_place({.name = "dx",
                      .role = Role::output,
                      .extents = "N C W; N C H W; N C D H W",
                      .left_out = "dtype and layout of dy",
                      .dtypes = DTypes::floating_or_fp8},
                     {"residual"}),
            bias_operand("C", "dx"),
            residual_operand("dx", DTypes::floating_or_fp8),
        },
        attributes_(convolution_attributes(filters)) {
    attributes_.push_back({"output_pad",
                           Ints{0},
                           Printing::never,
                           {},
                           "elements of dx behind the last window, where dx is left out; less than the stride"});
  }

  std::string_view name() const override {
    return filters_ == Filters::local ? "local_conv_backward_data" : "conv_backward_data";
  }
  std::string_view summary() const override {
    return filters_ == Filters::local
               ? "gradient of local convolution with respect to its input"
               : "gradient of convolution with respect to its input, which is transposed convolution";
  }
  std::string short_form(const Request& request) const override {
    return fmt::format("{}conv data gradient {}{} -> {}{}", locality_words(filters_), extents_words(request.at("dy")),
                       operand_words(request, "dy"), extents_words(request.at("dx")), convolution_words(request, "w"));
  }
  std::string_view channel_name() const override { return "c"; }
  std::string_view prologue_operand() const override { return "dy"; }
  bool has_arithmetic() const override { return true; }
  bool has_order_of_sums() const override { return true; }
  bool has_weights() const override { return true; }
  std::vector<EpilogueStage> stages() const override { return {all_stages.begin(), all_stages.end()}; }

  int most_dimensions() const override { return convolution_dimensions(filters_); }
  const std::vector<OperandDefinition>& operands() const override { return operands_; }

  const std::vector<AttributeDefinition>& attributes() const override { return attributes_; }

  void complete_attributes(Request& request) const override {
    const int axes = spatial_axes(request, "dy");
    complete_convolution_attributes(request, names, axes);
    expand(request, "output_pad", static_cast<size_t>(axes), 1);
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "dx") return implied_stage_operand(request, operand);
    if (request.find("dy") == nullptr || request.find("w") == nullptr) return std::nullopt;
    check_filter(request);
    return laid_out_like(request.at("dy"), implied_extents(request));
  }

  void validate(const Request& request) const override {
    check_filter(request);
    const TensorSpec &dy = request.at("dy"), &dx = request.at("dx");
    if (dx.rank() != dy.rank()) {
      refuse(request, fmt::format("dy has {} and dx has {} dimensions", dy.rank(), dx.rank()),
             "they have equally many");
    }
    const Ints& output_pad = request.ints("output_pad");
    const bool given = std::any_of(output_pad.begin(), output_pad.end(), [](int64_t value) { return value != 0; });
    Ints expected = given ? implied_extents(request) : dx.extents;
    expected[0] = dy.extents[0];
    expected[1] = channels(request);
    require_extents(request, "dx", dx, expected, given ? "output_pad says so" : "N is that of dy, C follows from w");
    check_convolution_output(request, names);
    check_stage_operands(request);
  }

  Work work(const Request& request) const override {
    const TensorSpec &dy = request.at("dy"), &w = request.at("w"), &dx = request.at("dx");
    Work work;
    work.flops = convolution_flops(dy, w);
    work.read_bytes = bytes_of(dy) + bytes_of(w) + (request.blend.beta != Scale::zero ? bytes_of(dx) : 0) +
                      stage_operand_bytes(request);
    work.write_bytes = bytes_of(dx);
    work.factors = common_type(dy, w);
    return work;
  }

 private:
  static constexpr ConvNames names{"dx", "w", "dy"};

  Filters filters_;
  std::vector<OperandDefinition> operands_;
  std::vector<AttributeDefinition> attributes_;

  // Channels of dx; the largest number where groups are so many that check_convolution_filter() refuses them.
  static int64_t channels(const Request& request) {
    int64_t channels = 0;
    const bool fits =
        !__builtin_mul_overflow(filter_channels(request, names), request.ints("groups").front(), &channels);
    return fits ? channels : std::numeric_limits<int64_t>::max();
  }

  static void check_filter(const Request& request) {
    const int axes = spatial_axes(request, "dy");
    const TensorSpec &dy = request.at("dy"), &w = request.at("w");
    check_convolution_filter(request, names, "dy", axes, w.rank() < 2 ? 1 : channels(request));
    if (filters_of(request, names) != dy.extents[1]) {
      refuse(request, fmt::format("w has {} filters, expected {}", filters_of(request, names), dy.extents[1]),
             "a filter for each channel of dy");
    }
  }

  // Extents of dx, by the extents of dy: the least whose convolution has them, and output_pad.
  static Ints implied_extents(const Request& request) {
    const TensorSpec& dy = request.at("dy");
    const int axes = spatial_axes(request, "dy");
    Ints extents{dy.extents[0], channels(request)};
    for (int i = 0; i < axes; ++i) {
      const WindowAxis axis = convolution_axis(request, names, i);
      const int64_t beyond = request.ints("output_pad")[static_cast<size_t>(i)];
      if (beyond < 0 || beyond >= axis.stride) {
        refuse(request, fmt::format("output_pad of {} is {}", axis_name(i, axes), beyond),
               fmt::format("it must lie between 0 and {}: below the stride", axis.stride - 1));
      }
      extents.push_back((axis.outputs - 1) * axis.stride + axis.reach() - axis.pad_begin - axis.pad_end + beyond);
      if (extents.back() < 1) {
        refuse(request, fmt::format("dx would have the extent {} along {}", extents.back(), axis_name(i, axes)),
               "pad less");
      }
    }
    return extents;
  }
};

}  // namespace

const Operation& conv_backward_data_operation() {
  static const ConvBackwardDataOperation definition(Filters::shared);
  return definition;
}

const Operation& local_conv_backward_data_operation() {
  static const ConvBackwardDataOperation definition(Filters::local);
  return definition;
}

ConvBackwardData ConvBackwardData::of(const Request& request) {
  ConvBackwardData view;
  static_cast<ConvPass&>(view) = conv_pass_of(request);
  view.dy = request.at("dy");
  view.w = request.at("w");
  view.dx = request.at("dx");
  view.bias = optional_operand(request, "bias");
  view.residual = optional_operand(request, "residual");
  view.epilogue = request.epilogue;
  return view;
}

Request ConvBackwardData::request() const {
  Request request;
  request.operands = {{"dy", dy}, {"w", w}};
  if (!dx.extents.empty()) request.operands.push_back({"dx", dx});
  if (bias) request.operands.push_back({"bias", *bias});
  if (residual) request.operands.push_back({"residual", *residual});
  add_conv_pass(request, "conv_backward_data", *this);
  request.epilogue = epilogue;
  if (!output_pad.empty()) request.attributes.push_back({"output_pad", output_pad});
  return finished(std::move(request));
}

}  // namespace kiln
