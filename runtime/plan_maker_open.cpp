// Open kernels: which ones are at hand for a request, and those that are made for further sizes.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/base/parallel.h"
#include "plan_maker.h"

namespace kiln {
namespace {

constexpr size_t open_attempts = 8;   // of open kernels: each takes a look into a store, or a compile that may fail
constexpr double suits_within = 1.3;  // that an open kernel may take, in times of the best one's estimate

Selection of_open_kernel(Selection estimate) {
  estimate.source = "open kernel";
  return estimate;
}

}  // namespace

// Shows `visit` the selector, then that of memory which is aligned to its elements alone. Returns whether it stopped.
bool PlanMaker::visit_alignments(const Selector& selector, const std::function<bool(const Selector&)>& visit) const {
  if (visit(selector)) return true;
  const Request of_unaligned = of_any_alignment(*selector.variants.request());
  if (of_unaligned == *selector.variants.request()) return false;
  Variants unaligned = variants(of_unaligned);
  return visit(this->selector(unaligned));
}

// Shows `use` the kernels at hand, best estimate first. Returns whether it stopped; so do those below.
bool PlanMaker::visit_known_open_kernels(const Selector& selector, const UseOpenKernel& use) const {
  return visit_alignments(selector, [&](const Selector& one) { return visit_known_of(one, use); });
}

bool PlanMaker::visit_known_of(const Selector& selector, const UseOpenKernel& use) const {
  const KnownOpenKernels::Kernels known = open_kernels_.of(*selector.variants.request());
  std::vector<Choice> choices;
  for (const auto& kernel : known) {
    if (std::ranges::find(choices, kernel->choice) == choices.end()) choices.push_back(kernel->choice);
  }
  const Candidates candidates = selector.variants.candidates_among(choices, figures_);
  return selector.visit_estimated(candidates, choices.size(), [&](const Selection& selection) {
    for (const auto& kernel : known) {
      if (kernel->choice != selection.choice) continue;
      if (auto compiled = kernel->compiled(*selection.program))
        return use({of_open_kernel(selection), std::move(*compiled), kernel});
    }
    return false;
  });
}

// Shows `use` the open kernels that bundles or the store have. A store is asked for each by a digest of its source.
bool PlanMaker::visit_stored_open_kernels(const Selector& selector, const UseOpenKernel& use) {
  const size_t attempts = !kernels_.bundles().empty() ? std::numeric_limits<size_t>::max() : open_attempts;
  return visit_alignments(selector, [&](const Selector& one) {
    return visit_open_kernels(one, one.variants.open_candidates(figures_), attempts, false, use);
  });
}

// Shows `use` those among the best `attempts` of `candidates`, open kernels, that there are; known from now on.
bool PlanMaker::visit_open_kernels(const Selector& selector, const Candidates& candidates, size_t attempts,
                                   bool may_compile, const UseOpenKernel& use) {
  return selector.visit_estimated(candidates, attempts, [&](const Selection& selection) {
    if (may_compile && has_failed(*selection.program)) return false;
    std::optional<execution::CompiledProgram> compiled;
    try {
      compiled = may_compile ? kernels_.compile(*selection.program) : kernels_.find(*selection.program);
    } catch (const Error& error) {
      if (!concerns_variant(error)) throw;
      if (may_compile) note_failure(*selection.program);
    }
    if (!compiled) return false;
    compiled->program = *selection.program;  // a bundle leaves the texts out
    auto kernel = std::make_shared<const OpenKernel>(selection.choice, *compiled);
    open_kernels_.add(*selector.variants.request(), kernel);
    return use({of_open_kernel(selection), std::move(*compiled), std::move(kernel)});
  });
}

// Plan of the best open kernel that need not be compiled. Null where there is none.
std::shared_ptr<const LoadedPlan> PlanMaker::make_open(const Selector& selector) {
  std::shared_ptr<const LoadedPlan> plan;
  const UseOpenKernel take = [&](const FoundKernel& found) {
    plan = load_open(selector.variants.request(), found);
    return plan != nullptr;
  };
  if (!visit_stored_open_kernels(selector, take)) visit_known_open_kernels(selector, take);
  return plan;
}

void PlanMaker::know_open_kernel(const KeyedRequest& request) {
  if (!may_take_open_kernels(*request)) return;
  const bool may_compile = kernels_.no_compiler().empty();
  const UseOpenKernel one_is_enough = [](const FoundKernel&) { return true; };
  try {
    // First the one that sizes of all kinds can take.
    Variants unaligned = variants(of_any_alignment(*request));
    const Selector of_unaligned = selector(unaligned);
    if (!visit_known_of(of_unaligned, one_is_enough))
      visit_open_kernels(of_unaligned, unaligned.open_candidates(figures_), open_attempts, may_compile, one_is_enough);
    Variants variants = this->variants(request);
    const Selector selector = this->selector(variants);
    const Candidates candidates = variants.open_candidates(figures_);
    double best = std::numeric_limits<double>::infinity();
    selector.visit_estimated(candidates, open_attempts, [&](const Selection& selection) {
      if (has_failed(*selection.program)) return false;
      best = selection.seconds;
      return true;
    });
    const bool suits = visit_known_open_kernels(
        selector, [&](const FoundKernel& known) { return known.selection.seconds <= suits_within * best; });
    if (!suits) visit_open_kernels(selector, candidates, open_attempts, may_compile, one_is_enough);
  } catch (const std::exception& error) {
    announce_(fmt::format("{} has no open kernel for further sizes: {}", request.key(), error.what()));
  }
}

void PlanMaker::prepare_open(std::span<const std::string> lines, const OpenLineChooser::Demand& demand) {
  OpenLineChooser chooser(catalogue_, kernels_.target(), figures_, filter_, demand);
  constexpr const char* exact = "prepare the sizes that the application has, by Context::prepare()";
  std::vector<std::pair<std::string, OpenLineKernel>> kernels;
  for (const std::string& line : lines) {
    OpenLineKernels chosen = chooser.choose(line);
    if (!chosen.why_none.empty()) {
      throw Error(ErrorCode::unsupported, fmt::format("'{}' has no open kernels: {}", line, chosen.why_none), exact);
    }
    if (!may_take_open_kernels(chosen.kernels.front().request)) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("calls of '{}' take no open kernels: {}", line,
                              locked_ ? "the Context is locked to packs and bundles"
                                      : "with `deterministic` no later plan may change the bits"),
                  locked_ ? "leave ContextOptions::locked off, or put the sizes into the packs and bundles" : exact);
    }
    if (const auto remark = chosen.remark()) announce_(*remark);
    for (OpenLineKernel& kernel : chosen.kernels) kernels.emplace_back(line, std::move(kernel));
  }
  for_each_index(kernels.size(), [&](size_t i) {
    const auto& [line, one] = kernels[i];
    try {
      open_kernels_.keep(one.sizes, open_kernel(one));
    } catch (const Error& error) {
      const bool is_missing = error.code() == ErrorCode::missing_library;
      throw Error(error.code(), fmt::format("an open kernel of '{}': {}", line, error.message()),
                  is_missing ? "add the line to the bundle (`kiln bundle --open`), or install NVRTC" : error.hint());
    }
  });
}

// The kernel, compiled if none is known that has its sources.
std::shared_ptr<const OpenKernel> PlanMaker::open_kernel(const OpenLineKernel& chosen) {
  const Program program = catalogue_.program(chosen.request, kernels_.target(), chosen.choice);
  for (const auto& known : open_kernels_.of(chosen.request)) {
    if (known->choice == chosen.choice && known->compiled(program)) return known;
  }
  execution::CompiledProgram compiled = kernels_.compile(program);
  compiled.program = program;  // a bundle leaves the texts out
  return std::make_shared<const OpenKernel>(chosen.choice, std::move(compiled));
}

bool PlanMaker::has_failed(const Program& open) {
  const std::lock_guard lock(mutex_);
  return !open.sources.empty() && failed_.contains(digest_of(open.sources.front().code));
}

// Without this, every further size of a layer would compile it again.
void PlanMaker::note_failure(const Program& open) {
  constexpr size_t most = 4096;
  const std::lock_guard lock(mutex_);
  if (!open.sources.empty() && failed_.size() < most) failed_.insert(digest_of(open.sources.front().code));
}

}  // namespace kiln
