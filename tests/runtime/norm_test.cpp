// Normalisations from an application's point of view.
#include "kiln/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "device_fixture.h"
#include "kiln/tensor_ops.h"

namespace kiln::norm_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

using Values = std::vector<float>;

Values wave(size_t count, float step, float mean = 0, float deviation = 1) {
  Values values;
  for (size_t i = 0; i < count; ++i) values.push_back(mean + deviation * std::sin(step * static_cast<float>(i + 1)));
  return values;
}

// (v - mean) / sqrt(variance + epsilon) of values[first + i * step], in double; mean and inverse deviation as well.
struct Plain {
  double mean = 0, inverse = 0, unbiased = 0;

  Plain(const Values& values, const std::function<bool(size_t)>& is_of_row, double epsilon = 1e-5) {
    double count = 0, squares = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!is_of_row(i)) continue;
      mean += values[i];
      ++count;
    }
    mean /= count;
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_of_row(i)) squares += (values[i] - mean) * (values[i] - mean);
    }
    inverse = 1 / std::sqrt(squares / count + epsilon);
    unbiased = squares / (count - 1);
  }
};

class NormCalls : public DeviceTest {
 protected:
  NormCalls() : context_(options()) {}

  Tensor tensor(const Values& values, std::initializer_list<int64_t> extents) {
    return {upload(values), f32, extents, contiguous};
  }
  Values values_of(const Tensor& tensor) {
    return download<float>(tensor.data(), static_cast<size_t>(elements(tensor)));
  }

  static int64_t elements(const Tensor& tensor) {
    int64_t count = 1;
    for (int i = 0; i < tensor.rank(); ++i) count *= tensor.extent(i);
    return count;
  }

  Context context_;
};

TEST_F(NormCalls, LayersAreNormalisedScaledAndShifted) {
  const Values values = wave(3 * 40, 0.7f);
  const Tensor x = tensor(values, {3, 40}), y = tensor(Values(120), {3, 40});
  const Tensor w = tensor(wave(40, 0.3f), {40}), b = tensor(wave(40, 0.2f), {40});
  const Tensor mean = tensor(Values(3), {3}), inverse = tensor(Values(3), {3});
  layer_norm_forward(context_, -1, x, y, {.w = w, .b = b, .mean = mean, .inv_deviation = inverse});
  const Values got = values_of(y), by = values_of(w), shift = values_of(b);
  for (size_t row = 0; row < 3; ++row) {
    const Plain plain(values, [&](size_t i) { return i / 40 == row; });
    EXPECT_NEAR(values_of(mean)[row], plain.mean, 1e-6);
    EXPECT_NEAR(values_of(inverse)[row], plain.inverse, 1e-5);
    for (size_t i = 0; i < 40; ++i) {
      const double xhat = (values[row * 40 + i] - plain.mean) * plain.inverse;
      EXPECT_NEAR(got[row * 40 + i], by[i] * xhat + shift[i], 1e-5);
    }
  }
}

// A mean of 10,000 and a deviation of 1: f32 holds such x in steps of 0.001, and sums of squares would hold nothing.
TEST_F(NormCalls, AreSoundWhereTheMeanIsFarLargerThanTheDeviation) {
  const Values values = wave(4 * 3 * 50, 1.3f, 1e4f, 1.4f);
  const auto compare = [&](const Values& got, const std::function<bool(size_t)>& is_of_row) {
    const Plain plain(values, is_of_row);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!is_of_row(i)) continue;
      ASSERT_NEAR(got[i], (values[i] - plain.mean) * plain.inverse, 2e-3) << i;
    }
  };
  const Tensor x = tensor(values, {4, 3, 50}), y = tensor(Values(600), {4, 3, 50});
  layer_norm_forward(context_, 1, x, y);
  const Values layers = values_of(y);
  for (size_t n = 0; n < 4; ++n) compare(layers, [&](size_t i) { return i / 150 == n; });
  batch_norm_forward(context_, x, y);
  const Values channels = values_of(y);
  for (size_t c = 0; c < 3; ++c) compare(channels, [&](size_t i) { return i / 50 % 3 == c; });
  const Tensor last = tensor(values, {4, 50, 3}), z = tensor(Values(600), {4, 50, 3});
  norm_forward(context_, {0, 1}, last, z);
  const Values across = values_of(z);
  for (size_t c = 0; c < 3; ++c) compare(across, [&](size_t i) { return i % 3 == c; });
}

TEST_F(NormCalls, BatchNormalisationTrainsAndInfers) {
  const Values values = wave(2 * 3 * 20, 0.9f, 2, 3);
  const Tensor x = tensor(values, {2, 3, 4, 5}), y = tensor(Values(120), {2, 3, 4, 5});
  const Tensor mean = tensor({1, 2, 3}, {3}), variance = tensor({4, 5, 6}, {3}), w = tensor({2, 1, -1}, {3});
  const Tensor residual = tensor(wave(120, 0.4f), {2, 3, 4, 5});
  batch_norm_forward(context_, x, y,
                     {.w = w,
                      .running_mean = mean,
                      .running_variance = variance,
                      .momentum = 0.25f,
                      .epilogue = add(residual) + relu});
  const Values trained = values_of(y), other = values_of(residual), by{2, 1, -1};
  for (size_t c = 0; c < 3; ++c) {
    const Plain plain(values, [&](size_t i) { return i / 20 % 3 == c; });
    EXPECT_NEAR(values_of(mean)[c], 0.75 * static_cast<double>(c + 1) + 0.25 * plain.mean, 1e-5);
    EXPECT_NEAR(values_of(variance)[c], 0.75 * static_cast<double>(c + 4) + 0.25 * plain.unbiased, 1e-5);
    for (size_t i = 0; i < 120; ++i) {
      if (i / 20 % 3 != c) continue;
      const double value = by[c] * (values[i] - plain.mean) * plain.inverse + other[i];
      EXPECT_NEAR(trained[i], std::max(value, 0.0), 1e-5);
    }
  }
  const Values now = values_of(mean), spread = values_of(variance);
  batch_norm_inference(context_, x, mean, variance, y, {.w = w, .epilogue = relu});
  const Values inferred = values_of(y);
  for (size_t i = 0; i < 120; ++i) {
    const size_t c = i / 20 % 3;
    EXPECT_NEAR(inferred[i], std::max(0.0, by[c] * (values[i] - now[c]) / std::sqrt(spread[c] + 1e-5)), 1e-5);
  }
}

TEST_F(NormCalls, GroupsAndInstancesAndMeanSquares) {
  const Values values = wave(2 * 6 * 2 * 2 * 2, 0.9f);
  const Tensor x = tensor(values, {2, 6, 2, 2, 2}), y = tensor(Values(96), {2, 6, 2, 2, 2});
  const Tensor w = tensor({1, 2, 3, 4, 5, 6}, {6});
  group_norm_forward(context_, 3, x, y, {.w = w, .epilogue = add(x)});
  const Values grouped = values_of(y);
  group_norm_forward(context_, 3, x, y, {.w = tensor({1, 2, 3}, {3})});
  const Values by_groups = values_of(y);
  instance_norm_forward(context_, x, y, {.w = w});
  const Values instances = values_of(y);
  for (size_t i = 0; i < 96; ++i) {
    const double by = static_cast<double>(i / 8 % 6 + 1);
    const Plain group(values, [&](size_t j) { return i / 16 == j / 16; });
    EXPECT_NEAR(grouped[i], by * (values[i] - group.mean) * group.inverse + values[i], 1e-5);
    EXPECT_NEAR(by_groups[i], static_cast<double>(i / 16 % 3 + 1) * (values[i] - group.mean) * group.inverse, 1e-5);
    const Plain channel(values, [&](size_t j) { return i / 8 == j / 8; });
    EXPECT_NEAR(instances[i], by * (values[i] - channel.mean) * channel.inverse, 2e-5);
  }
  const Tensor rows = tensor({3, 4, 0, 0}, {1, 4}), out = tensor(Values(4), {1, 4});
  rms_norm_forward(context_, 1, rows, out, {.epsilon = 0});
  EXPECT_THAT(values_of(out), ElementsAre(FloatNear(1.2f, 1e-6f), FloatNear(1.6f, 1e-6f), 0, 0));
}

// As another kernel applies them: x scale + shift.
TEST_F(NormCalls, ScaleAndShiftOfGroupsAndOfAnyAxes) {
  const Values values = wave(2 * 6 * 2 * 3, 0.9f, 2), by = wave(6, 0.4f), plus = wave(6, 0.7f);
  const Tensor x = tensor(values, {2, 6, 2, 3}), y = tensor(Values(72), {2, 6, 2, 3});
  const Tensor w = tensor(by, {6}), b = tensor(plus, {6});
  const Tensor scale = tensor(Values(12), {2, 6}), shift = tensor(Values(12), {2, 6});
  const auto expect_as = [&](const NormOptions& options, const auto& place) {
    group_norm_forward(context_, 3, x, y, options);
    const Values expected = values_of(y), factors = values_of(scale), summands = values_of(shift);
    for (size_t i = 0; i < 72; ++i) {
      EXPECT_NEAR(values[i] * factors[place(i)] + summands[place(i)], expected[i], 1e-5) << i;
    }
  };
  const auto channel = [](size_t i) { return i / 6; };
  group_norm_affine(context_, 3, x, scale, shift, {.w = w, .b = b});
  expect_as({.w = w, .b = b}, channel);
  group_norm_affine(context_, 3, x, scale, shift, {.mode = NormMode::rms, .b = b, .epsilon = 0.5f});
  expect_as({.mode = NormMode::rms, .b = b, .epsilon = 0.5f}, channel);
  group_norm_affine(context_, 3, x, scale, shift);  // equal for all channels of a group
  expect_as({}, channel);
  norm_affine(context_, {1, 2, 3}, x, tensor(Values(12), {2, 6, 1, 1}), tensor(Values(12), {2, 6, 1, 1}));

  const Tensor of_groups = tensor(Values(6), {2, 3}), others = tensor(Values(6), {2, 3});
  const Tensor group_w = tensor({1, -2, 3}, {3});
  group_norm_affine(context_, 3, x, of_groups, others, {.w = group_w, .dynamic_batch = true});
  group_norm_forward(context_, 3, x, y, {.w = group_w});
  const Values expected = values_of(y), factors = values_of(of_groups), summands = values_of(others);
  for (size_t i = 0; i < 72; ++i) EXPECT_NEAR(values[i] * factors[i / 12] + summands[i / 12], expected[i], 1e-5) << i;
}

// d(sum of dy y) / d(x or w or b) by moving one element after the other.
TEST_F(NormCalls, GradientsFollowDifferencesOfTheForward) {
  const Values values = wave(2 * 4 * 3, 0.9f), gradient = wave(24, 0.37f), weights{1, -2, 0.5f, 3};
  const Tensor dy = tensor(gradient, {2, 4, 3}), w = tensor(weights, {4});
  const auto loss = [&](const Values& x, const Values& by) {
    const Tensor out = tensor(Values(24), {2, 4, 3});
    group_norm_forward(context_, 2, tensor(x, {2, 4, 3}), out, {.w = tensor(by, {4})});
    double sum = 0;
    const Values y = values_of(out);
    for (size_t i = 0; i < 24; ++i) sum += static_cast<double>(gradient[i]) * static_cast<double>(y[i]);
    return sum;
  };
  const Tensor x = tensor(values, {2, 4, 3}), y = tensor(Values(24), {2, 4, 3}), dx = tensor(Values(24), {2, 4, 3});
  const Tensor mean = tensor(Values(4), {2, 2}), inverse = tensor(Values(4), {2, 2});
  const Tensor dw = tensor(Values(4), {4}), db = tensor(Values(4), {4});
  group_norm_forward(context_, 2, x, y, {.w = w, .mean = mean, .inv_deviation = inverse});
  group_norm_backward(context_, 2, dy, x, inverse, dx, {.w = w, .mean = mean, .dw = dw, .db = db});
  constexpr float step = 0x1p-6f;
  const Values got = values_of(dx), by_w = values_of(dw), by_b = values_of(db);
  for (size_t i = 0; i < 24; ++i) {
    Values up = values, down = values;
    up[i] += step;
    down[i] -= step;
    EXPECT_NEAR(got[i], (loss(up, weights) - loss(down, weights)) / (2 * step), 5e-3) << i;
  }
  for (size_t c = 0; c < 4; ++c) {
    Values up = weights, down = weights;
    up[c] += 0.5f;
    down[c] -= 0.5f;
    EXPECT_NEAR(by_w[c], loss(values, up) - loss(values, down), 1e-4);
    double sum = 0;
    for (size_t i = 0; i < 24; ++i) sum += i / 3 % 4 == c ? gradient[i] : 0;
    EXPECT_NEAR(by_b[c], sum, 1e-5);
  }
}

// The same, and by the residual, through an activation.
TEST_F(NormCalls, GradientsThroughAnActivationFollowDifferencesOfTheForward) {
  const Values gradient = wave(24, 0.37f);
  const std::array<Values, 4> start{wave(24, 0.9f), Values{1, -2, 0.5f, 3}, Values{0.5f, 0, 1, -1}, wave(24, 0.53f)};
  const Activation swish{.mode = ActivationMode::swish, .slope = 1.5f};
  const Tensor dy = tensor(gradient, {2, 4, 3}), mean = tensor(Values(4), {2, 2}), inverse = tensor(Values(4), {2, 2});
  const auto loss = [&](const std::array<Values, 4>& at) {
    const Tensor out = tensor(Values(24), {2, 4, 3});
    group_norm_forward(context_, 2, tensor(at[0], {2, 4, 3}), out,
                       {.w = tensor(at[1], {4}),
                        .b = tensor(at[2], {4}),
                        .mean = mean,
                        .inv_deviation = inverse,
                        .epilogue = add(tensor(at[3], {2, 4, 3})),
                        .activation = swish});
    double sum = 0;
    const Values y = values_of(out);
    for (size_t i = 0; i < 24; ++i) sum += static_cast<double>(gradient[i]) * static_cast<double>(y[i]);
    return sum;
  };
  constexpr float step = 0x1p-6f;
  std::array<Values, 4> expected;
  for (size_t operand = 0; operand < 4; ++operand) {
    for (size_t i = 0; i < start[operand].size(); ++i) {
      std::array<Values, 4> up = start, down = start;
      up[operand][i] += step;
      down[operand][i] -= step;
      expected[operand].push_back(static_cast<float>((loss(up) - loss(down)) / (2 * step)));
    }
  }
  loss(start);  // for its statistics
  const Tensor dx = tensor(Values(24), {2, 4, 3}), dresidual = tensor(Values(24), {2, 4, 3});
  const Tensor dw = tensor(Values(4), {4}), db = tensor(Values(4), {4});
  group_norm_backward(context_, 2, dy, tensor(start[0], {2, 4, 3}), inverse, dx,
                      {.w = tensor(start[1], {4}),
                       .mean = mean,
                       .activation = swish,
                       .b = tensor(start[2], {4}),
                       .residual = tensor(start[3], {2, 4, 3}),
                       .dw = dw,
                       .db = db,
                       .dresidual = dresidual});
  EXPECT_THAT(values_of(dx), Pointwise(FloatNear(5e-3f), expected[0]));
  EXPECT_THAT(values_of(dw), Pointwise(FloatNear(5e-3f), expected[1]));
  EXPECT_THAT(values_of(db), Pointwise(FloatNear(5e-3f), expected[2]));
  EXPECT_THAT(values_of(dresidual), Pointwise(FloatNear(5e-3f), expected[3]));
}

// Three spatial dimensions of any strides: columns 0 to 3 of 8 in rows 0 and 1 of 4, forward and backward.
TEST_F(NormCalls, OfGroupsTakePlanesWithGaps) {
  const std::vector<int64_t> extents{2, 4, 3, 2, 4}, strides{400, 96, 32, 8, 1};
  const Values values = wave(800, 0.7f), by{1, -2, 0.5f, 3};
  const Tensor x = tensor(values, {800}), y = tensor(Values(800, -7), {800}), w = tensor(by, {4});
  const auto crop = [&](const Tensor& of) { return Tensor(of.data(), f32, extents, strides); };
  const auto is_inside = [&](size_t i) { return i % 400 < 4 * 96 && i % 400 % 96 % 32 < 16 && i % 8 < 4; };
  const Tensor mean = tensor(Values(4), {2, 2}), inverse = tensor(Values(4), {2, 2});
  group_norm_forward(context_, 2, crop(x), crop(y), {.w = w, .mean = mean, .inv_deviation = inverse});
  const Values got = values_of(y), inverses = values_of(inverse);
  for (size_t i = 0; i < 800; ++i) {
    if (!is_inside(i)) {
      EXPECT_EQ(got[i], -7) << i;
      continue;
    }
    const size_t image = i / 400, channel = i % 400 / 96;
    const Plain group(values,
                      [&](size_t j) { return is_inside(j) && j / 400 == image && j % 400 / 96 / 2 == channel / 2; });
    EXPECT_NEAR(got[i], by[channel] * (values[i] - group.mean) * group.inverse, 1e-5) << i;
    EXPECT_NEAR(inverses[image * 2 + channel / 2], group.inverse, 1e-5);
  }
  // The same gradients as of tensors without gaps.
  const Tensor dy = tensor(wave(800, 0.3f), {800}), dx = tensor(Values(800), {800}), dw = tensor(Values(4), {4});
  group_norm_backward(context_, 2, crop(dy), crop(x), inverse, crop(dx), {.w = w, .mean = mean, .dw = dw});
  const auto packed = [&](const Tensor& of) {
    const Tensor copy(upload(Values(192)), f32, {2, 4, 3, 2, 4}, contiguous);
    tensor_transform(context_, crop(of), copy);
    return copy;
  };
  const Tensor expected = tensor(Values(192), {2, 4, 3, 2, 4}), expected_dw = tensor(Values(4), {4});
  group_norm_backward(context_, 2, packed(dy), packed(x), inverse, expected, {.w = w, .mean = mean, .dw = expected_dw});
  EXPECT_THAT(values_of(packed(dx)), Pointwise(FloatNear(1e-5f), values_of(expected)));
  EXPECT_THAT(values_of(dw), Pointwise(FloatNear(1e-4f), values_of(expected_dw)));
}

TEST_F(NormCalls, WorkInPlaceForwardAndBackward) {
  const Values values = wave(6 * 8, 0.9f);
  const Tensor x = tensor(values, {6, 8}), y = tensor(Values(48), {6, 8});
  const Tensor mean = tensor(Values(8), {1, 8}), inverse = tensor(Values(8), {1, 8});
  norm_forward(context_, {0}, x, y, {.mean = mean, .inv_deviation = inverse, .epilogue = relu});
  const Tensor dy = tensor(wave(48, 0.2f), {6, 8}), dx = tensor(Values(48), {6, 8}), db = tensor(Values(8), {1, 8});
  norm_backward(context_, {0}, dy, x, inverse, dx, {.mean = mean, .y = y, .db = db});
  norm_backward(context_, {0}, dy, x, inverse, dy, {.mean = mean, .y = y, .db = db});
  EXPECT_EQ(values_of(dy), values_of(dx));
  norm_forward(context_, {0}, x, x, {.epilogue = relu});
  EXPECT_EQ(values_of(x), values_of(y));
}

TEST_F(NormCalls, BlendEachGradientByItsOwnScales) {
  const Tensor x = tensor(wave(24, 0.9f), {2, 4, 3}), dy = tensor(wave(24, 0.37f), {2, 4, 3});
  const Tensor y = tensor(Values(24), {2, 4, 3}), mean = tensor(Values(4), {4}), inverse = tensor(Values(4), {4});
  batch_norm_forward(context_, x, y, {.mean = mean, .inv_deviation = inverse});
  const Tensor dw = tensor(Values(4, 7), {4}), sums = tensor({1, 2, 3, 4}, {4}), scaled = tensor({1, 2, 3, 4}, {4});
  batch_norm_backward(context_, dy, x, inverse, y, {.mean = mean, .dw = dw});
  batch_norm_backward(context_, dy, x, inverse, y, {.mean = mean, .dw = sums, .parameter_beta = 1});
  const Values dx = values_of(y), once = values_of(dw), added = values_of(sums);
  for (size_t c = 0; c < 4; ++c) EXPECT_FLOAT_EQ(added[c], static_cast<float>(c + 1) + once[c]);

  const Tensor dresidual = tensor(Values(24, 2), {2, 4, 3});
  NormGradientOptions options{.mean = mean, .dw = scaled, .dresidual = dresidual};
  options.parameter_alpha = -0.5f, options.parameter_beta = 3, options.dresidual_alpha = 4,
  options.dresidual_beta = 0.25f;
  batch_norm_backward(context_, dy, x, inverse, y, options);
  EXPECT_EQ(values_of(y), dx) << "its own are 1 and 0";
  const Values by_scale = values_of(scaled), passed = values_of(dresidual), given = values_of(dy);
  for (size_t c = 0; c < 4; ++c) EXPECT_FLOAT_EQ(by_scale[c], -0.5f * once[c] + 3 * static_cast<float>(c + 1));
  for (size_t i = 0; i < 24; ++i) EXPECT_FLOAT_EQ(passed[i], 4 * given[i] + 0.5f);
}

TEST_F(NormCalls, GradientsOfParametersAreZeroOfAnEmptyBatch) {
  const Tensor images(nullptr, f32, {0, 4, 3}, contiguous), mean = tensor(Values(4), {4});
  const Tensor dw = tensor(Values(4, 7), {4}), db = tensor(Values(4, 7), {4});
  batch_norm_backward(context_, images, images, mean, images, {.mean = mean, .dw = dw, .db = db});
  EXPECT_THAT(values_of(dw), Each(0));
  EXPECT_THAT(values_of(db), Each(0));

  const Tensor rows(nullptr, f32, {0, 4}, contiguous), none(nullptr, f32, {0}, contiguous);
  const Tensor of_rows = tensor(Values(4, 7), {4});
  layer_norm_backward(context_, 1, rows, rows, none, rows, {.mean = none, .dw = of_rows});
  EXPECT_THAT(values_of(of_rows), Each(0));
}

TEST_F(NormCalls, RefuseWhatMakesNoSense) {
  const Tensor x = tensor(Values(24), {2, 3, 4}), y = tensor(Values(24), {2, 3, 4}), c = tensor(Values(3), {3});
  const Tensor rows = tensor(Values(2), {2, 1, 1}), more = tensor(Values(2), {2, 1, 1});
  const auto forward = [&](const Axes& axes, const NormOptions& options) {
    return refusal_of([&] { norm_forward(context_, axes, x, y, options); });
  };
  EXPECT_THAT(forward({}, {}), HasSubstr("norm_forward: no axes are given"));
  for (const int count : {-1, Tensor::max_rank + 1, 99999999}) {
    Axes by_hand;
    by_hand.count = count;
    EXPECT_THAT(forward(by_hand, {}), HasSubstr("norm_forward: " + std::to_string(count) + " axes are given"));
  }
  EXPECT_THAT(refusal_of([&] { norm_inference(context_, {}, x, x, x, y); }), HasSubstr("no axes are given"));
  EXPECT_THAT(refusal_of([&] { norm_backward(context_, {}, x, x, x, y, {.mean = x}); }),
              HasSubstr("no axes are given"));
  EXPECT_THAT(forward({3}, {}), HasSubstr("axis 3 is outside the 3 dimensions of x"));
  EXPECT_THAT(forward({0, 1, 2, 3, 4, 5}, {}), HasSubstr("axis 3 is outside the 3 dimensions of x"))
      << "six are allowed";
  EXPECT_THAT(forward({1, -2}, {}), HasSubstr("an axis stands twice"));
  EXPECT_THAT(forward({0}, {.dynamic_batch = true}), HasSubstr("the batch cannot be dynamic"));
  EXPECT_THAT(forward({1, 2}, {.w = c}), HasSubstr("w has extents 3"));
  EXPECT_THAT(forward({1}, {.mean = rows}), HasSubstr("mean has extents 2x1x1, expected 2x1x4"));
  EXPECT_THAT(forward({1, 2}, {.mode = NormMode::rms, .mean = rows}), HasSubstr("mode=rms has no mean"));
  EXPECT_THAT(forward({1, 2}, {.running_mean = rows}),
              HasSubstr("one of running_mean and running_variance is missing"));
  EXPECT_THAT(forward({1, 2}, {.mean = rows, .inv_deviation = rows}),
              HasSubstr("memory of inv_deviation and mean overlaps"));
  EXPECT_THAT(forward({1, 2}, {.epilogue = bias(c)}), HasSubstr("its epilogue is add, relu or add+relu"));
  EXPECT_THAT(forward({1, 2}, {.epilogue = expression("acc"), .activation = {.mode = ActivationMode::swish}}),
              HasSubstr("it has user code and an activation besides"));
  EXPECT_THAT(refusal_of([] { const Axes axes{0, 1, 2, 3, 4, 5, 6}; }), HasSubstr("7 axes are given"));
  const auto backward = [&](const NormGradientOptions& options) {
    return refusal_of([&] { norm_backward(context_, {1, 2}, x, x, rows, y, options); });
  };
  EXPECT_THAT(backward({}), HasSubstr("mean is missing"));
  EXPECT_THAT(backward({.mean = more, .epilogue = relu}), HasSubstr("norm_backward takes no epilogue of stages"));
  EXPECT_THAT(backward({.mean = more, .dw = tensor(Values(4), {1, 1, 4}), .db = tensor(Values(3), {1, 3, 1})}),
              HasSubstr("the same of w, dw and db"));
  EXPECT_THAT(backward({.mean = more, .dw = tensor(Values(4), {1, 1, 4}), .dynamic_batch = true}),
              HasSubstr("dynamic where dw and db are sums over it"));
  EXPECT_THAT(refusal_of([&] { group_norm_forward(context_, 2, x, y); }), HasSubstr("3 channels in 2 groups"));
  EXPECT_THAT(refusal_of([&] { layer_norm_forward(context_, 3, x, y); }), HasSubstr("axis 3 is outside"));
}

// In the words of the call, not of the general one that it makes.
TEST_F(NormCalls, RefusalsNameTheCallAndTheExtentsThatItTakes) {
  const Tensor x = tensor(Values(48), {2, 4, 6}), y = tensor(Values(48), {2, 4, 6});
  const Tensor five = tensor(Values(5), {5}), four = tensor(Values(4), {4}), rows = tensor(Values(2), {2});
  EXPECT_THAT(refusal_of([&] { batch_norm_forward(context_, x, y, {.w = five}); }),
              HasSubstr("batch_norm_forward: w has extents 5, expected 4"));
  EXPECT_THAT(refusal_of([&] { batch_norm_forward(context_, x, y, {.running_mean = five, .running_variance = five}); }),
              HasSubstr("batch_norm_forward: running_mean has extents 5, expected 4"));
  EXPECT_THAT(refusal_of([&] { batch_norm_inference(context_, x, five, four, y); }),
              HasSubstr("batch_norm_inference: running_mean has extents 5, expected 4"));
  EXPECT_THAT(refusal_of([&] { batch_norm_backward(context_, x, x, five, y, {.mean = four}); }),
              HasSubstr("batch_norm_backward: inv_deviation has extents 5, expected 4"));
  EXPECT_THAT(refusal_of([&] { batch_norm_forward(context_, five, five); }),
              HasSubstr("batch_norm_forward: x has 1 dimensions"));
  EXPECT_THAT(refusal_of([&] { batch_norm_inference(context_, five, four, four, five); }),
              HasSubstr("batch_norm_inference: x has 1 dimensions"));
  EXPECT_THAT(refusal_of([&] { batch_norm_backward(context_, five, five, four, five, {.mean = four}); }),
              HasSubstr("batch_norm_backward: dy has 1 dimensions"));
  const Tensor six = tensor(Values(4), {1, 4, 1, 1, 1, 1});
  EXPECT_THAT(refusal_of([&] { batch_norm_forward(context_, six, six); }),
              HasSubstr("batch_norm_forward: x has 6 dimensions"));
  EXPECT_THAT(refusal_of([&] { layer_norm_forward(context_, -1, x, y, {.b = five}); }),
              HasSubstr("layer_norm_forward: b has extents 5, expected 6"));
  EXPECT_THAT(refusal_of([&] { rms_norm_forward(context_, -1, x, y, {.w = five}); }),
              HasSubstr("rms_norm_forward: w has extents 5, expected 6"));
  EXPECT_THAT(refusal_of([&] { layer_norm_backward(context_, 1, x, x, five, y, {.mean = rows}); }),
              HasSubstr("layer_norm_backward: inv_deviation has extents 5, expected 2"));
  EXPECT_THAT(refusal_of([&] { instance_norm_forward(context_, x, y, {.w = five}); }),
              HasSubstr("instance_norm_forward: w has extents 5, expected 4"));
  EXPECT_THAT(refusal_of([&] { instance_norm_forward(context_, five, five); }),
              HasSubstr("instance_norm_forward: x has 1 dimensions"));
  EXPECT_THAT(refusal_of([&] { group_norm_forward(context_, 2, x, y, {.w = five}); }),
              HasSubstr("group_norm_forward: w has extents 5, expected 4"));
  EXPECT_THAT(refusal_of([&] { group_norm_forward(context_, 3, x, y); }),
              HasSubstr("group_norm_forward: 4 channels in 3 groups"));
  const Tensor pairs = tensor(Values(8), {2, 4}), more = tensor(Values(8), {2, 4}), other = tensor(Values(10), {2, 5});
  EXPECT_THAT(refusal_of([&] { group_norm_affine(context_, 2, x, other, pairs); }),
              HasSubstr("group_norm_affine: scale has extents 2x5, expected 2x4"));
  EXPECT_THAT(refusal_of([&] {
                group_norm_affine(context_, 2, x, pairs, tensor(Values(4), {2, 2}));
              }),
              HasSubstr("group_norm_affine: shift has extents 2x2x1x1, expected 2x2x2x1"));
  EXPECT_THAT(refusal_of([&] { group_norm_affine(context_, 3, x, pairs, more); }),
              HasSubstr("group_norm_affine: 4 channels in 3 groups"));
  EXPECT_THAT(refusal_of([&] { group_norm_affine(context_, 2, x, pairs, more, {.epsilon = -1}); }),
              HasSubstr("group_norm_affine: epsilon is -1"));
  EXPECT_THAT(refusal_of([&] { norm_affine(context_, {}, x, pairs, more); }),
              HasSubstr("norm_affine: no axes are given"));
  EXPECT_THAT(refusal_of([&] { batch_norm_forward(context_, x, y, {.epsilon = -1}); }),
              HasSubstr("batch_norm_forward: epsilon is -1"))
      << "what the general call refuses";
  const Tensor one = tensor(Values{2}, {1});
  batch_norm_forward(context_, x, y, {.w = one});  // repeats
}

// Tensors whose groups, or whose spatial dimensions as one, have the extents that x's have.
TEST_F(NormCalls, OfGroupsRefuseTensorsOfOtherExtents) {
  const auto memory = [&](std::initializer_list<int64_t> extents) { return tensor(Values(200), extents); };
  const auto forward = [&](const Tensor& x, const Tensor& y, const NormOptions& options = {}) {
    return refusal_of([&] { group_norm_forward(context_, 2, x, y, options); });
  };
  const Tensor x = memory({2, 4, 3}), y = memory({2, 4, 3}), more = memory({2, 5, 3});
  EXPECT_THAT(forward(x, more), HasSubstr("norm_forward: y has extents 2x5x3, expected 2x4x3"));
  EXPECT_THAT(forward(x, y, {.epilogue = add(more)}), HasSubstr("residual has extents 2x5x3, expected 2x4x3"));
  const Tensor volume = memory({2, 4, 2, 3, 4});
  EXPECT_THAT(forward(volume, memory({2, 4, 4, 3, 2})), HasSubstr("y has extents 2x4x4x3x2, expected 2x4x2x3x4"));
  EXPECT_THAT(forward(volume, memory({2, 4, 24})), HasSubstr("y has extents 2x4x24, expected 2x4x2x3x4"));
  const Tensor saved = memory({2, 2}), dx = memory({2, 4, 3});
  const auto backward = [&](const NormGradientOptions& options) {
    return refusal_of([&] { group_norm_backward(context_, 2, x, y, saved, dx, options); });
  };
  EXPECT_THAT(backward({.mean = saved, .y = more}), HasSubstr("norm_backward: y has extents 2x5x3, expected 2x4x3"));
  EXPECT_THAT(backward({.mean = saved, .dresidual = more}), HasSubstr("dresidual has extents 2x5x3"));
}

}  // namespace
}  // namespace kiln::norm_test
