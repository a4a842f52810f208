// Deterministic contents for operands. An element depends on the seed and its logical index only, so a tensor has the
// same values in every layout, and the same ones on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln::reference {

/// Distribution of a fill's values.
enum class Values {
  uniform,   ///< [-1, 1), rounded to storage; of integer types their whole range, up to 2^20.
  integers,  ///< -4 .. 4, more often small: products and sums of these are exact in f32, so that one missing or doubled
             ///< term of a large sum shows (docs/numerics.md).
  wide,      ///< Magnitudes from 2^-8 to 2^8, either sign: cancellation and rounding.
  specials,  ///< uniform, but every eighth or so is NaN, inf, -inf, -0, the largest or the smallest number.
};

/// Writes every element of `spec` and nothing between them; `memory` starts at the first element and holds at least
/// byte_span(spec) bytes.
void fill(const TensorSpec& spec, std::span<std::byte> memory, Values values, uint64_t seed);

/// Memory for `spec`: every element filled, the gaps between elements NaN.
std::vector<std::byte> filled(const TensorSpec& spec, Values values, uint64_t seed);

/// Memory for operand `operand` of `request` as checks fill it: as above, but indices name positions that there are,
/// and none (-1).
std::vector<std::byte> filled(const Request& request, const Operand& operand, Values values, uint64_t seed);

/// Memory for `spec` with NaN everywhere: what an output is before a kernel that must not read it.
std::vector<std::byte> poisoned(const TensorSpec& spec);

/// 64 well-mixed bits that depend on both arguments: the counter-based generator behind fill() (SplitMix64).
uint64_t random_bits(uint64_t seed, uint64_t counter);

}  // namespace kiln::reference
