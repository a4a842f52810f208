#include "kiln/generator/dtype.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln::dtype_test {
namespace {

TEST(DType, HasARowThatIsSoundInItself) {
  for (const DTypeTraits& row : dtype_rows) {
    EXPECT_EQ(parse_dtype(row.name), row.dtype) << row.name;
    EXPECT_EQ(to_string(row.dtype), row.name);
    EXPECT_EQ(size_of(row.dtype), row.bytes) << row.name;
    EXPECT_EQ(is_floating(row.dtype), row.digits > 0) << row.name;
    if (!row.floating) continue;
    EXPECT_EQ(row.least, -row.largest) << row.name;
    // The largest number has as many digits as there are, at the most.
    const double units = std::ldexp(row.largest, row.digits - 1 - std::ilogb(row.largest));
    EXPECT_EQ(units, std::trunc(units)) << row.name;
    // Sign, exponent and fraction fill the element: the exponents of normal numbers, one for the others, and with
    // infinities one for these.
    const int exponents = std::ilogb(row.largest) - row.least_exponent + 2 + (row.has_infinity ? 1 : 0);
    EXPECT_EQ(exponents, 1 << (8 * row.bytes - row.digits)) << row.name;
  }
  EXPECT_FALSE(parse_dtype("f8"));
}

TEST(DType, MayBeNone) {
  const auto none = static_cast<DType>(dtype_rows.size());
  EXPECT_FALSE(is_dtype(none));
  EXPECT_FALSE(is_dtype(static_cast<DType>(-1)));
  EXPECT_EQ(to_string(none), "?");
  EXPECT_FALSE(is_floating(none));
  EXPECT_FALSE(DTypes::any.holds(none));
}

TEST(DTypes, AreNamedInTheOrderOfTheRows) {
  EXPECT_EQ(to_string(DTypes::only_i32), "i32");
  EXPECT_EQ(to_string(DTypes::floating), "f32, f16 or bf16");
  EXPECT_EQ(to_string(DTypes::integers | DTypes::only_f32), "f32, i32, i8 or u8");
  EXPECT_EQ(to_string(DTypes{DType::f8e5m2, DType::f8e4m3}), "f8e4m3 or f8e5m2");
  EXPECT_EQ(to_string(DTypes()), "");
}

}  // namespace
}  // namespace kiln::dtype_test
