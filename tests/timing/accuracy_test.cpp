// Committed results about the time model's accuracy.
#include "kiln/timing/accuracy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "kiln/base/error.h"
#include "kiln/timing/card.h"
#include "kiln/timing/time_model.h"

namespace kiln::timing::accuracy_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string read(const std::string& path) {
  std::ifstream file(std::string(KILN_SOURCE_DIR "/") + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Accuracy, IsOfThisVersionOfTheModelAndOfCardsThatThereAre) {
  ASSERT_FALSE(judgements().empty());
  for (const Judgement& one : judgements()) {
    EXPECT_EQ(one.version, model_version)
        << one.print() << ": the clock has changed since; run bench_time_model, and put its `judged:` lines into "
        << "timing/cards/judged.txt and their figures into docs/time-model.md";
    EXPECT_THAT(card_names(), Contains(one.card)) << one.print();
  }
}

TEST(Accuracy, IsThatOfThePageAboutIt) {
  const std::string page = read("docs/time-model.md");
  for (const Judgement& one : judgements()) {
    EXPECT_THAT(page, HasSubstr(fmt::format(" | {} | {:.2f} | {:.2f} | {:.2f} | ", one.rows, one.spearman, one.mean,
                                            one.spread)))
        << one.print() << ": the table of docs/time-model.md has no such row";
  }
}

TEST(Accuracy, IsFoundByTheNameOfADevice) {
  EXPECT_EQ(judgements_of("NVIDIA A100-SXM4-80GB").size(), 3u);
  EXPECT_EQ(judgements_of("Kiln emulated NVIDIA A100 (machine-code clock 1)").size(), 3u);
  EXPECT_EQ(judgements_of("NVIDIA H200").size(), 1u);
  EXPECT_THAT(judgements_of("NVIDIA L40S"), IsEmpty());
  EXPECT_THAT(judgements_of("NVIDIA A10"), IsEmpty());
  EXPECT_EQ(card_named("NVIDIA GeForce RTX 5090"), "rtx5090");
  EXPECT_EQ(card_named("NVIDIA A10"), "a10");
  EXPECT_EQ(card_named("Radeon"), "");
}

TEST(Accuracy, IsSaidInALine) {
  const auto all = parse_judgements(
      "# a comment\n\n"
      "a100 1 2026-11-23 convolution 40 0.84 0.91 1.26\n"
      "a100 1 2026-11-23 other 40 0.71 1.07 1.05\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NEAR(all[0].error(), 0.284, 1e-3) << "mean and spread together";
  EXPECT_EQ(all[1].print(), "a100 1 2026-11-23 other 40 0.71 1.07 1.05");
  EXPECT_EQ(accuracy_text(all), "rank correlation 0.71 to 0.84 with measured times of 2 tables, off by 9% to 28%");
  EXPECT_EQ(accuracy_text({all[0]}), "rank correlation 0.84 with measured times of 1 table, off by 28%");
  EXPECT_EQ(accuracy_text({}), "not judged by measured times on this card");
}

TEST(Accuracy, IsRefusedWhereALineIsWrong) {
  for (const char* line :
       {"a100 1 2026-11-23 convolution 40 0.84 0.91", "a100 1 2026-11-23 convolution 40 0.84 0.91 1.26 1",
        "a100 0 2026-11-23 convolution 40 0.84 0.91 1.26", "a100 1 today convolution 40 0.84 0.91 1.26",
        "a100 1 2026-11-23 convolution 1 0.84 0.91 1.26", "a100 1 2026-11-23 convolution 40 1.84 0.91 1.26",
        "a100 1 2026-11-23 convolution 40 0.84 0 1.26", "a100 1 2026-11-23 convolution 40 0.84 0.91 0.9"}) {
    try {
      parse_judgements(std::string("# first\n") + line);
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::parse_error);
      EXPECT_THAT(error.what(), HasSubstr(std::string("line 2: ") + line));
    }
  }
}

}  // namespace
}  // namespace kiln::timing::accuracy_test
