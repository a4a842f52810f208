// How operands are filled whose numbers mean something: positions, classes, lengths. Each reference says it of its own
// operands (Reference::filling); all others get any numbers (kiln/reference/fill.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "kiln/generator/request.h"
#include "kiln/reference/fill.h"

namespace kiln::reference {

/// The element at a coordinate, from 64 random bits; empty for an operand of any numbers.
using Filling = std::function<double(std::span<const int64_t> coordinate, uint64_t bits)>;
using FillingOf = Filling (*)(const Request& request, std::string_view operand, Values values);

/// [-1, 1), multiples of 2^-23: exact in f32.
inline double uniform(uint64_t bits) {
  return static_cast<double>(bits >> 40) * 0x1p-23 - 1.0;
}

/// Lengths: as many as there are, or fewer; among special values also what is no number of them.
inline Filling lengths_to(int64_t most, Values values) {
  return [most, values](std::span<const int64_t>, uint64_t bits) -> double {
    constexpr uint64_t seldom = 4;
    if (values == Values::specials && bits % seldom == 1) return static_cast<double>((bits & 64) != 0 ? most + 1 : -1);
    return static_cast<double>((bits >> 16) % (static_cast<uint64_t>(most) + 1));
  };
}

/// Positions in the channels of a pooled operand, where `operand` is indices of maxima.
Filling filling_of_positions(const Request& request, std::string_view operand, Values values);

}  // namespace kiln::reference
