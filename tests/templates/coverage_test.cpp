// Cases of the tests of kernels, as their programs list them: every algorithm must be among them in all that it serves.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "algorithm_cases.h"
#include "deep_sweeps.h"
#include "kiln/base/error.h"
#include "kiln/generator/catalogue.h"
#include "kiln/generator/operation.h"
#include "variant_check.h"

namespace kiln::coverage_test {
namespace {

using testing_support::built_in_catalogue;
using testing_support::target_of;

// A test that runs algorithms on a request: its program, its suite ("PoolConfigs/PairwiseMatch"), and its parameter.
struct Tested {
  std::string program;
  std::string suite;
  std::set<std::string> algorithms;
  std::string line;
  Request request;
};

// Reads a parameter as PrintTo(AlgorithmCase) writes it. Nothing if it is of another kind.
std::optional<Tested> tested(const std::string& program, const std::string& suite, const std::string& parameter) {
  const size_t colon = parameter.find(": ");
  if (colon == std::string::npos) return std::nullopt;
  std::set<std::string> algorithms;
  std::istringstream names(parameter.substr(0, colon));
  for (std::string name; std::getline(names, name, ',');) {
    if (built_in_catalogue().find(name) == nullptr) return std::nullopt;
    algorithms.insert(name);
  }
  const std::string line = parameter.substr(colon + 2);
  return Tested{program, suite, algorithms, line, Request::parse(line)};
}

// Every test of the programs that run kernels, which list them.
const std::vector<Tested>& all_tested() {
  static const std::vector<Tested> all = [] {
    std::vector<Tested> found;
    std::istringstream programs(KILN_KERNEL_TESTS);
    for (std::string program; std::getline(programs, program, ',');) {
      const std::string list = testing::TempDir() + "list.json";
      const std::string command = program + " --gtest_list_tests --gtest_output=json:" + list + " > /dev/null";
      EXPECT_EQ(std::system(command.c_str()), 0) << command;
      std::ifstream stream(list);
      const nlohmann::json listed = nlohmann::json::parse(stream);
      for (const nlohmann::json& suite : listed.at("testsuites")) {
        for (const nlohmann::json& test : suite.at("testsuite")) {
          if (!test.contains("value_param")) continue;
          if (auto one = tested(program, suite.at("name"), test.at("value_param"))) found.push_back(std::move(*one));
        }
      }
    }
    return found;
  }();
  return all;
}

// Whether the elements follow each other without gaps, in logical order or with the channels last.
bool is_packed(const TensorSpec& spec) {
  std::vector<size_t> logical(spec.extents.size());
  std::iota(logical.begin(), logical.end(), size_t{0});
  std::vector<size_t> channels_last = logical;
  if (logical.size() > 2) std::rotate(channels_last.begin() + 1, channels_last.begin() + 2, channels_last.end());
  const auto follows = [&](const std::vector<size_t>& order) {
    int64_t stride = 1;
    for (auto dimension = order.rbegin(); dimension != order.rend(); ++dimension) {
      if (spec.extents[*dimension] != 1 && spec.strides[*dimension] != stride) return false;
      stride *= spec.extents[*dimension];
    }
    return true;
  };
  return follows(logical) || follows(channels_last);
}

// "f16, packed": the dtype of a request's first operand, and what its operands look like.
std::string kind_of(const Request& request) {
  const bool packed = std::all_of(request.operands.begin(), request.operands.end(),
                                  [](const Operand& operand) { return is_packed(operand.spec); });
  return fmt::format("{}, {}", to_string(request.operands.front().spec.dtype), packed ? "packed" : "regions");
}

bool serves(const Algorithm& algorithm, const Request& request) {
  const Target target = target_of(9, 0);
  return algorithm.on(request, target).first_legal().has_value();
}

// One request is enough for each of the algorithms that share a template.
TEST(Coverage, EveryAlgorithmHasItsConfigurationsTestedOnTwoRequests) {
  std::map<std::string, int> covers, sharing;
  for (const Tested& one : all_tested()) {
    if (one.suite.ends_with("/PairwiseMatch")) ++covers[*one.algorithms.begin()];
  }
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) ++sharing[algorithm.template_path()];
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    if (algorithm.space().size() > 1) {
      const int needed = sharing[algorithm.template_path()] > 1 ? 1 : 2;
      EXPECT_GE(covers[algorithm.name()], needed)
          << algorithm.name() << " needs " << needed << " cover(...) in tests/templates";
    }
  }
}

TEST(Coverage, EveryAlgorithmRunsWith64BitOffsets) {
  std::set<std::string> run;
  for (const Tested& one : all_tested()) {
    if (one.suite.ends_with("/WideIndexMatch")) run.insert(one.algorithms.begin(), one.algorithms.end());
  }
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    EXPECT_TRUE(run.contains(algorithm.name())) << algorithm.name() << " needs a wide(...) in tests/templates";
  }
}

// tests/deep.txt is made of such records; what a program leaves out it finds in the same way.
TEST(Coverage, SweepsThatPassInADeepRunAreRecorded) {
  const std::filesystem::path records = testing::TempDir() + "records";
  std::filesystem::create_directories(records);
  const std::string program = KILN_SMALL_KERNEL_TEST;
  const std::string command =
      fmt::format("TEST_DEEP_RECORDS={} {} --gtest_filter='*WideIndexMatch*' > /dev/null", records.string(), program);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  std::set<std::string> recorded;
  for (const auto& entry : std::filesystem::directory_iterator(records)) {
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) recorded.insert(line);
  }
  std::set<std::string> expected;
  for (const Tested& one : all_tested()) {
    if (!one.suite.ends_with("/WideIndexMatch") || one.program != program) continue;
    for (const std::string& algorithm : one.algorithms) {
      const auto subject =
          testing_support::subject_of_sweep("WideIndexMatch", algorithm, one.line, built_in_catalogue());
      expected.insert(subject.digest + " " + subject.name);
    }
  }
  EXPECT_FALSE(expected.empty());
  if (!testing_support::TestDevice::get().context->driver().is_emulated()) expected.clear();
  for (const std::string& line : expected) EXPECT_TRUE(recorded.contains(line)) << line;
  EXPECT_EQ(recorded.size(), expected.empty() ? 0 : expected.size() + 1) << "and the version of NVRTC";
}

// The request with each operand that it gives in `dtype`, but for those of one dtype, if there is such a request.
std::optional<Request> in_dtype(const std::string& line, DType dtype) {
  static const std::regex given(R"re(\b(?!indices|lengths|lse|mask)(\w+)=(?:f16|f32|bf16|i32|i8|u8):)re");
  try {
    return Request::parse(std::regex_replace(line, given, fmt::format("$1={}:", to_string(dtype))));
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(Coverage, EveryAlgorithmRunsInEveryDtypePackedAndOnRegionsOfLargerTensors) {
  std::map<std::string, std::set<std::string>> run_in, serves_in;
  for (const auto& [program, suite, algorithms, line, request] : all_tested()) {
    if (request.operands.front().spec.elements() == 0) continue;
    for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
      if (request.operation != algorithm.operation() || !serves(algorithm, request)) continue;
      if (algorithms.contains(algorithm.name())) run_in[algorithm.name()].insert(kind_of(request));
      // Not every algorithm takes every dtype: Winograd's take f32 alone.
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i8, DType::u8}) {
        const std::optional<Request> converted = in_dtype(line, dtype);
        if (converted && serves(algorithm, *converted)) serves_in[algorithm.name()].insert(kind_of(*converted));
      }
    }
  }
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    for (const std::string& kind : serves_in[algorithm.name()]) {
      EXPECT_TRUE(run_in[algorithm.name()].contains(kind)) << "no test runs " << algorithm.name() << " in " << kind
                                                           << ": add a request to its program, or to regions_test.cpp";
    }
    const std::set<std::string>& kinds = run_in[algorithm.name()];
    EXPECT_TRUE(
        std::any_of(kinds.begin(), kinds.end(), [](const std::string& kind) { return kind.ends_with("regions"); }))
        << "no test runs " << algorithm.name() << " on regions of larger tensors";
  }
}

}  // namespace
}  // namespace kiln::coverage_test
