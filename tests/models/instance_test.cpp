// Filters that a kernel transforms, shared by the batches of a model.
#include "instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "driver_watch.h"
#include "kiln/memory.h"
#include "model_fixture.h"

namespace kiln::models::instance_test {
namespace {

using test::OnnxModel;
using test::random_values;

constexpr int64_t channels = 40, side = 12, image = channels * side * side;

class PreparedFilters : public test::ModelTest {
 protected:
  PreparedFilters() : ModelTest(watched()) {}

  static ContextOptions watched() {
    ContextOptions how = options();
    how.environment->driver = KILN_WATCHED_DRIVER;
    return how;
  }

  /// A convolution that Winograd's transforms serve by default, with filters of that seed.
  static OnnxModel network(unsigned seed) {
    OnnxModel network(13);
    network.input("x", {"N", channels, side, side});
    network.weights("w", {channels, channels, 3, 3}, random_values(channels * channels * 9, seed));
    network.node("Conv", {"x", "w"}, {"y"}, {{"pads", test::Ints{1, 1, 1, 1}}});
    network.output("y");
    return network;
  }
  static ModelOptions of_batch(int64_t batch) {
    return {.batch = batch, .dynamic_batch = true, .layout = ModelLayout::channels_first, .arithmetic = {.fast = true}};
  }
  Instance load_network(int64_t batch, unsigned seed) {
    const test::TemporaryFile file(network(seed).bytes());
    return make_instance(context_, lower(file.path(), of_batch(batch)), weights_);
  }

  /// The results of `batch` images, the first of which are the same for each.
  std::vector<float> run(Instance& loaded, int64_t batch) {
    const auto count = static_cast<size_t>(batch * image);
    const std::vector<float> values = random_values(count, 7);
    std::vector<float> results(count);
    DeviceMemory x(context_, count * sizeof(float)), y(context_, count * sizeof(float));
    const DeviceMemory arena(context_, static_cast<size_t>(loaded.use.arena) + 1);
    x.upload(std::as_bytes(std::span(values)));
    EXPECT_EQ(loaded.calls.size(), 1U);
    LoadedStep& step = loaded.calls[0];
    const std::vector<void*> bases = {x.data(), y.data(), arena.data()};
    for (const MovingOperand& operand : step.moving) {
      step.addresses[operand.argument] = Address(static_cast<std::byte*>(bases[operand.base]) + operand.offset);
    }
    void* const workspace = step.workspace ? static_cast<std::byte*>(arena.data()) + *step.workspace : nullptr;
    step.plan.run_prepared(nullptr, step.addresses, step.prepared, workspace, step.values);
    y.download(std::as_writable_bytes(std::span(results)));
    return results;
  }

  Weights weights_;
  testing_support::DriverWatch& watch_ = testing_support::watch_of(KILN_WATCHED_DRIVER);
};

TEST_F(PreparedFilters, AreTransformedOnceForAllBatchesOfARequest) {
  int kernels = watch_.kernels;
  Instance nine = load_network(9, 1);
  ASSERT_NE(nine.calls[0].prepared, nullptr) << nine.steps[0].variant << " prepares nothing";
  EXPECT_EQ(watch_.kernels - kernels, 1);
  const int64_t bytes = weights_.bytes();

  kernels = watch_.kernels;
  Instance ten = load_network(10, 1);
  EXPECT_EQ(watch_.kernels, kernels);
  EXPECT_EQ(weights_.bytes(), bytes);
  EXPECT_EQ(ten.calls[0].prepared, nine.calls[0].prepared);

  std::vector<float> of_nine = run(nine, 9), of_ten = run(ten, 10);
  of_ten.resize(of_nine.size());
  EXPECT_EQ(of_nine, of_ten);
}

TEST_F(PreparedFilters, AreNotTransformedByRuns) {
  Instance nine = load_network(9, 1);
  int kernels = watch_.kernels;
  const std::vector<float> expected = run(nine, 9);
  const int without_transform = watch_.kernels - kernels;

  Model model = load(network(1), of_batch(9));
  const HostArray images = test::floats({9, channels, side, side}, random_values(9 * image, 7));
  kernels = watch_.kernels;
  const std::vector<HostArray> results = run_on_host(context_, model, {&images, 1});
  EXPECT_EQ(watch_.kernels - kernels, without_transform);
  EXPECT_EQ(test::values_of(results.at(0)), expected);
}

// Runs may be on other streams than the one that transforms, which nothing else makes them wait for.
TEST_F(PreparedFilters, AreWaitedForWhileTheModelIsLoaded) {
  const int kernels = watch_.kernels;
  (void)load_network(9, 1);
  EXPECT_GT(watch_.kernels, kernels);
  EXPECT_FALSE(watch_.unfinished);
}

TEST_F(PreparedFilters, OfOtherValuesOrAnotherRequestAreApart) {
  Instance nine = load_network(9, 1), other = load_network(9, 2), more = load_network(17, 1);
  EXPECT_NE(other.calls[0].prepared, nine.calls[0].prepared);
  EXPECT_NE(more.calls[0].prepared, nine.calls[0].prepared) << "of another bucket";
  std::vector<float> of_nine = run(nine, 9), of_other = run(other, 9), of_more = run(more, 17);
  EXPECT_NE(of_nine, of_other);
  of_more.resize(of_nine.size());
  EXPECT_THAT(of_more, testing::Pointwise(testing::FloatNear(1e-4F), of_nine));
}

TEST_F(PreparedFilters, ComputedConstantsAreComputedOnce) {
  OnnxModel network(13);
  network.input("x", {"N", 4}).weights("large", {64, 64}, random_values(4096, 4));
  network.node("ReduceSum", {"large"}, {"sum"}, {{"keepdims", int64_t{0}}});
  network.node("Mul", {"x", "sum"}, {"y"});
  network.output("y");
  const test::TemporaryFile file(network.bytes());
  int kernels = watch_.kernels;
  const Instance one = make_instance(context_, lower(file.path(), {.batch = 1}), weights_);
  EXPECT_GT(watch_.kernels, kernels);
  kernels = watch_.kernels;
  const Instance two = make_instance(context_, lower(file.path(), {.batch = 2}), weights_);
  EXPECT_EQ(watch_.kernels, kernels);
}

using Workspaces = PreparedFilters;

// Filters that are inputs are transformed in each run, in workspace.
TEST_F(Workspaces, OfStepsLieApartFromTheValuesThatLiveThen) {
  OnnxModel network(13);
  network.input("x", {"N", channels, side, side}).input("w", {channels, channels, 3, 3});
  network.node("Conv", {"x", "w"}, {"t"}, {{"pads", test::Ints{1, 1, 1, 1}}});
  network.node("Conv", {"t", "w"}, {"y"}, {{"pads", test::Ints{1, 1, 1, 1}}});
  network.output("y");
  const test::TemporaryFile file(network.bytes());
  const Instance nine = make_instance(context_, lower(file.path(), of_batch(9)), weights_);
  ASSERT_EQ(nine.calls.size(), 2U);
  constexpr size_t arena = 3;  // behind two inputs and an output
  constexpr int64_t value_bytes = 9 * image * int64_t{sizeof(float)};
  for (const LoadedStep& step : nine.calls) {
    const int64_t bytes = step.plan.workspace_bytes();
    ASSERT_TRUE(step.workspace && bytes > 0) << nine.steps[0].variant << " needs no workspace";
    EXPECT_GE(*step.workspace, 0);
    EXPECT_LE(*step.workspace + bytes, nine.use.arena);
    int values = 0;
    for (const MovingOperand& operand : step.moving) {
      if (operand.base != arena) continue;
      ++values;
      EXPECT_TRUE(*step.workspace + bytes <= operand.offset || operand.offset + value_bytes <= *step.workspace)
          << "workspace from " << *step.workspace << ", t from " << operand.offset;
    }
    EXPECT_EQ(values, 1);
  }
}

}  // namespace
}  // namespace kiln::models::instance_test
