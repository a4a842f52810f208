#include "units/unit_table.h"

namespace kiln::emulator {

// clang-format off
namespace avx512 { const UnitTable& table(); }
namespace avx2 { const UnitTable& table(); }
namespace baseline { const UnitTable& table(); }
// clang-format on

namespace {

/// `table`: null for a set that CMake left out.
UnitSet unit_set(const char* name, const UnitTable& (*table)(), bool cpu_has_it) {
  if (table == nullptr) return {name, nullptr, "left out of this build (CMake's KILN_EMULATOR_INSTRUCTION_SETS)"};
  if (!cpu_has_it) return {name, nullptr, "not among the instructions of this CPU"};
  return {name, &table(), ""};
}

}  // namespace

std::vector<UnitSet> unit_sets() {
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  return {unit_set("avx512", KILN_EMULATOR_TABLE_avx512, avx512), unit_set("avx2", KILN_EMULATOR_TABLE_avx2, avx2),
          unit_set("baseline", KILN_EMULATOR_TABLE_baseline, true)};
}

std::vector<const UnitTable*> unit_tables() {
  std::vector<const UnitTable*> tables;
  for (const UnitSet& set : unit_sets()) {
    if (set.table != nullptr) tables.push_back(set.table);
  }
  return tables;
}

const UnitTable& unit_table() {
  return *unit_tables().front();
}

}  // namespace kiln::emulator
