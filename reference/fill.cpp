#include "kiln/reference/fill.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kiln/generator/operations/cross_entropy.h"
#include "kiln/generator/operations/gather.h"
#include "kiln/generator/operations/pool_window.h"
#include "kiln/generator/operations/recurrent.h"
#include "kiln/reference/convert.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::reference {
namespace {

/// [-1, 1), multiples of 2^-23: exact in f32.
double uniform(uint64_t bits) {
  return static_cast<double>(bits >> 40) * 0x1p-23 - 1.0;
}

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

// Memory whose elements `choose(coordinate, bits)` gives.
template <class Choose>
std::vector<std::byte> filled_by(const TensorSpec& spec, uint64_t seed, const Choose& choose) {
  std::vector<std::byte> memory = poisoned(spec);
  uint64_t index = 0;
  for_each_coordinate(spec, [&](std::span<const int64_t> coordinate) {
    write(spec, memory, coordinate, static_cast<double>(choose(coordinate, random_bits(seed, index++))));
  });
  return memory;
}

// A position in the window of an output, -1 for a tap outside; now and then any position of the channel, and among
// special values also what is none.
int64_t draw_position(const std::vector<WindowAxis>& axes, int64_t positions, std::span<const int64_t> output,
                      Values values, uint64_t bits) {
  constexpr uint64_t seldom = 8;
  const uint64_t draw = bits / seldom;
  if (bits % seldom == 0) return static_cast<int64_t>(draw % (static_cast<uint64_t>(positions) + 1)) - 1;
  if (values == Values::specials && bits % seldom == 1) {
    constexpr auto least = std::numeric_limits<int32_t>::min(), most = std::numeric_limits<int32_t>::max();
    return draw % 3 == 0 ? least : draw % 3 == 1 ? most : std::min<int64_t>(positions, most);
  }
  uint64_t rest = draw;
  int64_t position = 0;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const auto taps = static_cast<uint64_t>(axes[axis].window);
    const int64_t along = axes[axis].position(output[axis], static_cast<int64_t>(rest % taps));
    if (!axes[axis].inside(along)) return -1;
    position = position * axes[axis].extent + along;
    rest /= taps;
  }
  return position;
}

// A position, from the front or from the end; now and then one just outside, and among special values the farthest.
int64_t draw_index(int64_t positions, Values values, uint64_t bits) {
  constexpr uint64_t seldom = 8;
  const uint64_t draw = bits / seldom;
  if (positions == 0 || bits % seldom == 0) return draw % 2 == 0 ? positions : -positions - 1;
  if (values == Values::specials && bits % seldom == 1) {
    return draw % 2 == 0 ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int32_t>::max();
  }
  return static_cast<int64_t>(draw % (2 * static_cast<uint64_t>(positions))) - positions;
}

// A class, or now and then what rows have that do not count; among special values also what is no class.
int64_t draw_class(const ClassTargets& targets, Values values, uint64_t bits) {
  constexpr uint64_t seldom = 8;
  if (bits % seldom == 0) return targets.ignore;
  if (values == Values::specials && bits % seldom == 1) return (bits & 64) != 0 ? targets.classes : -1;
  return static_cast<int64_t>((bits >> 16) % static_cast<uint64_t>(targets.classes));
}

// As many steps as there are, or fewer; among special values also what is no number of steps.
int64_t draw_length(int64_t steps, Values values, uint64_t bits) {
  constexpr uint64_t seldom = 4;
  if (values == Values::specials && bits % seldom == 1) return (bits & 64) != 0 ? steps + 1 : -1;
  return static_cast<int64_t>((bits >> 16) % (static_cast<uint64_t>(steps) + 1));
}

}  // namespace

std::vector<std::byte> filled(const Request& request, const Operand& operand, Values values, uint64_t seed) {
  if (const std::optional<int64_t> positions = pooled_positions(request, operand.name)) {
    const std::vector<WindowAxis> axes = pooled_axes(request, operand.name);
    return filled_by(operand.spec, seed, [&](std::span<const int64_t> coordinate, uint64_t bits) {
      return draw_position(axes, *positions, coordinate.subspan(2), values, bits);
    });
  }
  if (const std::optional<int64_t> positions = gathered_positions(request, operand.name)) {
    return filled_by(operand.spec, seed, [&](auto, uint64_t bits) { return draw_index(*positions, values, bits); });
  }
  if (const std::optional<ClassTargets> targets = class_targets(request, operand.name)) {
    return filled_by(operand.spec, seed, [&](auto, uint64_t bits) { return draw_class(*targets, values, bits); });
  }
  if (is_class_weights(request, operand.name)) {
    // Their sums divide: 1/8 to 9/8.
    return filled_by(operand.spec, seed, [](auto, uint64_t bits) { return 0.125 + (uniform(bits) + 1) / 2; });
  }
  if (const std::optional<int64_t> steps = most_recurrent_steps(request, operand.name)) {
    return filled_by(operand.spec, seed, [&](auto, uint64_t bits) { return draw_length(*steps, values, bits); });
  }
  const std::optional<int64_t> terms = recurrent_terms(request, operand.name);
  if (terms && values == Values::uniform) {
    // Their magnitudes add up to about 1: errors die away from step to step, and bounds stay tight however many there
    // are.
    const double scale = 2 / static_cast<double>(*terms);
    return filled_by(operand.spec, seed, [scale](auto, uint64_t bits) { return scale * uniform(bits); });
  }
  return filled(operand.spec, values, seed);
}

std::vector<std::byte> poisoned(const TensorSpec& spec) {
  // All bits set is a NaN in every format.
  return std::vector<std::byte>(static_cast<size_t>(byte_span(spec)), std::byte{0xff});
}

}  // namespace kiln::reference
