// Models whose steps open kernels serve until their own plans are made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "instance.h"
#include "kiln/cuda_graph.h"
#include "kiln/device/context.h"
#include "kiln/memory.h"
#include "model_fixture.h"
#include "open_bundle.h"

namespace kiln::model_at_once_test {
namespace {

using models::HostArray;
using test::floats;
using test::ModelTest;
using test::OnnxModel;
using test::random_values;
using test::small_network;
using test::small_network_of;
using test::values_of;

class ModelAtOnceTest : public ModelTest {
 protected:
  ModelAtOnceTest() : ModelTest(at_once()) {}
  ~ModelAtOnceTest() override { std::filesystem::remove_all(store()); }

  static std::string store() { return testing::TempDir() + "kiln_model_at_once_store"; }
  static ContextOptions at_once() {
    std::filesystem::remove_all(store());
    ContextOptions how = options();
    how.kernel_store = store();
    how.first_call = FirstCall::at_once;
    return how;
  }

  // Has the Context make open kernels for further sizes of a network.
  void know(const OnnxModel& network, const ModelOptions& how) {
    (void)load(network, how);
    context_.wait_until_tuned();
  }

  static int64_t open_steps(const Model& model) {
    return std::ranges::count(model.steps(), std::string("open kernel"), &ModelStep::source);
  }

  void expect_right(Model& model, int64_t batch) {
    const std::vector<float> x = random_values(static_cast<size_t>(batch) * 105, static_cast<unsigned>(batch));
    const std::vector<HostArray> inputs = {floats({batch, 3, 7, 5}, x)};
    const std::vector<float> y = values_of(models::run_on_host(context_, model, inputs).at(0));
    const std::vector<double> expected = small_network_of(x, batch);
    ASSERT_EQ(y.size(), expected.size());
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(static_cast<double>(y[i]), expected[i], 1e-5);
  }
};

TEST_F(ModelAtOnceTest, StepsTakeTheirPlansOnceTheseAreMade) {
  Model model = open(small_network());
  model.set_batch(3);
  expect_right(model, 3);  // by own plans, unless an open kernel was made for the class of a layer by then
  context_.wait_until_tuned();
  for (const int64_t batch : {2, 5}) {
    model.set_batch(batch);
    EXPECT_GT(open_steps(model), 2);
    expect_right(model, batch);
    context_.wait_until_tuned();
    expect_right(model, batch);
    EXPECT_EQ(open_steps(model), 0);
    for (const ModelStep& step : model.steps()) EXPECT_EQ(step.variant, context_.plan(step.request).variant());
  }
  model.set_batch(2);
  EXPECT_EQ(open_steps(model), 0) << "of a size that is kept";
  expect_right(model, 2);
}

// A step's own plan is held by the open one that the Model has: fewer plans than it has steps are kept for nobody.
TEST_F(ModelAtOnceTest, StepsTakeTheirPlansHoweverFewAreKept) {
  ContextOptions few = at_once();
  few.kept_plans = 2;
  Context context(few);
  const test::TemporaryFile file(small_network().bytes());
  Model model(context, file.path(), {.batch = 3});
  context.wait_until_tuned();
  model.set_batch(2);
  EXPECT_GT(open_steps(model), 2);
  context.wait_until_tuned();
  const std::vector<float> x = random_values(210, 2);
  const std::vector<HostArray> inputs = {floats({2, 3, 7, 5}, x)};
  const std::vector<float> y = values_of(models::run_on_host(context, model, inputs).at(0));
  EXPECT_EQ(open_steps(model), 0);
  const std::vector<double> expected = small_network_of(x, 2);
  ASSERT_EQ(y.size(), expected.size());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(static_cast<double>(y[i]), expected[i], 1e-5);
}

TEST_F(ModelAtOnceTest, GraphsAreMadeOfTheirOwnPlans) {
  know(small_network(), {.batch = 3});
  Model model = load(small_network());
  const int64_t open_at_first = open_steps(model);
  const std::vector<float> x = random_values(105, 3), nothing(2, -1000);
  DeviceMemory in(context_, x.size() * sizeof(float)), out(context_, nothing.size() * sizeof(float));
  in.upload(std::as_bytes(std::span(x)));
  const std::vector<double> expected = small_network_of(x, 1);
  const auto enqueue = [&](Stream stream) {
    model.run({{"x", Tensor(in.data(), f32, {1, 3, 7, 5}, contiguous)}},
              {{"y", Tensor(out.data(), f32, {1, 2}, contiguous)}}, stream);
  };
  const auto run = [&] {
    out.upload(std::as_bytes(std::span(nothing)));
    enqueue(nullptr);
  };
  const auto expect_result = [&] {
    std::vector<float> y(2);
    out.download(std::as_writable_bytes(std::span(y)));
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(static_cast<double>(y[i]), expected[i], 1e-5);
  };
  for (int i = 0; i < 2; ++i) {
    run();
    expect_result();
  }
  // A graph of open kernels, unless a plan was made by now.
  EXPECT_TRUE(model.graphs().kept == 1 || open_steps(model) < open_at_first);
  // A graph of the application's keeps the kernels that it was made of: the plans of all steps are waited for.
  const bool takes_plans = open_steps(model) > 0;
  CudaGraph captured(context_, enqueue);
  EXPECT_EQ(open_steps(model), 0);
  if (takes_plans) {
    EXPECT_EQ(model.graphs().kept, 0U) << "of kernels that are replaced";
  }
  for (int i = 0; i < 4; ++i) {
    run();
    expect_result();
  }
  EXPECT_EQ(model.graphs().kept, 1U) << model.graphs().unused_because;
  out.upload(std::as_bytes(std::span(nothing)));
  captured.launch(nullptr);
  expect_result();
}

// Winograd's transforms serve this convolution by default, and no open kernel has them: their filters and their
// workspace come with the step's plan.
class PreparedAtOnceTest : public ModelAtOnceTest {
 protected:
  static constexpr int64_t channels = 40, side = 12;

  static bool any_arena(int64_t) { return true; }

  static OnnxModel network() {
    OnnxModel network(13);
    network.input("x", {"N", channels, side, side});
    network.weights("w", {channels, channels, 3, 3}, random_values(channels * channels * 9, 1));
    network.node("Conv", {"x", "w"}, {"y"}, {{"pads", test::Ints{1, 1, 1, 1}}});
    network.output("y");
    return network;
  }
  static ModelOptions how(int64_t batch = 9) {
    return {.batch = batch, .dynamic_batch = true, .layout = ModelLayout::channels_first, .arithmetic = {.fast = true}};
  }
};

TEST_F(PreparedAtOnceTest, StepsGetTheFiltersAndTheWorkspaceOfTheirPlans) {
  const HostArray images = floats({9, channels, side, side}, random_values(9 * channels * side * side, 7));
  const auto results = [&](Context& context, Model& model) {
    return values_of(models::run_on_host(context, model, {&images, 1}).at(0));
  };
  Context exact(options());
  const test::TemporaryFile file(network().bytes());
  Model reference(exact, file.path(), how());
  const std::vector<float> expected = results(exact, reference);

  know(network(), how(8));
  Model model = load(network(), how());
  EXPECT_EQ(open_steps(model), 1);
  EXPECT_THAT(results(context_, model), testing::Pointwise(testing::FloatNear(1e-3F), expected));
  const ModelMemory before = model.memory();
  context_.wait_until_tuned();
  EXPECT_EQ(results(context_, model), expected);
  EXPECT_EQ(open_steps(model), 0);
  EXPECT_EQ(model.steps().at(0).variant, reference.steps().at(0).variant);
  EXPECT_GT(model.memory().weights, before.weights) << "filters that are transformed";
  EXPECT_GE(model.memory().arena, reference.memory().arena);
  EXPECT_EQ(results(context_, model), expected);
}

// To prepare filters runs kernels, which a capture forbids.
TEST_F(PreparedAtOnceTest, ACapturedRunLeavesOpenWhatHasToPrepare) {
  know(network(), how(8));
  Model model = load(network(), how());
  const std::vector<float> x = random_values(9 * channels * side * side, 7), nothing(x.size(), -1000);
  DeviceMemory in(context_, x.size() * sizeof(float)), out(context_, x.size() * sizeof(float));
  in.upload(std::as_bytes(std::span(x)));
  const auto enqueue = [&](Stream stream) {
    const auto tensor = [](DeviceMemory& memory) {
      return Tensor(memory.data(), f32, {9, channels, side, side}, contiguous);
    };
    model.run({{"x", tensor(in)}}, {{"y", tensor(out)}}, stream);
  };
  const auto result = [&] {
    std::vector<float> y(x.size());
    out.download(std::as_writable_bytes(std::span(y)));
    out.upload(std::as_bytes(std::span(nothing)));
    return y;
  };
  CudaGraph captured(context_, enqueue);
  EXPECT_EQ(open_steps(model), 1);
  enqueue(nullptr);
  const std::vector<float> expected = result();
  captured.launch(nullptr);
  EXPECT_THAT(result(), testing::Pointwise(testing::FloatNear(1e-3F), expected));
}

TEST_F(PreparedAtOnceTest, SizesShareWhatTheirPlansPrepare) {
  know(network(), how(8));
  const test::TemporaryFile file(network().bytes());
  models::Weights weights;
  const models::Lowered lowered = models::lower(file.path(), how());
  models::Instance one = models::make_instance(context_, lowered, weights);
  models::Instance other = models::make_instance(context_, lowered, weights);
  context_.wait_until_tuned();
  EXPECT_TRUE(models::take_exact_plans(context_, one, weights, any_arena, true));
  const int64_t bytes = weights.bytes();
  EXPECT_TRUE(models::take_exact_plans(context_, other, weights, any_arena, true));
  EXPECT_EQ(weights.bytes(), bytes);
  ASSERT_NE(one.calls[0].prepared, nullptr) << one.steps[0].variant;
  EXPECT_EQ(one.calls[0].prepared, other.calls[0].prepared);
  EXPECT_TRUE(one.open.empty());
  EXPECT_FALSE(models::take_exact_plans(context_, one, weights, any_arena, true));
}

// By default many blocks share these rows, each with a part of its own in the workspace; those of the open kernel that
// shorter rows left do not.
// What they read is in the arena too.
class GrowingAtOnceTest : public ModelAtOnceTest {
 protected:
  static constexpr int64_t rows = 2, length = 100000;

  GrowingAtOnceTest() {
    know(network(1000), {});
    in_.upload(std::as_bytes(std::span(x_)));
    for (size_t i = 0; i < length; ++i) {
      const double first = std::exp(static_cast<double>(x_[i])), second = std::exp(static_cast<double>(x_[length + i]));
      means_[0] += first / (first + second) / length;
      means_[1] += second / (first + second) / length;
    }
  }

  static OnnxModel network(int64_t columns = length) {
    OnnxModel network(13);
    network.input("x", {rows, columns});
    network.node("Softmax", {"x"}, {"shares"}, {{"axis", int64_t{0}}});
    network.node("ReduceMean", {"shares"}, {"y"}, {{"axes", test::Ints{1}}});
    network.output("y");
    return network;
  }
  void run(Model& model, Stream stream = nullptr) {
    model.run({{"x", Tensor(in_.data(), f32, {rows, length}, contiguous)}},
              {{"y", Tensor(out_.data(), f32, {rows, 1}, contiguous)}}, stream);
  }
  void expect_result() {
    std::vector<float> y(rows), nothing(rows, -1000);
    out_.download(std::as_writable_bytes(std::span(y)));
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(static_cast<double>(y[i]), means_[i], 1e-6);
    out_.upload(std::as_bytes(std::span(nothing)));
  }

  const std::vector<float> x_ = random_values(rows * length, 5);
  std::vector<double> means_ = std::vector<double>(rows);
  DeviceMemory in_{context_, x_.size() * sizeof(float)}, out_{context_, rows * sizeof(float)};
};

TEST_F(GrowingAtOnceTest, TheArenaGrowsForWhatAPlanNeeds) {
  Model model = load(network());
  run(model);
  expect_result();
  const int64_t arena = model.memory().arena;
  context_.wait_until_tuned();
  for (int i = 0; i < 3; ++i) {
    run(model);
    expect_result();
  }
  EXPECT_EQ(open_steps(model), 0);
  EXPECT_GT(model.memory().arena, arena);
  EXPECT_EQ(model.graphs().kept, 1U) << model.graphs().unused_because;
}

TEST_F(GrowingAtOnceTest, AGraphOfTheCallersKeepsItsMemory) {
  Model model = load(network());
  CudaGraph graph(context_, [&](Stream stream) { run(model, stream); });
  const int64_t arena = model.memory().arena;
  context_.wait_until_tuned();
  run(model);
  expect_result();
  EXPECT_EQ(model.memory().arena, arena);
  EXPECT_EQ(open_steps(model), 1) << "for ever";
  graph.launch(nullptr);
  expect_result();
  for (int i = 0; i < 3; ++i) {
    run(model);
    expect_result();
  }
  EXPECT_EQ(model.graphs().kept, 1U) << "of the open kernel too: " << model.graphs().unused_because;
}

TEST_F(GrowingAtOnceTest, AStepWithoutMemoryForItsPlanKeepsItsOpenKernel) {
  const test::TemporaryFile file(network().bytes());
  models::Weights weights;
  models::Instance instance = models::make_instance(context_, models::lower(file.path(), {}), weights);
  const int64_t arena = instance.use.arena;
  context_.wait_until_tuned();
  int asked = 0;
  EXPECT_TRUE(models::take_exact_plans(
      context_, instance, weights,
      [&](int64_t bytes) {
        EXPECT_GT(bytes, arena);
        return ++asked < 0;
      },
      true))
      << "the step that needs no more";
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(instance.use.arena, arena);
  EXPECT_TRUE(instance.open.empty());
  EXPECT_EQ(std::ranges::count_if(instance.calls, [](const models::LoadedStep& call) { return call.plan.is_open(); }),
            1);
  for (const models::LoadedStep& call : instance.calls) EXPECT_LT(call.workspace.value_or(0), arena);
}

// Without a compiler the open kernel that is there first serves, and a better one of the bundle replaces it.
TEST_F(GrowingAtOnceTest, StepsTakeABetterOpenKernelToo) {
  const std::string bundle = testing::TempDir() + "kiln_model_at_once.kiln";
  ContextOptions without = at_once();
  const auto device = device::ContextHandle::acquire(
      device::Device(device::Driver::open({without.environment->driver}), without.device));
  (void)test::write_open_bundle(
      bundle, {"softmax_forward x=f32:2x?200000 axis=0", "reduce x=f32:2x?200000 y=f32:2x1 axes=1 mode=mean"},
      device->device().info(), *without.environment);
  without.bundles = {bundle};
  without.environment->nvrtc = "/nonexistent/libnvrtc.so";
  Context context(without);
  const test::TemporaryFile small(network(1000).bytes()), large(network().bytes());
  (void)Model(context, small.path(), {});
  Model model(context, large.path(), {});
  const std::string first = model.steps().back().variant;
  context.wait_until_tuned();
  const HostArray x = floats({rows, length}, x_);
  const std::vector<float> y = values_of(models::run_on_host(context, model, {&x, 1}).at(0));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(static_cast<double>(y[i]), means_[i], 1e-6);
  const ModelStep last = model.steps().back();
  EXPECT_NE(last.variant, first);
  EXPECT_EQ(last.variant, context.plan(last.request).variant());
  EXPECT_EQ(open_steps(model), 2);
  std::filesystem::remove(bundle);
}

// The Context makes plans for others before the Model looks, and has room for one.
TEST_F(PreparedAtOnceTest, APlanThatWasGivenUpMeanwhileIsMadeAgain) {
  ContextOptions few = options();
  few.kernel_store = store() + "_few";
  few.first_call = FirstCall::at_once;
  few.kept_plans = 1;
  Context context(few);
  const test::TemporaryFile file(network().bytes());
  Model model(context, file.path(), how());
  const HostArray images = floats({9, channels, side, side}, random_values(9 * channels * side * side, 7));
  const auto results = [&] { return values_of(models::run_on_host(context, model, {&images, 1}).at(0)); };
  const std::vector<float> expected = results();
  context.wait_until_tuned();
  for (int length = 1; length < 5; ++length)
    context.plan(Request::parse("softmax_forward x=f32:3x" + std::to_string(length)));
  context.wait_until_tuned();
  EXPECT_GT(context.plan_count().given_up, 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(results(), testing::Pointwise(testing::FloatNear(1e-3F), expected));
    context.wait_until_tuned();
  }
  (void)results();
  EXPECT_EQ(open_steps(model), 0);
  std::filesystem::remove_all(store() + "_few");
}

}  // namespace
}  // namespace kiln::model_at_once_test
