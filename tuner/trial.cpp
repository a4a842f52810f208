#include "kiln/tuner/trial.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kiln/base/tie.h"

namespace kiln::tuner {
namespace {

struct Named {
  Outcome outcome;
  std::string_view name;
};

constexpr std::array<Named, 10> names{{{Outcome::timed, "timed"},
                                       {Outcome::rejected_early, "rejected_early"},
                                       {Outcome::refused, "refused"},
                                       {Outcome::compile_failed, "compile_failed"},
                                       {Outcome::spills, "spills"},
                                       {Outcome::wrong_result, "wrong_result"},
                                       {Outcome::timed_out, "timed_out"},
                                       {Outcome::crashed, "crashed"},
                                       {Outcome::out_of_memory, "out_of_memory"},
                                       {Outcome::quarantined, "quarantined"}}};

// The fixed order of candidates that are as fast as each other.
bool preferred(const Trial* a, const Trial* b) {
  const std::string config_a = a->choice.config.print(), config_b = b->choice.config.print();
  return TieRank{a->workspace_bytes, !a->deterministic, a->choice.algorithm, config_a} <
         TieRank{b->workspace_bytes, !b->deterministic, b->choice.algorithm, config_b};
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  for (const Named& named : names) {
    if (named.outcome == outcome) return named.name;
  }
  return "unknown";
}

std::optional<Outcome> parse_outcome(std::string_view text) {
  for (const Named& named : names) {
    if (named.name == text) return named.outcome;
  }
  return std::nullopt;
}

bool has_time(Outcome outcome) {
  return outcome == Outcome::timed || outcome == Outcome::rejected_early;
}

bool is_conclusive(Outcome outcome) {
  return outcome != Outcome::out_of_memory && outcome != Outcome::quarantined;
}

bool is_suspect(Outcome outcome) {
  return outcome == Outcome::timed_out || outcome == Outcome::crashed;
}

std::vector<const Trial*> ranking(const std::vector<Trial>& trials, int64_t workspace_limit) {
  std::vector<const Trial*> order;
  for (const Trial& trial : trials) {
    if (has_time(trial.outcome) && trial.workspace_bytes <= workspace_limit) order.push_back(&trial);
  }
  std::sort(order.begin(), order.end(), [](const Trial* a, const Trial* b) {
    return a->seconds != b->seconds ? a->seconds < b->seconds : preferred(a, b);
  });
  // Ties are counted from the fastest of each group, so that a chain of near neighbours is not one tie.
  for (auto first = order.begin(); first != order.end();) {
    const double limit = tie_limit((*first)->seconds);
    const auto last = std::find_if(first, order.end(), [&](const Trial* trial) { return trial->seconds > limit; });
    std::sort(first, last, preferred);
    first = last;
  }
  return order;
}

const Trial* winner(const std::vector<Trial>& trials) {
  const std::vector<const Trial*> order = ranking(trials, std::numeric_limits<int64_t>::max());
  return order.empty() ? nullptr : order.front();
}

}  // namespace kiln::tuner
