// Errors of sums of products that tensor cores may compute.
#include "product_sum.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "call.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/tolerance.h"

namespace kiln::reference::product_sum_test {
namespace {

constexpr double u = 0x1p-24;

/// Expected of the first element of the result.
Expected first_of(const Call& call) {
  const std::string& result = result_of(call.request).name;
  return at(call.request, call.bindings(), Coordinate(call.request.at(result).extents.size()));
}

TEST(TensorCores, ArePermittedByTheTypesOfTheFactorsAndTheArithmetic) {
  const auto permitted = [](DType a, DType b, Arithmetic arithmetic = {}) {
    const bool one_way = TensorCores::of(arithmetic, a, b).permitted;
    EXPECT_EQ(TensorCores::of(arithmetic, b, a).permitted, one_way);
    return one_way;
  };
  const Arithmetic tf32{.tf32 = true}, fast{.fast = true};
  for (const DType narrow : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    for (const DType other : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2, DType::i8, DType::u8}) {
      EXPECT_TRUE(permitted(narrow, other));
    }
    EXPECT_FALSE(permitted(narrow, DType::f32));
    EXPECT_FALSE(permitted(narrow, DType::f32, fast));
    EXPECT_TRUE(permitted(narrow, DType::f32, tf32));
    EXPECT_FALSE(permitted(narrow, DType::i32, tf32));
  }
  EXPECT_FALSE(permitted(DType::f32, DType::f32));
  EXPECT_FALSE(permitted(DType::f32, DType::f32, fast)) << "Winograd's transforms are in f32";
  EXPECT_TRUE(permitted(DType::f32, DType::f32, tf32));
  EXPECT_FALSE(permitted(DType::i8, DType::u8)) << "sums of integers are exact";
}

TEST(TensorCores, ErrByTwiceTheProducts) {
  for (const auto& [line, roundings] :
       {std::pair{"conv_forward x=f16:1x4x5x5 w=f16:2x4x3x3 pad=1", 2 * 4 * 4},  // the corner has 4 of 9 taps
        {"conv_forward x=f32:1x4x5x5 w=f32:2x4x3x3 pad=1", 4 * 4},
        {"conv_forward x=f32:1x4x5x5 w=f32:2x4x3x3 pad=1 tf32", 2 * 4 * 4},
        {"local_conv_forward x=bf16:1x4x3x3 w=bf16:1x2x4x3x3", 2 * 4 * 9},
        {"conv_backward_data dy=bf16:1x2x5x5 w=bf16:2x4x3x3 pad=1", 2 * 2 * 4},
        {"conv_backward_filter x=f16:2x4x5x5 dy=f16:2x2x5x5 dw=f32:2x4x3x3 pad=1", 2 * 2 * 16},
        {"gemm a=f16:3x9 b=bf16:9x2 c=f32:3x2", 2 * 9},
        {"gemm a=f16:3x9 b=f32:9x2 c=f32:3x2", 9}}) {
    EXPECT_EQ(first_of(Call(line)).roundings, roundings) << line;
  }
  const Call call("gemm a=f16:2x40 b=f16:40x2 c=f32:2x2");
  const Expected expected = first_of(call);
  EXPECT_NEAR(arithmetic_error(call.request, expected), 80 * (u * expected.magnitude + 0x1p-149), 1e-20);
  // bias and residual are added in f32.
  EXPECT_EQ(first_of(Call("gemm a=f16:2x40 b=f16:40x2 epilogue=bias")).roundings, 81);
}

TEST(TensorCores, KnowTheTypeThatUserCodeHides) {
  // Without user code the operand of prologues is f32 in checks.
  const Call call("gemm a=f32:2x40 b=f16:40x2 c=f32:2x2");
  Bindings bindings = call.bindings();
  EXPECT_EQ(at(call.request, bindings, Coordinate{0, 0}).roundings, 40);
  bindings.input_type = DType::f16;
  EXPECT_EQ(at(call.request, bindings, Coordinate{0, 0}).roundings, 80);
}

TEST(TensorCores, GrantUserCodeTheSumsThatFastPermits) {
  // As a check sees a product of f16 with a prologue, which may be rounded to f16.
  const auto judged = [](const std::string& words, Values values, std::optional<DType> type) {
    const Call call("gemm a=f32:2x40 b=f16:40x2 c=f32:2x2 " + words, values);
    Bindings bindings = call.bindings();
    bindings.input_type = type;
    const Expected expected = at(call.request, bindings, Coordinate{0, 0});
    return std::pair(expected, arithmetic_error(call.request, expected));
  };
  const auto& [expected, error] = judged("fast", Values::uniform, DType::f16);
  EXPECT_NEAR(error, (64 * 0x1p-11 + 80 * 0x1p-24) * expected.magnitude, 80 * 0x1p-23);
  EXPECT_LT(judged("fast", Values::uniform, std::nullopt).second, error / 1000);
  EXPECT_LT(judged("", Values::uniform, DType::f16).second, error / 1000);
  EXPECT_LT(judged("fast", Values::uniform, DType::f32).second, error / 1000);
  EXPECT_EQ(judged("fast", Values::integers, DType::f16).second, 0);
  Call large("gemm a=f32:1x2 b=f16:2x1 c=f32:1x1 fast");
  large.set("a", {40000, 40000}).set("b", {1, -1});
  Bindings bindings = large.bindings();
  bindings.input_type = DType::f16;
  EXPECT_TRUE(at(large.request, bindings, Coordinate{0, 0}).unspecified) << "sums of f16 may overflow";
  large.set("a", {1e5, 1}).set("b", {0.1, 1});
  EXPECT_TRUE(at(large.request, bindings, Coordinate{0, 0}).unspecified) << "so may what the prologue gives";
  large.set("a", {1000, 1});
  EXPECT_FALSE(at(large.request, bindings, Coordinate{0, 0}).unspecified);
}

TEST(TensorCores, AddNoMoreThan32ProductsInTheStorageType) {
  const auto judged = [](const std::string& line, Values values) {
    const Call call(line, values);
    const Expected expected = first_of(call);
    return arithmetic_error(call.request, expected) / expected.magnitude;
  };
  const auto product = [](const std::string& a, const std::string& b, int depth) {
    return fmt::format("gemm a={}:1x{} b={}:{}x1 c=f32:1x1 fast", a, depth, b, depth);
  };
  for (const auto& [type, unit] : {std::pair{"f16", 0x1p-11}, {"bf16", 0x1p-8}}) {
    EXPECT_NEAR(judged(product(type, type, 20), Values::uniform), 2 * 20 * unit, unit);
    EXPECT_NEAR(judged(product(type, type, 2000), Values::uniform), 2 * 32 * unit, unit);
    EXPECT_NEAR(judged(product(type, "f32", 2000), Values::uniform), 2 * 32 * unit, unit) << "on lanes";
    EXPECT_LT(judged(product("f32", type, 2000), Values::uniform), unit) << "the storage is f32";
  }
  EXPECT_EQ(judged(product("f16", "f16", 2000), Values::integers), 0) << "parts of 32 are exact";
  EXPECT_GT(judged(product("bf16", "bf16", 2000), Values::integers), 0);
  // Two parts of 32 products: none overflows, though their sum would.
  Call large("gemm a=f16:1x64 b=f16:64x1 c=f32:1x1 fast");
  large.set("a", std::vector<double>(64, 40)).set("b", std::vector<double>(64, 50));
  EXPECT_FALSE(first_of(large).unspecified);
  large.set("b", std::vector<double>(64, 52));
  EXPECT_TRUE(first_of(large).unspecified) << "66560";
  large.set("a", std::vector<double>(64, 1e-6)).set("b", std::vector<double>(64, 1e-6));
  EXPECT_GT(arithmetic_error(large.request, first_of(large)), 127 * 0x1p-24) << "denormal products are rounded too";
}

TEST(TensorCores, AlignDenormalFactorsLikeNormalOnes) {
  Call call("gemm a=f16:1x2 b=f16:2x1 c=f32:1x1");
  call.set("a", {0x1p-20, 3}).set("b", {2, 0x1p-16});
  const double counted = 0x1p-14 * 2 + 3 * 0x1p-14, sum = 0x1p-19 + 3 * 0x1p-16;
  EXPECT_EQ(first_of(call).value, sum);
  EXPECT_EQ(first_of(call).magnitude, counted);
  EXPECT_EQ(first_of(call).finite_magnitude, sum);
  call.set("a", {0x1p-20, 0});
  EXPECT_EQ(first_of(call).magnitude, 0x1p-13) << "a product of 0 is not aligned at all";
  Call wide("gemm a=f32:1x2 b=f32:2x1");
  wide.set("a", {0x1p-130, 0}).set("b", {2, 1});
  EXPECT_EQ(first_of(wide).magnitude, 0x1p-129);
  Call tf32("gemm a=f32:1x1 b=f32:1x1 tf32");
  tf32.set("a", {0x1p-140}).set("b", {0x1p20});  // which loses all its bits
  EXPECT_TRUE(is_right(tf32.request, first_of(tf32), 0));
}

TEST(TensorCores, MayCutAFactorOfTf32ToZeroWhereTheOtherIsInfinite) {
  const double infinity = HUGE_VAL;
  const auto may_be_nan = [](const Arithmetic& arithmetic, DType type, double a, double b) {
    ProductSum sum(TensorCores::of(arithmetic, type, type));
    sum.add(a, b);
    return sum.finished().any_not_finite;
  };
  const Arithmetic tf32{.tf32 = true};
  EXPECT_TRUE(may_be_nan(tf32, DType::f32, infinity, 0x1.8p-137));
  EXPECT_TRUE(may_be_nan(tf32, DType::f32, -0x1p-149, infinity));
  EXPECT_FALSE(may_be_nan(tf32, DType::f32, infinity, -0x1p-136)) << "the least denormal number of tf32";
  EXPECT_FALSE(may_be_nan(tf32, DType::f32, infinity, 0)) << "NaN by any arithmetic";
  EXPECT_FALSE(may_be_nan({}, DType::f32, infinity, 0x1p-149));
  EXPECT_FALSE(may_be_nan(tf32, DType::bf16, infinity, 0x1p-133)) << "bf16 fits tf32";
}

TEST(TensorCores, KeepSumsOfIntegersExact) {
  for (const char* line :
       {"gemm a=f16:2x100000 b=f16:100000x1 c=f32:2x1", "gemm a=bf16:2x100000 b=bf16:100000x1 c=f32:2x1",
        "gemm a=f8e4m3:2x100000 b=f8e5m2:100000x1 c=f32:2x1"}) {
    const Call call(line, Values::integers);
    EXPECT_EQ(arithmetic_error(call.request, first_of(call)), 0) << line;
  }
}

TEST(TensorCores, KeepThirteenBitsOfSumsOfBytes) {
  const auto kept = [](const std::string& words, int together) {  // each of so many products may lose 2^-13 M
    const Call call(words);
    const Expected expected = first_of(call);
    EXPECT_DOUBLE_EQ(expected.transcendental * u, together * 0x1p-13 * expected.magnitude) << words;
    EXPECT_GE(arithmetic_error(call.request, expected), together * 0x1p-13 * expected.magnitude) << words;
  };
  kept("gemm a=f8e4m3:1x1000 b=f8e4m3:1000x1 c=f32:1x1", 128);
  kept("gemm a=f8e4m3:1x1000 b=f8e5m2:1000x1 c=f32:1x1 fast", 1000);
  kept("gemm a=f8e5m2:1x50 b=f8e5m2:50x1 c=f32:1x1", 50);
  kept("gemm a=f8e4m3:1x50 b=f16:50x1 c=f32:1x1", 0);  // products of f16
  // 128 products of at most 64 quanta are at most 2^13 quanta; of 128 quanta they may be more.
  const auto error_of = [](double largest, int k, const std::string& words) {
    const std::string n = std::to_string(k);
    Call call("gemm a=f8e4m3:1x" + n + " b=f8e4m3:" + n + "x1 c=f32:1x1 " + words);
    std::vector<double> a(static_cast<size_t>(k), 1), b(static_cast<size_t>(k), 8);
    a[0] = largest;
    b[1] = 1;
    call.set("a", a).set("b", b);
    return arithmetic_error(call.request, first_of(call));
  };
  EXPECT_EQ(error_of(8, 1000, ""), 0);
  EXPECT_GT(error_of(16, 1500, ""), 0);
  EXPECT_EQ(error_of(16, 1000, ""), 0) << "all products are at most 2^13 quanta";
  EXPECT_GT(error_of(8, 1500, "fast"), 0);
  EXPECT_EQ(error_of(8, 1000, "fast"), 0);
}

}  // namespace
}  // namespace kiln::reference::product_sum_test
