#include "explain_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "kiln/base/tie.h"
#include "kiln/cache/pack.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

using cache::Record;

std::string why_tied(const Record& record, const Record& winner) {
  if (record.workspace_bytes > winner.workspace_bytes) {
    return fmt::format("a tie, with {} bytes more of workspace", record.workspace_bytes - winner.workspace_bytes);
  }
  if (!record.deterministic && winner.deterministic) return "a tie, and not bitwise reproducible";
  return "a tie, later by name";
}

// Which rule of a tie prefers `winner`, as TieRank orders them.
std::string what_decided(const Record& winner, const Record& other) {
  if (winner.workspace_bytes < other.workspace_bytes) {
    return fmt::format("less workspace decides: {} bytes, not {}", winner.workspace_bytes, other.workspace_bytes);
  }
  if (winner.deterministic && !other.deterministic) return "bitwise reproducible results decide";
  return "the order of the names decides";
}

std::string why_not(const Record& record, const Record& winner) {
  const bool predicted = record.kind == cache::TimeKind::predicted;
  if (predicted && winner.kind != cache::TimeKind::predicted)
    return "only predicted: a time that was taken comes first";
  const double slower = 100 * (record.seconds / winner.seconds - 1);
  if (slower <= 0) return why_tied(record, winner);
  if (record.seconds <= tie_limit(winner.seconds))
    return fmt::format("{} ({:.1f}% slower)", why_tied(record, winner), slower);
  const bool early = record.outcome == cache::outcome::rejected_early;
  return fmt::format("{:.1f}% slower{}", slower, early ? " (so clearly that timing stopped)" : "");
}

std::string why_failed(const Record& record) {
  const std::string& text = record.error.empty() ? record.check : record.error;
  return text.empty() ? record.outcome : fmt::format("{}: {}", record.outcome, in_one_line(text));
}

}  // namespace

std::vector<ExplainedTrial> explain_trials(std::vector<Record> records, const cache::IsCurrent& is_current) {
  const auto rank = [&](const Record& r) {
    const bool current = is_current(r.algorithm, r.algorithm_digest);
    return std::tuple(!cache::usable(r), !current, r.kind == cache::TimeKind::predicted, r.seconds);
  };
  std::stable_sort(records.begin(), records.end(), [&](const Record& a, const Record& b) { return rank(a) < rank(b); });
  const Record* const winner = cache::winner_among(records, is_current);
  std::vector<ExplainedTrial> result;
  for (const Record& record : records) {
    std::string why;
    if (&record == winner) {
      why = "wins";
    } else if (!cache::usable(record)) {
      why = why_failed(record);
    } else if (!is_current(record.algorithm, record.algorithm_digest)) {
      why = "stale: its algorithm has changed since";
    } else {
      why = why_not(record, *winner);
    }
    result.push_back({record, std::move(why)});
  }
  return result;
}

std::string tie_text(const std::vector<Record>& records, const cache::IsCurrent& is_current) {
  const Record* const winner = cache::winner_among(records, is_current);
  if (winner == nullptr) return {};
  const Record* faster = nullptr;
  for (const Record& record : records) {
    const bool counts = cache::usable(record) && is_current(record.algorithm, record.algorithm_digest) &&
                        (record.kind == cache::TimeKind::predicted) == (winner->kind == cache::TimeKind::predicted);
    if (counts && record.seconds < (faster != nullptr ? faster : winner)->seconds) faster = &record;
  }
  if (faster == nullptr) return {};
  return fmt::format("a tie: {} {} is {:.1f}% faster, and within {:.0f}% {}", faster->algorithm, faster->config,
                     100 * (winner->seconds / faster->seconds - 1), 100 * tie_share, what_decided(*winner, *faster));
}

}  // namespace kiln::cli
