// Models of files that leave extents open, at several sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/cuda_graph.h"
#include "kiln/memory.h"
#include "model_fixture.h"

namespace kiln::model_sizes_test {
namespace {

using models::HostArray;
using test::floats;
using test::ModelTest;
using test::OnnxModel;
using test::random_values;
using test::values_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Extents = std::vector<int64_t>;

/// Doubles a picture as exporters write it, by extents that are computed: y[h][w] = max(0, 2 x[h / 2][w / 2]) + bias.
OnnxModel upsampling() {
  OnnxModel network(13);
  network.input("x", {1, 1, "height", "width"}).scalar("two", 2).integers("twice", {1, 1, 2, 2}).weights("bias", {1});
  network.node("Mul", {"x", "two"}, {"doubled"});
  network.node("Relu", {"doubled"}, {"r"});
  network.node("Shape", {"r"}, {"extents"});
  network.node("Mul", {"extents", "twice"}, {"sizes"});
  network.node("Resize", {"r", "", "", "sizes"}, {"large"},
               {{"mode", std::string("nearest")},
                {"coordinate_transformation_mode", std::string("asymmetric")},
                {"nearest_mode", std::string("floor")}});
  network.node("Add", {"large", "bias"}, {"y"});
  network.output("y");
  return network;
}

/// y = -x, where the file says nothing about the extents of x.
OnnxModel negation_of_any_rank() {
  OnnxModel network(13);
  network.input("x", {});
  network.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  network.node("Neg", {"x"}, {"y"});
  network.output("y");
  return network;
}

class SizesTest : public ModelTest {
 protected:
  void expect_upsampled(Model& model, int64_t height, int64_t width) {
    const auto h = static_cast<size_t>(height), w = static_cast<size_t>(width);
    const std::vector<float> x = random_values(h * w, static_cast<unsigned>(31 * height + width));
    const std::vector<HostArray> inputs = {floats({1, 1, height, width}, x)};
    const std::vector<HostArray> results = models::run_on_host(context_, model, inputs);
    ASSERT_EQ(results[0].extents, (Extents{1, 1, 2 * height, 2 * width}));
    const std::vector<float> y = values_of(results[0]);
    for (size_t i = 0; i < 2 * h; ++i) {
      for (size_t j = 0; j < 2 * w; ++j) {
        EXPECT_FLOAT_EQ(y[i * 2 * w + j], std::max(0.0F, 2 * x[i / 2 * w + j / 2]) + 0.5F);
      }
    }
  }

  template <class Call>
  static std::string refusal(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      return error.what();
    }
    return "taken";
  }
};

TEST_F(SizesTest, AModelHasNoneUntilItIsGivenOne) {
  Model model = open(upsampling());
  EXPECT_TRUE(model.has_open_extents());
  EXPECT_FALSE(model.has_open_batch());
  EXPECT_EQ(model.sizes(), 0U);
  EXPECT_EQ(model.batch(), 0);
  EXPECT_EQ(model.inputs()[0].extents, (Extents{1, 1, -1, -1}));
  EXPECT_EQ(model.inputs()[0].dtype, DType::f32);
  EXPECT_EQ(model.inputs()[0].type, "float");
  EXPECT_THAT(model.outputs(), IsEmpty());
  EXPECT_THAT(model.steps(), IsEmpty());
  EXPECT_EQ(model.memory().weights + model.memory().arena, 0);
  EXPECT_THAT(refusal([&] { model.set_batch(1); }), HasSubstr("open: 'x' [1, 1, height, width]"));
  EXPECT_THAT(refusal([&] { model.run({}, {}); }), HasSubstr("input 'x' is not given"));
  model.set_shapes({{"x", {1, 1, 3, 5}}});
  EXPECT_EQ(model.sizes(), 1U);
  EXPECT_EQ(model.batch(), 1);
  EXPECT_EQ(model.outputs()[0].extents, (Extents{1, 1, 6, 10}));
  EXPECT_EQ(model.declared_inputs()[0].extents, (Extents{1, 1, -1, -1}));
  expect_upsampled(model, 3, 5);
}

TEST_F(SizesTest, OneModelServesAllOfThem) {
  Model model = open(upsampling());
  for (const auto& [height, width] :
       std::vector<std::pair<int64_t, int64_t>>{{3, 5}, {1, 1}, {16, 7}, {3, 5}, {2, 31}, {1, 1}, {16, 7}}) {
    expect_upsampled(model, height, width);
    EXPECT_EQ(model.inputs()[0].extents, (Extents{1, 1, height, width}));
  }
  EXPECT_EQ(model.sizes(), 4U);
}

TEST_F(SizesTest, TheOneThatWasNotUsedForLongestIsGivenUp) {
  Model model = open(upsampling(), {.shapes = {{"x", {1, 1, 2, 2}}}, .kept_sizes = 2});
  for (const int64_t width : {3, 4}) {
    model.set_shapes({{"x", {1, 1, 2, width}}});
    EXPECT_EQ(model.sizes(), 2U);
  }
  files_.clear();
  model.set_shapes({{"x", {1, 1, 2, 3}}});
  expect_upsampled(model, 2, 3);
  expect_upsampled(model, 2, 4);
  EXPECT_THROW(model.set_shapes({{"x", {1, 1, 2, 2}}}), Error) << "the file is gone, and so is that size";
  expect_upsampled(model, 2, 4);
  expect_upsampled(model, 2, 3);
}

// A size that is read later is one of the file that was opened, or none.
TEST_F(SizesTest, AFileThatWasWrittenAgainIsRefusedBeforeItsFirstSizeToo) {
  for (const bool has_size : {false, true}) {
    Model model = open(upsampling());
    if (has_size) expect_upsampled(model, 2, 3);
    std::ofstream(files_.back()->path(), std::ios::binary) << negation_of_any_rank().bytes();
    try {
      model.set_shapes({{"x", {1, 1, 2, 4}}});
      ADD_FAILURE() << "another model was taken in";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io_error);
      EXPECT_THAT(error.message(), HasSubstr("was written or removed since the model was loaded"));
    }
    if (has_size) expect_upsampled(model, 2, 3);
  }
}

TEST_F(SizesTest, TheOneInUseStaysWhateverTheLimit) {
  Model model = open(upsampling(), {.kept_sizes = 0});
  for (const int64_t width : {2, 3, 2}) {
    expect_upsampled(model, 2, width);
    expect_upsampled(model, 2, width);
    EXPECT_EQ(model.sizes(), 1U);
  }
}

/// x plus the sums of the first `n` rows of a table: constants that only one size needs.
OnnxModel table_sums() {
  OnnxModel network(13);
  network.input("x", {"n", 1}).integers("start", {0}).integers("end", {1}).integers("axes", {1});
  std::vector<float> table(size_t{512} * 2);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i / 2 + 1);
  network.weights("table", {512, 2}, table);
  network.node("Shape", {"x"}, {"extents"});
  network.node("Slice", {"extents", "start", "end"}, {"count"});
  network.node("Slice", {"table", "start", "count"}, {"rows"});
  network.node("ReduceSum", {"rows", "axes"}, {"sums"});
  network.node("Add", {"x", "sums"}, {"y"});
  network.output("y");
  return network;
}

TEST_F(SizesTest, WeightsOfOneThatIsGivenUpAreFreedAndSharedOnesStay) {
  for (const bool by_bytes : {false, true}) {
    ModelOptions how{.batch = 512};
    if (by_bytes) {
      how.kept_bytes = 3000;  // sums of 512 rows are 2048
    } else {
      how.kept_sizes = 2;
    }
    Model model = open(table_sums(), how);
    const auto expect_right = [&](int64_t n) {
      const std::vector<HostArray> inputs = {floats({n, 1}, std::vector<float>(static_cast<size_t>(n), 1))};
      const std::vector<float> y = values_of(models::run_on_host(context_, model, inputs)[0]);
      for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], 1 + 2 * static_cast<float>(i + 1));
    };
    expect_right(512);
    int64_t most = 0;
    for (int64_t n = 511; n > 490; --n) {
      expect_right(n);
      most = std::max(most, model.memory().weights);
    }
    EXPECT_LE(model.sizes(), 2U);
    EXPECT_EQ(model.memory().weights, most) << "no more for the last than for the first ones";
    EXPECT_LT(most, 16384);
    expect_right(512);
  }
}

// Each size has 2 KiB of its own, its sums in whole pieces of 256 bytes; it shares the shift with the other.
TEST_F(SizesTest, TheLimitOfBytesCountsWhatOneSizeAloneReads) {
  constexpr int64_t both = 2 * 2048;
  for (const int64_t limit : {both, both - 1}) {
    OnnxModel network = table_sums();
    network.weights("shift", {1}, {3}).node("Add", {"y", "shift"}, {"shifted"});
    network.output("shifted");
    Model model = open(network, {.kept_bytes = limit});
    for (const int64_t n : {512, 511}) {
      const std::vector<HostArray> inputs = {floats({n, 1}, std::vector<float>(static_cast<size_t>(n), 1))};
      EXPECT_EQ(values_of(models::run_on_host(context_, model, inputs)[1])[0], 6);
    }
    EXPECT_EQ(model.sizes(), limit == both ? 2U : 1U) << limit;
  }
}

TEST_F(SizesTest, RunsTakeTheExtentsOfTheirTensors) {
  Model model = open(upsampling());
  const std::vector<float> values = {1, -2, 3, 4, -5, 6};
  DeviceMemory x(context_, 64), y(context_, 256);
  x.upload(std::as_bytes(std::span(values)));
  const auto run = [&](const Extents& of_x, const Extents& of_y) {
    model.run({{"x", Tensor(x.data(), f32, of_x, contiguous)}}, {{"y", Tensor(y.data(), f32, of_y, contiguous)}});
    std::vector<float> results(24);
    y.download(std::as_writable_bytes(std::span(results)));
    return results;
  };
  EXPECT_THAT(run({1, 1, 2, 3}, {1, 1, 4, 6}),
              ElementsAre(2.5F, 2.5F, 0.5F, 0.5F, 6.5F, 6.5F, 2.5F, 2.5F, 0.5F, 0.5F, 6.5F, 6.5F,  //
                          8.5F, 8.5F, 0.5F, 0.5F, 12.5F, 12.5F, 8.5F, 8.5F, 0.5F, 0.5F, 12.5F, 12.5F));
  const std::vector<float> flat = run({1, 1, 1, 6}, {1, 1, 2, 12});
  EXPECT_EQ(flat[0], 2.5F);
  EXPECT_EQ(flat[10], 12.5F);
  EXPECT_EQ(model.sizes(), 2U);
  EXPECT_THAT(refusal([&] {
                run({1, 1, 3, 2}, {1, 1, 4, 6});
              }),
              testing::AllOf(HasSubstr("output 'y' is f32 1x1x4x6, expected f32 1x1x6x4"), HasSubstr("outputs()")));
  EXPECT_THAT(refusal([&] { run({1, 3, 2}, {1, 1, 6, 4}); }), HasSubstr("it has 3 dimensions, expected 4"));
  const Tensor wrong(x.data(), i32, {1, 1, 2, 2}, contiguous);
  EXPECT_THAT(refusal([&] { model.run({{"x", wrong}}, {}); }), HasSubstr("input 'x' is i32, expected f32"));
}

TEST_F(SizesTest, ACaptureTakesOneThatIsKeptAndMakesNone) {
  Model model = open(upsampling());
  const std::vector<float> values = {1, 2, 3, 4};
  DeviceMemory x(context_, 64), y(context_, 256);
  x.upload(std::as_bytes(std::span(values)));
  const auto enqueue = [&](int64_t width, Stream stream) {
    model.run({{"x", Tensor(x.data(), f32, {1, 1, 1, width}, contiguous)}},
              {{"y", Tensor(y.data(), f32, {1, 1, 2, 2 * width}, contiguous)}}, stream);
  };
  EXPECT_THAT(refusal([&] { const CudaGraph graph(context_, [&](Stream stream) { enqueue(2, stream); }); }),
              testing::AllOf(HasSubstr("the stream is captured"), HasSubstr("Model::set_shapes()")));
  enqueue(2, nullptr);
  enqueue(3, nullptr);
  const CudaGraph graph(context_, [&](Stream stream) { enqueue(2, stream); });
  graph.launch();
  std::vector<float> results(4);
  y.download(std::as_writable_bytes(std::span(results)));
  EXPECT_THAT(results, ElementsAre(2.5F, 2.5F, 4.5F, 4.5F));
}

TEST_F(SizesTest, ShapesThatCannotBeLeaveTheModelAsItWas) {
  Model model = open(upsampling(), {.shapes = {{"x", {1, 1, 2, 2}}}});
  const std::vector<std::pair<InputShapes, const char*>> rows = {
      {{{"x", {1, 1, 2}}}, "input 'x' is given as 1x1x2: it has 3 dimensions, expected 4"},
      {{{"x", {}}}, "it has 0 dimensions, expected 4"},
      {{{"x", {1, 2, 2, 2}}}, "extent 1 is 2, expected 1"},
      {{{"x", {1, 1, -2, 2}}}, "extent 2 is below 0"},
      {{{"z", {1}}}, "the model has no input 'z'"},
      {{{"x", {1, 1, int64_t{1} << 40, int64_t{1} << 40}}}, "2^40"},
      {{}, "the file leaves extents of inputs open"},
  };
  for (const auto& [shapes, message] : rows) {
    try {
      model.set_shapes(shapes);
      ADD_FAILURE() << message;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
    EXPECT_EQ(model.inputs()[0].extents, (Extents{1, 1, 2, 2}));
    expect_upsampled(model, 2, 2);
  }
}

// Kernels that another run of the tests left are not compiled.
class SizesWithoutAStore : public ModelTest {
 protected:
  SizesWithoutAStore() : ModelTest(without_store()) {}

 private:
  static ContextOptions without_store() {
    ContextOptions how = options();
    how.kernel_store = "off";
    return how;
  }
};

TEST_F(SizesWithoutAStore, TheCostOfOneSaysWhatWasCompiled) {
  Model model = open(upsampling());
  EXPECT_EQ(model.cost().seconds, 0);
  const CompileCount before = context_.compiles();
  model.set_shapes({{"x", {1, 1, 37, 41}}});
  EXPECT_GT(model.cost().seconds, 0);
  EXPECT_EQ(model.cost().compiled, context_.compiles().kernels - before.kernels);
  EXPECT_GT(model.cost().compiled, 0U);
  EXPECT_GT(model.cost().compile_seconds, 0);
  const OnnxModel network = upsampling();
  Model again = open(network, {.shapes = {{"x", {1, 1, 37, 41}}}});
  EXPECT_EQ(again.cost().compiled, 0U) << "the context has the plans";
}

// A tensor without dimensions is given as one of one element.
TEST_F(SizesTest, RunsTakeScalarsAndTensorsOfOneElement) {
  OnnxModel network(13);
  network.input("x", {"length", 2}).input("s", {}).input("any", {});
  network.graph().mutable_input(2)->mutable_type()->mutable_tensor_type()->clear_shape();
  network.node("Mul", {"x", "s"}, {"p"});
  network.node("Add", {"p", "any"}, {"y"});
  network.node("Shape", {"any"}, {"rank"});
  network.output("y").output("rank");
  Model model = open(network);
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  DeviceMemory x(context_, 64), s(context_, 16), y(context_, 64);
  const DeviceMemory rank(context_, 16);
  x.upload(std::as_bytes(std::span(values)));
  s.upload(std::as_bytes(std::span(values).subspan(2, 1)));
  for (const int64_t length : {3, 1}) {
    model.run(
        {{"x", Tensor(x.data(), f32, {length, 2}, contiguous)},
         {"s", Tensor(s.data(), f32, {1}, contiguous)},
         {"any", Tensor(s.data(), f32, {1}, contiguous)}},
        {{"y", Tensor(y.data(), f32, {length, 2}, contiguous)}, {"rank", Tensor(rank.data(), i32, {1}, contiguous)}});
    std::vector<float> results(static_cast<size_t>(2 * length));
    y.download(std::as_writable_bytes(std::span(results)));
    for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], 3 * values[i] + 3);
    EXPECT_THAT(model.inputs()[1].extents, IsEmpty());
    EXPECT_EQ(model.inputs()[2].extents, (Extents{1})) << "its rank is open, and given as 1";
  }
}

// The file's input has no extents then, and neither has the tensor.
TEST_F(SizesTest, TheFirstRunMayBeOfOneElement) {
  Model model = open(negation_of_any_rank());
  DeviceMemory x(context_, 16), y(context_, 16);
  const std::vector<float> two = {2};
  x.upload(std::as_bytes(std::span(two)));
  model.run({{"x", Tensor(x.data(), f32, {1}, contiguous)}}, {{"y", Tensor(y.data(), f32, {1}, contiguous)}});
  std::vector<float> result(1);
  y.download(std::as_writable_bytes(std::span(result)));
  EXPECT_EQ(result[0], -2);
}

TEST_F(SizesTest, InputsWithoutARankTakeAny) {
  Model model = open(negation_of_any_rank());
  EXPECT_TRUE(model.has_open_extents());
  for (const Extents& extents : {Extents{4}, Extents{2, 2}, Extents{1, 2, 2}, Extents{}}) {
    const std::vector<float> values = random_values(extents.empty() ? 1 : 4, 3);
    const std::vector<HostArray> inputs = {floats(extents, values)};
    const std::vector<HostArray> results = models::run_on_host(context_, model, inputs);
    EXPECT_EQ(results[0].extents, extents);
    const std::vector<float> y = values_of(results[0]);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], -values[i]);
  }
}

/// y = (x + z) * w with an open batch and a length that two inputs share.
OnnxModel scaled() {
  OnnxModel network(13);
  network.input("x", {"N", "length"}).input("z", {1, "length"}).weights("w", {1});
  network.node("Add", {"x", "z"}, {"s"});
  network.node("Mul", {"s", "w"}, {"y"});
  network.output("y");
  return network;
}

TEST_F(SizesTest, ABatchLeavesTheOtherExtents) {
  Model model = open(scaled(), {.shapes = {{"x", {2, 3}}}});
  model.set_batch(5);
  EXPECT_EQ(model.outputs()[0].extents, (Extents{5, 3}));
}

TEST_F(SizesTest, AnyInputMayHaveOtherExtents) {
  Model model = open(scaled());
  for (const int64_t n : {2, 3}) {
    const std::vector<HostArray> inputs = {floats({n, 2}, random_values(static_cast<size_t>(2 * n), 1)),
                                           floats({1, 2}, {1, 2})};
    EXPECT_EQ(models::run_on_host(context_, model, inputs)[0].extents, (Extents{n, 2}));
  }
}

TEST_F(SizesTest, SharedWeightsDoNotCountForALimit) {
  Model model = open(scaled(), {.shapes = {{"x", {2, 3}}}, .kept_bytes = 1});
  model.set_batch(5);
  EXPECT_EQ(model.sizes(), 2U);
}

TEST_F(SizesTest, RunsTakeTheBatchOfTheirTensors) {
  OnnxModel network(13);
  network.input("x", {"N", 3});
  network.node("Neg", {"x"}, {"y"});
  network.output("y");
  Model model = open(network);
  DeviceMemory x(context_, 64), y(context_, 64);
  const std::vector<float> values = random_values(6, 1);
  x.upload(std::as_bytes(std::span(values)));
  model.run({{"x", Tensor(x.data(), f32, {2, 3}, contiguous)}}, {{"y", Tensor(y.data(), f32, {2, 3}, contiguous)}});
  EXPECT_EQ(model.batch(), 2);
  std::vector<float> results(6);
  y.download(std::as_writable_bytes(std::span(results)));
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], -values[i]);
}

TEST_F(SizesTest, MemoryIsThatOfTheSizesThatAreKept) {
  Model model = open(table_sums(), {.batch = 512, .kept_sizes = 1});
  EXPECT_GE(model.memory().weights, 2048);
  model.set_batch(1);
  EXPECT_LT(model.memory().weights, 2048);
}

TEST_F(SizesTest, OneThatWasGivenUpJustNowIsMadeAgain) {
  Model model = open(table_sums(), {.batch = 512, .kept_sizes = 1});
  for (const int64_t n : {512, 2, 512}) {
    const std::vector<HostArray> inputs = {floats({n, 1}, std::vector<float>(static_cast<size_t>(n), 1))};
    const std::vector<float> y = values_of(models::run_on_host(context_, model, inputs)[0]);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 1 + 2 * static_cast<float>(i + 1));
  }
}

}  // namespace
}  // namespace kiln::model_sizes_test
