#include "kiln/tuner/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <vector>

#include "kiln/base/error.h"

namespace kiln::tuner::search_test {
namespace {

Choice choice(const std::string& algorithm, int64_t tile, int64_t rows = 1) {
  return {algorithm, Config({{"ROWS", rows}, {"TILE", tile}})};
}

/// `count` candidates of each algorithm, ranked: TILE=1 of all first.
std::vector<Candidate> ranked(const std::vector<std::string>& algorithms, int count) {
  std::vector<Candidate> candidates;
  for (int i = 1; i <= count; ++i) {
    for (const std::string& algorithm : algorithms) {
      candidates.push_back({choice(algorithm, i), {.seconds = 1e-3 * i}});
    }
  }
  return candidates;
}

std::vector<Choice> all_of(Search& search, const std::function<double(const Choice&)>& seconds = {}) {
  std::vector<Choice> choices;
  while (const auto next = search.next()) {
    choices.push_back(*next);
    Trial trial;
    trial.choice = *next;
    trial.outcome = Outcome::timed;
    trial.seconds = seconds ? seconds(*next) : 1;
    search.observe(trial);
  }
  return choices;
}

size_t distinct(const std::vector<Choice>& choices) {
  std::set<std::string> names;
  for (const Choice& one : choices) names.insert(one.algorithm + one.config.print());
  return names.size();
}

class EverySearch : public testing::TestWithParam<SearchKind> {};

TEST_P(EverySearch, StartsWithTheDefaultAndRepeatsNothing) {
  const auto candidates = ranked({"a", "b"}, 20);
  const Choice first = choice("b", 7);
  const auto choices = all_of(*make_search({.kind = GetParam(), .candidates = 10}, candidates, first));
  ASSERT_FALSE(choices.empty());
  EXPECT_EQ(choices.front(), first);
  EXPECT_EQ(distinct(choices), choices.size());
  EXPECT_EQ(choices.size(), GetParam() == SearchKind::exhaustive ? 40U : 10U);
}

TEST_P(EverySearch, GivesEqualChoicesForEqualSeeds) {
  const auto candidates = ranked({"a", "b"}, 20);
  const SearchOptions options{.kind = GetParam(), .candidates = 12, .seed = 5};
  EXPECT_EQ(all_of(*make_search(options, candidates, choice("a", 1))),
            all_of(*make_search(options, candidates, choice("a", 1))));
}

TEST_P(EverySearch, EndsWhenThereAreFewerCandidatesThanAskedFor) {
  const auto choices = all_of(*make_search({.kind = GetParam(), .candidates = 100}, ranked({"a"}, 3), choice("a", 1)));
  EXPECT_EQ(choices.size(), 3U);
}

TEST_P(EverySearch, PlansAsManyAsItGives) {
  const auto search = make_search({.kind = GetParam(), .candidates = 9}, ranked({"a", "b"}, 20), choice("a", 1));
  EXPECT_EQ(search->planned(), all_of(*search).size());
}

INSTANTIATE_TEST_SUITE_P(Kinds, EverySearch,
                         testing::Values(SearchKind::model, SearchKind::random, SearchKind::exhaustive,
                                         SearchKind::local),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST(RandomSearch, VisitsEveryConfigOnce) {
  const auto candidates = ranked({"a", "b", "c"}, 30);
  const auto choices = all_of(*make_search({.kind = SearchKind::random, .candidates = 90}, candidates, choice("a", 1)));
  EXPECT_EQ(choices.size(), 90U);
  EXPECT_EQ(distinct(choices), 90U);
}

TEST(RandomSearch, DependsOnItsSeed) {
  const auto candidates = ranked({"a"}, 100);
  EXPECT_NE(all_of(*make_search({.kind = SearchKind::random, .seed = 1}, candidates, choice("a", 1))),
            all_of(*make_search({.kind = SearchKind::random, .seed = 2}, candidates, choice("a", 1))));
}

TEST(ExhaustiveSearch, GoesByThePredictions) {
  const auto choices = all_of(*make_search({.kind = SearchKind::exhaustive}, ranked({"a"}, 4), choice("a", 1)));
  EXPECT_THAT(choices, testing::ElementsAre(choice("a", 1), choice("a", 2), choice("a", 3), choice("a", 4)));
}

TEST(ModelSearch, TriesAnAlgorithmThatTheModelDislikes) {
  std::vector<Candidate> candidates;
  for (int i = 1; i <= 50; ++i) candidates.push_back({choice("favourite", i), {.seconds = 1e-3 + 1e-6 * i}});
  for (int i = 1; i <= 50; ++i) candidates.push_back({choice("disliked", i), {.seconds = 3e-3 + 1e-6 * i}});
  const auto choices =
      all_of(*make_search({.kind = SearchKind::model, .candidates = 8}, candidates, choice("favourite", 1)));
  const auto disliked =
      std::count_if(choices.begin(), choices.end(), [](const Choice& one) { return one.algorithm == "disliked"; });
  EXPECT_GE(disliked, 3);
  EXPECT_LE(disliked, 4);
}

TEST(ModelSearch, TakesTurnsBetweenTheBestAndTheBestOfTheRarest) {
  std::vector<Candidate> candidates;
  for (const auto& [algorithm, seconds] : {std::pair("a", 1e-3), {"b", 2e-3}, {"c", 3e-3}}) {
    for (int i = 1; i <= 9; ++i) candidates.push_back({choice(algorithm, i), {.seconds = seconds + 1e-5 * i}});
  }
  const auto choices = all_of(*make_search({.kind = SearchKind::model, .candidates = 6}, candidates, choice("a", 1)));
  EXPECT_THAT(choices, testing::ElementsAre(choice("a", 1), choice("b", 1), choice("a", 2), choice("c", 1),
                                            choice("a", 3), choice("b", 2)));
}

TEST(ModelSearch, TriesOneOfEachPredictionBeforeTwoOfOne) {
  std::vector<Candidate> candidates;
  for (int tile = 1; tile <= 5; ++tile) {
    for (int rows = 1; rows <= 10; ++rows) candidates.push_back({choice("a", tile, rows), {.seconds = 1e-3 * tile}});
  }
  const auto choices = all_of(*make_search({.kind = SearchKind::model, .candidates = 6}, candidates, choice("a", 1)));
  EXPECT_THAT(choices, testing::ElementsAre(choice("a", 1), choice("a", 2), choice("a", 3), choice("a", 4),
                                            choice("a", 5), choice("a", 1, 2)));
}

// Eight algorithms are better than the only one on f32 lanes, whose prediction is 16 times the best.
TEST(ModelSearch, TriesOneOfEachStructure) {
  std::vector<Candidate> candidates;
  const std::vector<std::string> better = {"a_tensor", "b_tensor", "c_tensor", "d_tensor", "e_tensor", "f_tensor"};
  for (size_t i = 0; i < better.size(); ++i) {
    for (int tile = 1; tile <= 9; ++tile)
      candidates.push_back({choice(better[i], tile), {.seconds = 1e-3 + 1e-5 * static_cast<double>(i) + 1e-6 * tile}});
  }
  for (const auto& [algorithm, seconds] : {std::pair("a_tensor_staged", 2e-3),
                                           {"b_tensor_staged", 3e-3},
                                           {"a_tensor_splitk", 4e-3},
                                           {"a_direct", 16e-3},
                                           {"b_direct", 17e-3}}) {
    candidates.push_back({choice(algorithm, 1), {.seconds = seconds}});
  }
  const auto choices =
      all_of(*make_search({.kind = SearchKind::model, .candidates = 16}, candidates, choice("a_tensor", 1)));
  const auto count = [&](const std::string& algorithm) {
    return std::count_if(choices.begin(), choices.end(), [&](const Choice& one) { return one.algorithm == algorithm; });
  };
  for (const char* each : {"a_tensor_staged", "a_tensor_splitk", "a_direct"}) EXPECT_EQ(count(each), 1) << each;
  EXPECT_EQ(count("b_direct"), 0) << "hopeless, and not the best of its structure";
  EXPECT_EQ(choices.at(1), choice("a_tensor_staged", 1)) << "before another algorithm of a structure that had its turn";
  EXPECT_EQ(choices.size(), 16u);
}

// On a layer that suits tensor cores, kernels on f32 lanes take five times as long: one of them is enough.
TEST(ModelSearch, TriesOneOfAStructureThatIsUnlikely) {
  std::vector<Candidate> candidates;
  for (const auto& [algorithm, seconds] : {std::pair("conv_tensor", 1e-3),
                                           {"conv_tensor_splitk", 3e-3},
                                           {"conv_direct", 5e-3},
                                           {"conv_implicit_gemm", 6e-3}}) {
    for (int tile = 1; tile <= 20; ++tile)
      candidates.push_back({choice(algorithm, tile), {.seconds = seconds + 1e-5 * tile}});
  }
  const auto choices =
      all_of(*make_search({.kind = SearchKind::model, .candidates = 16}, candidates, choice("conv_tensor", 1)));
  const auto count = [&](const std::string& algorithm) {
    return std::count_if(choices.begin(), choices.end(), [&](const Choice& one) { return one.algorithm == algorithm; });
  };
  EXPECT_EQ(count("conv_direct"), 1);
  EXPECT_EQ(count("conv_implicit_gemm"), 0);
  EXPECT_GE(count("conv_tensor_splitk"), 6) << "three times as long is no reason";
  EXPECT_EQ(choices.size(), 16u);
}

TEST(ModelSearch, SparesAnAlgorithmThatIsHopeless) {
  std::vector<Candidate> candidates;
  for (int i = 1; i <= 50; ++i) candidates.push_back({choice("good", i), {.seconds = 1e-3 + 1e-6 * i}});
  candidates.push_back({choice("hopeless", 1), {.seconds = 1}});
  const auto choices =
      all_of(*make_search({.kind = SearchKind::model, .candidates = 8}, candidates, choice("good", 1)));
  EXPECT_THAT(choices, testing::Each(testing::Field(&Choice::algorithm, "good")));
}

// Ten times the best prediction is the last that is tried, and a thousandth more is no other prediction.
TEST(ModelSearch, TellsPredictionsApartAtItsLimits) {
  std::vector<Candidate> candidates;
  int tile = 0;
  for (const double seconds : {1.0, 1 + 1e-3, 1.0011, 10.0, 10.001}) {
    candidates.push_back({choice("a", ++tile), {.seconds = seconds}});
  }
  const auto choices = all_of(*make_search({.kind = SearchKind::model, .candidates = 9}, candidates, choice("a", 1)));
  EXPECT_THAT(choices, testing::ElementsAre(choice("a", 1), choice("a", 3), choice("a", 4), choice("a", 2)));
}

// Choices that a search gives if the trials of `fails` end without a time.
std::vector<Choice> all_of_failing(Search& search, const std::function<bool(const Choice&)>& fails, bool cost = true) {
  std::vector<Choice> choices;
  while (const auto next = search.next()) {
    choices.push_back(*next);
    Trial trial;
    trial.choice = *next;
    trial.outcome = fails(*next) ? Outcome::wrong_result : Outcome::timed;
    trial.seconds = 1;
    search.observe(trial, cost);
  }
  return choices;
}

TEST_P(EverySearch, ReplacesWhatEndsWithoutATime) {
  const auto search = make_search({.kind = GetParam(), .candidates = 6}, ranked({"a", "b"}, 20), choice("a", 1));
  size_t failures = 0;
  const auto choices = all_of_failing(*search, [&](const Choice&) { return ++failures <= 4; });
  EXPECT_EQ(choices.size(), GetParam() == SearchKind::exhaustive ? 40U : 6U + 4U);
  EXPECT_EQ(distinct(choices), choices.size());
}

TEST_P(EverySearch, TriesTwiceAsManyAtMostWhenAllFail) {
  const auto all_fail = [](const Choice&) { return true; };
  const SearchOptions options{.kind = GetParam(), .candidates = 6};
  const auto candidates = ranked({"a", "b"}, 20);
  EXPECT_EQ(all_of_failing(*make_search(options, candidates, choice("a", 1)), all_fail).size(),
            GetParam() == SearchKind::exhaustive ? 40U : 12U);
  const bool sees_all = GetParam() == SearchKind::exhaustive || GetParam() == SearchKind::random;
  EXPECT_EQ(all_of_failing(*make_search(options, candidates, choice("a", 1)), all_fail, false).size(),
            sees_all ? 40U : 20U)  // the others leave out what is predicted to take ten times as long
      << "what is known to fail costs nothing: a search that is run again goes on behind it";
}

TEST_P(EverySearch, GivesNoMoreOfWhatWasDropped) {
  const auto search = make_search({.kind = GetParam(), .candidates = 10}, ranked({"a", "b"}, 20), choice("a", 1));
  EXPECT_EQ(search->next(), choice("a", 1));
  Trial trial;
  trial.choice = choice("a", 1);
  trial.outcome = Outcome::timed_out;
  search->observe(trial);
  search->drop("a");
  EXPECT_THAT(all_of(*search),
              testing::AllOf(testing::Not(testing::IsEmpty()), testing::Each(testing::Field(&Choice::algorithm, "b"))));
}

// `count` points of a user template, of which its author says that they take `seconds`.
std::vector<Candidate> claimed(int count, double seconds) {
  std::vector<Candidate> candidates;
  for (int i = 1; i <= count; ++i) candidates.push_back({choice("mine", i), {.seconds = seconds}, true});
  return candidates;
}

TEST_P(EverySearch, TriesUserTemplatesWithoutTakingAnythingFromTheOthers) {
  const SearchOptions options{.kind = GetParam(), .candidates = 6, .seed = 3};
  const Choice first = choice("a", 1);
  const auto alone = all_of(*make_search(options, ranked({"a", "b"}, 20), first));
  for (const double seconds : {7e-9, 5.0}) {
    std::vector<Candidate> candidates = claimed(4, seconds);
    const auto others = ranked({"a", "b"}, 20);
    candidates.insert(seconds < 1 ? candidates.end() : candidates.begin(), others.begin(), others.end());
    const auto search = make_search(options, candidates, first);
    const size_t planned = search->planned();
    const auto choices = all_of(*search);
    EXPECT_EQ(choices.size(), planned);
    std::vector<Choice> rest;
    for (const Choice& one : choices) {
      if (one.algorithm != "mine") rest.push_back(one);
    }
    EXPECT_EQ(rest, alone) << seconds;
    EXPECT_EQ(choices.size(), alone.size() + 4) << seconds;
    EXPECT_EQ(choices.front(), first);
    EXPECT_EQ(choices[1].algorithm, "mine") << "they have their turn early";
  }
}

TEST(ModelSearch, BelievesNoUserTemplateThatSpeaksAgainstAnother) {
  std::vector<Candidate> candidates = claimed(2, 1e-9);
  candidates.push_back({choice("modest", 1), {.seconds = 1}, true});
  EXPECT_THAT(all_of(*make_search({.candidates = 8}, candidates, candidates.front().choice)), testing::SizeIs(3));
}

TEST(LocalSearch, TriesTheBetterPredictionOfTwoNeighbours) {
  std::vector<Candidate> candidates;
  for (const int tile : {5, 6, 4, 7, 3}) candidates.push_back({choice("a", tile), {.seconds = 1e-3}});
  const auto truth = [](const Choice& one) { return one == choice("a", 5) ? 1.0 : 2.0; };
  // 5 comes first and is best; 6 and 4 are one step away, and 6 is ranked before 4.
  const auto choices =
      all_of(*make_search({.kind = SearchKind::local, .candidates = 2}, candidates, choice("a", 5)), truth);
  EXPECT_THAT(choices, testing::ElementsAre(choice("a", 5), choice("a", 6)));
}

// A step is one value of a parameter that occurs, however far that is; another algorithm is farther than any.
TEST(LocalSearch, CountsStepsByTheValuesThatOccur) {
  std::vector<Candidate> candidates;
  for (const auto& [algorithm, tile, rows] :
       {std::tuple("a", 2, 2), {"b", 2, 2}, {"a", 64, 1}, {"a", 3, 1}, {"a", 64, 2}}) {
    candidates.push_back({choice(algorithm, tile, rows), {.seconds = 1}});
  }
  const auto truth = [](const Choice& one) { return one == choice("a", 2, 2) ? 1.0 : 2.0; };
  const auto choices =
      all_of(*make_search({.kind = SearchKind::local, .candidates = 5}, candidates, choice("a", 2, 2)), truth);
  EXPECT_THAT(choices, testing::ElementsAre(choice("a", 2, 2), choice("b", 2, 2), choice("a", 64, 1), choice("a", 3, 1),
                                            choice("a", 64, 2)));
}

TEST(LocalSearch, ClimbsFromTheBestMeasuredOne) {
  // The model ranks TILE upwards; in truth TILE=20 with ROWS=3 is the best, and time falls with the distance from it.
  std::vector<Candidate> candidates;
  for (int tile = 1; tile <= 30; ++tile) {
    for (int rows = 1; rows <= 4; ++rows) candidates.push_back({choice("a", tile, rows), {.seconds = 1e-3 * tile}});
  }
  const auto truth = [](const Choice& one) {
    return 1.0 + std::abs(static_cast<double>(*one.config.find("TILE")) - 20) +
           std::abs(static_cast<double>(*one.config.find("ROWS")) - 3);
  };
  const auto best_of = [&](SearchKind kind) {
    double best = 1e9;
    for (const Choice& one :
         all_of(*make_search({.kind = kind, .candidates = 48}, candidates, choice("a", 1)), truth)) {
      best = std::min(best, truth(one));
    }
    return best;
  };
  EXPECT_LT(best_of(SearchKind::local), best_of(SearchKind::model));
}

TEST(LocalSearch, WaitsForItsTrials) {
  const auto search = make_search({.kind = SearchKind::local, .candidates = 6}, ranked({"a"}, 20), choice("a", 1));
  std::vector<Choice> first;
  while (const auto next = search->next()) first.push_back(*next);
  EXPECT_EQ(first.size(), 3U);
  for (const Choice& one : first) {
    Trial trial;
    trial.choice = one;
    trial.outcome = Outcome::timed;
    trial.seconds = 1;
    search->observe(trial);
  }
  EXPECT_TRUE(search->next());
}

TEST(SearchKinds, ParseByNameOnly) {
  EXPECT_EQ(parse_search_kind("local"), SearchKind::local);
  EXPECT_THROW(parse_search_kind("genetic"), Error);
}

}  // namespace
}  // namespace kiln::tuner::search_test
