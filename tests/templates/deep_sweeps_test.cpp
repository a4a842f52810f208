// A kernel that changed is never left out of the sweeps.
#include "deep_sweeps.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/templates/catalogue.h"
#include "request_suites.h"

namespace kiln::testing_support::deep_sweeps_test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Not;

using Files = std::map<std::string, std::string>;

// One sweep of each algorithm of the catalogue; its name is the algorithm's.
std::vector<Sweep> sweeps_of_each(const Catalogue& catalogue) {
  std::vector<Sweep> sweeps;
  for (const Algorithm& algorithm : catalogue.algorithms()) {
    sweeps.push_back({algorithm.name(),
                      {subject_of_sweep("PairwiseMatch", algorithm.name(), "a request", catalogue)},
                      std::string(algorithm.operation())});
  }
  return sweeps;
}

// A tree whose list has every algorithm as it is built in, as a deep run writes it.
class SweepsAfterADeepRun : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::string> places = sources_of_sweeps();
    for (const auto& [name, sources] : sources_of_tests()) places.insert(places.end(), sources.begin(), sources.end());
    places.emplace_back("templates");
    for (const std::string& place : places) {
      const fs::path file = fs::path(place).has_extension() ? folder_ / place : folder_ / place / "source.cpp";
      fs::create_directories(file.parent_path());
      std::ofstream(file) << "int one;\n";
    }
    fs::create_directories(folder_ / "generator/operations");
    fs::create_directories(folder_ / "records");
    const DeepTests run({.root = folder_, .records = folder_ / "records"});
    run.start();
    for (const Sweep& sweep : sweeps_of_each(built_in_catalogue())) run.passed(sweep.subjects.front());
    run.write_list();
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Algorithms whose sweep is due in a library with these texts.
  std::set<std::string> due(const Files& files) const {
    const Catalogue catalogue = make_catalogue(SourceLibrary(files));
    std::set<std::string> names;
    for (const Algorithm& algorithm : catalogue.algorithms()) names.insert(algorithm.name());
    for (const Sweep& sweep :
         unchanged_sweeps(sweeps_of_each(catalogue), DeepTests({.root = folder_, .records = {}}))) {
      names.erase(sweep.test);
    }
    return names;
  }

  // The library's texts with a line of code more in one file.
  static Files after_an_edit_of(const std::string& path) {
    Files files = built_in_catalogue().library().files();
    files.at(path) += "\nstatic constexpr int a_line_more = 1;\n";
    return files;
  }
  std::set<std::string> due_after_an_edit_of(const std::string& path) const { return due(after_an_edit_of(path)); }

  const fs::path folder_ = fs::path(testing::TempDir()) / "sweeps";
};

TEST_F(SweepsAfterADeepRun, AreNotDueForTheSameCode) {
  Files files = built_in_catalogue().library().files();
  EXPECT_EQ(due(files), std::set<std::string>{});
  for (auto& [path, text] : files) {
    if (!path.ends_with(".json")) text += "\n// A comment more.\n";
  }
  EXPECT_EQ(due(files), std::set<std::string>{});
}

TEST_F(SweepsAfterADeepRun, AreDueForTheAlgorithmsOfAnEditedFile) {
  EXPECT_THAT(due_after_an_edit_of("pool/pool_nchw.cu"), Contains("pool_nchw"));
  EXPECT_THAT(due_after_an_edit_of("pool/pool_nchw.cu"), Not(Contains("pool_nhwc")));
  EXPECT_THAT(due_after_an_edit_of("pool/pool_nchw.cpp"), Contains("pool_nchw"));
  EXPECT_THAT(due_after_an_edit_of("pool/pool_problem.cpp"), testing::IsSupersetOf({"pool_nchw", "pool_nhwc"}));
  EXPECT_EQ(due_after_an_edit_of("lib/types.cuh").size(), built_in_catalogue().algorithms().size());
  EXPECT_EQ(due_after_an_edit_of("kiln/generator/specialise.h").size(), built_in_catalogue().algorithms().size());
}

// The text of a program says which files it was made of, if each has a line of its own. No algorithm may be left out
// after an edit of one of them.
TEST_F(SweepsAfterADeepRun, AreDueForEveryAlgorithmInWhoseProgramsAnEditedFileStands) {
  Files marked = built_in_catalogue().library().files();
  std::map<std::string, std::string> marks;  // the line of each file
  for (auto& [path, text] : marked) {
    if (!path.ends_with(".cu") && !path.ends_with(".cuh")) continue;
    marks[path] = fmt::format("static constexpr int mark_{}_of_a_file = 1;", marks.size());
    text += "\n" + marks[path] + "\n";
  }
  ASSERT_GT(marks.size(), 100u);
  const Catalogue catalogue = make_catalogue(SourceLibrary(marked));
  const Target target{Arch::of(9, 0), 12, 9};
  std::map<std::string, std::set<std::string>> made_of;  // algorithms by file
  for (const Request& request : requests_with_every_operand()) {
    for (const Algorithm& algorithm : catalogue.algorithms()) {
      const std::optional<Config> config = algorithm.on(request, target).first_legal();
      if (!config) continue;
      for (const Source& source : catalogue.program(request, target, {algorithm.name(), *config}).sources) {
        for (const auto& [path, mark] : marks) {
          if (source.code.find(mark) != std::string::npos) made_of[path].insert(algorithm.name());
        }
      }
    }
  }
  EXPECT_GT(made_of.size(), 80u) << "the marks are not in the programs";
  const DeepTests deep({.root = folder_, .records = {}});
  for (const auto& [path, algorithms] : made_of) {
    const SourceLibrary edited(after_an_edit_of(path));
    CodeDigests codes(edited);
    for (const std::string& name : algorithms) {
      DeepSubject subject = subject_of_sweep("PairwiseMatch", name, "a request", built_in_catalogue());
      EXPECT_EQ(deep.why_due(subject), std::nullopt);
      subject.digest = catalogue.find(name)->digest(codes);
      EXPECT_NE(deep.why_due(subject), std::nullopt) << name << " is made of " << path;
    }
  }
}

TEST_F(SweepsAfterADeepRun, OfOtherRequestsOrKindsAreDue) {
  const DeepTests deep({.root = folder_, .records = {}});
  const auto sweep = [](const char* kind, const char* request) {
    return Sweep{"t", {subject_of_sweep(kind, "pool_nchw", request, built_in_catalogue())}, "pool_forward"};
  };
  EXPECT_EQ(unchanged_sweeps({sweep("PairwiseMatch", "a request")}, deep).size(), 1u);
  EXPECT_TRUE(unchanged_sweeps({sweep("PairwiseMatch", "another")}, deep).empty());
  EXPECT_TRUE(unchanged_sweeps({sweep("WideIndexMatch", "a request")}, deep).empty());
  // A sweep over several algorithms runs where one of them changed.
  Sweep both = sweep("PairwiseMatch", "a request");
  both.subjects.push_back({both.subjects.front().name, std::string(32, '0')});
  EXPECT_TRUE(unchanged_sweeps({both}, deep).empty());
  EXPECT_TRUE(unchanged_sweeps({{"t", {}, "pool_backward"}}, deep).size() == 1);
  std::ofstream(folder_ / "generator/operations/pool_forward.cpp") << "const Operation& pool_forward_operation() {}\n";
  EXPECT_TRUE(unchanged_sweeps({sweep("PairwiseMatch", "a request")}, deep).empty()) << "its operation changed";
  EXPECT_TRUE(unchanged_sweeps({{"t", {}, "pool_backward"}}, deep).size() == 1) << "that of another one";
  EXPECT_NE(deep.why_due(subject_of_nvrtc({Arch::of(9, 0), 1, 0})), std::nullopt) << "another NVRTC";
}

TEST(SweepFilter, NamesWhatIsLeftOut) {
  EXPECT_EQ(filter_without({}), "*");
  EXPECT_EQ(filter_without({{"A/PairwiseMatch.T/a_0", {}, ""}}), "*-A/PairwiseMatch.T/a_0");
  EXPECT_EQ(filter_without({{"A/W.T/a_0", {}, ""}, {"A/W.T/b_1", {}, ""}}), "*-A/W.T/a_0:A/W.T/b_1");
}

}  // namespace
}  // namespace kiln::testing_support::deep_sweeps_test
