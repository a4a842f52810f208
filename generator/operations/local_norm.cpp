#include "kiln/generator/operations/local_norm.h"

#include <fmt/format.h>

#include <limits>

#include "operations/axes.h"
#include "operations/blends.h"
#include "operations/norm.h"
#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/stages.h"

namespace kiln {
namespace {

constexpr size_t most_axes = 3;

// Base of both directions.
class LocalNormOperation : public Operation {
 public:
  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        axes_attribute({1}, "the one to three dimensions that the window extends along"),
        {"size",
         std::vector<int64_t>{5},
         Printing::always,
         {},
         "elements of the window along each axis, from i - floor((size-1)/2) to i + floor(size/2), without those "
         "outside x"},
    };
    return definitions;
  }

  const std::vector<ScalarDefinition>& scalars() const override {
    static const std::vector<ScalarDefinition> definitions = {
        {"lrn_alpha", 1e-4F, 2.0F,
         "what the sum of the window's squares is multiplied by, over size^(number of axes); finite and not negative"},
        {"lrn_beta", 0.75F, 0.75F, "the exponent of s; finite and above 0"},
        {"lrn_k", 2, 1.0F, "what is added to that product; finite and above 0"},
    };
    return definitions;
  }

  std::vector<ScalarRule> scalar_rules(const Request&) const final {
    using Limits = std::numeric_limits<float>;
    return {{0, 0, Limits::max(), "give a number that is not negative"},
            {1, Limits::denorm_min(), Limits::max(), "give a number above 0"},
            {2, Limits::min(), Limits::max(), "give a normal number above 0"}};
  }

  std::string short_form(const Request& request) const override {
    return fmt::format("local normalisation {}{}, {} along axes {}", extents_words(request.at("x")),
                       operand_words(request, "x"), request.ints("size").front(), axes_words(request));
  }

  void complete_attributes(Request& request) const final {
    complete_axes(request, "x");
    expand(request, "size", 1, 1);
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const final {
    const TensorSpec* x = request.find("x");
    if (x == nullptr || (operand != "y" && operand != "dy" && operand != "dx")) return std::nullopt;
    return laid_out_like(*x, x->extents);
  }

  void validate(const Request& request) const final {
    require_rank(request, "x");
    check_axes(request, "x");
    if (request.ints("axes").size() > most_axes) refuse(request, "the window has more than 3 axes", "give 1 to 3");
    const int64_t size = request.ints("size").front();
    if (size < 1 || size > LocalNormForward::most_size) {
      refuse(request, fmt::format("size={} is no extent of a window", size),
             fmt::format("give 1 to {}", LocalNormForward::most_size));
    }
    for (const Operand& operand : request.operands) {
      if (is_user_operand(operand.name)) continue;
      require_extents(request, operand.name, operand.spec, request.at("x").extents, "those of x");
    }
  }
};

OperandDefinition means_operand() {
  return {.name = "means",
          .role = Role::input,
          .printing = Printing::when_set,
          .extents = "as x",
          .left_out = "they are 0",
          .summary = "what the squares are of differences from"};
}

class LocalNormForwardOperation final : public LocalNormOperation {
 public:
  std::string_view name() const override { return "local_norm_forward"; }
  std::string_view summary() const override { return "local response and divisive normalisation"; }
  bool adds_in_any_order() const override { return true; }
  std::string_view prologue_operand() const override { return "x"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x", .role = Role::input, .extents = "1 to 5 dimensions"},
        means_operand(),
        {.name = "y", .role = Role::output, .extents = "as x", .left_out = "dtype and layout of x"},
    };
    return definitions;
  }

  Work work(const Request& request) const override { return norm_work(request, 10); }
};

class LocalNormBackwardOperation final : public LocalNormOperation {
 public:
  std::string_view name() const override { return "local_norm_backward"; }
  std::string_view summary() const override { return "gradients of local response and divisive normalisation"; }
  std::string short_form(const Request& request) const override {
    return "gradient of " + LocalNormOperation::short_form(request);
  }
  bool adds_in_any_order() const override { return true; }
  std::string_view prologue_operand() const override { return "dy"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x", .role = Role::input, .extents = "1 to 5 dimensions"},
        means_operand(),
        {.name = "dy", .role = Role::input, .extents = "as x", .left_out = "dtype and layout of x"},
        {.name = "dx", .role = Role::output, .extents = "as x", .left_out = "dtype and layout of x"},
        {.name = "dmeans",
         .role = Role::output,
         .printing = Printing::when_set,
         .extents = "as x",
         .left_out = "not computed",
         .summary = "the gradient with respect to the means"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const auto definitions = with_classes(LocalNormOperation::attributes(), further_blends());
    return definitions;
  }

  const std::vector<ScalarDefinition>& scalars() const override {
    static const auto definitions = with_values(LocalNormOperation::scalars(), further_blends());
    return definitions;
  }

  const std::vector<FurtherBlend>& further_blends() const override {
    static const std::vector<FurtherBlend> blends = {{"dmeans", {"dmeans"}}};
    return blends;
  }

  Work work(const Request& request) const override { return norm_work(request, 24); }
};

// The attributes and the blend of a view's request, finished.
template <class View>
Request finished_of(const View& view, Request request) {
  request.attributes = {{"axes", view.axes}, {"size", std::vector<int64_t>{view.size}}};
  if constexpr (requires { view.dmeans_blend; }) append_classes("dmeans", view.dmeans_blend, request.attributes);
  request.blend = view.blend;
  request.dynamic_batch = view.dynamic_batch;
  return finished(std::move(request));
}

template <class View>
View common_of(const Request& request) {
  View view;
  view.x = request.at("x");
  view.means = optional_operand(request, "means");
  view.axes = request.ints("axes");
  view.size = request.ints("size").front();
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

}  // namespace

const Operation& local_norm_forward_operation() {
  static const LocalNormForwardOperation definition;
  return definition;
}

const Operation& local_norm_backward_operation() {
  static const LocalNormBackwardOperation definition;
  return definition;
}

LocalNormForward LocalNormForward::of(const Request& request) {
  auto view = common_of<LocalNormForward>(request);
  view.y = request.at("y");
  return view;
}

Request LocalNormForward::request() const {
  Request request;
  request.operation = "local_norm_forward";
  request.operands = {{"x", x}};
  add_operand(request, "means", means);
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  return finished_of(*this, std::move(request));
}

LocalNormBackward LocalNormBackward::of(const Request& request) {
  auto view = common_of<LocalNormBackward>(request);
  view.dy = request.at("dy");
  view.dx = request.at("dx");
  view.dmeans = optional_operand(request, "dmeans");
  view.dmeans_blend = blend_of(request, "dmeans");
  return view;
}

Request LocalNormBackward::request() const {
  Request request;
  request.operation = "local_norm_backward";
  request.operands = {{"x", x}};
  add_operand(request, "means", means);
  request.operands.push_back({"dy", dy});
  if (!dx.extents.empty()) request.operands.push_back({"dx", dx});
  add_operand(request, "dmeans", dmeans);
  return finished_of(*this, std::move(request));
}

}  // namespace kiln
