// LoadedPlan: what Plan and the operation calls share.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/execution/executable.h"
#include "kiln/generator/catalogue.h"
#include "kiln/generator/operation.h"
#include "kiln/plan.h"
#include "numerics_check.h"
#include "recorder.h"

namespace kiln {

/// Immutable once made. run() is what every way of calling ends in.
struct LoadedPlan {
  LoadedPlan(const KeyedRequest& request_, Choice choice_, std::string source_, std::string program_,
             execution::Executable executable_);

  /// Memory for a run's intermediate results.
  struct Memory {
    void* workspace = nullptr;
    std::optional<const void*> prepared{};  ///< The memory that prepare_weights() filled; nothing: all of it is made in
                                            ///< this run.
  };

  /// As Plan::run() and Plan::run_prepared().
  void run(Stream stream, std::span<const Address> operands, const Memory& memory, const RunValues& values) const;
  /// As Plan::prepare_weights().
  void prepare_weights(Stream stream, std::span<const Address> operands, void* prepared) const;

  Request request;
  std::string key;  ///< request.key()
  RunValues usual;  ///< usual_values(request)
  Choice choice;
  std::string source;
  bool open = false;    ///< Whether it is of an open kernel; set before anybody else sees the plan.
  std::string program;  ///< Program::digest()
  execution::Executable executable;
  /// Counts the calls, where they are recorded; set before anybody else sees the plan.
  mutable std::shared_ptr<CallCount> count;
  /// Looks at operands and results, where KILN_CHECK_NUMERICS asks for it; set likewise.
  mutable std::shared_ptr<NumericsCheck> numerics;
  /// Whether the request has another plan since, or none: set by CurrentPlans, which says who may see it when.
  mutable std::atomic<bool> superseded{false};
  /// Keeps that other plan: who holds this one may ask for it. Set by CurrentPlans, likewise.
  mutable std::shared_ptr<const LoadedPlan> successor;
  /// Whether nothing else can be made for the request than this open kernel. Set when that was tried; CurrentPlans says
  /// who may see it when.
  mutable std::atomic<bool> is_final{false};
  /// Whether it serves until the plan of the request is made.
  bool stands_in() const { return open && !is_final.load(std::memory_order_relaxed); }
  /// When it was used last, in the time of CurrentPlans::note_use().
  mutable std::atomic<uint64_t> last_use{0};

 private:
  struct OperandRule {
    uintptr_t misaligned;     ///< Address bits that must be zero.
    bool empty;               ///< Nothing is accessed: null is fine.
    bool empty_at_0;          ///< So it is where the batch of the call is 0.
    uint64_t bytes;           ///< From the first byte to behind the last, but for those of images.
    uint64_t bytes_an_image;  ///< 0 where the batch of the call changes nothing.

    uint64_t bytes_of(int64_t n) const { return bytes + static_cast<uint64_t>(n) * bytes_an_image; }
    /// Whether a run with batch `n` can have the operand there.
    bool permits(uintptr_t address, int64_t n, const device::ContextHandle& context) const;
  };

  int64_t batch_of(const RunValues& values) const;
  /// Throws unless that much 256-byte aligned device memory may be at `memory`, "the workspace".
  void require_memory(std::string_view what, const void* memory, int64_t bytes) const;
  [[noreturn]] void refuse_batch(int64_t n) const;
  [[noreturn]] void refuse_scalar(const ScalarRule& rule, const RunValues& values) const;
  [[noreturn]] void refuse_operands(size_t given) const;
  [[noreturn]] void refuse_operand(size_t i, const void* address, int64_t n) const;

  std::vector<OperandRule> rules_;
  bool clips_;
  std::vector<ScalarRule> scalar_rules_;
  int64_t fixed_batch_ = 0;
  bool empty_batch_is_nothing_ = true;  ///< Not so for sums over the batch, which are 0 then.
};

}  // namespace kiln
