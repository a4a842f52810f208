// Operations by their names: the same results, the same requests and the same refusals as by their own functions.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "device_fixture.h"
#include "kiln/call.h"
#include "kiln/conv.h"
#include "kiln/device/stream.h"
#include "kiln/dropout.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/run_values.h"
#include "kiln/local_norm.h"
#include "kiln/tensor_ops.h"

namespace kiln::call_by_name_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CallByNameTest : public DeviceTest {
 protected:
  std::vector<NamedTensor> ones(const std::vector<std::string_view>& names) {
    std::vector<NamedTensor> tensors;
    for (const std::string_view name : names) {
      tensors.push_back({name, Tensor(upload(std::vector<float>(1, 1)), f32, {1, 1, 1, 1}, nchw)});
    }
    return tensors;
  }
  Tensor tensor(const std::vector<float>& values) {
    return {upload(values), f32, {1, static_cast<int64_t>(values.size())}, nc};
  }

  Context context_{options()};
};

// The tensors of `request` at `memory`, by their names, in another order than the operation's.
std::vector<NamedTensor> tensors_of(const Request& request, const std::map<std::string, void*>& memory) {
  std::vector<NamedTensor> tensors;
  for (const Operand& operand : request.operands) {
    tensors.insert(tensors.begin(), {operand.name, Tensor(memory.at(operand.name), operand.spec.dtype,
                                                          operand.spec.extents, operand.spec.strides)});
  }
  return tensors;
}

TEST_F(CallByNameTest, DoesWhatItsTextSays) {
  const std::string head = "conv_forward pad=1,0 stride=2 groups=2 epilogue=bias+relu";
  const std::string line = head + " x=f32:2x4x7x5:nhwc w=f32:6x2x3x3 y=f32:2x6x4x2:nhwc bias=f32:6";
  expect_right(line, [&](std::map<std::string, void*>& memory) {
    call(context_, head, tensors_of(Request::parse(line), memory));
  });
}

TEST_F(CallByNameTest, TakesNumbersByTheirNames) {
  const std::string head = "conv_forward", line = head + " x=f32:1x3x5x5 w=f32:4x3x2x2 alpha=any beta=any";
  const std::array numbers{NamedScalar{"beta", -0.5F}, NamedScalar{"alpha", 1.5F}};
  expect_right(
      line,
      [&](std::map<std::string, void*>& memory) {
        call(context_, head, tensors_of(Request::parse(line), memory), {.numbers = numbers});
      },
      1.5F, -0.5F);

  const Tensor x = tensor({-2, 1}), y = tensor({0, 0});
  const std::array slope{NamedScalar{"slope", 0.25F}};
  call(context_, "activation_forward mode=leaky_relu", {{"x", x}, {"y", y}}, {.numbers = slope});
  EXPECT_THAT(download<float>(y.data(), 2), ElementsAre(-0.5F, 1));
  call(context_, "activation_forward mode=leaky_relu", {{"x", x}, {"y", y}});
  EXPECT_THAT(download<float>(y.data(), 2), ElementsAre(-0.02F, 1)) << "the usual slope";
  const std::array bounds{NamedScalar{"clip_lo", -1}, NamedScalar{"clip_hi", 0.5F}};
  const Tensor one(upload(std::vector<float>{1}), f32, {1, 1}, nc);
  const Tensor a(x.data(), f32, {2, 1}, nc), c(y.data(), f32, {2, 1}, nc);
  call(context_, "gemm epilogue=clip", {{"a", a}, {"b", one}, {"c", c}}, {.numbers = bounds});
  EXPECT_THAT(download<float>(y.data(), 2), ElementsAre(-1, 0.5F));
}

// Numbers that are not given: as the options of the function have them.
TEST_F(CallByNameTest, HasTheDefaultsOfTheFunction) {
  const std::vector<float> values = {1, -2, 3, 4, -5, 6};
  const auto image = [&] { return Tensor(upload(values), f32, {1, 6, 1}, contiguous); };
  const Tensor x = image(), y = image(), named = image();
  lrn_forward(context_, x, y);
  call(context_, "local_norm_forward axes=1 size=5\n", {{"x", x}, {"y", named}});
  EXPECT_EQ(download<float>(named.data(), values.size()), download<float>(y.data(), values.size()));
  dropout_forward(context_, x, y);
  call(context_, "dropout", {{"x", x}, {"y", named}});
  EXPECT_EQ(download<float>(named.data(), values.size()), download<float>(y.data(), values.size()));
  call(context_, "tensor_set", {{"y", named}});
  EXPECT_EQ(download<float>(named.data(), values.size()), std::vector<float>(values.size(), 0));
}

// Numbers that the text does not ask for are not read.
TEST_F(CallByNameTest, ReadsNoNumberThatTheTextDoesNotAskFor) {
  const Tensor x = tensor({1, 2}), y = tensor({0, 0});
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const std::array bounds{NamedScalar{"clip_lo", 2}, NamedScalar{"clip_hi", nan}};
  call(context_, "activation_forward mode=relu", {{"x", x}, {"y", y}}, {.numbers = bounds});
  EXPECT_THAT(download<float>(y.data(), 2), ElementsAre(1, 2));
  const Tensor losses(upload(std::vector<float>{0}), f32, {1}, contiguous);
  const Tensor targets(upload(std::vector<int32_t>{1}), i32, {1}, contiguous);
  const std::array smoothing{NamedScalar{"smoothing", nan}};
  call(context_, "cross_entropy_forward reduction=none", {{"x", x}, {"targets", targets}, {"losses", losses}},
       {.numbers = smoothing});
  EXPECT_NEAR(download<float>(losses.data(), 1)[0], std::log1p(std::exp(-1.0F)), 1e-6F);
}

TEST_F(CallByNameTest, TakesIntegersByTheirNames) {
  const std::vector<float> ones(64, 1);
  const Tensor x = tensor(ones), first = tensor(ones), second = tensor(ones), third = tensor(ones);
  const auto drop = [&](const Tensor& y, uint64_t seed) {
    const std::array seeds{NamedInteger{"seed", seed}};
    call(context_, "dropout", {{"x", x}, {"y", y}}, {.integers = seeds});
    return download<float>(y.data(), ones.size());
  };
  const std::vector<float> dropped = drop(first, 7);
  EXPECT_NE(dropped, ones);
  EXPECT_EQ(drop(second, 7), dropped);
  EXPECT_NE(drop(third, 8), dropped);
}

// Their classes are attributes, which the text does not say.
TEST_F(CallByNameTest, BlendsFurtherOutputsByTheirNumbers) {
  const std::string head = "local_norm_backward axes=1 size=3";
  const std::string tensors = " x=f32:1x4x2x2 means=f32:1x4x2x2 dy=f32:1x4x2x2 dx=f32:1x4x2x2 dmeans=f32:1x4x2x2";
  const Request request = Request::parse(head + tensors + " dmeans_alpha=any");
  RunValues values = usual_values(request);
  const std::vector<ScalarDefinition>& scalars = operation(request.operation).scalars();
  std::vector<NamedScalar> numbers;
  for (size_t i = 0; i < scalars.size(); ++i) {
    if (scalars[i].name == "dmeans_alpha") values.operation_scalars[i] = 0.625F;
    numbers.push_back({scalars[i].name, values.operation_scalars[i]});
  }
  std::map<std::string, void*> memory;
  for (const Operand& operand : request.operands) {
    memory[operand.name] = upload(std::vector<float>{1, -2, 3, 4, -5, 6, 7, 8, 9, 10, -11, 12, 13, 14, -15, 16});
  }
  const Plan plan = plan_of_call(context_, head, tensors_of(request, memory), {.numbers = numbers});
  EXPECT_EQ(plan.request(), request);
  call(context_, head, tensors_of(request, memory), {.numbers = numbers});
  const std::vector<float> given = download<float>(memory["dmeans"], 16);
  numbers.pop_back();  // dmeans_beta: its class is zero then
  numbers.pop_back();  // dmeans_alpha: one
  call(context_, head, tensors_of(request, memory), {.numbers = numbers});
  const std::vector<float> whole = download<float>(memory["dmeans"], 16);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_FLOAT_EQ(given[i], 0.625F * whole[i]) << i;
}

TEST_F(CallByNameTest, HasTheNumbersOfPlansToo) {
  const Plan plan = context_.plan(Request::parse("norm_forward x=f32:2x4 axes=-1 alpha=any activation=elu"));
  const RunValues usual = usual_values(plan.request());
  const RunValues values = plan.values({{"slope", 3}, {"epsilon", 0.5F}, {"alpha", 2}});
  EXPECT_EQ(values.alpha, 2);
  EXPECT_EQ(values.beta, usual.beta);
  const std::vector<ScalarDefinition>& scalars = operation("norm_forward").scalars();
  for (size_t i = 0; i < scalars.size(); ++i) {
    const float given = scalars[i].name == "slope" ? 3 : scalars[i].name == "epsilon" ? 0.5F : -1;
    EXPECT_EQ(values.operation_scalars[i], given < 0 ? usual.operation_scalars[i] : given) << scalars[i].name;
  }
  const Plan dropout = context_.plan(Request::parse("dropout x=f32:2x4"));
  EXPECT_THAT(dropout.values({{"p", 0.25F}}, {{"offset", 5}}).operation_integers,
              ElementsAre(usual_values(dropout.request()).operation_integers[0], 5));
  EXPECT_THAT(refusal_of([&] { (void)dropout.values({{"q", 1}}); }), HasSubstr("dropout has no number 'q'"));
  EXPECT_THAT(refusal_of([&] {
                (void)dropout.values({}, {{"seed", 1}, {"seed", 1}});
              }),
              HasSubstr("integer seed is given twice"));
}

TEST_F(CallByNameTest, TakesUserCode) {
  const Tensor x = tensor({1, 2, 3}), y = tensor({0, 0, 0}), gate = tensor({4, 5, 6});
  const std::array named{NamedTensor{"gate", gate}};
  const std::array scalars{NamedScalar{"shift", 0.5F}};
  const Epilogue code = expression("acc * gate + shift", named, scalars);
  call(context_, "tensor_transform", {{"x", x}, {"y", y}}, {.epilogue = code});
  EXPECT_THAT(download<float>(y.data(), 3), ElementsAre(4.5F, 10.5F, 18.5F));
}

TEST_F(CallByNameTest, ServesEveryBatchOfABucket) {
  for (const int64_t n : {3, 4, 1, 0}) {
    const std::vector<float> values(static_cast<size_t>(n) * 2 + 1, 3);
    const Tensor x(upload(values), f32, {n, 2}, nc), y(upload(values), f32, {n, 2}, nc);
    const std::array numbers{NamedScalar{"alpha", 2}};
    call(context_, "tensor_transform n=?", {{"x", x}, {"y", y}}, {.numbers = numbers});
    std::vector<float> doubled(values.size(), 6);
    doubled.back() = 3;
    EXPECT_EQ(download<float>(y.data(), values.size()), doubled) << n;
  }
  EXPECT_EQ(plan_of_call(context_, "tensor_transform n=?",
                         {{"x", Tensor(nullptr, f32, {3, 2}, nc)}, {"y", Tensor(nullptr, f32, {3, 2}, nc)}})
                .request()
                .key(),
            "tensor_transform x=f32:4x2:nc y=f32:4x2:nc n=?");
}

TEST_F(CallByNameTest, LetsOutputsBeWhatTheOperationAllows) {
  const Tensor x = tensor({1, -2}), other = tensor({5, 6});
  call(context_, "activation_forward", {{"x", x}, {"y", x}});
  EXPECT_THAT(download<float>(x.data(), 2), ElementsAre(1, 0));
  EXPECT_THAT(refusal_of([&] {
                call(context_, "reduce axes=1", {{"x", x}, {"y", Tensor(x.data(), f32, {1, 1}, nc)}});
              }),
              HasSubstr("reduce: the memory of y and x overlaps"));
  EXPECT_THAT(
      refusal_of([&] {
        call(context_, "tensor_op mode=add", {{"a", other}, {"b", x}, {"y", Tensor(x.data(), f16, {1, 2}, nc)}});
      }),
      HasSubstr("tensor_op: the memory of y and b overlaps"));
}

class CallByNameWorkspaceTest : public CallByNameTest {
 protected:
  static constexpr const char* head = "conv_forward pad=1";
  static constexpr const char* line = "conv_forward x=f32:1x256x7x7 w=f32:32x256x3x3 pad=1";

  // Under which a variant that needs workspace serves.
  ContextOptions options_with_split() {
    const Request request = Request::parse(line);
    for (const ExplainedCandidate& candidate : context_.explain(request).estimated) {
      if (candidate.algorithm == "conv_implicit_gemm_splitk") return options_with_winner(request, candidate);
    }
    ADD_FAILURE() << "no variant needs workspace";
    return options();
  }
};

TEST_F(CallByNameWorkspaceTest, IsOfTheCallersOwn) {
  Context context(options_with_split());
  expect_right(line, [&](std::map<std::string, void*>& memory) {
    const Request request = Request::parse(line);  // whose names the tensors have
    const std::vector<NamedTensor> tensors = tensors_of(request, memory);
    const int64_t needed = plan_of_call(context, head, tensors).workspace_bytes();
    ASSERT_GT(needed, 0);
    const std::vector<std::byte> nothing(static_cast<size_t>(needed) + 1, std::byte{0x5a});
    auto* const workspace = static_cast<std::byte*>(upload(nothing));
    EXPECT_THAT(
        refusal_of([&] { call(context, head, tensors, {.workspace = workspace, .workspace_bytes = needed - 1}); }),
        HasSubstr(fmt::format("the workspace has {} bytes, expected {}", needed - 1, needed)));
    EXPECT_THAT(refusal_of([&] { call(context, head, tensors, {.workspace_bytes = needed}); }),
                HasSubstr(fmt::format("the workspace of {} bytes is null", needed)));
    EXPECT_THAT(
        refusal_of([&] { call(context, head, tensors, {.workspace = workspace + 4, .workspace_bytes = needed}); }),
        HasSubstr("the workspace is not 256-byte aligned"));
    EXPECT_THAT(refusal_of([&] { call(context, head, tensors, {.workspace = workspace, .workspace_bytes = -1}); }),
                HasSubstr("the workspace has -1 bytes"));
    // A workspace of one byte: the memory of another tensor may follow that of y.
    EXPECT_THAT(refusal_of([&] { call(context, head, tensors, {.workspace = memory["y"], .workspace_bytes = 1}); }),
                HasSubstr("conv_forward: the memory of the workspace and y overlaps"));
    const Epilogue gated = expression("acc * gate", {{"gate", Tensor(workspace, f32, {1, 1, 1, 1}, contiguous)}});
    EXPECT_THAT(refusal_of([&] {
                  call(context, head, tensors, {.epilogue = gated, .workspace = workspace, .workspace_bytes = needed});
                }),
                HasSubstr("conv_forward: the memory of the workspace and gate overlaps"));
    EXPECT_EQ(download(workspace, nothing.size()), nothing) << "nothing ran";
    call(context, head, tensors, {.workspace = workspace, .workspace_bytes = needed});
    const std::vector<std::byte> used = download(workspace, nothing.size());
    EXPECT_NE(used, nothing);
    EXPECT_EQ(used.back(), nothing.back());
  });
}

TEST_F(CallByNameWorkspaceTest, LetsTheCallBeCaptured) {
  using namespace cuda_abi;
  using Table = device::DriverTable;
  Context context(options_with_split());
  device::Stream stream(device_);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  expect_right(line, [&](std::map<std::string, void*>& memory) {
    const Request request = Request::parse(line);  // whose names the tensors have
    const std::vector<NamedTensor> tensors = tensors_of(request, memory);
    const int64_t needed = plan_of_call(context, head, tensors).workspace_bytes();
    void* const workspace = upload(std::vector<std::byte>(static_cast<size_t>(needed)));
    ASSERT_EQ(device_->call(&Table::cuStreamBeginCapture_v2, stream.raw(), CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_SUCCESS);
    EXPECT_THAT(refusal_of([&] { call(context, head, tensors, {}, stream.raw()); }, ErrorCode::unsupported),
                HasSubstr("captured"));
    call(context, head, tensors, {.workspace = workspace, .workspace_bytes = needed}, stream.raw());
    ASSERT_EQ(device_->call(&Table::cuStreamEndCapture, stream.raw(), &graph), CUDA_SUCCESS);
    ASSERT_EQ(device_->call(&Table::cuGraphInstantiateWithFlags, &executable, graph, 0ULL), CUDA_SUCCESS);
    ASSERT_EQ(device_->call(&Table::cuGraphLaunch, executable, stream.raw()), CUDA_SUCCESS);
    stream.synchronize();
  });
  device_->call(&Table::cuGraphExecDestroy, executable);
  device_->call(&Table::cuGraphDestroy, graph);
}

TEST_F(CallByNameTest, SaysWhichNameIsWrong) {
  const Tensor x = tensor({1, 2}), y = tensor({0, 0});
  const auto refusal = [&](std::string_view what, std::vector<NamedTensor> tensors, const CallOptions& more = {},
                           ErrorCode code = ErrorCode::invalid_argument) {
    return refusal_of([&] { call(context_, what, tensors, more); }, code);
  };
  EXPECT_THAT(refusal("softmax_fwd", {}), HasSubstr("softmax_fwd"));
  EXPECT_THAT(refusal("", {}), HasSubstr("operation"));
  EXPECT_THAT(refusal("softmax_forward", {{"x", x}, {"yy", y}}),
              AllOf(HasSubstr("softmax_forward has no tensor 'yy'"), HasSubstr("did you mean y")));
  EXPECT_THAT(refusal("softmax_forward", {{"x", x}, {"x", x}}), HasSubstr("tensor x is given twice"));
  EXPECT_THAT(refusal("softmax_forward", {{"y", y}}), HasSubstr("softmax_forward: tensor x is not given"));
  const auto missing = [&](std::string_view what, const std::vector<std::string_view>& names) {
    const std::string refused = refusal(what, ones(names));
    EXPECT_EQ(refusal_of([&] { (void)plan_of_call(context_, what, ones(names)); }), refused);
    return refused;
  };
  EXPECT_THAT(missing("conv_forward", {"x", "w"}), HasSubstr("conv_forward: tensor y is not given"));
  EXPECT_THAT(missing("conv_forward epilogue=bias", {"x", "w", "y"}),
              HasSubstr("conv_forward: tensor bias is not given"));
  EXPECT_THAT(refusal("softmax_foward", {}), HasSubstr("did you mean softmax_forward?"));
  EXPECT_THAT(refusal("conv_forward constant_weights", ones({"x", "w", "y"})),
              HasSubstr("conv_forward: a call has constant_weights"));
  EXPECT_EQ(plan_of_call(context_, "conv_forward constant_weights", ones({"x", "w", "y"})).request().constant_weights,
            true);
  EXPECT_THAT(
      refusal("norm_backward parameter_alpha=any", {{"dy", x}, {"x", x}, {"mean", x}, {"inv_deviation", x}, {"dx", y}}),
      HasSubstr("the text of a call has the class parameter_alpha"));
  EXPECT_THAT(refusal("softmax_forward x=f32:1x2", {{"x", x}, {"y", y}}),
              HasSubstr("the text of a call has operand x"));
  for (const char* word : {"alpha=any", "alpha=1", "beta=0", "beta=2"}) {
    EXPECT_THAT(refusal(fmt::format("softmax_forward {}", word), {{"x", x}, {"y", y}}),
                AllOf(HasSubstr("the text of a call has the class"), HasSubstr("give the number by name")))
        << word;
  }
  const std::string digest = Expression("acc").digest();
  for (const std::string& word : {std::string("gated"), digest}) {
    EXPECT_THAT(refusal("softmax_forward epilogue=user:" + word, {{"x", x}, {"y", y}}),
                AllOf(HasSubstr("the text of a call has user code"), HasSubstr("give it in the options")))
        << word;
  }
  EXPECT_THAT(refusal("softmax_forward epilogue.gate=f32:1x2", {{"x", x}, {"y", y}}),
              HasSubstr("the text of a call has user code"));
  EXPECT_THAT(refusal("softmax_forward mood=log", {{"x", x}, {"y", y}}, {}, ErrorCode::parse_error), HasSubstr("mood"));
  EXPECT_THAT(refusal(std::string(513, 's'), {}), HasSubstr("513 bytes"));
  const std::array twice{NamedScalar{"alpha", 1}, NamedScalar{"alpha", 1}};
  EXPECT_THAT(refusal("softmax_forward", {{"x", x}, {"y", y}}, {.numbers = twice}),
              HasSubstr("number alpha is given twice"));
  const std::array unknown{NamedScalar{"epsilon", 1}};
  EXPECT_THAT(refusal("softmax_forward", {{"x", x}, {"y", y}}, {.numbers = unknown}),
              AllOf(HasSubstr("no number 'epsilon'"), HasSubstr("it takes alpha, beta, clip_lo, clip_hi")));
  const std::array integers{NamedInteger{"seed", 1}};
  EXPECT_THAT(refusal("softmax_forward", {{"x", x}, {"y", y}}, {.integers = integers}),
              AllOf(HasSubstr("no integer 'seed'"), HasSubstr("it takes none")));
  EXPECT_THAT(refusal("gemm", {}, {.epilogue = relu}), HasSubstr("write them into the text"));
  EXPECT_THAT(refusal("tensor_set", {{"y", y}}, {.numbers = std::array{NamedScalar{"alpha", 2}}}),
              HasSubstr("tensor_set"));
}

TEST(CallShapes, AreOfEveryOperation) {
  for (const Operation* each : operations()) {
    for (const OperandDefinition& output : each->operands()) {
      for (const std::string_view same : output.may_be) {
        EXPECT_NE(output.role, Role::input) << each->name() << " " << output.name;
        const auto is_it = [&](const OperandDefinition& other) { return other.name == same && &other != &output; };
        EXPECT_TRUE(std::any_of(each->operands().begin(), each->operands().end(), is_it))
            << each->name() << " " << same;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::call_by_name_test
