// What the tests run that run kernels, by what stands in them: every algorithm must be among it in all that it serves.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/base/error.h"
#include "kiln/generator/catalogue.h"
#include "kiln/generator/operation.h"

namespace kiln {
namespace {

using testing_support::built_in_catalogue;
using testing_support::target_of;

// The texts of the tests that run kernels. A literal that goes on in the next line is one.
std::vector<std::string> texts() {
  const std::set<std::string> run_nothing = {"catalogue_test.cpp", "calibrated_estimate_test.cpp"};
  const std::regex broken(R"re("\s*\n\s*")re");
  std::vector<std::string> all;
  for (const auto& file : std::filesystem::directory_iterator(KILN_TEMPLATE_TESTS)) {
    if (run_nothing.contains(file.path().filename().string())) continue;
    std::ifstream stream(file.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    all.push_back(std::regex_replace(text, broken, ""));
  }
  return all;
}

// Calls `use` with the first group of every match.
template <class Use>
void for_each_match(const std::regex& pattern, const Use& use) {
  for (const std::string& text : texts()) {
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) use((*match)[1]);
  }
}

// Nothing if the line is no request, or one with user code, whose text is elsewhere.
std::optional<Request> parsed(const std::string& line) {
  try {
    return Request::parse(line);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::set<std::string> tested_lines() {
  std::set<std::string> lines;
  for_each_match(std::regex(R"re("([a-z_]+ [a-z]+=[^"]*)")re"), [&](const std::string& line) { lines.insert(line); });
  return lines;
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
  return !algorithm.refusal(request, target) && algorithm.space().first_legal(request, target);
}

TEST(Coverage, EveryAlgorithmHasItsConfigurationsTestedOnTwoRequests) {
  std::map<std::string, int> covers;
  for_each_match(std::regex(R"re(expect_pairwise_match\(\s*"(\w+)")re"),
                 [&](const std::string& name) { ++covers[name]; });
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    if (algorithm.space().size() > 1) {
      EXPECT_GE(covers[algorithm.name()], 2) << algorithm.name();
    }
  }
}

TEST(Coverage, EveryAlgorithmIsTestedInEveryDtypePackedAndOnRegionsOfLargerTensors) {
  std::map<std::string, std::set<std::string>> tested, served;
  for (const std::string& line : tested_lines()) {
    const std::optional<Request> request = parsed(line);
    if (!request || request->operands.front().spec.elements() == 0) continue;
    for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
      if (request->operation != algorithm.operation() || !serves(algorithm, *request)) continue;
      tested[algorithm.name()].insert(kind_of(*request));
      // What serves a request need not serve the same one in another dtype: Winograd's algorithms take f32 alone.
      for (const char* dtype : {"=f32:", "=f16:", "=bf16:"}) {
        const std::optional<Request> other = parsed(std::regex_replace(line, std::regex("=b?f(16|32):"), dtype));
        if (other && serves(algorithm, *other)) served[algorithm.name()].insert(kind_of(*other));
      }
    }
  }
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    for (const std::string& kind : served[algorithm.name()]) {
      EXPECT_TRUE(tested[algorithm.name()].contains(kind)) << algorithm.name() << " on a request in " << kind;
    }
    EXPECT_TRUE(served[algorithm.name()].contains("f32, regions")) << algorithm.name();
  }
}

}  // namespace
}  // namespace kiln
