// Context: one device, its tuning cache and the plans made so far.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/base/cxx20.h"
#include "kiln/base/environment.h"
#include "kiln/generator/request.h"
#include "kiln/plan.h"

namespace kiln {

/// Whether a Context tunes what has no time of its device yet.
enum class TuningMode {
  never,  ///< What is stored, shipped or estimated is used as it is.
  /// plan(), prepare() and the first call for a shape tune it before they return, until the budget is spent.
  within_budget,
  /// Nothing waits: a request is served by what is known, and tuned in the background. When that is done, the operation
  /// calls and plan() use the better variant; a Plan that was made before keeps the one it has.
  in_background,
};

/// Worker processes (the `kiln` program, see KILN_WORKER) tune on the same device. They take time and memory from the
/// application, and what the application runs meanwhile disturbs their measurements. Results go to the tuning
/// database.
struct TuningPolicy {
  TuningMode mode = TuningMode::never;
  double budget_seconds = 60;  ///< The most that this Context spends on tuning in all, in seconds of wall-clock time.
  size_t candidates = 16;      ///< The most variants of each request that get a time; see docs/tuning.md.
  /// Asked about every second by the thread that tunes, or that waits for it: true ends the session at work, within two
  /// seconds. What it measured is kept, and the call goes on with what is known. Must not throw.
  std::function<bool()> stop_wanted{};
};

/// Where operation calls take their workspace from, instead of memory of the Context's own: an engine's caching
/// allocator. Both functions are called by the thread that makes the call, once each, in this order.
struct WorkspaceAllocator {
  /// `bytes` (more than 0) of device memory, 256-byte aligned, for work that is enqueued on `stream` next; null if
  /// there is none, which makes the call throw Error(out_of_memory).
  std::function<void*(size_t bytes, Stream stream)> allocate;
  /// That work is enqueued, not finished: the memory may go to later work on the same stream, and to others after it.
  /// Must not throw.
  std::function<void(void* memory, size_t bytes, Stream stream)> release;
};

/// Everything has a default that suits an application; the environment (docs/environment.md) fills what is not set.
struct ContextOptions {
  int device = 0;  ///< Ordinal of the device.
  /// The settings to use instead of the process environment.
  std::optional<Environment> environment;
  /// The tuning database; "off" for none. Default: KILN_CACHE, else kiln/tuning.db in the user's cache folder.
  std::optional<std::string> cache;
  /// Packs to read beside those of KILN_PACK_PATH, in order of preference.
  std::vector<std::string> packs;
  /// Bundles of compiled variants beside those of KILN_BUNDLE_PATH (docs/shipping.md). With one, NVRTC is not needed
  /// for what it holds.
  std::vector<std::string> bundles;
  /// The folder in which compiled kernels are kept for all processes; "off" for none. Default: KILN_KERNEL_STORE, else
  /// kiln/kernels in the user's cache folder. It is never larger than KILN_KERNEL_STORE_MIB, 512 MiB by default.
  std::optional<std::string> kernel_store;
  /// Folders of user templates (docs/user-code.md) beside those of KILN_USER_TEMPLATES: their kernels are candidates
  /// like Kiln's own.
  std::vector<std::string> user_templates;
  /// Candidates that need more workspace are passed over.
  int64_t workspace_limit = std::numeric_limits<int64_t>::max();
  /// Empty: the Context allocates workspace and keeps it. Calls that need workspace are then refused while their stream
  /// is captured into a graph, because its replays would use that memory later. With an allocator they are captured;
  /// the application then sees to it that nothing else uses the memory of a graph.
  WorkspaceAllocator workspace_allocator{};
  /// Only variants whose results are bitwise reproducible, as if every request said `deterministic`. Equal calls give
  /// equal bits as long as they use the same variant, so with TuningMode::in_background a swap may still change them.
  bool deterministic = false;
  /// Only the first variant that packs and bundles name for a request: no tuning database, no estimate, no second
  /// choice. A request that they do not name, or whose variant cannot be used here, is an Error.
  bool locked = false;
  /// Use also variants that gave a wrong result for the request, hung or crashed, on this device or another of its
  /// architecture.
  bool allow_failed_variants = false;
  /// Use also user templates that passed no check for the request. `kiln tune` and ContextOptions::tuning check them.
  bool allow_unchecked_templates = false;
  TuningPolicy tuning{};
  /// Receives the few things that a user should know once: a cache that cannot be used, a pack with errors or with an
  /// impossible time.
  /// Default: one line on stderr.
  std::function<void(std::string_view message)> announce;
};

/// A candidate in an Explanation.
struct ExplainedCandidate {
  std::string algorithm;
  std::string config;
  double seconds = 0;
  std::string source;  ///< "measured on this device", "measured on the same architecture", "bundle app.kiln",
                       ///< "predicted by machine-code clock 1", "estimate"
};

struct ExplainedRefusal {
  std::string algorithm;
  std::string reason;
};

/// A variant that could serve a request and is not used.
struct ExplainedWithheld {
  std::string algorithm;
  std::string config;
  std::string reason;  ///< "it gave a wrong result on ...", "a user template that no check has passed for this request"
};

/// Why a request runs as it does.
struct Explanation {
  Request request;
  std::string device;  ///< The DeviceId line.
  /// The larger of the arithmetic at the device's peak and the compulsory memory traffic: nothing can be faster.
  double roofline_seconds = 0;
  /// Which of the two it is: "memory traffic", "f32 arithmetic", "tensor cores in f16 or bf16", ... Kiln has no kernel
  /// that uses tensor cores yet.
  std::string roofline_of;
  /// `tf32` or `fast`, where the request permits it and no kernel of Kiln's makes use of that.
  std::vector<std::string> unused_permissions;
  /// Whether predictions are drawn from what this device reached when it was measured (`kiln devices --calibrate`), or
  /// from what is assumed of any device.
  bool calibrated = false;
  std::string calibration;                    ///< Those figures: `copy_efficiency=0.9 l2_bytes_per_clock=46.6 ...`
  std::vector<ExplainedCandidate> stored;     ///< From the cache, packs and bundles, in order of precedence.
  std::vector<ExplainedCandidate> estimated;  ///< The best predictions, best first.
  /// First those that are stored and cannot be compiled here, then those in bundles that failed or are not permitted,
  /// then the first ten by prediction that failed or are unchecked.
  std::vector<ExplainedWithheld> withheld;
  /// Variants with an impossible time in a pack, which the device could not reach. Such a line counts as absent:
  /// another line or an estimate may still name the variant.
  std::vector<ExplainedWithheld> not_believed;
  std::vector<ExplainedRefusal> refused;     ///< Algorithms that cannot serve the request, and why.
  std::string no_compiler;                   ///< Why only what bundles hold can be used; empty if NVRTC is at hand.
  std::optional<ExplainedCandidate> chosen;  ///< What a plan would use; nothing if nothing serves the request.
};

/// The members of `why` by their names, as a JSON object over several lines; `chosen` may be null. What
/// kiln_context_explain() gives.
std::string to_json(const Explanation& why);

/// One device, its cache and its plans. Thread-safe: share one per device among all threads.
///
/// Loads libcuda at run time, or the emulator where there is no GPU, which it announces once a process. Loads NVRTC
/// too; with a bundle, it may be missing.
/// Works in the CUDA context that is current on the constructing thread if that belongs to the device, else in the
/// device's primary context. Never synchronises a stream of the caller. A Context that was moved from refuses every
/// call with Error(invalid_argument), until another is assigned to it.
class Context {
 public:
  /// Throws Error: missing_library (no driver, no NVRTC, no worker to tune with), driver_error, invalid_argument (no
  /// such device, a setting, options that contradict each other); for a user template that is wrong: parse_error,
  /// invalid_argument, io_error. A database, pack, bundle or store of kernels that
  /// cannot be used is announced, never thrown.
  explicit Context(const ContextOptions& options = {});
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  /// The best known variant for `request`, compiled and loaded; the second call for a request only looks it up.
  ///
  /// Choice: measured on this device; measured on the same architecture; measured, in a bundle; modelled for this card
  /// by the emulated device (docs/cache-format.md, "Predictions"); estimate().
  /// A stored choice that no longer fits (edited algorithm, illegal point, does not compile here) is passed over. What
  /// a check has found wrong, what hung or crashed, and user templates that no check has passed for the request are not
  /// used (docs/cache-format.md, "What is never used").
  /// A request made by hand is completed as by parsing. While a stream is captured into a graph, making a plan leaves
  /// the capture intact. Throws Error(invalid_argument) for a request that makes no sense, Error(unsupported) if
  /// nothing serves it or nothing that does may be used, Error(compile_failed) if nothing that may be used compiles,
  /// Error(missing_library) if it is in no bundle and there is no NVRTC, Error(driver_error), Error(out_of_memory).
  Plan plan(const Request& request);

  /// Makes the plans of all `requests` now, so that no later call compiles. With TuningMode::within_budget, tunes them
  /// first, all in one session that shares the budget among them. Throws as plan() for the first that fails, after
  /// trying all.
  void prepare(std::span<const Request> requests);

  /// Waits until nothing is left to be tuned in the background, the budget for it is spent, or
  /// TuningPolicy::stop_wanted. A session that fails is announced, never thrown.
  void wait_until_tuned();

  /// Throws Error(invalid_argument) for a request that makes no sense.
  Explanation explain(const Request& request) const;

  /// "NVIDIA H200, compute capability 9.0, ..., by CUDA 13.0 ..." for people.
  const std::string& device_description() const;
  /// The DeviceId line under which records of this device are kept.
  const std::string& device_id() const;
  /// Whether the device is the emulated one (docs/emulator.md): its memory is the host's, and what a call enqueues is
  /// done when the call returns, but for what is captured into a graph.
  bool is_emulated() const;
  /// Throws Error(invalid_argument) "<kind> '<name>' ..." for host memory that is not pinned, and for an allocation of
  /// device memory that ends before `bytes` bytes at `data` do: what calls refuse, by the caller's name for it. Asks
  /// the driver only the first time.
  void require_memory(std::string_view kind, std::string_view name, const void* data, int64_t bytes) const;
  /// Whether requests and calls are recorded (KILN_RECORD, docs/environment.md): launches of a graph are not calls.
  bool records_calls() const;

  class Impl;
  /// For Kiln's own operation calls.
  Impl& impl() { return present(); }

 private:
  Impl& present() const {
    if (!impl_) refuse_moved_from();
    return *impl_;
  }
  [[noreturn]] static void refuse_moved_from();
  void end() noexcept;

  std::unique_ptr<Impl> impl_;
};

}  // namespace kiln
