// Whether two views of memory share elements: held against a list of all their addresses.
#include "overlap.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

namespace kiln::overlap_test {
namespace {

constexpr uintptr_t base = 4096;

Tensor view(int64_t offset, DType dtype, const std::vector<int64_t>& extents, const std::vector<int64_t>& strides) {
  return {reinterpret_cast<const void*>(base + static_cast<uintptr_t>(offset)), dtype, extents, strides};
}

/// The numbers of all elements, counted from `base`.
std::set<int64_t> elements_of(const Tensor& tensor) {
  std::set<int64_t> elements{static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor.data()) - base) /
                             size_of(tensor.dtype())};
  for (int d = 0; d < tensor.rank(); ++d) {
    std::set<int64_t> more;
    for (const int64_t element : elements) {
      for (int64_t i = 0; i < tensor.extent(d); ++i) more.insert(element + i * tensor.stride(d));
    }
    elements = std::move(more);
  }
  return elements;
}

TEST(Overlap, IsThatOfTheElementsAndNotOfTheSpans) {
  std::mt19937 random(5);
  const auto below = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  int shared = 0, apart_within_spans = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Tensor> tensors;
    for (int each = 0; each < 2; ++each) {
      const auto rank = static_cast<size_t>(1 + below(3));
      std::vector<int64_t> extents(rank), strides(rank);
      for (size_t d = 0; d < rank; ++d) {
        extents[d] = 1 + below(4);
        strides[d] = below(5) == 0 ? 0 : std::vector<int64_t>{1, 2, 3, 4, 6, 12}[static_cast<size_t>(below(6))];
      }
      tensors.push_back(view(4 * below(40), f32, extents, strides));
    }
    const std::set<int64_t> a = elements_of(tensors[0]), b = elements_of(tensors[1]);
    bool expected = false;
    for (const int64_t element : a) expected = expected || b.contains(element);
    ASSERT_EQ(share_elements(tensors[0], tensors[1]), expected) << round;
    ASSERT_EQ(share_elements(tensors[1], tensors[0]), expected) << round;
    shared += expected ? 1 : 0;
    apart_within_spans += !expected && *a.begin() <= *b.rbegin() && *b.begin() <= *a.rbegin() ? 1 : 0;
  }
  EXPECT_GT(shared, 300);
  EXPECT_GT(apart_within_spans, 100);
}

TEST(Overlap, IsAssumedWhereElementsDoNotMatch) {
  const Tensor a = view(0, f32, {4}, {1});
  EXPECT_TRUE(share_elements(a, view(1000, f16, {4}, {1}))) << "of another size";
  EXPECT_TRUE(share_elements(a, view(1002, f32, {4}, {1}))) << "between two elements";
  EXPECT_TRUE(share_elements(a, view(0, i32, {4}, {1})));
  EXPECT_FALSE(share_elements(a, view(16, i32, {4}, {1})));
}

// As the two halves of the channels of a large tensor, channels last.
TEST(Overlap, OfPartsOfLargeTensorsIsFoundInFewSteps) {
  const std::vector<int64_t> extents = {64, 32, 512, 512}, strides = {64 * 512 * 512, 1, 512 * 64, 64};
  const Tensor first = view(0, f32, extents, strides), second = view(4 * 32, f32, extents, strides);
  EXPECT_FALSE(share_elements(first, second));
  EXPECT_FALSE(share_elements(second, first));
  EXPECT_TRUE(share_elements(first, view(4 * 31, f32, extents, strides)));
}

TEST(SameViews, HaveOneAddressTypeAndShape) {
  const std::vector<int64_t> extents = {2, 1, 3}, strides = {3, 7, 1};
  const Tensor a = view(0, f32, extents, strides);
  EXPECT_TRUE(is_same_view(a, a));
  EXPECT_TRUE(is_same_view(a, view(0, f32, extents, {3, 99, 1}))) << "one element may have any stride";
  EXPECT_FALSE(is_same_view(a, view(4, f32, extents, strides)));
  EXPECT_FALSE(is_same_view(a, view(0, i32, extents, strides)));
  EXPECT_FALSE(is_same_view(a, view(0, f32, {2, 1, 2}, strides)));
  EXPECT_FALSE(is_same_view(a, view(0, f32, extents, {4, 7, 1})));
  EXPECT_FALSE(is_same_view(a, view(0, f32, {2, 3}, {3, 1})));
}

}  // namespace
}  // namespace kiln::overlap_test
