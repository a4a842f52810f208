#include "kiln/reference/fill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kiln/reference/convert.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::reference::fill_test {
namespace {

std::vector<double> values_of(const TensorSpec& spec, Values values, uint64_t seed) {
  return read_all(spec, filled(spec, values, seed));
}

TEST(Fill, GivesEqualTensorsWhateverTheLayout) {
  const std::vector<int64_t> extents{2, 3, 5, 7};
  const auto nchw = values_of(TensorSpec::packed(DType::f16, extents, "nchw"), Values::uniform, 9);
  const auto nhwc = values_of(TensorSpec::packed(DType::f16, extents, "nhwc"), Values::uniform, 9);
  EXPECT_EQ(nchw, nhwc);
  EXPECT_NE(nchw, values_of(TensorSpec::packed(DType::f16, extents, "nchw"), Values::uniform, 10));
}

// Threads fill parts of large ones.
TEST(Fill, BeginsALargeTensorLikeASmallOne) {
  const std::vector<std::byte> large = filled(TensorSpec::packed(DType::f32, {3, 7001}, "nc"), Values::wide, 5);
  const std::vector<std::byte> small = filled(TensorSpec::packed(DType::f32, {3, 7001 / 3}, "nc"), Values::wide, 5);
  const TensorSpec row = TensorSpec::packed(DType::f32, {3 * 7001}, "n");
  EXPECT_EQ(large, filled(row, Values::wide, 5)) << "in logical order, whatever the shape";
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
}

TEST(Fill, PoisonsTheGapsBetweenElements) {
  const TensorSpec spec = TensorSpec::parse("f32:2x2:4,2");
  const auto memory = filled(spec, Values::integers, 1);
  int poisoned_elements = 0;
  for (size_t i = 0; i < memory.size() / 4; ++i) {
    poisoned_elements += std::isnan(load(DType::f32, memory.data() + 4 * i)) ? 1 : 0;
  }
  EXPECT_EQ(memory.size(), 7u * 4);
  EXPECT_EQ(poisoned_elements, 3);
}

TEST(Fill, DrawsUniformValuesFromTheWholeInterval) {
  const auto values = values_of(TensorSpec::packed(DType::f32, {10000}, "n"), Values::uniform, 3);
  double sum = 0;
  for (const double value : values) {
    ASSERT_GE(value, -1);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_LT(std::fabs(sum / 10000), 0.02);
  EXPECT_GT(std::set<double>(values.begin(), values.end()).size(), 9900u);
}

TEST(Fill, DrawsSmallIntegersOfBothSigns) {
  const auto values = values_of(TensorSpec::packed(DType::bf16, {5000}, "n"), Values::integers, 3);
  EXPECT_EQ(std::set<double>(values.begin(), values.end()), (std::set<double>{-4, -3, -2, -1, 0, 1, 2, 3}));
}

TEST(Fill, SpreadsWideValuesOverManyMagnitudes) {
  const auto values = values_of(TensorSpec::packed(DType::f32, {5000}, "n"), Values::wide, 3);
  for (const double value : values) {
    ASSERT_GE(std::fabs(value), 0x1p-8);
    ASSERT_LE(std::fabs(value), 0x1p8);
  }
  EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](double v) { return v < -100; }));
  EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](double v) { return std::fabs(v) < 0x1p-7; }));
}

TEST(Fill, MixesInEverySpecialValue) {
  const auto values = values_of(TensorSpec::packed(DType::f16, {5000}, "n"), Values::specials, 3);
  const auto count = [&](auto matches) { return std::count_if(values.begin(), values.end(), matches); };
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_GT(count([](double v) { return std::isnan(v); }), 50);
  EXPECT_GT(count([&](double v) { return v == infinity; }), 50);
  EXPECT_GT(count([&](double v) { return v == -infinity; }), 50);
  EXPECT_GT(count([](double v) { return v == 0 && std::signbit(v); }), 50);
  EXPECT_GT(count([](double v) { return v == 65504; }), 50);
  EXPECT_GT(count([](double v) { return v == 0x1p-24; }), 50);
  EXPECT_GT(count([](double v) { return std::isfinite(v) && std::fabs(v) < 1; }), 4000);
}

TEST(Fill, MixesInfinitiesIntoTypesWhoseStoresMakeNone) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [dtype, infinities] : {std::pair{DType::f8e5m2, true}, std::pair{DType::f8e4m3, false}}) {
    const auto values = values_of(TensorSpec::packed(dtype, {5000}, "n"), Values::specials, 3);
    EXPECT_EQ(std::count(values.begin(), values.end(), infinity) > 50, infinities) << to_string(dtype);
    EXPECT_EQ(std::count(values.begin(), values.end(), -infinity) > 50, infinities) << to_string(dtype);
    EXPECT_GT(std::count_if(values.begin(), values.end(), [](double v) { return std::isnan(v); }), 50);
  }
}

TEST(Fill, HasTheEndsOfEveryTypeAmongItsSpecialValues) {
  const std::map<DType, std::pair<double, double>> ends = {{DType::f32, {0x1p-149, 0x1.fffffep127}},
                                                           {DType::f16, {0x1p-24, 65504}},
                                                           {DType::bf16, {0x1p-133, 0x1.fep127}},
                                                           {DType::i32, {-2147483648.0, 2147483647}},
                                                           {DType::i8, {-128, 127}},
                                                           {DType::u8, {0, 255}},
                                                           {DType::f8e4m3, {0x1p-9, 448}},
                                                           {DType::f8e5m2, {0x1p-16, 57344}}};
  for (const auto& [dtype, end] : ends) {
    const auto values = values_of(TensorSpec::packed(dtype, {5000}, "n"), Values::specials, 3);
    for (const double each : {end.first, end.second}) {
      EXPECT_GT(std::count(values.begin(), values.end(), each), 50) << to_string(dtype) << " " << each;
    }
  }
}

TEST(Fill, MixesInTargetsThatAreNoClass) {
  const Request request = Request::parse("cross_entropy_forward x=f32:5000x7 reduction=none");
  for (const Values kind : {Values::uniform, Values::specials}) {
    std::set<double> met;
    for (const double target :
         read_all(request.at("targets"), filled(request, {"targets", request.at("targets")}, kind, 3))) {
      met.insert(target);
    }
    for (int i = 0; i < 7; ++i) EXPECT_TRUE(met.contains(i)) << i;
    EXPECT_EQ(met.contains(-1), kind == Values::specials);
    EXPECT_EQ(met.contains(7), kind == Values::specials);
  }
}

// Positions from both ends, and now and then one outside.
TEST(Fill, GivesGatherIndices) {
  const Request request = Request::parse("gather x=f32:9x4 indices=i32:3000x1");
  const Operand& indices = request.operands[1];
  const std::vector<double> values = read_all(indices.spec, filled(request, indices, Values::uniform, 1));
  const std::set<double> drawn(values.begin(), values.end());
  EXPECT_EQ(*drawn.begin(), -10);
  EXPECT_EQ(*drawn.rbegin(), 9);
  EXPECT_EQ(drawn.size(), 20u);
  const auto outside = std::count_if(values.begin(), values.end(), [](double i) { return i < -9 || i > 8; });
  EXPECT_NEAR(static_cast<double>(outside) / 3000, 0.125, 0.03);
  const std::vector<double> specials = read_all(indices.spec, filled(request, indices, Values::specials, 1));
  EXPECT_EQ(*std::min_element(specials.begin(), specials.end()), -0x1p31);
  EXPECT_EQ(*std::max_element(specials.begin(), specials.end()), 0x1p31 - 1);
}

}  // namespace
}  // namespace kiln::reference::fill_test
