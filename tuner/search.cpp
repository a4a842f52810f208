#include "kiln/tuner/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
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
// Algorithms whose best prediction is this many times the best one are tried by one candidate of their structure.
constexpr double unlikely = 4;

using Name = std::pair<std::string, std::string>;  // algorithm, config text

Name name_of(const Choice& choice) {
  return {choice.algorithm, choice.config.print()};
}

// How many choices a search may still give: until as many as wanted have a time or are on their way. One that ends
// without a time makes room for another, until twice as many as wanted were tried.
class Allowance {
 public:
  explicit Allowance(size_t wanted) : wanted_(wanted) {}

  void give() { ++given_; }
  void observe(const Trial& trial, bool cost) {
    ++observed_;
    if (has_time(trial.outcome)) return;
    ++failed_;
    if (!cost) ++known_failures_;
  }

  size_t left() const {
    const size_t tried = given_ - known_failures_, most = 2 * wanted_;
    return std::min(wanted_ - std::min(wanted_, hopeful()), most - std::min(most, tried));
  }
  /// Choices that have a time, or may still get one.
  size_t hopeful() const { return given_ - failed_; }
  size_t given() const { return given_; }
  bool is_waiting() const { return observed_ < given_; }

 private:
  size_t wanted_, given_ = 0, observed_ = 0, failed_ = 0;
  size_t known_failures_ = 0;  // failed, and had failed in an earlier session
};

std::vector<Choice> all(const std::vector<Candidate>& ranked) {
  std::vector<Choice> choices;
  for (const Candidate& candidate : ranked) choices.push_back(candidate.choice);
  return choices;
}

// Choices in an order, each once.
class Order {
 public:
  virtual ~Order() = default;
  virtual std::optional<Choice> next() = 0;
};

// A fixed list.
class ListOrder : public Order {
 public:
  explicit ListOrder(std::vector<Choice> choices) : choices_(std::move(choices)) {}
  std::optional<Choice> next() override {
    if (given_ == choices_.size()) return std::nullopt;
    return std::move(choices_[given_++]);
  }

 private:
  std::vector<Choice> choices_;
  size_t given_ = 0;
};

// Structure of an algorithm, which a clock may misjudge as a whole: whether it multiplies on tensor cores, and then how
// operands reach them and whether the depth is split ("_tensor", "_tensor_staged_splitk"). Times of one structure
// compare better with each other than with those of another.
std::string structure_of(const std::string& algorithm) {
  const size_t tensor = algorithm.find("_tensor");
  return tensor == std::string::npos ? "" : algorithm.substr(tensor);
}

// Candidates worth a trial, best predictions first, but of those that the model cannot tell apart only the first one;
// the others of each such group come after all groups had their turn. The best of each structure is worth a trial
// whatever its prediction. Estimates by the authors of user templates are no reason to leave any out.
std::vector<Candidate> by_prediction(const std::vector<Candidate>& ranked) {
  constexpr double same = 1e-3;
  std::vector<Candidate> firsts, others;
  std::map<std::string, double> last;  // prediction of the last group of each algorithm
  std::set<std::string> structures;
  for (const Candidate& candidate : ranked) {
    const double seconds = candidate.estimate.seconds;
    const bool is_first_of_structure = structures.insert(structure_of(candidate.choice.algorithm)).second;
    const bool is_hopeless = !candidate.user_template && seconds > hopeless * ranked.front().estimate.seconds;
    if (is_hopeless && !is_first_of_structure) continue;
    const auto [group, is_new] = last.try_emplace(candidate.choice.algorithm, seconds);
    const bool is_first = is_new || seconds > group->second * (1 + same);
    if (is_first) group->second = seconds;
    (is_first ? firsts : others).push_back(candidate);
  }
  firsts.insert(firsts.end(), others.begin(), others.end());
  return firsts;
}

// The order in which the model's favourites are tried: by turns the best candidate left of all, and the best one left
// of the algorithm that has had the fewest so far, beginning with those of structures that had none. So a model that is
// wrong about one algorithm, or structure, does not hide another. Unlikely algorithms have a turn for their structure.
class DiverseOrder : public Order {
 public:
  explicit DiverseOrder(std::vector<Candidate> by_prediction) : left_(std::move(by_prediction)) {
    for (const Candidate& candidate : left_) {
      const auto same = [&](const Turns& turns) { return turns.algorithm == candidate.choice.algorithm; };
      if (std::any_of(turns_.begin(), turns_.end(), same)) continue;
      const bool is_likely =
          candidate.user_template || candidate.estimate.seconds <= unlikely * left_.front().estimate.seconds;
      turns_.push_back({candidate.choice.algorithm, is_likely});
    }
  }

  std::optional<Choice> next() override {
    if (left_.empty()) return std::nullopt;
    if (std::exchange(rarest_is_next_, !rarest_is_next_) && turns_.size() > 1) {
      const auto had_structure = [&](const Turns& turns) {
        return structures_.contains(structure_of(turns.algorithm));
      };
      std::erase_if(turns_, [&](const Turns& turns) { return !turns.is_likely && had_structure(turns); });
      const auto rarest = std::min_element(turns_.begin(), turns_.end(), [&](const Turns& a, const Turns& b) {
        return std::pair(had_structure(a), a.had) < std::pair(had_structure(b), b.had);
      });
      if (rarest != turns_.end()) {
        const auto its_best = std::find_if(left_.begin(), left_.end(), [&](const Candidate& one) {
          return one.choice.algorithm == rarest->algorithm;
        });
        if (its_best != left_.end()) return take(its_best);
        turns_.erase(rarest);  // all of it is taken
        rarest_is_next_ = true;
      }
    }
    return take(left_.begin());
  }

 private:
  // Turns of an algorithm.
  struct Turns {
    std::string algorithm;
    bool is_likely;
    size_t had = 0;
  };

  Choice take(std::vector<Candidate>::iterator chosen) {
    Choice choice = std::move(chosen->choice);
    for (Turns& turns : turns_) turns.had += turns.algorithm == choice.algorithm ? 1 : 0;
    structures_.insert(structure_of(choice.algorithm));
    left_.erase(chosen);
    return choice;
  }

  std::vector<Candidate> left_;
  std::vector<Turns> turns_;          // in order of rank
  std::set<std::string> structures_;  // that had a turn
  bool rarest_is_next_ = false;
};

std::vector<Choice> shuffled(std::vector<Choice> choices, uint64_t seed) {
  // Fisher-Yates by hand: what std::shuffle does with a generator differs between libraries.
  std::mt19937_64 random(seed);
  for (size_t i = choices.size(); i > 1; --i) std::swap(choices[i - 1], choices[random() % i]);
  return choices;
}

// Distance of two points: the values that occur between theirs, counted over the parameters.
class PointDistance {
 public:
  explicit PointDistance(const std::vector<Candidate>& candidates) {
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
    size_t values = 0;
    for (const auto& [name, value] : a.config.values()) {
      const auto range = values_.find({a.algorithm, name});
      const auto other = b.config.find(name);
      if (range == values_.end() || !other) return far;
      const auto [low, high] = std::minmax(value, *other);
      values += static_cast<size_t>(std::distance(range->second.lower_bound(low), range->second.lower_bound(high)));
    }
    return values;
  }

 private:
  std::map<Name, std::set<int64_t>> values_;  // by algorithm and parameter
};

// `first`, then an order without it.
class FirstThen : public Order {
 public:
  FirstThen(Choice first, std::unique_ptr<Order> rest) : first_(std::move(first)), rest_(std::move(rest)) {}

  std::optional<Choice> next() override {
    if (!std::exchange(began_, true)) return first_;
    std::optional<Choice> choice = rest_->next();
    return choice == first_ ? rest_->next() : choice;
  }

 private:
  Choice first_;
  std::unique_ptr<Order> rest_;
  bool began_ = false;
};

// Goes by an order that was known from the start.
class OrderedSearch : public Search {
 public:
  /// `count`: how many choices `order` has.
  OrderedSearch(std::unique_ptr<Order> order, size_t count, size_t wanted)
      : order_(std::move(order)), left_(count), allowance_(wanted) {}

  std::optional<Choice> next() override {
    while (allowance_.left() > 0 && left_ > 0) {
      --left_;
      std::optional<Choice> choice = order_->next();
      if (!choice || dropped_.contains(choice->algorithm)) continue;
      allowance_.give();
      return choice;
    }
    return std::nullopt;
  }
  void observe(const Trial& trial, bool cost) override { allowance_.observe(trial, cost); }
  void drop(const std::string& algorithm) override { dropped_.insert(algorithm); }
  size_t planned() const override { return allowance_.given() + std::min(left_, allowance_.left()); }

 private:
  std::unique_ptr<Order> order_;
  size_t left_;
  Allowance allowance_;
  std::set<std::string> dropped_;
};

// Half of the model's favourites first; then the points nearest to the best one measured so far, better predictions
// first. Waits for its trials, because the next choice depends on them.
class LocalSearch : public Search {
 public:
  /// `favourites`: the model's, all of them candidates.
  LocalSearch(std::unique_ptr<Order> favourites, std::vector<Candidate> ranked, size_t wanted)
      : favourites_(std::move(favourites)),
        ranked_(std::move(ranked)),
        distance_(ranked_),
        start_((wanted + 1) / 2),
        allowance_(wanted) {}

  std::optional<Choice> next() override {
    if (allowance_.left() == 0) return std::nullopt;
    while (allowance_.hopeful() < start_) {
      const std::optional<Choice> favourite = favourites_->next();
      if (!favourite) break;
      if (is_open(*favourite)) return give(*favourite);
    }
    if (allowance_.is_waiting() || !best_) return std::nullopt;
    const Choice* nearest = nullptr;
    size_t nearest_distance = 0;
    for (const Candidate& candidate : ranked_) {
      if (!is_open(candidate.choice)) continue;
      const size_t away = distance_.between(candidate.choice, best_->choice);
      if (nearest == nullptr || away < nearest_distance) {
        nearest = &candidate.choice;
        nearest_distance = away;
      }
    }
    if (nearest == nullptr) return std::nullopt;
    return give(*nearest);
  }

  void observe(const Trial& trial, bool cost) override {
    allowance_.observe(trial, cost);
    if (!has_time(trial.outcome)) return;
    const bool better = !best_ || std::make_pair(trial.seconds, name_of(trial.choice)) <
                                      std::make_pair(best_->seconds, name_of(best_->choice));
    if (better) best_ = trial;
  }

  void drop(const std::string& algorithm) override { dropped_.insert(algorithm); }
  size_t planned() const override {
    return allowance_.given() + std::min(ranked_.size() - given_.size(), allowance_.left());
  }

 private:
  bool is_open(const Choice& choice) const {
    return !given_.contains(name_of(choice)) && !dropped_.contains(choice.algorithm);
  }
  std::optional<Choice> give(const Choice& choice) {
    given_.insert(name_of(choice));
    allowance_.give();
    return choice;
  }

  std::unique_ptr<Order> favourites_;
  std::vector<Candidate> ranked_;
  PointDistance distance_;
  size_t start_;  // how many favourites
  Allowance allowance_;
  std::set<Name> given_;
  std::set<std::string> dropped_;
  std::optional<Trial> best_;
};

// Two searches by turns, of which each has algorithms of its own.
class TurnsSearch : public Search {
 public:
  TurnsSearch(std::unique_ptr<Search> one, std::unique_ptr<Search> other, std::set<std::string> algorithms_of_other)
      : one_(std::move(one)), other_(std::move(other)), algorithms_of_other_(std::move(algorithms_of_other)) {}

  std::optional<Choice> next() override {
    others_turn_ = !others_turn_;
    if (std::optional<Choice> choice = (others_turn_ ? one_ : other_)->next()) return choice;
    return (others_turn_ ? other_ : one_)->next();
  }
  void observe(const Trial& trial, bool cost) override { of(trial.choice.algorithm).observe(trial, cost); }
  void drop(const std::string& algorithm) override { of(algorithm).drop(algorithm); }
  size_t planned() const override { return one_->planned() + other_->planned(); }

 private:
  Search& of(const std::string& algorithm) { return algorithms_of_other_.contains(algorithm) ? *other_ : *one_; }

  std::unique_ptr<Search> one_, other_;
  std::set<std::string> algorithms_of_other_;
  bool others_turn_ = false;
};

// A search of one kind; `first` comes first.
std::unique_ptr<Search> search_among(const SearchOptions& options, std::vector<Candidate> ranked, const Choice& first) {
  const bool takes_all = options.kind == SearchKind::exhaustive || options.kind == SearchKind::random;
  std::vector<Candidate> candidates = takes_all ? ranked : by_prediction(ranked);
  const bool holds_first = std::any_of(candidates.begin(), candidates.end(),
                                       [&](const Candidate& candidate) { return candidate.choice == first; });
  const size_t count = candidates.size() + (holds_first ? 0 : 1);
  size_t wanted = std::max<size_t>(options.candidates, 1);
  std::unique_ptr<Order> order;
  switch (options.kind) {
    case SearchKind::exhaustive:
      wanted = std::numeric_limits<size_t>::max() / 2;
      order = std::make_unique<ListOrder>(all(candidates));
      break;
    case SearchKind::random:
      order = std::make_unique<ListOrder>(shuffled(all(candidates), options.seed));
      break;
    case SearchKind::local:
    case SearchKind::model:
      order = std::make_unique<DiverseOrder>(std::move(candidates));
      break;
  }
  order = std::make_unique<FirstThen>(first, std::move(order));
  if (options.kind != SearchKind::local) return std::make_unique<OrderedSearch>(std::move(order), count, wanted);
  return std::make_unique<LocalSearch>(std::move(order), std::move(ranked), wanted);
}

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
  std::vector<Candidate> own, of_users;
  std::set<std::string> users_algorithms;
  for (const Candidate& candidate : ranked) {
    (candidate.user_template ? of_users : own).push_back(candidate);
    if (candidate.user_template) users_algorithms.insert(candidate.choice.algorithm);
  }
  if (of_users.empty() || own.empty()) return search_among(options, ranked, first);
  const Choice users_first = of_users.front().choice;
  return std::make_unique<TurnsSearch>(search_among(options, std::move(own), first),
                                       search_among(options, std::move(of_users), users_first),
                                       std::move(users_algorithms));
}

}  // namespace kiln::tuner
