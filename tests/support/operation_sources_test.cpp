// Which files count for the sweeps over the kernels of an operation.
#include "operation_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "deep_tests.h"
#include "kiln/generator/operation.h"

namespace kiln::testing_support::operation_sources_test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;

const std::string definitions = "generator/operations/", references = "reference/operations/";
const std::string views = "generator/include/kiln/generator/operations/";

// A tree with the definitions and references of two operations.
class OperationTree : public testing::Test {
 protected:
  void SetUp() override {
    write(definitions + "resize.cpp",
          "#include \"kiln/generator/operations/resize.h\"\n#include \"operations/spatial.h\"\n"
          "const Operation& resize_operation() { return one; }\n");
    write(definitions + "gather.cpp", "const Operation& gather_operation() { return one; }\n");
    write(definitions + "spatial.h", "");
    write(definitions + "spatial.cpp", "#include \"operations/axes.h\"\n");
    write(definitions + "axes.cpp", "");
    write(definitions + "lonely.cpp", "");
    write(definitions + "stages.cpp", "");
    write(views + "resize.h", "");
    write(views + "pool_window.h", "");
    write(references + "resize.cpp",
          "#include \"operations/window.h\"\nReference resize_reference() { return one; }\n");
    write(references + "window.h", "#include \"kiln/generator/operations/pool_window.h\"\n");
    write("generator/request.cpp", "#include \"operations/stages.h\"\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  OperationSources sources() const { return {root_, {"generator", "reference"}}; }

  const fs::path root_ = fs::path(testing::TempDir()) / "operations";
};

TEST_F(OperationTree, AnOperationRestsOnWhatItIncludes) {
  EXPECT_THAT(sources().of("resize"),
              testing::UnorderedElementsAre(definitions + "resize.cpp", definitions + "spatial.h",
                                            definitions + "spatial.cpp", definitions + "axes.cpp", views + "resize.h",
                                            views + "pool_window.h", references + "resize.cpp", references + "window.h",
                                            definitions + "lonely.cpp", definitions + "stages.cpp"));
}

TEST_F(OperationTree, WhatNoOperationOrOtherCodeIncludesIsOfAll) {
  EXPECT_THAT(sources().of("gather"),
              testing::UnorderedElementsAre(definitions + "gather.cpp", definitions + "lonely.cpp",
                                            definitions + "stages.cpp"));
}

TEST_F(OperationTree, CodeOfAnOperationChangesItsDigestAlone) {
  const std::string resize = sources().digest_of("resize"), gather = sources().digest_of("gather");
  write(definitions + "axes.cpp", "// A comment.\n");
  EXPECT_EQ(sources().digest_of("resize"), resize);
  write(definitions + "axes.cpp", "int one;\n");
  EXPECT_NE(sources().digest_of("resize"), resize);
  EXPECT_EQ(sources().digest_of("gather"), gather);
  write(definitions + "stages.cpp", "int one;\n");
  EXPECT_NE(sources().digest_of("gather"), gather);
}

TEST(OperationSourcesOfTheProject, AreEachOfSomeOperation) {
  const OperationSources sources(KILN_SOURCE_DIR, sources_of_sweeps());
  std::set<std::string> all;
  for (const Operation* operation : operations()) {
    const std::set<std::string> paths = sources.of(std::string(operation->name()));
    EXPECT_LT(paths.size(), 80u) << operation->name();
    all.insert(paths.begin(), paths.end());
  }
  for (const std::string& folder : folders_of_operations()) {
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(KILN_SOURCE_DIR) / folder)) {
      EXPECT_THAT(all, Contains(folder + "/" + entry.path().filename().string()));
    }
  }
  const std::set<std::string> resize = sources.of("resize"), conv = sources.of("conv_forward");
  EXPECT_THAT(resize, IsSupersetOf({definitions + "resize.cpp", views + "resize.h", references + "resize.cpp",
                                    references + "resize_taps.cpp", definitions + "spatial.cpp",
                                    definitions + "activation_modes.cpp"}));
  EXPECT_THAT(conv, IsSupersetOf({definitions + "conv_forward.cpp", definitions + "convolution.cpp",
                                  references + "conv_forward.cpp", references + "window.h"}));
  EXPECT_THAT(conv, Not(Contains(references + "resize.cpp")));
  EXPECT_THAT(resize, Not(Contains(definitions + "softmax_forward.cpp")));
}

// Else a change of the source that defines a function would leave out the sweeps of the operations that call it.
TEST(OperationSourcesOfTheProject, HaveFunctionsInTheSourceOfTheirHeadersName) {
  // The source of the first is of all operations, those of the others are of all that call them.
  const std::set<std::string> known = {"activation.h", "conv_pass.h", "tensor_ops.h"};
  const std::regex declaration(R"(^[A-Za-z][^=]*\) *(const)?;$)");
  for (const std::string& folder : folders_of_operations()) {
    const fs::path sources = fs::path(KILN_SOURCE_DIR) / folder.substr(0, folder.find('/')) / "operations";
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(KILN_SOURCE_DIR) / folder)) {
      const fs::path& header = entry.path();
      const bool has_source = fs::exists(sources / header.filename().replace_extension(".cpp"));
      if (header.extension() != ".h" || has_source || known.contains(header.filename())) continue;
      std::istringstream lines(content_of(header));
      for (std::string line; std::getline(lines, line);) {
        EXPECT_FALSE(std::regex_search(line, declaration)) << header << " declares " << line;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::testing_support::operation_sources_test
