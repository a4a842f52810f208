#include "kiln/runtime/bundling.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "common_cards.h"
#include "kiln/base/error.h"
#include "kiln/base/parallel.h"
#include "kiln/cache/machine_clock.h"
#include "kiln/cache/pack.h"
#include "kiln/device/arch.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/target.h"
#include "kiln/generator/operation.h"
#include "kiln/runtime/open_line.h"
#include "kiln/runtime/open_line_kernels.h"
#include "kiln/runtime/pack_check.h"
#include "neighbours.h"
#include "selection.h"

namespace kiln {
namespace {

std::vector<cache::DeviceEntry> devices_of(const Arch& arch, bool emulated, const cache::Database& database,
                                           const std::vector<std::string>& packs) {
  std::map<std::string, cache::DeviceEntry> found;
  const auto add = [&](cache::DeviceEntry device) {
    if (device.cc_major != arch.major || device.cc_minor != arch.minor) return;
    const auto clock = cache::machine_clock_of(device.name);
    if (clock && !emulated) {  // stands for the card that it models
      device.id = std::string(clock->card);
      device.name = device.id;
      device.emulated = false;
    }
    if (device.emulated == emulated) found.emplace(device.id, device);
  };
  for (const cache::DeviceEntry& device : database.devices()) add(device);
  for (const std::string& pack : packs) {
    for (const cache::DeviceEntry& device : cache::read_pack_file(pack).pack.devices) add(device);
  }
  std::vector<cache::DeviceEntry> devices;
  for (auto& [id, device] : found) devices.push_back(std::move(device));
  return devices;
}

/// Records stored for one architecture: an index of winners for each of its devices.
class StoredWinners {
 public:
  StoredWinners(const Target& target, const Catalogue& catalogue, const cache::Database& database,
                const std::vector<std::string>& packs, const BundleOptions& options)
      : target_(target),
        catalogue_(catalogue),
        figures_(common_figures(target.arch)),
        filter_(options.filter),
        permissions_{.unchecked_templates = options.unchecked_templates},
        emulated_(options.emulated) {
    std::vector<cache::DeviceEntry> devices = devices_of(target.arch, options.emulated, database, packs);
    if (devices.empty()) {  // nothing is known of the architecture
      only_the_other_kind_ = !devices_of(target.arch, !options.emulated, database, packs).empty();
      devices.push_back({target.arch.name(), "", target.arch.major, target.arch.minor, 0, options.emulated});
    }
    for (const cache::DeviceEntry& device : devices) {
      winners_.push_back(std::make_unique<cache::Winners>(device, is_current(catalogue)));
      winners_.back()->load(database);
      for (const std::string& pack : packs) winners_.back()->load_pack(pack);
      neighbours_.push_back(std::make_unique<Neighbours>(*winners_.back(), catalogue_, figures_));
    }
  }

  /// The winner of each device that has timed the request; where none has, what was timed elsewhere or is predicted.
  std::vector<BundleChoice> choices(const KeyedRequest& request) const {
    std::vector<BundleChoice> timed, predicted, others;
    Variants variants = catalogue_.on(request, target_);
    for (const auto& winners : winners_) {
      const std::vector<Selection> stored = selector(variants, *winners).stored();
      if (stored.empty()) continue;
      const Selection& best = stored.front();
      BundleChoice choice{*request,    target_,     best.choice,          best.seconds,
                          best.source, best.device, winners->device().sms};
      if (best.basis == Basis::predicted) {
        if (!has_one_of(predicted, best.device)) predicted.push_back(std::move(choice));
      } else {
        (best.device == winners->device().id ? timed : others).push_back(std::move(choice));
      }
    }
    if (!timed.empty()) return timed;
    if (!others.empty()) return {others.front()};
    return predicted;
  }

  /// The best estimate, corrected by other sizes, that the filter admits and that no device of the architecture has
  /// reason to withhold.
  std::optional<BundleChoice> estimated(const KeyedRequest& request) const {
    Variants variants = catalogue_.on(request, target_);
    const Candidates candidates = best_first(variants);
    for (const Candidate& candidate : candidates.ranked) {
      if (withheld(variants, candidate.choice) || !admits(variants, candidate.choice)) continue;
      return BundleChoice{*request, target_, candidate.choice, candidate.estimate.seconds, candidates.basis, {}, 0};
    }
    return std::nullopt;
  }

  /// Why there is nothing for `request`.
  std::string why_nothing(const KeyedRequest& request, bool untuned) const {
    if (lacks_user_text(*request)) return missing_user_text(*request).what();
    Variants variants = catalogue_.on(request, target_);
    const Candidates candidates = variants.candidates(figures_);
    if (candidates.ranked.empty()) {
      std::string reasons;
      for (const Refusal& refusal : candidates.refused)
        reasons += fmt::format("; {}: {}", refusal.algorithm, refusal.reason);
      return "no algorithm serves it" + reasons;
    }
    for (const Candidate& candidate : candidates.ranked) {
      const auto reason = withheld(variants, candidate.choice);
      if (!reason || !admits(variants, candidate.choice)) continue;
      return fmt::format("nothing that may be used: {} {}: {}", candidate.choice.algorithm,
                         candidate.choice.config.print(), *reason);
    }
    if (untuned) return "nothing that serves it is within the limits";
    if (only_the_other_kind_) {
      return emulated_ ? "nothing is stored for it of an emulated device, only of a real one"
                       : "nothing is stored for it of a real device, only of the emulated one";
    }
    return "nothing is stored for it within the limits";
  }

  /// Adds the impossible claims that packs make about `request`.
  void add_not_believed(const KeyedRequest& request, std::set<std::string>& lines) const {
    Variants variants = catalogue_.on(request, target_);
    for (const auto& winners : winners_) {
      for (const NotBelieved& one : selector(variants, *winners).not_believed()) lines.insert(one.text(*request));
    }
  }

 private:
  // By what the first device that knows other sizes says of estimates.
  Candidates best_first(Variants& variants) const {
    Candidates candidates = variants.candidates(figures_);
    for (const auto& neighbours : neighbours_) {
      candidates = neighbours->ranked(variants, std::move(candidates));
      if (candidates.basis != Candidates().basis) break;
    }
    return candidates;
  }

  Selector selector(Variants& variants, const cache::Winners& winners) const {
    return {variants, winners, no_bundles_, figures_, filter_, permissions_};
  }

  bool admits(Variants& variants, const Choice& choice) const {
    return selector(variants, *winners_.front()).admits(choice);
  }

  std::optional<std::string> withheld(Variants& variants, const Choice& choice) const {
    for (const auto& winners : winners_) {
      if (auto reason = selector(variants, *winners).must_not_use(choice)) return reason;
    }
    return std::nullopt;
  }

  // Two real cards of one kind have the prediction of one emulated device.
  static bool has_one_of(std::span<const BundleChoice> choices, const std::string& device) {
    return std::any_of(choices.begin(), choices.end(), [&](const BundleChoice& one) { return one.device == device; });
  }

  Target target_;
  const Catalogue& catalogue_;
  Bundles no_bundles_{{}, {}, {}};
  DeviceFigures figures_;
  cache::Filter filter_;
  Permissions permissions_;
  bool emulated_;
  bool only_the_other_kind_ = false;  // real devices where emulated ones are wanted, or emulated where real ones are
  std::vector<std::unique_ptr<cache::Winners>> winners_;
  std::vector<std::unique_ptr<Neighbours>> neighbours_;  // of each of `winners_`
};

execution::BundledVariant described(const BundleChoice& choice, const Program& program, bool emulated) {
  execution::BundledVariant variant;
  variant.open_line = choice.open_line;
  if (choice.open_line.empty()) variant.request = choice.request.key();  // an open kernel is of no request
  variant.arch = device::real_arch(choice.target.arch.major, choice.target.arch.minor);
  variant.emulated = emulated;
  variant.algorithm = choice.choice.algorithm;
  variant.config = choice.choice.config.print();
  variant.seconds = choice.seconds;
  variant.device = choice.device;
  variant.sms = choice.sms;
  variant.workspace_bytes = program.workspace_bytes;
  variant.deterministic = program.deterministic;
  variant.program = program.digest();
  for (const Source& source : program.sources) variant.sources.push_back(execution::code_digest(source));
  return variant;
}

}  // namespace

BundlePlan plan_bundle(std::span<const Request> requests, const Catalogue& catalogue, const device::Nvrtc& nvrtc,
                       const cache::Database& database, const std::vector<std::string>& packs,
                       const BundleOptions& options) {
  std::vector<std::pair<Target, StoredWinners>> stored;
  for (const Arch& arch : options.archs) {
    const Target target = execution::target_for(arch.major, arch.minor, nvrtc);
    stored.emplace_back(target, StoredWinners(target, catalogue, database, packs, options));
  }
  BundlePlan plan;
  std::set<std::string> not_believed;
  for (const KeyedRequest request : requests) {
    for (const auto& [target, winners] : stored) {
      winners.add_not_believed(request, not_believed);
      std::vector<BundleChoice> choices = winners.choices(request);
      if (choices.empty() && options.untuned) {
        if (auto estimate = winners.estimated(request)) choices.push_back(*estimate);
      }
      if (choices.empty()) {
        plan.gaps.push_back({request.key(), target.arch.name(), winners.why_nothing(request, options.untuned)});
      }
      for (BundleChoice& choice : choices) plan.choices.push_back(std::move(choice));
    }
  }
  plan.not_believed.assign(not_believed.begin(), not_believed.end());
  return plan;
}

BundlePlan plan_open_kernels(std::span<const std::string> lines, const Catalogue& catalogue, const device::Nvrtc& nvrtc,
                             const BundleOptions& options) {
  BundlePlan plan;
  for (const Arch& arch : options.archs) {
    const Target target = execution::target_for(arch.major, arch.minor, nvrtc);
    OpenLineChooser chooser(catalogue, target, common_figures(target.arch), options.filter);
    for (const std::string& line : lines) {
      (void)parse_open_line(line);  // throws: what is no open extent is no gap
      OpenLineKernels chosen;
      try {
        chosen = chooser.choose(line);
      } catch (const Error& error) {
        plan.gaps.push_back({line, target.arch.name(), error.message()});
        continue;
      }
      if (const auto remark = chosen.remark(); remark && arch == options.archs.front()) plan.remarks.push_back(*remark);
      if (!chosen.why_none.empty()) plan.gaps.push_back({line, target.arch.name(), chosen.why_none});
      for (const OpenLineKernel& kernel : chosen.kernels) {
        if (kernel.is_covered) continue;
        plan.choices.push_back({kernel.request, target, kernel.choice, kernel.seconds, "open kernel", {}, 0, line});
      }
    }
  }
  return plan;
}

std::vector<execution::BundleEntry> compile_bundle(const BundlePlan& plan, const Catalogue& catalogue,
                                                   const device::Nvrtc& nvrtc, bool emulated,
                                                   store::FileStore* kernels) {
  std::vector<execution::BundleEntry> entries(plan.choices.size());
  std::map<std::string, std::vector<size_t>> by_program;  // by what execution::compile() would produce
  std::vector<const std::vector<size_t>*> distinct;
  for (size_t i = 0; i < entries.size(); ++i) {
    const BundleChoice& choice = plan.choices[i];
    const Program program = catalogue.program(choice.request, choice.target, choice.choice);
    entries[i].variant = described(choice, program, emulated);
    entries[i].compiled.program = program;
    by_program[execution::compile_digest(nvrtc, program, choice.target)].push_back(i);
  }
  for (const auto& [digest, users] : by_program) distinct.push_back(&users);
  for_each_index(distinct.size(), [&](size_t k) {
    const std::vector<size_t>& users = *distinct[k];
    const execution::CompiledProgram compiled =
        execution::compile(nvrtc, entries[users.front()].compiled.program, plan.choices[users.front()].target, kernels);
    for (const size_t i : users) entries[i].compiled = compiled;
  });
  return entries;
}

}  // namespace kiln
