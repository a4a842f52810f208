// Neighbours: the order of a request's candidates, corrected by times of other sizes.
#include "neighbours.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "fakes.h"
#include "kiln/cache/pack.h"

namespace kiln::neighbours_test {
namespace {

using testing::ElementsAre;
using tuner::fakes::toy;
using tuner::fakes::toy_request;

// Algorithms of which "first" is estimated to be the fastest, then "second", "third".
class NeighboursTest : public testing::Test {
 protected:
  cache::Record record(const Request& request, const std::string& algorithm, double seconds) const {
    cache::Record r;
    r.device = device_.id;
    r.request = request.key();
    r.algorithm = algorithm;
    r.algorithm_digest = "digest";
    r.config = "TILE=1";
    r.outcome = cache::outcome::timed;
    r.kind = cache::TimeKind::modelled;
    r.seconds = seconds;
    return r;
  }

  // Stores times of the three for so many rows.
  void tune(int rows, double first, double second, double third) {
    const Request request = toy_request(rows);
    database_.insert(std::vector{record(request, "first", first), record(request, "second", second),
                                 record(request, "third", third)});
  }

  Candidates ranked(const Request& request) {
    Variants variants = catalogue_.on(request, laboratory_.apparatus().target);
    return neighbours_.ranked(variants, variants.candidates(figures_));
  }

  std::vector<std::string> order(int rows) {
    std::vector<std::string> names;
    for (const Candidate& candidate : ranked(toy_request(rows)).ranked) names.push_back(candidate.choice.algorithm);
    return names;
  }

  const tuner::fakes::FakeLaboratory laboratory_;
  const DeviceFigures& figures_ = laboratory_.apparatus().figures;
  const Catalogue catalogue_ =
      tuner::fakes::toy_catalogue({toy("first", {1}, 1e-3), toy("second", {1}, 1.1e-3), toy("third", {1}, 1.2e-3)});
  const cache::DeviceEntry device_{"fake", "Fake", 9, 0, 132, true};
  cache::Database database_ = [this] {
    cache::Database database = cache::Database::in_memory();
    database.put_device(device_);
    return database;
  }();
  cache::Winners winners_{device_};
  Neighbours neighbours_{winners_, catalogue_, figures_};
};

TEST_F(NeighboursTest, WithoutAnyTheEstimatesStay) {
  winners_.load(database_);
  tune(8, 1e-3, 5e-4, 1e-3);
  const Candidates candidates = ranked(toy_request(8));
  EXPECT_EQ(candidates.basis, "estimate") << "its own times are no neighbour's";
  EXPECT_THAT(order(8), ElementsAre("first", "second", "third", "trusted"));
  EXPECT_EQ(candidates.ranked[0].estimate.seconds, 1e-3);
}

TEST_F(NeighboursTest, AVariantThatWasFasterThanItsEstimateComesFirst) {
  winners_.load(database_);
  tune(8, 1e-3, 6e-4, 1.2e-3);
  const Candidates candidates = ranked(toy_request(4));
  EXPECT_EQ(candidates.basis, "from 1 neighbour, nearest x=8x1000");
  EXPECT_THAT(order(4), ElementsAre("second", "first", "third", "trusted"));
  const double seconds = candidates.ranked[0].estimate.seconds;
  EXPECT_LT(seconds, 1.1e-3) << "the estimate is corrected";
  EXPECT_GT(seconds, 6e-4) << "by a part: the size is another";
}

TEST_F(NeighboursTest, TheNearestCountsMost) {
  winners_.load(database_);
  tune(8, 1e-3, 6e-4, 1.2e-3);
  tune(4096, 1e-3, 1.1e-3, 6e-4);
  EXPECT_EQ(order(4)[0], "second");
  EXPECT_EQ(order(2048)[0], "third");
  EXPECT_EQ(ranked(toy_request(2048)).basis, "from 2 neighbours, nearest x=4096x1000");
}

TEST_F(NeighboursTest, FiveAreEnough) {
  winners_.load(database_);
  for (int rows = 10; rows < 20; ++rows) tune(rows, 1e-3, 1e-3, 1e-3);
  EXPECT_EQ(ranked(toy_request(4)).basis, "from 5 neighbours, nearest x=10x1000");
}

TEST_F(NeighboursTest, SizesWithoutATimeThatCountsArePassedOver) {
  winners_.load(database_);
  cache::Record failed = record(toy_request(5), "second", 0);
  failed.outcome = cache::outcome::wrong_result;
  cache::Record unknown = record(toy_request(6), "of another version", 1e-6);
  cache::Record unreadable = record(toy_request(7), "first", 1e-6);
  unreadable.config = "no configuration";
  database_.insert(std::vector{failed, unknown, unreadable});
  EXPECT_EQ(ranked(toy_request(4)).basis, "estimate");
  tune(64, 1e-3, 6e-4, 1.2e-3);
  EXPECT_EQ(ranked(toy_request(4)).basis, "estimate") << "known once it is learnt, or by another Context";
  neighbours_.learn(toy_request(64).key());
  EXPECT_EQ(ranked(toy_request(4)).basis, "from 1 neighbour, nearest x=64x1000");
}

TEST_F(NeighboursTest, OneTimeAloneIsNeitherFastNorSlow) {
  database_.insert(std::vector{record(toy_request(8), "third", 1e-6)});
  winners_.load(database_);
  EXPECT_EQ(ranked(toy_request(4)).basis, "estimate") << "a pack of winners teaches nothing";
}

TEST_F(NeighboursTest, ManyThatTeachNothingHideNoneThatDoes) {
  std::vector<cache::Record> alone;
  for (int rows = 10; rows < 110; ++rows) alone.push_back(record(toy_request(rows), "first", 1e-3));
  database_.insert(alone);
  tune(4096, 1e-3, 6e-4, 1.2e-3);
  winners_.load(database_);
  EXPECT_EQ(ranked(toy_request(50)).basis, "from 1 neighbour, nearest x=4096x1000");
}

TEST_F(NeighboursTest, TimesThatNoKernelTakesAndSizesWithoutElementsTeachNothing) {
  tune(8, 1e308, 6e307, 1e-3);
  tune(0, 1e-6, 1e-7, 1e-6);
  winners_.load(database_);
  EXPECT_EQ(ranked(toy_request(4)).basis, "estimate");
}

TEST_F(NeighboursTest, WhatIsTunedAgainIsLearntAnew) {
  winners_.load(database_);
  tune(8, 1e-3, 6e-4, 1.2e-3);
  EXPECT_EQ(order(4)[0], "second");
  tune(8, 1e-3, 1.1e-3, 6e-4);
  neighbours_.learn(toy_request(8).key());
  EXPECT_EQ(order(4)[0], "third");
}

TEST_F(NeighboursTest, LayersOfAnotherClassTeachNothing) {
  winners_.load(database_);
  const Request other = Request::parse("softmax_forward x=f16:8x1000");
  database_.insert(std::vector{record(other, "second", 1e-6), record(other, "third", 1e-3)});
  EXPECT_EQ(ranked(toy_request(4)).basis, "estimate");
}

TEST_F(NeighboursTest, AVariantThatWasTriedMayComeFirstWhateverItsPlace) {
  std::vector<Algorithm> many;
  for (int i = 0; i < 100; ++i) many.push_back(toy(fmt::format("a{}", i), {1}, 1e-3 + 1e-6 * i));
  const Catalogue catalogue = tuner::fakes::toy_catalogue(std::move(many));
  database_.insert(std::vector{record(toy_request(8), "a0", 1e-3), record(toy_request(8), "a99", 1e-4)});
  winners_.load(database_);
  Neighbours neighbours(winners_, catalogue, figures_);
  Variants variants = catalogue.on(toy_request(4), laboratory_.apparatus().target);
  const Candidates candidates = neighbours.ranked(variants, variants.candidates(figures_));
  EXPECT_EQ(candidates.ranked[0].choice.algorithm, "a99");
  EXPECT_EQ(candidates.ranked.size(), 101U) << "none is lost";
  EXPECT_EQ(candidates.ranked.back().choice.algorithm, "trusted");
}

TEST_F(NeighboursTest, LinesFromOutsideAreNoRequests) {
  for (const std::string line :
       {"softmax_forward x=f32:99999999999x99999999999:nc y=f32:5x1000:nc axis=1 mode=accurate",
        "softmax_forward x=f32:-1x1000:nc y=f32:5x1000:nc axis=1 mode=accurate"}) {
    cache::Record r = record(toy_request(1), "second", 1e-6);
    r.request = line;
    cache::Record second = r;
    second.algorithm = "third";
    database_.insert(std::vector{r, second});
  }
  winners_.load(database_);
  EXPECT_EQ(ranked(toy_request(4)).basis, "estimate");
}

// A device whose line says how fast it is at the best, and times below that.
class ImpossibleTimes : public NeighboursTest {
 protected:
  ImpossibleTimes() {
    card_.id =
        "name=\"Fake\" cc=9.0 sms=132 memory=80GiB bus=5120 mig=none clock=1980MHz memory_clock=2619MHz emulated=yes";
    const Request large = Request::parse("softmax_forward x=f32:1000000x1000");
    records_ = {record(large, "second", 1e-6), record(large, "third", 2e-6)};
    for (cache::Record& r : records_) r.device = card_.id;
  }

  std::string basis(const cache::Winners& winners) const {
    Neighbours neighbours(winners, catalogue_, figures_);
    Variants variants = catalogue_.on(toy_request(900000), laboratory_.apparatus().target);
    return neighbours.ranked(variants, variants.candidates(figures_)).basis;
  }

  cache::DeviceEntry card_ = device_;
  std::vector<cache::Record> records_;
};

TEST_F(ImpossibleTimes, OfPacksTeachNothing) {
  cache::Winners winners(card_);
  winners.load_pack_text(cache::print_pack(cache::make_pack({card_}, records_), "1"), "a pack");
  EXPECT_EQ(basis(winners), "estimate");
}

TEST_F(NeighboursTest, FactorsAreThoseOfTheMethod) {
  const Catalogue catalogue =
      tuner::fakes::toy_catalogue({toy("slow", {1, 2, 4}, 1e-3), toy("fast", {1, 2, 4}, 1.05e-3)});
  std::vector<cache::Record> records;
  for (const int tile : {1, 2}) {
    for (const auto& [name, seconds] : {std::pair("slow", 16e-3), std::pair("fast", 4.2e-3)}) {
      records.push_back(record(toy_request(8), name, seconds * tile));
      records.back().config = fmt::format("TILE={}", tile);
    }
  }
  database_.insert(records);
  winners_.load(database_);
  Neighbours neighbours(winners_, catalogue, figures_);
  Variants variants = catalogue.on(toy_request(4), laboratory_.apparatus().target);
  const Candidates candidates = neighbours.ranked(variants, variants.candidates(figures_));
  std::map<std::string, double> seconds;
  for (const Candidate& one : candidates.ranked) {
    seconds[one.choice.algorithm + " " + one.choice.config.print()] = one.estimate.seconds;
  }
  const double part = 0.4 / 0.9;  // weights: 1 / (0.5 + 2) of the neighbour, 0.5 of the estimates
  EXPECT_NEAR(seconds["slow TILE=1"], 1e-3 * std::pow(16, part), 1e-9);
  EXPECT_NEAR(seconds["slow TILE=4"], 4e-3 * std::pow(16, part), 1e-9) << "the mean of its algorithm";
  EXPECT_NEAR(seconds["fast TILE=4"], 4.2e-3 * std::pow(4, part), 1e-9);
  EXPECT_NEAR(seconds["trusted TILE=1"], 100 * std::pow(8, part), 1e-4) << "the level alone";
}

TEST_F(NeighboursTest, WhatIsLearntOftenStaysInMemory) {
  winners_.load(database_);
  tune(8, 1e-3, 6e-4, 1.2e-3);
  for (size_t i = 0; i <= Neighbours::most_learnt + 1; ++i) {
    EXPECT_EQ(order(4)[0], "second");
    neighbours_.learn(toy_request(8).key());
  }
  EXPECT_EQ(order(4)[0], "second");
  tune(8, 1e-3, 1.1e-3, 6e-4);
  EXPECT_EQ(order(4)[0], "second") << "nobody said learn()";
}

TEST_F(NeighboursTest, OfTooManyLessonsTheFirstGo) {
  tune(8, 1e-3, 6e-4, 1.2e-3);
  for (int rows = 10000; rows < 10000 + 1100; ++rows) tune(rows, 1e-3, 6e-4, 1.2e-3);
  winners_.load(database_);
  EXPECT_EQ(order(4)[0], "second");
  for (int rows = 10002; rows < 11100; rows += 2) (void)ranked(toy_request(rows));
  tune(8, 1e-3, 1.1e-3, 6e-4);
  EXPECT_EQ(order(4)[0], "third") << "read anew";
}

TEST_F(NeighboursTest, BeyondTheMostOnlyWhatIsTunedMeanwhileIsKnown) {
  std::vector<cache::Record> records;
  for (size_t i = 0; i < Neighbours::most_indexed; ++i) {
    records.push_back(record(toy_request(8), "first", 1e-3));
    records.back().request = fmt::format("a {}", i);  // in a pack before the others
  }
  for (const auto& [name, seconds] : {std::pair("first", 1e-3), std::pair("second", 6e-4)}) {
    records.push_back(record(toy_request(8), name, seconds));
  }
  winners_.load_pack_text(cache::print_pack(cache::make_pack({device_}, records), "1"), "a pack");
  EXPECT_EQ(ranked(toy_request(4)).basis, "estimate");
  neighbours_.learn(toy_request(8).key());
  EXPECT_EQ(ranked(toy_request(4)).basis, "from 1 neighbour, nearest x=8x1000");
}

TEST_F(NeighboursTest, TwoUnknownVariantsTeachNothing) {
  database_.insert(
      std::vector{record(toy_request(6), "of another version", 1e-6), record(toy_request(6), "another", 1e-3)});
  winners_.load(database_);
  EXPECT_EQ(ranked(toy_request(4)).basis, "estimate");
}

TEST_F(ImpossibleTimes, OfTheOwnDatabaseAreNotDoubted) {
  database_.put_device(card_);
  database_.insert(records_);
  cache::Winners winners(card_);
  winners.load(database_);
  EXPECT_EQ(basis(winners), "from 1 neighbour, nearest x=1000000x1000");
}

// The pack's bad line is announced between the reading of the times and the keeping of what they teach.
TEST_F(NeighboursTest, WhatIsTunedWhileItIsReadIsReadAgain) {
  std::string text =
      cache::print_pack(cache::make_pack({device_}, std::vector{record(toy_request(8), "first", 1e-3)}), "1");
  text.replace(text.find("\tmodelled") + 1, 8, "guessed!");
  Neighbours* told = nullptr;
  cache::Winners winners(device_, {}, [&](const std::string&) {
    tune(8, 1e-3, 1.1e-3, 6e-4);
    if (told) told->learn(toy_request(8).key());
  });
  tune(8, 1e-3, 6e-4, 1.2e-3);
  winners.load(database_);
  winners.load_pack_text(text, "a pack");
  Neighbours neighbours(winners, catalogue_, figures_);
  told = &neighbours;
  const auto first = [&] {
    Variants variants = catalogue_.on(toy_request(4), laboratory_.apparatus().target);
    return neighbours.ranked(variants, variants.candidates(figures_)).ranked.at(0).choice.algorithm;
  };
  EXPECT_EQ(first(), "second") << "what was read before";
  EXPECT_EQ(first(), "third");
}

// The pack's change is announced while the index is made.
TEST_F(NeighboursTest, WhatIsTunedWhileTheIndexIsMadeIsInIt) {
  const std::string path = testing::TempDir() + "probe.pack";
  {
    std::ofstream(path) << cache::print_pack(
        cache::make_pack({device_}, std::vector{record(toy_request(9), "first", 1e-3)}), "1");
  }
  Neighbours* told = nullptr;
  cache::Winners winners(device_, {}, [&](const std::string&) {
    if (told) told->learn(toy_request(8).key());
  });
  winners.load(database_);
  winners.load_pack(path);
  { std::ofstream(path) << "changed"; }
  Neighbours neighbours(winners, catalogue_, figures_);
  told = &neighbours;
  const auto basis = [&](const Request& request) {
    Variants variants = catalogue_.on(request, laboratory_.apparatus().target);
    return neighbours.ranked(variants, variants.candidates(figures_)).basis;
  };
  EXPECT_EQ(basis(Request::parse("softmax_forward x=f16:4x1000")), "estimate");
  tune(8, 1e-3, 6e-4, 1.2e-3);
  EXPECT_EQ(basis(toy_request(4)), "from 1 neighbour, nearest x=8x1000");
}

}  // namespace
}  // namespace kiln::neighbours_test
