// Models of more than one batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "kiln/base/error.h"
#include "kiln/memory.h"
#include "model_fixture.h"

namespace kiln::model_batch_test {
namespace {

using models::HostArray;
using test::floats;
using test::ModelTest;
using test::OnnxModel;
using test::random_values;
using test::small_network;
using test::small_network_of;
using test::values_of;
using testing::HasSubstr;

TEST_F(ModelTest, DynamicBatchUsesOneKernelForABucket) {
  for (const int64_t batch : {3, 4}) {
    const std::vector<float> x = random_values(static_cast<size_t>(batch) * 105, 13);
    const ModelOptions how{.batch = batch, .dynamic_batch = true};
    const std::vector<float> y = values_of(run(small_network(), {floats({batch, 3, 7, 5}, x)}, how)[0]);
    const std::vector<double> expected = small_network_of(x, batch);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(static_cast<double>(y[i]), expected[i], 1e-5);
  }
  const Model three = load(small_network(), {.batch = 3, .dynamic_batch = true}),
              four = load(small_network(), {.batch = 4, .dynamic_batch = true});
  for (size_t s = 0; s < three.steps().size(); ++s) {
    EXPECT_TRUE(three.steps()[s].request.dynamic_batch);
    EXPECT_EQ(three.steps()[s].request.key(), four.steps()[s].request.key());
  }
}

/// Models whose files stay.
class BatchTest : public ModelTest {
 protected:
  /// Runs the small network on `batch` images, and compares with plain loops.
  void expect_right(Model& model, int64_t batch) {
    const std::vector<float> x = random_values(static_cast<size_t>(batch) * 105, static_cast<unsigned>(batch));
    const std::vector<HostArray> inputs = {floats({batch, 3, 7, 5}, x)};
    const std::vector<HostArray> results = models::run_on_host(context_, model, inputs);
    EXPECT_EQ(results[0].extents, (std::vector<int64_t>{batch, 2}));
    const std::vector<float> y = values_of(results[0]);
    const std::vector<double> expected = small_network_of(x, batch);
    ASSERT_EQ(y.size(), expected.size());
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(static_cast<double>(y[i]), expected[i], 1e-5) << batch;
  }
};

// The memory in between grows on the way, and moves.
TEST_F(BatchTest, OneModelServesEveryBatch) {
  for (const bool dynamic : {false, true}) {
    Model model = open(small_network(), {.dynamic_batch = dynamic});
    EXPECT_TRUE(model.has_open_batch());
    EXPECT_EQ(model.batch(), 1);
    const int64_t arena = model.memory().arena;
    expect_right(model, 1);
    for (const int64_t batch : {3, 1, 33, 4, 3, 1}) {
      model.set_batch(batch);
      EXPECT_EQ(model.batch(), batch);
      EXPECT_EQ(model.inputs()[0].extents, (std::vector<int64_t>{batch, 3, 7, 5}));
      EXPECT_EQ(model.outputs()[0].extents, (std::vector<int64_t>{batch, 2}));
      expect_right(model, batch);
    }
    EXPECT_EQ(model.memory().arena, arena);
  }
}

TEST_F(BatchTest, BatchesShareTheirWeights) {
  OnnxModel network(13);
  network.input("x", {"N", 32, 16, 16});
  network.weights("w", {32, 32, 3, 3}, random_values(9216, 3));
  network.weights("large", {64, 64}, random_values(4096, 4));
  network.node("ReduceSum", {"large"}, {"sum"}, {{"keepdims", int64_t{0}}});
  network.node("Conv", {"x", "w"}, {"c"}, {{"pads", test::Ints{1, 1, 1, 1}}});
  network.node("Mul", {"c", "sum"}, {"y"});
  network.output("y");
  Model model = open(network, {.batch = 3, .dynamic_batch = true});
  const int64_t weights = model.memory().weights;
  EXPECT_LT(weights, int64_t{4} * 9216 * 4);
  const std::vector<float> x = random_values(size_t{4} * 32 * 256, 5);
  const auto first = [&](int64_t batch) {
    const std::vector<float> part(x.begin(), x.begin() + batch * 32 * 256);
    const std::vector<HostArray> inputs = {floats({batch, 32, 16, 16}, part)};
    std::vector<float> y = values_of(models::run_on_host(context_, model, inputs)[0]);
    y.resize(size_t{32} * 256);
    return y;
  };
  const std::vector<float> of_three = first(3);
  model.set_batch(4);  // the same kernels
  EXPECT_EQ(model.memory().weights, weights);
  EXPECT_EQ(first(4), of_three);
  model.set_batch(3);
  EXPECT_EQ(first(3), of_three);
}

// As positions are: a part of a table, as long as the batch.
TEST_F(BatchTest, ConstantsOfABatchAreComputedForEach) {
  OnnxModel network(13);
  network.input("x", {"N", 1}).integers("start", {0}).integers("end", {1}).integers("axes", {1});
  network.weights("table", {8, 2}, {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8});
  network.node("Shape", {"x"}, {"extents"});
  network.node("Slice", {"extents", "start", "end"}, {"batch"});
  network.node("Slice", {"table", "start", "batch"}, {"rows"});
  network.node("ReduceSum", {"rows", "axes"}, {"sums"});
  network.node("Add", {"x", "sums"}, {"y"});
  network.output("y");
  Model model = open(network);
  const auto run_ones = [&](int64_t batch) {
    const std::vector<HostArray> inputs = {floats({batch, 1}, std::vector<float>(static_cast<size_t>(batch), 1))};
    return values_of(models::run_on_host(context_, model, inputs)[0]);
  };
  EXPECT_EQ(run_ones(1), (std::vector<float>{3}));
  const int64_t weights = model.memory().weights;
  model.set_batch(4);
  EXPECT_EQ(run_ones(4), (std::vector<float>{3, 5, 7, 9}));
  EXPECT_GT(model.memory().weights, weights);
  model.set_batch(1);
  EXPECT_EQ(run_ones(1), (std::vector<float>{3}));
}

TEST_F(BatchTest, ABatchThatCannotBeLeavesTheModelAsItWas) {
  OnnxModel network(13);
  network.input("x", {"N", 6}).integers("shape", {1, 2, 3});
  network.node("Reshape", {"x", "shape"}, {"r"});
  network.node("Relu", {"r"}, {"y"});
  network.output("y");
  Model model = open(network);
  for (const int64_t batch : {2, 0, -1}) {
    EXPECT_THROW(model.set_batch(batch), Error) << batch;
    EXPECT_EQ(model.batch(), 1);
    const std::vector<HostArray> inputs = {floats({1, 6}, {-1, 2, -3, 4, -5, 6})};
    EXPECT_EQ(values_of(models::run_on_host(context_, model, inputs)[0]), (std::vector<float>{0, 2, 0, 4, 0, 6}));
  }
}

TEST_F(BatchTest, AFileThatHasChangedIsRefused) {
  Model model = open(small_network());
  model.set_batch(3);
  model.set_batch(1);
  const std::string& path = files_.back()->path();
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_THROW(model.set_batch(2), Error);
  std::filesystem::remove(path);
  EXPECT_THROW(model.set_batch(2), Error);
  expect_right(model, 1);
  model.set_batch(3);  // known since before
  expect_right(model, 3);
  try {
    const Model missing(context_, path);
    ADD_FAILURE() << "loaded";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot be read"));
  }
}

TEST_F(BatchTest, DataBesideTheModelMustStayToo) {
  OnnxModel network(13);
  network.input("x", {"N", 2}).weights("w", {2});
  auto& tensor = *network.graph().mutable_initializer()->rbegin();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const std::filesystem::path data = std::filesystem::path(testing::TempDir()) / "kiln_batch_test.bin";
  auto& entry = *tensor.add_external_data();
  entry.set_key("location");
  entry.set_value(data.filename().string());
  const auto write = [&](float value) {
    const std::array<float, 2> values = {value, value};
    std::ofstream(data, std::ios::binary).write(reinterpret_cast<const char*>(values.data()), sizeof values);
  };
  write(1);
  network.node("Add", {"x", "w"}, {"y"});
  network.output("y");
  Model model = open(network);
  model.set_batch(2);
  write(100);
  std::filesystem::last_write_time(data, std::filesystem::last_write_time(data) + std::chrono::seconds(1));
  EXPECT_THROW(model.set_batch(3), Error);
  const std::vector<HostArray> inputs = {floats({2, 2}, {1, 2, 3, 4})};
  EXPECT_EQ(values_of(models::run_on_host(context_, model, inputs)[0]), (std::vector<float>{2, 3, 4, 5}));
  std::filesystem::remove(data);
}

TEST_F(BatchTest, TheFolderMayChange) {
  Model model = open(small_network());
  const std::filesystem::path before = std::filesystem::current_path();
  const std::filesystem::path file = files_.back()->path();
  std::filesystem::current_path(file.parent_path());
  Model relative(context_, file.filename());
  std::filesystem::current_path(before);
  relative.set_batch(2);
  expect_right(relative, 2);
}

// It is that of the first input which leaves it open.
TEST_F(BatchTest, InputsBeforeMayHaveOtherExtents) {
  OnnxModel network(13);
  network.input("k", {1, 3}).input("x", {"N", 3});
  network.node("Add", {"x", "k"}, {"y"});
  network.output("y");
  Model model = open(network);
  EXPECT_TRUE(model.has_open_batch());
  model.set_batch(2);
  EXPECT_EQ(model.inputs()[0].extents, (std::vector<int64_t>{1, 3}));
  const std::vector<HostArray> inputs = {floats({1, 3}, {10, 20, 30}), floats({2, 3}, {1, 2, 3, 4, 5, 6})};
  EXPECT_EQ(values_of(models::run_on_host(context_, model, inputs)[0]), (std::vector<float>{11, 22, 33, 14, 25, 36}));
}

TEST_F(BatchTest, AnExtentBelowZeroIsAnOpenBatch) {
  OnnxModel network(13);
  network.input("x", {-1, 3});
  network.node("Relu", {"x"}, {"y"});
  network.output("y");
  Model model = open(network);
  EXPECT_TRUE(model.has_open_batch());
  EXPECT_EQ(model.batch(), 1);
  model.set_batch(2);
  const std::vector<HostArray> inputs = {floats({2, 3}, {-1, 2, 3, 4, -5, 6})};
  EXPECT_EQ(values_of(models::run_on_host(context_, model, inputs)[0]), (std::vector<float>{0, 2, 3, 4, 0, 6}));
}

TEST_F(BatchTest, AFixedBatchIsChangedWhereAllInputsHaveIt) {
  OnnxModel network(13);
  network.input("x", {2, 3}).input("z", {2, 3});
  network.node("Add", {"x", "z"}, {"y"});
  network.output("y");
  Model model = open(network);
  EXPECT_FALSE(model.has_open_batch());
  EXPECT_EQ(model.batch(), 2);
  model.set_batch(1);
  const std::vector<HostArray> inputs = {floats({1, 3}, {1, 2, 3}), floats({1, 3}, {10, 20, 30})};
  EXPECT_EQ(values_of(models::run_on_host(context_, model, inputs)[0]), (std::vector<float>{11, 22, 33}));
}

TEST_F(BatchTest, RunsTakeAnotherBatchButNoOtherExtents) {
  Model model = open(small_network());
  const auto expect_refused = [&](const HostArray& x, const std::string& message) {
    try {
      const std::vector<HostArray> inputs = {x};
      (void)models::run_on_host(context_, model, inputs);
      ADD_FAILURE() << "ran";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.message(), HasSubstr(message));
      EXPECT_EQ(error.hint(), "the file declares 'x' [N, 3, 7, 5]");
    }
  };
  expect_right(model, 2);
  EXPECT_EQ(model.batch(), 2);
  expect_refused(floats({2, 3, 5, 7}, random_values(210, 1)),
                 "input 'x' is given as 2x3x5x7: extent 2 is 5, expected 7");
  expect_refused(floats({}, {1}),
                 "input 'x' is given as one element without dimensions: it has 0 dimensions, expected 4");
  EXPECT_EQ(model.batch(), 2);
  expect_right(model, 0);
}

TEST_F(BatchTest, RunsOfAnotherBatchAreRefusedWhereTheFileFixesIt) {
  OnnxModel network(13);
  network.input("x", {2, 3});
  network.node("Relu", {"x"}, {"y"});
  network.output("y");
  Model model = open(network);
  const std::vector<HostArray> inputs = {floats({3, 3}, random_values(9, 1))};
  try {
    (void)models::run_on_host(context_, model, inputs);
    ADD_FAILURE() << "ran";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("input 'x' is 3x3, expected 2x3"));
    EXPECT_THAT(error.hint(), HasSubstr("set_batch()"));
  }
}

TEST_F(BatchTest, AModelWithoutInputsHasNoOpenBatch) {
  OnnxModel network(13);
  network.weights("c", {2}, {-1, 2});
  network.node("Relu", {"c"}, {"y"});
  network.output("y");
  EXPECT_FALSE(open(network).has_open_batch());
}

}  // namespace
}  // namespace kiln::model_batch_test
