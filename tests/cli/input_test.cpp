#include "input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <map>

#include "device_choice.h"
#include "kiln/base/error.h"
#include "kiln/models/lower.h"
#include "layer_table.h"

namespace kiln::cli::input_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Input input(const std::string& text) {
  Input result;
  result.text = text;
  return result;
}

std::string failure(const Input& what) {
  try {
    read_workload(what);
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ModelNodes, NameWhatARequestServes) {
  const Request conv = Request::parse("conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3"),
                copy = Request::parse("activation_forward x=f32:9 mode=relu");
  ModelNodes nodes;
  EXPECT_TRUE(nodes.empty());
  nodes.add(conv, {"first", "relu"});
  nodes.add(conv, {"second", "relu"});
  nodes.add(copy, {});
  EXPECT_THAT(nodes.of(conv), testing::ElementsAre("first", "relu", "second"));
  EXPECT_EQ(nodes.text(conv), "first, relu and 1 more");
  EXPECT_EQ(nodes.text(copy), "(copy)");
  EXPECT_THAT(nodes.of(Request::parse("softmax_forward x=f32:1x10")), testing::IsEmpty());
}

TEST(ModelNodes, ShareAScopeThatEndsWithASlash) {
  EXPECT_EQ(shared_scope({"/network/stem/Conv", "/network/head/Gemm"}), "/network/");
  EXPECT_EQ(shared_scope({"/network/features/a", "/network/features/b", "/network/fc/c"}), "/network/");
  EXPECT_EQ(shared_scope({"/network/layer1", "/network/layer10"}), "/network/") << "not within a name";
  EXPECT_EQ(shared_scope({"Conv_0", "Conv_1"}), "");
  EXPECT_EQ(shared_scope({"/a/b/", "/a/b/c"}), "/a/") << "something is left of each";
  EXPECT_EQ(shared_scope({"/a/b", ""}), "");
  EXPECT_EQ(shared_scope({"/only/one"}), "");
  EXPECT_EQ(shared_scope({}), "");
}

TEST(LayerTable, PutsTheNodesLastAndTheirScopeInTheHeading) {
  const Request conv = Request::parse("softmax_forward x=f32:1x10"),
                other = Request::parse("softmax_forward x=f32:1x9");
  ModelNodes nodes;
  nodes.add(conv, {"/network/a/Softmax", "/network/b/Softmax"});
  nodes.add(other, {"/network/c/Softmax"});
  LayerTable table(nodes, {">time"});
  table.add(conv, 2, {"1 us"});
  table.add(other, 1, {"2 us"});
  EXPECT_THAT(table.table().print(), testing::MatchesRegex("layer +count +time  nodes of /network/\n"
                                                           "softmax 1x10.* 2  1 us  a/Softmax, b/Softmax\n"
                                                           "softmax 1x9.* 1  2 us  c/Softmax\n"));
  const ModelNodes none;
  LayerTable without(none, {">time"});
  without.add(conv, 2, {"1 us"});
  EXPECT_THAT(without.table().print(), testing::Not(testing::HasSubstr("nodes")));
}

TEST(Workload, ReadsARequestInQuotes) {
  const Workload workload = read_workload(input("softmax_forward x=f32:1x10 *2"));
  ASSERT_EQ(workload.jobs.size(), 1u);
  EXPECT_EQ(workload.jobs[0].count, 2);
}

TEST(Workload, AddsUpRepeatedLinesOfAFile) {
  const std::string path = testing::TempDir() + "kiln_requests.txt";
  std::ofstream(path)
      << "softmax_forward x=f32:1x10\n# again, written differently\nsoftmax_forward x=f32:1x10 axis=-1 *3\n";
  const Workload workload = read_workload(input(path));
  ASSERT_EQ(workload.jobs.size(), 1u);
  EXPECT_EQ(workload.jobs[0].count, 4);
}

// A shell's `<(...)` is a pipe.
TEST(Workload, ReadsAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string_view line = "softmax_forward x=f32:1x10 *2\n";
  ASSERT_EQ(::write(ends[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
  ::close(ends[1]);
  const Workload workload = read_workload(input("/dev/fd/" + std::to_string(ends[0])));
  ::close(ends[0]);
  ASSERT_EQ(workload.jobs.size(), 1u);
  EXPECT_EQ(workload.jobs[0].count, 2);
}

TEST(Workload, NamesFileLineAndColumn) {
  const std::string path = testing::TempDir() + "kiln_bad_requests.txt";
  std::ofstream(path) << "softmax_forward x=f32:1x10\nsoftmax_forward x=f33:1x10\n";
  EXPECT_THAT(failure(input(path)), HasSubstr(path + ": line 2: column 17"));
}

TEST(Workload, RefusesAFileThatDefinesUserCodeWhereItIsAskedTo) {
  const std::string definition = "expression twice\n2.0f * acc\nend expression\n";
  const std::string request = "softmax_forward x=f32:1x10 epilogue=user:twice\n";
  const std::string mine = testing::TempDir() + "mine.txt", theirs = testing::TempDir() + "theirs.txt";
  std::ofstream(mine) << definition;
  std::ofstream(theirs) << "# a network\n" << definition << request;
  Input what = input(theirs);
  EXPECT_EQ(read_workload(what).jobs.size(), 1U);
  what.no_code = true;
  EXPECT_THAT(failure(what),
              AllOf(HasSubstr(theirs + ": line 2: "), HasSubstr("expression twice"), HasSubstr("leave out --no-code")));
  // A definition that the user names is the user's.
  std::ofstream(theirs) << request;
  what.expressions = {mine};
  EXPECT_EQ(read_workload(what).jobs.size(), 1U);
  what = input(definition + request);  // a request in quotes may have more than one line
  what.no_code = true;
  EXPECT_THAT(failure(what), HasSubstr("request: line 1: "));
}

TEST(Workload, RefusesWhatIsNotThereOrEmpty) {
  EXPECT_THAT(failure(input("no_such_file.txt")), HasSubstr("there is no file no_such_file.txt"));
  EXPECT_THAT(failure(input("no_such_model.onnx")), HasSubstr("no_such_model.onnx"));
  const std::string path = testing::TempDir() + "kiln_empty.txt";
  std::ofstream(path) << "# nothing\n";
  EXPECT_THAT(failure(input(path)), HasSubstr("holds no request"));
}

TEST(Workload, TakesAnOperationAloneForARequest) {
  EXPECT_THAT(failure(input("gemm")), HasSubstr("request: line 1: gemm"));
}

TEST(Workload, RefusesModelFlagsForRequests) {
  Input half = input("softmax_forward x=f32:1x10");
  half.model.dtype = "f16";
  EXPECT_THAT(failure(half), HasSubstr("apply to ONNX models"));
}

using Counts = std::map<std::string, int64_t>;

Counts jobs_of(const Input& what) {
  Counts counts;
  for (const tuner::Job& job : read_workload(what).jobs) counts[job.request.key()] += job.count;
  return counts;
}

/// The steps of a Model, by their requests.
Counts steps_of(const std::string& path, const ModelOptions& options) {
  Counts counts;
  for (const graph::Step& step : models::lower(path, options).schedule.steps) ++counts[step.request.key()];
  return counts;
}

TEST(Workload, OfAModelIsWhatInferRunsOfIt) {
  for (const char* name : {"squeezenet1_1", "resnet18", "mobilenet_v2"}) {
    const std::string path = std::string(KILN_SOURCE_DIR) + "/examples/models/" + name + ".onnx";
    EXPECT_EQ(jobs_of({.text = path}), steps_of(path, {})) << name;
    EXPECT_EQ(jobs_of({.text = path, .model = {.dtype = "f16", .batch = "?5"}}),
              steps_of(path, {.batch = 5, .dtype = DType::f16, .dynamic_batch = true}));
    EXPECT_EQ(jobs_of({.text = path, .model = {.layout = "nhwc", .batch = "3", .no_fuse = true}}),
              steps_of(path, {.batch = 3, .fuse = false, .layout = ModelLayout::channels_last}));
    EXPECT_EQ(jobs_of({.text = path, .model = {.arithmetic = "fast,deterministic"}}),
              steps_of(path, {.arithmetic = {.fast = true, .deterministic = true}}));
  }
}

TEST(Workload, RefusesUnknownArithmetic) {
  const std::string path = std::string(KILN_SOURCE_DIR) + "/examples/models/resnet18.onnx";
  for (const char* wrong : {"quick", "fast,", "fast,,tf32", ",", "Fast"}) {
    EXPECT_THAT(failure({.text = path, .model = {.arithmetic = wrong}}), HasSubstr("is unknown")) << wrong;
  }
}

TEST(Workload, RefusesWhatIsNoBatch) {
  const std::string path = std::string(KILN_SOURCE_DIR) + "/examples/models/resnet18.onnx";
  for (const char* batch : {"0", "-1", "x", "?x", "1?"}) {
    EXPECT_THAT(failure({.text = path, .model = {.batch = batch}}),
                HasSubstr(std::string("--batch ") + batch + " is not a batch"));
  }
}

TEST(DeviceChoice, TakesOrdinalsAndDrivers) {
  EXPECT_EQ(DeviceChoice{"2"}.ordinal(), 2);
  EXPECT_EQ(DeviceChoice{"cuda:1"}.ordinal(), 1);
  EXPECT_EQ(DeviceChoice{"cuda:1"}.environment().driver, "cuda");
  EXPECT_EQ(DeviceChoice{"emulator"}.environment().driver, "emulator");
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "-1", "1:cuda"}) {
    EXPECT_THROW((void)DeviceChoice{text}.ordinal(), Error) << text;
  }
}

}  // namespace
}  // namespace kiln::cli::input_test
