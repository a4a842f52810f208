// bench_primitives: what each operation moves through memory, over the bytes of the passes that passes.txt declares.
//
// Method: the variant that Kiln chooses where nothing was measured runs once on the emulated device, which counts the
// distinct 32-byte sectors that each launch reads and those that it writes: what a cache that never forgets would
// fetch and write back. Summed over the launches of the call and divided by the declared bytes, that is the ratio. The
// column `requested` is what warps asked for over what is distinct: uncoalesced accesses, and what is read again in one
// launch. `partials B` is how much of the declared bytes are partial results in the workspace. Counts, no times.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "passes.h"
#include "traffic.h"

namespace kiln::bench {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Error(ErrorCode::io_error, fmt::format("cannot read {}", path));
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

/// Prints the row; returns what is wrong with it, empty if nothing is.
std::string print_row(const TrafficMeter& meter, const DeclaredRow& row) {
  const Traffic traffic = meter.measure(row.request);
  const double declared = declared_bytes(row, traffic.workspace_bytes);
  const double ratio = traffic.unique_bytes / declared;
  const double limit = traffic_limit(row.request);
  fmt::print("{:6.3f} {:5.2f} {:9.2f} {:11.0f} {:11.0f} {:11.0f} {:8}  {:41} {}\n", ratio, limit,
             traffic.requested_bytes / traffic.unique_bytes, traffic.unique_bytes, declared,
             declared - declared_bytes(row, 0), traffic.launches, traffic.algorithm, row.request.key());
  if (ratio > limit) return fmt::format("{:.3f} of {:.2f}: {}", ratio, limit, row.request.key());
  if (ratio < least_traffic) return fmt::format("{:.3f}, more is declared than is moved: {}", ratio, row.request.key());
  return {};
}

int run(const std::string& table) {
  const std::vector<DeclaredRow> rows = parse_passes(read_text(table));
  const Environment environment = Environment::read();
  const TrafficMeter meter(environment.driver.value_or("emulator"), {environment.nvrtc});
  fmt::print("{}\n", meter.description());
  fmt::print("{:>6} {:>5} {:>9} {:>11} {:>11} {:>11} {:>8}  {:41} {}\n", "ratio", "limit", "requested", "unique B",
             "declared B", "partials B", "launches", "algorithm", "request");
  std::vector<std::string> wrong;
  std::string reason;
  for (const DeclaredRow& row : rows) {
    if (row.reason != reason) fmt::print("# {}\n", reason = row.reason);
    std::string fault = print_row(meter, row);
    if (!fault.empty()) wrong.push_back(std::move(fault));
  }
  for (const Operation* operation : operations()) {
    const auto has_row = [&](const DeclaredRow& row) { return row.request.operation == operation->name(); };
    if (std::none_of(rows.begin(), rows.end(), has_row))
      wrong.push_back(fmt::format("{}: the table has no row", operation->name()));
  }
  fmt::print("{} rows; wrong: {}\n", rows.size(), wrong.size());
  for (const std::string& fault : wrong) fmt::print("  {}\n", fault);
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  try {
    return kiln::bench::run(argc > 1 ? argv[1] : KILN_BENCH_PASSES);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_primitives: {}\n", error.what());
    return 2;
  }
}
