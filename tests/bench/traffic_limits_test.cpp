// bench/primitives/passes.txt holds: each operation has a row, and the rows of bench_primitives --quick their limits.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "declared_passes.h"
#include "kiln/base/environment.h"
#include "traffic.h"

namespace kiln::bench::traffic_limits_test {
namespace {

std::vector<DeclaredRow> committed_rows() {
  std::ifstream stream(KILN_BENCH_PASSES, std::ios::binary);
  EXPECT_TRUE(stream);
  return parse_passes(std::string((std::istreambuf_iterator<char>(stream)), {}));
}

TEST(TrafficLimits, AreDeclaredForEachOperation) {
  EXPECT_EQ(operations_without(committed_rows()), std::vector<std::string>())
      << "each needs a row in bench/primitives/passes.txt";
}

TEST(TrafficLimits, Hold) {
  // Sectors are counted whatever is watched, and the kernels' own tests watch them.
  setenv("KILN_EMULATOR_CHECK", "off", 1);
  const TrafficMeter meter(KILN_EMULATOR, {Environment::read().nvrtc});
  for (const DeclaredRow& row : quick_rows(committed_rows())) {
    const Traffic traffic = meter.measure(row.request);
    EXPECT_EQ(fault_of(row, traffic.unique_bytes, traffic.requested_bytes), "") << row.reason;
  }
}

}  // namespace
}  // namespace kiln::bench::traffic_limits_test
