#include "kiln/generator/operations/conv_forward.h"

#include <fmt/format.h>

#include <algorithm>

#include "operations/operations.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

WindowAxis axis(const Request& request, int i) {
  return axis_of(request, i, request.at("w").extents[2 + static_cast<size_t>(i)]);
}

class ConvForwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "conv_forward"; }
  std::string_view summary() const override {
    return "1-D, 2-D and 3-D convolution with groups, any stride, dilation and padding";
  }
  std::string_view channel_name() const override { return "k"; }
  bool takes_user_code() const override { return true; }
  bool has_arithmetic() const override { return true; }
  bool has_epilogue() const override { return true; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {"x", Role::input, true, Printing::always, "N,C,H,W, or N,C,W, or N,C,D,H,W"},
        {"w", Role::input, false, Printing::always, "K,C/groups,R,S, or without R, or with T,R,S"},
        {"y", Role::output, true, Printing::always, "N,K,P,Q, or without P, or with Z,P,Q"},
        {"bias", Role::input, false, Printing::when_set, "K; with epilogue stage bias"},
        {"residual", Role::input, true, Printing::when_set, "as y; with epilogue stage add"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"pad", Ints{0}, Printing::always, {}, "begins, then ends: top,left,bottom,right in 2-D"},
        {"stride", Ints{1}, Printing::always, {}, "one value an axis: h,w in 2-D"},
        {"dilation", Ints{1}, Printing::always, {}, "one value an axis: h,w in 2-D"},
        {"groups", Ints{1}, Printing::always, {}, "channel groups"},
        {"mode",
         std::string("cross_correlation"),
         Printing::when_set,
         {"cross_correlation", "convolution"},
         "convolution mirrors the filter"},
    };
    return definitions;
  }

  void complete_attributes(Request& request) const override {
    const auto axes = static_cast<size_t>(spatial_axes(request));
    expand(request, "pad", axes, 2);
    expand(request, "stride", axes, 1);
    expand(request, "dilation", axes, 1);
    expand(request, "groups", 1, 1);
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand == "y") return implied_y(request);
    const TensorSpec* y = request.find("y");
    if (operand == "bias" && request.has(EpilogueStage::bias)) return TensorSpec::packed(y->dtype, {k(request)}, "n");
    if (operand == "residual" && request.has(EpilogueStage::add)) return *y;
    return std::nullopt;
  }

  void validate(const Request& request) const override {
    check_filter(request);
    check_output(request);
    check_epilogue_operand(request, "bias", EpilogueStage::bias, {k(request)});
    check_epilogue_operand(request, "residual", EpilogueStage::add, request.at("y").extents);
  }

  Work work(const Request& request) const override {
    const TensorSpec &x = request.at("x"), &w = request.at("w"), &y = request.at("y");
    const auto bytes = [](const TensorSpec& spec) {
      return static_cast<double>(spec.elements()) * size_of(spec.dtype);
    };
    Work work;
    const int64_t products = w.elements() / w.extents[0];  // of an output element
    work.flops = 2.0 * static_cast<double>(y.elements()) * static_cast<double>(products);
    work.read_bytes = bytes(x) + bytes(w) + (request.blend.beta != Scale::zero ? bytes(y) : 0);
    for (std::string_view extra : {"bias", "residual"}) {
      if (const TensorSpec* spec = request.find(extra)) work.read_bytes += bytes(*spec);
    }
    work.write_bytes = bytes(y);
    return work;
  }

 private:
  static int64_t k(const Request& request) { return request.at("w").extents[0]; }

  static void check_filter(const Request& request) {
    const TensorSpec &x = request.at("x"), &w = request.at("w");
    const int axes = spatial_axes(request);
    if (w.rank() != x.rank()) {
      refuse(request, fmt::format("x has {} and w has {} dimensions", x.rank(), w.rank()),
             "w is K,C/groups and a window for each spatial axis of x");
    }
    const int64_t groups = request.ints("groups").front();
    const int64_t c = x.extents[1];
    if (groups < 1 || c < 1 || c % groups != 0) {
      refuse(request, fmt::format("groups={} does not divide the {} channels of x", groups, c),
             "give 1 or more groups that divide the channels of x and the filters of w");
    }
    if (w.extents[0] < 1 || w.extents[0] % groups != 0) {
      refuse(request, fmt::format("groups={} does not divide the {} filters of w", groups, w.extents[0]),
             "give 1 or more groups that divide the channels of x and the filters of w");
    }
    if (w.extents[1] != c / groups) {
      refuse(request, fmt::format("w has {} channels per filter, expected {}", w.extents[1], c / groups),
             fmt::format("x has {} channels in {} groups", c, groups));
    }
    for (int i = 0; i < axes; ++i) check_axis(request, axis(request, i), axis_name(i, axes));
  }

  static Ints output_extents(const Request& request) {
    Ints extents{request.at("x").extents[0], k(request)};
    for (int i = 0; i < spatial_axes(request); ++i) extents.push_back(axis(request, i).outputs_floor());
    return extents;
  }

  static std::optional<TensorSpec> implied_y(const Request& request) {
    if (request.find("x") == nullptr || request.find("w") == nullptr) return std::nullopt;
    check_filter(request);
    return laid_out_like(request.at("x"), output_extents(request));
  }

  static void check_output(const Request& request) {
    const Ints expected = output_extents(request);
    if (std::any_of(expected.begin() + 2, expected.end(), [](int64_t extent) { return extent < 1; })) {
      refuse(request, "the filter does not fit into the padded input", "pad more or use a smaller filter");
    }
    require_extents(request, "y", request.at("y"), expected, "from x, w, pad, stride and dilation");
  }

  static void check_epilogue_operand(const Request& request, std::string_view operand, EpilogueStage stage,
                                     const Ints& expected) {
    const TensorSpec* spec = request.find(operand);
    if (spec == nullptr) return;
    if (!request.has(stage)) {
      refuse(request, fmt::format("there is an operand {} but no epilogue stage {}", operand, to_string(stage)),
             fmt::format("add epilogue={} or leave out {}", to_string(stage), operand));
    }
    require_extents(request, operand, *spec, expected, "from the extents of y");
  }
};

std::optional<TensorSpec> optional_operand(const Request& request, std::string_view name) {
  const TensorSpec* spec = request.find(name);
  return spec == nullptr ? std::nullopt : std::optional(*spec);
}

}  // namespace

const Operation& conv_forward_operation() {
  static const ConvForwardOperation definition;
  return definition;
}

ConvForward ConvForward::of(const Request& request) {
  ConvForward view;
  view.x = request.at("x");
  view.w = request.at("w");
  view.y = request.at("y");
  view.bias = optional_operand(request, "bias");
  view.residual = optional_operand(request, "residual");
  view.pad_begin = pad_side(request, false);
  view.pad_end = pad_side(request, true);
  view.stride = request.ints("stride");
  view.dilation = request.ints("dilation");
  view.groups = request.ints("groups").front();
  view.mirrored = request.word("mode") == "convolution";
  view.arithmetic = request.arithmetic;
  view.blend = request.blend;
  view.epilogue = request.epilogue;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request ConvForward::request() const {
  Request request;
  request.operation = "conv_forward";
  request.operands = {{"x", x}, {"w", w}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  if (bias) request.operands.push_back({"bias", *bias});
  if (residual) request.operands.push_back({"residual", *residual});
  request.attributes = {{"pad", pads_of(pad_begin, pad_end)},
                        {"stride", given_or(stride, 1)},
                        {"dilation", given_or(dilation, 1)},
                        {"groups", Ints{groups}},
                        {"mode", std::string(mirrored ? "convolution" : "cross_correlation")}};
  request.arithmetic = arithmetic;
  request.blend = blend;
  request.epilogue = epilogue;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

WindowAxis ConvForward::axis(int axis) const {
  const auto i = static_cast<size_t>(axis);
  return {.extent = x.extents[2 + i],
          .window = w.extents[2 + i],
          .outputs = y.extents[2 + i],
          .pad_begin = pad_begin[i],
          .pad_end = pad_end[i],
          .stride = stride[i],
          .dilation = dilation[i]};
}

}  // namespace kiln
