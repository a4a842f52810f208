// What the batches of a model share of filters that a kernel transforms.
#include "loaded_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "driver_watch.h"
#include "kiln/memory.h"
#include "model_fixture.h"

namespace kiln::models {
namespace {

using test::OnnxModel;
using test::random_values;

constexpr int64_t image = 8 * 9 * 7;

class PreparedFilters : public test::ModelTest {
 protected:
  PreparedFilters() : ModelTest(watched()) {}

  static ContextOptions watched() {
    ContextOptions how = options();
    how.environment->driver = KILN_WATCHED_DRIVER;
    return how;
  }

  /// A convolution that Winograd's transforms may serve, with filters of that seed.
  LoadedBatch load_network(int64_t batch, unsigned seed) {
    OnnxModel network(13);
    network.input("x", {"N", 8, 9, 7}).weights("w", {8, 8, 3, 3}, random_values(576, seed));
    network.node("Conv", {"x", "w"}, {"y"}, {{"pads", test::Ints{1, 1, 1, 1}}});
    network.output("y");
    const test::TemporaryFile file(network.bytes());
    const ModelOptions how{
        .batch = batch, .dynamic_batch = true, .layout = ModelLayout::channels_first, .arithmetic = {.fast = true}};
    return load_batch(context_, lower(file.path(), how), weights_);
  }

  /// The results of `batch` images, the first of which are the same for each.
  std::vector<float> run(LoadedBatch& loaded, int64_t batch) {
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
  LoadedBatch three = load_network(3, 1);
  ASSERT_NE(three.calls[0].prepared, nullptr) << three.steps[0].variant << " prepares nothing";
  EXPECT_EQ(watch_.kernels - kernels, 1);
  const int64_t bytes = weights_.bytes();

  kernels = watch_.kernels;
  LoadedBatch four = load_network(4, 1);
  EXPECT_EQ(watch_.kernels, kernels);
  EXPECT_EQ(weights_.bytes(), bytes);
  EXPECT_EQ(four.calls[0].prepared, three.calls[0].prepared);

  std::vector<float> of_three = run(three, 3), of_four = run(four, 4);
  of_four.resize(of_three.size());
  EXPECT_EQ(of_three, of_four);
}

TEST_F(PreparedFilters, OfOtherValuesOrAnotherRequestAreApart) {
  LoadedBatch three = load_network(3, 1), other = load_network(3, 2), sixteen = load_network(16, 1);
  EXPECT_NE(other.calls[0].prepared, three.calls[0].prepared);
  EXPECT_NE(sixteen.calls[0].prepared, three.calls[0].prepared) << "of another bucket";
  std::vector<float> of_three = run(three, 3), of_other = run(other, 3), of_sixteen = run(sixteen, 16);
  EXPECT_NE(of_three, of_other);
  of_sixteen.resize(of_three.size());
  EXPECT_THAT(of_sixteen, testing::Pointwise(testing::FloatNear(1e-4F), of_three));
}

}  // namespace
}  // namespace kiln::models
