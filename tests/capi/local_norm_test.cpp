// Local normalisations by the C API: what the C++ API gives.
#include "kiln/local_norm.h"

#include <gmock/gmock.h>

#include "fixture.h"

namespace kiln::capi::local_norm_test {
namespace {

using testing::HasSubstr;

class CApiLocalNorm : public CApiBesideCpp {};

TEST_F(CApiLocalNorm, GivesWhatTheCppApiGives) {
  const std::vector<float> start = wave(60, 0.53f);
  const void *x = upload(wave(60)), *dy = upload(wave(60, 0.3f)), *m = upload(wave(60, 0.9f)), *y = upload(start),
             *dm = upload(start), *expected = upload(start), *expected_dm = upload(start);
  const auto c_tensor = [](const void* data) { return tensor(data, {2, 5, 6}); };
  const auto cpp_tensor = [](const void* data) { return Tensor(data, f32, {2, 5, 6}, contiguous); };
  const kiln_tensor cx = c_tensor(x), cdy = c_tensor(dy), cm = c_tensor(m), cy = c_tensor(y), cdm = c_tensor(dm);
  kiln_local_norm_options c = kiln_local_norm_options_default();
  c.lrn_alpha = 2, c.lrn_beta = 0.5f, c.lrn_k = 1.5f, c.window = 4, c.means = &cm;
  c.alpha = 2, c.beta = 0.5f, c.dynamic_batch = 1;
  const LocalNormOptions options{.size = 4,
                                 .lrn_alpha = 2,
                                 .lrn_beta = 0.5f,
                                 .lrn_k = 1.5f,
                                 .means = cpp_tensor(m),
                                 .alpha = 2,
                                 .beta = 0.5f,
                                 .dmeans_alpha = -3,
                                 .dmeans_beta = 0.25f,
                                 .dynamic_batch = true,
                                 .epilogue = expression("acc + 0.5f")};
  kiln_epilogue* epilogue = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  ASSERT_EQ(kiln_epilogue_expression(epilogue, "acc + 0.5f", nullptr, 0, nullptr, 0), KILN_OK);
  c.epilogue = epilogue;
  EXPECT_EQ(kiln_lrn_forward(context_, &cx, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(kiln_lcn_forward(context_, &cx, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
  lrn_forward(cpp_, cpp_tensor(x), cpp_tensor(expected), options);
  lcn_forward(cpp_, cpp_tensor(x), cpp_tensor(expected), options);
  EXPECT_EQ(download(y), download(expected));
  EXPECT_NE(download(y), start);
  c.dmeans = &cdm, c.dmeans_alpha = -3, c.dmeans_beta = 0.25f;
  EXPECT_EQ(kiln_lrn_backward(context_, &cx, &cdy, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(kiln_lcn_backward(context_, &cx, &cdy, &cy, &c, nullptr), KILN_OK) << kiln_last_error();
  lrn_backward(cpp_, cpp_tensor(x), cpp_tensor(dy), cpp_tensor(expected), options, cpp_tensor(expected_dm));
  lcn_backward(cpp_, cpp_tensor(x), cpp_tensor(dy), cpp_tensor(expected), options, cpp_tensor(expected_dm));
  EXPECT_EQ(download(y), download(expected));
  EXPECT_EQ(download(dm), download(expected_dm));
  EXPECT_NE(download(dm), start);
  EXPECT_EQ(kiln_lrn_forward(context_, &cx, &cy, &c, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("kiln_lrn_forward: dmeans is not NULL"));
  c.dmeans = nullptr, c.window = 0;
  EXPECT_EQ(kiln_lcn_forward(context_, &cx, &cy, &c, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("size=0 is no extent of a window"));
  kiln_epilogue_destroy(epilogue);
}

}  // namespace
}  // namespace kiln::capi::local_norm_test
