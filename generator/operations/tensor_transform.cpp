#include <fmt/format.h>

#include "kiln/generator/operations/tensor_ops.h"
#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

class TensorTransformOperation final : public Operation {
 public:
  std::string_view name() const override { return "tensor_transform"; }
  std::string_view summary() const override { return "copy into another layout or dtype, with scale and padding"; }
  std::string short_form(const Request& request) const override {
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    return fmt::format("transform {}{}{} -> {}{}", extents_words(x), storage_words(x), call_words(request),
                       extents_words(y), x.dtype == DType::f32 ? storage_words(y) : storage_words_with_dtype(y));
  }
  std::string_view prologue_operand() const override { return "x"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x",
         .role = Role::input,
         .extents = "1 to 5 dimensions",
         .summary = "an extent of 1 repeats where that of y is longer",
         .dtypes = DTypes::any,
         .repeats = true},
        in_place({.name = "y",
                  .role = Role::output,
                  .extents = "as x with its padding",
                  .left_out = "dtype and layout of x",
                  .dtypes = DTypes::any},
                 {"x"}),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"pad",
         Ints{0},
         Printing::when_set,
         {},
         "elements in front of x in every dimension, then those behind it; one number: the same everywhere"},
    };
    return definitions;
  }

  const std::vector<ScalarDefinition>& scalars() const override {
    static const std::vector<ScalarDefinition> scalars = {{"value", 0, 0.625F, "what the padding holds"}};
    return scalars;
  }

  void complete_attributes(Request& request) const override {
    if (const TensorSpec* x = request.find("x")) expand(request, "pad", x->extents.size(), 2);
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* x = request.find("x");
    if (operand != "y" || x == nullptr) return std::nullopt;
    return laid_out_like(*x, padded(request));
  }

  void validate(const Request& request) const override {
    require_rank(request, "x");
    for (const int64_t pad : request.ints("pad")) {
      if (pad < 0 || pad > max_pad) refuse(request, fmt::format("a pad is {}", pad), "pads are 0 to 2^31 - 1");
    }
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    const Ints extents = padded(request);
    if (y.rank() != x.rank()) require_extents(request, "y", y, extents, "those of x with its padding");
    for (size_t i = 0; i < extents.size(); ++i) {
      const bool repeats = extents[i] == 1 && x.extents[i] == 1;
      if (y.extents[i] != extents[i] && !repeats) {
        require_extents(request, "y", y, extents, "those of x with its padding; an extent of 1 may repeat");
      }
    }
    if (x.extents.front() == 0 && extents.front() != 0) {
      refuse(request, "x has no batch, and y would be padding alone", "tensor_set gives every element one value");
    }
    if (request.dynamic_batch && (request.ints("pad").front() != 0 || request.ints("pad")[extents.size()] != 0)) {
      refuse(request, "the batch cannot be dynamic and padded", "fix the batch");
    }
  }

  Work work(const Request& request) const override { return pointwise_work(request, 1); }

 private:
  static constexpr int64_t max_pad = (int64_t{1} << 31) - 1;

  // Extents of x with its padding.
  static Ints padded(const Request& request) {
    Ints extents = request.at("x").extents;
    const Ints& pads = request.ints("pad");
    for (size_t i = 0; i < extents.size(); ++i) extents[i] += pads[i] + pads[extents.size() + i];
    return extents;
  }
};

bool pads_anything(const Ints& pads) {
  for (const int64_t pad : pads) {
    if (pad != 0) return true;
  }
  return false;
}

}  // namespace

const Operation& tensor_transform_operation() {
  static const TensorTransformOperation definition;
  return definition;
}

TensorTransform TensorTransform::of(const Request& request) {
  TensorTransform view;
  view.x = request.at("x");
  view.y = request.at("y");
  if (pads_anything(request.ints("pad"))) {
    view.pad_begin = pad_side(request, false);
    view.pad_end = pad_side(request, true);
  }
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request TensorTransform::request() const {
  Request request;
  request.operation = "tensor_transform";
  request.operands = {{"x", x}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  request.attributes = {{"pad", pads_of(pad_begin, pad_end)}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
