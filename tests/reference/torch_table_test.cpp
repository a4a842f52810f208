// References against PyTorch: rows_torch.py and windows_torch.py made the tables.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "call.h"
#include "kiln/generator/operation.h"

namespace kiln::reference {
namespace {

// One call of the table: what came before its results.
class TableCall {
 public:
  explicit TableCall(const std::string& line) : call_(line) {
    bindings_.beta = 0;
    const std::vector<ScalarDefinition>& scalars = operation(call_.request.operation).scalars();
    for (size_t i = 0; i < scalars.size(); ++i) bindings_.scalars[i] = scalars[i].usual;
  }

  void set(const std::string& operand, const std::vector<double>& values) { call_.set(operand, values); }

  void expect(const std::string& output, const std::vector<double>& values) {
    for (const auto& [name, bytes] : call_.memory) bindings_.operands[name] = bytes;
    const std::vector<double> got = evaluate(call_.request, bindings_, output);
    ASSERT_EQ(got.size(), values.size()) << call_.request.key();
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], values[i], 1e-11 + 1e-11 * std::fabs(values[i]))
          << output << " " << i << " of " << call_.request.key();
    }
  }

 private:
  Call call_;
  Bindings bindings_;
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
    for (double value = 0; words >> value;) values.push_back(value);
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

TEST(TorchTable, HasTheRowsOfTheReference) {
  EXPECT_EQ(expect_table("rows_torch.txt"), 206);
}

TEST(TorchTable, HasTheWindowsAndProductsOfTheReference) {
  EXPECT_EQ(expect_table("windows_torch.txt"), 107);
}

std::vector<std::string> words_in(const std::string& path) {
  std::ifstream stream(path);
  return {std::istream_iterator<std::string>(stream), {}};
}

// That the tables are what PyTorch says is known to whoever has it.
TEST(TorchTable, IsWhatPyTorchWrites) {
  const std::string python = "PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 ";
  if (std::system((python + "-c 'import torch' 2>/dev/null").c_str()) != 0) {  // NOLINT(concurrency-mt-unsafe)
    GTEST_SKIP() << "PyTorch is not installed: scripts/setup --torch";
  }
  for (const std::string name : {"activation_torch", "cross_entropy_torch", "rows_torch", "windows_torch"}) {
    SCOPED_TRACE(name);
    const std::string table = std::string(KILN_TABLES) + "/" + name, made = testing::TempDir() + name + ".txt";
    ASSERT_EQ(std::system((python + table + ".py > " + made).c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
    const std::vector<std::string> here = words_in(table + ".txt"), there = words_in(made);
    ASSERT_EQ(here.size(), there.size());
    for (size_t i = 0; i < here.size(); ++i) {
      if (here[i] == there[i]) continue;
      const double value = std::atof(there[i].c_str());  // sums may be in another order on another machine
      EXPECT_NEAR(std::atof(here[i].c_str()), value, 1e-12 + 1e-12 * std::fabs(value)) << "word " << i;
    }
    std::filesystem::remove(made);
  }
}

}  // namespace
}  // namespace kiln::reference
