#include "checks/fault.h"

#include <fmt/format.h>

#include <bit>
#include <string>

#include "kernel/kernel.h"
#include "warp/mbarriers.h"

namespace kiln::emulator {
namespace {

const SourcePosition& position(const Block& block, const Instruction* i) {
  return block.code->source[static_cast<size_t>(i - block.first)];
}

std::string quote(const Block& block, const Instruction* i) {
  const SourcePosition& at = position(block, i);
  std::string text;
  for (const char c : at.text) text += c == '\t' || c == '\n' || c == '\r' ? ' ' : c;
  return fmt::format("PTX line {}: {}", at.line, text);
}

std::string place(const Block& block) {
  return fmt::format("kernel {}, block ({}, {}, {})", block.kernel_name, block.index.x, block.index.y, block.index.z);
}

/// Describes a global address for a report.
std::string describe(const Block& block, uint64_t address) {
  const RegionTable* const memory = block.launch->memory.get();
  return memory == nullptr ? "no memory is known" : memory->describe(address);
}

std::string thread(const Block& block, uint32_t linear) {
  const Dim3& extent = block.launch->block;
  return fmt::format("thread ({}, {}, {})", linear % extent.x, linear / extent.x % extent.y,
                     linear / (extent.x * extent.y));
}

std::string thread(const Warp& warp, int lane) {
  return thread(*warp.block, warp.index * warp_lanes + static_cast<uint32_t>(lane));
}

/// A thread by its number, with where it stands in its warp.
std::string thread_and_lane(const Block& block, uint32_t linear) {
  return fmt::format("{} (warp {}, lane {})", thread(block, linear), linear / warp_lanes, linear % warp_lanes);
}

void record(Block& block, FaultKind kind, std::string report) {
  if (!block.fault) block.fault = Fault{kind, std::move(report)};
}

/// Arrivals and bytes that the phase of an mbarrier still lacks.
std::string waited_for(const Block& block, uint32_t offset) {
  const Mbarrier* const mbarrier = block.mbarriers->find(offset);
  const std::string which = fmt::format("at the mbarrier at offset {} of shared memory", offset);
  if (mbarrier == nullptr) return which + ", which is no longer one";
  return fmt::format("{}, whose phase {} lacks {} of {} arrivals and {} bytes", which, mbarrier->phase,
                     mbarrier->pending, mbarrier->expected, mbarrier->bytes);
}

std::string waiting_line(const Block& block, const Warp& warp, const Fragment& fragment) {
  const Instruction* const at =
      fragment.wait == Wait::none || fragment.wait == Wait::converge ? fragment.at : fragment.at - 1;
  std::string why;
  switch (fragment.wait) {
    case Wait::barrier: {
      const Barrier& barrier = block.barriers[fragment.barrier];
      why = fmt::format("at barrier {}, where {} of {} threads have arrived", fragment.barrier, barrier.arrived,
                        barrier.expected != 0 ? barrier.expected : block.live_threads);
      break;
    }
    case Wait::converge:
      why = fmt::format("for lanes {:#010x}, which have not come to this instruction",
                        fragment.members & warp.live & ~fragment.lanes);
      break;
    case Wait::warp_sync:
      why = fmt::format("in a warp synchronisation of lanes {:#010x}", fragment.members);
      break;
    case Wait::mbarrier:
      why = waited_for(block, fragment.offset);
      break;
    case Wait::none:
      why = "for nothing";
      break;
  }
  return fmt::format("\n  warp {}, lanes {:#010x}, from {}: waits {}\n    {}", warp.index, fragment.lanes,
                     thread(warp, std::countr_zero(fragment.lanes)), why, quote(block, at));
}

}  // namespace

const char* verb(AccessKind kind) {
  return kind == AccessKind::load ? "reads" : kind == AccessKind::store ? "writes" : "updates";
}

const Instruction* fault_here(Warp& warp, const Instruction* i, FaultKind kind, Mask lanes, std::string_view what) {
  Block& block = *warp.block;
  const int lane = std::countr_zero(lanes);
  record(block, kind,
         fmt::format("{}, {} (warp {}, lane {}): {}\n  {}", place(block), thread(warp, lane), warp.index, lane, what,
                     quote(block, i)));
  return nullptr;
}

const Instruction* timeout_fault(Warp& warp, const Instruction* i) {
  return fault_here(warp, i, FaultKind::timeout, warp.active,
                    fmt::format("the block has executed more than {} warp instructions; it may never end",
                                warp.block->launch->instruction_limit));
}

namespace {

/// Whether the fragment waits at mma, ldmatrix or the like for the other threads of its warp.
bool waits_for_whole_warp(const Block& block, const Fragment& fragment) {
  if (fragment.wait != Wait::converge) return false;
  const ValueRole role = block.launch->kernel->values.role(static_cast<size_t>(fragment.at - block.first));
  return role == ValueRole::matrix_product || role == ValueRole::matrix_access || role == ValueRole::matrix_transpose;
}

/// A fault of the first thread that waits in that way. False if there is none.
bool divergent_matrix_fault(Block& block, const std::string& waiting) {
  for (Warp& warp : block.warps) {
    for (uint32_t k = 0; k < warp.fragment_count; ++k) {
      const Fragment& fragment = warp.fragments[k];
      if (!waits_for_whole_warp(block, fragment)) continue;
      fault_here(warp, fragment.at, FaultKind::illegal_instruction, fragment.lanes,
                 fmt::format("all {} threads of a warp must execute this together, and lanes {:#010x} of this one wait "
                             "elsewhere for ever",
                             warp_lanes, warp.live & ~fragment.lanes));
      block.fault->report += "\n  all that wait:" + waiting;
      return true;
    }
  }
  return false;
}

}  // namespace

void deadlock_fault(Block& block) {
  std::string waiting;
  int lines = 0;
  for (const Warp& warp : block.warps) {
    for (uint32_t k = 0; k < warp.fragment_count; ++k) {
      if (++lines <= 8) waiting += waiting_line(block, warp, warp.fragments[k]);
    }
  }
  if (lines > 8) waiting += fmt::format("\n  and {} more", lines - 8);
  if (divergent_matrix_fault(block, waiting)) return;
  record(block, FaultKind::deadlock, fmt::format("{}: no warp can go on (deadlock)", place(block)) + waiting);
}

namespace {

/// fault_here() with a second place in the code.
const Instruction* fault_of_two(Warp& warp, const Instruction* i, FaultKind kind, Mask lanes, std::string_view what,
                                const Instruction* other) {
  fault_here(warp, i, kind, lanes, what);
  Block& block = *warp.block;
  block.fault->report += fmt::format("\n  the other: {}", quote(block, other));
  return nullptr;
}

/// How the other party of a shared-memory fault is told.
std::string other_party(const Block& block, const SharedShadow::Result& result) {
  using Finding = SharedShadow::Finding;
  const std::string who =
      result.other ? thread_and_lane(block, *result.other) : std::string("a thread of another warp");
  switch (result.finding) {
    case Finding::race_with_write:
      return fmt::format("which {} has written, and nothing orders the two (race)", who);
    case Finding::race_with_read:
      return fmt::format("which {} has read, and nothing orders the two (race)", who);
    case Finding::copy_in_flight:
      return fmt::format("which a cp.async of {} is still writing: nothing has waited for it (race)", who);
    case Finding::not_fenced:
      return fmt::format("which {} has written, and no fence.proxy.async stands between the two (race)", who);
    default:
      return "which no thread of the block has written (uninitialised)";
  }
}

}  // namespace

const Instruction* shared_fault(Warp& warp, const Instruction* i, const AccessRequest& request,
                                const SharedShadow::Result& result) {
  const Block& block = *warp.block;
  const Mask lane = Mask{1} << result.thread % warp_lanes;
  const std::string what = fmt::format("{} {} bytes, among them offset {} of shared memory, {}", verb(request.kind),
                                       request.bytes, result.offset, other_party(block, result));
  if (result.finding == SharedShadow::Finding::uninitialised) {
    return fault_here(warp, i, FaultKind::uninitialised_read, lane, what);
  }
  return fault_of_two(warp, i, FaultKind::race, lane, what, block.first + result.other_at);
}

const Instruction* conflict_fault(Warp& warp, const Instruction* i, Mask lanes, uint32_t other,
                                  const AccessRequest& request) {
  const Block& block = *warp.block;
  const auto leader = static_cast<size_t>(std::countr_zero(lanes));
  const uint64_t address = request.address[leader], offset = address - reinterpret_cast<uint64_t>(block.shared);
  const std::string where = offset < block.shared_bytes ? fmt::format("offset {} of shared memory", offset)
                                                        : fmt::format("{:#x}, {}", address, describe(block, address));
  const std::string what = fmt::format("writes {} bytes at {}, where {} writes something else at the same time (race)",
                                       request.bytes, where, thread_and_lane(block, warp.index * warp_lanes + other));
  return fault_of_two(warp, i, FaultKind::race, lanes, what, i);
}

const Instruction* uninitialised_fault(Warp& warp, const Instruction* i, const AccessRequest& request, uint32_t lane,
                                       uint64_t hole) {
  const uint64_t address = request.address[lane];
  return fault_here(
      warp, i, FaultKind::uninitialised_read, Mask{1} << lane,
      fmt::format("{} {} bytes at {:#x}, of which byte {}, {}, has never been written (uninitialised)",
                  verb(request.kind), request.bytes, address, hole, describe(*warp.block, address + hole)));
}

const Instruction* local_fault(Warp& warp, const Instruction* i, const AccessRequest& request, uint32_t lane,
                               uint64_t hole) {
  const Block& block = *warp.block;
  const uint64_t offset = (request.address[lane] - reinterpret_cast<uint64_t>(block.local)) % block.local_stride;
  return fault_here(
      warp, i, FaultKind::uninitialised_read, Mask{1} << lane,
      fmt::format(
          "reads {} bytes at offset {} of its local memory, of which it has not written byte {} (uninitialised)",
          request.bytes, offset, hole));
}

const Instruction* unwritten_use_fault(Warp& warp, const Instruction* i, const Fault& load, std::string_view where) {
  Block& block = *warp.block;
  record(block, load.kind, fmt::format("{}\n  {}: {}", load.report, where, quote(block, i)));
  return nullptr;
}

const Instruction* global_race_fault(Warp& warp, const Instruction* i, const AccessRequest& request, uint32_t lane,
                                     const GlobalShadow::Other& other) {
  const Block& block = *warp.block;
  const Dim3& grid = block.launch->grid;
  const bool here = other.block == block.number;
  std::string who = "another block";
  if (here && other.is_known)
    who = other.thread ? thread_and_lane(block, *other.thread) : "another thread of the block";
  if (!here) {
    who = fmt::format("{} of block ({}, {}, {})", thread(block, other.thread.value_or(0)), other.block % grid.x,
                      other.block / grid.x % grid.y, other.block / grid.x / grid.y);
  }
  const uint64_t address = request.address[lane];
  return fault_here(warp, i, FaultKind::race, Mask{1} << lane,
                    fmt::format("{} {} bytes at {:#x}, {}, which {} has {} in this launch, and nothing orders the two "
                                "(race)",
                                verb(request.kind), request.bytes, address, describe(block, address), who,
                                other.has_written ? "written" : "read"));
}

const Instruction* divergent_barrier_fault(Warp& warp, const Instruction* i, Mask lanes, uint32_t number) {
  const Block& block = *warp.block;
  const Barrier& barrier = block.barriers[number];
  const std::string what = fmt::format(
      "comes to barrier {} of the whole block here, while {} waits there at another instruction (divergent "
      "barrier)",
      number, thread_and_lane(block, barrier.first_thread));
  return fault_of_two(warp, i, FaultKind::divergent_barrier, lanes, what, barrier.first_at);
}

const Instruction* divergent_warp_fault(Warp& warp, const Instruction* i, Mask lanes, const Fragment& others) {
  const std::string what = fmt::format(
      "comes to this barrier, which all threads of a warp must reach together, while {} of its warp waits at another "
      "(divergent barrier)",
      thread(warp, std::countr_zero(others.lanes)));
  return fault_of_two(warp, i, FaultKind::divergent_barrier, lanes, what, others.at);
}

}  // namespace kiln::emulator
