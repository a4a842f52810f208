// Cross entropy by the C API: what the C++ API gives.
#include "kiln/loss.h"

#include <gmock/gmock.h>

#include <bit>

#include "fixture.h"

namespace kiln::capi::loss_test {
namespace {

using testing::HasSubstr;

class CApiCrossEntropy : public CApiBesideCpp {
 protected:
  // Classes, and one that is ignored.
  static float bits_of(int32_t target) { return std::bit_cast<float>(target); }
  const void* targets_ = upload({bits_of(0), bits_of(2), bits_of(1), bits_of(5)});
};

TEST_F(CApiCrossEntropy, LossesAndGradientsWithEveryOption) {
  const void *x = upload(wave(12)), *dloss = upload({0.5f, 2, 3, 4});
  const std::vector<float> start = wave(12, 0.53f);
  const void *result = upload(start), *expected = upload(start);
  const kiln_tensor cx = tensor(x, {4, 3}), cdloss = tensor(dloss, {4}), cdx = tensor(result, {4, 3});
  kiln_tensor ctargets = tensor(targets_, {4});
  ctargets.dtype = KILN_I32;
  const Tensor tx(x, f32, {4, 3}, nc), targets(targets_, i32, {4}, contiguous), tdx(expected, f32, {4, 3}, nc);
  kiln_cross_entropy_options c = kiln_cross_entropy_options_default();
  c.reduction = KILN_LOSS_NONE, c.ignore = 5, c.alpha = 0.5f, c.beta = -2, c.dynamic_batch = 1;
  const CrossEntropyOptions options{
      .reduction = LossReduction::none, .ignore = 5, .alpha = 0.5f, .beta = -2, .dynamic_batch = true};
  const auto expect_equal = [&] {
    EXPECT_EQ(download(result), download(expected));
    EXPECT_NE(download(result), start);
  };
  EXPECT_EQ(kiln_cross_entropy_backward(context_, &cx, &ctargets, &cdloss, &cdx, &c, nullptr), KILN_OK)
      << kiln_last_error();
  cross_entropy_backward(cpp_, tx, targets, Tensor(dloss, f32, {4}, contiguous), tdx, options);
  expect_equal();
  const kiln_tensor losses = tensor(result, {4});
  EXPECT_EQ(kiln_cross_entropy_forward(context_, &cx, &ctargets, &losses, &c, nullptr), KILN_OK) << kiln_last_error();
  cross_entropy_forward(cpp_, tx, targets, Tensor(expected, f32, {4}, contiguous), options);
  expect_equal();
  c = kiln_cross_entropy_options_default();
  const void* weights = upload({0.5f, 2, 3});
  const kiln_tensor cweights = tensor(weights, {3});
  c.ignore = 5, c.smoothing = 0.25f, c.weights = &cweights;
  EXPECT_EQ(kiln_cross_entropy_backward(context_, &cx, &ctargets, nullptr, &cdx, &c, nullptr), KILN_OK)
      << kiln_last_error();
  cross_entropy_backward(cpp_, tx, targets, tdx,
                         {.ignore = 5, .weights = Tensor(weights, f32, {3}, contiguous), .smoothing = 0.25f});
  expect_equal();
  c.reduction = 3;
  EXPECT_EQ(kiln_cross_entropy_forward(context_, &cx, &ctargets, &losses, &c, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("the reduction is 3"));
}

}  // namespace
}  // namespace kiln::capi::loss_test
