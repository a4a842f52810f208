#include "selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kiln/base/error.h"
#include "plausible_time.h"

namespace kiln {
namespace {

std::string words(const cache::Choice& choice) {
  const bool modelled = choice.kind == cache::TimeKind::modelled;
  switch (choice.standing) {
    case cache::Standing::measured_here:
      return modelled ? "modelled on this device" : "measured on this device";
    case cache::Standing::same_architecture:
      return modelled ? "modelled on the same architecture" : "measured on the same architecture";
    case cache::Standing::predicted:
      return predicted_by(choice.clock);
    case cache::Standing::estimated:
      return "stored estimate";
  }
  return "?";
}

Basis basis_of(cache::Standing standing) {
  if (standing == cache::Standing::predicted) return Basis::predicted;
  return standing == cache::Standing::estimated ? Basis::estimated : Basis::timed;
}

Selection bundled_selection(const Choice& named, const BundledChoice& choice) {
  const execution::BundledVariant& variant = choice.variant();
  std::string source = fmt::format("bundle {}", choice.bundle->path());
  if (!choice.clock.empty()) source = fmt::format("{}, {}", predicted_by(choice.clock), source);
  Basis basis = choice.clock.empty() ? Basis::timed : Basis::predicted;
  if (variant.device.empty()) basis = Basis::estimated;
  return {named, variant.seconds, std::move(source), variant.device, basis, choice};
}

std::string_view what_happened(std::string_view outcome) {
  if (outcome == cache::outcome::wrong_result) return "gave a wrong result";
  return outcome == cache::outcome::timed_out ? "hung" : "crashed";
}

std::string words(const cache::Bar& bar) {
  return fmt::format("it {} on {}, says {}", what_happened(bar.outcome), bar.device, bar.source);
}

// Text from outside, which may be malformed. Then nothing.
std::optional<Choice> readable(std::string_view algorithm, std::string_view config) {
  try {
    return Choice{std::string(algorithm), Config::parse(config)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

// As many choices of one request as an honest pack has: each costs the making of a program.
std::vector<cache::Choice> first(std::vector<cache::Choice> choices) {
  constexpr size_t most = 1024;
  if (choices.size() > most) choices.resize(most);
  return choices;
}

// "measured on this device", with the pack's path where it comes from one.
std::string describe_source(const cache::Choice& choice) {
  std::string text = words(choice);
  if (choice.origin == cache::Origin::pack) text += fmt::format(", from pack {}", choice.source);
  if (choice.origin == cache::Origin::system_pack) text += fmt::format(", from system pack {}", choice.source);
  return text;
}

}  // namespace

std::string predicted_by(std::string_view clock) {
  return fmt::format("predicted by {}", clock);
}

std::optional<std::string> known_failure(const cache::Winners& winners, const Request& request, const Choice& choice,
                                         const ProgramDigest& program) {
  const auto bar = winners.bar(request.key(), choice.algorithm, choice.config.print());
  if (bar && bar->own) return words(*bar);
  if (winners.has_quarantine() && winners.is_quarantined(program()))
    return "its source is in quarantine on this device: it hung or crashed";
  return std::nullopt;
}

std::string NotBelieved::text(const Request& request) const {
  return fmt::format("{} is not believed about {} {} for {}: {}", pack, algorithm, config, request.key(), reason);
}

cache::Filter Selector::filter_of(const Request& request) const {
  cache::Filter narrowed = filter;
  narrowed.deterministic_only = filter.deterministic_only || request.arithmetic.deterministic;
  return narrowed;
}

bool Selector::admits(const Request& request, const Program& program) const {
  return filter_of(request).admits(program.workspace_bytes, program.deterministic);
}

std::optional<std::string> Selector::must_not_use(const Request& request, const Choice& choice) const {
  if (!permissions.failed_variants) {
    const auto program = [&] { return catalogue.program(request, target, choice).digest(); };
    if (auto failure = known_failure(winners, request, choice, program)) return failure;
  }
  const Algorithm* const algorithm = catalogue.find(choice.algorithm);
  const bool must_pass = algorithm != nullptr && algorithm->user_template() && !permissions.unchecked_templates;
  if (!must_pass || winners.has_passed(request.key(), choice.algorithm, choice.config.print())) return std::nullopt;
  return "a user template that no check has passed for this request";
}

// A failure that others report. A pack may lie, so the variant comes last and is not lost.
std::optional<std::string> Selector::doubt(const Request& request, const Choice& choice) const {
  if (permissions.failed_variants) return std::nullopt;
  const auto bar = winners.bar(request.key(), choice.algorithm, choice.config.print());
  return bar && !bar->own ? std::optional(words(*bar)) : std::nullopt;
}

std::optional<std::string> Selector::doubt(const Request& request, const execution::BundledVariant& variant) const {
  if (permissions.failed_variants) return std::nullopt;
  const auto bar = winners.bars_program(request.key(), variant.program);
  return bar && !bar->own ? std::optional(words(*bar)) : std::nullopt;
}

// As the library makes it now, if it may be used.
std::optional<Selection> Selector::usable(const Request& request, const cache::Choice& candidate) const {
  if (disbelief(request, candidate)) return std::nullopt;
  const std::optional<Choice> choice = readable(candidate.algorithm, candidate.config);
  if (!choice || catalogue.refusal(request, target, *choice)) return std::nullopt;
  if (!admits(request, catalogue.program(request, target, *choice))) return std::nullopt;
  if (must_not_use(request, *choice)) return std::nullopt;
  return Selection{*choice, candidate.seconds, describe_source(candidate), std::string(candidate.device),
                   basis_of(candidate.standing)};
}

std::vector<Selection> Selector::stored(const Request& request) const {
  std::vector<Selection> result;
  for (const cache::Choice& candidate : first(winners.all(request.key(), filter_of(request)))) {
    std::optional<Selection> selection = usable(request, candidate);
    if (selection && !doubt(request, selection->choice)) result.push_back(std::move(*selection));
  }
  return result;
}

std::vector<Selection> Selector::bundled(const Request& request) const {
  std::vector<Selection> result;
  for (const BundledChoice& choice : bundles.find(request.key())) {
    const execution::BundledVariant& variant = choice.variant();
    const std::optional<Choice> named = readable(variant.algorithm, variant.config);
    if (!named || why_not(request, variant) || doubt(request, variant)) continue;
    result.push_back(bundled_selection(*named, choice));
  }
  return result;
}

std::vector<Selection> Selector::doubted(const Request& request) const {
  std::vector<Selection> result;
  const auto add = [&](Selection selection, const std::string& reason) {
    selection.source += fmt::format(", for want of another: {}", reason);
    result.push_back(std::move(selection));
  };
  for (const BundledChoice& choice : bundles.find(request.key())) {
    const execution::BundledVariant& variant = choice.variant();
    const std::optional<Choice> named = readable(variant.algorithm, variant.config);
    const std::optional<std::string> reason = doubt(request, variant);
    if (named && reason && !why_not(request, variant)) add(bundled_selection(*named, choice), *reason);
  }
  if (permissions.failed_variants) return result;
  for (const auto& candidates :
       {winners.all(request.key(), filter_of(request)), winners.doubted(request.key(), filter_of(request))}) {
    for (const cache::Choice& candidate : first(candidates)) {
      std::optional<Selection> selection = usable(request, candidate);
      if (!selection) continue;
      if (const auto reason = doubt(request, selection->choice)) add(std::move(*selection), *reason);
    }
  }
  return result;
}

std::vector<Selection> Selector::named(const Request& request) const {
  std::vector<Selection> result = stored(request);
  for (Selection& selection : bundled(request)) result.push_back(std::move(selection));
  std::stable_sort(result.begin(), result.end(),
                   [](const Selection& a, const Selection& b) { return a.basis < b.basis; });
  return result;
}

std::vector<Withheld> Selector::withheld_of_bundles(const Request& request) const {
  std::vector<Withheld> result;
  for (const BundledChoice& choice : bundles.find(request.key())) {
    const std::optional<Choice> named = readable(choice.variant().algorithm, choice.variant().config);
    std::optional<std::string> reason = why_not(request, choice.variant());
    if (!reason) reason = doubt(request, choice.variant());
    if (named && reason) result.push_back({*named, fmt::format("in bundle {}: {}", choice.bundle->path(), *reason)});
  }
  return result;
}

std::vector<Selection> Selector::best_of(const Request& request, const Candidates& candidates, size_t count,
                                         bool doubted) const {
  std::vector<Selection> result;
  for (const Candidate& candidate : candidates.ranked) {
    if (result.size() == count) break;
    const std::optional<std::string> reason = doubt(request, candidate.choice);
    if (reason.has_value() != doubted) continue;
    if (!admits(request, catalogue.program(request, target, candidate.choice))) continue;
    if (must_not_use(request, candidate.choice)) continue;
    std::string source = reason ? fmt::format("estimate, for want of another: {}", *reason) : "estimate";
    result.push_back({candidate.choice, candidate.estimate.seconds, std::move(source)});
  }
  return result;
}

std::vector<Selection> Selector::estimated(const Request& request, const Candidates& candidates, size_t count) const {
  return best_of(request, candidates, count, false);
}

std::vector<Selection> Selector::doubted(const Request& request, const Candidates& candidates, size_t count) const {
  return best_of(request, candidates, count, true);
}

std::vector<Withheld> Selector::withheld(const Request& request, const Candidates& candidates, size_t most) const {
  std::vector<Withheld> result;
  for (const Candidate& candidate : candidates.ranked) {
    if (result.size() == most) break;
    auto reason = must_not_use(request, candidate.choice);
    if (!reason) reason = doubt(request, candidate.choice);
    if (!reason) continue;
    if (!admits(request, catalogue.program(request, target, candidate.choice))) continue;
    result.push_back({candidate.choice, std::move(*reason)});
  }
  return result;
}

std::vector<NotBelieved> Selector::not_believed(const Request& request) const {
  std::vector<NotBelieved> result;
  for (const cache::Choice& candidate : winners.all(request.key(), filter_of(request))) {
    auto reason = disbelief(request, candidate);
    if (!reason) continue;
    result.push_back({std::string(candidate.algorithm), std::string(candidate.config), std::string(candidate.source),
                      std::move(*reason)});
  }
  return result;
}

bool Selector::is_timed(const Request& request) const {
  const std::vector<cache::Choice> all = winners.all(request.key(), filter_of(request));
  return std::any_of(all.begin(), all.end(), [&](const cache::Choice& candidate) {
    return candidate.standing == cache::Standing::measured_here && !disbelief(request, candidate);
  });
}

// Claims of a pack are text from outside; this machine's own database holds measurements.
std::optional<std::string> Selector::disbelief(const Request& request, const cache::Choice& candidate) const {
  if (candidate.origin == cache::Origin::user_database || candidate.standing == cache::Standing::estimated) {
    return std::nullopt;
  }
  return impossible_time(request, target.arch, candidate.device, candidate.seconds);
}

// A bundle holds programs of any version of the library, and of user templates that are not here.
std::optional<std::string> Selector::why_not(const Request& request, const execution::BundledVariant& variant) const {
  const auto bar = winners.bars_program(request.key(), variant.program);
  const bool is_known_to_fail = (bar && bar->own) || winners.is_quarantined(variant.program);
  if (is_known_to_fail && !permissions.failed_variants) {
    return "this very program gave a wrong result, hung or crashed on this device or another of its architecture";
  }
  if (filter_of(request).admits(variant.workspace_bytes, variant.deterministic)) return std::nullopt;
  if (filter_of(request).admits(variant.workspace_bytes, true)) return "its results are not bitwise reproducible";
  return fmt::format("it needs {} bytes of workspace, and {} are permitted", variant.workspace_bytes,
                     filter.workspace_limit);
}

}  // namespace kiln
