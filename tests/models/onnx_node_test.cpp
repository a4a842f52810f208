// ONNX's node tests through whole models, and the page that says what became of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include "kernel_folder.h"
#include "kiln/base/error.h"
#include "kiln/context.h"
#include "kiln/model.h"
#include "kiln/models/host_run.h"
#include "node_tests_page.h"

namespace kiln::test::onnx_node_test {
namespace {

constexpr const char* data_folder = "/usr/share/libonnx-testdata/data";

ContextOptions options() {
  ContextOptions options;
  options.cache = "off";
  options.kernel_store = testing_support::kernel_folder();
  options.announce = [](std::string_view) {};
  return options;
}

/// The tensors of a set, which the model must have as many of.
std::vector<models::HostArray> arrays_of(const std::vector<onnx::TensorProto>& tensors,
                                         const std::vector<ModelTensor>& ports) {
  std::vector<models::HostArray> arrays;
  for (const onnx::TensorProto& tensor : tensors) {
    if (auto array = read_tensor(tensor)) arrays.push_back(std::move(*array));
  }
  if (arrays.size() != ports.size()) throw std::runtime_error("the data has another number of tensors than the model");
  for (size_t i = 0; i < ports.size(); ++i) {  // NumPy has no bfloat16, and the data has its bits
    if (ports[i].type == "bfloat16" && arrays[i].type == "uint16") arrays[i].type = "bfloat16";
  }
  return arrays;
}

/// Runs the model on one set; what is wrong, or nothing.
std::string run_set(Context& context, Model& model, const DataSet& set) {
  const auto results = models::run_on_host(context, model, arrays_of(set.inputs, model.inputs()));
  const auto expected = arrays_of(set.outputs, model.outputs());
  for (size_t i = 0; i < results.size(); ++i) {
    if (std::string fault = difference(results[i], expected[i]); !fault.empty()) return fault;
  }
  return {};
}

/// Text behind the first ": " of `text`.
std::string behind_colon(const std::string& text) {
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

/// The reasons in a Model's error, `OPERATOR: reason`, each once and without the names of files and nodes. A refusal
/// that follows from another node's is none.
std::string reason_of(const Error& error) {
  std::istringstream lines(error.message());
  std::string line, reasons;
  std::getline(lines, line);
  std::set<std::string> seen;
  while (std::getline(lines, line)) {  //   node 'NAME' (OPERATOR): reason
    const size_t open = line.find("' (") + 3, close = line.find("): ", open);
    const std::string reason = line.substr(open, close - open) + ": " + line.substr(close + 3);
    if (line.find("which a node gives that is not covered") != std::string::npos || !seen.insert(reason).second)
      continue;
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  return reasons.empty() ? behind_colon(error.message()) : reasons;
}

class OnnxNodeTests : public testing::Test {
 protected:
  static void SetUpTestSuite() { context_ = std::make_unique<Context>(options()); }
  static void TearDownTestSuite() { context_.reset(); }

  void SetUp() override {
    if (!std::filesystem::exists(data_folder)) {
      GTEST_SKIP() << "ONNX's test data is not installed: Debian's libonnx-testdata, which scripts/setup installs";
    }
    tests_ = node_tests_in(data_folder);
    std::ostringstream text;
    text << std::ifstream(KILN_NODE_TESTS_PAGE).rdbuf();
    page_ = text.str();
  }

  static Outcome outcome(const NodeTest& test) {
    return outcome_of(test, [](const std::filesystem::path& path, const std::vector<DataSet>& sets) -> std::string {
      try {
        Model model(*context_, path);
        for (const DataSet& set : sets) {
          if (std::string fault = run_set(*context_, model, set); !fault.empty()) return fault;
        }
        return sets.empty() ? "it runs, but its data is no tensors" : "";
      } catch (const Error& error) {
        const bool is_refusal = error.code() == ErrorCode::unsupported || error.code() == ErrorCode::parse_error ||
                                error.code() == ErrorCode::invalid_argument;
        if (is_refusal) throw Refusal{reason_of(error)};
        if (error.code() == ErrorCode::driver_error) {  // the device may be lost to this Context
          context_.reset();
          context_ = std::make_unique<Context>(options());
        }
        return fmt::format("{}: {}", to_string(error.code()), error.what());
      } catch (const std::exception& error) {
        return error.what();
      }
    });
  }

  static std::unique_ptr<Context> context_;
  std::vector<NodeTest> tests_;
  std::string page_;
};

std::unique_ptr<Context> OnnxNodeTests::context_;

// Refusals cost next to nothing: all of them. Among the others the first of each operator, because each compiles
// kernels.
TEST_F(OnnxNodeTests, ThoseRefusedAndOneOfEachOperatorDoWhatThePageSays) {
  const std::map<std::string, std::string> refusals = refusals_on(page_);
  std::set<std::string> operators;
  for (const NodeTest& test : tests_) {
    const auto refusal = refusals.find(test.name);
    const bool is_first = refusal == refusals.end() && operators.insert(test.operation).second;
    if (refusal == refusals.end() && !is_first) continue;
    const Outcome result = outcome(test);
    EXPECT_EQ(result.text, refusal == refusals.end() ? "" : refusal->second) << test.name;
    EXPECT_NE(result.kind, Outcome::Kind::wrong) << test.name;
  }
}

// Minutes: not part of the test command. docs/testing.md says how to run it.
TEST_F(OnnxNodeTests, DISABLED_AllDoWhatThePageSays) {
  std::vector<Outcome> outcomes;
  for (const NodeTest& test : tests_) {
    outcomes.push_back(outcome(test));
    EXPECT_NE(outcomes.back().kind, Outcome::Kind::wrong) << test.name << ": " << outcomes.back().text;
  }
  const std::string fresh = page_of(tests_, outcomes);
  if (fresh == page_) return;
  const std::string path = KILN_NODE_TESTS_FRESH;
  std::ofstream(path) << fresh;
  ADD_FAILURE() << "the page is not what the tests give: compare it with " << path << ", and put that in its place";
}

}  // namespace
}  // namespace kiln::test::onnx_node_test
