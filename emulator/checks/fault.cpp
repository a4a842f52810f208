#include "checks/fault.h"

#include <fmt/format.h>

#include <bit>
#include <string>

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

std::string thread(const Warp& warp, int lane) {
  const Dim3& extent = warp.block->launch->block;
  const uint32_t linear = warp.index * warp_lanes + static_cast<uint32_t>(lane);
  return fmt::format("thread ({}, {}, {})", linear % extent.x, linear / extent.x % extent.y,
                     linear / (extent.x * extent.y));
}

void record(Block& block, FaultKind kind, std::string report) {
  if (!block.fault) block.fault = Fault{kind, std::move(report)};
}

std::string waiting_line(const Block& block, const Warp& warp, const Fragment& fragment) {
  const Instruction* const at =
      fragment.wait == Wait::barrier || fragment.wait == Wait::warp_sync ? fragment.at - 1 : fragment.at;
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
    case Wait::none:
      why = "for nothing";
      break;
  }
  return fmt::format("\n  warp {}, lanes {:#010x}, from {}: waits {}\n    {}", warp.index, fragment.lanes,
                     thread(warp, std::countr_zero(fragment.lanes)), why, quote(block, at));
}

}  // namespace

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

void deadlock_fault(Block& block) {
  std::string report = fmt::format("{}: no warp can go on (deadlock)", place(block));
  int lines = 0;
  for (const Warp& warp : block.warps) {
    for (uint32_t k = 0; k < warp.fragment_count; ++k) {
      if (++lines <= 8) report += waiting_line(block, warp, warp.fragments[k]);
    }
  }
  if (lines > 8) report += fmt::format("\n  and {} more", lines - 8);
  record(block, FaultKind::deadlock, std::move(report));
}

}  // namespace kiln::emulator
