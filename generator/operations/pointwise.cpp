#include "operations/pointwise.h"

#include <fmt/format.h>

#include "operations/spatial.h"

namespace kiln {

void require_rank(const Request& request, std::string_view operand) {
  const int rank = request.at(operand).rank();
  if (rank < 1) refuse(request, fmt::format("{} has {} dimensions", operand, rank), "it takes 1 to 5");
}

void require_if_read(const Request& request, std::string_view operand, bool is_read, std::string_view advice) {
  if ((request.find(operand) != nullptr) == is_read) return;
  refuse(request, fmt::format("operand {} {}", operand, is_read ? "is missing" : "is given"), advice);
}

void require_extents_or_ones(const Request& request, std::string_view operand, std::string_view whole) {
  const TensorSpec &spec = request.at(operand), &all = request.at(whole);
  bool fits = spec.rank() == all.rank();
  for (size_t d = 0; fits && d < all.extents.size(); ++d) {
    fits = spec.extents[d] == all.extents[d] || spec.extents[d] == 1;
  }
  if (!fits) {
    require_extents(request, operand, spec, all.extents,
                    fmt::format("those of {}, or 1 where the input repeats", whole));
  }
}

Work pointwise_work(const Request& request, double flops) {
  Work work;
  const Operand& result = result_of(request);
  for (const Operand& operand : request.operands) {
    const double bytes = bytes_of(operand.spec);
    if (operand.name == result.name) work.write_bytes += bytes;
    if (is_read(request, operand.name)) work.read_bytes += bytes;
  }
  work.flops = flops * static_cast<double>(result.spec.elements());
  return work;
}

void ElementwiseOperation::complete_attributes(Request& /*request*/) const {}

std::optional<TensorSpec> ElementwiseOperation::implied_operand(const Request& request,
                                                                std::string_view operand) const {
  const TensorSpec* x = request.find("x");
  if (operand != "y" || x == nullptr) return std::nullopt;
  return laid_out_like(*x, x->extents);
}

void ElementwiseOperation::validate(const Request& request) const {
  require_rank(request, "x");
  require_extents(request, "y", request.at("y"), request.at("x").extents, "those of x");
}

Work ElementwiseOperation::work(const Request& request) const {
  return pointwise_work(request, 1);
}

}  // namespace kiln
