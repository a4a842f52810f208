// Maxima with their indices, their gradient, and unpooling, from an application's point of view.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "device_fixture.h"
#include "kiln/pool.h"

namespace kiln::pool_indices_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class PoolIndices : public DeviceTest {
 protected:
  PoolIndices() : context_(options()) {}

  Context context_;
  const PoolOptions halves_{.window = {2, 2}, .stride = {2, 2}};
};

TEST_F(PoolIndices, NameTheMaximaAndLeadBackToThem) {
  const Tensor x(upload<float>({1, 5, 2, 0, 3, 4, 9, 9}), f32, {1, 1, 2, 4}, nchw);
  const Tensor y(upload<float>({0, 0}), f32, {1, 1, 1, 2}, nchw);
  const Tensor indices(upload<int32_t>({7, 7}), i32, {1, 1, 1, 2}, nchw);
  pool_forward(context_, x, y, indices, halves_);
  EXPECT_THAT(download<float>(y.data(), 2), ElementsAre(5, 9));
  EXPECT_THAT(download<int32_t>(indices.data(), 2), ElementsAre(1, 6));

  const Tensor back(upload(std::vector<float>(8, 100)), f32, {1, 1, 2, 4}, nchw);
  unpool_forward(context_, y, indices, back, halves_);
  EXPECT_THAT(download<float>(back.data(), 8), ElementsAre(0, 5, 0, 0, 0, 0, 9, 0));
  const Tensor dy(upload<float>({10, 20}), f32, {1, 1, 1, 2}, nchw);
  pool_backward_from_indices(context_, dy, indices, back, {.window = {2, 2}, .stride = {2, 2}, .beta = 1});
  EXPECT_THAT(download<float>(back.data(), 8), ElementsAre(0, 15, 0, 0, 0, 0, 29, 0));
}

// Overlapping windows, channels last, several kernels: the gradient from indices is that from x, bit by bit.
TEST_F(PoolIndices, GiveTheGradientThatXGives) {
  std::vector<float> x_values(2 * 8 * 9 * 7), dy_values(2 * 8 * 5 * 4);
  for (size_t i = 0; i < x_values.size(); ++i) x_values[i] = static_cast<float>(i * 37 % 11);
  for (size_t i = 0; i < dy_values.size(); ++i) dy_values[i] = static_cast<float>(i % 13) - 6;
  const PoolOptions options{.window = {3, 3}, .pad = {1, 1, 1, 1}, .stride = {2, 2}};
  const Tensor x(upload(x_values), f32, {2, 8, 9, 7}, nhwc), dy(upload(dy_values), f32, {2, 8, 5, 4}, nhwc);
  const Tensor y(upload(dy_values), f32, {2, 8, 5, 4}, nhwc), plain(upload(dy_values), f32, {2, 8, 5, 4}, nhwc);
  const Tensor indices(upload(std::vector<int32_t>(dy_values.size())), i32, {2, 8, 5, 4}, nhwc);
  const Tensor from_x(upload(x_values), f32, {2, 8, 9, 7}, nhwc),
      from_indices(upload(x_values), f32, {2, 8, 9, 7}, nhwc);
  pool_forward(context_, x, y, indices, options);
  pool_forward(context_, x, plain, options);
  EXPECT_EQ(download<float>(y.data(), dy_values.size()), download<float>(plain.data(), dy_values.size()));
  pool_backward(context_, dy, x, from_x, options);
  pool_backward_from_indices(context_, dy, indices, from_indices, options);
  EXPECT_EQ(download<float>(from_indices.data(), x_values.size()), download<float>(from_x.data(), x_values.size()));
}

// Overlapping windows name positions several times, and some indices are none of theirs. Unpooling and its gradient are
// transposed: the sums of unpool(x) * dy and of x * gradient(dy) are one number.
TEST_F(PoolIndices, GradientOfUnpoolingIsItsTranspose) {
  constexpr size_t wide = 2 * 3 * 6 * 7, narrow = 2 * 3 * 3 * 4;
  std::vector<float> x_values(narrow), dy_values(wide);
  std::vector<int32_t> named(narrow);
  for (size_t i = 0; i < wide; ++i) dy_values[i] = static_cast<float>(i * 29 % 17) - 8;
  for (size_t i = 0; i < narrow; ++i) x_values[i] = static_cast<float>(i * 5 % 7) - 3;
  for (size_t i = 0; i < narrow; ++i) named[i] = i % 11 == 0 ? -1 : static_cast<int32_t>(i % 4 * 2 + i % 12 / 4 * 14);
  named[5] = 42;  // behind the channel
  named[6] = std::numeric_limits<int32_t>::min();
  const PoolOptions options{.window = {3, 3}, .pad = {1, 1, 1, 1}, .stride = {2, 2}};
  const Tensor x(upload(x_values), f32, {2, 3, 3, 4}, nchw), dy(upload(dy_values), f32, {2, 3, 6, 7}, nchw);
  const Tensor indices(upload(named), i32, {2, 3, 3, 4}, nchw);
  const Tensor y(upload(dy_values), f32, {2, 3, 6, 7}, nchw), dx(upload(x_values), f32, {2, 3, 3, 4}, nchw);
  unpool_forward(context_, x, indices, y, options);
  unpool_backward(context_, dy, indices, dx, options);
  const std::vector<float> forward = download<float>(y.data(), wide), backward = download<float>(dx.data(), narrow);
  EXPECT_EQ(std::inner_product(forward.begin(), forward.end(), dy_values.begin(), 0.0F),
            std::inner_product(backward.begin(), backward.end(), x_values.begin(), 0.0F));
  EXPECT_GT(std::count_if(backward.begin(), backward.end(), [](float value) { return value != 0; }), 20);
  EXPECT_EQ(backward[5], 0);
  EXPECT_EQ(backward[6], 0);
}

TEST_F(PoolIndices, GradientOfUnpoolingGoesByTheBatchOfTheCall) {
  const Tensor dy(upload<float>({1, 5, 2, 0, 3, 4, 9, 8}), f32, {2, 1, 2, 2}, nchw);
  const Tensor indices(upload<int32_t>({1, 2}), i32, {2, 1, 1, 1}, nchw);
  const Tensor dx(upload<float>({10, 20}), f32, {2, 1, 1, 1}, nchw);
  unpool_backward(context_, dy, indices, dx, {.alpha = 2, .beta = 1, .dynamic_batch = true});
  EXPECT_THAT(download<float>(dx.data(), 2), ElementsAre(20, 38));
}

TEST_F(PoolIndices, BadArgumentsAreRefusedBeforeAnyLaunch) {
  auto* const base = static_cast<std::byte*>(upload(std::vector<std::byte>(16384)));
  const auto at = [&](size_t offset, std::initializer_list<int64_t> extents, DType dtype = f32) {
    return Tensor(base + offset, dtype, extents, contiguous);
  };
  const Tensor x = at(0, {1, 3, 8, 8}), y = at(4096, {1, 3, 4, 4}), indices = at(8192, {1, 3, 4, 4}, i32);
  const auto forward = [&](const Tensor& a, const Tensor& b, const Tensor& c, const PoolOptions& options) {
    return refusal_of([&] { pool_forward(context_, a, b, c, options); });
  };
  EXPECT_THAT(forward(Tensor(nullptr, f32, {1, 3, 8, 8}, nchw), y, indices, halves_), HasSubstr("x is a null pointer"));
  EXPECT_THAT(forward(x, y, Tensor(nullptr, i32, {1, 3, 4, 4}, nchw), halves_), HasSubstr("indices is a null pointer"));
  EXPECT_THAT(forward(x, y, at(8192, {1, 3, 4, 4}), halves_), HasSubstr("indices is f32 (it may be i32)"));
  EXPECT_THAT(forward(x, y, at(8192, {1, 3, 4, 5}, i32), halves_), HasSubstr("indices has extents 1x3x4x5"));
  EXPECT_THAT(forward(x, y, at(64, {1, 3, 4, 4}, i32), halves_), HasSubstr("the memory of indices and x overlaps"));
  EXPECT_THAT(forward(x, y, at(4096, {1, 3, 4, 4}, i32), halves_), HasSubstr("the memory of indices and y overlaps"));
  EXPECT_THAT(forward(x, at(64, {1, 3, 4, 4}), indices, halves_), HasSubstr("the memory of y and x overlaps"));
  EXPECT_THAT(forward(x, y, indices, {.mode = PoolMode::avg, .window = {2, 2}, .stride = {2, 2}}),
              HasSubstr("only maxima have indices"));

  const auto backward = [&](const Tensor& a, const Tensor& b, const Tensor& c, const PoolOptions& options) {
    return refusal_of([&] { pool_backward_from_indices(context_, a, b, c, options); });
  };
  EXPECT_THAT(backward(y, indices, Tensor(nullptr, f32, {1, 3, 8, 8}, nchw), halves_),
              HasSubstr("dx is a null pointer"));
  EXPECT_THAT(backward(y, at(8192, {1, 3, 4, 4}), x, halves_), HasSubstr("indices is f32 (it may be i32)"));
  EXPECT_THAT(backward(at(64, {1, 3, 4, 4}), indices, x, halves_), HasSubstr("the memory of dx and dy overlaps"));
  EXPECT_THAT(backward(y, at(64, {1, 3, 4, 4}, i32), x, halves_), HasSubstr("the memory of dx and indices overlaps"));
  EXPECT_THAT(backward(y, indices, at(0, {1, 3, 8, 11}), halves_), HasSubstr("extent 4 along w"));
  EXPECT_THAT(refusal_of([&] {
                unpool_forward(context_, y, at(8192, {1, 3, 4, 5}, i32), x, halves_);
              }),
              AllOf(HasSubstr("unpool_forward, whose x is called dy"), HasSubstr("indices has extents 1x3x4x5")));
  const auto of_unpooling = [&](const Tensor& a, const Tensor& b, const Tensor& c, const PoolOptions& options) {
    return refusal_of([&] { unpool_backward(context_, a, b, c, options); });
  };
  EXPECT_THAT(of_unpooling(x, indices, at(64, {1, 3, 4, 4}), halves_), HasSubstr("the memory of dx and dy overlaps"));
  EXPECT_THAT(of_unpooling(x, indices, at(8256, {1, 3, 4, 4}), halves_), HasSubstr("dx and indices overlaps"));
  EXPECT_THAT(of_unpooling(x, at(8192, {1, 3, 4, 4}), y, halves_), HasSubstr("indices is f32 (it may be i32)"));
  EXPECT_THAT(of_unpooling(x, indices, y, {.mode = PoolMode::avg, .window = {2, 2}, .stride = {2, 2}}),
              HasSubstr("the mode is not max"));
  EXPECT_EQ(download(base, 16384), std::vector<std::byte>(16384)) << "something ran";
}

}  // namespace
}  // namespace kiln::pool_indices_test
