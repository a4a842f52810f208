// First calls by open kernels: what serves them, what serves later ones, and that nothing is compiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/call.h"
#include "kiln/context.h"
#include "kiln/cuda_graph.h"
#include "kiln/runtime/bundling.h"
#include "kiln/softmax.h"
#include "kiln/templates/catalogue.h"
#include "open_bundle.h"

namespace kiln::at_once_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class AtOnceTest : public DeviceTest {
 protected:
  AtOnceTest() { std::filesystem::remove_all(store_); }
  ~AtOnceTest() override { std::filesystem::remove_all(store_); }

  ContextOptions at_once() const {
    ContextOptions options = this->options();
    options.kernel_store = store_;
    options.first_call = FirstCall::at_once;
    return options;
  }

  // Has `context` make an open kernel of a layer, by a first size of it.
  static void know(Context& context, const std::string& size) {
    EXPECT_FALSE(context.plan(Request::parse(size)).is_open());
    context.wait_until_tuned();
  }

  // A Context that has a bundle of the open kernels of `lines` and no compiler.
  ContextOptions with_open_kernels(const std::vector<std::string>& lines) {
    made_with_ = test::write_open_bundle(bundle_, lines, device_->device().info(), *options().environment);
    return with_bundle();
  }
  ContextOptions with_bundle() const {
    ContextOptions options = this->options();
    options.bundles = {bundle_};
    options.environment->nvrtc = "/nonexistent/libnvrtc.so";
    return options;
  }

  std::vector<Request> made_with_;  // the sizes whose whole programs the bundle has
  const std::string store_ = testing::TempDir() + "kiln_at_once_store";
  const std::string bundle_ = testing::TempDir() + "kiln_at_once.kiln";
};

TEST_F(AtOnceTest, FurtherSizesOfALayerCompileNothing) {
  Context context(at_once());
  EXPECT_FALSE(context.plan(Request::parse("softmax_forward x=f32:5x36")).is_open());
  context.wait_until_tuned();
  const uint64_t compiled = context.compiles().kernels;
  EXPECT_EQ(compiled, 2U) << "the first size's own kernel, and behind it one for further sizes";
  const Request further = Request::parse("softmax_forward x=f32:2x41");
  const Plan plan = context.plan(further);
  EXPECT_TRUE(plan.is_open());
  expect_matches_reference(further, plan);
}

TEST_F(AtOnceTest, OpenKernelsOfOtherLayersDoNotServe) {
  Context context(at_once());
  know(context, "softmax_forward x=f32:5x36");
  for (const char* const other :
       {"softmax_forward x=f16:5x36", "softmax_forward x=f32:5x36 mode=log", "softmax_forward x=f32:2x5x6x6"}) {
    const Request request = Request::parse(other);
    expect_matches_reference(request, context.plan(request));
  }
}

TEST_F(AtOnceTest, AnExactKernelOfTheStoreServesFirst) {
  ContextOptions exact = at_once();
  exact.first_call = FirstCall::exact;
  const Request request = Request::parse("softmax_forward x=f32:5x37");
  (void)Context(exact).plan(request);
  Context context(at_once());
  EXPECT_FALSE(context.plan(request).is_open());
  EXPECT_EQ(context.compiles().kernels, 0U);
}

// A pack is worth its compile: what serves until then is an open kernel, not what the store has of another variant.
TEST_F(AtOnceTest, WhatIsTunedAndNotCompiledIsMade) {
  const Request request = Request::parse("softmax_forward x=f32:5x37");
  ContextOptions exact = at_once();
  exact.first_call = FirstCall::exact;
  Context stores(exact);
  const std::string by_default = stores.plan(request).variant();
  const ExplainedCandidate tuned = stores.explain(request).estimated.at(1);
  ContextOptions options = options_with_winner(request, tuned);
  options.kernel_store = store_;
  options.first_call = FirstCall::at_once;
  {
    Context context(options);
    EXPECT_EQ(context.plan(request).variant(), tuned.algorithm + " " + tuned.config) << "no open kernel is there";
  }
  std::filesystem::remove_all(store_);
  (void)Context(exact).plan(request);  // by default again: its kernel alone is stored
  Context context(options);
  know(context, "softmax_forward x=f32:4x37");
  EXPECT_TRUE(context.plan(request).is_open());
  context.wait_until_tuned();
  EXPECT_EQ(context.plan(request).variant(), tuned.algorithm + " " + tuned.config);
  EXPECT_NE(context.plan(request).variant(), by_default);
}

TEST_F(AtOnceTest, SizesThatAnOpenKernelDoesNotSuitGetAnother) {
  Context context(at_once());
  know(context, "gemm a=f32:3x5 b=f32:5x4");
  const Plan small = context.plan(Request::parse("gemm a=f32:3x6 b=f32:6x4"));
  const Plan first = context.plan(Request::parse("gemm a=f32:4096x1024 b=f32:1024x4096"));
  EXPECT_TRUE(small.is_open() && first.is_open());
  EXPECT_EQ(small.variant(), first.variant());
  context.wait_until_tuned();
  const Plan later = context.plan(Request::parse("gemm a=f32:4096x1040 b=f32:1040x4096"));
  EXPECT_TRUE(later.is_open());
  EXPECT_NE(later.variant(), first.variant());
}

TEST_F(AtOnceTest, PlansThatWereGivenUpComeBackAsTheirOwn) {
  ContextOptions few = at_once();
  few.kept_plans = 2;
  Context context(few);
  for (int round = 0; round < 2; ++round) {
    for (int rows = 1; rows <= 5; ++rows) {
      const Request request = Request::parse("softmax_forward x=f32:" + std::to_string(rows) + "x37");
      const Plan plan = context.plan(request);
      EXPECT_EQ(plan.is_open(), round == 0 && rows > 1) << rows;
      expect_matches_reference(request, plan);
      context.wait_until_tuned();
    }
  }
}

TEST_F(AtOnceTest, ACompileIsWaitedForRatherThanASlowKernel) {
  Context context(at_once());
  know(context, "gemm a=f32:3x5 b=f32:5x4");
  EXPECT_TRUE(context.plan(Request::parse("gemm a=f32:300x500 b=f32:500x400")).is_open());
  EXPECT_FALSE(context.plan(Request::parse("gemm a=f32:40000x40000 b=f32:40000x40000")).is_open());
}

TEST_F(AtOnceTest, AnOpenKernelServesUntilThePlanOfTheShapeIsThere) {
  Context context(at_once());
  know(context, "softmax_forward x=f32:5x36");
  const Request request = Request::parse("softmax_forward x=f32:5x37");
  const Plan first = context.plan(request);
  EXPECT_THAT(first.variant(), HasSubstr("_open "));
  EXPECT_EQ(first.source(), "open kernel");
  EXPECT_TRUE(first.is_open());
  expect_matches_reference(request, first);
  context.wait_until_tuned();
  EXPECT_TRUE(first.is_superseded());
  const Plan later = context.plan(request);
  EXPECT_THAT(later.variant(), Not(HasSubstr("_open ")));
  EXPECT_FALSE(later.is_open() || later.is_superseded());
  expect_matches_reference(request, later);
  EXPECT_THAT(first.variant(), HasSubstr("_open ")) << "a plan that the application holds never changes";
  expect_matches_reference(request, first);
}

TEST_F(AtOnceTest, CallsTakeTheExactPlanOnceItIsThere) {
  Context context(at_once());
  know(context, "softmax_forward x=f32:1x36");
  for (const int64_t length : {37, 38, 500}) {
    const std::vector<float> ones(static_cast<size_t>(length), 1);
    void* const x = upload(ones);
    void* const y = upload(ones);
    for (int call = 0; call < 2; ++call) {
      softmax_forward(context, Tensor(x, f32, {1, length}, nc), Tensor(y, f32, {1, length}, nc));
      for (const float value : download<float>(y, ones.size())) EXPECT_NEAR(value * length, 1, 1e-5);
      context.wait_until_tuned();
    }
  }
}

// A graph keeps what it is made of. The background would take a compile's time for the plan that is looked for here.
TEST_F(AtOnceTest, ACapturedCallWaitsForThePlanOfItsShape) {
  ContextOptions options = at_once();
  options.environment->log = true;
  Context context(options);
  know(context, "softmax_forward x=f32:1x36");
  const std::vector<float> ones(37, 1), nothing(37, -1000);
  void* const x = upload(ones);
  void* const y = upload(nothing);
  const auto call = [&](Stream stream) {
    softmax_forward(context, Tensor(x, f32, {1, 37}, nc), Tensor(y, f32, {1, 37}, nc), {}, stream);
  };
  const auto said = [](const auto& work) {
    testing::internal::CaptureStderr();
    work();
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said([&] { call(nullptr); }), HasSubstr("_open "));
  std::optional<CudaGraph> graph;
  EXPECT_THAT(said([&] { graph.emplace(context, call); }), testing::AllOf(HasSubstr("37"), Not(HasSubstr("_open "))));
  EXPECT_FALSE(context.plan(Request::parse("softmax_forward x=f32:1x37")).is_open());
  graph->launch(nullptr);
  for (const float value : download<float>(y, ones.size())) EXPECT_NEAR(value * 37, 1, 1e-5);
}

TEST_F(AtOnceTest, ACapturedCallIsOfTheOpenKernelWhereNothingElseCanBeMade) {
  Context context(with_open_kernels({"softmax_forward x=f32:?x?"}));
  const std::vector<float> ones(37, 1);
  void* const x = upload(ones);
  void* const y = upload(ones);
  const auto call = [&](Stream stream) {
    softmax_forward(context, Tensor(x, f32, {1, 37}, nc), Tensor(y, f32, {1, 37}, nc), {}, stream);
  };
  call(nullptr);
  for (int i = 0; i < 2; ++i) {
    const CudaGraph graph(context, call);
    graph.launch(nullptr);
    for (const float value : download<float>(y, ones.size())) EXPECT_NEAR(value * 37, 1, 1e-5);
  }
  EXPECT_TRUE(context.plan(Request::parse("softmax_forward x=f32:1x37")).is_open());
}

// Workspace that it tells has to suffice for later calls.
TEST_F(AtOnceTest, PlanOfCallGivesThePlanOfTheShape) {
  Context context(at_once());
  know(context, "softmax_forward x=f32:1x36");
  const std::vector<float> ones(40, 1);
  void* const x = upload(ones);
  const auto plan_of = [&](int64_t length) {
    const Tensor tensor(x, f32, {1, length}, nc);
    return plan_of_call(context, "softmax_forward", {{"x", tensor}, {"y", tensor}});
  };
  EXPECT_FALSE(plan_of(37).is_open());
  EXPECT_TRUE(context.plan(Request::parse("softmax_forward x=f32:1x38")).is_open());
  EXPECT_FALSE(plan_of(38).is_open());
}

TEST_F(AtOnceTest, SizesOfOneClassShareWhatIsCompiled) {
  const std::vector<std::string> sizes = {"softmax_forward x=f32:3x4100", "softmax_forward x=f32:2x8200",
                                          "softmax_forward x=f32:1x12300"};
  for (const std::string& size : sizes) {
    Context context(at_once());  // another process would find the same store
    const Plan plan = context.plan(Request::parse(size));
    EXPECT_EQ(plan.is_open(), size != sizes.front());
    context.wait_until_tuned();
    expect_matches_reference(Request::parse(size), plan);
  }
  // An exact kernel for each, and one open kernel for all.
  size_t kept = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(store_)) kept += entry.file_size() > 1000;
  EXPECT_LE(kept, sizes.size() + 1);
}

TEST_F(AtOnceTest, PlansOfManyRequestsAreMadeTogether) {
  Context context(at_once());
  know(context, "softmax_forward x=f32:5x36");
  const std::vector<Request> requests = {Request::parse("softmax_forward x=f32:6x41"),
                                         Request::parse("softmax_forward x=f32:6x42"),
                                         Request::parse("conv_forward x=f32:1x3x9x9 w=f32:4x3x3x3 deterministic")};
  const std::vector<Plan> plans = context.plans(requests);
  ASSERT_EQ(plans.size(), requests.size());
  for (size_t i = 0; i < plans.size(); ++i) {
    EXPECT_EQ(plans[i].request().key(), requests[i].key());
    EXPECT_EQ(plans[i].is_open(), i < 2);
  }
  EXPECT_TRUE(context.plans({}).empty());
  Request wrong = requests[0];
  wrong.operation = "softmax_backwards";
  EXPECT_THROW(context.plans(std::vector{wrong, requests[1]}), Error);
}

TEST_F(AtOnceTest, PrepareCompilesNoOpenKernels) {
  Context context(at_once());
  context.prepare(std::vector{Request::parse("softmax_forward x=f32:6x41")});
  context.wait_until_tuned();
  EXPECT_EQ(context.compiles().kernels, 1U);
}

TEST_F(AtOnceTest, PreparedAndDeterministicRequestsGetTheirPlanAtOnce) {
  Context context(at_once());
  const Request prepared = Request::parse("softmax_forward x=f32:6x41");
  context.prepare(std::vector{prepared});
  EXPECT_THAT(context.plan(prepared).variant(), Not(HasSubstr("_open ")));
  EXPECT_THAT(context.plan(Request::parse("conv_forward x=f32:1x3x9x9 w=f32:4x3x3x3 deterministic")).variant(),
              Not(HasSubstr("_open ")));
}

TEST_F(AtOnceTest, ABundleOfOpenKernelsServesSizesOfAllKindsWithoutACompiler) {
  Context context(with_open_kernels({"softmax_forward x=f32:?50x?300", "gemm a=f32:?mx?k b=f32:?kx48 c=f32:?mx48"}));
  std::mt19937 draw(7);
  for (int i = 0; i < 200; ++i) {
    const auto number = [&](unsigned most) { return std::to_string(1 + draw() % most); };
    const std::string m = number(70), k = number(90);
    const std::string line = i % 2 == 0 ? "softmax_forward x=f32:" + number(50) + "x" + number(300)
                                        : "gemm a=f32:" + m + "x" + k + " b=f32:" + k + "x48 c=f32:" + m + "x48";
    const Request request = Request::parse(line);
    const Plan plan = context.plan(request);
    EXPECT_THAT(plan.variant(), HasSubstr("_open "));
    if (i % 4 == 0) expect_matches_reference(request, plan);
  }
  EXPECT_EQ(context.compiles().kernels, 0U);
  // Whatever came before, a size gets the best that is there.
  for (const char* const size :
       {"gemm a=f32:3x5 b=f32:5x48", "gemm a=f32:4096x1024 b=f32:1024x48", "gemm a=f32:13x13 b=f32:13x48"}) {
    const Request request = Request::parse(size);
    EXPECT_EQ(context.plan(request).variant(), Context(with_bundle()).plan(request).variant());
  }
  const device::DeviceInfo& info = device_->device().info();
  const Catalogue catalogue = make_catalogue(embedded_sources());
  for (const Request& request : made_with_) {
    const Plan plan = Context(with_bundle()).plan(request);
    const std::string algorithm = plan.variant().substr(0, plan.variant().find(' '));
    const Choice choice{algorithm, Config::parse(plan.variant().substr(algorithm.size() + 1))};
    const Target target{Arch::of(info.cc_major, info.cc_minor), 13, 0};
    Request unaligned = request;
    for (Operand& operand : unaligned.operands) operand.spec.alignment = 4;
    std::vector<std::string> digests;
    for (const Request& form : {request, unaligned}) {
      if (!catalogue.refusal(form, target, choice)) digests.push_back(catalogue.program(form, target, choice).digest());
    }
    EXPECT_THAT(digests, Contains(plan.program())) << request.key();
  }
  ContextOptions locked = with_bundle();
  locked.locked = true;
  EXPECT_FALSE(Context(locked).explain(Request::parse("softmax_forward x=f32:3x77")).chosen);
  const Explanation why = context.explain(Request::parse("softmax_forward x=f32:3x77"));
  ASSERT_TRUE(why.chosen);
  EXPECT_EQ(why.chosen->source, "open kernel");
}

// One channel: x is packed in channels first as well, by which name it goes, and a y that is left out would follow it.
TEST_F(AtOnceTest, ABundleServesSizesOfOneChannelInBothLayouts) {
  Context context(with_open_kernels({"conv_forward x=f32:2x?cx9x9:nhwc w=f32:5x?cx3x3:nhwc pad=1"}));
  for (const char* const size : {"conv_forward x=f32:2x1x9x9:nhwc w=f32:5x1x3x3:nhwc pad=1",
                                 "conv_forward x=f32:2x1x9x9:nhwc w=f32:5x1x3x3:nhwc y=f32:2x5x9x9:nhwc pad=1",
                                 "conv_forward x=f32:2x7x9x9:nhwc w=f32:5x7x3x3:nhwc pad=1"}) {
    const Request request = Request::parse(size);
    expect_matches_reference(request, context.plan(request));
  }
}

TEST_F(AtOnceTest, PreparedOpenKernelsServeTheFirstCallOfEverySize) {
  Context context(at_once());
  context.prepare_open(
      "# two layers\nsoftmax_forward x=f32:?50x?300 *3\nactivation_forward x=f16:?nx?c y=f16:?nx?c mode=relu\n");
  EXPECT_GT(context.compiles().kernels, 0U);
  std::mt19937 draw(11);
  for (int i = 0; i < 60; ++i) {
    const auto number = [&](unsigned most) { return std::to_string(1 + draw() % most); };
    const std::string rows = number(50), columns = number(300), extents = rows + "x" + columns;
    const Request request = Request::parse(i % 2 == 0 ? "softmax_forward x=f32:" + extents
                                                      : "activation_forward x=f16:" + extents + " mode=relu");
    const Plan plan = context.plan(request);  // the exact one is made behind it
    EXPECT_TRUE(plan.is_open()) << request.key();
    if (i % 6 == 0) expect_matches_reference(request, plan);
  }
}

TEST_F(AtOnceTest, OpenKernelsOfABundleNeedNoCompilerToBePrepared) {
  const std::string line = "softmax_forward x=f32:?50x?300";
  (void)with_open_kernels({line});
  ContextOptions options = with_bundle();
  options.first_call = FirstCall::at_once;
  Context context(options);
  context.prepare_open(line);
  EXPECT_TRUE(context.plan(Request::parse("softmax_forward x=f32:33x77")).is_open());
  options.first_call = FirstCall::exact;  // there is nothing else that it could take
  EXPECT_NO_THROW(Context(options).prepare_open(line));
  const std::string missing =
      refusal_of([&] { context.prepare_open("softmax_forward x=f16:?50x?300"); }, ErrorCode::missing_library);
  EXPECT_THAT(missing, AllOf(HasSubstr("'softmax_forward x=f16:?50x?300'"), HasSubstr("kiln bundle --open")));
}

TEST_F(AtOnceTest, OpenKernelsAreCompiledOnce) {
  ContextOptions options = at_once();
  options.kernel_store = "off";
  Context context(options);
  context.prepare_open("softmax_forward x=f32:?50x?300");
  const uint64_t compiled = context.compiles().kernels;
  EXPECT_GT(compiled, 0U);
  for (int i = 0; i < 2; ++i) context.prepare_open("softmax_forward x=f32:?50x?300\nsoftmax_forward x=f32:?40x?200");
  EXPECT_EQ(context.compiles().kernels, compiled);
}

// Extents that are drawn apart seldom fit each other.
TEST_F(AtOnceTest, LinesOfWhichFewSizesFitAreAnnounced) {
  std::vector<std::string> announced;
  ContextOptions options = at_once();
  options.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context context(options);
  context.prepare_open("pool_backward dy=f32:2x3x?px?p x=f32:2x3x?hx?h mode=max window=3 stride=2 pad=1");
  ASSERT_EQ(announced.size(), 1U);
  EXPECT_THAT(announced[0], AllOf(HasSubstr("that were drawn make a request"), HasSubstr("depend on each other")));
}

TEST_F(AtOnceTest, OpenKernelsThatNoCallWouldTakeAreNotPrepared) {
  const std::string line = "softmax_forward x=f32:?x?";
  const auto refusal = [&](const ContextOptions& options, const std::string& lines) {
    Context context(options);
    const std::string text = refusal_of([&] { context.prepare_open(lines); }, ErrorCode::unsupported);
    EXPECT_EQ(context.compiles().kernels, 0U) << text;
    return text;
  };
  EXPECT_THAT(refusal(options(), line), HasSubstr("FirstCall::at_once"));
  ContextOptions locked = at_once();
  locked.locked = true;
  EXPECT_THAT(refusal(locked, line), HasSubstr("locked"));
  ContextOptions deterministic = at_once();
  deterministic.deterministic = true;
  EXPECT_THAT(refusal(deterministic, line), HasSubstr("no later plan may change the bits"));
  EXPECT_THAT(refusal(at_once(), "gemm a=f32:?mx8 b=f32:8x4 c=f32:?mx4 deterministic"), HasSubstr("deterministic"));
  EXPECT_THAT(refusal(at_once(), line + "\nlocal_conv_forward x=f32:?x4x6x6 w=f32:16x4x3x3 pad=1 grid=2"),
              HasSubstr("'local_conv_forward x=f32:?x4x6x6 w=f32:16x4x3x3 pad=1 grid=2' has no open kernels"));
  Context wrong(at_once());
  EXPECT_THAT(refusal_of([&] { wrong.prepare_open(line + "\n" + line + " axis=7"); }),
              AllOf(HasSubstr("'softmax_forward x=f32:?x? axis=7'"), HasSubstr("axis=7': ")));
  EXPECT_THAT(refusal_of([&] { wrong.prepare_open("sofmax_forward x=f32:?x?"); }, ErrorCode::parse_error),
              HasSubstr("did you mean softmax_forward"));
  Context with_code(at_once());
  EXPECT_THAT(refusal_of([&] { with_code.prepare_open("expression twice\n2 * acc\nend\n" + line); }),
              HasSubstr("user code"));
  ContextOptions batches_alike = deterministic;
  batches_alike.batch_invariant = true;
  Context context(batches_alike);
  context.prepare_open("pool_forward x=f32:?x3x9x9 mode=max window=3");
  EXPECT_TRUE(context.plan(Request::parse("pool_forward x=f32:7x3x9x9 mode=max window=3")).is_open());
}

TEST_F(AtOnceTest, LinesThatNoSizeServesAreGapsWithTheReason) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  const auto nvrtc = device::Nvrtc::open({options().environment->nvrtc});
  BundleOptions what;
  what.archs = {Arch::of(9, 0)};
  const std::vector<std::string> lines = {"softmax_forward x=f32:?x? axis=7", "softmax_fast x=f32:?x?",
                                          "softmax_forward x?"};
  const BundlePlan plan = plan_open_kernels(lines, catalogue, *nvrtc, what);
  ASSERT_EQ(plan.gaps.size(), 3U);
  EXPECT_THAT(plan.gaps[0].reason, HasSubstr("axis"));
  EXPECT_THAT(plan.gaps[1].reason, HasSubstr("softmax_fast"));
  EXPECT_THAT(plan.gaps[2].reason, HasSubstr("no size of 'softmax_forward x?' makes a request"));
  EXPECT_TRUE(plan.choices.empty());
  for (const char* const wrong : {"softmax_forward x=f32:?99999999999x?", "softmax_forward x=f32:?0x?",
                                  "softmax_forward x=f32:?-1x?", "softmax_forward x=f32:??x?"}) {
    const std::vector<std::string> line = {wrong};
    EXPECT_THROW(plan_open_kernels(line, catalogue, *nvrtc, what), Error) << wrong;
  }
}

TEST_F(AtOnceTest, TheVariableAsksForIt) {
  ContextOptions options = this->options();
  options.environment->first_call = FirstCall::at_once;
  options.kernel_store = store_;  // that of all tests may have an open kernel of the layer
  Context context(options);
  know(context, "softmax_forward x=f32:5x36");
  EXPECT_THAT(context.plan(Request::parse("softmax_forward x=f32:5x43")).variant(), HasSubstr("_open "));
  options.first_call = static_cast<FirstCall>(7);
  EXPECT_THROW((void)Context(options), Error);
}

}  // namespace
}  // namespace kiln::at_once_test
