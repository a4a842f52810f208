#include "kiln/graph/strides.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <span>

namespace kiln::graph::strides_test {
namespace {

/// The offsets of all elements, in logical order.
std::vector<int64_t> offsets_of(const Region& region) {
  std::vector<int64_t> offsets{region.offset};
  for (size_t d = 0; d < region.extents.size(); ++d) {
    std::vector<int64_t> longer;
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < region.extents[d]; ++i) longer.push_back(offset + i * region.strides[d]);
    }
    offsets = std::move(longer);
  }
  return offsets;
}

TEST(Strides, PackedTensorTakesAnyReshape) {
  const Region from = packed({2, 3, 4});
  for (const Extents& to : {Extents{24}, Extents{6, 4}, Extents{2, 12}, Extents{2, 1, 3, 2, 2}, Extents{1, 24, 1}}) {
    const auto seen = seen_through(Reshape{}, from, to);
    ASSERT_TRUE(seen);
    EXPECT_EQ(offsets_of(*seen), offsets_of(from));
  }
}

TEST(Strides, ReshapeOfATransposedMatrixNeedsACopy) {
  const auto transposed = seen_through(Permute{{1, 0}}, packed({3, 4}), {4, 3});
  ASSERT_TRUE(transposed);
  EXPECT_EQ(transposed->strides, (Extents{1, 4}));
  EXPECT_FALSE(seen_through(Reshape{}, *transposed, {12}));
  EXPECT_TRUE(seen_through(Reshape{}, *transposed, {2, 2, 3}));  // splits only
}

TEST(Strides, SplitAndMergedDimensionsKeepTheirElements) {
  std::mt19937 random(3);
  const std::vector<Extents> shapes = {{2, 3, 4, 5}, {6, 20}, {2, 3, 20},           {6, 4, 5},
                                       {120},        {2, 60}, {1, 2, 3, 1, 4, 5, 1}};
  for (int round = 0; round < 200; ++round) {
    Region from = packed(shapes[random() % shapes.size()]);
    // A part of something larger, at random: the strides outside of some dimension grow.
    const size_t gap = random() % from.extents.size();
    for (size_t d = 0; d < gap; ++d) from.strides[d] *= 2;
    const Extents& to = shapes[random() % shapes.size()];
    const auto seen = seen_through(Reshape{}, from, to);
    EXPECT_TRUE(seen || gap > 0);
    if (seen) {
      EXPECT_EQ(offsets_of(*seen), offsets_of(from));
    }
  }
}

TEST(Strides, ViewsWithoutElementsHaveNoReach) {
  EXPECT_TRUE(seen_through(Reshape{}, packed({0, 3}), {3, 0, 7}));
  const auto part = seen_through(Slice{{2, 3}, {1, 1}}, packed({2, 3}), {0, 0});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->offset, 0);
}

TEST(Strides, SliceStartsAndSteps) {
  const auto part = seen_through(Slice{{1, 2}, {1, 3}}, packed({4, 10}), {2, 3});
  ASSERT_TRUE(part);
  EXPECT_EQ(offsets_of(*part), (std::vector<int64_t>{12, 15, 18, 22, 25, 28}));
}

TEST(Strides, SeenBackIsTheInverse) {
  const Region packed_result = packed({5, 2, 3});
  const auto source = seen_back(Permute{{2, 0, 1}}, packed_result, {2, 3, 5});
  ASSERT_TRUE(source);
  const auto result = seen_through(Permute{{2, 0, 1}}, *source, {5, 2, 3});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->strides, packed_result.strides);
  EXPECT_FALSE(seen_back(Slice{{0}, {1}}, packed({2}), {3}));
  EXPECT_FALSE(seen_back(Repeat{}, packed({2}), {1}));
}

TEST(Strides, MergesWhatIsTogetherInAll) {
  Region x = packed({2, 3, 4, 5}), y = packed({2, 3, 4, 5});
  merge_dimensions({&x, &y});
  EXPECT_EQ(x.extents, Extents{120});
  Region transposed{0, {2, 3, 4}, {12, 1, 3}}, plain = packed({2, 3, 4});
  merge_dimensions({&transposed, &plain});
  EXPECT_EQ(plain.extents, (Extents{2, 3, 4}));
  Region one = packed({1, 1}), other = packed({1, 1});
  merge_dimensions({&one, &other});
  EXPECT_EQ(one.extents, Extents{1});
}

TEST(Strides, ElementsAreWrittenInTheOrderAskedFor) {
  for (const Extents& extents : {Extents{2, 3, 4, 5}, Extents{3, 1, 2}, Extents{1, 7, 1, 1}, Extents{4}, Extents{},
                                 Extents{2, 3, 1, 4, 2}, Extents{2, 0, 3}}) {
    for (const bool last : {false, true}) {
      const std::vector<size_t> order = last ? channels_last_order(extents.size()) : std::vector<size_t>{};
      std::vector<uint16_t> elements(static_cast<size_t>(count_elements(extents))), written(elements.size(), 0xFFFF);
      for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<uint16_t>(i);
      write_packed(std::as_bytes(std::span(elements)), sizeof(uint16_t), extents, order,
                   std::as_writable_bytes(std::span(written)).data());
      const std::vector<int64_t> offsets = offsets_of(packed(extents, order));
      for (size_t i = 0; i < elements.size(); ++i) EXPECT_EQ(written[static_cast<size_t>(offsets[i])], elements[i]);
    }
  }
}

}  // namespace
}  // namespace kiln::graph::strides_test
