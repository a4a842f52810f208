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

Request of_any_alignment(Request request) {
  for (Operand& operand : request.operands) operand.spec.alignment = size_of(operand.spec.dtype);
  return request;
}

std::string predicted_by(std::string_view clock) {
  return fmt::format("predicted by {}", clock);
}

std::optional<std::string> known_failure(const cache::Winners& winners, const std::string& key, const Choice& choice,
                                         LazyProgram& program) {
  const auto bar = winners.bar(key, choice.algorithm, choice.config.print());
  if (bar && bar->own) return words(*bar);
  if (winners.has_quarantine() && winners.is_quarantined(program.get()->digest()))
    return "its source is in quarantine on this device: it hung or crashed";
  return std::nullopt;
}

std::string NotBelieved::text(const Request& request) const {
  return fmt::format("{} is not believed about {} {} for {}: {}", pack, algorithm, config, request.key(), reason);
}

cache::Filter Selector::filter_of_request() const {
  cache::Filter narrowed = filter;
  narrowed.deterministic_only = filter.deterministic_only || variants.request()->arithmetic.deterministic;
  return narrowed;
}

bool Selector::admits(const Program& program) const {
  return filter_of_request().admits(program.workspace_bytes, program.deterministic);
}

bool Selector::admits(const Choice& choice) const {
  return admits(variants.program(choice));
}

std::optional<std::string> Selector::must_not_use(const Choice& choice, LazyProgram& program) const {
  if (!permissions.failed_variants) {
    if (auto failure = known_failure(winners, key(), choice, program)) return failure;
  }
  const Algorithm* const algorithm = variants.catalogue().find(choice.algorithm);
  const bool must_pass = algorithm != nullptr && algorithm->user_template() && !permissions.unchecked_templates;
  if (!must_pass || winners.has_passed(key(), choice.algorithm, choice.config.print())) return std::nullopt;
  return "a user template that no check has passed for this request";
}

std::optional<std::string> Selector::must_not_use(const Choice& choice) const {
  LazyProgram program(variants, choice);
  return must_not_use(choice, program);
}

// A failure that others report. A pack may lie, so the variant comes last and is not lost.
std::optional<std::string> Selector::doubt(const Choice& choice) const {
  if (permissions.failed_variants) return std::nullopt;
  const auto bar = winners.bar(key(), choice.algorithm, choice.config.print());
  return bar && !bar->own ? std::optional(words(*bar)) : std::nullopt;
}

std::optional<std::string> Selector::doubt(const execution::BundledVariant& variant) const {
  if (permissions.failed_variants) return std::nullopt;
  const auto bar = winners.bars_program(key(), variant.program);
  return bar && !bar->own ? std::optional(words(*bar)) : std::nullopt;
}

// As the library makes it now, if it may be used.
std::optional<Selection> Selector::usable(const cache::Choice& candidate) const {
  if (disbelief(candidate)) return std::nullopt;
  const std::optional<Choice> choice = readable(candidate.algorithm, candidate.config);
  if (!choice || variants.refusal(*choice)) return std::nullopt;
  LazyProgram program(variants, *choice);
  if (!admits(*program.get()) || must_not_use(*choice, program)) return std::nullopt;
  return Selection{*choice,
                   candidate.seconds,
                   describe_source(candidate),
                   std::string(candidate.device),
                   basis_of(candidate.standing),
                   std::nullopt,
                   program.get()};
}

bool Selector::visit_named(const Visit& visit) const {
  const std::vector<cache::Choice> stored = first(winners.all(key(), filter_of_request()));
  std::vector<Selection> bundled;
  for (const BundledChoice& choice : bundles.find(key())) {
    const execution::BundledVariant& variant = choice.variant();
    const std::optional<Choice> named = readable(variant.algorithm, variant.config);
    if (!named || why_not(variant) || doubt(variant)) continue;
    bundled.push_back(bundled_selection(*named, choice));
  }
  for (const Basis basis : {Basis::timed, Basis::predicted, Basis::estimated}) {
    for (const cache::Choice& candidate : stored) {
      if (basis_of(candidate.standing) != basis) continue;
      const std::optional<Selection> selection = usable(candidate);
      if (selection && !doubt(selection->choice) && visit(*selection)) return true;
    }
    for (const Selection& selection : bundled) {
      if (selection.basis == basis && visit(selection)) return true;
    }
  }
  return false;
}

std::vector<Selection> Selector::stored() const {
  std::vector<Selection> result;
  for (const cache::Choice& candidate : first(winners.all(key(), filter_of_request()))) {
    std::optional<Selection> selection = usable(candidate);
    if (selection && !doubt(selection->choice)) result.push_back(std::move(*selection));
  }
  return result;
}

std::vector<Selection> Selector::named() const {
  std::vector<Selection> result;
  visit_named([&](const Selection& selection) {
    result.push_back(selection);
    return false;
  });
  return result;
}

std::vector<Selection> Selector::doubted() const {
  std::vector<Selection> result;
  const auto add = [&](Selection selection, const std::string& reason) {
    selection.source += fmt::format(", for want of another: {}", reason);
    result.push_back(std::move(selection));
  };
  for (const BundledChoice& choice : bundles.find(key())) {
    const execution::BundledVariant& variant = choice.variant();
    const std::optional<Choice> named = readable(variant.algorithm, variant.config);
    const std::optional<std::string> reason = doubt(variant);
    if (named && reason && !why_not(variant)) add(bundled_selection(*named, choice), *reason);
  }
  if (permissions.failed_variants) return result;
  for (const auto& candidates :
       {winners.all(key(), filter_of_request()), winners.doubted(key(), filter_of_request())}) {
    for (const cache::Choice& candidate : first(candidates)) {
      std::optional<Selection> selection = usable(candidate);
      if (!selection) continue;
      if (const auto reason = doubt(selection->choice)) add(std::move(*selection), *reason);
    }
  }
  return result;
}

std::vector<Withheld> Selector::withheld_of_bundles() const {
  std::vector<Withheld> result;
  for (const BundledChoice& choice : bundles.find(key())) {
    const std::optional<Choice> named = readable(choice.variant().algorithm, choice.variant().config);
    std::optional<std::string> reason = why_not(choice.variant());
    if (!reason) reason = doubt(choice.variant());
    if (named && reason) result.push_back({*named, fmt::format("in bundle {}: {}", choice.bundle->path(), *reason)});
  }
  return result;
}

bool Selector::visit_best(const Candidates& candidates, size_t count, bool doubted, const Visit& visit) const {
  size_t shown = 0;
  for (const Candidate& candidate : candidates.ranked) {
    if (shown == count) break;
    const std::optional<std::string> reason = doubt(candidate.choice);
    if (reason.has_value() != doubted) continue;
    LazyProgram program(variants, candidate.choice);
    if (!admits(*program.get()) || must_not_use(candidate.choice, program)) continue;
    Selection selection{candidate.choice, candidate.estimate.seconds, candidates.basis};
    if (reason) selection.source += fmt::format(", for want of another: {}", *reason);
    selection.program = program.get();
    ++shown;
    if (visit(selection)) return true;
  }
  return false;
}

bool Selector::visit_estimated(const Candidates& candidates, size_t count, const Visit& visit) const {
  return visit_best(candidates, count, false, visit);
}

std::vector<Selection> Selector::estimated(const Candidates& candidates, size_t count) const {
  std::vector<Selection> result;
  visit_best(candidates, count, false, [&](const Selection& selection) {
    result.push_back(selection);
    return false;
  });
  return result;
}

std::vector<Selection> Selector::doubted(const Candidates& candidates, size_t count) const {
  std::vector<Selection> result;
  visit_best(candidates, count, true, [&](const Selection& selection) {
    result.push_back(selection);
    return false;
  });
  return result;
}

std::vector<Withheld> Selector::withheld(const Candidates& candidates, size_t most) const {
  std::vector<Withheld> result;
  for (const Candidate& candidate : candidates.ranked) {
    if (result.size() == most) break;
    LazyProgram program(variants, candidate.choice);
    auto reason = must_not_use(candidate.choice, program);
    if (!reason) reason = doubt(candidate.choice);
    if (reason && admits(*program.get())) result.push_back({candidate.choice, std::move(*reason)});
  }
  return result;
}

std::vector<NotBelieved> Selector::not_believed() const {
  std::vector<NotBelieved> result;
  for (const cache::Choice& candidate : winners.all(key(), filter_of_request())) {
    auto reason = disbelief(candidate);
    if (!reason) continue;
    result.push_back({std::string(candidate.algorithm), std::string(candidate.config), std::string(candidate.source),
                      std::move(*reason)});
  }
  return result;
}

bool Selector::is_timed() const {
  const std::vector<cache::Choice> all = winners.all(key(), filter_of_request());
  return std::any_of(all.begin(), all.end(), [&](const cache::Choice& candidate) {
    return candidate.standing == cache::Standing::measured_here && !disbelief(candidate);
  });
}

// Claims of a pack are text from outside; this machine's own database holds measurements.
std::optional<std::string> Selector::disbelief(const cache::Choice& candidate) const {
  if (candidate.origin == cache::Origin::user_database || candidate.standing == cache::Standing::estimated) {
    return std::nullopt;
  }
  return impossible_time(*variants.request(), variants.target().arch, candidate.device, candidate.seconds);
}

// A bundle holds programs of any version of the library, and of user templates that are not here.
std::optional<std::string> Selector::why_not(const execution::BundledVariant& variant) const {
  const auto bar = winners.bars_program(key(), variant.program);
  const bool is_known_to_fail = (bar && bar->own) || winners.is_quarantined(variant.program);
  if (is_known_to_fail && !permissions.failed_variants) {
    return "this very program gave a wrong result, hung or crashed on this device or another of its architecture";
  }
  if (filter_of_request().admits(variant.workspace_bytes, variant.deterministic)) return std::nullopt;
  if (filter_of_request().admits(variant.workspace_bytes, true)) return "its results are not bitwise reproducible";
  return fmt::format("it needs {} bytes of workspace, and {} are permitted", variant.workspace_bytes,
                     filter.workspace_limit);
}

}  // namespace kiln
