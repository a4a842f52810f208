// User code from an application's point of view: what a call gives, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "device_fixture.h"
#include "kiln/activation.h"
#include "kiln/base/error.h"
#include "kiln/conv.h"
#include "kiln/generator/operation.h"
#include "kiln/pool.h"
#include "kiln/softmax.h"

namespace kiln::user_code_test {
namespace {

using testing::AllOf;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

class UserCodeCalls : public DeviceTest {
 protected:
  // One pixel with two channels; two filters: the sums are 1*3 + 2*4 = 11 and 1*5 + 2*-6 = -7.
  Tensor x_{upload<float>({1, 2}), f32, {1, 2, 1, 1}, nchw};
  Tensor w_{upload<float>({3, 4, 5, -6}), f32, {2, 2, 1, 1}, nchw};
  Tensor y_{upload<float>({100, 200}), f32, {1, 2, 1, 1}, nchw};
  Tensor bias_{upload<float>({0.5F, 0.25F}), f32, {2}, contiguous};
  Tensor gate_{upload<float>({2, 3}), f32, {1, 2, 1, 1}, nchw};
};

TEST_F(UserCodeCalls, ConvolutionGetsItsTensorsAndScalars) {
  Context context(options());
  const Expression code("(acc + bias[k]) * gate * slope + k", {"gate", "bias"}, {"slope"});
  const auto call = [&](float slope) {
    conv_forward(context, x_, w_, y_,
                 {.epilogue = expression(code, {{"bias", bias_}, {"gate", gate_}}, {{"slope", slope}})});
    synchronize();
    return download<float>(y_.data(), 2);
  };
  EXPECT_THAT(call(1), Pointwise(FloatNear(1e-5F), {23.0F, -19.25F}));
  EXPECT_THAT(call(-2), Pointwise(FloatNear(1e-5F), {-46.0F, 41.5F}));
}

TEST_F(UserCodeCalls, AccIsWhatAlphaAndBetaGive) {
  Context context(options());
  conv_forward(context, x_, w_, y_, {.alpha = 2, .beta = 0.5F, .epilogue = expression("acc > 0.0f ? acc : -acc")});
  synchronize();
  EXPECT_THAT(download<float>(y_.data(), 2), Pointwise(FloatNear(1e-4F), {72.0F, 86.0F}));
}

TEST_F(UserCodeCalls, PoolingAndSoftmaxTakeItToo) {
  Context context(options());
  const Tensor x(upload<float>({1, 5, 3, 2}), f32, {1, 1, 2, 2}, nchw), y(upload<float>({0}), f32, {1, 1, 1, 1}, nchw);
  pool_forward(context, x, y, {.epilogue = expression("acc * scale", {}, {{"scale", 10}})});
  const Tensor rows(upload<float>({-3, 3}), f32, {1, 2}, nc), out(upload<float>({0, 0}), f32, {1, 2}, nc);
  softmax_forward(context, rows, out, {.epilogue = expression("--- prologue\nx * x\n---\n1.0f - acc * acc")});
  synchronize();
  EXPECT_FLOAT_EQ(download<float>(y.data(), 1)[0], 50);
  EXPECT_THAT(download<float>(out.data(), 2), Pointwise(FloatNear(1e-6F), {0.75F, 0.75F}));
}

// As many tensors as code may read: y in nchw, one of its extents in nhwc, a row and a column that repeat, and single
// elements.
TEST_F(UserCodeCalls, TensorsMayLieInAnyOrderAndRepeat) {
  Context context(options());
  const Tensor x(upload<int8_t>({1, -2, 3, 100}), i8, {1, 2, 1, 2}, nchw),
      y(upload<int8_t>({9, 9, 9, 9}), i8, {1, 2, 1, 2}, nchw);
  const Tensor across(upload<float>({10, 20, 30, 40}), f32, {1, 2, 1, 2}, nhwc);
  const Tensor row(upload<uint8_t>({1, 2}), u8, {1, 1, 1, 2}, nchw),
      column(upload<int32_t>({0, 3}), i32, {1, 2, 1, 1}, nchw);
  const auto one = [&](int32_t value) { return Tensor(upload<int32_t>({value}), i32, {1, 1, 1, 1}, nchw); };
  const Expression code("acc + across + row * column + e - f + 2.0f * g - h + i",
                        {"across", "row", "column", "e", "f", "g", "h", "i"});
  activation_forward(context, x, y,
                     {.mode = ActivationMode::identity,
                      .epilogue = expression(code, {{"across", across},
                                                    {"row", row},
                                                    {"column", column},
                                                    {"e", one(1)},
                                                    {"f", one(2)},
                                                    {"g", one(4)},
                                                    {"h", one(8)},
                                                    {"i", one(16)}})});
  synchronize();  // 15 more than acc + across + row * column
  EXPECT_THAT(download<int8_t>(y.data(), 4), testing::ElementsAre(26, 43, 41, 127));
}

TEST_F(UserCodeCalls, OfADynamicBatchRefuseTensorsOfAnother) {
  Context context(options());
  const Tensor x(upload<float>({1, 2, 3}), f32, {3, 1}, nc), y(upload<float>({0, 0, 0}), f32, {3, 1}, nc);
  const Expression code("acc + t", {"t"});
  const auto call = [&](const Tensor& t) {
    activation_forward(context, x, y, {.dynamic_batch = true, .epilogue = expression(code, {{"t", t}})});
  };
  const Tensor four(upload<float>({1, 2, 3, 4}), f32, {4, 1}, nc), one(upload<float>({5}), f32, {1, 1}, nc);
  EXPECT_THAT(refusal_of([&] { call(four); }),
              HasSubstr("t has other extents than y: 4 along the first dimension, not 3"));
  call(one);
  synchronize();
  EXPECT_THAT(download<float>(y.data(), 3), testing::ElementsAre(6, 7, 8));
}

TEST_F(UserCodeCalls, PlansTakeTensorsByNameAndScalarsInTheirOrder) {
  Context context(options());
  const Expressions expressions = {{"e", Expression("acc * a + b + t", {"t"}, {"b", "a"})}};
  const Plan plan = context.plan(
      Request::parse("conv_forward x=f32:1x2x1x1 w=f32:2x2x1x1 epilogue=user:e epilogue.t=f32:2", expressions));
  RunValues values;
  values.scalars = {100, 2};  // b, a
  plan.run(nullptr, {x_, w_, y_, bias_}, nullptr, values);
  synchronize();
  EXPECT_THAT(download<float>(y_.data(), 2), Pointwise(FloatNear(1e-4F), {122.5F, 86.25F}));
}

TEST_F(UserCodeCalls, RefuseWhatTheCodeDoesNotRead) {
  Context context(options());
  const Expression code("acc + t * s", {"t"}, {"s"});
  EXPECT_THAT(refusal_of([&] { (void)expression(code, {}, {{"s", 1}}); }), HasSubstr("reads t, which is not given"));
  EXPECT_THAT(refusal_of([&] {
                (void)expression(code, {{"t", bias_}}, {{"s", 1}, {"r", 2}});
              }),
              HasSubstr("2 scalars"));
  EXPECT_THAT(refusal_of([&] { (void)(expression("acc") + relu); }), HasSubstr("stands alone"));
  EXPECT_THAT(refusal_of([&] {
                pool_forward(context, x_, y_, {.window = {1, 1}, .epilogue = relu});
              }),
              HasSubstr("takes no epilogue of stages"));
  EXPECT_THAT(refusal_of([&] {
                conv_forward(context, x_, w_, y_, {.epilogue = expression(code, {{"t", y_}}, {{"s", 1}})});
              }),
              HasSubstr("y and t overlaps"));
  EXPECT_THAT(refusal_of([&] {
                conv_forward(context, x_, w_, y_, {.epilogue = expression(code, {{"t", x_}}, {{"s", 1}})});
              }),
              HasSubstr("accepted"));
}

TEST_F(UserCodeCalls, ShowMistakesOnceAndInTheUsersLines) {
  Context context(options());
  EXPECT_THAT(refusal_of([&] { conv_forward(context, x_, w_, y_, {.epilogue = expression("acc +\n  oops")}); },
                         ErrorCode::compile_failed),
              HasSubstr("line 2, column 3: identifier \"oops\" is undefined"));
}

TEST_F(UserCodeCalls, AreRecordedWithTheirText) {
  const std::string path = testing::TempDir() + "kiln_user_code_record.txt";
  std::filesystem::remove(path);
  ContextOptions recording = options();
  recording.environment->record = path;
  {
    Context context(recording);
    for (int i = 0; i < 2; ++i) conv_forward(context, x_, w_, y_, {.epilogue = expression("acc + 1.0f")});
  }
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::vector<RequestLine> lines = parse_requests(text);
  int64_t calls = 0;
  for (const RequestLine& line : lines) calls += line.count;
  EXPECT_EQ(calls, 2) << text;
  ASSERT_FALSE(lines.empty());
  ASSERT_NE(lines[0].request.user_code.expression(), nullptr);
  EXPECT_EQ(lines[0].request.user_code.expression()->text(), "acc + 1.0f");
  std::filesystem::remove(path);
}

TEST_F(UserCodeCalls, ContextsTakeUserTemplates) {
  ContextOptions with_template = options();
  with_template.user_templates = {at_hand(KILN_EXAMPLES "/user_template", "examples/user_template")};
  const Context context(with_template);
  const Explanation why = context.explain(Request::parse("softmax_forward x=f32:2x3"));
  EXPECT_TRUE(why.chosen.has_value());
  with_template.user_templates = {KILN_EXAMPLES "/nowhere"};
  EXPECT_THAT(refusal_of([&] { const Context broken(with_template); }, ErrorCode::io_error), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace kiln::user_code_test
