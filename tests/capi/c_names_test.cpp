// Hints for callers of C name what C has.
#include "c_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace kiln::capi::c_names_test {
namespace {

namespace fs = std::filesystem;

TEST(WordsOfC, StandForThoseOfCpp) {
  EXPECT_EQ(in_words_of_c("capture Plan::run or call(), or set ContextOptions::workspace_allocator"),
            "capture kiln_plan_run() or kiln_call(), or set kiln_context_options.workspace_allocate");
  EXPECT_EQ(in_words_of_c("raise ContextOptions::workspace_limit"), "raise kiln_context_options.workspace_limit");
  EXPECT_EQ(in_words_of_c("by Context::prepare(), Context::plan() or the same call"),
            "by kiln_context_prepare(), kiln_plan_create() or the same call");
  EXPECT_EQ(in_words_of_c("set either ContextOptions::locked or ContextOptions::tuning"),
            "set either kiln_context_options.locked or kiln_context_options.tuning_mode");
  EXPECT_EQ(in_words_of_c("write kiln::bias(values) or kiln::add(residual)"),
            "write kiln_epilogue_bias() or kiln_epilogue_add()");
  EXPECT_EQ(in_words_of_c("Model::a, Model::b and Model::c"), "kiln_model_a, kiln_model_b and kiln_model_c");
  EXPECT_EQ(in_words_of_c("plain text: a::b"), "plain text: a::b");
}

// The string literals of a source, #include lines aside.
std::vector<std::string> literals_of(const fs::path& file) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  static const std::regex literal(R"re((^|\n)#include[^\n]*|'(\\.|[^'\\])'|//[^\n]*|"((?:\\.|[^"\\\n])*)")re");
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), literal), end; match != end; ++match) {
    if ((*match)[3].matched) found.push_back((*match)[3]);
  }
  return found;
}

TEST(WordsOfC, AreKnownForEveryNameOfCppThatAMessageHas) {
  const fs::path source = KILN_SOURCE_DIR;
  if (!fs::exists(source / "runtime")) GTEST_SKIP() << "these tests were carried here without sources";
  static const std::regex name(R"(\b(kiln|[A-Z][A-Za-z]+)::[A-Za-z])");
  size_t named = 0;
  for (const char* room : {"base", "device", "generator", "execution", "runtime", "graph", "frontends", "models"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source / room)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      for (const std::string& text : literals_of(entry.path())) {
        if (!std::regex_search(text, name)) continue;
        ++named;
        EXPECT_FALSE(std::regex_search(in_words_of_c(text), name)) << entry.path() << ": " << text;
      }
    }
  }
  EXPECT_GT(named, 8U);
}

}  // namespace
}  // namespace kiln::capi::c_names_test
