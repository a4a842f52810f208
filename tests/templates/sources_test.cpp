// KILN_TEMPLATE_PATH: templates of a folder in the place of the built-in ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "kiln/base/error.h"
#include "kiln/templates/catalogue.h"

namespace kiln::sources_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TemplateFolder : public testing::Test {
 protected:
  TemplateFolder() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / ("kiln_templates_" + std::to_string(getpid()) + "_" + info->name());
    fs::create_directories(folder_);
  }
  ~TemplateFolder() override { fs::remove_all(folder_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }

  // The message of the Error that reading the folder throws, with its code.
  std::string failure(ErrorCode expected) const {
    try {
      sources_from(folder_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), expected);
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }

  fs::path folder_;
};

TEST_F(TemplateFolder, ReplacesWhatItHoldsAndLeavesTheRest) {
  const SourceLibrary built_in = embedded_sources();
  write("pool/pool_simple.cu", "// mine\n" + built_in.text("pool/pool_simple.cu"));
  const SourceLibrary library = sources_from(folder_);
  EXPECT_EQ(library.text("pool/pool_simple.cu").rfind("// mine\n", 0), 0u);
  EXPECT_EQ(library.text("lib/types.cuh"), built_in.text("lib/types.cuh"));
  EXPECT_EQ(library.files().size(), built_in.files().size());
}

TEST_F(TemplateFolder, ReachesTheSourceThatIsGeneratedAndTheDigest) {
  write("lib/math.cuh", embedded_sources().text("lib/math.cuh") + "int marked_by_the_test;\n");
  const Catalogue mine = make_catalogue(sources_from(folder_));
  const Request request = Request::parse("pool_forward x=f32:1x3x8x8:nchw mode=max window=2,2");
  const Target target{Arch::of(9, 0), 13, 0};
  const Choice choice{"pool_simple", Config({{"THREADS", 128}})};
  EXPECT_THAT(mine.program(request, target, choice).sources.front().code, HasSubstr("int marked_by_the_test;"));
  EXPECT_NE(mine.digest("pool_simple"), make_catalogue(embedded_sources()).digest("pool_simple"));
}

TEST_F(TemplateFolder, MayBeAWholeCopyWithDescriptors) {
  const SourceLibrary built_in = embedded_sources();
  for (const auto& [path, text] : built_in.files()) write(path, text);
  write("pool/pool_simple.cpp", "// descriptors are compiled code: this text must not count\n");
  EXPECT_EQ(sources_from(folder_).files(), built_in.files());
}

TEST_F(TemplateFolder, MayAddAPieceThatATemplateIncludes) {
  const std::string built_in = embedded_sources().text("pool/pool_simple.cu");
  write("lib/mine.cuh", "// nothing yet\n");
  write("pool/pool_simple.cu", "#include \"lib/mine.cuh\"\n" + built_in);
  EXPECT_TRUE(sources_from(folder_).files().contains("lib/mine.cuh"));
}

TEST_F(TemplateFolder, RefusesATemplateThatNoAlgorithmIsMadeFrom) {
  write("pool/pool_simpel.cu", "// misspelt\n");
  EXPECT_THAT(failure(ErrorCode::invalid_argument), HasSubstr("no algorithm is made from 'pool/pool_simpel.cu'"));
}

TEST_F(TemplateFolder, RefusesAPieceThatNoTemplateIncludes) {
  write("lib/maths.cuh", "// misspelt\n");
  EXPECT_THAT(failure(ErrorCode::invalid_argument), HasSubstr("no template includes 'lib/maths.cuh'"));
}

TEST_F(TemplateFolder, RefusesAnIncludeThatLeadsNowhere) {
  write("pool/pool_simple.cu", "#include \"lib/nowhere.cuh\"\n");
  EXPECT_THAT(failure(ErrorCode::invalid_argument), HasSubstr("lib/nowhere.cuh"));
}

TEST_F(TemplateFolder, RefusesAFolderWithoutTemplates) {
  write("README.md", "nothing here\n");
  EXPECT_THAT(failure(ErrorCode::invalid_argument), HasSubstr("holds no template"));
}

TEST_F(TemplateFolder, RefusesAPathThatIsNoFolder) {
  fs::remove_all(folder_);
  EXPECT_THAT(failure(ErrorCode::io_error), HasSubstr("is not a folder"));
}

}  // namespace
}  // namespace kiln::sources_test
