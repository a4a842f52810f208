// Plans of the C API: what their operands are, and what a run takes for what is not given.
#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "fixture.h"

namespace kiln::capi::plan_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CPlan : public CApi {
 protected:
  ~CPlan() override {
    for (kiln_plan* plan : plans_) kiln_plan_destroy(plan);
  }

  kiln_plan* make(const char* request) {
    EXPECT_EQ(kiln_plan_create(context_, request, &plans_.emplace_back()), KILN_OK) << kiln_last_error();
    return plans_.back();
  }

  // "name=text role", in order.
  static std::vector<std::string> operands_of(const kiln_plan* plan) {
    kiln_plan_info info = kiln_plan_info_default();
    EXPECT_EQ(kiln_plan_get_info(plan, &info), KILN_OK);
    std::vector<std::string> operands;
    for (size_t i = 0; i < info.operand_count; ++i) {
      kiln_operand_info operand = kiln_operand_info_default();
      EXPECT_EQ(kiln_plan_get_operand(plan, i, &operand), KILN_OK) << kiln_last_error();
      const char* const roles[] = {"input", "output", "updated"};
      operands.push_back(std::string(operand.name) + "=" + operand.text + " " + roles[operand.role]);
    }
    return operands;
  }

 private:
  std::vector<kiln_plan*> plans_;
};

TEST_F(CPlan, NamesItsOperandsInOrderWithRoleAndShape) {
  EXPECT_THAT(operands_of(make("norm_backward dy=f32:4x6 w=f32:1x6 dw=f32:1x6 db=f32:1x6 parameter_beta=1")),
              ElementsAre("dy=f32:4x6:nc input", "x=f32:4x6:nc input", "w=f32:1x6:nc input", "mean=f32:4x1:nc input",
                          "inv_deviation=f32:4x1:nc input", "dx=f32:4x6:nc output", "dw=f32:1x6:nc updated",
                          "db=f32:1x6:nc updated"));
  EXPECT_THAT(operands_of(make("norm_forward x=f32:4x6 running_mean=f32:4x1 running_variance=f32:4x1")),
              ElementsAre("x=f32:4x6:nc input", "y=f32:4x6:nc output", "running_mean=f32:4x1:nc updated",
                          "running_variance=f32:4x1:nc updated"));
}

TEST_F(CPlan, SaysOfAnOperandWhatItsMemoryHasToBe) {
  const kiln_plan* const plan = make("softmax_forward x=f16:3x5:8,1@4 y=f32:3x5");
  kiln_operand_info x = kiln_operand_info_default();
  ASSERT_EQ(kiln_plan_get_operand(plan, 0, &x), KILN_OK) << kiln_last_error();
  EXPECT_EQ(x.dtype, KILN_F16);
  EXPECT_EQ(x.rank, 2);
  EXPECT_THAT(std::vector<int64_t>(x.extents, x.extents + 3), ElementsAre(3, 5, 0));
  EXPECT_THAT(std::vector<int64_t>(x.strides, x.strides + 3), ElementsAre(8, 1, 0));
  EXPECT_EQ(x.alignment, 4);
  EXPECT_EQ(x.bytes, 2 * (2 * 8 + 5));
  EXPECT_EQ(x.size, sizeof x);
  EXPECT_EQ(kiln_plan_get_operand(plan, 2, &x), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("there is no operand 2: the plan has 2"));
}

TEST_F(CPlan, SaysWhichOperandsHaveTheBatchThatARunBrings) {
  const auto batched = [&](const char* request) {
    std::vector<int64_t> has;
    const kiln_plan* const plan = make(request);
    for (size_t i = 0; i < 3; ++i) {
      kiln_operand_info operand = kiln_operand_info_default();
      EXPECT_EQ(kiln_plan_get_operand(plan, i, &operand), KILN_OK) << kiln_last_error();
      has.push_back(operand.has_batch);
    }
    return has;
  };
  EXPECT_THAT(batched("tensor_op mode=add a=f32:4x6 b=f32:1x6 n=?"), ElementsAre(1, 0, 1));
  EXPECT_THAT(batched("tensor_op mode=add a=f32:4x6 b=f32:1x6"), ElementsAre(0, 0, 0));
}

TEST_F(CPlan, SaysWhichOperandsARunWants) {
  const kiln_plan* const plan = make("norm_backward dy=f32:4x6");
  const void* none = nullptr;
  EXPECT_EQ(kiln_plan_run(plan, nullptr, &none, 1, nullptr, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("1 operands were given, expected 5"));
  EXPECT_THAT(kiln_last_hint(), HasSubstr("give dy, x, mean, inv_deviation, dx, in this order"));
}

// A row of equal elements: without an epsilon it is 0 / 0.
TEST_F(CPlan, RunsWithTheUsualNumbersOfItsOperation) {
  const kiln_plan* const plan = make("norm_forward x=f32:1x4");
  const void* const operands[] = {upload({2, 2, 2, 2}), upload({7, 7, 7, 7})};
  const kiln_run_values unset = kiln_run_values_default();
  for (const kiln_run_values* values : {&unset, static_cast<const kiln_run_values*>(nullptr)}) {
    ASSERT_EQ(kiln_plan_run(plan, nullptr, operands, 2, nullptr, values), KILN_OK) << kiln_last_error();
    EXPECT_THAT(download(operands[1]), ElementsAre(0, 0, 0, 0));
  }
  kiln_run_values given = kiln_run_values_default();
  const float zero = 0;
  given.operation_scalars = &zero;
  given.operation_scalar_count = 1;
  ASSERT_EQ(kiln_plan_run(plan, nullptr, operands, 2, nullptr, &given), KILN_OK) << kiln_last_error();
  EXPECT_TRUE(std::isnan(download(operands[1])[0])) << "what is given counts";
}

// Fewer numbers of the operation are fine: the others are the usual ones.
TEST_F(CPlan, RefusesMoreNumbersThanItTakes) {
  const kiln_plan* const norm = make("norm_forward x=f32:1x4");
  const void* const operands[] = {upload({2, 2, 2, 2}), upload({7, 7, 7, 7})};
  const float two[] = {1e-5F, 1}, seven[] = {1e-5F, 1, 0, 0, 0, 0, 0};
  const auto refusal = [&](const kiln_plan* plan, const kiln_run_values& values) -> std::string {
    EXPECT_EQ(kiln_plan_run(plan, nullptr, operands, 2, nullptr, &values), KILN_INVALID_ARGUMENT);
    return kiln_last_error();
  };
  kiln_run_values values = kiln_run_values_default();
  values.operation_scalars = seven, values.operation_scalar_count = 7;
  EXPECT_EQ(
      refusal(norm, values),
      "kiln_plan_run: 7 operation_scalars were given, norm_forward takes 6: epsilon, momentum, slope, offset, low, "
      "high");
  values.operation_scalars = nullptr, values.operation_scalar_count = 1;
  EXPECT_THAT(refusal(norm, values), HasSubstr("operation_scalars is NULL"));

  const kiln_plan* const scaled =
      make("expression scaled(; s, t)\nacc * s + t\nend expression\nsoftmax_forward x=f32:1x4 epilogue=user:scaled\n");
  values = kiln_run_values_default();
  values.scalars = two, values.scalar_count = 1;
  EXPECT_EQ(refusal(scaled, values), "kiln_plan_run: 1 scalars were given, its user code takes 2: s, t");
  values.scalars = nullptr, values.scalar_count = 2;
  EXPECT_THAT(refusal(scaled, values), HasSubstr("scalars is NULL"));
  EXPECT_THAT(download(operands[1]), ElementsAre(7, 7, 7, 7)) << "nothing ran";
  values.scalars = two;
  EXPECT_EQ(kiln_plan_run(scaled, nullptr, operands, 2, nullptr, &values), KILN_OK) << kiln_last_error();
}

TEST_F(CPlan, HintsInTermsOfC) {
  const kiln_plan* const plan = make("softmax_forward x=f32:4x6 n=?");
  const void* const operands[] = {upload(wave(24)), upload(wave(24))};
  EXPECT_EQ(kiln_plan_run(plan, nullptr, operands, 2, nullptr, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_hint(), HasSubstr("give the batch in kiln_run_values.n"));
}

}  // namespace
}  // namespace kiln::capi::plan_test
