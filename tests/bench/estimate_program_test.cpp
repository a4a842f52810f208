// bench_estimate as a user runs it, on databases whose times are made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "kiln/base/environment.h"
#include "kiln/cache/database.h"
#include "kiln/device/device.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/target.h"
#include "kiln/generator/catalogue.h"
#include "kiln/runtime/records.h"
#include "kiln/templates/catalogue.h"
#include "kiln/tuner/search.h"
#include "program.h"

namespace kiln::bench::estimate_program_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* small = "softmax_forward x=f32:3x100";
constexpr const char* large = "softmax_forward x=f32:9x900";

class EstimateProgramTest : public cli::ProgramTest {
 protected:
  EstimateProgramTest() { environment_["KILN_DRIVER"] = "emulator"; }

  cli::Outcome estimate(const std::vector<std::string>& arguments) const { return run(KILN_BENCH_ESTIMATE, arguments); }
  void expect_error(const std::vector<std::string>& arguments, const std::string& message) const {
    const cli::Outcome outcome = estimate(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(outcome.err, "bench_estimate: " + message + "\n");
  }

  static const Catalogue& catalogue() {
    static const Catalogue all = make_catalogue(embedded_sources());
    return all;
  }
  Target target() const {
    static const auto nvrtc = device::Nvrtc::open({Environment::read().nvrtc});
    return execution::target_for(device_.info().cc_major, device_.info().cc_minor, *nvrtc);
  }
  std::vector<Candidate> ranked(const std::string& request, const Calibration& calibration = {}) const {
    DeviceFigures figures = execution::figures_of(device_.info());
    figures.calibration = calibration;
    return catalogue().candidates(Request::parse(request), target(), figures).ranked;
  }

  // Stores seconds of variants, by the rank of their estimates.
  void store(const std::string& request, const std::map<size_t, double>& seconds,
             std::string_view outcome = cache::outcome::timed) const {
    const std::vector<Candidate> candidates = ranked(request);
    cache::Database database = cache::Database::open(path("a.db"));
    database.put_device(device_entry(device_.info()));
    for (const auto& [rank, median] : seconds) {
      const Choice& choice = candidates.at(rank).choice;
      cache::Record record;
      record.request = Request::parse(request).key();
      record.device = device_.info().id();
      record.algorithm = choice.algorithm;
      record.algorithm_digest = "of another Kiln";
      record.config = choice.config.print();
      record.outcome = outcome;
      record.kind = outcome == cache::outcome::predicted ? cache::TimeKind::predicted : cache::TimeKind::modelled;
      record.seconds = median;
      record.driver_version = record.nvrtc_version = record.kiln_version = "13.0";
      database.insert({&record, 1});
    }
  }

  device::Device device_{device::Driver::open({.library = "emulator"}), 0};
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_of(const std::string& line, size_t most) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; words.size() < most && stream >> word;) words.push_back(word);
  return words;
}

// The ranks of the first three that a search tries, in order.
std::array<size_t, 3> tried_of(const std::vector<Candidate>& ranked) {
  std::array<size_t, 3> ranks{};
  const auto search = tuner::make_search({}, ranked, ranked.front().choice);
  for (size_t& rank : ranks) {
    const std::optional<Choice> choice = search->next();
    while (!(ranked.at(rank).choice == choice)) ++rank;
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// Microseconds, with as many digits as the program prints.
std::string microseconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", seconds * 1e6);
  return text.data();
}

TEST_F(EstimateProgramTest, PrintsHowNearTheDefaultAndTheSearchComeToTheFastest) {
  const std::vector<Candidate> of_small = ranked(small), of_large = ranked(large);
  std::map<size_t, double> in_order;
  for (size_t rank = 0; rank < of_small.size(); ++rank) in_order[rank] = 2e-6 + 1e-7 * static_cast<double>(rank);
  store(small, in_order);
  const std::array<size_t, 3> tried = tried_of(of_large);
  ASSERT_EQ(tried[0], 0U) << "the default";
  store(large, {{tried[0], 4e-6}, {tried[1], 2e-6}, {tried[2], 3e-6}});
  const cli::Outcome outcome = estimate({path("a.db")});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 5U) << outcome.out;
  EXPECT_EQ(lines[0], device_.info().id());
  const std::string all = std::to_string(of_small.size()), three = "3/" + std::to_string(of_large.size());
  EXPECT_THAT(words_of(lines[2], 6), ElementsAre("100.0%", "100.0%", "1.00", all + "/" + all,
                                                 microseconds(of_small[0].estimate.seconds), "2.00"));
  EXPECT_THAT(lines[2], EndsWith("  " + Request::parse(small).key()));
  EXPECT_THAT(words_of(lines[3], 6),
              ElementsAre("50.0%", "100.0%?", "-0.50", three, microseconds(of_large[0].estimate.seconds), "4.00"));
  EXPECT_THAT(lines[3], EndsWith("  " + Request::parse(large).key()));
  EXPECT_EQ(
      lines[4],
      "2 requests: default 70.7% of the fastest, worst 50.0%; best of 16 100.0%; ranks 0.25 on average; 1 marked");
}

TEST_F(EstimateProgramTest, NamesItsColumnsAndWithVerboseTheVariants) {
  store(small, {{1, 4e-6}, {2, 1e-6}});
  const std::vector<std::string> lines = lines_of(estimate({"--verbose", path("a.db")}).out);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_THAT(words_of(lines[1], 99),
              ElementsAre("default", "of", "16", "ranks", "timed", "estimate", "time,", "us", "request"));
  EXPECT_THAT(words_of(lines[2], 1), ElementsAre("25.0%?"))
      << "the best estimate that has a time stands for the default";
  const std::vector<Candidate> candidates = ranked(small);
  const auto line = [&](const char* which, size_t rank, const char* time) {
    const Candidate& candidate = candidates[rank];
    return std::string("    ") + which + " " + candidate.choice.algorithm + " " + candidate.choice.config.print() +
           ", " + time + " us, estimated " + microseconds(candidate.estimate.seconds);
  };
  EXPECT_EQ(lines[3], line("default", 1, "4.00"));
  EXPECT_EQ(lines[4], line("fastest", 2, "1.00"));
}

TEST_F(EstimateProgramTest, EstimatesByTheCalibrationOfTheDevice) {
  store(small, {{0, 4e-6}});
  Calibration slow;
  slow.launch_seconds = 1e-3;
  cache::Database::open(path("a.db")).put_calibration({device_.info().id(), slow.print(), 1});
  const std::vector<std::string> lines = lines_of(estimate({path("a.db")}).out);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_GT(ranked(small, slow)[0].estimate.seconds, 1e-3);
  EXPECT_EQ(words_of(lines[2], 6)[4], microseconds(ranked(small, slow)[0].estimate.seconds));
}

TEST_F(EstimateProgramTest, TimesWhatASearchGivesAndTheFileLacks) {
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  const std::string requests = write("layers.txt", small), times = path("times.jsonl");
  const std::vector<std::string> two = {"--time", requests, "--candidates", "2", times};
  const cli::Outcome first = estimate(two);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr(" 2/" + std::to_string(ranked(small).size()) + " "));
  const std::string after_two = read("times.jsonl");
  EXPECT_EQ(lines_of(after_two).size(), 2U);
  EXPECT_THAT(after_two, HasSubstr("\"modelled_time\""));
  EXPECT_EQ(estimate(two).out, first.out);
  EXPECT_EQ(read("times.jsonl"), after_two) << "both are known";

  std::vector<std::string> four = {"--time", requests, "--candidates", "4", "--all", times};
  const cli::Outcome more = estimate(four);
  EXPECT_THAT(read("times.jsonl"), StartsWith(after_two));
  EXPECT_EQ(lines_of(read("times.jsonl")).size(), 4U);
  EXPECT_THAT(lines_of(more.out), Contains(StartsWith("    timed ")).Times(4));
  four.insert(four.begin(), {"--algorithms", "softmax_none"});
  EXPECT_EQ(estimate(four).out, more.out) << "times that the file has count";
}

TEST_F(EstimateProgramTest, KnowsVariantsThatHaveNoTime) {
  environment_["KILN_EMULATOR_CLOCK"] = "machine";
  const std::string requests = write("layers.txt", small), times = path("times.jsonl");
  ASSERT_EQ(estimate({"--time", requests, "--candidates", "3", times}).exit_code, 0);
  const std::string without_one =
      std::regex_replace(read("times.jsonl"), std::regex("\"seconds\":[^,]*,\"launches"), "\"seconds\":null,\"launches",
                         std::regex_constants::format_first_only);
  write("times.jsonl", without_one);
  const cli::Outcome outcome = estimate({"--time", requests, "--candidates", "2", times});
  EXPECT_EQ(read("times.jsonl"), without_one) << "the third, which is known, takes the place of the first";
  EXPECT_THAT(outcome.out, HasSubstr(" 2/" + std::to_string(ranked(small).size()) + " "));

  write("times.jsonl", "{\"a\":1}\n");
  expect_error({"--time", requests, times}, times + " has a line that is no time: {\"a\":1}");
}

TEST_F(EstimateProgramTest, NeedsAClockThatRunsNothing) {
  const cli::Outcome outcome = estimate({"--time", write("layers.txt", small), path("times.jsonl")});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(" tells no times of kernels that do not run (KILN_DRIVER=emulator "
                                     "KILN_EMULATOR_CLOCK=machine, with nvdisasm installed)"));
  expect_error({"--time", path("none.txt"), path("times.jsonl")}, path("none.txt") + " cannot be read");
}

class MeasuredTableTest : public EstimateProgramTest {
 protected:
  MeasuredTableTest() {
    environment_["KILN_EMULATOR_DEVICE"] = "h100";
    environment_["KILN_EMULATOR_CLOCK"] = "machine";
  }

  std::string source_of(const Choice& choice) const {
    return catalogue().program(Request::parse(small), target(), choice).digest();
  }

  // Times of the variants with the best estimates.
  std::string table(const std::vector<double>& times, const std::string& device = "NVIDIA H100 80GB HBM3") const {
    const std::vector<Candidate> candidates = ranked(small);
    Calibration slow;
    slow.launch_seconds = 1e-3;
    std::string text = "# device name=\"" + device + "\" cc=9.0 emulated=no\n# calibration " + slow.print() +
                       "\nrequest\talgorithm\tconfig\tmicroseconds\tspread\tsamples\tsource\n";
    for (size_t rank = 0; rank < times.size(); ++rank) {
      const Choice& choice = candidates.at(rank).choice;
      text += std::string(small) + "\t" + choice.algorithm + "\t" + choice.config.print() + "\t" +
              microseconds(times[rank]) + "\t0.1\t7\t" + source_of(choice) + "\n";
    }
    return write("a.tsv", text);
  }
};

TEST_F(MeasuredTableTest, JudgesEstimates) {
  const std::string file = table({4e-6, 2e-6});
  const cli::Outcome outcome = estimate({"--measured", file});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  EXPECT_THAT(lines.at(1), StartsWith("name=\"Kiln emulated NVIDIA H100 "));
  EXPECT_THAT(words_of(lines.at(3), 1), ElementsAre("50.0%"));
  const auto estimated = [](const cli::Outcome& of) { return std::stod(words_of(lines_of(of.out).at(3), 6).at(4)); };
  EXPECT_LT(estimated(outcome), 1000);
  EXPECT_GT(estimated(estimate({"--measured", "--calibrated", file})), 1000);
}

TEST_F(MeasuredTableTest, JudgesTheClock) {
  const std::string file = table({4e-6, 2e-6});
  const auto judge = [&] {
    return run(KILN_BENCH_TIME_MODEL, {"--variants", file, "--times", path("times.jsonl"), "--every"});
  };
  const cli::Outcome outcome = judge();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  EXPECT_THAT(lines.at(0), StartsWith("Kiln emulated NVIDIA H100 (machine-code clock "));
  EXPECT_THAT(lines.at(0), EndsWith(" against NVIDIA H100 80GB HBM3:"));
  EXPECT_THAT(lines.at(2), HasSubstr(": measured 4.00 us, modelled "));
  EXPECT_THAT(lines.at(4), StartsWith("    2 rows: Spearman "));
  EXPECT_THAT(lines.at(4), EndsWith(Request::parse(small).key()));
  EXPECT_THAT(outcome.out, HasSubstr("  all                       2 rows: Spearman "));
  EXPECT_THAT(outcome.out, HasSubstr("  judged: h100 "));
  EXPECT_EQ(lines_of(read("times.jsonl")).size(), 2U);
  EXPECT_EQ(judge().out, outcome.out);
  EXPECT_EQ(lines_of(read("times.jsonl")).size(), 2U) << "both are known";
}

TEST_F(MeasuredTableTest, KnowsWhatHasAnotherSourceNow) {
  const std::string file = table({4e-6, 2e-6});
  const std::string text = read("a.tsv"), source = source_of(ranked(small).at(1).choice);
  write("a.tsv", std::string(text).replace(text.find(source), source.size(), "of an earlier Kiln"));
  const std::string found = "2 variants measured; of these 0 are no longer there, and 1 have another source now";
  EXPECT_THAT(estimate({"--measured", file}).out, AllOf(StartsWith(found + "\n"), HasSubstr(" 2/")));
  EXPECT_THAT(estimate({"--measured", "--unchanged", file}).out,
              AllOf(StartsWith(found + ", and are left out\n"), HasSubstr(" 1/")));
  const auto judge = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--variants", file, "--times", path("times.jsonl")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(KILN_BENCH_TIME_MODEL, arguments).out;
  };
  EXPECT_THAT(judge({}), AllOf(HasSubstr("\n  " + found + "\n"), HasSubstr("\n    2 rows: ")));
  EXPECT_THAT(judge({"--unchanged"}), HasSubstr("\n    1 rows: "));
}

TEST_F(MeasuredTableTest, IsOfTheDevicesCard) {
  const cli::Outcome outcome = run(
      KILN_BENCH_TIME_MODEL, {"--variants", table({4e-6}, "NVIDIA A100-SXM4-80GB"), "--times", path("times.jsonl")});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the table is of NVIDIA A100-SXM4-80GB, the device is Kiln emulated NVIDIA H100"));
}

TEST_F(EstimateProgramTest, SaysWhatIsWrongWithItsDatabase) {
  const cli::Outcome none = estimate({});
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.err, HasSubstr("times is required"));
  EXPECT_THAT(none.out, IsEmpty());

  expect_error({path("no.db")}, path("no.db") + " is not a file (`kiln tune` makes a tuning database)");
  EXPECT_FALSE(std::filesystem::exists(path("no.db")));
  const std::string folder = std::filesystem::path(path("no.db")).parent_path();
  expect_error({folder}, folder + " is not a file (`kiln tune` makes a tuning database)");
  const cli::Outcome other = estimate({write("other.db", "no database at all")});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("bench_estimate: " + path("other.db") + " is not a database"));
  EXPECT_EQ(read("other.db"), "no database at all");
}

TEST_F(EstimateProgramTest, NeedsTimesOfTheDevice) {
  const std::string hint =
      " (the device and its clock are those of KILN_DRIVER, KILN_EMULATOR_DEVICE and "
      "KILN_EMULATOR_CLOCK)";
  const std::string none = path("a.db") + " has no times of " + device_.info().id() + hint;
  cache::Database::open(path("a.db"));
  expect_error({path("a.db")}, none);
  store(small, {{0, 4e-6}}, cache::outcome::predicted);
  expect_error({path("a.db")}, none);
  store(small, {{0, 4e-6}}, cache::outcome::wrong_result);
  expect_error({path("a.db")}, none);
  store(small, {{0, 4e-6}});
  EXPECT_EQ(estimate({path("a.db")}).exit_code, 0);
  environment_["KILN_EMULATOR_DEVICE"] = "t4";
  const cli::Outcome of_another = estimate({path("a.db")});
  EXPECT_EQ(of_another.exit_code, 1);
  EXPECT_THAT(of_another.err, HasSubstr(path("a.db") + " has no times of name=\"Kiln emulated NVIDIA T4\" cc=7.5 "));
}

}  // namespace
}  // namespace kiln::bench::estimate_program_test
