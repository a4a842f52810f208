// bench_primitives: what each operation moves through memory, over the bytes of the passes that passes.txt declares.
//
// Method: the variant that Kiln chooses where nothing was measured runs once on the emulated device, which counts the
// distinct 32-byte sectors that each launch reads and those that it writes: what a cache that never forgets would
// fetch and write back. Summed over the launches of the call and divided by the declared bytes, that is the ratio. The
// column `requested` is what warps asked for over what is distinct: uncoalesced accesses, and what is read again in one
// launch. `operands` is the ratio to the passes over operands alone, without the partial results that are declared.
// Counts, no times.
//
//   bench_primitives [--quick] [TABLE]
//
// --quick: few rows of each operation, those that the tests hold to their limits.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "declared_passes.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
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
  const double declared = declared_bytes(row);
  fmt::print("{:6.3f} {:5.2f} {:8.3f} {:9.2f} {:11.0f} {:11.0f} {:8}  {:41} {}\n", traffic.unique_bytes / declared,
             traffic_limit(row.request), traffic.unique_bytes / (declared - declared_partials(row)),
             traffic.requested_bytes / traffic.unique_bytes, traffic.unique_bytes, declared, traffic.launches,
             traffic.algorithm, row.request.key());
  return fault_of(row, traffic.unique_bytes, traffic.requested_bytes);
}

int run(const std::string& table, bool quick) {
  const std::vector<DeclaredRow> all = parse_passes(read_text(table));
  const std::vector<DeclaredRow> rows = quick ? quick_rows(all) : all;
  const Environment environment = Environment::read();
  const TrafficMeter meter(environment.driver.value_or("emulator"), {environment.nvrtc});
  fmt::print("{}\n", meter.description());
  fmt::print("{:>6} {:>5} {:>8} {:>9} {:>11} {:>11} {:>8}  {:41} {}\n", "ratio", "limit", "operands", "requested",
             "unique B", "declared B", "launches", "algorithm", "request");
  std::vector<std::string> wrong;
  std::string reason;
  for (const DeclaredRow& row : rows) {
    if (row.reason != reason) fmt::print("# {}\n", reason = row.reason);
    std::string fault = print_row(meter, row);
    if (!fault.empty()) wrong.push_back(std::move(fault));
  }
  for (const std::string& operation : operations_without(all))
    wrong.push_back(fmt::format("{}: the table has no row", operation));
  fmt::print("{} rows; wrong: {}\n", rows.size(), wrong.size());
  for (const std::string& fault : wrong) fmt::print("  {}\n", fault);
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const bool quick = !words.empty() && words.front() == "--quick";
    const size_t rest = quick ? 1 : 0;
    return kiln::bench::run(words.size() > rest ? words[rest] : KILN_BENCH_PASSES, quick);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_primitives: {}\n", error.what());
    return 2;
  }
}
