// The references of operations along axes against PyTorch: rows_torch.py made the table.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
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

TEST(RowReferences, ArePyTorchs) {
  std::ifstream table(KILN_ROWS_TABLE);
  std::string line;
  std::optional<TableCall> call;
  int results = 0;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "request") {
      call.emplace(line.substr(name.size() + 1));
      continue;
    }
    std::vector<double> values;
    for (double value = 0; words >> value;) values.push_back(value);
    ASSERT_TRUE(call) << line;
    if (name.front() != '=') {
      call->set(name, values);
    } else {
      call->expect(name.substr(1), values);
      ++results;
    }
  }
  EXPECT_EQ(results, 71);
}

}  // namespace
}  // namespace kiln::reference
