// The functions of operations must say all of a call, or they are faulty.
#include "call_request.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "kiln/base/error.h"
#include "kiln/generator/operations/softmax_forward.h"

namespace kiln::call_request_test {
namespace {

const Tensor tensor(nullptr, f32, {2, 3}, contiguous);

std::string fault_of(std::string_view operation, const std::function<void(CallRequest&)>& say) {
  CallRequest call(call_shape(operation));
  try {
    say(call);
    (void)call.finished();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal) << error.what();
    return error.what();
  }
  return "";
}

TEST(CallRequest, HasEveryPartOfItsOperation) {
  const auto say_tensors = [](CallRequest& call) {
    call.operand("x", tensor);
    call.operand("y", tensor);
  };
  const auto say_axis = [&](CallRequest& call) {
    say_tensors(call);
    call.ints("axis", {1});
  };
  EXPECT_EQ(fault_of("softmax_forward", [](CallRequest& call) { call.operand("x", tensor); }),
            "a call of softmax_forward does not say y");
  EXPECT_EQ(fault_of("softmax_forward", say_tensors), "a call of softmax_forward does not say axis");
  EXPECT_EQ(fault_of("softmax_forward", say_axis), "a call of softmax_forward does not say mode");
  EXPECT_EQ(fault_of("softmax_forward",
                     [&](CallRequest& call) {
                       say_axis(call);
                       call.word("mode", SoftmaxMode::log);
                     }),
            "");
  EXPECT_EQ(fault_of("softmax_forward",
                     [&](CallRequest& call) {
                       say_tensors(call);
                       call.text("softmax_forward axis=0");
                     }),
            "");
}

// Tensors that user code reads would else stand in the place of those behind it.
TEST(CallRequest, HasAllOperandsInFrontOfItsUserCode) {
  EXPECT_EQ(fault_of("softmax_forward",
                     [](CallRequest& call) {
                       call.operand("x", tensor);
                       call.user_code({});
                       call.operand("y", tensor);
                     }),
            "a call of softmax_forward says y behind its user code");
}

TEST(CallRequest, HasEveryNumberOfItsOperation) {
  const auto say = [](CallRequest& call) {
    call.operand("x", tensor);
    call.operand("y", tensor);
  };
  const auto say_number = [&](CallRequest& call) {
    say(call);
    call.number("p", 0.5F);
    call.integer("seed", 1);
  };
  EXPECT_EQ(fault_of("dropout", say), "a call of dropout does not say p");
  EXPECT_EQ(fault_of("dropout", say_number), "a call of dropout does not say offset");
  EXPECT_EQ(fault_of("dropout",
                     [&](CallRequest& call) {
                       say(call);
                       call.text("dropout");
                     }),
            "");
}

}  // namespace
}  // namespace kiln::call_request_test
