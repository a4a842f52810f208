// mma: D = A B + C of a whole warp, where hardware_product.cpp does not follow a chip.
//
// A result of floating-point numbers starts as its element of C, and the products are added to it in the order of k by
// fused multiply-adds of f32. Results in f16 are rounded once, at the end. A NaN has the canonical bits. So all sets of
// units agree to the bit. Sums of integers are exact, and wrap around or saturate at the end.
//
// The fragments are unpacked to panels of f32 or s32, and the products of all rows with one element of B are added at a
// time.
#include "kernel/matrix_product.h"

#include <algorithm>
#include <array>
#include <limits>

#include "numerics.h"
#include "scheduler/divergence.h"
#include "small_floats.h"
#include "units.h"
#include "vectors.h"
#include "word_squares.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

constexpr int rows = 16, columns = 8, tile_rows = 8;
constexpr int row_words = 4;  // of a row in one register

/// One column of A or of the sums: an element of each row.
template <class T>
struct alignas(64) Column {
  T row[rows];
};

/// Words of a register of the upper and of one of the lower eight rows: word w of row r goes to to[w * stride].row[r].
template <class T>
void take_words(Column<T>* to, int stride, const uint32_t* upper, const uint32_t* lower) {
  for (int r = 0; r < rows; r += 4) {
    const uint32_t* const from = r < tile_rows ? upper + row_words * r : lower + row_words * (r - tile_rows);
    Words square[4];
    for (int k = 0; k < 4; ++k) square[k] = words_at(from + row_words * k);
    transpose(square);
    for (int w = 0; w < row_words; ++w) put_words(to[w * stride].row + r, square[w]);
  }
}

/// The reverse.
template <class T>
void put_back_words(uint32_t* upper, uint32_t* lower, const Column<T>* from, int stride) {
  for (int r = 0; r < rows; r += 4) {
    uint32_t* const to = r < tile_rows ? upper + row_words * r : lower + row_words * (r - tile_rows);
    Words square[4];
    for (int w = 0; w < row_words; ++w) square[w] = words_at(from[w * stride].row + r);
    transpose(square);
    for (int k = 0; k < 4; ++k) put_words(to + row_words * k, square[k]);
  }
}

// Formats of the factors' elements. widen_words() unpacks a word of each row to columns, widen_register() a register.

template <class Format>
struct Halves {
  using Value = float;
  static constexpr int word_k = 2;
  static void widen_words(Column<float>* to, const uint32_t* words) {
    uint16_t first[rows], second[rows];
    for (int r = 0; r < rows; ++r) first[r] = static_cast<uint16_t>(words[r]);
    for (int r = 0; r < rows; ++r) second[r] = static_cast<uint16_t>(words[r] >> 16);
    Format::widen(to[0].row, first, rows);
    Format::widen(to[1].row, second, rows);
  }
  static void widen_register(float* to, const std::byte* from) {
    Format::widen(to, reinterpret_cast<const uint16_t*>(from), warp_lanes * word_k);
  }
};

/// f32 without the low 13 bits.
struct Tf32 {
  using Value = float;
  static constexpr int word_k = 1;
  static float widened(uint32_t word) { return float_of(word & 0xFFFFE000u); }
  static void widen_words(Column<float>* to, const uint32_t* words) {
    for (int r = 0; r < rows; ++r) to->row[r] = widened(words[r]);
  }
  static void widen_register(float* to, const std::byte* from) {
    uint32_t words[warp_lanes];
    std::memcpy(words, from, sizeof(words));
    for (uint32_t lane = 0; lane < warp_lanes; ++lane) to[lane] = widened(words[lane]);
  }
};

/// Four elements a word. `Format::widened` makes a Value of a byte.
template <class Format>
struct Bytes {
  using Value = typename Format::Value;
  static constexpr int word_k = 4;
  static void widen_words(Column<Value>* to, const uint32_t* words) {
    for (int k = 0; k < word_k; ++k) {
      for (int r = 0; r < rows; ++r) to[k].row[r] = Format::widened(static_cast<uint8_t>(words[r] >> (8 * k)));
    }
  }
  static void widen_register(Value* to, const std::byte* from) {
    for (uint32_t k = 0; k < warp_lanes * word_k; ++k) to[k] = Format::widened(static_cast<uint8_t>(from[k]));
  }
};

template <class Integer>
struct Small {
  using Value = int32_t;
  static int32_t widened(uint8_t byte) { return static_cast<Integer>(byte); }
};

template <class Format>
struct SmallFloat {
  using Value = float;
  static float widened(uint8_t byte) {
    static const std::array<float, 256> values = [] {
      std::array<float, 256> all;
      for (size_t bits = 0; bits < all.size(); ++bits) all[bits] = float_from_small<Format>(static_cast<uint8_t>(bits));
      return all;
    }();
    return values[byte];
  }
};

/// The columns of A that registers of the upper and of the lower rows hold.
template <class Format, class Value>
void take_columns(Column<Value>* to, const uint32_t* upper, const uint32_t* lower) {
  Column<uint32_t> words[row_words];
  take_words(words, 1, upper, lower);
  for (int w = 0; w < row_words; ++w) Format::widen_words(to + w * Format::word_k, words[w].row);
}

// C and D. take() makes columns of C; put_back() puts columns in D. A product of one tile is computed as two that are
// equal.

struct WideSums {
  using Value = float;
  template <uint32_t tiles>
  static void take(const Warp& warp, const ProductOperands& operands, Column<float>* sums) {
    for (uint32_t part = 0; part < 2; ++part) {
      take_words(sums + part, 2, row<uint32_t>(warp, operands.c(0, part)),
                 row<uint32_t>(warp, operands.c(tiles - 1, part)));
    }
  }
  template <uint32_t tiles>
  static void put_back(const Warp& warp, const ProductOperands& operands, Column<float>* sums) {
    for (int n = 0; n < columns; ++n) {
      for (float& sum : sums[n].row) sum = is_nan(sum) ? float_of(canonical_nan) : sum;
    }
    for (uint32_t part = 0; part < 2; ++part) {
      put_back_words(row<uint32_t>(warp, operands.d(0, part)), row<uint32_t>(warp, operands.d(tiles - 1, part)),
                     sums + part, 2);
    }
  }
};

struct HalfSums {
  using Value = float;
  template <uint32_t tiles>
  static void take(const Warp& warp, const ProductOperands& operands, Column<float>* sums) {
    take_columns<Halves<F16>>(sums, row<uint32_t>(warp, operands.c(0, 0)),
                              row<uint32_t>(warp, operands.c(tiles - 1, 0)));
  }
  template <uint32_t tiles>
  static void put_back(const Warp& warp, const ProductOperands& operands, const Column<float>* sums) {
    Column<uint32_t> words[row_words];
    for (int w = 0; w < row_words; ++w) {
      uint16_t first[rows], second[rows];
      F16::narrow(first, sums[2 * w].row, rows);
      F16::narrow(second, sums[2 * w + 1].row, rows);
      for (int r = 0; r < rows; ++r) words[w].row[r] = first[r] | static_cast<uint32_t>(second[r]) << 16;
    }
    put_back_words(row<uint32_t>(warp, operands.d(0, 0)), row<uint32_t>(warp, operands.d(tiles - 1, 0)), words, 1);
  }
};

/// The sum of the products, which always fits, and of C.
template <bool saturates>
int32_t joined(int32_t products, int32_t c) {
  if constexpr (!saturates) return static_cast<int32_t>(static_cast<uint32_t>(products) + static_cast<uint32_t>(c));
  using Limits = std::numeric_limits<int32_t>;
  return static_cast<int32_t>(std::clamp<int64_t>(int64_t{products} + c, Limits::min(), Limits::max()));
}

template <bool saturates>
struct IntegerSums {
  using Value = int32_t;
  template <uint32_t tiles>
  static void take(const Warp&, const ProductOperands&, Column<int32_t>* sums) {
    for (int n = 0; n < columns; ++n) std::fill_n(sums[n].row, rows, 0);
  }
  template <uint32_t tiles>
  static void put_back(const Warp& warp, const ProductOperands& operands, Column<int32_t>* sums) {
    for (uint32_t part = 0; part < 2; ++part) {  // of C, which D may overwrite
      Column<int32_t> c[row_words];
      take_words(c, 1, row<uint32_t>(warp, operands.c(0, part)), row<uint32_t>(warp, operands.c(tiles - 1, part)));
      for (uint32_t w = 0; w < row_words; ++w) {
        int32_t* const sum = sums[2 * w + part].row;
        for (int r = 0; r < rows; ++r) sum[r] = joined<saturates>(sum[r], c[w].row[r]);
      }
    }
    for (uint32_t part = 0; part < 2; ++part) {
      put_back_words(row<uint32_t>(warp, operands.d(0, part)), row<uint32_t>(warp, operands.d(tiles - 1, part)),
                     sums + part, 2);
    }
  }
};

// sums += a * b, one k after the other; b[n][k] for the k of a group.

template <int groups, int group_k>
void multiply_panels(Column<float>* sums, const Column<float>* a, const float (*b)[columns][group_k]) {
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

template <int groups, int group_k>
void multiply_panels(Column<int32_t>* sums, const Column<int32_t>* a, const int32_t (*b)[columns][group_k]) {
  for (int g = 0; g < groups; ++g) {
    for (int k = 0; k < group_k; ++k) {
      for (int n = 0; n < columns; ++n) {
        for (int r = 0; r < rows; ++r) sums[n].row[r] += a[g * group_k + k].row[r] * b[g][n][k];
      }
    }
  }
}

template <class A, class B, class Sums, uint32_t tiles, int groups>
const Instruction* multiply(Warp& warp, const Instruction* i) {
  if (const Mask lanes = guarded(warp, i); lanes != full_mask) [[unlikely]] {
    return lanes == 0 ? i + 1 : gather_warp(warp, i, lanes);
  }
  using Value = typename Sums::Value;
  constexpr int group_k = row_words * A::word_k;
  const ProductOperands operands(warp.lists + i->extra);
  Column<Value> a[groups * group_k], sums[columns];
  alignas(64) Value b[groups][columns][group_k];
  for (uint32_t g = 0; g < groups; ++g) {
    take_columns<A>(a + g * group_k, row<uint32_t>(warp, operands.a(0, g)),
                    row<uint32_t>(warp, operands.a(tiles - 1, g)));
    B::widen_register(&b[g][0][0], row<std::byte>(warp, operands.b(g)));
  }
  Sums::template take<tiles>(warp, operands, sums);
  multiply_panels<groups, group_k>(sums, a, b);
  Sums::template put_back<tiles>(warp, operands, sums);
  return i + 1;
}

/// The handler for products of 16 rows with one or two groups of 16 bytes along k.
template <class A, class B, class Sums>
Handler of_length(const MatrixProduct& product) {
  constexpr uint32_t group_k = row_words * A::word_k;
  if (product.k == group_k) return multiply<A, B, Sums, 2, 1>;
  return product.k == 2 * group_k ? multiply<A, B, Sums, 2, 2> : nullptr;
}

template <class A, class B, bool saturates>
Handler of_integers(const MatrixProduct& product) {
  using Sums = IntegerSums<saturates>;
  if (product.rows == tile_rows) return product.k == 16 ? multiply<A, B, Sums, 1, 1> : nullptr;
  return of_length<A, B, Sums>(product);
}

template <class A, class B>
Handler of_integers(const MatrixProduct& product) {
  return product.saturates ? of_integers<A, B, true>(product) : of_integers<A, B, false>(product);
}

/// f32 or f16 sums.
template <class A, class B>
Handler of_floats(const MatrixProduct& product) {
  return product.sum == ptx::Type::f16 ? of_length<A, B, HalfSums>(product) : of_length<A, B, WideSums>(product);
}

}  // namespace

Handler matrix_product(const MatrixProduct& product) {
  using ptx::Type;
  using S8 = Bytes<Small<int8_t>>;
  using U8 = Bytes<Small<uint8_t>>;
  using Fine = Bytes<SmallFloat<E4M3>>;
  using Coarse = Bytes<SmallFloat<E5M2>>;
  if (product.hardware != 0 && product.sum != Type::s32) return hardware_product(product);
  switch (product.a) {
    case Type::f16:
      return of_floats<Halves<F16>, Halves<F16>>(product);
    case Type::bf16:
      return of_length<Halves<BF16>, Halves<BF16>, WideSums>(product);
    case Type::tf32:
      return of_length<Tf32, Tf32, WideSums>(product);
    case Type::s8:
      return product.b == Type::s8 ? of_integers<S8, S8>(product) : of_integers<S8, U8>(product);
    case Type::u8:
      return product.b == Type::s8 ? of_integers<U8, S8>(product) : of_integers<U8, U8>(product);
    case Type::e4m3:
      return product.b == Type::e4m3 ? of_floats<Fine, Fine>(product) : of_floats<Fine, Coarse>(product);
    case Type::e5m2:
      return product.b == Type::e4m3 ? of_floats<Coarse, Fine>(product) : of_floats<Coarse, Coarse>(product);
    default:
      return nullptr;
  }
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
