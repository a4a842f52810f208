#include "kiln/generator/operations/conv_forward.h"

#include <fmt/format.h>

#include "operations/operations.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

Axis axis(const Request& request, size_t i) {
  const Ints& pad = request.ints("pad");
  return {request.at("x").extents[2 + i], request.at("w").extents[2 + i], pad[i], pad[2 + i],
          request.ints("stride")[i],      request.ints("dilation")[i]};
}

class ConvForwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "conv_forward"; }
  std::string_view summary() const override { return "2-D convolution with groups, any stride, dilation and padding"; }
  bool has_arithmetic() const override { return true; }
  bool has_epilogue() const override { return true; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {"x", Role::input, true, Printing::always, "N,C,H,W"},
        {"w", Role::input, false, Printing::always, "K,C/groups,R,S"},
        {"y", Role::output, true, Printing::always, "N,K,P,Q"},
        {"bias", Role::input, false, Printing::when_set, "K; with epilogue stage bias"},
        {"residual", Role::input, true, Printing::when_set, "N,K,P,Q; with epilogue stage add"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"pad", Ints{0}, Printing::always, {}, "top,left,bottom,right"},
        {"stride", Ints{1}, Printing::always, {}, "h,w"},
        {"dilation", Ints{1}, Printing::always, {}, "h,w"},
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
    expand(request, "pad", 2, 2);
    expand(request, "stride", 2, 1);
    expand(request, "dilation", 2, 1);
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
    for (size_t i = 0; i < 2; ++i) check_axis(request, axis(request, i), i == 0 ? "h" : "w");
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
    work.flops =
        2.0 * static_cast<double>(y.elements()) * static_cast<double>(w.extents[1] * w.extents[2] * w.extents[3]);
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
    if (x.rank() != 4 || w.rank() != 4) {
      refuse(request, fmt::format("x has {} and w has {} dimensions", x.rank(), w.rank()),
             "2-D convolution takes x of N,C,H,W and w of K,C/groups,R,S");
    }
    const int64_t groups = request.ints("groups").front();
    const int64_t c = x.extents[1];
    if (groups < 1 || c < 1 || c % groups != 0) {
      refuse(request, fmt::format("groups={} does not divide the {} channels of x", groups, c), "");
    }
    if (w.extents[0] < 1 || w.extents[0] % groups != 0) {
      refuse(request, fmt::format("groups={} does not divide the {} filters of w", groups, w.extents[0]), "");
    }
    if (w.extents[1] != c / groups) {
      refuse(request, fmt::format("w has {} channels per filter, expected {}", w.extents[1], c / groups),
             fmt::format("x has {} channels in {} groups", c, groups));
    }
  }

  static Ints output_extents(const Request& request) {
    return {request.at("x").extents[0], k(request), axis(request, 0).outputs(), axis(request, 1).outputs()};
  }

  static std::optional<TensorSpec> implied_y(const Request& request) {
    if (request.find("x") == nullptr || request.find("w") == nullptr) return std::nullopt;
    check_filter(request);
    for (size_t i = 0; i < 2; ++i) check_axis(request, axis(request, i), i == 0 ? "h" : "w");
    return laid_out_like(request.at("x"), output_extents(request));
  }

  static void check_output(const Request& request) {
    const Ints expected = output_extents(request);
    if (expected[2] < 1 || expected[3] < 1) {
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

std::array<int64_t, 2> pair(const Ints& values, size_t first) {
  return {values[first], values[first + 1]};
}

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
  view.pad_begin = pair(request.ints("pad"), 0);
  view.pad_end = pair(request.ints("pad"), 2);
  view.stride = pair(request.ints("stride"), 0);
  view.dilation = pair(request.ints("dilation"), 0);
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
  request.attributes = {{"pad", Ints{pad_begin[0], pad_begin[1], pad_end[0], pad_end[1]}},
                        {"stride", Ints{stride[0], stride[1]}},
                        {"dilation", Ints{dilation[0], dilation[1]}},
                        {"groups", Ints{groups}},
                        {"mode", std::string(mirrored ? "convolution" : "cross_correlation")}};
  request.arithmetic = arithmetic;
  request.blend = blend;
  request.epilogue = epilogue;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
