// mma: D = A B + C of a whole warp.
//
// A result starts as its element of C, and the products are added to it in the order of k by fused multiply-adds of
// f32. Results in f16 are rounded once, at the end. A NaN has the canonical bits. So all sets of units agree to the
// bit.
//
// The fragments are unpacked to panels of f32, and the products of all rows with one element of B are added at a time.
#include "kernel/matrix_product.h"

#include "numerics.h"
#include "scheduler/divergence.h"
#include "units.h"
#include "vectors.h"
#include "word_squares.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

constexpr int rows = 16, columns = 8, tile_rows = 8;
constexpr int row_words = 4;  // of a row in one register

/// One column of A or of the sums.
struct alignas(64) Column {
  float row[rows];
};

/// Words of a register of the upper and of one of the lower eight rows: word w of row r goes to to[w * stride].row[r].
void take_words(Column* to, int stride, const uint32_t* upper, const uint32_t* lower) {
  for (int r = 0; r < rows; r += 4) {
    const uint32_t* const from = r < tile_rows ? upper + row_words * r : lower + row_words * (r - tile_rows);
    Words square[4];
    for (int k = 0; k < 4; ++k) square[k] = words_at(from + row_words * k);
    transpose(square);
    for (int w = 0; w < row_words; ++w) put_words(to[w * stride].row + r, square[w]);
  }
}

/// The reverse.
void put_back_words(uint32_t* upper, uint32_t* lower, const Column* from, int stride) {
  for (int r = 0; r < rows; r += 4) {
    uint32_t* const to = r < tile_rows ? upper + row_words * r : lower + row_words * (r - tile_rows);
    Words square[4];
    for (int w = 0; w < row_words; ++w) square[w] = words_at(from[w * stride].row + r);
    transpose(square);
    for (int k = 0; k < 4; ++k) put_words(to + row_words * k, square[k]);
  }
}

/// The eight columns of halves that registers of the upper and of the lower rows hold.
template <class Format>
void take_halves(Column* to, const uint32_t* upper, const uint32_t* lower) {
  Column words[row_words];
  take_words(words, 1, upper, lower);
  for (int w = 0; w < row_words; ++w) {
    uint32_t pair[rows];
    std::memcpy(pair, words[w].row, sizeof(pair));
    uint16_t first[rows], second[rows];
    for (int r = 0; r < rows; ++r) first[r] = static_cast<uint16_t>(pair[r]);
    for (int r = 0; r < rows; ++r) second[r] = static_cast<uint16_t>(pair[r] >> 16);
    Format::widen(to[2 * w].row, first, rows);
    Format::widen(to[2 * w + 1].row, second, rows);
  }
}

void put_back_halves(uint32_t* upper, uint32_t* lower, const Column* from) {
  Column words[row_words];
  for (int w = 0; w < row_words; ++w) {
    uint16_t first[rows], second[rows];
    F16::narrow(first, from[2 * w].row, rows);
    F16::narrow(second, from[2 * w + 1].row, rows);
    uint32_t pair[rows];
    for (int r = 0; r < rows; ++r) pair[r] = first[r] | static_cast<uint32_t>(second[r]) << 16;
    std::memcpy(words[w].row, pair, sizeof(pair));
  }
  put_back_words(upper, lower, words, 1);
}

/// C and D in f32.
struct WideSums {
  static void take(const Warp& warp, const ProductOperands& operands, Column* sums) {
    for (uint32_t part = 0; part < 2; ++part) {
      take_words(sums + part, 2, row<uint32_t>(warp, operands.c(0, part)), row<uint32_t>(warp, operands.c(1, part)));
    }
  }
  static void put_back(const Warp& warp, const ProductOperands& operands, Column* sums) {
    for (int n = 0; n < columns; ++n) {
      for (float& sum : sums[n].row) sum = is_nan(sum) ? float_of(canonical_nan) : sum;
    }
    for (uint32_t part = 0; part < 2; ++part) {
      put_back_words(row<uint32_t>(warp, operands.d(0, part)), row<uint32_t>(warp, operands.d(1, part)), sums + part,
                     2);
    }
  }
};

/// C and D in f16.
struct HalfSums {
  static void take(const Warp& warp, const ProductOperands& operands, Column* sums) {
    take_halves<F16>(sums, row<uint32_t>(warp, operands.c(0, 0)), row<uint32_t>(warp, operands.c(1, 0)));
  }
  static void put_back(const Warp& warp, const ProductOperands& operands, const Column* sums) {
    put_back_halves(row<uint32_t>(warp, operands.d(0, 0)), row<uint32_t>(warp, operands.d(1, 0)), sums);
  }
};

/// sums += a * b, one k after the other; b[n][k] for the eight k of a group.
template <int groups, int group_k>
void multiply_panels(Column* sums, const Column* a, const float (*b)[columns][group_k]) {
  for (int first = 0; first < rows; first += vector_lanes) {
    Vector sum[columns];
    for (int n = 0; n < columns; ++n) std::memcpy(&sum[n], sums[n].row + first, sizeof(Vector));
    for (int g = 0; g < groups; ++g) {
      for (int k = 0; k < group_k; ++k) {
        Vector factor;
        std::memcpy(&factor, a[g * group_k + k].row + first, sizeof(factor));
#pragma GCC unroll 8
        for (int n = 0; n < columns; ++n) sum[n] = fma(factor, splat(b[g][n][k]), sum[n]);
      }
    }
    for (int n = 0; n < columns; ++n) std::memcpy(sums[n].row + first, &sum[n], sizeof(Vector));
  }
}

template <class Format, class Sums, int groups>
const Instruction* multiply(Warp& warp, const Instruction* i) {
  if (const Mask lanes = guarded(warp, i); lanes != full_mask) [[unlikely]] {
    return lanes == 0 ? i + 1 : gather_warp(warp, i, lanes);
  }
  constexpr int group_k = 8;
  const ProductOperands operands(warp.lists + i->extra);
  Column a[groups * group_k], sums[columns];
  alignas(64) float b[groups][columns][group_k];
  for (uint32_t g = 0; g < groups; ++g) {
    take_halves<Format>(a + g * group_k, row<uint32_t>(warp, operands.a(0, g)), row<uint32_t>(warp, operands.a(1, g)));
    Format::widen(&b[g][0][0], row<uint16_t>(warp, operands.b(g)), columns * group_k);
  }
  Sums::take(warp, operands, sums);
  multiply_panels<groups, group_k>(sums, a, b);
  Sums::put_back(warp, operands, sums);
  return i + 1;
}

template <class Format, class Sums>
Handler of_length(uint32_t k) {
  return k == 8 ? multiply<Format, Sums, 1> : k == 16 ? multiply<Format, Sums, 2> : nullptr;
}

}  // namespace

Handler matrix_product(const MatrixProduct& product) {
  const bool wide = product.sum == ptx::Type::f32;
  if (product.element == ptx::Type::bf16) return wide ? of_length<BF16, WideSums>(product.k) : nullptr;
  if (product.element != ptx::Type::f16) return nullptr;
  return wide ? of_length<F16, WideSums>(product.k) : of_length<F16, HalfSums>(product.k);
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
