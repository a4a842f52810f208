#include "local_norm/line.h"

namespace kiln::descriptor {
namespace {

constexpr double most_registers = 112;  // floats that a thread keeps
constexpr int64_t most_results = 32;    // of a thread: of 64, ptxas spills some for the sake of occupancy
constexpr int64_t largest_size = 32;

}  // namespace

bool line_fits_registers(const LocalNormRows& rows, int64_t segment, int64_t neighbours) {
  return segment * neighbours <= most_results &&
         line_work(rows, static_cast<double>(segment)).registers * static_cast<double>(neighbours) <= most_registers;
}

std::optional<std::string> line_refusal(const LocalNormRows& rows) {
  if (rows.elements() == 0) return "there is nothing to do";
  if (rows.axes.size() > 1) return "the window runs along several axes";
  if (rows.size > largest_size) return "a window of more than 32 elements does not fit registers";
  return std::nullopt;
}

LineWork line_work(const LocalNormRows& rows, double segment) {
  const auto size = static_cast<double>(rows.size);
  LineWork work;
  work.reach = size - 1;
  const double centres = rows.backward ? segment + work.reach : segment;  // of windows that are summed
  const double line = centres + work.reach;
  work.elements = line + (rows.backward ? centres : 0);
  work.registers = line * (rows.has_means() ? 2 : 1) + (rows.backward ? centres + segment : 0);
  work.instructions = rows.backward ? centres * (size + 14) + segment * (size + 6) : centres * (size + 9);
  return work;
}

}  // namespace kiln::descriptor
