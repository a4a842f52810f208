#include "operations/pointwise.h"

#include <fmt/format.h>

#include "operations/spatial.h"

namespace kiln {

void require_rank(const Request& request, std::string_view operand) {
  const int rank = request.at(operand).rank();
  if (rank < 1 || rank > 5) refuse(request, fmt::format("{} has {} dimensions", operand, rank), "it takes 1 to 5");
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

}  // namespace kiln
