// Dropout by the C API: what the C++ API gives.
#include "kiln/dropout.h"

#include <gmock/gmock.h>

#include "fixture.h"

namespace kiln::capi::dropout_test {
namespace {

class CApiDropout : public CApiBesideCpp {};

TEST_F(CApiDropout, ForwardBackwardAndByAPlan) {
  const std::vector<float> start = wave(60, 0.53f);
  const void *x = upload(wave(60)), *y = upload(start), *expected = upload(start), *by_plan = upload(start);
  const kiln_tensor cx = tensor(x, {5, 12}), cy = tensor(y, {5, 12});
  kiln_dropout_options c = kiln_dropout_options_default();
  c.p = 0.25f, c.seed = 0x123456789abcdef0, c.offset = 0xfedcba987, c.alpha = 2, c.beta = 0.5f, c.dynamic_batch = 1;
  EXPECT_EQ(kiln_dropout_forward(context_, &cx, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(kiln_dropout_backward(context_, &cx, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
  const DropoutOptions options{
      .p = 0.25f, .seed = c.seed, .offset = c.offset, .alpha = 2, .beta = 0.5f, .dynamic_batch = true};
  const Tensor tx(x, f32, {5, 12}, nc), ty(expected, f32, {5, 12}, nc);
  dropout_forward(cpp_, tx, ty, options);
  dropout_backward(cpp_, tx, ty, options);
  EXPECT_EQ(download(y), download(expected));
  EXPECT_NE(download(y), start);

  kiln_plan* plan = nullptr;
  ASSERT_EQ(kiln_plan_create(context_, "dropout x=f32:5x12", &plan), KILN_OK) << kiln_last_error();
  kiln_run_values values = kiln_run_values_default();
  const uint64_t integers[] = {c.seed, c.offset};
  values.operation_scalars = &c.p, values.operation_scalar_count = 1;
  values.operation_integers = integers, values.operation_integer_count = 2;
  const void* const operands[] = {x, by_plan};
  EXPECT_EQ(kiln_plan_run(plan, nullptr, operands, 2, nullptr, &values), KILN_OK) << kiln_last_error();
  dropout_forward(cpp_, tx, ty, {.p = 0.25f, .seed = c.seed, .offset = c.offset});
  EXPECT_EQ(download(by_plan), download(expected));
  values.operation_integer_count = 3;
  EXPECT_EQ(kiln_plan_run(plan, nullptr, operands, 2, nullptr, &values), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), testing::HasSubstr("3 operation_integers were given, dropout takes 2: seed, offset"));
  kiln_plan_destroy(plan);
}

}  // namespace
}  // namespace kiln::capi::dropout_test
