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

namespace device {
class Current;
}

/// When a Context tunes requests that have no time of its device yet.
enum class TuningMode {
  never,  ///< Stored, shipped and estimated choices are used as they are.
  /// plan(), prepare() and the first call for a shape tune it before they return, until the budget is spent.
  within_budget,
  /// A request is served at once by the best known choice, and tuned in the background. Then operation calls and plan()
  /// use the better variant. A Plan that was made before keeps its variant.
  in_background,
};

/// Worker processes (the `kiln` program, see KILN_WORKER) tune on the same device. They take time and memory from the
/// application, and the application's own kernels disturb their measurements. Results go to the tuning database.
struct TuningPolicy {
  TuningMode mode = TuningMode::never;
  double budget_seconds = 60;  ///< Wall-clock seconds that this Context spends on tuning in all.
  size_t candidates = 16;      ///< Variants of each request that get a time, at most; see docs/tuning.md.
  /// Called about every second by the thread that tunes, or that waits for tuning. True ends the running session within
  /// two seconds: its measurements are kept, and the call goes on with the known choices. Must not throw.
  std::function<bool()> stop_wanted{};
};

/// The source of workspace for operation calls, in place of the Context's own memory: an engine's caching allocator.
/// The thread that makes an operation call calls each function once, in this order.
struct WorkspaceAllocator {
  /// Returns `bytes` (more than 0) of device memory, 256-byte aligned, for work that is enqueued on `stream` next. Null
  /// makes the operation call throw Error(out_of_memory).
  std::function<void*(size_t bytes, Stream stream)> allocate;
  /// Takes the memory back when the work is enqueued, but not finished: later work on the same stream may have it at
  /// once, other work only after the enqueued work. Must not throw.
  std::function<void(void* memory, size_t bytes, Stream stream)> release;
};

/// Settings of a Context. Defaults suit an application; members that are not set come from the environment
/// (docs/environment.md).
struct ContextOptions {
  int device = 0;  ///< Ordinal of the device.
  /// The settings to use instead of the process environment.
  std::optional<Environment> environment;
  /// The tuning database; "off" for none. Default: KILN_CACHE, else kiln/tuning.db in the user's cache folder.
  std::optional<std::string> cache;
  /// Packs to read beside those of KILN_PACK_PATH, in order of preference.
  std::vector<std::string> packs;
  /// Bundles of compiled variants beside those of KILN_BUNDLE_PATH (docs/shipping.md). The requests of a bundle need no
  /// NVRTC.
  std::vector<std::string> bundles;
  /// The folder that keeps compiled kernels for all processes; "off" for none. Default: KILN_KERNEL_STORE, else
  /// kiln/kernels in the user's cache folder. It grows to KILN_KERNEL_STORE_MIB at most, by default 512 MiB.
  std::optional<std::string> kernel_store;
  /// Folders of user templates (docs/user-code.md) beside those of KILN_USER_TEMPLATES: their kernels are candidates
  /// like Kiln's own.
  std::vector<std::string> user_templates;
  /// Bytes of workspace that a variant may need; variants that need more are passed over.
  int64_t workspace_limit = std::numeric_limits<int64_t>::max();
  /// The source of workspace for operation calls. Empty: the Context allocates workspace and keeps it. It then refuses
  /// calls that need workspace while their stream is captured into a CUDA graph, because replays of the CUDA graph
  /// would use the memory later. With an allocator such calls are captured; the application then keeps the memory of a
  /// CUDA graph free of other uses.
  WorkspaceAllocator workspace_allocator{};
  /// How many plans the Context keeps that nobody else holds (a Plan, a Model), and how many bytes of compiled code
  /// these may have (docs/sizes.md). Beyond that it gives up the ones that were not used for longest; a later call
  /// makes them anew. At least 1. Default: KILN_KEPT_PLANS, else 4096, and KILN_KEPT_PLANS_MIB, else 512 MiB.
  std::optional<int64_t> kept_plans;
  std::optional<int64_t> kept_plan_bytes;
  /// Use only variants whose results are bitwise reproducible, as if every request had `deterministic`. Equal calls
  /// give equal bits as long as they use the same variant: with TuningMode::in_background a better variant may change
  /// the bits.
  bool deterministic = false;
  /// The results of an image, or of a row, have the same bits in every batch, as if every request had `batch_invariant`
  /// (docs/numerics.md). Sums over the batch are as without; other calls that cannot be so too, which is announced.
  bool batch_invariant = false;
  /// Plan that serves the first call of a shape (docs/sizes.md). Default: KILN_FIRST_CALL, else `exact`.
  std::optional<FirstCall> first_call;
  /// Use only the first variant that packs and bundles name for a request: no tuning database, no estimate, no second
  /// choice. A request without such a variant, or whose variant cannot be used here, is an Error.
  bool locked = false;
  /// Use also variants that gave a wrong result for the request, hung or crashed, on this device or another of its
  /// architecture.
  bool allow_failed_variants = false;
  /// Use also user templates that passed no check for the request. `kiln tune` and ContextOptions::tuning check them.
  bool allow_unchecked_templates = false;
  TuningPolicy tuning{};
  /// Receives messages that a user should see once: a database that cannot be used, a pack with errors or with an
  /// impossible time. Default: one line on stderr. What it throws is dropped: it would end work that others wait for.
  std::function<void(std::string_view message)> announce;
};

/// A candidate in an Explanation.
struct ExplainedCandidate {
  std::string algorithm;
  std::string config;
  double seconds = 0;
  std::string source;  ///< "measured on this device", "measured on the same architecture", "bundle app.kiln",
                       ///< "predicted by machine-code clock 1", "from 3 neighbours, nearest x=8x64", "estimate"
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

/// The order of sums of a request with `batch_invariant`, and what it costs to have one.
struct ExplainedOrder {
  std::string order;    ///< Words for it: "f32 lanes, one product after the other".
  double slowdown = 1;  ///< Time of the choice, in times of the choice of the request without `batch_invariant`.
  std::string basis;    ///< Kind of these times: "measured on this device", ..., "estimate".
};

/// Why a request runs as it does.
struct Explanation {
  Request request;
  std::string device;  ///< The DeviceId line.
  /// The larger of two times: the arithmetic at the device's peak, and the compulsory traffic at the memory's
  /// bandwidth. No kernel can be faster.
  double roofline_seconds = 0;
  /// The name of the larger: "memory traffic", "f32 arithmetic", "tensor cores in f16 or bf16", ...
  std::string roofline_of;
  /// `tf32` or `fast`: permissions of the request that no kernel of Kiln uses.
  std::vector<std::string> unused_permissions;
  /// True if predictions use the rates measured on this device (`kiln devices --calibrate`), false if they use rates
  /// assumed for any device.
  bool calibrated = false;
  std::string calibration;                    ///< Rates in use: `copy_efficiency=0.9 l2_bytes_per_clock=46.6 ...`
  std::vector<ExplainedCandidate> stored;     ///< From the cache, packs and bundles, in order of precedence.
  std::vector<ExplainedCandidate> estimated;  ///< The best predictions, best first.
  /// First stored variants that cannot be compiled here, then variants of bundles that failed or are not permitted,
  /// then the first ten by prediction that failed or are unchecked.
  std::vector<ExplainedWithheld> withheld;
  /// Variants with an impossible time in a pack: the device cannot be that fast. Such a line counts as absent; another
  /// line or an estimate may still name the variant.
  std::vector<ExplainedWithheld> not_believed;
  std::vector<ExplainedRefusal> refused;        ///< Algorithms that cannot serve the request, and why.
  std::optional<ExplainedOrder> order_of_sums;  ///< Nothing without `batch_invariant`.
  std::string no_compiler;                      ///< Why only bundles can be used; empty if NVRTC is available.
  std::optional<ExplainedCandidate> chosen;     ///< The choice of a plan; nothing if no variant serves the request.
};

/// The members of `why` by their names, as a JSON object over several lines; `chosen` may be null.
/// kiln_context_explain() gives the same text.
std::string to_json(const Explanation& why);

/// Compiles that a Context made. Kernels that bundles or the store of compiled kernels have are not among them.
struct CompileCount {
  uint64_t kernels = 0;
  double seconds = 0;  ///< Sum over all threads.
};

/// The plans of a Context that are loaded.
struct PlanCount {
  int64_t plans = 0;
  int64_t bytes = 0;     ///< Size of their compiled code.
  int64_t held = 0;      ///< Plans that the limits leave alone: somebody holds or runs them, or a CUDA graph has them.
  int64_t given_up = 0;  ///< How often a plan was given up so far, because of the limits.
};

/// One device, its tuning database and its plans. Thread-safe: share one per device among all threads.
///
/// Loads libcuda at run time, or on a machine without a GPU the emulator, and announces the latter once a process.
/// Loads NVRTC too, which may be missing if a bundle is given. Works in the CUDA context that is current on the
/// constructing thread if this context belongs to the device, else in the device's primary context. Never synchronises
/// a stream of the caller. A Context that was moved from refuses every call with Error(invalid_argument), until another
/// is assigned to it.
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

  /// Returns the best known variant for `request`, compiled and loaded. Later calls for the same request only look it
  /// up.
  ///
  /// Order of choice: measured on this device; measured on the same architecture; measured, in a bundle; modelled for
  /// this card by the emulated device (docs/cache-format.md, "Predictions"); estimate(), corrected by the times of
  /// other sizes of the layer (docs/tuning-method.md, "Sizes that nobody tuned"). A stored choice is passed over if its
  /// algorithm has changed, its parameters are illegal or it does not compile here. Variants that a check found wrong,
  /// that hung or crashed, and user templates that no check has passed for the request are not used
  /// (docs/cache-format.md, "What is never used").
  ///
  /// A request made by hand is completed as by parsing. While a stream is captured into a CUDA graph, making a plan
  /// leaves the capture intact. Throws Error: invalid_argument for a request that makes no sense; unsupported if no
  /// variant serves it, or none that may be used; compile_failed if no such variant compiles; missing_library if no
  /// bundle has it and NVRTC is missing; driver_error; out_of_memory.
  Plan plan(const Request& request);

  /// As plan() for each of `requests`, on all threads. With TuningMode::within_budget, tunes them first, in one session
  /// that shares the budget among them. Tries all, then throws as plan() for the first that failed.
  std::vector<Plan> plans(std::span<const Request> requests);

  /// Makes the plans of all `requests` now, also with FirstCall::at_once the exact ones, so that no later call compiles
  /// while `kept_plans` has room for them. With TuningMode::within_budget, tunes them first, in one session that shares
  /// the budget among them. Tries all, then throws as plan() for the first that failed. Where an open kernel serves
  /// already and the exact plan cannot be made, that is announced, and nothing is thrown.
  void prepare(std::span<const Request> requests);

  /// Makes open kernels for all sizes of `lines` now: with FirstCall::at_once, no later call of such a size waits for a
  /// compile (docs/sizes.md, "At once"). Lines of a requests file, whose extents may be `?` (any number), `?N` (up to
  /// N), `?NAME` (extents of one name are equal; those without one are, at the same place in their tensors), or what
  /// follows from names, `?(h-1)/2+1`:
  ///
  ///   softmax_forward x=f16:?x4096      conv_forward x=f16:?x64x?x?:nhwc w=f16:128x64x3x3:nhwc pad=1
  ///
  /// On all threads. A convolution of three open extents has some five kernels, a product of three a hundred: bundles
  /// (`kiln bundle --open`) and the store of compiled kernels save their compiles. The kernels stay as long as the
  /// Context. The page names layers that open kernels do not serve. A line of which few sizes fit, because extents
  /// depend on each other, is announced.
  ///
  /// Throws before anything is compiled: as Request::parse() for a line of which no size makes a request;
  /// invalid_argument for definitions of user code; unsupported for a line that no open kernel serves, and if the
  /// options let calls take none. Then compiles all kernels, and throws as plan() for the first that failed.
  void prepare_open(std::string_view lines);

  /// Waits until nothing is left to be done in the background: plans of shapes that open kernels serve, and open
  /// kernels for further shapes, of calls that have returned; and tuning, until its budget is spent, or
  /// TuningPolicy::stop_wanted gives true. Failures are announced, never thrown. Not to be called by
  /// ContextOptions::announce, whose thread may be the one that is waited for.
  void wait_until_tuned();

  /// Says which variant `request` gets, and why. Throws Error(invalid_argument) for a request that makes no sense.
  Explanation explain(const Request& request) const;

  /// The compiles of this Context so far, in the process itself: tuning compiles in workers.
  CompileCount compiles() const;

  /// The plans that are loaded now (ContextOptions::kept_plans).
  PlanCount plan_count() const;

  /// "NVIDIA H200, compute capability 9.0, ..., by CUDA 13.0 ..." for people.
  const std::string& device_description() const;
  /// The DeviceId line under which records of this device are kept.
  const std::string& device_id() const;
  /// Whether the device is the emulated one (docs/emulator.md). Its memory is the host's, and enqueued work is done
  /// when the call returns, unless it is captured into a CUDA graph.
  bool is_emulated() const;
  /// Checks `bytes` bytes at `data` as operation calls do, with the caller's name for them in the message. Throws
  /// Error(invalid_argument) "<kind> '<name>' ..." for host memory that is not pinned, and if the allocation of device
  /// memory ends before these bytes do. Asks the driver only the first time.
  void require_memory(std::string_view kind, std::string_view name, const void* data, int64_t bytes) const;
  /// Whether requests and calls are recorded (KILN_RECORD, docs/environment.md). Launches of a CUDA graph are not
  /// recorded.
  bool records_calls() const;
  /// Whether operands and results of calls are looked at (KILN_CHECK_NUMERICS, docs/environment.md). Those of launches
  /// of a CUDA graph are not.
  bool checks_numerics() const;

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

/// Makes the CUDA context that `context` works in current on the calling thread, for a scope. Calls do that by
/// themselves where another or none is current: around many calls, one CurrentContext saves each of them two calls of
/// the driver. Belongs to the thread that made it, and ends before `context` and in the reverse order of making.
///
/// Throws what the driver reports where the context is gone, and Error(invalid_argument) if `context` was moved from.
class CurrentContext {
 public:
  explicit CurrentContext(Context& context);
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext();

 private:
  std::unique_ptr<const device::Current> current_;
};

}  // namespace kiln
