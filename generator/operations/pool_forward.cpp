#include "kiln/generator/operations/pool_forward.h"

#include <fmt/format.h>

#include "kiln/base/error.h"
#include "operations/operations.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

WindowAxis axis(const Request& request, int i) {
  return axis_of(request, i, request.ints("window")[static_cast<size_t>(i)]);
}

class PoolForwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "pool_forward"; }
  std::string_view summary() const override { return "1-D, 2-D and 3-D maximum and average pooling, global pooling"; }
  std::string_view channel_name() const override { return "c"; }
  bool takes_user_code() const override { return true; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {"x", Role::input, true, Printing::always, "N,C,H,W, or N,C,W, or N,C,D,H,W"},
        {"y", Role::output, true, Printing::always, "N,C,P,Q, or N,C,Q, or N,C,Z,P,Q"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"mode", std::string("max"), Printing::always, {"max", "avg", "avg_padded"}, "what is taken of each window"},
        {"window", Ints{}, Printing::always, {}, "one value an axis: h,w in 2-D; 0 or `window=global`: all of x"},
        {"pad", Ints{0}, Printing::always, {}, "begins, then ends: top,left,bottom,right in 2-D"},
        {"stride", Ints{1}, Printing::always, {}, "one value an axis: h,w in 2-D"},
        {"dilation", Ints{1}, Printing::when_set, {}, "one value an axis: h,w in 2-D"},
        {"ceil", Ints{0}, Printing::never, {}, "1: round the extents of y up when they are inferred"},
    };
    return definitions;
  }

  void complete_attributes(Request& request) const override {
    const auto axes = static_cast<size_t>(spatial_axes(request));
    const TensorSpec* x = request.find("x");
    for (Attribute& attribute : request.attributes) {
      const auto* word = std::get_if<std::string>(&attribute.value);
      if (attribute.name == "window" && word != nullptr && *word == "global" && x != nullptr) {
        attribute.value = Ints(x->extents.begin() + 2, x->extents.end());
      }
    }
    const auto* window = std::get_if<Ints>(&request.attributes[1].value);
    if (window == nullptr || window->empty()) {
      refuse(request, "the window is missing or not numbers", "add window=h,w (one number an axis) or window=global");
    }
    expand(request, "window", axes, 1);
    expand(request, "pad", axes, 2);
    expand(request, "stride", axes, 1);
    expand(request, "dilation", axes, 1);
    expand(request, "ceil", 1, 1);
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "y" || request.find("x") == nullptr) return std::nullopt;
    check_input(request);
    const TensorSpec& x = request.at("x");
    const bool ceil = request.ints("ceil").front() != 0;
    Ints extents = {x.extents[0], x.extents[1]};
    for (int i = 0; i < x.rank() - 2; ++i) {
      extents.push_back(ceil ? axis(request, i).outputs_ceil() : axis(request, i).outputs_floor());
    }
    return laid_out_like(x, std::move(extents));
  }

  void validate(const Request& request) const override {
    check_input(request);
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    if (y.rank() != x.rank()) {
      refuse(request, fmt::format("x has {} and y has {} dimensions", x.rank(), y.rank()), "they have equally many");
    }
    const int axes = x.rank() - 2;
    for (int i = 0; i < axes; ++i) {
      const int64_t floor = axis(request, i).outputs_floor(), ceil = axis(request, i).outputs_ceil();
      if (floor < 1 && ceil < 1) refuse(request, "the window does not fit into the padded input", "pad more");
      const int64_t given = y.extents[2 + static_cast<size_t>(i)];
      if (given < 1 || (given != floor && given != ceil)) {
        refuse(request, fmt::format("y has extent {} along {}, expected {}", given, axis_name(i, axes), floor),
               fmt::format("or {} in ceil mode", ceil));
      }
    }
    Ints expected = y.extents;
    expected[0] = x.extents[0];
    expected[1] = x.extents[1];
    require_extents(request, "y", y, expected, "N and C are those of x");
  }

  Work work(const Request& request) const override {
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    Work work;
    work.flops = static_cast<double>(y.elements());
    for (const int64_t taps : request.ints("window")) work.flops *= static_cast<double>(taps);
    work.read_bytes = static_cast<double>(x.elements()) * size_of(x.dtype);
    work.write_bytes = static_cast<double>(y.elements()) * size_of(y.dtype);
    if (request.blend.beta != Scale::zero) work.read_bytes += work.write_bytes;
    return work;
  }

 private:
  static void check_input(const Request& request) {
    const TensorSpec& x = request.at("x");
    const int axes = spatial_axes(request);
    if (x.extents[1] < 1) refuse(request, "x has no channels", "");
    for (int i = 0; i < axes; ++i) check_axis(request, axis(request, i), axis_name(i, axes));
  }
};

std::string_view word_of(PoolMode mode) {
  switch (mode) {
    case PoolMode::max:
      return "max";
    case PoolMode::avg:
      return "avg";
    case PoolMode::avg_padded:
      return "avg_padded";
  }
  return "?";
}

PoolMode mode_of(const std::string& word) {
  for (PoolMode mode : {PoolMode::max, PoolMode::avg, PoolMode::avg_padded}) {
    if (word == word_of(mode)) return mode;
  }
  throw Error(ErrorCode::internal, "pool_forward has an unknown mode " + word);
}

}  // namespace

const Operation& pool_forward_operation() {
  static const PoolForwardOperation definition;
  return definition;
}

PoolForward PoolForward::of(const Request& request) {
  PoolForward view;
  view.x = request.at("x");
  view.y = request.at("y");
  view.mode = mode_of(request.word("mode"));
  view.window = request.ints("window");
  view.pad_begin = pad_side(request, false);
  view.pad_end = pad_side(request, true);
  view.stride = request.ints("stride");
  view.dilation = request.ints("dilation");
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request PoolForward::request() const {
  Request request;
  request.operation = "pool_forward";
  request.operands = {{"x", x}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  request.attributes = {{"mode", std::string(word_of(mode))},
                        {"window", window},
                        {"pad", pads_of(pad_begin, pad_end)},
                        {"stride", given_or(stride, 1)},
                        {"dilation", given_or(dilation, 1)}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

WindowAxis PoolForward::axis(int axis) const {
  const auto i = static_cast<size_t>(axis);
  return {.extent = x.extents[2 + i],
          .window = window[i],
          .outputs = y.extents[2 + i],
          .pad_begin = pad_begin[i],
          .pad_end = pad_end[i],
          .stride = stride[i],
          .dilation = dilation[i]};
}

}  // namespace kiln
