// The state of a running warp and of its block: what handlers see.
//
// A warp is a set of fragments: threads that stand at the same instruction. One of them runs, its lanes in `active`;
// the others wait in `fragments`. The ready fragment with the lowest instruction runs first, and fragments that meet at
// a label become one again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kernel/instruction.h"
#include "kernel/launch.h"
#include "memory/region_table.h"
#include "warp/async_copies.h"

namespace kiln::emulator {

struct Block;
class Mbarriers;
// Classes of higher folders, which the state only points to.
class BulkCopies;
class MemoryRecorder;
class StrictChecks;

enum class Wait : uint8_t {
  none,       ///< ready to run
  barrier,    ///< arrived at Fragment::barrier; `at` is the instruction to go on with
  converge,   ///< needs lanes that have not come to the instruction at `at` yet
  warp_sync,  ///< in bar.warp.sync at `at`, for the lanes in Fragment::members
  mbarrier,   ///< for the phase of the mbarrier at Fragment::offset to end; `at` is the instruction to go on with
};

struct Fragment {
  const Instruction* at = nullptr;
  Mask lanes = 0;
  Wait wait = Wait::none;
  uint8_t barrier = 0;
  Mask members = 0;
  uint32_t offset = 0;    ///< into the block's shared memory
  uint64_t last_run = 0;  ///< when it was put aside, for a fair choice
};

inline constexpr uintptr_t nothing_to_merge = UINTPTR_MAX;

struct Warp {
  std::byte* registers = nullptr;
  const uint32_t* lists = nullptr;
  std::byte* shared = nullptr;
  Block* block = nullptr;
  Mask active = 0;  ///< lanes of the running fragment
  Mask live = 0;    ///< lanes that have not exited
  /// Address of the lowest instruction at which a ready fragment waits; the running one looks for others from there on.
  uintptr_t merge_at = nothing_to_merge;
  int64_t budget = 0;                ///< instructions until the scheduler wants to look
  uint64_t* executions = nullptr;    ///< per basic block
  uint64_t* active_lanes = nullptr;  ///< per basic block

  uint32_t index = 0;  ///< within the block
  Mask born = 0;       ///< lanes that exist
  bool fair = false;   ///< a fragment other than the lowest has its turn
  uint32_t fragment_count = 0;
  std::array<Fragment, warp_lanes> fragments;
  uint64_t slices = 0;  ///< budgets used up so far
  AsyncCopies copies;
};

/// A named barrier of a block.
struct Barrier {
  uint32_t arrived = 0;   ///< threads; whole warps count 32 when `expected` is given
  uint32_t expected = 0;  ///< threads; 0: every live thread of the block
  bool in_use = false;
  uint32_t votes = 0, voters = 0;  ///< of bar.red: threads whose predicate held, and all
  // For a barrier of the whole block, in full checks: the instruction at which the first threads arrived, and one of
  // these threads.
  const Instruction* first_at = nullptr;
  uint32_t first_thread = 0;
};

/// Valid addresses that recent accesses fell into, so that the next need no search.
struct AddressWindow {
  uint64_t begin = 1, end = 0;
  uint8_t* written = nullptr;   ///< Region::written
  PieceMarks* marks = nullptr;  ///< Region::marks

  /// Whether it holds accesses of `bytes` each whose addresses are from `lowest` to `highest`.
  bool covers(uint64_t lowest, uint64_t highest, uint64_t bytes) const {
    return lowest >= begin && highest <= end && end - highest >= bytes;  // none of it can overflow
  }
};

struct Block {
  const LaunchRequest* launch = nullptr;
  const Code* code = nullptr;
  std::string_view kernel_name;
  const Instruction* first = nullptr;  ///< of the array in use, fast or checked
  Dim3 index;
  uint64_t number = 0;  ///< x fastest
  std::byte* shared = nullptr;
  uint32_t shared_bytes = 0;
  std::byte* local = nullptr;
  uint32_t local_stride = 0;  ///< bytes from one thread's local memory to the next
  const std::byte* parameters = nullptr;
  uint32_t parameter_bytes = 0;
  std::span<const Region> variables;     ///< of the program: valid global addresses, sorted
  std::span<const std::byte> constants;  ///< where those of state space .const are
  std::span<Warp> warps;
  uint32_t live_threads = 0;
  std::atomic<uint32_t>* fences = nullptr;  ///< of the launch: every memory fence changes it
  std::array<Barrier, 16> barriers;
  Mbarriers* mbarriers = nullptr;
  BulkCopies* bulk_copies = nullptr;
  bool checking = false;               ///< CheckLevel::bounds and full
  StrictChecks* strict = nullptr;      ///< CheckLevel::full only
  MemoryRecorder* recorder = nullptr;  ///< null when this block's memory behaviour is not recorded
  std::array<AddressWindow, 4> windows;
  uint32_t next_window = 0;
  uint64_t issued = 0;  ///< warp instructions so far, budget by budget
  int64_t slice = 0;    ///< the budget a warp gets
  std::optional<Fault> fault;
};

/// Bytes of local memory of all the block's threads.
inline uint64_t local_bytes(const Block& block) {
  return uint64_t{block.local_stride} * block.warps.size() * warp_lanes;
}

/// The lanes an instruction acts on: the running fragment's where the guard holds.
inline Mask guarded(const Warp& warp, const Instruction* i) {
  const Mask predicate = reinterpret_cast<const Mask*>(warp.registers)[i->guard];
  return warp.active & (predicate ^ static_cast<Mask>(static_cast<int32_t>(i->guard_flip)));
}

template <class T>
T* row(const Warp& warp, uint32_t offset) {
  return reinterpret_cast<T*>(warp.registers + offset);
}

}  // namespace kiln::emulator
