// The requests that the repository ships.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "kiln/generator/operation.h"
#include "kiln/generator/request.h"

namespace kiln::cli {
namespace {

std::string read(const std::string& name) {
  std::ifstream stream(std::string(KILN_SOURCE_DIR) + "/examples/requests/" + name);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The second column of the suite's rows, counted.
std::map<std::string, size_t> rows_by_direction() {
  std::map<std::string, size_t> rows;
  std::istringstream lines(read("h200_sample.csv"));
  std::string line;
  std::getline(lines, line);  // headings
  while (std::getline(lines, line)) {
    const size_t first = line.find(','), second = line.find(',', first + 1);
    ++rows[line.substr(first + 1, second - first - 1)];
  }
  return rows;
}

// Whoever adds an operation makes the file again: examples/requests/make_requests.py.
TEST(Suite, HoldsEveryRowThatAnOperationCovers) {
  const std::map<std::string, std::string> operations = {
      {"fwd", "conv_forward"}, {"dgrad", "conv_dgrad"}, {"wgrad", "conv_wgrad"}};
  std::map<std::string, size_t> requests;
  for (const RequestLine& line : parse_requests(read("h200_sample.txt"))) ++requests[line.request.operation];
  for (const auto& [direction, count] : rows_by_direction()) {
    const std::string& operation = operations.at(direction);
    EXPECT_EQ(requests[operation], find_operation(operation) == nullptr ? 0 : count) << operation;
  }
}

TEST(LayerClasses, AreValid) {
  EXPECT_FALSE(parse_requests(read("layer_classes.txt")).empty());
}

}  // namespace
}  // namespace kiln::cli
