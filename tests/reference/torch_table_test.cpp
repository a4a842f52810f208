// References against PyTorch: attention_torch.py, columns_torch.py, ctc_torch.py, elements_torch.py,
// recurrent_torch.py, rows_torch.py and windows_torch.py made the tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "call.h"
#include "deep_tests.h"
#include "kiln/generator/operation.h"

namespace kiln::reference::torch_table_test {
namespace {

bool is_same(double value, double expected) {
  if (std::isnan(expected)) return std::isnan(value);
  return value == expected && std::signbit(value) == std::signbit(expected);
}

// Within a tolerance that is absolute and relative.
bool is_near(double value, double expected, double tolerance) {
  if (!std::isfinite(expected)) return is_same(value, expected);
  return std::fabs(value - expected) <= tolerance + tolerance * std::fabs(expected);
}

// One call of the table: what came before its results.
class TableCall {
 public:
  explicit TableCall(const std::string& line) : call_(line) {
    bindings_.values.beta = 0;
    const std::vector<ScalarDefinition>& scalars = operation(call_.request.operation).scalars();
    for (size_t i = 0; i < scalars.size(); ++i) bindings_.values.operation_scalars[i] = scalars[i].in_checks;
  }

  // The tolerance of results; an operand in logical order; with @ before its name, its memory in that order; or a
  // number of the call.
  void set(const std::string& name, const std::vector<double>& values) {
    const std::vector<ScalarDefinition>& scalars = operation(call_.request.operation).scalars();
    const auto is_named = [&](const ScalarDefinition& scalar) { return scalar.name == name; };
    const auto scalar = std::ranges::find_if(scalars, is_named);
    const auto number = static_cast<float>(values.empty() ? 0 : values.front());
    if (name == "tolerance") {
      tolerance_ = values.front();
    } else if (name == "alpha" || name == "beta") {
      (name == "alpha" ? bindings_.values.alpha : bindings_.values.beta) = number;
    } else if (scalar != scalars.end()) {
      bindings_.values.operation_scalars[static_cast<size_t>(scalar - scalars.begin())] = number;
    } else if (name.front() == '@') {
      set_memory(name.substr(1), values);
    } else {
      call_.set(name, values);
    }
  }

  void expect(const std::string& output, const std::vector<double>& values) {
    for (const auto& [name, bytes] : call_.memory) bindings_.operands[name] = bytes;
    const std::vector<double> got = evaluate(call_.request, bindings_, output);
    ASSERT_EQ(got.size(), values.size()) << call_.request.key();
    const DType dtype = call_.request.at(output).dtype;
    for (size_t i = 0; i < got.size(); ++i) {
      // PyTorch's are in double where f32 is stored, and as they are stored elsewhere.
      const bool is_rounded = dtype != DType::f32;
      const double value = is_rounded ? round_to(dtype, got[i]) : got[i];
      EXPECT_TRUE(is_rounded ? is_same(value, values[i]) : is_near(value, values[i], tolerance_))
          << value << " instead of " << values[i] << ", " << output << " " << i << " of " << call_.request.key();
    }
  }

 private:
  void set_memory(const std::string& operand, const std::vector<double>& elements) {
    const DType dtype = call_.request.at(operand).dtype;
    std::vector<std::byte>& memory = call_.memory[operand];
    ASSERT_EQ(memory.size(), elements.size() * static_cast<size_t>(size_of(dtype))) << call_.request.key();
    for (size_t i = 0; i < elements.size(); ++i)
      store(dtype, &memory[i * static_cast<size_t>(size_of(dtype))], elements[i]);
  }

  Call call_;
  Bindings bindings_;
  double tolerance_ = 1e-11;
};

// How many results the table of that name has; each is compared.
int expect_table(const std::string& name) {
  std::ifstream table(std::string(KILN_TABLES) + "/" + name);
  std::string line;
  std::optional<TableCall> call;
  int results = 0;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "request") {
      call.emplace(line.substr(first.size() + 1));
      continue;
    }
    std::vector<double> values;
    for (std::string word; words >> word;) values.push_back(std::atof(word.c_str()));  // also inf and nan
    EXPECT_TRUE(call) << line;
    if (!call) break;
    if (first.front() != '=') {
      call->set(first, values);
    } else {
      call->expect(first.substr(1), values);
      ++results;
    }
  }
  return results;
}

TEST(TorchTable, HasTheElementsOfTheReference) {
  EXPECT_EQ(expect_table("elements_torch.txt"), 130);
}

TEST(TorchTable, HasTheRowsOfTheReference) {
  EXPECT_EQ(expect_table("rows_torch.txt"), 212);
}

TEST(TorchTable, HasTheRecurrentLayersOfTheReference) {
  EXPECT_EQ(expect_table("recurrent_torch.txt"), 82);
}

TEST(TorchTable, HasTheAttentionOfTheReference) {
  EXPECT_EQ(expect_table("attention_torch.txt"), 66);
}

TEST(TorchTable, HasTheCtcLossOfTheReference) {
  EXPECT_EQ(expect_table("ctc_torch.txt"), 45);
}

TEST(TorchTable, HasTheGridSamplesOfTheReference) {
  EXPECT_EQ(expect_table("grid_sample_torch.txt"), 109);
}

TEST(TorchTable, HasTheColumnsOfTheReference) {
  EXPECT_EQ(expect_table("columns_torch.txt"), 20);
}

TEST(TorchTable, HasTheWindowsAndProductsOfTheReference) {
  EXPECT_EQ(expect_table("windows_torch.txt"), 110);
}

std::vector<std::string> words_in(const std::string& path) {
  std::ifstream stream(path);
  return {std::istream_iterator<std::string>(stream), {}};
}

const std::string python = "PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 ";

// Both are paths from the root of the sources.
void expect_made_by_pytorch(const std::string& program, const std::string& table, double tolerance) {
  SCOPED_TRACE(table);
  const std::string root = std::string(KILN_SOURCE_DIR) + "/", made = testing::TempDir() + "torch_table.txt";
  ASSERT_EQ(std::system((python + root + program + " > " + made).c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  const std::vector<std::string> here = words_in(root + table), there = words_in(made);
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) {
    if (here[i] == there[i]) continue;
    // Sums may be in another order on another machine.
    EXPECT_TRUE(is_near(std::atof(here[i].c_str()), std::atof(there[i].c_str()), tolerance))
        << here[i] << " instead of " << there[i] << ", word " << i;
  }
  std::filesystem::remove(made);
}

// PyTorch confirms the tables where it is installed.
TEST(TorchTable, IsWhatPyTorchWrites) {
  const auto& deep = testing_support::DeepTests::of_project();
  const std::string subject = "TorchTable.IsWhatPyTorchWrites";
  if (!deep.why_test_is_due(subject)) GTEST_SKIP() << testing_support::unchanged_since_deep_run;
  if (std::system((python + "-c 'import torch' 2>/dev/null").c_str()) != 0) {  // NOLINT(concurrency-mt-unsafe)
    GTEST_SKIP() << "PyTorch is not installed: scripts/setup --torch";
  }
  for (const std::string name : {"activation_torch", "attention_torch", "columns_torch", "cross_entropy_torch",
                                 "ctc_torch", "elements_torch", "recurrent_torch", "rows_torch", "windows_torch"}) {
    const std::string path = "tests/reference/" + name;
    expect_made_by_pytorch(path + ".py", path + ".txt", 1e-12);
  }
  // Printed in 12 digits, and a step of training starts from the errors of those before it.
  expect_made_by_pytorch("examples/train_lenet/lenet_torch.py", "tests/examples/lenet_torch.txt", 1e-9);
  if (!HasFailure()) deep.passed(deep.subject_of_test(subject));
}

}  // namespace
}  // namespace kiln::reference::torch_table_test
