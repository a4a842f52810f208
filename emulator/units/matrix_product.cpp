// mma: D = A B + C of a whole warp, where hardware_product.cpp does not follow a chip.
//
// A result of floating-point numbers starts as its element of C, and the products are added to it in the order of k by
// fused multiply-adds of f32. Results in f16 are rounded once, at the end. A NaN has the canonical bits. So all sets of
// units agree to the bit. Sums of integers are exact, and wrap around or saturate at the end.
//
// Sums stay in the order that registers have them: a vector has, for some rows, the four even or the four odd columns.
// For each k it needs A's element of each row four times, and B's four elements for each row. The factors are unpacked
// so that loads bring these, once for all products of a run that share them (decode/product_runs.h).
#include "kernel/matrix_product.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "numerics.h"
#include "scheduler/divergence.h"
#include "small_floats.h"
#include "units.h"
#include "vectors.h"
#include "word_squares.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

constexpr uint32_t tile_rows = 8, quad = 4;
constexpr uint32_t row_words = 4;  // of a row or column in one register

// Formats of the factors' elements; a Four is as wide as four. widen() unpacks elements that lie side by side.

template <class Format>
struct Halves {
  using Value = float;
  using Four = uint64_t;
  static constexpr uint32_t word_k = 2;
  static void widen(float* to, const std::byte* from, int n) {
    Format::widen(to, reinterpret_cast<const uint16_t*>(from), n);
  }
};

/// f32 without the low 13 bits.
struct Tf32 {
  using Value = float;
  using Four = Words;
  static constexpr uint32_t word_k = 1;
  static float widened(uint32_t word) { return float_of(word & 0xFFFFE000u); }
  static void widen(float* to, const std::byte* from, int n) {
    for (int k = 0; k < n; ++k) to[k] = widened(reinterpret_cast<const uint32_t*>(from)[k]);
  }
};

/// Four elements a word. `Format::widened` makes a Value of a byte.
template <class Format>
struct Bytes {
  using Value = typename Format::Value;
  using Four = uint32_t;
  static constexpr uint32_t word_k = 4;
  static void widen(Value* to, const std::byte* from, int n) {
    for (int k = 0; k < n; ++k) to[k] = Format::widened(static_cast<uint8_t>(from[k]));
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

template <class V>
[[gnu::always_inline]] inline V vector_at(const void* from) {
  V v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

/// Elements of A: for each k those of all rows, each four times.
template <class Format, uint32_t rows, uint32_t groups>
struct alignas(64) Rows {
  static constexpr uint32_t group_k = row_words * Format::word_k;
  typename Format::Value at[groups * group_k][rows][quad];
};

/// Unpacks eight rows, whose words lie side by side in a register, to those from `first_row` on.
template <class Format, uint32_t rows>
void take_rows(typename Format::Value (*to)[rows][quad], uint32_t first_row, const uint32_t* words) {
  using Value = typename Format::Value;
  using Four = typename Format::Four;
  using V = VectorOf<Value>;
  Four ordered[tile_rows];
  alignas(64) Value fours[tile_rows][quad];
  const auto* const from = reinterpret_cast<const Four*>(words);
  for (uint32_t q = 0; q < Format::word_k; ++q) {
    for (uint32_t r = 0; r < tile_rows; ++r) ordered[r] = from[r * Format::word_k + q];
    Format::widen(fours[0], reinterpret_cast<const std::byte*>(ordered), tile_rows * quad);
    for (uint32_t first = 0; first < tile_rows; first += vector_lanes / quad) {
      const V v = vector_at<V>(fours[first]);
      const auto put = [&](uint32_t e, V spread) {
        std::memcpy(to[quad * q + e][first_row + first], &spread, sizeof(spread));
      };
      put(0, spread_in_fours<0>(v));
      put(1, spread_in_fours<1>(v));
      put(2, spread_in_fours<2>(v));
      put(3, spread_in_fours<3>(v));
    }
  }
}

/// Elements of B. Those of k = 4 q + e are in at[e]: of the even columns from 4 q on, of the odd ones `group_k` behind.
template <class Format>
struct alignas(64) Columns {
  static constexpr uint32_t group_k = row_words * Format::word_k;
  typename Format::Value at[quad][2 * group_k];
};

/// Unpacks columns, whose words lie side by side in a register.
template <class Format>
void take_columns(Columns<Format>& columns, const uint32_t* words) {
  using Value = typename Format::Value;
  constexpr uint32_t pair = 2 * Columns<Format>::group_k;
  constexpr uint32_t lanes = std::min(static_cast<uint32_t>(vector_lanes), pair);
  using Lanes [[gnu::vector_size(lanes * sizeof(Value))]] = Value;
  alignas(64) Value pairs[quad][pair];  // an even column and the odd one behind it
  Format::widen(pairs[0], reinterpret_cast<const std::byte*>(words), quad * pair);
  for (uint32_t first = 0; first < pair; first += lanes) {
    Lanes squares[quad];
    for (uint32_t n = 0; n < quad; ++n) squares[n] = vector_at<Lanes>(pairs[n] + first);
    transpose(squares);
    for (uint32_t e = 0; e < quad; ++e) std::memcpy(columns.at[e] + first, &squares[e], sizeof(squares[e]));
  }
}

/// Where sums start and where they end: of each tile, those of the even and those of the odd columns, in the order of
/// lanes. Sums of all rows at once may be in registers of C and of D; others need `memory`, because registers may be
/// both.
template <class T, uint32_t tiles, bool all_at_once>
struct Accumulators {
  using Value = T;
  static constexpr bool in_registers = all_at_once;
  const Value* from[tiles][2];
  Value* to[tiles][2];
  alignas(64) Value memory[tiles][2][warp_lanes];
};

// C and D: start() says where sums are, finish() puts them in D where they are not.

struct WideSums {
  using Value = float;
  template <class All>
  static void start(const Warp& warp, const ProductOperands& operands, All& sums) {
    for (uint32_t tile = 0; tile < std::size(sums.from); ++tile) {
      for (uint32_t part = 0; part < 2; ++part) {
        sums.from[tile][part] = row<float>(warp, operands.c(tile, part));
        sums.to[tile][part] = All::in_registers ? row<float>(warp, operands.d(tile, part)) : sums.memory[tile][part];
      }
    }
  }
  template <class All>
  static void finish(const Warp& warp, const ProductOperands& operands, const All& sums) {
    if constexpr (All::in_registers) return;
    for (uint32_t tile = 0; tile < std::size(sums.from); ++tile) {
      for (uint32_t part = 0; part < 2; ++part) {
        std::memcpy(row<float>(warp, operands.d(tile, part)), sums.memory[tile][part], sizeof(sums.memory[tile][part]));
      }
    }
  }
};

template <class All>
void use_memory(All& sums) {
  for (uint32_t tile = 0; tile < std::size(sums.from); ++tile) {
    for (uint32_t part = 0; part < 2; ++part) sums.from[tile][part] = sums.to[tile][part] = sums.memory[tile][part];
  }
}

struct HalfSums {
  using Value = float;
  template <class All>
  static void start(const Warp& warp, const ProductOperands& operands, All& sums) {
    use_memory(sums);
    for (uint32_t tile = 0; tile < std::size(sums.from); ++tile) {
      const uint32_t* const words = row<uint32_t>(warp, operands.c(tile, 0));
      uint16_t first[warp_lanes], second[warp_lanes];
      for (uint32_t l = 0; l < warp_lanes; ++l) first[l] = static_cast<uint16_t>(words[l]);
      for (uint32_t l = 0; l < warp_lanes; ++l) second[l] = static_cast<uint16_t>(words[l] >> 16);
      F16::widen(sums.memory[tile][0], first, warp_lanes);
      F16::widen(sums.memory[tile][1], second, warp_lanes);
    }
  }
  template <class All>
  static void finish(const Warp& warp, const ProductOperands& operands, const All& sums) {
    for (uint32_t tile = 0; tile < std::size(sums.from); ++tile) {
      uint16_t first[warp_lanes], second[warp_lanes];
      F16::narrow(first, sums.memory[tile][0], warp_lanes);
      F16::narrow(second, sums.memory[tile][1], warp_lanes);
      uint32_t* const to = row<uint32_t>(warp, operands.d(tile, 0));
      for (uint32_t l = 0; l < warp_lanes; ++l) to[l] = first[l] | static_cast<uint32_t>(second[l]) << 16;
    }
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
  template <class All>
  static void start(const Warp&, const ProductOperands&, All& sums) {
    use_memory(sums);
    std::memset(sums.memory, 0, sizeof(sums.memory));
  }
  template <class All>
  static void finish(const Warp& warp, const ProductOperands& operands, All& sums) {
    for (uint32_t tile = 0; tile < std::size(sums.from);
         ++tile) {  // all of C before D, which may have the same registers
      for (uint32_t part = 0; part < 2; ++part) {
        const int32_t* const c = row<int32_t>(warp, operands.c(tile, part));
        int32_t* const sum = sums.memory[tile][part];
        for (uint32_t l = 0; l < warp_lanes; ++l) sum[l] = joined<saturates>(sum[l], c[l]);
      }
    }
    for (uint32_t tile = 0; tile < std::size(sums.from); ++tile) {
      for (uint32_t part = 0; part < 2; ++part) {
        int32_t* const to = row<int32_t>(warp, operands.d(tile, part));
        std::memcpy(to, sums.memory[tile][part], sizeof(sums.memory[tile][part]));
      }
    }
  }
};

inline Vector with_canonical_nan(Vector sum) {
  const auto nan = std::bit_cast<Vector>(VectorOf<uint32_t>{} + canonical_nan);
  return sum == sum ? sum : nan;
}
inline VectorOf<int32_t> with_canonical_nan(VectorOf<int32_t> sum) {
  return sum;
}

/// Adds a b to the sums of the rows from `first` on, one k after the other. The sums stay in vector registers, where
/// only full unrolling keeps them.
template <int vectors, class All, class A, uint32_t rows, uint32_t groups, class B>
[[gnu::always_inline]] inline void add_to_rows(const All& sums, const Rows<A, rows, groups>& a, const Columns<B>* b,
                                               uint32_t first) {
  using V = VectorOf<typename A::Value>;
  constexpr uint32_t vector_rows = vector_lanes / quad, group_k = row_words * A::word_k;
  const auto row_of = [&](int v) { return first + static_cast<uint32_t>(v) * vector_rows; };
  const auto place = [&](auto& in, int v, uint32_t parity) {
    return in[row_of(v) / tile_rows][parity] + row_of(v) % tile_rows * quad;
  };
  V even[vectors], odd[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    even[v] = vector_at<V>(place(sums.from, v, 0));
    odd[v] = vector_at<V>(place(sums.from, v, 1));
  }
  for (uint32_t g = 0; g < groups; ++g) {
    for (uint32_t q = 0; q < A::word_k; ++q) {
#pragma GCC unroll 4
      for (uint32_t e = 0; e < quad; ++e) {
        const auto* const columns = b[g].at[e] + quad * q;
        const V even_columns = repeat_four(columns), odd_columns = repeat_four(columns + group_k);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          V factor = vector_at<V>(a.at[g * group_k + quad * q + e][row_of(v)]);
          asm("" : "+x"(factor));  // keeps the compiler from loading it twice
          even[v] = multiply_add(factor, even_columns, even[v]);
          odd[v] = multiply_add(factor, odd_columns, odd[v]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    const V even_sum = with_canonical_nan(even[v]), odd_sum = with_canonical_nan(odd[v]);
    std::memcpy(place(sums.to, v, 0), &even_sum, vector_bytes);
    std::memcpy(place(sums.to, v, 1), &odd_sum, vector_bytes);
  }
}

/// The handler of a run of products.
template <class A, class B, class Sums, uint32_t tiles, uint32_t groups>
const Instruction* multiply(Warp& warp, const Instruction* i) {
  if (const Mask lanes = guarded(warp, i); lanes != full_mask) [[unlikely]] {
    return lanes == 0 ? i + 1 : gather_warp(warp, i, lanes);
  }
  constexpr uint32_t rows = tiles * tile_rows, vector_rows = vector_lanes / quad;
  constexpr int vectors = std::min(4u, rows / vector_rows);  // twice as many sums: as many as hide an addition's time
  Rows<A, rows, groups> a[FactorSlot::of_a];
  Columns<B> b[FactorSlot::of_b][groups];
  ProductOperands operands(warp.lists + i->extra);
  for (uint32_t n = 0; n < i->c; ++n, operands = operands.next()) {
    const FactorSlot a_slot = operands.a_slot(), b_slot = operands.b_slot();
    for (uint32_t g = 0; g < groups; ++g) {
      for (uint32_t tile = 0; !a_slot.holds && tile < tiles; ++tile) {
        auto* const to = a[a_slot.index].at + g * row_words * A::word_k;
        take_rows<A, rows>(to, tile * tile_rows, row<uint32_t>(warp, operands.a(tile, g)));
      }
      if (!b_slot.holds) take_columns(b[b_slot.index][g], row<uint32_t>(warp, operands.b(g)));
    }
    Accumulators<typename Sums::Value, tiles, vectors * vector_rows == rows> sums;
    Sums::start(warp, operands, sums);
    for (uint32_t first = 0; first < rows; first += vectors * vector_rows) {
      add_to_rows<vectors>(sums, a[a_slot.index], b[b_slot.index], first);
    }
    Sums::finish(warp, operands, sums);
  }
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
