#include "operations/pointwise.h"

#include <fmt/format.h>

#include "operations/spatial.h"

namespace kiln {

void require_rank(const Request& request, std::string_view operand) {
  const int rank = request.at(operand).rank();
  if (rank < 1) refuse(request, fmt::format("{} has {} dimensions", operand, rank), "it takes 1 to 5");
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
