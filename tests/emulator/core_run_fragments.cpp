#include "core_run_fragments.h"

#include "core_fixture.h"
#include "machine/program.h"

namespace kiln::emulator::test {

using namespace testing_support::mma;

void run_fragments(const Form& form, Fragments& fragments, const UnitTable& units, int hardware) {
  const auto program = load_program(kernel_text(form), units, hardware);
  const size_t tiles = fragments.a.size() / (form.a_registers() * lanes);
  fragments.d.assign(fragments.c.size(), 0);
  std::vector<Region> regions;
  Arguments arguments;
  for (auto* words : {&fragments.a, &fragments.b, &fragments.c, &fragments.d}) {
    const auto address = reinterpret_cast<uint64_t>(words->data());
    regions.push_back({address, address + words->size() * 4, "fragments"});
    arguments.add(address);
  }
  LaunchRequest r;
  r.kernel = find_kernel(*program, "k");
  r.grid = {static_cast<uint32_t>(tiles)};
  r.block = {lanes};
  r.parameters = arguments.bytes();
  r.memory = std::make_shared<RegionTable>(RegionTable::Contents{.regions = regions});
  const LaunchOutcome outcome = run(r);
  EXPECT_FALSE(outcome.fault) << outcome.fault->report;
  EXPECT_EQ(outcome.counters.tensor, tiles);
  EXPECT_EQ(outcome.counters.tensor_multiply_adds, tiles * form.rows * columns * form.k);
}

}  // namespace kiln::emulator::test
