#include "units/unit_table.h"

namespace kiln::emulator {

// clang-format off
namespace avx512 { const UnitTable& table(); }
namespace avx2 { const UnitTable& table(); }
namespace baseline { const UnitTable& table(); }
// clang-format on

const UnitTable& unit_table() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return avx512::table();
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
    return avx2::table();
  }
  return baseline::table();
}

}  // namespace kiln::emulator
