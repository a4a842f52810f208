#include "selection.h"

#include <fmt/format.h>

#include <optional>

#include "kiln/base/error.h"

namespace kiln {
namespace {

std::string_view words(cache::Standing standing, cache::TimeKind kind) {
  const bool modelled = kind == cache::TimeKind::modelled;
  switch (standing) {
    case cache::Standing::measured_here:
      return modelled ? "modelled on this device" : "measured on this device";
    case cache::Standing::same_architecture:
      return modelled ? "modelled on the same architecture" : "measured on the same architecture";
    case cache::Standing::predicted:
      return "predicted";
  }
  return "?";
}

}  // namespace

std::optional<Choice> readable(std::string_view algorithm, std::string_view config) {
  try {
    return Choice{std::string(algorithm), Config::parse(config)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string describe_source(const cache::Choice& choice) {
  std::string text(words(choice.standing, choice.kind));
  if (choice.origin == cache::Origin::pack) text += fmt::format(", from pack {}", choice.source);
  if (choice.origin == cache::Origin::system_pack) text += fmt::format(", from system pack {}", choice.source);
  return text;
}

cache::Filter Selector::filter_of(const Request& request) const {
  cache::Filter narrowed = filter;
  narrowed.deterministic_only = filter.deterministic_only || request.arithmetic.deterministic;
  return narrowed;
}

bool Selector::admits(const Request& request, int64_t workspace_bytes, bool deterministic) const {
  const cache::Filter allowed = filter_of(request);
  return workspace_bytes <= allowed.workspace_limit && (deterministic || !allowed.deterministic_only);
}

std::vector<Selection> Selector::stored(const Request& request) const {
  std::vector<Selection> result;
  for (const cache::Choice& candidate : winners.all(request.key(), filter_of(request))) {
    const std::optional<Choice> choice = readable(candidate.algorithm, candidate.config);
    if (!choice || catalogue.refusal(request, target, *choice)) continue;
    const Program program = catalogue.program(request, target, *choice);
    if (!admits(request, program.workspace_bytes, program.deterministic)) continue;
    result.push_back({*choice, candidate.seconds, describe_source(candidate)});
  }
  return result;
}

std::vector<Selection> Selector::bundled(const Request& request) const {
  std::vector<Selection> result;
  for (const BundledChoice& choice : bundles.find(request.key())) {
    const execution::BundledVariant& variant = choice.variant();
    if (!admits(request, variant.workspace_bytes, variant.deterministic)) continue;
    const std::optional<Choice> named = readable(variant.algorithm, variant.config);
    if (!named) continue;
    result.push_back({*named, variant.seconds, fmt::format("bundle {}", choice.bundle->path()), choice});
  }
  return result;
}

std::vector<Selection> Selector::estimated(const Request& request, size_t count) const {
  std::vector<Selection> result;
  for (const Candidate& candidate : catalogue.candidates(request, target, figures).ranked) {
    if (result.size() == count) break;
    const Program program = catalogue.program(request, target, candidate.choice);
    if (!admits(request, program.workspace_bytes, program.deterministic)) continue;
    result.push_back({candidate.choice, candidate.estimate.seconds, "estimate"});
  }
  return result;
}

}  // namespace kiln
