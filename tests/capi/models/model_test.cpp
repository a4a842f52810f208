// Whole models in C: what the C++ API does with the same file, and everything that can be wrong with an argument.
#include "kiln/c/model.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <utility>
#include <vector>

#include "argument_rows.h"
#include "declarations.h"
#include "exported_symbols.h"
#include "fixture.h"
#include "kiln/memory.h"
#include "kiln/model.h"
#include "small_model.h"

namespace kiln::capi::model_test {
namespace {

using testing::HasSubstr;
using Names = std::set<std::string>;

class ModelInC : public CApiBesideCpp {
 protected:
  ModelInC() {
    std::ofstream(path_, std::ios::binary) << testing_support::softmax_model();
    options_.batch = 2;
    EXPECT_EQ(kiln_model_create(context_, path_.c_str(), &options_, &model_), KILN_OK) << kiln_last_error();
  }
  ~ModelInC() override {
    kiln_model_destroy(made_);
    kiln_model_destroy(model_);
    kiln_string_destroy(requests_);
    std::remove(path_.c_str());
  }

  const std::string path_ = testing::TempDir() + "capi_model_test.onnx";
  kiln_model_options options_ = kiln_model_options_default();
  kiln_model *model_ = nullptr, *made_ = nullptr;
  char* requests_ = nullptr;
  kiln_model_info info_ = kiln_model_info_default();
  kiln_model_tensor_info tensor_info_ = kiln_model_tensor_info_default();
  kiln_model_step_info step_info_ = kiln_model_step_info_default();
  const kiln_tensor x_ = tensor(upload(wave(8)), {2, 4}), y_ = tensor(upload(wave(8)), {2, 4});
  const kiln_named_tensor input_ = {"x", &x_}, output_ = {"y", &y_};
  static constexpr std::array<int64_t, 2> extents_ = {2, 4};
  const kiln_input_shape shape_ = {"x", extents_.data(), extents_.size()};
};

TEST_F(ModelInC, DoesAndSaysWhatTheCppApiDoes) {
  Model expected(cpp_, path_, {.batch = 2});
  ASSERT_EQ(kiln_model_get_info(model_, &info_), KILN_OK) << kiln_last_error();
  EXPECT_EQ(info_.input_count, expected.inputs().size());
  EXPECT_EQ(info_.output_count, expected.outputs().size());
  EXPECT_EQ(info_.step_count, expected.steps().size());
  EXPECT_EQ(info_.weight_bytes, expected.memory().weights);
  EXPECT_EQ(info_.arena_bytes, expected.memory().arena);
  EXPECT_EQ(info_.least_arena_bytes, expected.memory().least_arena);
  EXPECT_EQ(info_.unshared_bytes, expected.memory().unshared);
  for (const bool of_inputs : {true, false}) {
    ASSERT_EQ((of_inputs ? kiln_model_get_input : kiln_model_get_output)(model_, 0, &tensor_info_), KILN_OK);
    const ModelTensor& tensor = (of_inputs ? expected.inputs() : expected.outputs())[0];
    EXPECT_EQ(tensor_info_.name, tensor.name);
    EXPECT_EQ(tensor_info_.type, tensor.type);
    EXPECT_EQ(tensor_info_.dtype, KILN_F32);
    EXPECT_EQ(std::vector<int64_t>(tensor_info_.extents, tensor_info_.extents + tensor_info_.rank), tensor.extents);
  }
  ASSERT_EQ(kiln_model_get_step(model_, 0, &step_info_), KILN_OK);
  const ModelStep& step = expected.steps()[0];
  EXPECT_EQ(step_info_.request, step.request.key());
  EXPECT_EQ(step_info_.variant, step.variant);
  EXPECT_EQ(step_info_.source, step.source);
  EXPECT_EQ(std::vector<std::string>(step_info_.nodes, step_info_.nodes + step_info_.node_count), step.nodes);
  ASSERT_EQ(kiln_model_requests(model_, &requests_), KILN_OK);
  EXPECT_EQ(requests_, step.request.key() + "\n");
  EXPECT_EQ(kiln_context_prepare(context_, requests_), KILN_OK) << kiln_last_error();

  EXPECT_EQ(info_.batch, 2);
  EXPECT_EQ(info_.has_open_batch, expected.has_open_batch() ? 1 : 0);

  ASSERT_EQ(kiln_model_run(model_, nullptr, &input_, 1, &output_, 1), KILN_OK) << kiln_last_error();
  DeviceMemory x(cpp_, 32), y(cpp_, 32);
  const std::vector<float> values = wave(8);
  std::vector<float> result(8);
  x.upload(std::as_bytes(std::span(values)));
  expected.run({{"x", Tensor(x.data(), f32, {2, 4}, nc)}}, {{"y", Tensor(y.data(), f32, {2, 4}, nc)}});
  y.download(std::as_writable_bytes(std::span(result)));
  EXPECT_EQ(download(y_.data), result);
}

// Three values between the calls, of which two at a time are needed.
TEST_F(ModelInC, SaysHowMuchMemoryAModelTakes) {
  std::ofstream(path_, std::ios::binary) << testing_support::softmax_model(4);
  const Model expected(cpp_, path_, {.batch = 2});
  ASSERT_EQ(kiln_model_create(context_, path_.c_str(), &options_, &made_), KILN_OK) << kiln_last_error();
  ASSERT_EQ(kiln_model_get_info(made_, &info_), KILN_OK) << kiln_last_error();
  EXPECT_EQ(info_.step_count, 4U);
  EXPECT_GT(info_.arena_bytes, 0);
  EXPECT_GT(info_.unshared_bytes, info_.arena_bytes);
  EXPECT_EQ(info_.arena_bytes, expected.memory().arena);
  EXPECT_EQ(info_.least_arena_bytes, expected.memory().least_arena);
  EXPECT_EQ(info_.unshared_bytes, expected.memory().unshared);
}

TEST_F(ModelInC, TakesAnotherBatch) {
  ASSERT_EQ(kiln_model_get_step(model_, 0, &step_info_), KILN_OK);
  const std::string of_two = step_info_.request;
  ASSERT_EQ(kiln_model_set_batch(model_, 5), KILN_OK) << kiln_last_error();
  ASSERT_EQ(kiln_model_get_info(model_, &info_), KILN_OK);
  EXPECT_EQ(info_.batch, 5);
  ASSERT_EQ(kiln_model_get_output(model_, 0, &tensor_info_), KILN_OK);
  EXPECT_EQ(std::vector<int64_t>(tensor_info_.extents, tensor_info_.extents + tensor_info_.rank),
            (std::vector<int64_t>{5, 4}));
  ASSERT_EQ(kiln_model_get_step(model_, 0, &step_info_), KILN_OK);
  EXPECT_NE(step_info_.request, of_two);
  ASSERT_EQ(kiln_model_set_batch(model_, 2), KILN_OK);
  EXPECT_EQ(kiln_model_run(model_, nullptr, &input_, 1, &output_, 1), KILN_OK) << kiln_last_error();
}

TEST_F(ModelInC, TakesTheExtentsThatItIsGiven) {
  std::array<int64_t, 2> three = {3, 4}, wrong = {3, 5};
  const kiln_input_shape shape = {"x", three.data(), three.size()}, wrong_shape = {"x", wrong.data(), wrong.size()};
  ASSERT_EQ(kiln_model_set_shapes(model_, &shape, 1), KILN_OK) << kiln_last_error();
  ASSERT_EQ(kiln_model_get_info(model_, &info_), KILN_OK);
  EXPECT_EQ(info_.batch, 3);
  EXPECT_EQ(info_.size_count, 2U);
  EXPECT_EQ(info_.has_open_extents, 0);
  EXPECT_GT(info_.ready_seconds, 0);
  ASSERT_EQ(kiln_model_get_declared_input(model_, 0, &tensor_info_), KILN_OK);
  EXPECT_EQ(tensor_info_.extents[0], -1);
  EXPECT_EQ(tensor_info_.extents[1], 4);
  EXPECT_EQ(kiln_model_run(model_, nullptr, &input_, 1, &output_, 1), KILN_OK) << "inputs of 2 are another size";
  ASSERT_EQ(kiln_model_get_step(model_, 0, &step_info_), KILN_OK);
  EXPECT_THAT(step_info_.request, HasSubstr("x=f32:2x4"));
  EXPECT_EQ(kiln_model_set_shapes(model_, &wrong_shape, 1), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("input 'x' is given as 3x5: extent 1 is 5, expected 4"));
  EXPECT_EQ(kiln_model_set_shapes(model_, nullptr, 0), KILN_OK) << "an open batch is 1";

  options_ = kiln_model_options_default();
  options_.shapes = &shape;
  options_.shape_count = 1;
  options_.kept_sizes = 1;
  ASSERT_EQ(kiln_model_create(context_, path_.c_str(), &options_, &made_), KILN_OK) << kiln_last_error();
  ASSERT_EQ(kiln_model_run(made_, nullptr, &input_, 1, &output_, 1), KILN_OK) << kiln_last_error();
  ASSERT_EQ(kiln_model_get_info(made_, &info_), KILN_OK);
  EXPECT_EQ(info_.size_count, 1U);
  EXPECT_EQ(info_.batch, 2);
}

TEST_F(ModelInC, TakesAnotherDtype) {
  options_.dtype = KILN_F16;
  ASSERT_EQ(kiln_model_create(context_, path_.c_str(), &options_, &made_), KILN_OK) << kiln_last_error();
  ASSERT_EQ(kiln_model_get_step(made_, 0, &step_info_), KILN_OK);
  EXPECT_NE(std::string(step_info_.request).find("=f16:"), std::string::npos) << step_info_.request;
}

// The second run with tensors in the same places becomes one.
TEST_F(ModelInC, SaysWhichDtypesThereAre) {
  options_.dtype = KILN_I8;
  EXPECT_EQ(kiln_model_create(context_, path_.c_str(), &options_, &made_), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(kiln_last_hint(),
               "use KILN_DTYPE_OF_MODEL, or one of KILN_F32, KILN_F16, KILN_BF16, KILN_F8E4M3, KILN_F8E5M2");
}

TEST_F(ModelInC, RunsAreGraphsUnlessTheCallerWantsNone) {
  for (const bool wanted : {true, false}) {
    options_.use_graph = wanted ? 1 : 0;
    ASSERT_EQ(kiln_model_create(context_, path_.c_str(), &options_, &made_), KILN_OK) << kiln_last_error();
    for (const size_t graphs : {0, 1, 1}) {
      ASSERT_EQ(kiln_model_run(made_, nullptr, &input_, 1, &output_, 1), KILN_OK) << kiln_last_error();
      ASSERT_EQ(kiln_model_get_info(made_, &info_), KILN_OK);
      EXPECT_EQ(info_.graph_count, wanted ? graphs : 0);
      EXPECT_THAT(info_.no_graph_because, HasSubstr(wanted ? "" : "loaded without"));
      EXPECT_EQ(std::string(info_.no_graph_because).empty(), wanted);
      const std::vector<float> y = download(y_.data);
      EXPECT_NEAR(static_cast<double>(y[0]) + y[1] + y[2] + y[3], 1, 1e-6);
    }
    kiln_model_destroy(std::exchange(made_, nullptr));
  }
}

TEST_F(ModelInC, WithoutABatchItIsTheModelsOwn) {
  options_ = kiln_model_options_default();
  for (const kiln_model_options* options :
       {static_cast<const kiln_model_options*>(nullptr), &std::as_const(options_)}) {
    ASSERT_EQ(kiln_model_create(context_, path_.c_str(), options, &made_), KILN_OK) << kiln_last_error();
    ASSERT_EQ(kiln_model_get_input(made_, 0, &tensor_info_), KILN_OK);
    EXPECT_EQ(tensor_info_.extents[0], 1);
    kiln_model_destroy(std::exchange(made_, nullptr));
  }
}

TEST_F(ModelInC, OutlivesTheHandleOfItsContext) {
  kiln_context* context = nullptr;
  const kiln_context_options options = CApi::options();
  ASSERT_EQ(kiln_context_create(&options, &context), KILN_OK);
  ASSERT_EQ(kiln_model_create(context, path_.c_str(), &options_, &made_), KILN_OK) << kiln_last_error();
  kiln_context_destroy(context);
  EXPECT_EQ(kiln_model_run(made_, nullptr, &input_, 1, &output_, 1), KILN_OK) << kiln_last_error();
}

// Errors of both libraries, by the one kiln_last_error().
TEST_F(ModelInC, ReportsAsAllOfTheCApiDoes) {
  EXPECT_EQ(kiln_model_create(context_, "no/such/file.onnx", nullptr, &made_), KILN_IO_ERROR);
  EXPECT_THAT(kiln_last_error(), HasSubstr("no/such/file.onnx"));
  const kiln_tensor other = tensor(x_.data, {1, 4});
  const kiln_named_tensor input = {"x", &other};
  EXPECT_EQ(kiln_model_run(model_, nullptr, &input, 1, &output_, 1), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("output 'y' is f32 2x4, expected f32 1x4"));
  EXPECT_THAT(kiln_last_hint(), HasSubstr("kiln_model_set_shapes()"));
  EXPECT_EQ(made_, nullptr);
}

TEST_F(ModelInC, RefusesWhatIsWrongWithAnArgumentAndRunsNothing) {
  const Declarations declared = declared_functions();
  Names exported, covered;
  std::vector<Case> rows;
  const auto add = [&]<class... Arguments>(const std::string& name, kiln_status (*function)(Arguments...),
                                           Names optional, std::type_identity_t<Arguments>... good) {
    covered.insert(name);
    const ArgumentRows made(name, function, declared.at(name), std::move(optional), good...);
    rows.insert(rows.end(), made.rows().begin(), made.rows().end());
  };
  add("kiln_model_create", kiln_model_create, {"options"}, context_, path_.c_str(), &options_, &made_);
  add("kiln_model_set_batch", kiln_model_set_batch, {}, model_, 2);
  add("kiln_model_set_shapes", kiln_model_set_shapes, {}, model_, &shape_, 1);
  add("kiln_model_get_info", kiln_model_get_info, {}, model_, &info_);
  add("kiln_model_get_input", kiln_model_get_input, {}, model_, 0, &tensor_info_);
  add("kiln_model_get_declared_input", kiln_model_get_declared_input, {}, model_, 0, &tensor_info_);
  add("kiln_model_get_output", kiln_model_get_output, {}, model_, 0, &tensor_info_);
  add("kiln_model_get_step", kiln_model_get_step, {}, model_, 0, &step_info_);
  add("kiln_model_requests", kiln_model_requests, {}, model_, &requests_);
  add("kiln_model_run", kiln_model_run, {"stream"}, model_, nullptr, &input_, 1, &output_, 1);
  for (const std::string& symbol : exported_symbols(KILN_LIBRARY)) {
    const std::string name = symbol.substr(0, symbol.find('@'));
    if (name.starts_with("kiln_") && !name.ends_with("_destroy")) exported.insert(name);
  }
  EXPECT_EQ(covered, exported) << "functions of the library need rows here";
  EXPECT_EQ(declared.size(), exported.size());

  const auto of_options = [&](const char* message, auto edit) {
    rows.push_back({message, [this, edit] {
                      const kiln_model_options bad = with(options_, edit);
                      return kiln_model_create(context_, path_.c_str(), &bad, &made_);
                    }});
  };
  of_options("kiln_model_create: batch is -1", [](auto& o) { o.batch = -1; });
  for (const kiln_dtype dtype : {-2, 99, static_cast<int>(KILN_I32)}) {
    of_options("kiln_model_create: dtype is ", [=](auto& o) { o.dtype = dtype; });
  }
  of_options("kiln_model_create: fuse is 2, expected 0 or 1", [](auto& o) { o.fuse = 2; });
  of_options("kiln_model_create: use_graph is 2, expected 0 or 1", [](auto& o) { o.use_graph = 2; });
  of_options("kiln_model_create: tf32 is 2, expected 0 or 1", [](auto& o) { o.tf32 = 2; });
  of_options("kiln_model_create: fast is 2, expected 0 or 1", [](auto& o) { o.fast = 2; });
  of_options("kiln_model_create: deterministic is 2, expected 0 or 1", [](auto& o) { o.deterministic = 2; });
  for (const kiln_model_layout layout : {-1, 3}) {
    of_options("kiln_model_create: layout is ", [=](auto& o) { o.layout = layout; });
  }
  of_options("kiln_model_create: shapes is NULL", [](auto& o) { o.shape_count = 1; });
  of_options("kiln_model_create: kept_bytes is -1", [](auto& o) { o.kept_bytes = -1; });
  struct WrongShape {
    kiln_input_shape shape;
    const char* message;
  };
  for (const WrongShape& wrong :
       std::vector<WrongShape>{{{nullptr, extents_.data(), 2}, "shapes[0].name is NULL"},
                               {{"x", nullptr, 2}, "shapes[0].extents is NULL"},
                               {{"z", extents_.data(), 2}, "the model has no input 'z'"},
                               {{"x", extents_.data(), 1}, "it has 1 dimensions, expected 2"},
                               {{"x", extents_.data(), 1 << 20}, "shapes[0].rank is 1048576"}}) {
    rows.push_back({wrong.message, [this, shape = wrong.shape] { return kiln_model_set_shapes(model_, &shape, 1); }});
  }
  const std::array<kiln_input_shape, 2> twice = {shape_, shape_};
  rows.push_back({"'x' is given twice", [&] { return kiln_model_set_shapes(model_, twice.data(), 2); }});
  for (const int64_t batch : {0, -3}) {
    rows.push_back({"the batch is ", [this, batch] { return kiln_model_set_batch(model_, batch); }});
  }
  rows.push_back(
      {"there is no input 1: the model has 1", [&] { return kiln_model_get_input(model_, 1, &tensor_info_); }});
  rows.push_back(
      {"there is no output 1: the model has 1", [&] { return kiln_model_get_output(model_, 1, &tensor_info_); }});
  rows.push_back({"there is no step 9: the model has 1", [&] { return kiln_model_get_step(model_, 9, &step_info_); }});
  for (const kiln_named_tensor bad : {kiln_named_tensor{nullptr, &x_}, {"x", nullptr}, {"z", &x_}}) {
    rows.push_back({bad.name == nullptr     ? "inputs[0].name is NULL"
                    : bad.tensor == nullptr ? "inputs[0].tensor is NULL"
                                            : "the model has no input 'z'",
                    [this, bad] { return kiln_model_run(model_, nullptr, &bad, 1, &output_, 1); }});
  }
  alignas(16) static const std::array<float, 8> host{};
  const std::vector<std::pair<const char*, const void*>> unreachable = {
      {"input 'x' is at 0x", host.data()},
      {"input 'x' takes 32 bytes, from 0x", static_cast<const float*>(x_.data) + 4}};
  for (const auto& [message, data] : unreachable) {
    rows.push_back({message, [this, data = data] {
                      const kiln_tensor there = tensor(data, {2, 4});
                      const kiln_named_tensor input = {"x", &there};
                      return kiln_model_run(model_, nullptr, &input, 1, &output_, 1);
                    }});
  }
  rows.push_back({"output 'y' is not given", [&] { return kiln_model_run(model_, nullptr, &input_, 1, nullptr, 0); }});
  expect_refused(rows);
  EXPECT_EQ(download(y_.data), wave(8));
  EXPECT_EQ(made_, nullptr);
  EXPECT_EQ(requests_, nullptr);
}

}  // namespace
}  // namespace kiln::capi::model_test
