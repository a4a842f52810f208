// kiln cache compare: which records count, on which cards, and what they sum up to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fleet/comparison.h"
#include "kiln/base/error.h"

namespace kiln::cli::fleet_comparison_test {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const std::string small = "softmax_forward x=f32:3x100:nc y=f32:3x100:nc axis=1 mode=accurate alpha=1 beta=0";
const std::string large = "softmax_forward x=f32:9x900:nc y=f32:9x900:nc axis=1 mode=accurate alpha=1 beta=0";

cache::Record timed(const std::string& device, const std::string& request, const std::string& config, double seconds) {
  cache::Record record;
  record.request = request;
  record.device = device;
  record.algorithm = "softmax_simple";
  record.algorithm_digest = "now";
  record.config = config;
  record.outcome = cache::outcome::timed;
  record.seconds = seconds;
  record.driver_version = record.nvrtc_version = record.kiln_version = "13.0";
  record.created_ms = 1;
  return record;
}

cache::DeviceEntry card(const std::string& id, const std::string& name, bool emulated = false) {
  return {id, name, 8, 0, 108, emulated};
}

Comparison compare(std::vector<cache::DeviceEntry> cards, std::vector<cache::Record> records,
                   const std::vector<std::string>& wanted = {}) {
  return compare_cards(cache::make_pack(std::move(cards), std::move(records)), wanted,
                       [](std::string_view, std::string_view digest) { return digest == "now"; });
}

const std::vector<cache::DeviceEntry> two_cards = {card("a", "NVIDIA A100"), card("b", "NVIDIA T4")};

std::vector<std::string> configs_of(const FleetLayer& layer) {
  std::vector<std::string> configs;
  for (const Variant& variant : layer.variants) configs.push_back(variant.config);
  return configs;
}

TEST(FleetComparison, OnlyTimesOfWhatMayBeUsedCount) {
  cache::Record predicted = timed("b", small, "THREADS=1", 1e-9), old = timed("a", small, "THREADS=2", 1e-9),
                wrong = timed("b", small, "THREADS=4", 0);
  predicted.outcome = cache::outcome::predicted;
  predicted.kind = cache::TimeKind::predicted;
  old.algorithm_digest = "before";
  wrong.outcome = cache::outcome::wrong_result;
  const Comparison compared =
      compare(two_cards, {predicted, old, wrong, timed("a", small, "THREADS=4", 1e-9),
                          timed("a", small, "THREADS=8", 2e-6), timed("b", small, "THREADS=8", 3e-6)});
  ASSERT_THAT(compared.layers, SizeIs(1));
  EXPECT_THAT(configs_of(compared.layers[0]), ElementsAre("THREADS=8"))
      << "what is wrong on one card is used on none, and neither predictions nor another Kiln's times count";
  EXPECT_THAT(compared.layers[0].seconds, ElementsAre(ElementsAre(2e-6, 3e-6)));
}

TEST(FleetComparison, SumsAreOfTheLayersThatOneVariantServesOnAllCards) {
  const Comparison compared =
      compare(two_cards, {timed("a", small, "THREADS=1", 1e-6), timed("a", small, "THREADS=2", 2e-6),
                          timed("b", small, "THREADS=1", 9e-6), timed("b", small, "THREADS=2", 3e-6),
                          timed("a", large, "THREADS=1", 5e-6), timed("b", large, "THREADS=2", 5e-6)});
  EXPECT_EQ(compared.without_shared(), 1U) << "nothing was timed on both";
  const Comparison::Sums a = compared.sums(0), b = compared.sums(1);
  EXPECT_EQ(a.layers, 1U);
  EXPECT_DOUBLE_EQ(a.best, 1e-6);
  EXPECT_DOUBLE_EQ(a.shared, 2e-6);
  EXPECT_DOUBLE_EQ(a.ratio(), 2);
  EXPECT_DOUBLE_EQ(b.best, 3e-6);
  EXPECT_DOUBLE_EQ(b.ratio(), 1);
  EXPECT_THAT(print_comparison(compared, {}), HasSubstr("not in the sums: 1 layer of which no variant was timed"));

  const Comparison apart = compare(two_cards, {timed("a", small, "THREADS=1", 1e-6), timed("b", large, "", 2e-6)});
  EXPECT_EQ(apart.without_shared(), 0U) << "a card without any time of a layer has no say";
  EXPECT_EQ(apart.sums(0).layers, 1U);
  EXPECT_DOUBLE_EQ(apart.sums(0).shared, 1e-6);
  EXPECT_EQ(json_of(apart).value()["layers"][0]["cards"][1]["best_seconds"], nullptr);
}

TEST(FleetComparison, WhatIsNotKnownHasNoRatio) {
  const Comparison compared =
      compare(two_cards, {timed("a", small, "THREADS=1", 1e-6), timed("b", small, "THREADS=2", 3e-6)});
  const std::string text = print_comparison(compared, {.wide = true}), page = print_comparison_page(compared, "");
  EXPECT_THAT(text, ContainsRegex("THREADS=2 +3.00 us +none timed on all +- +-\n"));
  EXPECT_THAT(text,
              HasSubstr("NVIDIA T4: 0 layers: 0.0 ns with its best variants, 0.0 ns with one for all cards: -\n"));
  EXPECT_THAT(page, HasSubstr("<h1>2 cards, 1 layer</h1>"));
  EXPECT_THAT(page, HasSubstr("<p>Not in the sums: 1 layer of which no variant was timed on all cards.</p>"));
  EXPECT_THAT(page, HasSubstr("none was timed on all of them"));
  EXPECT_THAT(page, HasSubstr("data-name=\"cost\">-</td>"));
  EXPECT_THAT(page, Not(HasSubstr("x</td>"))) << "no ratio at all";
  const auto json = json_of(compared).value();
  EXPECT_EQ(json["cards"][0]["layers"], 0);
  EXPECT_TRUE(json["cards"][0]["ratio"].is_null());
  EXPECT_TRUE(json["layers"][0]["shared"].is_null());
  EXPECT_TRUE(json["layers"][0]["cards"][0]["shared_seconds"].is_null());

  const Comparison of_one = compare(two_cards, {timed("a", small, "THREADS=1", 1e-6)});
  EXPECT_THAT(print_comparison(of_one, {.wide = true}), ContainsRegex("NVIDIA T4 +not tuned +- +- +- +-\n"));
  EXPECT_THAT(print_comparison_page(of_one, ""), HasSubstr("data-name=\"best variant\">not tuned</td>"));
  EXPECT_DOUBLE_EQ(json_of(of_one).value()["cards"][0]["ratio"], 1);
  EXPECT_TRUE(json_of(of_one).value()["layers"][0]["cards"][1]["best"].is_null());
}

TEST(FleetComparison, CardsOfOneNameAreToldApart) {
  const Comparison compared = compare({card("a", "NVIDIA A100"), card("b", "NVIDIA A100"), card("c", "NVIDIA T4")}, {});
  EXPECT_THAT(compared.names, ElementsAre("NVIDIA A100 #1", "NVIDIA A100 #2", "NVIDIA T4"));
}

TEST(FleetComparison, CardsAreNamedWholeOrByWords) {
  const std::vector<cache::DeviceEntry> cards = {card("sms=108", "NVIDIA A100"), card("sms=72", "NVIDIA A10"),
                                                 card("sms=80", "NVIDIA A10 MIG")};
  const auto names = [&](const std::vector<std::string>& wanted) { return compare(cards, {}, wanted).names; };
  EXPECT_THAT(names({"nvidia a10"}), ElementsAre("NVIDIA A10")) << "a whole name means no other that holds it";
  EXPECT_THAT(names({"A10"}), ElementsAre("NVIDIA A10", "NVIDIA A10 MIG"));
  EXPECT_THAT(names({"mig", "sms=108"}), ElementsAre("NVIDIA A100", "NVIDIA A10 MIG"));
  for (const char* none : {"100", "A1", "8", "MI"}) EXPECT_THROW(names({none}), Error) << none;
}

TEST(FleetComparison, RealAndEmulatedCardsDoNotCompare) {
  const std::vector<cache::DeviceEntry> cards = {card("a", "NVIDIA A100"), card("b", "Kiln emulated NVIDIA T4", true)};
  try {
    compare(cards, {});
    FAIL() << "modelled times beside measured ones";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("real and of emulated cards"));
    EXPECT_THAT(error.hint(), HasSubstr("NVIDIA A100, Kiln emulated NVIDIA T4"));
  }
  EXPECT_THAT(compare(cards, {}, {"T4"}).names, ElementsAre("Kiln emulated NVIDIA T4"));
  EXPECT_THROW(compare({}, {}), Error);
}

TEST(FleetPack, HoldsTheFastestChosenVariantOfEachCardAndWhatBars) {
  cache::Record wrong = timed("b", small, "THREADS=8", 0);
  wrong.outcome = cache::outcome::wrong_result;
  std::vector<cache::Record> records = {timed("a", small, "THREADS=1", 1e-6), timed("a", small, "THREADS=2", 2e-6),
                                        timed("a", small, "THREADS=4", 4e-6), timed("b", small, "THREADS=1", 9e-6),
                                        timed("b", small, "THREADS=2", 3e-6), timed("b", small, "THREADS=4", 4e-6),
                                        timed("c", small, "THREADS=1", 1e-6), wrong};
  for (cache::Record& record : records) record.samples = {record.seconds};
  std::vector<cache::DeviceEntry> cards = two_cards;
  cards.push_back(card("c", "NVIDIA L4"));
  const cache::Pack contents = cache::make_pack(cards, records);
  const Comparison compared = compare_cards(contents, {"A100", "T4"}, [](auto, auto) { return true; });
  const FleetChoice choice = choose_variants({compared.layers[0].seconds}, 2, 0);
  ASSERT_THAT(choice.picks, SizeIs(2)) << "each card has a fastest one of its own";
  const cache::Pack pack = pack_of(contents, compared, choice);
  std::vector<std::string> held;
  for (const cache::Record& record : pack.records) {
    held.push_back(record.device + " " + record.config + " " + record.outcome);
    EXPECT_TRUE(record.samples.empty());
  }
  EXPECT_THAT(held,
              testing::UnorderedElementsAre("a THREADS=1 timed", "b THREADS=2 timed", "b THREADS=8 wrong_result"));
  EXPECT_THAT(pack.devices, SizeIs(2));
}

}  // namespace
}  // namespace kiln::cli::fleet_comparison_test
