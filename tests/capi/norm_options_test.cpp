// Normalisations by the C API: what the C++ API gives, for options that all differ from one another.
#include <gmock/gmock.h>

#include <cmath>
#include <deque>

#include "fixture.h"
#include "kiln/norm.h"

namespace kiln::capi::norm_options_test {
namespace {

// A tensor of both languages, each with memory of its own that starts with the same values.
struct Both {
  kiln_tensor c;
  Tensor cpp;
  std::vector<float> start;
};

class CApiNormOptions : public CApiBesideCpp {
 protected:
  // With numbers like those of no other operand; `positive` ones, if asked for.
  const Both& of(std::initializer_list<int64_t> extents, bool positive = false) {
    size_t count = 1;
    for (const int64_t extent : extents) count *= static_cast<size_t>(extent);
    std::vector<float> values = wave(count, 0.17f + 0.11f * static_cast<float>(operands_.size()));
    if (positive) {
      for (float& value : values) value = std::fabs(value) + 0.5f;
    }
    operands_.push_back({tensor(upload(values), extents), Tensor(upload(values), f32, extents, contiguous), values});
    return operands_.back();
  }

  // Expects what a call wrote to be the same in both languages, and different from before.
  void expect_written(const Both& output) const {
    EXPECT_EQ(download(output.c.data), download(output.cpp.data()));
    EXPECT_NE(download(output.c.data), output.start);
  }

 private:
  std::deque<Both> operands_;
};

TEST_F(CApiNormOptions, ForwardWithEveryOption) {
  const Both &x = of({3, 4, 5}), &y = of({3, 4, 5}), &w = of({1, 4, 5}), &b = of({3, 4, 1}), &residual = of({3, 4, 5}),
             &mean = of({1, 4, 1}), &inverse = of({1, 4, 1}), &running_mean = of({1, 4, 1}),
             &running_variance = of({1, 4, 1}, true);
  kiln_epilogue* epilogue = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  ASSERT_EQ(kiln_epilogue_add(epilogue, &residual.c), KILN_OK);
  ASSERT_EQ(kiln_epilogue_relu(epilogue), KILN_OK);
  kiln_norm_options c = kiln_norm_options_default();
  c.axes[0] = 0, c.axes[1] = -1, c.axis_count = 2;
  c.w = &w.c, c.b = &b.c, c.mean = &mean.c, c.inv_deviation = &inverse.c;
  c.running_mean = &running_mean.c, c.running_variance = &running_variance.c;
  c.epilogue = epilogue, c.epsilon = 0.25f, c.momentum = 0.375f, c.alpha = 0.5f, c.beta = -2;
  EXPECT_EQ(kiln_norm_forward(context_, &x.c, &y.c, &c, nullptr), KILN_OK) << kiln_last_error();
  NormOptions options{.w = w.cpp,
                      .b = b.cpp,
                      .mean = mean.cpp,
                      .inv_deviation = inverse.cpp,
                      .running_mean = running_mean.cpp,
                      .running_variance = running_variance.cpp,
                      .epsilon = 0.25f,
                      .momentum = 0.375f,
                      .epilogue = add(residual.cpp) + relu,
                      .alpha = 0.5f,
                      .beta = -2};
  norm_forward(cpp_, {0, -1}, x.cpp, y.cpp, options);
  for (const Both* output : {&y, &mean, &inverse, &running_mean, &running_variance}) expect_written(*output);

  const Both &inferred = of({3, 4, 5}), &given_mean = of({1, 4, 1}), &given_variance = of({1, 4, 1}, true);
  EXPECT_EQ(kiln_norm_inference(context_, &x.c, &given_mean.c, &given_variance.c, &inferred.c, &c, nullptr), KILN_OK)
      << kiln_last_error();
  norm_inference(cpp_, {0, -1}, x.cpp, given_mean.cpp, given_variance.cpp, inferred.cpp, options);
  expect_written(inferred);
  kiln_epilogue_destroy(epilogue);
}

TEST_F(CApiNormOptions, BackwardWithEveryOption) {
  const Both &dy = of({3, 4, 5}), &x = of({3, 4, 5}), &mean = of({1, 4, 1}), &inverse = of({1, 4, 1}, true),
             &dx = of({3, 4, 5}), &w = of({1, 4, 5}), &y = of({3, 4, 5}), &dw = of({1, 4, 5}), &db = of({1, 4, 5}),
             &dresidual = of({3, 4, 5});
  kiln_norm_gradient_options c = kiln_norm_gradient_options_default();
  c.axes[0] = 0, c.axes[1] = -1, c.axis_count = 2;
  c.w = &w.c, c.y = &y.c, c.dw = &dw.c, c.db = &db.c, c.dresidual = &dresidual.c, c.alpha = 0.5f, c.beta = -2;
  c.parameter_alpha = -1.5f, c.parameter_beta = 1, c.dresidual_alpha = 0.25f, c.dresidual_beta = 3;
  kiln_epilogue* epilogue = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  ASSERT_EQ(kiln_epilogue_expression(epilogue, "acc + 0.5f", nullptr, 0, nullptr, 0), KILN_OK);
  c.epilogue = epilogue;
  EXPECT_EQ(kiln_norm_backward(context_, &dy.c, &x.c, &mean.c, &inverse.c, &dx.c, &c, nullptr), KILN_OK)
      << kiln_last_error();
  norm_backward(cpp_, {0, -1}, dy.cpp, x.cpp, inverse.cpp, dx.cpp,
                {.w = w.cpp,
                 .mean = mean.cpp,
                 .y = y.cpp,
                 .dw = dw.cpp,
                 .db = db.cpp,
                 .dresidual = dresidual.cpp,
                 .alpha = 0.5f,
                 .beta = -2,
                 .parameter_alpha = -1.5f,
                 .parameter_beta = 1,
                 .dresidual_alpha = 0.25f,
                 .dresidual_beta = 3,
                 .epilogue = expression("acc + 0.5f")});
  for (const Both* output : {&dx, &dw, &db, &dresidual}) expect_written(*output);
  kiln_epilogue_destroy(epilogue);
}

TEST_F(CApiNormOptions, OfActivations) {
  const Both &x = of({3, 4, 5}), &y = of({3, 4, 5}), &w = of({1, 4, 5}), &b = of({3, 4, 1}), &residual = of({3, 4, 5}),
             &mean = of({1, 4, 1}), &variance = of({1, 4, 1}, true), &inferred = of({3, 4, 5});
  kiln_activation_options swish = kiln_activation_options_default(KILN_ACTIVATION_SWISH);
  swish.slope = 1.5f;
  kiln_epilogue* epilogue = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  ASSERT_EQ(kiln_epilogue_add(epilogue, &residual.c), KILN_OK);
  kiln_norm_options c = kiln_norm_options_default();
  c.axes[0] = 0, c.axes[1] = -1, c.axis_count = 2;
  c.w = &w.c, c.b = &b.c, c.epilogue = epilogue, c.activation = &swish;
  const NormOptions options{.w = w.cpp,
                            .b = b.cpp,
                            .epilogue = add(residual.cpp),
                            .activation = {.mode = ActivationMode::swish, .slope = 1.5f}};
  EXPECT_EQ(kiln_norm_forward(context_, &x.c, &y.c, &c, nullptr), KILN_OK) << kiln_last_error();
  norm_forward(cpp_, {0, -1}, x.cpp, y.cpp, options);
  expect_written(y);
  EXPECT_EQ(kiln_norm_inference(context_, &x.c, &mean.c, &variance.c, &inferred.c, &c, nullptr), KILN_OK);
  norm_inference(cpp_, {0, -1}, x.cpp, mean.cpp, variance.cpp, inferred.cpp, options);
  expect_written(inferred);
  kiln_epilogue_destroy(epilogue);

  const Both &dy = of({3, 4, 5}), &inverse = of({1, 4, 1}, true), &dx = of({3, 4, 5}), &dw = of({1, 4, 5}),
             &db = of({1, 4, 5}), &shift = of({1, 4, 5}), &dresidual = of({3, 4, 5});
  kiln_activation_options clip = kiln_activation_options_default(KILN_ACTIVATION_CLIP);
  clip.low = -0.25f, clip.high = 1.75f;
  kiln_norm_gradient_options gradient = kiln_norm_gradient_options_default();
  gradient.axes[0] = 0, gradient.axes[1] = -1, gradient.axis_count = 2;
  gradient.w = &w.c, gradient.b = &shift.c, gradient.residual = &residual.c, gradient.activation = &clip;
  gradient.dw = &dw.c, gradient.db = &db.c, gradient.dresidual = &dresidual.c;
  EXPECT_EQ(kiln_norm_backward(context_, &dy.c, &x.c, &mean.c, &inverse.c, &dx.c, &gradient, nullptr), KILN_OK)
      << kiln_last_error();
  norm_backward(cpp_, {0, -1}, dy.cpp, x.cpp, inverse.cpp, dx.cpp,
                {.w = w.cpp,
                 .mean = mean.cpp,
                 .activation = {.mode = ActivationMode::clip, .low = -0.25f, .high = 1.75f},
                 .b = shift.cpp,
                 .residual = residual.cpp,
                 .dw = dw.cpp,
                 .db = db.cpp,
                 .dresidual = dresidual.cpp});
  for (const Both* output : {&dx, &dw, &db, &dresidual}) expect_written(*output);

  clip.mode = 16;
  EXPECT_EQ(kiln_norm_backward(context_, &dy.c, &x.c, &mean.c, &inverse.c, &dx.c, &gradient, nullptr),
            KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), testing::HasSubstr("the mode is 16"));
}

TEST_F(CApiNormOptions, OfMeanSquares) {
  const Both &x = of({3, 4}), &y = of({3, 4}), &inverse = of({3, 1}), &dy = of({3, 4}), &dx = of({3, 4});
  kiln_norm_options c = kiln_norm_options_default();
  c.mode = KILN_NORM_RMS, c.inv_deviation = &inverse.c;
  EXPECT_EQ(kiln_norm_forward(context_, &x.c, &y.c, &c, nullptr), KILN_OK) << kiln_last_error();
  norm_forward(cpp_, {-1}, x.cpp, y.cpp, {.mode = NormMode::rms, .inv_deviation = inverse.cpp});
  for (const Both* output : {&y, &inverse}) expect_written(*output);
  kiln_norm_gradient_options gradient = kiln_norm_gradient_options_default();
  gradient.mode = KILN_NORM_RMS;
  EXPECT_EQ(kiln_norm_backward(context_, &dy.c, &x.c, nullptr, &inverse.c, &dx.c, &gradient, nullptr), KILN_OK)
      << kiln_last_error();
  norm_backward(cpp_, {-1}, dy.cpp, x.cpp, inverse.cpp, dx.cpp, {.mode = NormMode::rms});
  expect_written(dx);
}

}  // namespace
}  // namespace kiln::capi::norm_options_test
