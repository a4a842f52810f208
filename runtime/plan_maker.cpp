#include "plan_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/execution/target.h"
#include "kiln/execution/user_code_error.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/roofline.h"
#include "kiln/runtime/pack_check.h"
#include "kiln/runtime/records.h"
#include "kiln/runtime/settings.h"
#include "order_explained.h"

namespace kiln {
namespace {

// How many predictions to try to compile where nothing usable is stored, before giving up.
constexpr size_t fallback_attempts = 8;
// Seconds of a call that a compile would rather be waited for than an open kernel that was made for another size.
constexpr double worth_a_compile = 0.05;
constexpr size_t explained_estimates = 10;
constexpr size_t listed_withheld = 10;

std::string describe(const device::ContextHandle& context, const KernelSupply& kernels) {
  const device::DeviceInfo& info = context.device().info();
  return fmt::format("{}, compute capability {}.{}, {} SMs; {}; {}", info.name, info.cc_major, info.cc_minor, info.sms,
                     context.driver().description(), kernels.describe_compiler());
}

std::vector<std::string> names_of(const std::vector<Operand>& operands) {
  std::vector<std::string> names;
  for (const Operand& operand : operands) names.push_back(operand.name);
  return names;
}

ExplainedCandidate explained(const Selection& selection) {
  return {selection.choice.algorithm, selection.choice.config.print(), selection.seconds, selection.source};
}

bool have_same_choices(const Candidates& a, const Candidates& b) {
  return std::equal(a.ranked.begin(), a.ranked.end(), b.ranked.begin(), b.ranked.end(),
                    [](const Candidate& one, const Candidate& other) { return one.choice == other.choice; });
}

// Names the permissions without which the request would have the same candidates.
std::vector<std::string> unused_permissions(const Selector& selector, const Candidates& candidates) {
  const Request& request = *selector.variants.request();
  std::vector<std::string> result;
  const auto look_at = [&](const char* name, bool Arithmetic::*permission) {
    if (!(request.arithmetic.*permission)) return;
    Request without = request;
    without.arithmetic.*permission = false;
    const Candidates others =
        selector.variants.catalogue().candidates(without, selector.variants.target(), selector.figures);
    if (have_same_choices(candidates, others)) result.emplace_back(name);
  };
  look_at("tf32", &Arithmetic::tf32);
  look_at("fast", &Arithmetic::fast);
  return result;
}

std::string list_of(const std::vector<Withheld>& withheld) {
  std::string text;
  for (const Withheld& one : withheld) {
    text += fmt::format("\n  {} {}: {}", one.choice.algorithm, one.choice.config.print(), one.reason);
  }
  return text;
}

// Lists the variants that would serve the request and may not be used, a line each.
std::string list_of_unused(const Selector& selector) {
  std::string text;
  for (const NotBelieved& one : selector.not_believed()) {
    text += fmt::format("\n  {} {}: {}: {}", one.algorithm, one.config, one.pack, one.reason);
  }
  return text + list_of(selector.withheld(selector.candidates(), listed_withheld));
}

Environment with_user_templates(Environment environment, const std::vector<std::string>& folders) {
  environment.user_templates.insert(environment.user_templates.begin(), folders.begin(), folders.end());
  return environment;
}

}  // namespace

PlanMaker::PlanMaker(const ContextOptions& options, const Environment& environment,
                     std::shared_ptr<const device::ContextHandle> context,
                     const std::function<void(const std::string&)>& announce)
    : announce_(announce),
      context_(std::move(context)),
      kernels_(options, environment, *context_, announce),
      catalogue_(catalogue_of(with_user_templates(environment, options.user_templates))),
      figures_(execution::figures_of(context_->device().info())),
      device_id_(context_->device().info().id()),
      description_(describe(*context_, kernels_)),
      winners_(device_entry(context_->device().info()), is_current(catalogue_), announce),
      neighbours_(winners_, catalogue_, figures_),
      filter_{options.workspace_limit, options.deterministic},
      permissions_{options.allow_failed_variants, options.allow_unchecked_templates},
      locked_(options.locked) {}

bool PlanMaker::concerns_variant(const Error& error) {
  switch (error.code()) {
    case ErrorCode::compile_failed:
    case ErrorCode::unsupported:
    case ErrorCode::driver_error:
    case ErrorCode::missing_library:  // it is in no bundle, and there is no NVRTC
    case ErrorCode::parse_error:      // its bundle is damaged
    case ErrorCode::io_error:
      return true;
    default:
      return false;
  }
}

void PlanMaker::take_from(const cache::Database& database) {
  winners_.load(database);
  const std::optional<Calibration> known = calibration_in(database, device_id_);
  if (known) figures_.calibration = *known;
  calibrated_ = known.has_value();
}

void PlanMaker::learn(const cache::Database& database, const std::string& key) {
  winners_.refresh(database, key);
  neighbours_.learn(key);
}

// The variants that can be generated, best first by their estimates and by times of other sizes of the layer.
Candidates PlanMaker::candidates(const Selector& selector) {
  return neighbours_.ranked(selector.variants, selector.candidates());
}

Selector PlanMaker::selector(Variants& variants) const {
  return {variants, winners_, kernels_.bundles(), figures_, filter_, permissions_};
}

// A pack with one such time has many: the first is said.
void PlanMaker::announce_not_believed(const Selector& selector) {
  for (const NotBelieved& one : selector.not_believed()) {
    {
      const std::lock_guard lock(mutex_);
      if (!doubted_.insert(one.pack).second) continue;
    }
    announce_(one.text(*selector.variants.request()) +
              "; further such records of this pack are not announced, and `kiln explain` shows them");
  }
}

std::shared_ptr<const LoadedPlan> PlanMaker::make(const KeyedRequest& request) {
  Variants variants = this->variants(request);
  const Selector selector = this->selector(variants);
  announce_not_believed(selector);
  return locked_ ? make_locked(selector) : make_exact(selector, std::nullopt);
}

// `candidates`: those of the selector, where they are known already.
std::shared_ptr<const LoadedPlan> PlanMaker::make_exact(const Selector& selector,
                                                        std::optional<Candidates> candidates) {
  const KeyedRequest& request = selector.variants.request();
  std::shared_ptr<const LoadedPlan> plan;
  std::exception_ptr first_failure;
  const Visit attempt = [&](const Selection& selection) {
    try {
      plan = load(request, selection);
      return true;
    } catch (const execution::UserCodeError&) {
      throw;  // no other variant would compile either
    } catch (const Error& error) {
      if (!concerns_variant(error)) throw;
      // Where nothing can be compiled, that is said of the request in the end.
      if (!first_failure && error.code() != ErrorCode::missing_library) first_failure = std::current_exception();
      return false;
    }
  };
  const auto attempt_one_of = [&](const std::vector<Selection>& selections) {
    return std::any_of(selections.begin(), selections.end(), attempt);
  };
  if (selector.visit_named(attempt)) return plan;
  const bool may_compile = kernels_.no_compiler().empty();
  if (may_compile && !candidates) candidates = this->candidates(selector);
  if (may_compile && selector.visit_estimated(*candidates, fallback_attempts, attempt)) {
    estimated_.add(request.key(), plan->choice);
    return plan;
  }
  // Variants that packs warn of, where the alternative is an error: else a pack could take a layer away.
  if (attempt_one_of(selector.doubted())) return plan;
  if (candidates && attempt_one_of(selector.doubted(*candidates, fallback_attempts))) return plan;
  // Where nothing can be compiled, bundles may have open kernels.
  if (!may_compile && (plan = make_open(selector))) return plan;
  if (first_failure) std::rethrow_exception(first_failure);
  fail(selector);
}

// Whether an open kernel may serve before the request's own plan, which may have other bits unless both add in the
// order of all batches.
bool PlanMaker::may_take_open_kernels(const Request& request) const {
  const bool bits_may_change = !request.arithmetic.deterministic && !filter_.deterministic_only;
  return !locked_ && (bits_may_change || request.batch_invariant);
}

std::shared_ptr<const LoadedPlan> PlanMaker::make_at_once(const KeyedRequest& request) {
  if (!may_take_open_kernels(*request)) return make(request);
  Variants variants = this->variants(request);
  const Selector selector = this->selector(variants);
  announce_not_believed(selector);
  const bool may_compile = kernels_.no_compiler().empty();
  std::shared_ptr<const LoadedPlan> plan;
  const Visit attempt = [&](const Selection& selection) {
    try {
      plan = load(request, selection, false);
      return true;  // also where it would have to be compiled: what is behind it is not as good
    } catch (const Error& error) {
      if (!concerns_variant(error)) throw;
      return false;
    }
  };
  // Nothing but an open kernel stands in for what is named: its own plan follows in the background.
  const bool is_named = selector.visit_named(attempt);
  if (!is_named) selector.visit_estimated(chosen_before(request, variants), 1, attempt);
  if (plan) return plan;
  const UseOpenKernel take = [&](const FoundKernel& found) {
    const bool is_slow = found.selection.seconds > worth_a_compile;
    if (!is_slow || !may_compile) plan = load_open(request, found);
    return plan != nullptr || (is_slow && may_compile);
  };
  // Before the search for the best estimate, which takes longer than all else here.
  if (visit_known_open_kernels(selector, take) && plan) return plan;
  std::optional<Candidates> candidates;
  if (may_compile && !is_named) selector.visit_estimated(candidates.emplace(this->candidates(selector)), 1, attempt);
  if (!plan) visit_stored_open_kernels(selector, take);
  if (plan) return plan;
  try {
    return make_exact(selector, std::move(candidates));
  } catch (const Error& error) {
    if (!concerns_variant(error)) throw;
    plan = make_open(selector);  // however slow
    if (!plan) throw;
    return plan;
  }
}

// The candidate that make() has found to be the best; none where it was not asked.
Candidates PlanMaker::chosen_before(const KeyedRequest& request, Variants& variants) const {
  const std::optional<Choice> choice = estimated_.find(request.key());
  return choice ? variants.candidates_among({&*choice, 1}, figures_) : Candidates();
}

// Loads the first variant that is named, or nothing: another variant would be a surprise.
std::shared_ptr<const LoadedPlan> PlanMaker::make_locked(const Selector& selector) {
  const KeyedRequest& request = selector.variants.request();
  std::optional<Selection> chosen;
  const bool is_named = selector.visit_named([&](const Selection& selection) {
    chosen = selection;
    return true;
  });
  if (!is_named) {
    if (const std::vector<Selection> doubted = selector.doubted(); !doubted.empty()) chosen = doubted.front();
  }
  if (chosen) return load(request, *chosen);
  if (lacks_user_text(*request)) throw missing_user_text(*request);
  std::string stale;
  if (const int64_t count = winners_.stale(request.key()); count > 0) {
    stale = fmt::format(" ({} variants in them are of algorithms that have changed)", count);
  }
  throw Error(
      ErrorCode::unsupported,
      fmt::format("no pack or bundle names a variant of {} for {} that may be used{}, and this Context is locked "
                  "to them{}",
                  request.key(), device_id_, stale, list_of(selector.withheld_of_bundles()) + list_of_unused(selector)),
      "tune it and export it to the pack, or leave ContextOptions::locked off");
}

// Nothing was there to be tried: says why.
void PlanMaker::fail(const Selector& selector) const {
  const KeyedRequest& request = selector.variants.request();
  if (!kernels_.no_compiler().empty()) {
    if (const std::string unused = list_of(selector.withheld_of_bundles()); !unused.empty()) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("nothing is left that may serve {}, and nothing can be compiled here ({}):{}",
                              request.key(), kernels_.no_compiler(), unused),
                  "install NVRTC, or see ContextOptions::allow_failed_variants, deterministic and workspace_limit");
    }
    throw Error(ErrorCode::missing_library,
                fmt::format("{} is not in {} for {}, and nothing can be compiled here: {}", request.key(),
                            kernels_.bundles().describe(), device_id_, kernels_.no_compiler()),
                "add the request to the bundle (`kiln bundle`), or install NVRTC");
  }
  if (const std::string unused = list_of_unused(selector); !unused.empty()) {
    throw Error(ErrorCode::unsupported, fmt::format("nothing is left that may serve {}:{}", request.key(), unused),
                "tune it (`kiln tune`), or see ContextOptions::allow_failed_variants and allow_unchecked_templates");
  }
  (void)selector.variants.heuristic(figures_);  // throws with the refusals, if there are any
  throw Error(
      ErrorCode::unsupported,
      fmt::format("no {}variant of {} needs at most {} bytes of workspace",
                  filter_.deterministic_only || request->arithmetic.deterministic ? "bitwise reproducible " : "",
                  request.key(), filter_.workspace_limit),
      "raise ContextOptions::workspace_limit");
}

// Null where the variant would have to be compiled and may not be.
std::shared_ptr<const LoadedPlan> PlanMaker::load(const KeyedRequest& request, const Selection& selection,
                                                  bool may_compile) {
  const Algorithm* const algorithm = catalogue_.find(selection.choice.algorithm);
  const auto made = [&](const execution::CompiledProgram& compiled, std::string program) {
    auto plan = std::make_shared<LoadedPlan>(request, selection.choice, selection.source, std::move(program),
                                             execution::Executable(context_, compiled, names_of(request->operands)));
    plan->open = algorithm != nullptr && algorithm->open();  // records and packs may name one
    return plan;
  };
  if (const std::optional<BundledChoice>& bundled = selection.bundled) {
    return made(bundled->bundle->load(bundled->index), bundled->variant().program);
  }
  const auto compiled = may_compile ? kernels_.compile(*selection.program) : kernels_.find(*selection.program);
  return compiled ? made(*compiled, selection.program->digest()) : nullptr;
}

// Null where the device refuses it.
std::shared_ptr<const LoadedPlan> PlanMaker::load_open(const KeyedRequest& request, const FoundKernel& found) try {
  auto plan = std::make_shared<LoadedPlan>(
      request, found.selection.choice, found.selection.source, found.compiled.program.digest_with(found.kernel->codes),
      execution::Executable(context_, found.compiled, names_of(request->operands)));
  plan->open = true;
  return plan;
} catch (const Error& error) {
  if (!concerns_variant(error)) throw;
  return nullptr;
}

std::optional<std::string> PlanMaker::known_failure_of(const LoadedPlan& plan) const {
  if (permissions_.failed_variants) return std::nullopt;
  Variants variants = this->variants(plan.request);
  if (variants.refusal(plan.choice)) return std::nullopt;  // a program of another version of the library
  LazyProgram program(variants, plan.choice);
  return known_failure(winners_, plan.key, plan.choice, program);
}

bool PlanMaker::is_tuned(const KeyedRequest& request) const {
  Variants variants = this->variants(request);
  return selector(variants).is_timed();
}

Explanation PlanMaker::explain(const KeyedRequest& request) {
  winners_.check_packs();  // who asks why wants to hear of every bad line
  Variants variants = this->variants(request);
  const Selector selector = this->selector(variants);
  const Candidates plain = selector.candidates();
  const Candidates candidates = locked_ ? plain : neighbours_.ranked(variants, plain);
  Explanation result;
  result.request = *request;
  result.device = device_id_;
  result.calibrated = calibrated_;
  result.calibration = figures_.calibration.print();
  result.no_compiler = kernels_.no_compiler();
  const Roofline bound = roofline(*request, kernels_.target().arch, figures_);
  result.roofline_seconds = bound.seconds();
  result.roofline_of = bound.arithmetic() > bound.traffic() ? to_string(bound.math) : "memory traffic";
  result.unused_permissions = unused_permissions(selector, plain);
  result.order_of_sums = explained_order(selector, plain);
  const auto why_missing = [&](const Selection& selection) {
    return selection.bundled ? std::nullopt : kernels_.why_missing(*selection.program);
  };
  const std::vector<Selection> named = selector.named();
  for (const Selection& selection : named) {
    if (const auto missing = why_missing(selection))
      result.withheld.push_back({selection.choice.algorithm, selection.choice.config.print(), *missing});
    else
      result.stored.push_back(explained(selection));
  }
  // Locked to what cannot be had, a Context serves nothing in its place.
  const bool locked_out = locked_ && !named.empty() && why_missing(named.front());
  for (const Selection& selection : selector.estimated(candidates, explained_estimates)) {
    result.estimated.push_back(explained(selection));
  }
  for (const std::vector<Withheld>& some :
       {selector.withheld_of_bundles(), selector.withheld(candidates, listed_withheld)}) {
    for (const Withheld& one : some)
      result.withheld.push_back({one.choice.algorithm, one.choice.config.print(), one.reason});
  }
  for (const NotBelieved& one : selector.not_believed()) {
    result.not_believed.push_back({one.algorithm, one.config, fmt::format("{}: {}", one.pack, one.reason)});
  }
  for (const Refusal& refusal : candidates.refused) result.refused.push_back({refusal.algorithm, refusal.reason});
  const bool may_estimate = kernels_.no_compiler().empty() && !locked_;
  if (!result.stored.empty() && !locked_out)
    result.chosen = result.stored.front();
  else if (!result.estimated.empty() && may_estimate)
    result.chosen = result.estimated.front();
  if (result.chosen || locked_out) return result;
  // As make() does.
  std::vector<Selection> doubted = selector.doubted();
  if (may_estimate) {
    for (Selection& selection : selector.doubted(candidates, 1)) doubted.push_back(std::move(selection));
  }
  const auto served = std::find_if(doubted.begin(), doubted.end(), [&](const Selection& s) { return !why_missing(s); });
  if (served != doubted.end()) result.chosen = explained(*served);
  if (result.chosen || locked_ || result.no_compiler.empty()) return result;
  visit_stored_open_kernels(selector, [&](const FoundKernel& found) {
    result.chosen = explained(found.selection);
    return true;
  });
  return result;
}

}  // namespace kiln
