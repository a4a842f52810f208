// Storage formats on the host, to and from double. The one home of these conversions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kiln/generator/dtype.h"

namespace kiln::reference {

/// Exact. NaN stays NaN.
double from_f16(uint16_t bits);
double from_bf16(uint16_t bits);

/// Rounds to nearest, ties to even, in one step; overflows to infinity; keeps the sign of zero. NaN becomes the quiet
/// NaN 0x7fff (CUDA's canonical one) for f16 and bf16.
uint16_t to_f16(double value);
uint16_t to_bf16(double value);

/// As above, of the 8-bit types, but saturating: what is larger than the largest finite number, infinities too, becomes
/// that number with its sign. NaN becomes 0x7f.
double from_f8e4m3(uint8_t bits);
double from_f8e5m2(uint8_t bits);
uint8_t to_f8e4m3(double value);
uint8_t to_f8e5m2(double value);

/// Rounds as storing an element of `dtype` does, and gives the stored value. Integers: the nearest one, ties to even,
/// of those that the type has; 0 for NaN.
double round_to(DType dtype, double value);

/// Reads the element at `address`, which need not be aligned. Exact.
double load(DType dtype, const std::byte* address);
/// Rounds `value` and writes it at `address`, which need not be aligned.
void store(DType dtype, std::byte* address, double value);
/// As store(), but where the type has infinities, one stays one: for what a caller, not a kernel, writes.
void put(DType dtype, std::byte* address, double value);

}  // namespace kiln::reference
