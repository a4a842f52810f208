#include "kiln/reference/tensor_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::reference::tensor_memory_test {
namespace {

using testing::ElementsAre;

TEST(TensorMemory, AddressesByStridesWhateverTheLayout) {
  const TensorSpec nhwc = TensorSpec::packed(DType::f32, {2, 3, 4, 5}, "nhwc");
  EXPECT_EQ(offset_of(nhwc, std::vector<int64_t>{1, 2, 3, 4}), 1 * 60 + 2 + 3 * 15 + 4 * 3);
  EXPECT_EQ(byte_span(nhwc), 2 * 3 * 4 * 5 * 4);
  const TensorSpec region = TensorSpec::parse("f16:1x2x2x2:100,20,5,2");
  EXPECT_EQ(byte_span(region), (20 + 5 + 2 + 1) * 2);
}

TEST(TensorMemory, VisitsEveryCoordinateOnceLastDimensionFastest) {
  const TensorSpec spec = TensorSpec::packed(DType::f32, {2, 1, 3}, "ncw");
  std::vector<std::vector<int64_t>> visited;
  for_each_coordinate(spec, [&](std::span<const int64_t> at) { visited.emplace_back(at.begin(), at.end()); });
  EXPECT_THAT(visited, ElementsAre(ElementsAre(0, 0, 0), ElementsAre(0, 0, 1), ElementsAre(0, 0, 2),
                                   ElementsAre(1, 0, 0), ElementsAre(1, 0, 1), ElementsAre(1, 0, 2)));
  for (size_t i = 0; i < visited.size(); ++i) {
    EXPECT_EQ(coordinate_of(spec, static_cast<int64_t>(i)), visited[i]);
  }
}

TEST(TensorMemory, VisitsNothingOfAnEmptyTensor) {
  int visits = 0;
  for_each_coordinate(TensorSpec::packed(DType::f32, {0, 3}, "nc"), [&](std::span<const int64_t>) { ++visits; });
  EXPECT_EQ(visits, 0);
}

// Several parts, each of which begins in the middle of a row.
TEST(TensorMemory, NumbersCoordinatesInLogicalOrderWhenVisitingThemAtOnce) {
  const TensorSpec spec = TensorSpec::parse("f16:3x5x1001:1,3,17");
  std::vector<std::vector<int64_t>> visited(static_cast<size_t>(spec.elements()));
  for_each_at_once(spec, [&](size_t number, std::span<const int64_t> at) {
    visited[number].insert(visited[number].end(), at.begin(), at.end());  // a second visit makes it too long
  });
  for (size_t i = 0; i < visited.size(); ++i) {
    ASSERT_EQ(visited[i], coordinate_of(spec, static_cast<int64_t>(i)));
  }
}

TEST(TensorMemory, ReadsBackWhatItWrote) {
  const TensorSpec spec = TensorSpec::parse("bf16:2x3:5,1");
  std::vector<std::byte> memory(static_cast<size_t>(byte_span(spec)));
  double next = 0;
  for_each_coordinate(spec, [&](std::span<const int64_t> at) { write(spec, memory, at, next++); });
  EXPECT_THAT(read_all(spec, memory), ElementsAre(0, 1, 2, 3, 4, 5));
}

// In several parts, which begin in the middle of a run of neighbours.
TEST(TensorMemory, ReadsFloatsThatRepeatInLogicalOrder) {
  const TensorSpec like = TensorSpec::packed(DType::f32, {3, 5, 1001}, "ncw");
  const TensorSpec spec = TensorSpec::parse("f16:1x5x1001:1,1,7");
  std::vector<std::byte> memory(static_cast<size_t>(byte_span(spec)));
  for_each_coordinate(spec, [&](std::span<const int64_t> at) {
    write(spec, memory, at, static_cast<double>(100 * at[1] + at[2] % 50));
  });
  const std::vector<float> floats = read_floats(like, spec, memory);
  ASSERT_EQ(floats.size(), 3U * 5 * 1001);
  size_t number = 0;
  for_each_coordinate(like, [&](std::span<const int64_t> at) {
    EXPECT_EQ(floats[number++], static_cast<float>(100 * at[1] + at[2] % 50));
  });
  EXPECT_TRUE(read_floats(TensorSpec::packed(DType::f32, {0, 3}, "nc"), TensorSpec::parse("f32:1x3"), {}).empty());
}

}  // namespace
}  // namespace kiln::reference::tensor_memory_test
