// The requests that the repository ships.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/request.h"
#include "request_suites.h"

namespace kiln::cli::suite_test {
namespace {

using testing_support::all_requests;
using testing_support::awkward_requests;
using testing_support::one_of_each;

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
  for (const Request& request : one_of_each()) named.insert(request.operation);
  for (const Operation* operation : operations()) known.emplace(operation->name());
  EXPECT_EQ(named, known);
}

// `line` without the word `name=...`, if it has that.
std::string without(const std::string& line, const std::string& name) {
  const size_t at = line.find(" " + name + "=");
  if (at == std::string::npos) return line;
  return line.substr(0, at) + line.substr(std::min(line.size(), line.find(' ', at + 1)));
}

// `line` with `word` in place of another of its name.
std::string with(const std::string& line, const std::string& word) {
  return without(line, word.substr(0, word.find('='))) + " " + word;
}

bool is_request(const std::string& line) {
  try {
    (void)Request::parse(line);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Texts of definitions for people (`kiln describe`) agree with what requests of the suites do.
TEST(Definitions, SayWhichOperandsMayBeLeftOut) {
  std::map<std::string, std::vector<std::string>> lines;
  for (const auto* suite : {&one_of_each(), &awkward_requests()}) {
    for (const Request& request : *suite) lines[request.operation].push_back(request.key());
  }
  for (const Operation* one : operations()) {
    const std::vector<std::string>& of_it = lines[std::string(one->name())];
    for (const OperandDefinition& operand : one->operands()) {
      const bool may_be = std::any_of(of_it.begin(), of_it.end(),
                                      [&](const std::string& line) { return is_request(without(line, operand.name)); });
      EXPECT_EQ(may_be, !operand.left_out.empty()) << one->name() << " " << operand.name << ": " << operand.left_out;
      EXPECT_NE(operand.extents, "") << one->name() << " " << operand.name;
    }
  }
}

TEST(Definitions, SayWhichStagesAndWordsRequestsTake) {
  for (const Request& request : one_of_each()) {
    const std::string plain = without(without(request.key(), "epilogue"), "activation");
    const Operation& definition = operation(request.operation);
    const std::vector<EpilogueStage> stages = definition.stages();
    for (const EpilogueStage stage :
         {EpilogueStage::bias, EpilogueStage::add, EpilogueStage::relu, EpilogueStage::clip}) {
      const std::string with_stage = plain + " epilogue=" + std::string(to_string(stage));
      EXPECT_EQ(is_request(with_stage), std::find(stages.begin(), stages.end(), stage) != stages.end()) << with_stage;
    }
    std::set<std::string_view> words;
    for (const CommonWord& word : common_words(definition)) words.insert(word.name);
    for (const char* flag : {"tf32", "fast", "deterministic"}) {
      EXPECT_EQ(is_request(plain + " " + flag), words.contains(flag)) << plain << " " << flag;
    }
    for (const char* scale : {"alpha", "beta"}) {
      const std::string scaled = with(plain, scale + std::string("=any"));
      EXPECT_EQ(is_request(scaled), words.contains(scale)) << scaled;
    }
    EXPECT_EQ(words.contains("constant_weights"), is_request(plain + " constant_weights")) << plain;
    for (const char* word : {"epilogue", "n"}) EXPECT_TRUE(words.contains(word)) << word;
  }
}

// Each may be refused beside others, or with some operands; what no request takes is listed in vain.
TEST(Definitions, ListNothingThatEveryRequestRefuses) {
  for (const Operation* one : operations()) {
    const auto expect_taken = [&](const std::string& word) {
      const bool taken = std::ranges::any_of(all_requests(), [&](const Request& request) {
        return request.operation == one->name() && is_request(with(request.key(), word));
      });
      EXPECT_TRUE(taken) << "no line of " << one->name() << " in tests/requests takes " << word;
    };
    for (const AttributeDefinition& attribute : one->attributes()) {
      const std::string usual = attribute_text(attribute.fallback);
      if (!usual.empty()) expect_taken(attribute.name + "=" + usual);
      for (const std::string& word : attribute.words) expect_taken(attribute.name + "=" + word);
    }
    for (const CommonWord& word : common_words(*one)) {
      if (word.name == "epilogue") continue;  // stages: above
      const std::string name(word.name);
      if (word.values.empty()) expect_taken(name);
      std::istringstream values(word.values);
      for (std::string value; std::getline(values >> std::ws, value, ',');) expect_taken(name + "=" + value);
    }
    expect_taken("epilogue=user:" + Expression("acc").digest());
  }
}

TEST(Definitions, DescribeEveryAttributeAndNumber) {
  for (const Operation* one : operations()) {
    EXPECT_NE(one->summary(), "") << one->name();
    for (const AttributeDefinition& attribute : one->attributes()) EXPECT_NE(attribute.summary, "") << attribute.name;
    for (const ScalarDefinition& number : one->scalars()) EXPECT_NE(number.summary, "") << number.name;
    for (const IntegerDefinition& number : one->integers()) EXPECT_NE(number.summary, "") << number.name;
  }
}

TEST(LayerClasses, AreValid) {
  EXPECT_FALSE(parse_requests(read("layer_classes.txt")).empty());
}

}  // namespace
}  // namespace kiln::cli::suite_test
