// Runs of fma.rn.f32, fused by the decoder into one instruction (decode/fusion.h). lists[extra ...] holds, as byte
// offsets of registers,
//   `a` tiles:  { n, 16 sums row by row, n times { 4 row factors, 4 column factors } }:
//               sum[i][j] += row[i] * column[j] in each of the n steps;
//   `b` groups: { factor, n, n times { d, x, c } }: d = factor * x + c.
// Lanes are independent, so a tile runs for one vector of lanes at a time with its sums in vector registers.
#include "lanes.h"
#include "units.h"
#include "vectors.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

#if defined(__AVX512F__)
inline constexpr int rows_at_once = 4;
#else
inline constexpr int rows_at_once = 2;  // 16 vector registers
#endif
inline constexpr int vectors = 32 / vector_lanes;
inline constexpr int edge = 4;

inline Vector& at(std::byte* registers, uint32_t offset) {
  return *reinterpret_cast<Vector*>(registers + offset);
}

/// Rows `first` ... of a tile for the vector of lanes that `registers` points at. Only full unrolling keeps the sums in
/// vector registers.
inline void run_rows(std::byte* registers, const uint32_t* tile, int first) {
  const uint32_t* const sums = tile + 1 + first * edge;
  Vector sum[rows_at_once * edge];
#pragma GCC unroll 16
  for (int k = 0; k < rows_at_once * edge; ++k) sum[k] = at(registers, sums[k]);
  const uint32_t* step = tile + 1 + edge * edge;
  for (uint32_t n = tile[0]; n > 0; --n, step += 2 * edge) {
    Vector column[edge];
#pragma GCC unroll 4
    for (int j = 0; j < edge; ++j) column[j] = at(registers, step[edge + j]);
#pragma GCC unroll 4
    for (int i = 0; i < rows_at_once; ++i) {
      const Vector row = at(registers, step[first + i]);
#pragma GCC unroll 4
      for (int j = 0; j < edge; ++j) sum[i * edge + j] = fma(row, column[j], sum[i * edge + j]);
    }
  }
#pragma GCC unroll 16
  for (int k = 0; k < rows_at_once * edge; ++k) at(registers, sums[k]) = sum[k];
}

const uint32_t* run_tile(std::byte* registers, const uint32_t* tile) {
  for (int v = 0; v < vectors; ++v) {
    for (int first = 0; first < edge; first += rows_at_once) run_rows(registers + v * vector_bytes, tile, first);
  }
  return tile + 1 + edge * edge + size_t{tile[0]} * 2 * edge;
}

const uint32_t* run_tile_masked(std::byte* registers, const uint32_t* tile, Mask mask) {
  Row<float> before[edge * edge];
  for (int k = 0; k < edge * edge; ++k) std::memcpy(before[k].lane, registers + tile[1 + k], sizeof(before[k].lane));
  const uint32_t* const next = run_tile(registers, tile);
  for (int k = 0; k < edge * edge; ++k) {
    blend(reinterpret_cast<float*>(registers + tile[1 + k]), before[k].lane, ~mask);
  }
  return next;
}

const uint32_t* run_group(std::byte* registers, const uint32_t* list) {
  Vector factor[vectors];
  for (int v = 0; v < vectors; ++v) factor[v] = at(registers + v * vector_bytes, list[0]);
  const uint32_t* const end = list + 2 + size_t{list[1]} * 3;
  for (list += 2; list != end; list += 3) {
    for (int v = 0; v < vectors; ++v) {
      std::byte* const lanes = registers + v * vector_bytes;
      at(lanes, list[0]) = fma(factor[v], at(lanes, list[1]), at(lanes, list[2]));
    }
  }
  return end;
}

const uint32_t* run_group_masked(std::byte* registers, const uint32_t* list, Mask mask) {
  const auto lanes_of = [&](uint32_t offset) { return reinterpret_cast<float*>(registers + offset); };
  const float* const factor = lanes_of(list[0]);
  const uint32_t* const end = list + 2 + size_t{list[1]} * 3;
  for (list += 2; list != end; list += 3) {
    const float* const x = lanes_of(list[1]);
    const float* const c = lanes_of(list[2]);
    Row<float> d;
    for (int lane = 0; lane < 32; ++lane) d.lane[lane] = __builtin_fmaf(factor[lane], x[lane], c[lane]);
    blend(lanes_of(list[0]), d.lane, mask);
  }
  return end;
}

}  // namespace

const Instruction* fma_run(Warp& warp, const Instruction* i) {
  const uint32_t* list = warp.lists + i->extra;
  const bool full = warp.active == full_mask;
  for (uint32_t k = 0; k < i->a; ++k) {
    list = full ? run_tile(warp.registers, list) : run_tile_masked(warp.registers, list, warp.active);
  }
  for (uint32_t k = 0; k < i->b; ++k) {
    list = full ? run_group(warp.registers, list) : run_group_masked(warp.registers, list, warp.active);
  }
  return i + 1;
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
