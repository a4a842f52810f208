// kiln infer, on models and arrays in files.
#include <gmock/gmock.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "onnx_model.h"
#include "program.h"

namespace kiln::cli::infer_test {
namespace {

using testing::HasSubstr;

/// A file as numpy.save() writes it.
std::string npy(const std::string& type, const std::string& shape, const std::string& elements, bool columns = false) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + (columns ? "True" : "False") + ", 'shape': " + shape + ", }";
  header.resize(118 - 1, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(118) + '\0' + header + elements;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class Infer : public ProgramTest {
 protected:
  Infer() {
    test::OnnxModel model(13);
    model.input("x", {"N", 2});
    model.input("z", {"N", 2});
    model.node("Relu", {"x"}, {"r"});
    model.node("Add", {"r", "z"}, {"sum"});
    model.node("Sub", {"x", "z"}, {"difference"});
    model.output("sum");
    model.output("difference");
    model_ = write("model.onnx", model.bytes());
    x_ = write("x.npy", npy("<f4", "(2, 2)", bytes_of<float>({1, -2, 3, -4})));
    z_ = write("z.npy", npy("<f4", "(2, 2)", bytes_of<float>({10, 20, 30, 40})));
  }

  /// The elements behind the header.
  std::vector<float> result(const std::string& name) const {
    const std::string file = read(name);
    std::vector<float> values((file.size() - 128) / sizeof(float));
    std::memcpy(values.data(), file.data() + 128, values.size() * sizeof(float));
    return values;
  }

  void expect_error(const std::vector<std::string>& arguments, const std::string& text) const {
    std::vector<std::string> all = {"infer", model_, "--batch", "2"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = kiln(all);
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.err, HasSubstr(text));
  }

  std::string model_, x_, z_;
};

TEST_F(Infer, ComputesOutputsByNameAndInOrder) {
  const Outcome named = kiln({"infer", model_, "--batch", "2", "--input", "z=" + z_, "--input", "x=" + x_, "--output",
                              "difference=" + path("d.npy"), "--output", "sum=" + path("s.npy")});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(result("s.npy"), (std::vector<float>{11, 20, 33, 40}));
  EXPECT_EQ(result("d.npy"), (std::vector<float>{-9, -22, -27, -44}));
  EXPECT_THAT(read("s.npy").substr(0, 70), HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"));
  const Outcome ordered =
      kiln({"infer", model_, "--batch", "2", "--input", x_, "--input", z_, "--output", path("t.npy")});
  EXPECT_EQ(ordered.exit_code, 0) << ordered.err;
  EXPECT_EQ(read("t.npy"), read("s.npy"));
}

TEST_F(Infer, ConvertsTypesAndTakesColumnsFirst) {
  const std::string doubles = write("c.npy", npy("<f8", "(2, 2)", bytes_of<double>({1, 3, -2, -4}), true));
  const Outcome outcome =
      kiln({"infer", model_, "--batch", "2", "--input", doubles, "--input", z_, "--output", path("s.npy")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(result("s.npy"), (std::vector<float>{11, 20, 33, 40}));
}

TEST_F(Infer, WithoutArraysShowsWhatWouldRun) {
  const Outcome outcome = kiln({"infer", model_});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("input  x: float 1x2 (on the device f32)"));
  EXPECT_THAT(outcome.out, HasSubstr("output difference: float 1x2"));
  const Outcome json = kiln({"infer", model_, "--json", "--batch", "3"});
  const auto object = nlohmann::json::parse(json.out);
  EXPECT_EQ(object["inputs"][0]["extents"], (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(object["steps"].size(), 2U);
  EXPECT_EQ(object["steps"][0]["nodes"], (std::vector<std::string>{"r", "sum"}));
}

TEST_F(Infer, TakesTheBatchOfItsInputs) {
  for (const std::vector<std::string>& batch : {std::vector<std::string>{}, {"--batch", "?"}, {"--batch", "?8"}}) {
    std::vector<std::string> arguments = {
        "infer", model_, "--input", "z=" + z_, "--input", "x=" + x_, "--output", "sum=" + path("sum.npy"), "--json"};
    arguments.insert(arguments.end(), batch.begin(), batch.end());
    const Outcome outcome = kiln(arguments);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto object = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(object["inputs"][0]["extents"], (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(object["steps"][0]["request"].get<std::string>().find("n=?") != std::string::npos, !batch.empty());
    EXPECT_EQ(result("sum.npy"), (std::vector<float>{11, 20, 33, 40}));
  }
  const Outcome more = kiln({"infer", model_, "--batch", "?1", "--input", x_, "--input", z_});
  EXPECT_NE(more.exit_code, 0);
  EXPECT_THAT(more.err, HasSubstr("the inputs are a batch of 2, and --batch ?1 is for up to 1"));
  EXPECT_THAT(kiln({"infer", model_, "--batch", "two"}).err, HasSubstr("--batch two is not a batch"));
}

TEST_F(Infer, RunsWhatWasTunedForIt) {
  const std::string database = path("tuning.db");
  const Outcome tuned = kiln({"tune", model_, "--batch", "2", "--db", database, "--candidates", "2", "--quiet"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const Outcome outcome = kiln({"infer", model_, "--batch", "2", "--db", database, "--json"});
  const auto object = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(object["steps"].size(), 2U);
  for (const auto& step : object["steps"]) EXPECT_EQ(step["choice"], "modelled on this device") << step;
}

TEST_F(ProgramTest, InferRunsAWholeNetworkByWhatWasTuned) {
  const std::string network = std::string(KILN_SOURCE_DIR) + "/examples/models/squeezenet1_1.onnx";
  const std::string database = path("tuning.db");
  const Outcome tuned = kiln({"tune", network, "--db", database, "--candidates", "1", "--json", "--quiet"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  std::set<std::string> requests;
  const auto report = nlohmann::json::parse(tuned.out);
  for (const auto& layer : report["layers"]) requests.insert(layer["request"]);
  const Outcome outcome = kiln({"infer", network, "--db", database, "--json"});
  const auto steps = nlohmann::json::parse(outcome.out)["steps"];
  EXPECT_EQ(steps.size(), 31U);
  for (const auto& step : steps) {
    EXPECT_EQ(step["choice"], "modelled on this device") << step;
    EXPECT_TRUE(requests.contains(step["request"])) << step;
  }
}

TEST_F(Infer, SaysWhatIsWrongWithArraysAndNames) {
  expect_error({"--input", x_}, "input 'z' is not given");
  expect_error({"--input", "y=" + x_, "--input", z_}, "fits no input of the model");
  expect_error({"--input", "x=" + x_, "--input", "x=" + z_}, "'x' is given twice");
  expect_error({"--input", x_, "--input", z_, "--input", z_}, "fits no input of the model");
  expect_error({"--input", path("none.npy"), "--input", z_}, "none.npy");
  const std::string text = write("text.npy", "1 2 3 4");
  expect_error({"--input", text, "--input", z_}, "is no .npy file");
  const std::string cut = write("cut.npy", npy("<f4", "(2, 2)", "1234"));
  expect_error({"--input", cut, "--input", z_}, "has 4 bytes of elements, expected 16");
  const std::string large = write("large.npy", npy("<f4", "(99999999999, 99999999999, 4)", ""));
  expect_error({"--input", large, "--input", z_}, "bytes of elements");
  const std::string words = write("words.npy", npy("<U4", "(2, 2)", std::string(64, 'a')));
  expect_error({"--input", words, "--input", z_}, "elements of type '<U4', which no model has");
  const std::string other = write("other.npy", npy("<f4", "(4,)", bytes_of<float>({1, 2, 3, 4})));
  expect_error({"--input", other, "--input", z_}, "input 'x' is given as 4: it has 1 dimensions, expected 2");
}

/// sum = Relu(x) + z of rows of any length.
class InferOpen : public Infer {
 protected:
  InferOpen() {
    test::OnnxModel model(13);
    model.input("x", {"N", "length"}).input("z", {1, "length"});
    model.node("Relu", {"x"}, {"r"});
    model.node("Add", {"r", "z"}, {"sum"});
    model.output("sum");
    open_ = write("open.onnx", model.bytes());
    row_ = write("row.npy", npy("<f4", "(1, 2)", bytes_of<float>({10, 20})));
  }

  std::string open_, row_;
};

TEST_F(InferOpen, TakesTheExtentsOfItsInputs) {
  const Outcome outcome =
      kiln({"infer", open_, "--input", x_, "--input", row_, "--output", path("open_sum.npy"), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(result("open_sum.npy"), (std::vector<float>{11, 20, 13, 20}));
  const auto cost = nlohmann::json::parse(outcome.out)["cost"];
  EXPECT_GT(cost["seconds"], 0);
  EXPECT_GE(cost["compiled"], 0);
}

TEST_F(InferOpen, WithoutInputsTakesThoseOfShape) {
  const Outcome none = kiln({"infer", open_});
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.err, HasSubstr("extents of inputs open: 'x' [N, length], 'z' [1, length]"));
  EXPECT_THAT(none.err, HasSubstr("--shape NAME="));
  const Outcome one = kiln({"infer", open_, "--shape", "x=3x7"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("input  z: float 1x7"));
  EXPECT_THAT(one.out, HasSubstr("ms of the host's time"));
  EXPECT_THAT(kiln({"infer", open_, "--shape", "3x7,3x8"}).err, HasSubstr("--shape names 2 sizes, and a run has one"));
  EXPECT_THAT(kiln({"infer", open_, "--shape", "3x7", "--input", x_, "--input", row_}).err,
              HasSubstr("--shape says 3x7 of input 'x', and its file holds 2x2"));
  EXPECT_THAT(kiln({"infer", open_, "--batch", "3", "--input", x_, "--input", row_}).err,
              HasSubstr("the batch is 3, and the given shapes have 2"));
  EXPECT_THAT(kiln({"infer", open_, "--output", path("s.npy")}).err, HasSubstr("input 'x' is not given"));
}

TEST_F(InferOpen, TuneTakesListsAndRangesOfShapes) {
  const std::string database = path("tuning.db");
  const Outcome tuned =
      kiln({"tune", open_, "--shape", "x=1x4..8/2,2x2", "--db", database, "--candidates", "1", "--json", "--quiet"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  std::set<std::string> requests;
  const auto report = nlohmann::json::parse(tuned.out);
  for (const auto& layer : report["layers"]) requests.insert(layer["request"]);
  EXPECT_EQ(requests.size(), 4U);
  const Outcome outcome = kiln({"infer", open_, "--input", x_, "--input", row_, "--db", database, "--json"});
  for (const auto& step : nlohmann::json::parse(outcome.out)["steps"]) {
    EXPECT_EQ(step["choice"], "modelled on this device") << step;
    EXPECT_TRUE(requests.contains(step["request"])) << step;
  }
  EXPECT_THAT(kiln({"explain", "softmax_forward x=f32:2x3 axis=1", "--shape", "1"}).err,
              HasSubstr("--shape, --no-fuse and --arithmetic apply to ONNX models"));
}

}  // namespace
}  // namespace kiln::cli::infer_test
