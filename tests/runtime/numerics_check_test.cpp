// KILN_CHECK_NUMERICS: which operands and results are named, and what becomes of the call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "device_fixture.h"
#include "kiln/activation.h"
#include "kiln/ctc_loss.h"
#include "kiln/cuda_graph.h"
#include "kiln/plan.h"
#include "kiln/tensor_ops.h"

namespace kiln::numerics_check_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

class Numerics : public DeviceTest {
 protected:
  Context context(std::optional<NumericsPolicy> policy) {
    ContextOptions how = options();
    how.environment->check_numerics = policy;
    how.announce = [this](std::string_view message) { said_.emplace_back(message); };
    return Context(how);
  }

  /// Relu of `values`, as a tensor of 2 x 3.
  std::vector<float> relu(Context& context, const std::vector<float>& values) {
    const Tensor x(upload(values), f32, {2, 3}, nc), y(y_, f32, {2, 3}, nc);
    activation_forward(context, x, y);
    return download<float>(y_, 6);
  }

  /// "" where nothing is thrown.
  template <class Call>
  static std::string refusal(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_finite) << error.what();
      return error.message();
    }
    return "";
  }

  void* const y_ = upload(std::vector<float>(6, 7));
  std::vector<std::string> said_;
};

TEST_F(Numerics, NothingIsLookedForUnlessAsked) {
  Context plain = context(std::nullopt);
  EXPECT_FALSE(plain.checks_numerics());
  EXPECT_TRUE(std::isnan(relu(plain, {nan, 1, 1, 1, 1, infinity})[0]));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(Numerics, ErrorsNameTheOperandBeforeAnythingIsLaunched) {
  Context strict = context(NumericsPolicy::error);
  EXPECT_TRUE(strict.checks_numerics());
  EXPECT_EQ(refusal([&] { relu(strict, {1, 2, 3, -4, 5, 6}); }), "");
  const std::string message = refusal([&] { relu(strict, {1, 2, 3, -4, nan, infinity}); });
  EXPECT_THAT(message, HasSubstr("activation_forward x=f32:2x3"));
  EXPECT_THAT(message, HasSubstr("operand x holds 1 NaN and 1 infinite of 6 elements, the first at [1, 1]"));
  EXPECT_EQ(download<float>(y_, 6), (std::vector<float>{1, 2, 3, 0, 5, 6})) << "the run before wrote it";
}

TEST_F(Numerics, ErrorsNameResultsOfFiniteOperands) {
  Context strict = context(NumericsPolicy::error);
  const Request request = Request::parse("tensor_op a=f32:2x2 b=f32:2x2 mode=mul");
  const Plan plan = strict.plan(request);
  const std::vector<float> large = {1, 3e38F, 2, -3e38F};
  const std::vector<Address> operands = {upload(large), upload(std::vector<float>(4, 10)), y_};
  EXPECT_THAT(refusal([&] { plan.run(nullptr, operands, nullptr, plan.values({}, {})); }),
              HasSubstr("result y holds 0 NaN and 2 infinite of 4 elements, the first at [0, 1]"));
}

TEST_F(Numerics, WarningsAreSaidOnceForARequestAndAnOperand) {
  Context lenient = context(NumericsPolicy::warn);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(relu(lenient, {nan, 1, 1, 1, 1, 1})[0]));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("operand x holds 1 NaN and 0 infinite of 6 elements, the first at [0, 0]"),
                                 HasSubstr("result y holds 1 NaN")));
}

// A third state cannot be reached in one step.
TEST_F(Numerics, LogarithmsOfNothingAreNumbers) {
  Context strict = context(NumericsPolicy::error);
  const Tensor scores(upload(std::vector<float>{1, 2}), f32, {1, 1, 2}, contiguous);
  const Tensor labels(upload(std::vector<int32_t>{1}), i32, {1, 1}, contiguous);
  const Tensor loss(upload(std::vector<float>{0}), f32, {1}, contiguous);
  const Tensor prefixes(upload(std::vector<float>(3, 0)), f32, {1, 1, 3}, contiguous);
  EXPECT_EQ(refusal([&] { ctc_loss_forward(strict, scores, labels, loss, {.prefixes = prefixes}); }), "");
  EXPECT_EQ(download<float>(prefixes.data(), 3)[2], -infinity);
  const Tensor dx(y_, f32, {1, 1, 2}, contiguous);
  EXPECT_EQ(refusal([&] { ctc_loss_backward(strict, scores, labels, prefixes, dx); }), "");
  const Tensor wrong(upload(std::vector<float>{nan, 0, -infinity}), f32, {1, 1, 3}, contiguous);
  EXPECT_THAT(refusal([&] { ctc_loss_backward(strict, scores, labels, wrong, dx); }),
              HasSubstr("operand prefixes holds 1 NaN and 0 infinite of 3 elements"));
}

// Memory between the elements is nobody's, and a result that a call does not read may hold anything.
TEST_F(Numerics, OnlyElementsThatAreReadOrWrittenCount) {
  Context strict = context(NumericsPolicy::error);
  const std::vector<float> gaps = {1, 2, nan, 3, 4, nan};
  void* const memory = upload(std::vector<float>(6, nan));
  const Tensor x(upload(gaps), f32, {2, 2}, {3, 1}), y(memory, f32, {2, 2}, {3, 1});
  EXPECT_EQ(refusal([&] { activation_forward(strict, x, y); }), "");
  EXPECT_EQ(refusal([&] {
              activation_forward(strict, Tensor(nullptr, f32, {0, 2}, nc), Tensor(nullptr, f32, {0, 2}, nc));
            }),
            "");
  const std::vector<float> nothing(4, nan);
  const Tensor updated(upload(nothing), f32, {2, 2}, nc),
      finite(upload(std::vector<float>{1, 2, 3, 4}), f32, {2, 2}, nc);
  EXPECT_THAT(refusal([&] { activation_forward(strict, finite, updated, {.beta = 0.5F}); }),
              HasSubstr("operand y holds 4"));
}

TEST_F(Numerics, OnlyImagesOfTheCallCount) {
  Context strict = context(NumericsPolicy::error);
  const Plan plan = strict.plan(Request::parse("activation_forward x=f32:4x2 mode=relu n=?"));
  RunValues values = plan.values({}, {});
  const std::vector<Address> operands = {upload(std::vector<float>{1, 2, 3, 4, 5, 6, nan, nan}),
                                         upload(std::vector<float>(8, nan))};
  values.n = 3;
  EXPECT_EQ(refusal([&] { plan.run(nullptr, operands, nullptr, values); }), "");
  values.n = 4;
  EXPECT_THAT(refusal([&] { plan.run(nullptr, operands, nullptr, values); }), HasSubstr("operand x holds 2 NaN"));
}

TEST_F(Numerics, CapturesAreNotLookedAtAndThatIsSaid) {
  Context lenient = context(NumericsPolicy::warn);
  relu(lenient, {1, 2, 3, 4, 5, 6});
  const Tensor x(upload(std::vector<float>(6, nan)), f32, {2, 3}, nc), y(y_, f32, {2, 3}, nc);
  for (int i = 0; i < 2; ++i) {
    const CudaGraph graph(lenient, [&](Stream stream) { activation_forward(lenient, x, y, {}, stream); });
    graph.launch();
  }
  EXPECT_THAT(said_, ElementsAre("KILN_CHECK_NUMERICS: calls within a capture are not looked at"));
}

}  // namespace
}  // namespace kiln::numerics_check_test
