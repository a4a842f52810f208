#include "kiln/generator/operations/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

int64_t axis_of(const Request& request) {
  return request.ints("axis").front();
}

// Refuses an axis that x does not have, and indices of another rank.
void check_axis(const Request& request) {
  const TensorSpec &x = request.at("x"), &indices = request.at("indices");
  const int64_t axis = axis_of(request);
  if (axis < 0 || axis >= x.rank()) {
    refuse(request, fmt::format("axis {} is outside the {} dimensions of x", axis, x.rank()),
           fmt::format("give 0 to {}, or -1 for the last", x.rank() - 1));
  }
  if (indices.rank() != x.rank()) {
    refuse(request, fmt::format("indices have {} dimensions, x has {}", indices.rank(), x.rank()),
           "give them x's, with extents of 1 where they repeat");
  }
}

// Extents of y, after check_axis().
Ints gathered_extents(const Request& request) {
  Ints extents = request.at("indices").extents;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (static_cast<int64_t>(i) != axis_of(request) && extents[i] == 1) extents[i] = request.at("x").extents[i];
  }
  return extents;
}

class GatherOperation final : public Operation {
 public:
  std::string_view name() const override { return "gather"; }
  std::string_view summary() const override { return "elements of x that stand where indices say along one dimension"; }
  std::string_view prologue_operand() const override { return "x"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x",
         .role = Role::input,
         .extents = "1 to 5 dimensions",
         .summary = "an extent of 1 repeats where that of y is longer, but along `axis`",
         .dtypes = DTypes::any,
         .repeats = true},
        {.name = "indices",
         .role = Role::input,
         .extents = "along `axis` y's, in every other dimension y's or 1",
         .summary = "negative ones count from the end; what one outside x names is 0; an extent of 1 repeats",
         .dtypes = DTypes::only_i32,
         .repeats = true},
        {.name = "y",
         .role = Role::output,
         .extents = "along `axis` those of indices, else the longer of x and indices",
         .left_out = "dtype and layout of x",
         .dtypes = DTypes::any},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"axis", Ints{0}, Printing::always, {}, "the dimension of x that indices count along; negative: from the end"}};
    return definitions;
  }

  void complete_attributes(Request& request) const override {
    expand(request, "axis", 1, 1);
    const TensorSpec* x = request.find("x");
    const int64_t axis = axis_of(request);
    if (x != nullptr && axis < 0 && axis >= -x->rank()) set_ints(request, "axis", {axis + x->rank()});
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "y" || request.find("x") == nullptr || request.find("indices") == nullptr) return std::nullopt;
    check_axis(request);
    return laid_out_like(request.at("x"), gathered_extents(request));
  }

  void validate(const Request& request) const override {
    require_rank(request, "x");
    check_axis(request);
    const TensorSpec& x = request.at("x");
    const int64_t axis = axis_of(request);
    const int64_t positions = x.extents[static_cast<size_t>(axis)];
    if (positions > std::numeric_limits<int32_t>::max()) {
      refuse(request, fmt::format("x has extent {} along the axis", positions),
             "indices are i32: give 2^31 - 1 at most");
    }
    const Ints extents = gathered_extents(request);
    for (size_t i = 0; i < extents.size(); ++i) {
      if (static_cast<int64_t>(i) == axis || x.extents[i] == extents[i] || x.extents[i] == 1) continue;
      refuse(request, fmt::format("along dimension {} x has extent {} and indices {}", i, x.extents[i], extents[i]),
             "they have to be equal, or one of them 1");
    }
    require_extents(request, "y", request.at("y"), extents, "those of indices; where these repeat, those of x");
    if (positions == 0 && request.at("y").elements() != 0) {
      refuse(request, "x has nothing along the axis, and y would be zeros alone",
             "tensor_set gives every element one value");
    }
    if (request.dynamic_batch && axis == 0) {
      refuse(request, "the batch cannot be dynamic along the axis that indices count along",
             "fix the batch, or give x a dimension of 1 in front, which repeats");
    }
  }

  Work work(const Request& request) const override {
    Work work = pointwise_work(request, 0);
    // At most one element of x is read for each element of y.
    const TensorSpec &x = request.at("x"), &y = request.at("y");
    const double named = static_cast<double>(y.elements()) * size_of(x.dtype);
    work.read_bytes -= std::max(bytes_of(x) - named, 0.0);
    return work;
  }
};

}  // namespace

const Operation& gather_operation() {
  static const GatherOperation definition;
  return definition;
}

Gather Gather::of(const Request& request) {
  return {request.at("x"),  request.at("indices"), request.at("y"),
          axis_of(request), request.blend,         request.dynamic_batch};
}

Request Gather::request() const {
  Request request;
  request.operation = "gather";
  request.operands = {{"x", x}, {"indices", indices}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  request.attributes = {{"axis", Ints{axis}}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

std::optional<int64_t> gathered_positions(const Request& request, std::string_view operand) {
  if (request.operation != "gather" || operand != "indices") return std::nullopt;
  return request.at("x").extents[static_cast<size_t>(axis_of(request))];
}

}  // namespace kiln
