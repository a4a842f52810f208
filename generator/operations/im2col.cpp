#include "kiln/generator/operations/im2col.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "kiln/base/checked.h"
#include "operations/operations.h"
#include "operations/pool_window.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

// Extents of the columns of `images`: N, C times the elements of a window, and the windows along each axis.
Ints extents_of_columns(const Request& request, std::string_view images) {
  check_pool_input(request, images);
  const TensorSpec& spec = request.at(images);
  Ints factors = request.ints("window");
  factors.push_back(spec.extents[1]);
  const std::optional<int64_t> channels = checked_elements(factors);
  if (!channels) refuse(request, "the channels of its columns are more than 64 bits count", "use a smaller window");
  Ints extents = {spec.extents[0], *channels};
  const int axes = spec.rank() - 2;
  for (int i = 0; i < axes; ++i) {
    const WindowAxis axis = pool_axis(request, images, i);
    if (axis.outputs_floor() < 1) refuse_large_window(request, "window", axis, axis_name(i, axes), images);
    extents.push_back(axis.outputs_floor());
  }
  return extents;
}

void check_columns(const Request& request, std::string_view images, std::string_view columns) {
  const Ints expected = extents_of_columns(request, images);
  require_extents(request, columns, request.at(columns), expected,
                  fmt::format("N and C of {} with the elements of a window, and the windows along each axis", images));
}

std::string columns_words(const Request& request, std::string_view name, std::string_view images) {
  return fmt::format("{} {}{}, {}{}", name, extents_words(request.at(images)), operand_words(request, images),
                     pool_window_words(request, images), steps_words(steps_of(request)));
}

class Im2colOperation final : public Operation {
 public:
  std::string_view name() const override { return "im2col"; }
  std::string_view summary() const override { return "the elements of each window side by side, as channels: unfold"; }
  std::string short_form(const Request& request) const override { return columns_words(request, "im2col", "x"); }
  std::string_view channel_name() const override { return "k"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x",
         .role = Role::input,
         .extents = "N C W; N C H W; N C D H W",
         .dtypes = DTypes::floating | DTypes::integers},
        {.name = "y",
         .role = Role::output,
         .extents = "N K Q; N K P Q; N K Z P Q",
         .left_out = "dtype and layout of x",
         .summary = "K: C times the elements of a window",
         .dtypes = DTypes::floating | DTypes::integers},
    };
    return definitions;
  }
  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = pool_window_attributes();
    return definitions;
  }

  void complete_attributes(Request& request) const override { complete_pool_window(request, "x"); }
  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "y" || request.find("x") == nullptr) return std::nullopt;
    return laid_out_like(request.at("x"), extents_of_columns(request, "x"));
  }
  void validate(const Request& request) const override { check_columns(request, "x", "y"); }

  Work work(const Request& request) const override {
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    Work work;
    work.read_bytes = std::min(bytes_of(x), static_cast<double>(y.elements()) * size_of(x.dtype));
    work.write_bytes = bytes_of(y);
    if (request.blend.beta != Scale::zero) work.read_bytes += work.write_bytes;
    return work;
  }
};

class Col2imOperation final : public Operation {
 public:
  std::string_view name() const override { return "col2im"; }
  std::string_view summary() const override { return "the sum of what windows hold of each element: fold"; }
  std::string short_form(const Request& request) const override { return columns_words(request, "col2im", "y"); }
  std::string_view channel_name() const override { return "c"; }
  bool adds_in_any_order() const override { return true; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x",
         .role = Role::input,
         .extents = "N K Q; N K P Q; N K Z P Q",
         .summary = "K: C times the elements of a window"},
        {.name = "y", .role = Role::output, .extents = "N C W; N C H W; N C D H W"},
    };
    return definitions;
  }
  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = pool_window_attributes();
    return definitions;
  }

  void complete_attributes(Request& request) const override { complete_pool_window(request, "y"); }
  // The extents of images do not follow from those of columns.
  std::optional<TensorSpec> implied_operand(const Request&, std::string_view) const override { return std::nullopt; }
  void validate(const Request& request) const override { check_columns(request, "y", "x"); }

  Work work(const Request& request) const override {
    Work work;
    work.flops = static_cast<double>(request.at("x").elements());
    add_each_operand(request, work);
    return work;
  }
};

template <class View>
View columns_view(const Request& request) {
  View view;
  static_cast<PoolWindow&>(view) = pool_window_of(request);
  view.x = request.at("x");
  view.y = request.at("y");
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

template <class View>
Request columns_request(const View& view, std::string_view operation) {
  Request request;
  request.operation = operation;
  request.operands = {{"x", view.x}};
  if (!view.y.extents.empty()) request.operands.push_back({"y", view.y});
  request.attributes = attributes_of(static_cast<const PoolWindow&>(view));
  request.blend = view.blend;
  request.dynamic_batch = view.dynamic_batch;
  return finished(std::move(request));
}

}  // namespace

const Operation& im2col_operation() {
  static const Im2colOperation definition;
  return definition;
}

const Operation& col2im_operation() {
  static const Col2imOperation definition;
  return definition;
}

Im2col Im2col::of(const Request& request) {
  return columns_view<Im2col>(request);
}

Request Im2col::request() const {
  return columns_request(*this, "im2col");
}

Col2im Col2im::of(const Request& request) {
  return columns_view<Col2im>(request);
}

Request Col2im::request() const {
  return columns_request(*this, "col2im");
}

}  // namespace kiln
