// The requests that the repository ships.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

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

// Made by examples/requests/make_requests.py.
TEST(Suite, HoldsEveryRow) {
  const std::map<std::string, std::string> operations = {
      {"fwd", "conv_forward"}, {"dgrad", "conv_backward_data"}, {"wgrad", "conv_backward_filter"}};
  std::map<std::string, size_t> requests;
  for (const RequestLine& line : parse_requests(read("h200_sample.txt"))) ++requests[line.request.operation];
  for (const auto& [direction, count] : rows_by_direction()) {
    const std::string& operation = operations.at(direction);
    EXPECT_NE(find_operation(operation), nullptr) << operation;
    EXPECT_EQ(requests[operation], count) << operation;
  }
  EXPECT_EQ(requests.size(), operations.size());
}

TEST(OneOfEach, NamesEveryOperation) {
  std::set<std::string> named, known;
  for (const RequestLine& line : parse_requests(read("one_of_each.txt"))) named.insert(line.request.operation);
  for (const Operation* operation : operations()) known.emplace(operation->name());
  EXPECT_EQ(named, known);
}

TEST(LayerClasses, AreValid) {
  EXPECT_FALSE(parse_requests(read("layer_classes.txt")).empty());
}

}  // namespace
}  // namespace kiln::cli
