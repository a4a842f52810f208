// PlanMaker: from a request to a loaded plan.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "kernel_supply.h"
#include "kiln/base/environment.h"
#include "kiln/cache/database.h"
#include "kiln/cache/winners.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/generator/catalogue.h"
#include "kiln/runtime/open_line_kernels.h"
#include "known_open_kernels.h"
#include "loaded_plan.h"
#include "neighbours.h"
#include "recent_choices.h"
#include "selection.h"

namespace kiln {

/// Chooses a variant, gets it compiled and loads it, for one device and with what a Context's options permit.
/// Thread-safe.
class PlanMaker {
 public:
  PlanMaker(const ContextOptions& options, const Environment& environment,
            std::shared_ptr<const device::ContextHandle> context,
            const std::function<void(const std::string&)>& announce);

  /// Takes the winners of `database`, and what this device was measured to reach, for predictions. Before any plan.
  void take_from(const cache::Database& database);

  /// Takes what `database` knows by now of a request.
  void learn(const cache::Database& database, const std::string& key);

  /// As Context::plan(), without keeping the plan.
  std::shared_ptr<const LoadedPlan> make(const KeyedRequest& request);
  /// A plan without a compile, where there is any: of what is named for the request, or estimated to be the best, or of
  /// an open kernel. Where nothing of this is compiled, make(): that compiles no longer than an open kernel would.
  std::shared_ptr<const LoadedPlan> make_at_once(const KeyedRequest& request);
  /// Sees to it that make_at_once() has an open kernel for further sizes of this layer which suits one like this: takes
  /// it from bundles or the store, or compiles it. Faults are announced.
  void know_open_kernel(const KeyedRequest& request);
  /// Sees to it that make_at_once() has open kernels for all sizes of these lines, as Context::prepare_open().
  /// `demand`: what is asked of all requests.
  void prepare_open(std::span<const std::string> lines, const OpenLineChooser::Demand& demand);
  Explanation explain(const KeyedRequest& request);
  /// Whether something that may be used was timed on this device, so that tuning would tell nothing new.
  bool is_tuned(const KeyedRequest& request) const;

  /// Failure that tuning has found of the variant of `plan` since it was made, in words; nothing if it works, or if the
  /// application asked for such variants.
  std::optional<std::string> known_failure_of(const LoadedPlan& plan) const;

  /// Why nothing can be compiled; empty if it can.
  const std::string& no_compiler() const { return kernels_.no_compiler(); }
  device::NvrtcWork compiles() const { return kernels_.work(); }
  const std::string& device_id() const { return device_id_; }
  const std::string& description() const { return description_; }
  const Catalogue& catalogue() const { return catalogue_; }
  cache::Winners& winners() { return winners_; }

 private:
  /// An open kernel for a request, with its images.
  struct FoundKernel {
    Selection selection;
    execution::CompiledProgram compiled;
    std::shared_ptr<const OpenKernel> kernel;
  };
  using UseOpenKernel = std::function<bool(const FoundKernel&)>;  ///< Whether to stop there.

  /// Whether it is a fault of one variant, after which another may serve; not one of the machine.
  static bool concerns_variant(const Error& error);
  Variants variants(const KeyedRequest& request) const { return catalogue_.on(request, kernels_.target()); }
  Selector selector(Variants& variants) const;
  void announce_not_believed(const Selector& selector);
  Candidates candidates(const Selector& selector);
  Candidates chosen_before(const KeyedRequest& request, Variants& variants) const;
  bool may_take_open_kernels(const Request& request) const;
  bool visit_alignments(const Selector& selector, const std::function<bool(const Selector&)>& visit) const;
  bool visit_known_open_kernels(const Selector& selector, const UseOpenKernel& use) const;
  bool visit_known_of(const Selector& selector, const UseOpenKernel& use) const;
  bool visit_stored_open_kernels(const Selector& selector, const UseOpenKernel& use);
  bool visit_open_kernels(const Selector& selector, const Candidates& candidates, size_t attempts, bool may_compile,
                          const UseOpenKernel& use);
  std::shared_ptr<const OpenKernel> open_kernel(const OpenLineKernel& chosen);
  bool has_failed(const Program& open);
  void note_failure(const Program& open);
  std::shared_ptr<const LoadedPlan> make_open(const Selector& selector);
  std::shared_ptr<const LoadedPlan> make_exact(const Selector& selector, std::optional<Candidates> candidates);
  std::shared_ptr<const LoadedPlan> make_locked(const Selector& selector);
  std::shared_ptr<const LoadedPlan> load(const KeyedRequest& request, const Selection& selection,
                                         bool may_compile = true);
  std::shared_ptr<const LoadedPlan> load_open(const KeyedRequest& request, const FoundKernel& found);
  [[noreturn]] void fail(const Selector& selector) const;

  std::function<void(const std::string&)> announce_;
  std::shared_ptr<const device::ContextHandle> context_;
  KernelSupply kernels_;
  Catalogue catalogue_;
  DeviceFigures figures_;
  bool calibrated_ = false;
  std::string device_id_;
  std::string description_;
  cache::Winners winners_;
  Neighbours neighbours_;
  cache::Filter filter_;
  Permissions permissions_;
  bool locked_;
  KnownOpenKernels open_kernels_;
  RecentChoices estimated_;
  std::mutex mutex_;                            // guards what follows
  std::set<std::string, std::less<>> doubted_;  // packs of which an impossible time was announced
  std::set<std::string, std::less<>> failed_;   // digests of open kernels that could not be compiled
};

}  // namespace kiln
