// Choosing for a fleet, against trying every choice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

#include "fleet/choice.h"

namespace kiln::cli::fleet_choice_test {
namespace {

using testing::ElementsAre;

struct Instance {
  std::vector<LayerSeconds> layers;
  size_t cards = 0;
};

// Up to 12 variants in all. Some have no time on some card, but every layer has one on every card.
Instance random_instance(std::mt19937_64& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::uniform_real_distribution<double> factor(1, 3);
  Instance instance;
  instance.cards = 1 + below(4);
  const size_t layers = 1 + below(4);
  for (size_t i = 0; i < layers; ++i) {
    const double size = std::pow(10, factor(random));
    LayerSeconds layer(1 + below(3), std::vector<double>(instance.cards));
    for (std::vector<double>& variant : layer) {
      for (double& seconds : variant) seconds = below(5) == 0 ? no_time : size * factor(random);
    }
    for (size_t card = 0; card < instance.cards; ++card) {
      double& first = layer[below(layer.size())][card];
      if (first == no_time) first = size * factor(random);
    }
    instance.layers.push_back(layer);
  }
  return instance;
}

std::vector<double> losses_of(const Instance& instance, const std::vector<Pick>& picks) {
  std::vector<double> losses;
  const std::vector<double> best = best_seconds(instance.layers, instance.cards);
  for (size_t card = 0; card < instance.cards; ++card) {
    double sum = 0;
    for (size_t layer = 0; layer < instance.layers.size(); ++layer) {
      double fastest = no_time;
      for (const Pick& pick : picks) {
        if (pick.layer == layer) fastest = std::min(fastest, instance.layers[layer][pick.variant][card]);
      }
      sum += fastest;
    }
    losses.push_back(sum / best[card] - 1);
  }
  return losses;
}

bool is_within(const std::vector<double>& losses, double most) {
  return std::all_of(losses.begin(), losses.end(), [&](double loss) { return loss <= most + 1e-8; });
}

// How many variants are enough, by trying every set.
size_t fewest_by_trying(const Instance& instance, double most_loss) {
  std::vector<Pick> all;
  for (size_t layer = 0; layer < instance.layers.size(); ++layer) {
    for (size_t variant = 0; variant < instance.layers[layer].size(); ++variant) all.push_back({layer, variant});
  }
  size_t fewest = all.size();
  for (unsigned set = 0; set < 1U << all.size(); ++set) {
    std::vector<Pick> picks;
    for (size_t i = 0; i < all.size(); ++i) {
      if ((set >> i & 1U) != 0) picks.push_back(all[i]);
    }
    if (picks.size() < fewest && is_within(losses_of(instance, picks), most_loss)) fewest = picks.size();
  }
  return fewest;
}

TEST(FleetChoice, KeepsItsPromisesAgainstTryingEverySet) {
  std::mt19937_64 random(7);
  size_t optimal = 0, tight = 0;
  constexpr size_t instances = 400;
  for (size_t i = 0; i < instances; ++i) {
    const Instance instance = random_instance(random);
    const double most_loss = std::array{0.0, 0.02, 0.1, 0.4}[i % 4];
    const FleetChoice choice = choose_variants(instance.layers, instance.cards, most_loss);
    const size_t fewest = fewest_by_trying(instance, most_loss);
    ASSERT_TRUE(choice.within) << i;
    ASSERT_TRUE(is_within(choice.loss, most_loss)) << i;
    const std::vector<double> losses = losses_of(instance, choice.picks);
    for (size_t card = 0; card < instance.cards; ++card) ASSERT_NEAR(choice.loss[card], losses[card], 1e-8) << i;
    ASSERT_LE(choice.least, fewest) << i;
    ASSERT_GE(choice.picks.size(), fewest) << i;
    optimal += choice.picks.size() == fewest ? 1 : 0;
    tight += choice.least == fewest ? 1 : 0;
  }
  RecordProperty("optimal", static_cast<int>(optimal));
  RecordProperty("tight", static_cast<int>(tight));
  EXPECT_GE(optimal, instances * 9 / 10) << "greedy is as good as the best on nearly all of these";
  EXPECT_GE(tight, instances / 2) << "and its lower bound says so on most";
}

TEST(FleetChoice, TakesOneVariantForAllCardsWhereThatCostsLittle) {
  // The third is nearly the best on either.
  const std::vector<LayerSeconds> layers = {{{1, 9}, {9, 1}, {1.04, 1.04}}};
  const FleetChoice loose = choose_variants(layers, 2, 0.05);
  EXPECT_THAT(loose.picks, ElementsAre(Pick{0, 2}));
  EXPECT_NEAR(loose.loss[0], 0.04, 1e-9);
  EXPECT_EQ(loose.least, 1u);
  const FleetChoice strict = choose_variants(layers, 2, 0.01);
  EXPECT_THAT(strict.picks, ElementsAre(Pick{0, 0}, Pick{0, 1}));
  EXPECT_TRUE(strict.within);
}

TEST(FleetChoice, SpendsTheLossWhereLayersAreSmall) {
  // The second layer is a hundredth of the time: it may be twice as slow.
  const std::vector<LayerSeconds> layers = {{{1, 3}, {3, 1}}, {{0.01, 0.02}, {0.02, 0.01}}};
  const FleetChoice choice = choose_variants(layers, 2, 0.05);
  EXPECT_EQ(choice.picks.size(), 3u);
  EXPECT_TRUE(choice.within);
}

TEST(FleetChoice, LosesNoMoreThanItMustForAsManyVariants) {
  // Either is within the loss, and the first stands first.
  const FleetChoice choice = choose_variants({{{1.03, 1.03}, {1, 1.01}}}, 2, 0.05);
  EXPECT_THAT(choice.picks, ElementsAre(Pick{0, 1}));
  EXPECT_NEAR(choice.loss[1], 0, 1e-9);
}

// The first variant saves three cards more than they need, the second is enough for all four.
TEST(FleetChoice, WhatACardSavesBeyondItsNeedCountsForNothing) {
  const FleetChoice choice = choose_variants({{{1, 1, 1, 3}, {1.4, 1.4, 1.4, 1}}}, 4, 0.5, 1);
  EXPECT_THAT(choice.picks, ElementsAre(Pick{0, 1}));
  EXPECT_TRUE(choice.within);
  EXPECT_EQ(choice.least, 1u);
}

TEST(FleetChoice, StopsAtTheMostVariantsAndSaysWhatThatCosts) {
  const std::vector<LayerSeconds> layers = {{{1, 2}, {2, 1}}};
  const FleetChoice choice = choose_variants(layers, 2, 0.05, 1);
  EXPECT_EQ(choice.picks.size(), 1u);
  EXPECT_FALSE(choice.within);
  EXPECT_NEAR(std::max(choice.loss[0], choice.loss[1]), 1, 1e-9);
  EXPECT_EQ(choice.least, 2u);
  const std::vector<LayerSeconds> two = {{{1, 2}}, {{3, 4}}};
  EXPECT_EQ(choose_variants(two, 2, 0.05, 1).loss[0], no_time) << "a layer has nothing at all";
}

TEST(FleetChoice, AVariantThatIsVerySlowIsStillOne) {
  const FleetChoice choice = choose_variants({{{1, 100}, {100, 1}}}, 2, 0.05, 1);
  ASSERT_EQ(choice.picks.size(), 1u);
  EXPECT_NEAR(std::max(choice.loss[0], choice.loss[1]), 99, 1e-9) << "slow, and not without a variant";
}

TEST(FleetChoice, ALayerThatACardNeverTimedIsNotInItsSum) {
  const std::vector<LayerSeconds> layers = {{{1, no_time}, {5, no_time}}, {{2, 3}}};
  const FleetChoice choice = choose_variants(layers, 2, 0);
  EXPECT_THAT(choice.picks, ElementsAre(Pick{0, 0}, Pick{1, 0}));
  EXPECT_TRUE(choice.within);
  EXPECT_THAT(choice.loss, ElementsAre(0, 0));
  EXPECT_THAT(best_seconds(layers, 2), ElementsAre(3, 3));
  EXPECT_TRUE(choose_variants({}, 2, 0).within);
}

TEST(FleetChoice, TheSharedVariantIsTheOneOfLeastLossOnAll) {
  EXPECT_EQ(shared_variant({{1, 9}, {9, 1}, {1.5, 1.5}}), 2u);
  EXPECT_EQ(shared_variant({{1, no_time}, {no_time, 1}}), 2u) << "none has a time on both";
  EXPECT_EQ(shared_variant({{2, no_time}, {1, no_time}}), 1u) << "a card without any time of it has no say";
}

}  // namespace
}  // namespace kiln::cli::fleet_choice_test
