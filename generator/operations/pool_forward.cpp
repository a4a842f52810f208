#include "kiln/generator/operations/pool_forward.h"

#include <fmt/format.h>

#include "kiln/base/error.h"
#include "operations/operations.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

Axis axis(const Request& request, size_t i) {
  const Ints& pad = request.ints("pad");
  return {request.at("x").extents[2 + i], request.ints("window")[i],  pad[i], pad[2 + i],
          request.ints("stride")[i],      request.ints("dilation")[i]};
}

class PoolForwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "pool_forward"; }
  std::string_view summary() const override { return "2-D maximum and average pooling, global pooling"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {"x", Role::input, true, Printing::always, "N,C,H,W"},
        {"y", Role::output, true, Printing::always, "N,C,P,Q"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"mode", std::string("max"), Printing::always, {"max", "avg", "avg_padded"}, "what is taken of each window"},
        {"window", Ints{}, Printing::always, {}, "h,w; 0 or `window=global`: all of x"},
        {"pad", Ints{0}, Printing::always, {}, "top,left,bottom,right"},
        {"stride", Ints{1}, Printing::always, {}, "h,w"},
        {"dilation", Ints{1}, Printing::when_set, {}, "h,w"},
        {"ceil", Ints{0}, Printing::never, {}, "1: round the extents of y up when they are inferred"},
    };
    return definitions;
  }

  void complete_attributes(Request& request) const override {
    const TensorSpec* x = request.find("x");
    for (Attribute& attribute : request.attributes) {
      const auto* word = std::get_if<std::string>(&attribute.value);
      if (attribute.name == "window" && word != nullptr && *word == "global" && x != nullptr && x->rank() == 4) {
        attribute.value = Ints{x->extents[2], x->extents[3]};
      }
    }
    const auto* window = std::get_if<Ints>(&request.attributes[1].value);
    if (window == nullptr || window->empty()) {
      refuse(request, "the window is missing or not a pair", "add window=h,w or window=global");
    }
    expand(request, "window", 2, 1);
    expand(request, "pad", 2, 2);
    expand(request, "stride", 2, 1);
    expand(request, "dilation", 2, 1);
    expand(request, "ceil", 1, 1);
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "y" || request.find("x") == nullptr) return std::nullopt;
    check_input(request);
    const TensorSpec& x = request.at("x");
    const bool ceil = request.ints("ceil").front() != 0;
    Ints extents = {x.extents[0], x.extents[1]};
    for (size_t i = 0; i < 2; ++i)
      extents.push_back(ceil ? axis(request, i).outputs_ceil() : axis(request, i).outputs());
    return laid_out_like(x, std::move(extents));
  }

  void validate(const Request& request) const override {
    check_input(request);
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    if (y.rank() != 4) refuse(request, fmt::format("y has {} dimensions", y.rank()), "expected N,C,P,Q");
    for (size_t i = 0; i < 2; ++i) {
      const int64_t floor = axis(request, i).outputs(), ceil = axis(request, i).outputs_ceil();
      if (floor < 1 && ceil < 1) refuse(request, "the window does not fit into the padded input", "pad more");
      const int64_t given = y.extents[2 + i];
      if (given < 1 || (given != floor && given != ceil)) {
        refuse(request, fmt::format("y has extent {} along {}, expected {}", given, i == 0 ? "h" : "w", floor),
               fmt::format("or {} in ceil mode", ceil));
      }
    }
    require_extents(request, "y", y, {x.extents[0], x.extents[1], y.extents[2], y.extents[3]},
                    "N and C are those of x");
  }

  Work work(const Request& request) const override {
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    const Ints& window = request.ints("window");
    Work work;
    work.flops = static_cast<double>(y.elements()) * static_cast<double>(window[0]) * static_cast<double>(window[1]);
    work.read_bytes = static_cast<double>(x.elements()) * size_of(x.dtype);
    work.write_bytes = static_cast<double>(y.elements()) * size_of(y.dtype);
    if (request.blend.beta != Scale::zero) work.read_bytes += work.write_bytes;
    return work;
  }

 private:
  static void check_input(const Request& request) {
    const TensorSpec& x = request.at("x");
    if (x.rank() != 4) refuse(request, fmt::format("x has {} dimensions", x.rank()), "2-D pooling takes N,C,H,W");
    if (x.extents[1] < 1) refuse(request, "x has no channels", "");
    for (size_t i = 0; i < 2; ++i) check_axis(request, axis(request, i), i == 0 ? "h" : "w");
  }
};

std::array<int64_t, 2> pair(const Ints& values, size_t first) {
  return {values[first], values[first + 1]};
}

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
  view.window = pair(request.ints("window"), 0);
  view.pad_begin = pair(request.ints("pad"), 0);
  view.pad_end = pair(request.ints("pad"), 2);
  view.stride = pair(request.ints("stride"), 0);
  view.dilation = pair(request.ints("dilation"), 0);
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
                        {"window", Ints{window[0], window[1]}},
                        {"pad", Ints{pad_begin[0], pad_begin[1], pad_end[0], pad_end[1]}},
                        {"stride", Ints{stride[0], stride[1]}},
                        {"dilation", Ints{dilation[0], dilation[1]}}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
