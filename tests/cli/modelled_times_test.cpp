// Texts about clocks, and about their predictions.
#include "modelled_times.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "kiln/timing/accuracy.h"
#include "kiln/timing/time_model.h"

namespace kiln::cli::modelled_times_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

std::string emulated(const std::string& card, int version = timing::model_version, const std::string& of = "") {
  return fmt::format("Kiln emulated {} (machine-code clock {}{})", card, version, of);
}

TEST(ModelledTimes, SayHowWellTheirClockDoesOnTheCard) {
  const std::string a100 = modelled_text(emulated("NVIDIA A100"));
  EXPECT_EQ(a100, fmt::format("modelled by machine-code clock {}: {}", timing::model_version,
                              timing::accuracy_text(timing::judgements_of("a100"))));
  EXPECT_THAT(a100, HasSubstr("rank correlation "));
  EXPECT_THAT(modelled_text(emulated("NVIDIA T4")), HasSubstr("not judged by measured times on this card"));
  EXPECT_EQ(modelled_text("Kiln emulated NVIDIA A100"), "modelled from PTX alone, uncalibrated");
}

TEST(ModelledTimes, ClaimNothingForAnotherClockOrAUsersFigures) {
  EXPECT_THAT(modelled_text(emulated("NVIDIA A100", timing::model_version + 1)),
              HasSubstr(fmt::format("not the clock of this Kiln ({})", timing::model_version)));
  EXPECT_THAT(modelled_text(emulated("NVIDIA A100", timing::model_version, " of my.card")),
              HasSubstr("by a user's figures, which nobody has judged"));
  EXPECT_THAT(modelled_json(emulated("NVIDIA A100", timing::model_version + 1)).value()["judged"], IsEmpty());
}

TEST(ModelledTimes, AreJudgedInJsonToo) {
  const auto json = modelled_json(emulated("NVIDIA A100")).value();
  EXPECT_EQ(json["clock"], fmt::format("machine-code clock {}", timing::model_version));
  ASSERT_EQ(json["judged"].size(), timing::judgements_of("a100").size());
  EXPECT_EQ(json["judged"][0]["table"], "convolution");
  EXPECT_EQ(json["judged"][0]["spearman"], timing::judgements_of("a100")[0].spearman);
  EXPECT_EQ(modelled_json("Kiln emulated NVIDIA A100").value()["clock"], "PTX");
  EXPECT_TRUE(modelled_json("NVIDIA A100").value().is_null());
}

// Examples of what Kiln prints, which a new version of the clock would leave behind.
TEST(ModelledTimes, NameTheSameClockAsThePages) {
  const std::regex named("machine(?:-code clock| code) ([0-9]+)");
  size_t found = 0;
  for (const auto& page : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/docs")) {
    if (page.path().extension() != ".md") continue;
    std::ifstream file(page.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (std::sregex_iterator at(text.begin(), text.end(), named), end; at != end; ++at, ++found)
      EXPECT_EQ((*at)[1], std::to_string(timing::model_version)) << page.path() << ": " << at->str();
  }
  EXPECT_GT(found, 5U);
}

Json launches(int by_machine_code, int by_ptx) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  const std::string clock = fmt::format("machine-code clock {}", timing::model_version);
  for (int i = 0; i < by_machine_code; ++i) json.push_back({{"modelled_time", {{"clock", clock}}}});
  for (int i = 0; i < by_ptx; ++i) {
    json.push_back({{"modelled_time", {{"clock", "ptx"}, {"not_by_machine_code", "it has none"}}}});
  }
  return Json(std::move(json));
}

TEST(LaunchClocks, SayTheClockOfTheDeviceWhereItToldAll) {
  const std::string device = emulated("NVIDIA A100");
  LaunchClocks clocks(device);
  clocks.add(launches(2, 0));
  EXPECT_EQ(clocks.text(), modelled_text(device));
  EXPECT_EQ(clocks.json().value(), modelled_json(device).value());
  LaunchClocks real("NVIDIA A100");
  EXPECT_TRUE(real.json().value().is_null());
}

TEST(LaunchClocks, SayHowManyLaunchesWereToldByPtxAndWhy) {
  const std::string device = emulated("NVIDIA A100");
  LaunchClocks clocks(device);
  clocks.add(launches(0, 2));
  EXPECT_EQ(clocks.text(), "modelled from PTX alone, uncalibrated: it has none");
  EXPECT_EQ(clocks.json().value()["clock"], "PTX");
  EXPECT_EQ(clocks.json().value()["by_ptx_alone"]["launches"], 2);
  clocks.add(launches(3, 0));
  EXPECT_EQ(clocks.text(),
            modelled_text(device) + "\n2 of 5 launches modelled from PTX alone, uncalibrated: it has none");
  EXPECT_EQ(clocks.json().value()["clock"], modelled_json(device).value()["clock"]);
  EXPECT_EQ(clocks.json().value()["by_ptx_alone"],
            nlohmann::ordered_json({{"launches", 2}, {"of", 5}, {"reason", "it has none"}}));
}

TEST(PredictionNotes, SayEachClockOnceAndNothingOfOtherChoices) {
  PredictionNotes notes("NVIDIA A100-SXM4-80GB");
  for (const char* source : {"estimate", "measured on this device", "modelled on this device", "bundle a.kiln"})
    notes.add(source);
  EXPECT_THAT(notes.notes(), IsEmpty());
  EXPECT_EQ(notes.print(), "");
  const std::string ours = fmt::format("predicted by machine-code clock {}", timing::model_version);
  notes.add(ours + ", from pack a.pack");
  notes.add(ours);
  notes.add("predicted by machine-code clock 99, bundle a.kiln");
  EXPECT_THAT(notes.notes(),
              UnorderedElementsAre(StartsWith(ours + ": rank correlation "),
                                   StartsWith("predicted by machine-code clock 99: not the clock of this Kiln")));
}

}  // namespace
}  // namespace kiln::cli::modelled_times_test
