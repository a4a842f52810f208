// ONNX's node tests, as Debian's libonnx-testdata installs them: a folder for each, with a model, inputs and outputs.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "onnx_tensor.h"

namespace kiln::test {

struct NodeTest {
  std::string name;  ///< Its folder's, without `test_`.
  std::filesystem::path folder;
  std::string operation;  ///< Operation of its only node; "several" for models of more nodes.
};

/// All tests under `data`, by name.
std::vector<NodeTest> node_tests_in(const std::filesystem::path& data);

/// One of a test's data sets: what its files hold, in the order of the model's inputs and outputs.
struct DataSet {
  std::vector<onnx::TensorProto> inputs, outputs;
};

/// None if an input or output is no tensor.
std::vector<DataSet> data_sets_of(const NodeTest& test);

/// Outcome of a test.
struct Outcome {
  enum class Kind {
    passed,
    passed_with_constants,  ///< As with_constants() has the model.
    refused,
    wrong,
  };
  Kind kind = Kind::passed;
  std::string text;  ///< The reason of a refusal, or what is wrong.
};

/// Runs a model on data sets: throws Refusal, or gives what is wrong; empty if nothing is.
using RunModel = std::function<std::string(const std::filesystem::path& model, const std::vector<DataSet>& sets)>;

/// Thrown by a RunModel: the model is not covered.
struct Refusal {
  std::string reason;
};

/// Runs a test as it is; if it is refused, with its parameters as constants. The reason of the second refusal counts.
Outcome outcome_of(const NodeTest& test, const RunModel& run);

/// The model with constants in place of those inputs that are parameters of its nodes, such as the shape of a Reshape
/// and the axes of a reduction: models have them as constants, and these tests as inputs. False if it has none.
bool with_constants(onnx::ModelProto& model, std::vector<DataSet>& sets);

}  // namespace kiln::test
