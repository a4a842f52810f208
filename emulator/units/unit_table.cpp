#include "units/unit_table.h"

namespace kiln::emulator {

// clang-format off
namespace avx512 { const UnitTable& table(); }
namespace avx2 { const UnitTable& table(); }
namespace baseline { const UnitTable& table(); }
// clang-format on

std::vector<const UnitTable*> unit_tables() {
  __builtin_cpu_init();
  std::vector<const UnitTable*> tables;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    tables.push_back(&avx512::table());
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
    tables.push_back(&avx2::table());
  }
  tables.push_back(&baseline::table());
  return tables;
}

const UnitTable& unit_table() {
  return *unit_tables().front();
}

}  // namespace kiln::emulator
