// mma on floating-point numbers, as tensor cores were found to compute it (P. Xie and others, MMA-Sim: Bit-Accurate
// Reference Model of Tensor Cores and Matrix Cores, arXiv:2511.10909).
//
// The products of an element are added in steps along k, one after the other. A step adds up the element of C, or the
// result of the step before, and the exact products of so many bytes of a row of A and a column of B:
//
//   d = round(2^(E - F) * sum of trunc(t * 2^(F - E)))      over these terms t
//
// E is the largest exponent of a term. A product has the sum of its factors' exponents, also where its significand is 2
// or more; a denormal number has the exponent of the smallest normal one; a term of 0 has -132, from compute capability
// 9.0 on -133. The sum is exact. It is rounded to f32 toward zero, or to f16 to nearest.
//
//   compute capability   bytes of a step   F
//   7.5, 8.x             16                24; for factors of 8 bits 13, and results keep 13 bits of fraction in f32
//   9.0 and higher       32                25
//
// 9.0 and 10.0 lack mma of 8-bit factors. Their compiler makes two products of f16 of it: the first of bytes 0 and 1 of
// each word along k, the second, which starts from the first's result, of bytes 2 and 3; and adds C to them at last.
// The exponents are those of the factors in f16, where the denormal numbers of e4m3 are normal.
//
// Infinities and NaN are those of IEEE arithmetic; a sum beyond f32 is an infinity. A result of 0 is positive, whatever
// the signs of its terms, and where a negative sum is rounded to it. Doubles hold the products, the aligned terms and
// their sum without error.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernel/matrix_product.h"
#include "numerics.h"
#include "scheduler/divergence.h"
#include "small_floats.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

constexpr uint32_t rows = 16, columns = 8, tile_rows = 8, group_bytes = 16, most_k = 32;
constexpr int exponent_of_zero = -1000;  // of a factor, so that no product with it has the largest exponent

// Formats of the elements.

struct Half {
  using Bits = uint16_t;
  static constexpr int least_exponent = -14;  // of a normal number
  static float value(uint16_t bits) { return half_to_float(bits); }
};

struct Bfloat {
  using Bits = uint16_t;
  static constexpr int least_exponent = -126;
  static float value(uint16_t bits) { return bfloat_to_float(bits); }
};

/// f32 without the low 13 bits.
struct Tf32 {
  using Bits = uint32_t;
  static constexpr int least_exponent = -126;
  static float value(uint32_t bits) { return float_of(bits & 0xFFFFE000u); }
};

template <class Format>
struct Byte {
  using Bits = uint8_t;
  static constexpr int least_exponent = 1 - Format::bias;
  static float value(uint8_t bits) {
    static const std::array<float, 256> values = [] {
      std::array<float, 256> all;
      for (size_t each = 0; each < all.size(); ++each) all[each] = float_from_small<Format>(static_cast<uint8_t>(each));
      return all;
    }();
    return values[bits];
  }
};

/// How a chip adds products of a type.
struct Chip {
  uint32_t step_bytes = 0;
  int fraction_bits = 0;       // F
  int least_exponent = 0;      // of a term of 0
  uint32_t kept = 0xFFFFFFFF;  // bits of a result in f32
  bool converts = false;       // factors of 8 bits to f16, half of them for each step
};

constexpr Chip turing_and_ampere{.step_bytes = 16, .fraction_bits = 24, .least_exponent = -132};
constexpr Chip ada_bytes{.step_bytes = 16, .fraction_bits = 13, .least_exponent = -132, .kept = 0xFFFFFC00};
constexpr Chip hopper{.step_bytes = 32, .fraction_bits = 25, .least_exponent = -133};
constexpr Chip hopper_bytes{.fraction_bits = 25, .least_exponent = -133, .converts = true};

/// `count` rows or columns along k, in the order in which their products are added.
template <uint32_t count>
struct alignas(64) Factors {
  double value[most_k][count];
  int exponent[most_k][count];

  template <class Format>
  void put(const Chip& chip, uint32_t k, uint32_t at, typename Format::Bits bits) {
    const int least_exponent = chip.converts ? Half::least_exponent : Format::least_exponent;
    const float x = Format::value(bits);
    value[k][at] = x;
    const int biased = static_cast<int>(bits_of(x) >> 23 & 0xFF);
    exponent[k][at] = x == 0 ? exponent_of_zero : std::max(biased - 127, least_exponent);
  }
};

/// Results, and C before: [column][row].
struct alignas(64) Sums {
  float value[columns][rows];
};

struct WideSum {
  using Bits = float;
  static constexpr int least_exponent = -126;
  static float value(float x) { return x; }
  static float stored(float x) { return is_nan(x) ? float_of(canonical_nan) : x; }
  static float rounded(double sum, uint32_t kept) {
    const float near = static_cast<float>(sum);
    const bool away = std::abs(static_cast<double>(near)) > std::abs(sum) && std::abs(sum) < 0x1p128;
    return float_of((away ? bits_of(near) - 1 : bits_of(near)) & kept);
  }
  static float nearest(float x) { return x; }
};

struct HalfSum {
  using Bits = uint16_t;
  static constexpr int least_exponent = -14;
  static float value(uint16_t bits) { return half_to_float(bits); }
  static uint16_t stored(float x) { return float_to_half(x); }
  static float rounded(double sum, uint32_t) { return nearest(to_float_odd(sum)); }
  static float nearest(float x) { return half_to_float(float_to_half(x)); }
};

/// Calls visit(sum, its element in a register) for all; `offset(tile, part)` finds the registers.
template <class Sum, class Offset, class Visit>
void for_each_sum(Warp& warp, Sums& sums, const Offset& offset, const Visit& visit) {
  using Bits = typename Sum::Bits;
  constexpr uint32_t parts = sizeof(Bits) / 2;
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t n = 0; n < columns; ++n) {
      Bits* const registers = row<Bits>(warp, offset(r / tile_rows, n % parts));
      visit(sums.value[n][r], registers[(r % tile_rows * columns + n) / parts]);
    }
  }
}

/// Adds `step` products from k = `first` on to the sums of column n.
template <class Sum>
void add_step(const Chip& chip, const Factors<rows>& a, const Factors<columns>& b, uint32_t first, uint32_t step,
              uint32_t n, float* sums) {
  int largest[rows];
  double plain[rows], sum[rows], scale[rows], unit[rows];
  for (uint32_t r = 0; r < rows; ++r) {
    const int exponent = static_cast<int>(bits_of(sums[r]) >> 23 & 0xFF) - 127;
    largest[r] = sums[r] == 0 ? chip.least_exponent : std::max(exponent, Sum::least_exponent);
  }
  for (uint32_t k = first; k < first + step; ++k) {
    for (uint32_t r = 0; r < rows; ++r) largest[r] = std::max(largest[r], a.exponent[k][r] + b.exponent[k][n]);
  }
  for (uint32_t r = 0; r < rows; ++r) {
    const auto power = [](int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52); };
    scale[r] = power(chip.fraction_bits - largest[r]);
    unit[r] = power(largest[r] - chip.fraction_bits);
    plain[r] = sums[r];
    sum[r] = std::trunc(plain[r] * scale[r]);
  }
  for (uint32_t k = first; k < first + step; ++k) {
    for (uint32_t r = 0; r < rows; ++r) {
      const double product = a.value[k][r] * b.value[k][n];
      plain[r] += product;
      sum[r] += std::trunc(product * scale[r]);
    }
  }
  for (uint32_t r = 0; r < rows; ++r) {
    const float rounded = Sum::rounded(sum[r] * unit[r], chip.kept) + 0.0F;  // no zero is negative
    sums[r] = std::isfinite(plain[r]) ? rounded : static_cast<float>(plain[r]);
  }
}

template <class Format>
constexpr uint32_t group_k = group_bytes / sizeof(typename Format::Bits);

/// The place of k among products of `length`.
uint32_t place_of(const Chip& chip, uint32_t k, uint32_t length) {
  return chip.converts ? k % 4 / 2 * (length / 2) + k / 4 * 2 + k % 2 : k;
}

template <class A, class B, uint32_t groups>
void take_factors(Warp& warp, const ProductOperands& operands, const Chip& chip, Factors<rows>& a,
                  Factors<columns>& b) {
  constexpr uint32_t length = groups * group_k<A>;
  for (uint32_t k = 0; k < length; ++k) {
    const uint32_t group = k / group_k<A>, in_group = k % group_k<A>, place = place_of(chip, k, length);
    for (uint32_t r = 0; r < rows; ++r) {
      const auto* const bits = row<typename A::Bits>(warp, operands.a(r / tile_rows, group));
      a.template put<A>(chip, place, r, bits[r % tile_rows * group_k<A> + in_group]);
    }
    const auto* const bits = row<typename B::Bits>(warp, operands.b(group));
    for (uint32_t n = 0; n < columns; ++n) b.template put<B>(chip, place, n, bits[n * group_k<B> + in_group]);
  }
}

template <class A, class B, class Sum, uint32_t groups, const Chip& chip>
const Instruction* multiply(Warp& warp, const Instruction* i) {
  if (const Mask lanes = guarded(warp, i); lanes != full_mask) [[unlikely]] {
    return lanes == 0 ? i + 1 : gather_warp(warp, i, lanes);
  }
  const ProductOperands operands(warp.lists + i->extra);
  constexpr uint32_t length = groups * group_k<A>;
  constexpr uint32_t step = chip.converts ? length / 2 : std::min(length, chip.step_bytes / group_bytes * group_k<A>);
  Factors<rows> a;
  Factors<columns> b;
  take_factors<A, B, groups>(warp, operands, chip, a, b);
  Sums c, sums;
  const auto in_c = [&](uint32_t tile, uint32_t part) { return operands.c(tile, part); };
  for_each_sum<Sum>(warp, c, in_c, [](float& sum, typename Sum::Bits bits) { sum = Sum::value(bits); });
  sums = chip.converts ? Sums{} : c;
  for (uint32_t n = 0; n < columns; ++n) {
    for (uint32_t k = 0; k < length; k += step) add_step<Sum>(chip, a, b, k, step, n, sums.value[n]);
    for (uint32_t r = 0; chip.converts && r < rows; ++r) {
      sums.value[n][r] = Sum::nearest(sums.value[n][r] + c.value[n][r]);
    }
  }
  const auto in_d = [&](uint32_t tile, uint32_t part) { return operands.d(tile, part); };
  for_each_sum<Sum>(warp, sums, in_d, [](float sum, typename Sum::Bits& bits) { bits = Sum::stored(sum); });
  return i + 1;
}

template <class A, class B, class Sum, const Chip& chip>
Handler of_length(const MatrixProduct& product) {
  if (product.k == group_k<A>) return multiply<A, B, Sum, 1, chip>;
  return product.k == 2 * group_k<A> ? multiply<A, B, Sum, 2, chip> : nullptr;
}

template <class Format, class Sum>
Handler of_words(const MatrixProduct& product) {
  return product.hardware < 90 ? of_length<Format, Format, Sum, turing_and_ampere>(product)
                               : of_length<Format, Format, Sum, hopper>(product);
}

template <class A, class B, class Sum>
Handler of_bytes(const MatrixProduct& product) {
  if (product.hardware < 90) return of_length<A, B, Sum, ada_bytes>(product);
  return product.hardware < 120 ? of_length<A, B, Sum, hopper_bytes>(product) : of_length<A, B, Sum, hopper>(product);
}

template <class A, class B>
Handler of_bytes(const MatrixProduct& product) {
  return product.sum == ptx::Type::f16 ? of_bytes<A, B, HalfSum>(product) : of_bytes<A, B, WideSum>(product);
}

}  // namespace

Handler hardware_product(const MatrixProduct& product) {
  using ptx::Type;
  using Fine = Byte<E4M3>;
  using Coarse = Byte<E5M2>;
  switch (product.a) {
    case Type::f16:
      return product.sum == Type::f16 ? of_words<Half, HalfSum>(product) : of_words<Half, WideSum>(product);
    case Type::bf16:
      return of_words<Bfloat, WideSum>(product);
    case Type::tf32:
      return of_words<Tf32, WideSum>(product);
    case Type::e4m3:
      return product.b == Type::e4m3 ? of_bytes<Fine, Fine>(product) : of_bytes<Fine, Coarse>(product);
    case Type::e5m2:
      return product.b == Type::e4m3 ? of_bytes<Coarse, Fine>(product) : of_bytes<Coarse, Coarse>(product);
    default:
      return nullptr;
  }
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
