// Operations by their names in C: what their own functions give.
#include "kiln/call.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>

#include "fixture.h"
#include "kiln/dropout.h"

namespace kiln::capi::call_test {
namespace {

using testing::HasSubstr;

class CApiCallByName : public CApiBesideCpp {
 protected:
  static constexpr uint64_t seed = 0x123456789abcdef0, offset = 0xfedcba987;

  const std::vector<float> start_ = wave(60, 0.53f);
  const void *x_ = upload(wave(60)), *y_ = upload(start_), *expected_ = upload(start_);
  const kiln_tensor cx_ = tensor(x_, {5, 12}), cy_ = tensor(y_, {5, 12});
  const kiln_named_tensor tensors_[2] = {{"x", &cx_}, {"y", &cy_}};
  const Tensor tx_{x_, f32, {5, 12}, nc}, ty_{expected_, f32, {5, 12}, nc};
  kiln_call_options options_ = kiln_call_options_default();
};

TEST_F(CApiCallByName, TakesEveryNumberAndIntegerInAnyOrder) {
  kiln_named_scalar numbers[] = {{"p", 0.25f, 0}, {"alpha", 2, 0}, {"beta", 0.5f, 0}};
  kiln_named_integer integers[] = {{"seed", seed}, {"offset", offset}};
  options_.numbers = numbers, options_.number_count = 3;
  options_.integers = integers, options_.integer_count = 2;
  for (int order = 0; order < 2; ++order) {
    EXPECT_EQ(kiln_call(context_, "dropout", tensors_, 2, &options_, nullptr), KILN_OK) << kiln_last_error();
    dropout_forward(cpp_, tx_, ty_, {.p = 0.25f, .seed = seed, .offset = offset, .alpha = 2, .beta = 0.5f});
    EXPECT_EQ(download(y_), download(expected_));
    std::reverse(std::begin(numbers), std::end(numbers));
    std::reverse(std::begin(integers), std::end(integers));
  }
  EXPECT_NE(download(y_), start_);
}

TEST_F(CApiCallByName, AppliesUserCode) {
  const kiln_named_scalar scalars[] = {{"s", 3, 0}};
  kiln_epilogue* epilogue = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  ASSERT_EQ(kiln_epilogue_expression(epilogue, "acc * s", nullptr, 0, scalars, 1), KILN_OK) << kiln_last_error();
  options_.epilogue = epilogue;
  EXPECT_EQ(kiln_call(context_, "activation_forward mode=identity", tensors_, 2, &options_, nullptr), KILN_OK)
      << kiln_last_error();
  const std::vector<float> x = download(x_), y = download(y_);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], 3 * x[i]);
  kiln_epilogue_destroy(epilogue);
}

TEST_F(CApiCallByName, RefusesNamesAndWorkspaceThatAreWrong) {
  const auto refusal = [&](const kiln_call_options& options) {
    EXPECT_EQ(kiln_call(context_, "dropout", tensors_, 2, &options, nullptr), KILN_INVALID_ARGUMENT);
    return std::string(kiln_last_error());
  };
  const kiln_named_scalar nameless[] = {{"p", 0, 0}, {nullptr, 0, 0}}, spoilt[] = {{"p", 0, 0}, {"alpha", 0, 1}};
  const kiln_named_integer unnamed[] = {{"seed", 0}, {nullptr, 0}};
  kiln_call_options bad = options_;
  bad.numbers = nameless, bad.number_count = 2;
  EXPECT_THAT(refusal(bad), HasSubstr("kiln_call: the name of numbers[1] is NULL"));
  bad.numbers = spoilt;
  EXPECT_THAT(refusal(bad), HasSubstr("kiln_call: reserved of a number is 1, expected 0"));
  bad = options_;
  bad.integers = unnamed, bad.integer_count = 2;
  EXPECT_THAT(refusal(bad), HasSubstr("kiln_call: the name of integers[1] is NULL"));
  bad.integers = nullptr, bad.integer_count = 1;
  EXPECT_THAT(refusal(bad), HasSubstr("kiln_call: integers is NULL"));
  bad = options_;
  bad.number_count = 1;
  EXPECT_THAT(refusal(bad), HasSubstr("kiln_call: numbers is NULL"));
  bad = options_;
  bad.workspace = const_cast<void*>(y_), bad.workspace_bytes = -1;
  EXPECT_THAT(refusal(bad), HasSubstr("the workspace has -1 bytes"));
  bad.workspace_bytes = 1;
  EXPECT_THAT(refusal(bad), HasSubstr("the memory of the workspace and y overlaps"));
  EXPECT_EQ(download(y_), start_) << "nothing ran";
}

}  // namespace
}  // namespace kiln::capi::call_test
