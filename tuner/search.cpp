#include "kiln/tuner/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kiln/base/error.h"

namespace kiln::tuner {
namespace {

constexpr std::array<std::pair<SearchKind, std::string_view>, 4> kinds{{{SearchKind::model, "model"},
                                                                        {SearchKind::random, "random"},
                                                                        {SearchKind::exhaustive, "exhaustive"},
                                                                        {SearchKind::local, "local"}}};

// Candidates whose prediction is this many times the best one are not worth a trial: no model is that wrong.
constexpr double hopeless = 10;

using Name = std::pair<std::string, std::string>;  // algorithm, config text

Name name_of(const Choice& choice) {
  return {choice.algorithm, choice.config.print()};
}

// A fixed list, known from the start.
class ListSearch : public Search {
 public:
  explicit ListSearch(std::vector<Choice> choices) : choices_(std::move(choices)) {}

  std::optional<Choice> next() override {
    if (given_ == choices_.size()) return std::nullopt;
    return choices_[given_++];
  }
  void observe(const Trial&) override {}
  size_t planned() const override { return choices_.size(); }

 private:
  std::vector<Choice> choices_;
  size_t given_ = 0;
};

// `first`, then the rest without it, cut to `limit`.
std::vector<Choice> with_first(const Choice& first, const std::vector<Choice>& rest, size_t limit) {
  std::vector<Choice> list{first};
  for (const Choice& choice : rest) {
    if (list.size() >= limit) break;
    if (!(choice == first)) list.push_back(choice);
  }
  return list;
}

std::vector<Choice> all(const std::vector<Candidate>& ranked) {
  std::vector<Choice> choices;
  for (const Candidate& candidate : ranked) choices.push_back(candidate.choice);
  return choices;
}

// Candidates worth a trial, best predictions first, but of those that the model cannot tell apart only the first one;
// the others of each such group come after all groups had their turn.
std::vector<Choice> by_prediction(const std::vector<Candidate>& ranked) {
  constexpr double same = 1e-3;
  std::vector<Choice> firsts, others;
  std::map<std::string, double> last;  // prediction of the last group of each algorithm
  for (const Candidate& candidate : ranked) {
    const double seconds = candidate.estimate.seconds;
    if (seconds > hopeless * ranked.front().estimate.seconds) break;
    const auto [group, is_new] = last.try_emplace(candidate.choice.algorithm, seconds);
    const bool is_first = is_new || seconds > group->second * (1 + same);
    if (is_first) group->second = seconds;
    (is_first ? firsts : others).push_back(candidate.choice);
  }
  firsts.insert(firsts.end(), others.begin(), others.end());
  return firsts;
}

// The order in which the model's favourites are tried: by turns the best candidate left of all, and the best one left
// of the algorithm that has had the fewest so far. So a model that is wrong about one algorithm does not hide another.
std::vector<Choice> diverse(const std::vector<Candidate>& ranked, size_t limit) {
  std::vector<Choice> left = by_prediction(ranked);
  std::vector<std::pair<std::string, size_t>> had;  // algorithms in order of rank, with how often each had a turn
  for (const Choice& choice : left) {
    const auto same = [&](const auto& entry) { return entry.first == choice.algorithm; };
    if (std::none_of(had.begin(), had.end(), same)) had.emplace_back(choice.algorithm, 0);
  }
  std::vector<Choice> order;
  const auto take = [&](std::vector<Choice>::iterator chosen) {
    for (auto& [name, count] : had) count += name == chosen->algorithm ? 1 : 0;
    order.push_back(std::move(*chosen));
    left.erase(chosen);
  };
  while (order.size() < limit && !left.empty()) {
    take(left.begin());
    if (order.size() >= limit || had.size() < 2) continue;
    const auto rarest =
        std::min_element(had.begin(), had.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto its_best =
        std::find_if(left.begin(), left.end(), [&](const Choice& one) { return one.algorithm == rarest->first; });
    if (its_best == left.end()) {
      had.erase(rarest);  // all of it is taken
    } else {
      take(its_best);
    }
  }
  return order;
}

std::vector<Choice> shuffled(std::vector<Choice> choices, uint64_t seed) {
  // Fisher-Yates by hand: what std::shuffle does with a generator differs between libraries.
  std::mt19937_64 random(seed);
  for (size_t i = choices.size(); i > 1; --i) std::swap(choices[i - 1], choices[random() % i]);
  return choices;
}

// How far points are apart: steps along the values that occur of each parameter, summed over the parameters.
class Steps {
 public:
  explicit Steps(const std::vector<Candidate>& candidates) {
    for (const Candidate& candidate : candidates) {
      for (const auto& [name, value] : candidate.choice.config.values()) {
        values_[{candidate.choice.algorithm, name}].insert(value);
      }
    }
  }

  /// A large number for points of different algorithms.
  size_t between(const Choice& a, const Choice& b) const {
    constexpr size_t far = 1000000;
    if (a.algorithm != b.algorithm) return far;
    size_t steps = 0;
    for (const auto& [name, value] : a.config.values()) {
      const auto range = values_.find({a.algorithm, name});
      const auto other = b.config.find(name);
      if (range == values_.end() || !other) return far;
      const auto [low, high] = std::minmax(value, *other);
      steps += static_cast<size_t>(std::distance(range->second.lower_bound(low), range->second.lower_bound(high)));
    }
    return steps;
  }

 private:
  std::map<Name, std::set<int64_t>> values_;  // by algorithm and parameter
};

// The model's favourites first; then the points nearest to the best one measured so far, better predictions first.
// Waits for its trials, because the next step depends on them.
class LocalSearch : public Search {
 public:
  LocalSearch(std::vector<Choice> start, std::vector<Candidate> ranked, size_t limit)
      : start_(std::move(start)), ranked_(std::move(ranked)), steps_(ranked_), limit_(limit) {}

  std::optional<Choice> next() override {
    if (given_.size() >= limit_) return std::nullopt;
    if (given_.size() < start_.size()) return give(start_[given_.size()]);
    if (observed_ < given_.size() || !best_) return std::nullopt;
    const Choice* nearest = nullptr;
    size_t nearest_distance = 0;
    for (const Candidate& candidate : ranked_) {
      if (given_.contains(name_of(candidate.choice))) continue;
      const size_t away = steps_.between(candidate.choice, best_->choice);
      if (nearest == nullptr || away < nearest_distance) {
        nearest = &candidate.choice;
        nearest_distance = away;
      }
    }
    if (nearest == nullptr) return std::nullopt;
    return give(*nearest);
  }

  void observe(const Trial& trial) override {
    ++observed_;
    if (!has_time(trial.outcome)) return;
    const bool better = !best_ || std::make_pair(trial.median, name_of(trial.choice)) <
                                      std::make_pair(best_->median, name_of(best_->choice));
    if (better) best_ = trial;
  }

  size_t planned() const override { return limit_; }

 private:
  std::optional<Choice> give(const Choice& choice) {
    given_.insert(name_of(choice));
    return choice;
  }

  std::vector<Choice> start_;
  std::vector<Candidate> ranked_;
  Steps steps_;
  size_t limit_;
  std::set<Name> given_;
  size_t observed_ = 0;
  std::optional<Trial> best_;
};

}  // namespace

std::string_view to_string(SearchKind kind) {
  for (const auto& [known, name] : kinds) {
    if (known == kind) return name;
  }
  return "unknown";
}

SearchKind parse_search_kind(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& [kind, name] : kinds) {
    if (name == text) return kind;
    names.push_back(name);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no search '{}'; the searches are {}", text, fmt::join(names, ", ")));
}

std::unique_ptr<Search> make_search(const SearchOptions& options, const std::vector<Candidate>& ranked,
                                    const Choice& first) {
  const size_t limit = std::max<size_t>(options.candidates, 1);
  switch (options.kind) {
    case SearchKind::exhaustive:
      return std::make_unique<ListSearch>(with_first(first, all(ranked), ranked.size() + 1));
    case SearchKind::random:
      return std::make_unique<ListSearch>(with_first(first, shuffled(all(ranked), options.seed), limit));
    case SearchKind::local:
      return std::make_unique<LocalSearch>(with_first(first, diverse(ranked, limit), (limit + 1) / 2), ranked,
                                           std::min(limit, ranked.size()));
    case SearchKind::model:
      break;
  }
  return std::make_unique<ListSearch>(with_first(first, diverse(ranked, limit), limit));
}

}  // namespace kiln::tuner
