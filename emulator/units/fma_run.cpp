// Runs of fma.rn.f32, fused by the decoder into one instruction.
//
// lists[extra ...] holds `a` groups of { a, n, n times { d, b, c } } (byte offsets): the group's first factor stays in
// vector registers, since matrix kernels multiply one value of A with many of B.
#include "units/lanes.h"
#include "units/units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif
inline constexpr int vector_lanes = vector_bytes / 4;
inline constexpr int vectors = 32 / vector_lanes;
using Vector = float __attribute__((vector_size(vector_bytes)));

inline Vector fma(Vector a, Vector b, Vector c) {
  Vector d;
  for (int k = 0; k < vector_lanes; ++k) d[k] = __builtin_fmaf(a[k], b[k], c[k]);
  return d;
}

void run_full(Warp& warp, const uint32_t* list, uint32_t groups) {
  std::byte* const registers = warp.registers;
  for (; groups > 0; --groups) {
    Vector a[vectors];
    const auto* const first = reinterpret_cast<const Vector*>(registers + list[0]);
    for (int k = 0; k < vectors; ++k) a[k] = first[k];
    const uint32_t* const end = list + 2 + 3 * list[1];
    for (list += 2; list != end; list += 3) {
      auto* const d = reinterpret_cast<Vector*>(registers + list[0]);
      const auto* const b = reinterpret_cast<const Vector*>(registers + list[1]);
      const auto* const c = reinterpret_cast<const Vector*>(registers + list[2]);
      for (int k = 0; k < vectors; ++k) d[k] = fma(a[k], b[k], c[k]);
    }
  }
}

void run_masked(Warp& warp, const uint32_t* list, uint32_t groups, Mask mask) {
  for (; groups > 0; --groups) {
    const float* const a = row<float>(warp, list[0]);
    const uint32_t* const end = list + 2 + 3 * list[1];
    for (list += 2; list != end; list += 3) {
      const float* const b = row<float>(warp, list[1]);
      const float* const c = row<float>(warp, list[2]);
      Row<float> d;
      for (int lane = 0; lane < 32; ++lane) d.lane[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
      blend(row<float>(warp, list[0]), d.lane, mask);
    }
  }
}

}  // namespace

const Instruction* fma_run(Warp& warp, const Instruction* i) {
  if (warp.active == full_mask) {
    run_full(warp, warp.lists + i->extra, i->a);
  } else {
    run_masked(warp, warp.lists + i->extra, i->a, warp.active);
  }
  return i + 1;
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
