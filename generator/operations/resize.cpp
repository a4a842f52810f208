#include "kiln/generator/operations/resize.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "operations/operations.h"
#include "operations/resizing.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

// Extents of y along the spatial axes where y is left out; none if nothing says them.
Ints implied_extents(const Request& request, const TensorSpec& x) {
  const Ints& size = request.ints("size");
  if (!size.empty()) return size;
  Ints extents;
  const std::vector<ResizeScale> scales = resizing_of(request).scales;
  for (size_t i = 0; i < scales.size(); ++i) extents.push_back(scaled_extent(x.extents[i + 2], scales[i]));
  const bool all_left_out =
      std::all_of(scales.begin(), scales.end(), [](const ResizeScale& scale) { return scale.up == 0; });
  return all_left_out ? Ints{} : extents;
}

class ResizeOperation final : public Operation {
 public:
  std::string_view name() const override { return "resize"; }
  std::string_view summary() const override { return "x at other spatial extents: nearest, linear or cubic"; }
  std::string_view channel_name() const override { return "c"; }
  bool adds_in_any_order() const override { return true; }
  std::string_view prologue_operand() const override { return "x"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x",
         .role = Role::input,
         .extents = "N C W; N C H W; N C D H W",
         .dtypes = DTypes::floating | DTypes::integers},
        {.name = "y",
         .role = Role::output,
         .extents = "N C Q; N C P Q; N C Z P Q",
         .left_out = "dtype and layout of x; spatial extents `size`, or x's times `up` / `down`, rounded down",
         .dtypes = DTypes::floating | DTypes::integers},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = [] {
      std::vector<AttributeDefinition> all = resizing_attributes();
      all.push_back({"size", Ints{}, Printing::never, {}, "where y is left out, its spatial extents"});
      return all;
    }();
    return definitions;
  }

  const std::vector<ScalarDefinition>& scalars() const override { return resizing_scalars(); }
  std::vector<ScalarRule> scalar_rules(const Request& request) const override { return resizing_scalar_rules(request); }

  void complete_attributes(Request& request) const override {
    if (const Ints size = given_ints(request, "size"); !size.empty()) {
      expand(request, "size", static_cast<size_t>(spatial_axes(request)), 1);
    }
    complete_resizing(request, "x");
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* x = request.find("x");
    if (operand != "y" || x == nullptr) return std::nullopt;
    const Ints spatial = implied_extents(request, *x);
    if (spatial.empty()) return std::nullopt;
    Ints extents = {x->extents[0], x->extents[1]};
    extents.insert(extents.end(), spatial.begin(), spatial.end());
    return laid_out_like(*x, std::move(extents));
  }

  void validate(const Request& request) const override { check_resizing(request, "x", "y"); }

  Work work(const Request& request) const override {
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    Work work;
    const double taps = taps_per_output(request, "x", "y");
    work.flops = static_cast<double>(y.elements()) * (taps == 1 ? 0 : 2 * taps);
    work.read_bytes = std::min(bytes_of(x), static_cast<double>(y.elements()) * taps * size_of(x.dtype));
    work.write_bytes = bytes_of(y);
    if (request.blend.beta != Scale::zero) work.read_bytes += work.write_bytes;
    return work;
  }
};

}  // namespace

const Operation& resize_operation() {
  static const ResizeOperation definition;
  return definition;
}

Resize Resize::of(const Request& request) {
  Resize view;
  static_cast<Resizing&>(view) = resizing_of(request);
  view.x = request.at("x");
  view.y = request.at("y");
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request Resize::request() const {
  Request request;
  request.operation = "resize";
  request.operands = {{"x", x}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  request.attributes = attributes_of(*this);
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
