#include "kiln/tuner/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
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

// An algorithm whose best prediction is this many times the best of all gets no candidate for diversity's sake.
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

// The order in which the model's favourites are tried: by turns the best candidate left of all, and the best one left
// of the algorithm that has had the fewest so far. So a model that is wrong about one algorithm does not hide another.
std::vector<Choice> diverse(const std::vector<Candidate>& ranked, size_t limit) {
  std::vector<Choice> order;
  std::vector<bool> taken(ranked.size(), false);
  std::vector<std::pair<std::string, size_t>> had;  // algorithms worth a try in order of rank, with how often they had
  for (const Candidate& candidate : ranked) {
    const auto same = [&](const auto& entry) { return entry.first == candidate.choice.algorithm; };
    if (candidate.estimate.seconds > hopeless * ranked.front().estimate.seconds) break;
    if (std::none_of(had.begin(), had.end(), same)) had.emplace_back(candidate.choice.algorithm, 0);
  }
  const auto take_best = [&](const std::string* algorithm) {
    for (size_t i = 0; i < ranked.size(); ++i) {
      if (taken[i] || (algorithm != nullptr && ranked[i].choice.algorithm != *algorithm)) continue;
      taken[i] = true;
      order.push_back(ranked[i].choice);
      for (auto& [name, count] : had) count += name == ranked[i].choice.algorithm ? 1 : 0;
      return true;
    }
    return false;
  };
  while (order.size() < limit && take_best(nullptr)) {
    if (order.size() >= limit || had.size() < 2) continue;
    const auto rarest =
        std::min_element(had.begin(), had.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    take_best(&rarest->first);
  }
  return order;
}

std::vector<Choice> shuffled(std::vector<Choice> choices, uint64_t seed) {
  // Fisher-Yates by hand: what std::shuffle does with a generator differs between libraries.
  std::mt19937_64 random(seed);
  for (size_t i = choices.size(); i > 1; --i) std::swap(choices[i - 1], choices[random() % i]);
  return choices;
}

// Differing values of two points of one algorithm; a large number for different algorithms.
size_t distance(const Choice& a, const Choice& b) {
  if (a.algorithm != b.algorithm || a.config.values().size() != b.config.values().size()) return 1000;
  size_t differing = 0;
  for (size_t i = 0; i < a.config.values().size(); ++i) {
    differing += a.config.values()[i] == b.config.values()[i] ? 0 : 1;
  }
  return differing;
}

// The model's favourites first; then points that differ from the best measured one in one parameter (then in two, ...),
// better predictions first. Waits for its trials, because the next step depends on them.
class LocalSearch : public Search {
 public:
  LocalSearch(std::vector<Choice> start, std::vector<Candidate> ranked, size_t limit)
      : start_(std::move(start)), ranked_(std::move(ranked)), limit_(limit) {}

  std::optional<Choice> next() override {
    if (given_.size() >= limit_) return std::nullopt;
    if (given_.size() < start_.size()) return give(start_[given_.size()]);
    if (observed_ < given_.size() || !best_) return std::nullopt;
    const Choice* nearest = nullptr;
    size_t nearest_distance = 0;
    for (const Candidate& candidate : ranked_) {
      if (given_.contains(name_of(candidate.choice))) continue;
      const size_t away = distance(candidate.choice, best_->choice);
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
