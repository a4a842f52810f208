#include "kiln/reference/fill.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "evaluator.h"
#include "filling.h"
#include "kiln/reference/convert.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::reference {
namespace {

double smallest(DType dtype) {
  const DTypeTraits& row = traits(dtype);
  return row.floating ? std::ldexp(1.0, row.least_exponent - row.digits + 1) : row.least;
}

double draw_integer(uint64_t bits) {
  constexpr std::array<double, 16> choices{0, 0, 0, 1, 1, 1, -1, -1, -1, 2, 2, -2, -2, 3, -3, -4};
  return choices[bits >> 60];
}

double draw_wide(uint64_t bits) {
  const int exponent = static_cast<int>(bits & 15) - 8;
  const double significand = 1.0 + 0.5 * (1.0 + uniform(bits));
  return std::ldexp((bits & 16) != 0 ? -significand : significand, exponent);
}

double draw_special(DType dtype, uint64_t bits) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (bits % 48) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return infinity;
    case 2:
      return -infinity;
    case 3:
      return -0.0;
    case 4:
      return traits(dtype).largest;
    case 5:
      return smallest(dtype);
    default:
      return uniform(bits);
  }
}

// Integers between the bounds of the type, those of i32 up to 2^20: sums of some of them are exact in f32.
double draw_whole(DType dtype, Values values, uint64_t bits) {
  const DTypeTraits& row = traits(dtype);
  const double whole = std::trunc(uniform(bits) * std::min(row.largest, 0x1p20));
  if (values == Values::specials && bits % 16 < 2) return bits % 16 == 0 ? row.largest : row.least;
  return row.least == 0 ? std::fabs(whole) : whole;
}

double draw(DType dtype, Values values, uint64_t bits) {
  if (!is_floating(dtype) && values != Values::integers) return draw_whole(dtype, values, bits);
  switch (values) {
    case Values::uniform:
      return uniform(bits);
    case Values::integers:
      return draw_integer(bits);
    case Values::wide:
      return draw_wide(bits);
    case Values::specials:
      return draw_special(dtype, bits);
  }
  return 0;
}

}  // namespace

uint64_t random_bits(uint64_t seed, uint64_t counter) {
  // SplitMix64 (Steele, Lea, Flood 2014): a Weyl sequence through a mixing function; once for the seed, once for both.
  const auto mix = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  constexpr uint64_t golden = 0x9e3779b97f4a7c15u;
  return mix(mix(seed + golden) + (counter + 1) * golden);
}

void fill(const TensorSpec& spec, std::span<std::byte> memory, Values values, uint64_t seed) {
  for_each_at_once(spec, [&](size_t number, std::span<const int64_t> coordinate) {
    const auto at = static_cast<size_t>(offset_of(spec, coordinate) * size_of(spec.dtype));
    put(spec.dtype, memory.data() + at, draw(spec.dtype, values, random_bits(seed, number)));
  });
}

std::vector<std::byte> filled(const TensorSpec& spec, Values values, uint64_t seed) {
  std::vector<std::byte> memory = poisoned(spec);
  fill(spec, memory, values, seed);
  return memory;
}

namespace {

// Memory whose elements `draw` gives.
std::vector<std::byte> filled_by(const TensorSpec& spec, uint64_t seed, const Filling& draw) {
  std::vector<std::byte> memory = poisoned(spec);
  uint64_t index = 0;
  for_each_coordinate(spec, [&](std::span<const int64_t> coordinate) {
    write(spec, memory, coordinate, draw(coordinate, random_bits(seed, index++)));
  });
  return memory;
}

}  // namespace

std::vector<std::byte> filled(const Request& request, const Operand& operand, Values values, uint64_t seed) {
  const FillingOf of = reference_of(request.operation).filling;
  if (const Filling draw = of == nullptr ? Filling{} : of(request, operand.name, values)) {
    return filled_by(operand.spec, seed, draw);
  }
  return filled(operand.spec, values, seed);
}

std::vector<std::byte> poisoned(const TensorSpec& spec) {
  // All bits set is a NaN in every format.
  return std::vector<std::byte>(static_cast<size_t>(byte_span(spec)), std::byte{0xff});
}

}  // namespace kiln::reference
