// Which deep tests are due, by trees of sources that look like the project's.
#include "deep_tests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"

namespace kiln::testing_support::deep_tests_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Optional;

const std::string digest = digest_of("a"), other_digest = digest_of("b");

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

TEST(DeepList, HoldsWhatWasPassedInTheStateItHadThen) {
  DeepList list;
  list.add({"sources emulator", digest});
  list.add({"PairwiseMatch conv_simple: conv_forward x=f32:1x1x1x1 w=f32:1x1x1x1", other_digest});
  const DeepList copy = DeepList::parse(list.print());
  EXPECT_TRUE(copy.holds({"sources emulator", digest}));
  EXPECT_FALSE(copy.holds({"sources emulator", other_digest}));
  EXPECT_FALSE(copy.holds({"sources timing", digest}));
  EXPECT_EQ(copy.print(), list.print());
}

TEST(DeepList, RefusesASubjectInTwoStatesAndNamesThatAreNoLine) {
  DeepList list;
  list.add({"test a", digest});
  list.add({"test a", digest});
  EXPECT_THROW(list.add({"test a", other_digest}), Error);
  EXPECT_THROW(list.add({"", digest}), Error);
  EXPECT_THROW(list.add({"two\nlines", digest}), Error);
  EXPECT_THROW(list.add({"all lines above", digest}), Error);
  EXPECT_THROW(list.add({"test b", digest.substr(1)}), Error);
}

// A merge of two lists, an edit by hand, half a file: none of them is what one deep run passed.
TEST(DeepList, IsReadAsItWasWrittenOrNotAtAll) {
  DeepList list;
  for (const char* name : {"test a", "test b", "test c"}) list.add({name, digest});
  const std::string text = list.print();
  ASSERT_NO_THROW(DeepList::parse(text));
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW(DeepList::parse(text.substr(0, length)), Error) << length;
  }
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = changed[at] == 'f' ? 'e' : 'f';
    EXPECT_THROW(DeepList::parse(changed), Error) << changed;
  }
  std::string without_a_line = text;
  const size_t line = text.find(digest + " test b\n");
  ASSERT_NE(line, text.npos);
  EXPECT_THROW(DeepList::parse(without_a_line.erase(line, digest.size() + 8)), Error);
  EXPECT_THROW(DeepList::parse(text + text), Error);
}

// A tree with a source in each place that deep tests know, and a folder of records.
class DeepTree : public testing::Test {
 protected:
  void SetUp() override {
    std::set<std::string> places(sources_of_sweeps().begin(), sources_of_sweeps().end());
    for (const auto& [name, sources] : sources_of_tests()) places.insert(sources.begin(), sources.end());
    places.insert("templates");
    for (const std::string& place : places) write(file_in(place), "int one = 1;  // text\n");
    fs::create_directories(records_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A file of the place, which is one itself, or a folder.
  fs::path file_in(const std::string& place) const {
    const fs::path path = root_ / place;
    return path.has_extension() ? path : path / "inner/source.cpp";
  }

  DeepTests tests() const { return DeepTests({.root = root_, .records = {}}); }
  DeepTests deep_run() const { return DeepTests({.root = root_, .records = records_}); }
  fs::path list() const { return root_ / "tests/deep.txt"; }

  // A deep run in which all named tests passed, and a sweep.
  void pass_all() const {
    fs::remove_all(records_);
    fs::create_directories(records_);
    const DeepTests run = deep_run();
    run.start();
    for (const auto& [name, sources] : sources_of_tests()) run.passed(run.subject_of_test(name));
    run.passed(sweep);
    run.write_list();
  }

  // The named tests that are due.
  std::set<std::string> due() const {
    std::set<std::string> names;
    for (const auto& [name, sources] : sources_of_tests()) {
      if (tests().why_test_is_due(name)) names.insert(name);
    }
    return names;
  }

  const DeepSubject sweep{"PairwiseMatch a: b", digest};
  const fs::path folder_ = fs::path(testing::TempDir()) / "deep";
  const fs::path root_ = folder_ / "root", records_ = folder_ / "records";
};

TEST_F(DeepTree, AfterADeepRunNothingIsDue) {
  pass_all();
  EXPECT_EQ(tests().why_all_sweeps_are_due(), std::nullopt);
  EXPECT_EQ(tests().why_due(sweep), std::nullopt);
  EXPECT_EQ(due(), std::set<std::string>{});
  EXPECT_NE(tests().why_due({sweep.name, other_digest}), std::nullopt);
  EXPECT_NE(tests().why_due({"PairwiseMatch a: c", digest}), std::nullopt);
}

TEST_F(DeepTree, AByteOfCodeInAnythingThatSweepsRestOnMakesAllDue) {
  pass_all();
  for (const std::string& source : sources_of_sweeps()) {
    write(file_in(source), "int one = 2;  // text\n");
    EXPECT_THAT(tests().why_all_sweeps_are_due(), Optional(HasSubstr("'sources " + source + "'")));
    write(file_in(source), "int one = 1;  // text\n");
    EXPECT_EQ(tests().why_all_sweeps_are_due(), std::nullopt);
  }
  // The emulated device, the checks and the reference are among it.
  for (const char* room : {"emulator", "checking", "reference"}) {
    EXPECT_THAT(sources_of_sweeps(), testing::Contains(room));
  }
}

// A new operation, or a change of one, leaves the kernels of the others as they are.
TEST_F(DeepTree, SourcesOfAnOperationMakeItsSweepsDueAlone) {
  const fs::path definition = root_ / "generator/operations/gather.cpp";
  write(definition, "const Operation& gather_operation() { return one; }\n");
  write(root_ / "generator/include/kiln/generator/operation_list.h", "gather\n");
  pass_all();
  EXPECT_EQ(tests().changed_operations(), std::set<std::string>{});
  write(definition, "const Operation& gather_operation() { return two; }\n");
  EXPECT_EQ(tests().changed_operations(), std::set<std::string>{"gather"});
  write(root_ / "reference/operations/gather.cpp", "Reference gather_reference() { return one; }\n");
  write(root_ / "generator/operations/resize.cpp", "const Operation& resize_operation() { return one; }\n");
  write(root_ / "generator/include/kiln/generator/operation_list.h", "gather\nresize\n");
  EXPECT_EQ(tests().changed_operations(), (std::set<std::string>{"gather", "resize"}));
  EXPECT_EQ(tests().why_all_sweeps_are_due(), std::nullopt);
  write(root_ / "generator/operations/common.cpp", "int one;\n");
  EXPECT_GT(tests().changed_operations().size(), 20u) << "of all, because no operation includes it";
}

TEST_F(DeepTree, AByteInAnythingThatANamedTestTestsMakesItDue) {
  pass_all();
  for (const auto& [name, sources] : sources_of_tests()) {
    for (const std::string& source : sources) {
      write(file_in(source), "int one = 2;  // text\n");
      EXPECT_TRUE(due().contains(name)) << name << ", " << source;
      write(file_in(source), "int one = 1;  // text\n");
    }
  }
  EXPECT_EQ(due(), std::set<std::string>{});
}

TEST_F(DeepTree, FilesThatComeOrGoOrMoveCount) {
  pass_all();
  const fs::path further = root_ / "emulator/further.cpp";
  write(further, "");
  EXPECT_NE(tests().why_all_sweeps_are_due(), std::nullopt);
  fs::remove(further);
  EXPECT_EQ(tests().why_all_sweeps_are_due(), std::nullopt);
  fs::rename(file_in("emulator"), further);
  EXPECT_NE(tests().why_all_sweeps_are_due(), std::nullopt);
  fs::remove_all(root_ / "emulator");
  EXPECT_THAT(tests().why_all_sweeps_are_due(), Optional(HasSubstr("there is no ")));
}

TEST_F(DeepTree, CommentsOfCppAndCompiledPythonDoNotCount) {
  pass_all();
  write(file_in("emulator"), "// Another text.\nint one = 1;\n");
  write(root_ / "emulator/__pycache__/a.pyc", "a");
  EXPECT_EQ(tests().why_all_sweeps_are_due(), std::nullopt);
  write(root_ / "emulator/CMakeLists.txt", "# Text.\n");
  EXPECT_NE(tests().why_all_sweeps_are_due(), std::nullopt);
}

TEST_F(DeepTree, AListThatIsMissingOrTruncatedOrForeignMakesAllDue) {
  pass_all();
  const std::string right = read(list());
  const auto expect_all_due = [&] {
    EXPECT_THAT(tests().why_all_sweeps_are_due(), Optional(HasSubstr("tests/deep.txt does not count")));
    EXPECT_THAT(tests().why_due(sweep), Optional(HasSubstr("tests/deep.txt does not count")));
    EXPECT_EQ(due().size(), sources_of_tests().size());
  };
  fs::remove(list());
  expect_all_due();
  for (const std::string& wrong : {std::string(), right.substr(0, right.size() / 2), "<<<<<<< ours\n" + right,
                                   right + "\n", std::string("{\"deep\": true}\n")}) {
    write(list(), wrong);
    expect_all_due();
  }
  write(list(), right);
  EXPECT_EQ(tests().why_due(sweep), std::nullopt);
}

TEST_F(DeepTree, InADeepRunAndInABuildThatTheListDoesNotSpeakOfAllAreDue) {
  pass_all();
  EXPECT_NE(deep_run().why_all_sweeps_are_due(), std::nullopt);
  EXPECT_NE(deep_run().why_due(sweep), std::nullopt);
  const DeepTests sanitized({.root = root_, .records = {}, .everything = true});
  EXPECT_NE(sanitized.why_all_sweeps_are_due(), std::nullopt);
  EXPECT_NE(sanitized.why_test_is_due("slurm_test"), std::nullopt);
}

TEST_F(DeepTree, TheNextDeepRunForgetsWhatItDidNotPass) {
  pass_all();
  fs::remove_all(records_);
  fs::create_directories(records_);
  const DeepTests run = deep_run();
  run.start();
  run.passed(run.subject_of_test("slurm_test"));
  run.write_list();
  EXPECT_NE(tests().why_due(sweep), std::nullopt);
  EXPECT_FALSE(due().contains("slurm_test"));
  EXPECT_EQ(due().size(), sources_of_tests().size() - 1);
}

TEST_F(DeepTree, SourcesThatChangeInADeepRunAreNotInTheList) {
  pass_all();
  const std::string before = read(list());
  for (const char* place : {"emulator", "templates", "cli"}) {
    deep_run().start();
    write(file_in(place), "int one = 2;\n");
    EXPECT_THROW(deep_run().write_list(), Error) << place;
    write(file_in(place), "int one = 1;\n");
  }
  fs::remove(records_ / "sources");  // no deep run began
  EXPECT_THROW(deep_run().write_list(), Error);
  EXPECT_EQ(read(list()), before);
}

TEST_F(DeepTree, PassesOutsideOfADeepRunAreNotRecorded) {
  tests().passed(sweep);
  EXPECT_TRUE(fs::is_empty(records_));
}

TEST(DeepSources, AreAllInTheProjectAndReadInNoTime) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NO_THROW(digest_of_sources(KILN_SOURCE_DIR, sources_of_sweeps()));
  std::printf("%.3f s for what sweeps rest on\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  for (const auto& [name, sources] : sources_of_tests()) {
    EXPECT_NO_THROW(digest_of_sources(KILN_SOURCE_DIR, sources)) << name;
  }
}

}  // namespace
}  // namespace kiln::testing_support::deep_tests_test
