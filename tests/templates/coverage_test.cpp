// What the tests of templates run, by what stands in them: every algorithm must be among it in all that it serves.
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

// The text of a test. A literal that goes on in the next line is one.
std::string text_of(const std::filesystem::path& file) {
  static const std::regex broken(R"re("\s*\n\s*")re");
  std::ifstream stream(file);
  return std::regex_replace(std::string{std::istreambuf_iterator<char>(stream), {}}, broken, "");
}

// Calls `use` with the text of every test.
template <class Use>
void for_each_text(const Use& use) {
  for (const auto& file : std::filesystem::directory_iterator(KILN_TEMPLATE_TESTS)) use(text_of(file.path()));
}

// Calls `use` with every match in `text`.
template <class Use>
void for_each_match(const std::string& text, const std::regex& pattern, const Use& use) {
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) use(*match);
}

// Calls `use` with every match in every test.
template <class Use>
void for_each_match(const std::regex& pattern, const Use& use) {
  for_each_text([&](const std::string& text) { for_each_match(text, pattern, use); });
}

// Nothing if the line is no request, or one with user code, whose text is elsewhere.
std::optional<Request> parsed(const std::string& line) {
  try {
    return Request::parse(line);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A request that a test runs, and by which algorithms.
struct TestedLine {
  std::string line;
  std::string algorithms;  ///< Their names in quotes. Where there are none: all that serve it...
  bool by_winograd_alone;  ///< ... of these.

  bool is_by(const Algorithm& algorithm) const {
    if (!algorithms.empty()) return algorithms.find('"' + algorithm.name() + '"') != std::string::npos;
    return !by_winograd_alone || algorithm.name().find("winograd") != std::string::npos;
  }
};

std::vector<TestedLine> tested_lines() {
  std::vector<TestedLine> all;
  const std::regex cover(R"re(expect_pairwise_match\(\s*("\w+"),\s*"([^"]*)")re");
  const std::regex defaults(R"re((Algorithm|Winograd)Case\{\s*"\w+",\s*"([^"]*)"(?:,\s*(\{[^}]*\}))?)re");
  for_each_match(cover, [&](const std::smatch& match) { all.push_back({match[2], match[1], false}); });
  for_each_match(defaults, [&](const std::smatch& match) {
    all.push_back({match[2], match[3], match[1] == "Winograd"});
  });
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
  return !algorithm.refusal(request, target) && algorithm.space().first_legal(request, target);
}

TEST(Coverage, EveryAlgorithmHasItsConfigurationsTestedOnTwoRequests) {
  std::map<std::string, int> covers;
  for_each_match(std::regex(R"re(expect_pairwise_match\(\s*"(\w+)")re"),
                 [&](const std::smatch& match) { ++covers[match[1]]; });
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    if (algorithm.space().size() > 1) {
      EXPECT_GE(covers[algorithm.name()], 2) << algorithm.name();
    }
  }
}

TEST(Coverage, EveryAlgorithmRunsWith64BitOffsets) {
  // A list of names in quotes, or a constant of the same file that is one.
  const std::regex wide(R"re(expect_wide_index_matches\(\s*(?:(\{[^}]*\})|(\w+)))re");
  std::string run;
  for_each_text([&](const std::string& text) {
    for_each_match(text, wide, [&](const std::smatch& match) {
      run += match[1];
      if (!match[2].matched) return;
      const std::regex constant(R"re(const \S+ )re" + match[2].str() + R"re( = (\{[^}]*\});)re");
      for_each_match(text, constant, [&](const std::smatch& names) { run += names[1]; });
    });
  });
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    EXPECT_TRUE(run.find('"' + algorithm.name() + '"') != std::string::npos) << algorithm.name();
  }
}

TEST(Coverage, EveryAlgorithmRunsInEveryDtypePackedAndOnRegionsOfLargerTensors) {
  const std::regex dtype(R"re(\b(?!indices)(\w+)=(?:f16|f32|bf16|i32|i8|u8):)re");
  std::map<std::string, std::set<std::string>> run_in, serves_in;
  for (const TestedLine& tested : tested_lines()) {
    const std::optional<Request> request = parsed(tested.line);
    if (!request || request->operands.front().spec.elements() == 0) continue;
    for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
      if (request->operation != algorithm.operation() || !serves(algorithm, *request)) continue;
      if (tested.is_by(algorithm)) run_in[algorithm.name()].insert(kind_of(*request));
      // Not every algorithm takes every dtype: Winograd's take f32 alone.
      for (const char* other : {"$1=f32:", "$1=f16:", "$1=bf16:", "$1=i32:", "$1=i8:", "$1=u8:"}) {
        const std::optional<Request> converted = parsed(std::regex_replace(tested.line, dtype, other));
        if (converted && serves(algorithm, *converted)) serves_in[algorithm.name()].insert(kind_of(*converted));
      }
    }
  }
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    for (const std::string& kind : serves_in[algorithm.name()]) {
      EXPECT_TRUE(run_in[algorithm.name()].contains(kind)) << algorithm.name() << " in " << kind;
    }
    EXPECT_TRUE(serves_in[algorithm.name()].contains("f32, regions")) << algorithm.name();
  }
}

}  // namespace
}  // namespace kiln
