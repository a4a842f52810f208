// The numbers that views take from shapes, and the work that operations say they are.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/conv_backward_bias.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/cross_entropy.h"
#include "kiln/generator/operations/gemm.h"
#include "kiln/generator/operations/pool_backward.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/reduce.h"
#include "kiln/generator/operations/resize.h"
#include "kiln/generator/operations/softmax_backward.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/generator/operations/unpool_backward.h"
#include "request_suites.h"

namespace kiln::shapes_test {
namespace {

using testing::ElementsAre;

// Batch, channels, filters, both of a group, spatial axes, and the windows of the first axis.
template <class View>
std::vector<int64_t> numbers_of(const std::string& line) {
  const View view = View::of(Request::parse(line));
  const WindowAxis axis = view.axis(0);
  return {view.n(),    view.c(),    view.k(),    view.c_per_group(), view.k_per_group(),
          view.axes(), axis.extent, axis.window, axis.outputs};
}

TEST(Convolutions, HaveChannelsAndFiltersOfGroups) {
  const auto are_right = ElementsAre(2, 12, 20, 3, 5, 2, 9, 3, 7);
  EXPECT_THAT(numbers_of<ConvForward>("conv_forward x=f32:2x12x9x8 w=f32:20x3x3x2 groups=4"), are_right);
  EXPECT_THAT(numbers_of<ConvBackwardData>("conv_backward_data dy=f32:2x20x7x7 w=f32:20x3x3x2 groups=4"), are_right);
  EXPECT_THAT(
      numbers_of<ConvBackwardFilter>("conv_backward_filter x=f32:2x12x9x8 dy=f32:2x20x7x7 dw=f32:20x3x3x2 groups=4"),
      are_right);
  const ConvBackwardBias bias = ConvBackwardBias::of(Request::parse("conv_backward_bias dy=f32:2x20x7x5"));
  EXPECT_THAT((std::array{bias.n(), bias.k(), bias.pixels()}), ElementsAre(2, 20, 35));
}

TEST(Convolutions, HaveRegions) {
  const ConvForward local = ConvForward::of(Request::parse("local_conv_forward x=f32:1x3x9x7 w=f32:24x3x3x3 grid=3,2"));
  const RegionGrid regions = local.regions();
  EXPECT_EQ(regions.count(), 6);
  for (int64_t i = 0; i < 7; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      // Seven rows in three regions, five columns in two: the first ones begin at 0, 3 and 5, and at 0 and 3.
      const int64_t expected = 2 * (i < 3 ? 0 : i < 5 ? 1 : 2) + (j < 3 ? 0 : 1);
      EXPECT_EQ(regions.region_of(std::array{i, j}), expected) << i << " " << j;
    }
  }
  for (int64_t outputs = 1; outputs <= 12; ++outputs) {
    for (int64_t count = 1; count <= outputs; ++count) {
      const RegionAxis axis{outputs, count};
      std::vector<int64_t> lengths(static_cast<size_t>(count));
      for (int64_t i = outputs; i-- > 0;) {
        ++lengths.at(static_cast<size_t>(axis.region_of(i)));
        const bool is_first = i == 0 || axis.region_of(i - 1) != axis.region_of(i);
        EXPECT_EQ(axis.first(axis.region_of(i)) == i, is_first) << outputs << " " << count;
      }
      EXPECT_EQ(axis.first(count), outputs);
      EXPECT_EQ(axis.longest(), *std::max_element(lengths.begin(), lengths.end())) << outputs << " " << count;
      EXPECT_EQ(axis.even(), axis.longest() == *std::min_element(lengths.begin(), lengths.end()));
    }
  }
}

template <class View>
std::vector<int64_t> pooling_of(const std::string& line) {
  const View view = View::of(Request::parse(line));
  const WindowAxis axis = view.axis(1);
  return {view.n(), view.c(), view.axes(), axis.extent, axis.window, axis.outputs};
}

TEST(Poolings, HaveImagesAndWindows) {
  const auto are_right = ElementsAre(2, 3, 2, 8, 2, 4);
  EXPECT_THAT(pooling_of<PoolForward>("pool_forward x=f32:2x3x9x8 mode=max window=3,2 stride=3,2"), are_right);
  EXPECT_THAT(pooling_of<PoolBackward>("pool_backward dy=f32:2x3x3x4 x=f32:2x3x9x8 mode=max window=3,2 stride=3,2"),
              are_right);
  EXPECT_THAT(pooling_of<UnpoolBackward>("unpool_backward dy=f32:2x3x9x8 indices=i32:2x3x3x4 window=3,2 stride=3,2"),
              are_right);
}

TEST(Products, HaveRowsColumnsAndBatches) {
  const auto numbers = [](const std::string& line) {
    const Gemm gemm = Gemm::of(Request::parse(line));
    return std::array<int64_t, 5>{gemm.m(), gemm.n(), gemm.k(), gemm.batch_dimensions(), gemm.products()};
  };
  EXPECT_THAT(numbers("gemm a=f32:5x7 b=f32:7x11"), ElementsAre(5, 11, 7, 0, 1));
  EXPECT_THAT(numbers("gemm a=f32:2x1x5x7 b=f32:2x3x7x11"), ElementsAre(5, 11, 7, 2, 6));
}

TEST(Rows, AreAsLongAsTheAxesSay) {
  EXPECT_EQ(SoftmaxForward::of(Request::parse("softmax_forward x=f32:3x4x5 axis=1")).row_length(), 4);
  EXPECT_EQ(SoftmaxBackward::of(Request::parse("softmax_backward y=f32:3x4x5 axis=-1")).row_length(), 5);
  EXPECT_EQ(Reduce::of(Request::parse("reduce x=f32:3x4x5 axes=0,2 mode=add")).row_length(), 15);
  const CrossEntropyForward loss =
      CrossEntropyForward::of(Request::parse("cross_entropy_forward x=f32:3x4x5 targets=i32:3x5"));
  EXPECT_EQ(loss.classes(), 4);
  EXPECT_EQ(loss.rows(), 15);
}

// Positions are fractions of elements; the element before one is rounded down, also in front of the first.
TEST(AxesOfResize, TellTheElementBeforeAPosition) {
  for (int64_t step = 1; step <= 7; ++step) {
    for (int64_t start = -9; start <= 9; ++start) {
      for (int64_t denominator = 1; denominator <= 5; ++denominator) {
        const ResizeAxis axis{4, 6, step, start, denominator};
        for (int64_t output = 0; output < 6; ++output) {
          const int64_t before = axis.element_before(output), beyond = axis.beyond(output);
          EXPECT_EQ(before * denominator + beyond, output * step + start);
          EXPECT_TRUE(beyond >= 0 && beyond < denominator) << step << " " << start << " " << denominator;
        }
        EXPECT_EQ(axis.is_whole(), step % denominator == 0 && start % denominator == 0);
        EXPECT_TRUE((ResizeAxis{1, 6, step, start, denominator}.is_whole())) << "one element stands for all";
      }
    }
  }
}

double bytes_in(const TensorSpec& spec) {
  return static_cast<double>(spec.elements() * size_of(spec.dtype));
}

// An estimate starts from the least traffic there can be. What user code reads besides does not count.
TEST(Work, ReadsAndWritesEachElementOnce) {
  const std::set<std::string> read_parts = {"gather", "im2col", "resize", "unpool_backward"};
  for (const Request& request : testing_support::all_requests()) {
    if (request.user_code) continue;
    double read = 0, written = 0;
    for (const Operand& operand : request.operands) {
      if (is_read(request, operand.name)) read += bytes_in(operand.spec);
      if (is_written(request, operand.name)) written += bytes_in(operand.spec);
    }
    const Work work = operation(request.operation).work(request);
    EXPECT_EQ(work.write_bytes, written) << request.key();
    if (read_parts.contains(request.operation)) {
      EXPECT_LE(work.read_bytes, read) << request.key();
    } else {
      EXPECT_EQ(work.read_bytes, read) << request.key();
    }
  }
}

}  // namespace
}  // namespace kiln::shapes_test
