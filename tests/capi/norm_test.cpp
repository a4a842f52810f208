// The usual normalisations by the C API: what the C++ API gives, with parameters that are shorter than x.
#include "kiln/norm.h"

#include <gmock/gmock.h>

#include "fixture.h"

namespace kiln::capi::norm_test {
namespace {

using testing::HasSubstr;

class CApiNorm : public CApi {
 protected:
  using Extents = std::initializer_list<int64_t>;

  // A tensor as the two APIs see it.
  struct Both {
    kiln_tensor c;
    Tensor cpp;
  };

  CApiNorm() : cpp_(cpp_options()) {}

  static ContextOptions cpp_options() {
    ContextOptions options;
    options.cache = "off";
    return options;
  }

  Both input(Extents extents, size_t count, float step) {
    const void* const data = upload(wave(count, step));
    return {tensor(data, extents), Tensor(data, f32, extents, contiguous)};
  }

  // Expects the same of one normalisation: `c_call` and `cpp_call` take options and an output, and give the same in all
  // outputs. `w` and `mean`: the extents of parameters and of statistics.
  template <class C, class Cpp>
  void expect_same_forward(Extents w, Extents mean, bool rms, const C& c_call, const Cpp& cpp_call) {
    const Both scale = input(w, 64, 0.4f);
    Outputs ours(*this), theirs(*this);
    const kiln_tensor c_mean = tensor(ours.mean, mean), c_inverse = tensor(ours.inverse, mean),
                      c_y = tensor(ours.y, {1, 2, 8, 8});
    kiln_norm_options c = kiln_norm_options_default();
    c.axis_count = 0;  // not looked at
    c.epsilon = 0.25f, c.alpha = 2, c.beta = 0.5f;
    c.w = &scale.c, c.inv_deviation = &c_inverse;
    NormOptions options;
    options.epsilon = 0.25f, options.alpha = 2, options.beta = 0.5f;
    options.w = scale.cpp, options.inv_deviation = Tensor(theirs.inverse, f32, mean, contiguous);
    if (!rms) {
      c.mean = &c_mean;
      options.mean = Tensor(theirs.mean, f32, mean, contiguous);
    }
    EXPECT_EQ(c_call(c_y, c), KILN_OK) << kiln_last_error();
    cpp_call(Tensor(theirs.y, f32, {1, 2, 8, 8}, nchw), options);
    expect_equal(ours, theirs);
  }

  struct Outputs {
    explicit Outputs(CApiNorm& test)
        : y(test.upload(wave(128, 0.5f))), mean(test.upload(wave(16))), inverse(test.upload(wave(16))) {}
    const void *y, *mean, *inverse;
  };

  void expect_equal(const Outputs& ours, const Outputs& theirs) const {
    EXPECT_EQ(download(ours.y), download(theirs.y));
    EXPECT_NE(download(ours.y), wave(128, 0.5f));
    EXPECT_EQ(download(ours.mean), download(theirs.mean));
    EXPECT_EQ(download(ours.inverse), download(theirs.inverse));
  }

  template <class C, class Cpp>
  void expect_same_backward(Extents mean, bool rms, const C& c_call, const Cpp& cpp_call) {
    const Both saved = input(mean, 16, 0.2f), inverse = input(mean, 16, 0.7f);
    Outputs ours(*this), theirs(*this);
    const kiln_tensor c_dx = tensor(ours.y, {1, 2, 8, 8});
    NormGradientOptions options;
    if (!rms) options.mean = saved.cpp;
    const kiln_norm_gradient_options c = kiln_norm_gradient_options_default();
    EXPECT_EQ(c_call(&saved.c, inverse.c, c_dx, c), KILN_OK) << kiln_last_error();
    cpp_call(inverse.cpp, Tensor(theirs.y, f32, {1, 2, 8, 8}, nchw), options);
    expect_equal(ours, theirs);
  }

  const Both x_ = input({1, 2, 8, 8}, 128, 0.37f), dy_ = input({1, 2, 8, 8}, 128, 0.3f);
  Context cpp_;
};

using C = const kiln_norm_options&;
using Gradient = const kiln_norm_gradient_options&;
using InC = const kiln_tensor&;
using In = const Tensor&;

TEST_F(CApiNorm, ForwardsGiveWhatTheCppApiGives) {
  kiln_context* const k = context_;
  const kiln_tensor* const x = &x_.c;
  expect_same_forward(
      {8, 8}, {1, 2}, false, [&](InC y, C o) { return kiln_layer_norm_forward(k, 2, x, &y, &o, nullptr); },
      [&](In y, const NormOptions& o) { layer_norm_forward(cpp_, 2, x_.cpp, y, o); });
  expect_same_forward(
      {8}, {1, 2, 8}, true, [&](InC y, C o) { return kiln_rms_norm_forward(k, -1, x, &y, &o, nullptr); },
      [&](In y, const NormOptions& o) { rms_norm_forward(cpp_, -1, x_.cpp, y, o); });
  expect_same_forward(
      {2}, {1, 2}, false, [&](InC y, C o) { return kiln_instance_norm_forward(k, x, &y, &o, nullptr); },
      [&](In y, const NormOptions& o) { instance_norm_forward(cpp_, x_.cpp, y, o); });
  expect_same_forward(
      {2}, {1, 1}, false, [&](InC y, C o) { return kiln_group_norm_forward(k, 1, x, &y, &o, nullptr); },
      [&](In y, const NormOptions& o) { group_norm_forward(cpp_, 1, x_.cpp, y, o); });
  expect_same_forward(
      {2}, {2}, false, [&](InC y, C o) { return kiln_batch_norm_forward(k, x, &y, &o, nullptr); },
      [&](In y, const NormOptions& o) { batch_norm_forward(cpp_, x_.cpp, y, o); });
}

TEST_F(CApiNorm, BackwardsGiveWhatTheCppApiGives) {
  kiln_context* const k = context_;
  const kiln_tensor *const x = &x_.c, *const dy = &dy_.c;
  expect_same_backward(
      {1, 2}, false,
      [&](const kiln_tensor* mean, InC inverse, InC dx, Gradient o) {
        return kiln_layer_norm_backward(k, 2, dy, x, mean, &inverse, &dx, &o, nullptr);
      },
      [&](In inverse, In dx, const auto& o) { layer_norm_backward(cpp_, 2, dy_.cpp, x_.cpp, inverse, dx, o); });
  expect_same_backward(
      {1, 2}, true,
      [&](const kiln_tensor*, InC inverse, InC dx, Gradient o) {
        return kiln_rms_norm_backward(k, 2, dy, x, &inverse, &dx, &o, nullptr);
      },
      [&](In inverse, In dx, const auto& o) { rms_norm_backward(cpp_, 2, dy_.cpp, x_.cpp, inverse, dx, o); });
  expect_same_backward(
      {1, 2}, false,
      [&](const kiln_tensor* mean, InC inverse, InC dx, Gradient o) {
        return kiln_instance_norm_backward(k, dy, x, mean, &inverse, &dx, &o, nullptr);
      },
      [&](In inverse, In dx, const auto& o) { instance_norm_backward(cpp_, dy_.cpp, x_.cpp, inverse, dx, o); });
  expect_same_backward(
      {1, 2}, false,
      [&](const kiln_tensor* mean, InC inverse, InC dx, Gradient o) {
        return kiln_group_norm_backward(k, 2, dy, x, mean, &inverse, &dx, &o, nullptr);
      },
      [&](In inverse, In dx, const auto& o) { group_norm_backward(cpp_, 2, dy_.cpp, x_.cpp, inverse, dx, o); });
  expect_same_backward(
      {2}, false,
      [&](const kiln_tensor* mean, InC inverse, InC dx, Gradient o) {
        return kiln_batch_norm_backward(k, dy, x, mean, &inverse, &dx, &o, nullptr);
      },
      [&](In inverse, In dx, const auto& o) { batch_norm_backward(cpp_, dy_.cpp, x_.cpp, inverse, dx, o); });
}

TEST_F(CApiNorm, InferenceGivesWhatTheCppApiGives) {
  const Both mean = input({2}, 2, 0.2f), variance = {tensor(upload({0.5f, 2}), {2}), mean.cpp};
  const Outputs ours(*this), theirs(*this);
  const kiln_tensor y = tensor(ours.y, {1, 2, 8, 8});
  EXPECT_EQ(kiln_batch_norm_inference(context_, &x_.c, &mean.c, &variance.c, &y, nullptr, nullptr), KILN_OK)
      << kiln_last_error();
  batch_norm_inference(cpp_, x_.cpp, mean.cpp, Tensor(variance.c.data, f32, {2}, contiguous),
                       Tensor(theirs.y, f32, {1, 2, 8, 8}, nchw));
  expect_equal(ours, theirs);
}

TEST_F(CApiNorm, RefusesAxesAndGroupsThatDoNotFit) {
  const kiln_tensor y = tensor(upload(wave(128)), {1, 2, 8, 8}), flat = tensor(x_.c.data, {2, 64});
  EXPECT_EQ(kiln_layer_norm_forward(context_, 4, &x_.c, &y, nullptr, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("axis 4 is outside the 4 dimensions of x"));
  EXPECT_EQ(kiln_group_norm_forward(context_, 3, &x_.c, &y, nullptr, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("2 channels in 3 groups"));
  EXPECT_EQ(kiln_instance_norm_forward(context_, &flat, &y, nullptr, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("instance_norm_forward: x has 2 dimensions"));
  EXPECT_EQ(kiln_layer_norm_backward(context_, 1, &dy_.c, &x_.c, nullptr, &y, &y, nullptr, nullptr),
            KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("mean is missing"));
}

}  // namespace
}  // namespace kiln::capi::norm_test
