// kiln bug, and kiln explain --why-miss: for people who ask why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace kiln::cli::report_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* softmax = "softmax_forward x=f32:8x10 axis=1";

TEST_F(ProgramTest, WhyMissNamesTheNearestRequestAndWhatDiffers) {
  const std::string database = path("tuning.db");
  EXPECT_THAT(kiln({"explain", softmax, "--why-miss"}).out, HasSubstr("why missed: nothing is stored at all"));
  ASSERT_EQ(kiln({"tune", softmax, "--db", database, "--candidates", "1", "--quiet"}).exit_code, 0);
  EXPECT_THAT(kiln({"explain", softmax, "--db", database, "--why-miss"}).out,
              HasSubstr("nothing is missed: the choice is modelled on this device"));
  const std::string other = "softmax_forward x=f16:8x11 axis=1";
  EXPECT_THAT(kiln({"explain", other, "--db", database, "--why-miss"}).out,
              AllOf(HasSubstr("the nearest of 1 is in the database"), HasSubstr("x dtype     f16   f32"),
                    HasSubstr("x extents   8x11  8x10")));
  const auto json = nlohmann::json::parse(kiln({"explain", other, "--db", database, "--why-miss", "--json"}).out);
  const auto& miss = json["layers"][0]["why_miss"];
  EXPECT_THAT(miss["nearest"]["request"].get<std::string>(), HasSubstr("x=f32:8x10"));
  EXPECT_EQ(miss["differences"].size(), 4U);
  const std::string pack = path("tuned.pack");
  ASSERT_EQ(kiln({"cache", "export", pack, "--db", database}).exit_code, 0);
  EXPECT_THAT(kiln({"explain", other, "--pack", pack, "--why-miss"}).out, HasSubstr("is in pack " + pack));
  EXPECT_THAT(kiln({"explain", other}).out, Not(HasSubstr("why missed")));
}

TEST_F(ProgramTest, BugWritesAllThatAReportNeeds) {
  const std::string database = path("tuning.db"), file = path("report.md");
  ASSERT_EQ(kiln({"tune", softmax, "--db", database, "--candidates", "1", "--quiet"}).exit_code, 0);
  const Outcome outcome = kiln({"bug", softmax, "--db", database, "-o", file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("report.md: the request, versions"));
  const std::string text = read("report.md");
  EXPECT_THAT(text, AllOf(HasSubstr("softmax_forward x=f32:8x10:nc"), HasSubstr("kiln 0."), HasSubstr("NVRTC"),
                          HasSubstr("emulated=yes"), HasSubstr("KILN_"), HasSubstr("\"outcome\": \"timed\""),
                          HasSubstr("__global__"), HasSubstr("check: ok"), HasSubstr("\"refused\"")));
  EXPECT_THAT(text, Not(HasSubstr("did not come to an end")));
}

TEST_F(ProgramTest, BugRefusesWhatItCannotReportOrWrite) {
  const std::string file = path("report.md");
  const Outcome outcome = kiln({"bug", "softmax_forward x=f32:8x10 y=f32:8x10 axis=9", "-o", file});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(file)) << "a request that is none leaves no report";
  EXPECT_THAT(kiln({"bug", softmax, "-o", path("no/such/report.md")}).err, HasSubstr("report.md"));
  EXPECT_THAT(kiln({"bug", softmax, "--db", path("none.db"), "-o", file}).err, HasSubstr("none.db"));
}

TEST_F(ProgramTest, BugLeavesSourcesOutWhereAsked) {
  const std::string code = write("scale.txt", "expression scale\nacc * 3.25f\nend expression\n");
  const std::string request = "softmax_forward x=f32:8x10 axis=1 epilogue=user:scale";
  const std::string file = path("report.md");
  const Outcome with = kiln({"bug", request, "--expression", code, "-o", file});
  ASSERT_EQ(with.exit_code, 0) << with.err << read("report.md");
  EXPECT_THAT(read("report.md"), AllOf(HasSubstr("3.25f"), HasSubstr("__global__")));
  const Outcome without = kiln({"bug", request, "--expression", code, "-o", file, "--no-source"});
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(read("report.md"), AllOf(Not(HasSubstr("3.25f")), Not(HasSubstr("__global__"))));
}

}  // namespace
}  // namespace kiln::cli::report_test
