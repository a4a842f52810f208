// Matrix products and fully connected layers by the C API: what the C++ API gives.
#include "kiln/gemm.h"

#include <gmock/gmock.h>

#include "fixture.h"

namespace kiln::capi::gemm_test {
namespace {

class CApiGemm : public CApiBesideCpp {};

TEST_F(CApiGemm, ProductsWithEveryOption) {
  const void *a = upload(wave(30)), *b = upload(wave(42, 0.71f)), *values = upload(wave(7, 0.3f));
  const std::vector<float> start = wave(35, 0.53f);
  const void *c = upload(start), *expected = upload(start);
  const kiln_tensor ca = tensor(a, {5, 6}), cc = tensor(c, {5, 7}), bias_values = tensor(values, {7});
  kiln_tensor cb = tensor(b, {7, 6});
  ASSERT_EQ(kiln_tensor_transposed(&cb, &cb), KILN_OK) << kiln_last_error();
  EXPECT_EQ(cb.extents[0], 6);
  EXPECT_EQ(cb.strides[0], 1);
  kiln_gemm_options options = kiln_gemm_options_default();
  options.alpha = 0.5f, options.beta = -2.0f, options.deterministic = 1, options.dynamic_batch = 1;
  kiln_epilogue* epilogue = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  ASSERT_EQ(kiln_epilogue_bias(epilogue, &bias_values), KILN_OK);
  ASSERT_EQ(kiln_epilogue_clip(epilogue, -0.5f, 2), KILN_OK);
  options.epilogue = epilogue;
  EXPECT_EQ(kiln_gemm(context_, &ca, &cb, &cc, &options, nullptr), KILN_OK) << kiln_last_error();
  kiln_epilogue_destroy(epilogue);

  GemmOptions cpp{.alpha = 0.5f, .beta = -2.0f, .dynamic_batch = true};
  cpp.epilogue = bias(Tensor(values, f32, {7}, contiguous)) + clip(-0.5f, 2);
  cpp.arithmetic.deterministic = true;
  gemm(cpp_, Tensor(a, f32, {5, 6}, nc), transposed(Tensor(b, f32, {7, 6}, nc)), Tensor(expected, f32, {5, 7}, nc),
       cpp);
  EXPECT_EQ(download(c), download(expected));
  EXPECT_NE(download(c), start);
}

TEST_F(CApiGemm, FullyConnectedLayersForwardAndBackward) {
  const void *x = upload(wave(24)), *w = upload(wave(30, 0.71f)), *dy = upload(wave(20, 0.9f));
  const kiln_tensor cx = tensor(x, {4, 6}), cw = tensor(w, {5, 6}), cdy = tensor(dy, {4, 5});
  const Tensor tx(x, f32, {4, 6}, nc), tw(w, f32, {5, 6}, nc), tdy(dy, f32, {4, 5}, nc);
  kiln_gemm_options given = kiln_gemm_options_default();
  given.alpha = 0.5f, given.beta = -2;
  const GemmOptions options{.alpha = 0.5f, .beta = -2};
  const auto expect_equal = [&](std::initializer_list<int64_t> extents, const auto& in_c, const auto& in_cpp) {
    const std::vector<float> start = wave(64, 0.53f);
    const void *result = upload(start), *expected = upload(start);
    const kiln_tensor c = tensor(result, extents);
    EXPECT_EQ(in_c(&c), KILN_OK) << kiln_last_error();
    in_cpp(Tensor(expected, f32, extents, contiguous));
    EXPECT_EQ(download(result), download(expected));
    EXPECT_NE(download(result), start);
  };
  expect_equal(
      {4, 5}, [&](auto* y) { return kiln_fully_connected_forward(context_, &cx, &cw, y, &given, nullptr); },
      [&](const Tensor& y) { fully_connected_forward(cpp_, tx, tw, y, options); });
  expect_equal(
      {4, 6}, [&](auto* dx) { return kiln_fully_connected_backward_data(context_, &cdy, &cw, dx, &given, nullptr); },
      [&](const Tensor& dx) { fully_connected_backward_data(cpp_, tdy, tw, dx, options); });
  expect_equal(
      {5, 6}, [&](auto* dw) { return kiln_fully_connected_backward_weights(context_, &cx, &cdy, dw, &given, nullptr); },
      [&](const Tensor& dw) { fully_connected_backward_weights(cpp_, tx, tdy, dw, options); });
  expect_equal(
      {5}, [&](auto* db) { return kiln_fully_connected_backward_bias(context_, &cdy, db, 2, 0.25f, nullptr); },
      [&](const Tensor& db) { fully_connected_backward_bias(cpp_, tdy, db, 2, 0.25f); });
}

}  // namespace
}  // namespace kiln::capi::gemm_test
