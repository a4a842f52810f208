#include "scheduler/block_runner.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "checks/fault.h"
#include "mbarrier_phases.h"
#include "register_values.h"
#include "scheduler/divergence.h"
#include "warp/fragments.h"

namespace kiln::emulator {
namespace {

// Instructions between two looks at limits and at other fragments: long enough to cost nothing.
constexpr int64_t usual_slice = 1 << 15;
// The same for blocks that run together. It is short: a block may wait for another one, whose turn should come soon.
constexpr int64_t cooperative_slice = 1 << 10;

constexpr size_t memory_alignment = 1024;

// Vector loads may look this far beyond the shared memory that the kernel has.
constexpr size_t shared_padding = 256;

void release(std::byte* memory) {
  ::operator delete (memory, std::align_val_t{memory_alignment});
}

std::byte* allocate(size_t bytes) {
  return static_cast<std::byte*>(::operator new (std::max<size_t>(bytes, 1), std::align_val_t{memory_alignment}));
}

uint32_t warps_of(const LaunchRequest& request) {
  return static_cast<uint32_t>((request.block.count() + warp_lanes - 1) / warp_lanes);
}

}  // namespace

BlockRunner::BlockRunner(const LaunchRequest& request, std::atomic<uint32_t>& fences, ReleaseTable& releases)
    : request_(request),
      kernel_(*request.kernel),
      code_(request.kernel->code),
      registers_(nullptr, release),
      shared_(nullptr, release),
      local_(nullptr, release),
      parameters_(nullptr, release),
      executions_(code_.blocks.size()),
      active_lanes_(code_.blocks.size()),
      warps_(warps_of(request)) {
  const uint32_t shared_bytes = request.dynamic_shared_bytes == 0
                                    ? code_.static_shared_bytes
                                    : code_.dynamic_shared_offset + request.dynamic_shared_bytes;
  registers_.reset(allocate(size_t{code_.register_bytes} * warps_.size()));
  shared_.reset(allocate(shared_bytes + shared_padding));
  local_.reset(allocate(size_t{code_.local_bytes} * warp_lanes * warps_.size()));
  parameters_.reset(allocate(kernel_.info.parameter_bytes));
  std::memset(shared_.get(), 0, shared_bytes + shared_padding);
  std::memset(local_.get(), 0, size_t{code_.local_bytes} * warp_lanes * warps_.size());
  const size_t given = std::min<size_t>(request.parameters.size(), kernel_.info.parameter_bytes);
  std::copy_n(request.parameters.begin(), given, parameters_.get());
  block_.launch = &request_;
  block_.code = &code_;
  block_.kernel_name = kernel_.info.name;
  block_.shared = shared_.get();
  block_.shared_bytes = shared_bytes;
  block_.local = local_.get();
  block_.local_stride = code_.local_bytes;
  block_.parameters = parameters_.get();
  block_.parameter_bytes = kernel_.info.parameter_bytes;
  block_.variables = kernel_.variables;
  block_.constants = kernel_.constants;
  block_.warps = warps_;
  block_.fences = &fences;
  block_.mbarriers = &mbarriers_;
  block_.bulk_copies = &bulk_copies_;
  block_.checking = request.check != CheckLevel::off;
  if (request.check == CheckLevel::full) {
    strict_ = std::make_unique<StrictChecks>(block_, kernel_.values, static_cast<uint32_t>(warps_.size()) * warp_lanes,
                                             releases);
    block_.strict = strict_.get();
  }
  block_.slice = request.cooperative ? cooperative_slice : usual_slice;
  if (request.instruction_limit != 0) {
    block_.slice =
        std::min(block_.slice, static_cast<int64_t>(std::min<uint64_t>(usual_slice, request.instruction_limit)));
  }
  prepare_registers();
}

// Sets up everything of the warps that stays the same from block to block.
void BlockRunner::prepare_registers() {
  for (uint32_t k = 0; k < warps_.size(); ++k) {
    Warp& warp = warps_[k];
    warp.registers = registers_.get() + size_t{code_.register_bytes} * k;
    warp.lists = code_.lists.data();
    warp.shared = block_.shared;
    warp.block = &block_;
    warp.index = k;
    warp.executions = executions_.data();
    warp.active_lanes = active_lanes_.data();
    const uint64_t threads = request_.block.count() - uint64_t{k} * warp_lanes;
    warp.born = threads >= warp_lanes ? full_mask : (Mask{1} << threads) - 1;
    std::memset(warp.registers, 0, code_.register_bytes);
    write_constants(warp);
    write_special_registers(warp);
  }
}

void BlockRunner::start(uint64_t number, bool counted) {
  block_.number = number;
  block_.index.x = static_cast<uint32_t>(number % request_.grid.x);
  block_.index.y = static_cast<uint32_t>(number / request_.grid.x % request_.grid.y);
  block_.index.z = static_cast<uint32_t>(number / request_.grid.x / request_.grid.y);
  block_.recorder = counted ? &recorder_ : nullptr;
  block_.first = (block_.checking || counted ? code_.checked : code_.fast).data();
  block_.barriers.fill(Barrier{});
  block_.live_threads = static_cast<uint32_t>(request_.block.count());
  block_.issued = 0;
  block_.fault.reset();
  mbarriers_.clear();
  bulk_copies_.clear();
  if (counted) recorder_.begin_block();
  if (strict_ != nullptr) strict_->begin_block(number);
  // All ones, which is a NaN: what was not written does not look like a result.
  if (block_.checking) std::memset(block_.shared, 0xFF, block_.shared_bytes);
  for (Warp& warp : warps_) start_warp(warp);
}

void BlockRunner::start_warp(Warp& warp) {
  for (const auto& [offset, bytes] : code_.zeroed) std::memset(warp.registers + offset, 0, bytes);
  write_block_index(warp);
  warp.live = warp.born;
  warp.active = 0;
  warp.fragment_count = 0;
  warp.merge_at = nothing_to_merge;
  warp.budget = block_.slice;
  warp.fair = false;
  warp.copies.clear();
  add_ready(warp, block_.first, warp.born);
}

bool BlockRunner::step() {
  bool progress = false;
  for (Warp& warp : warps_) {
    if (warp.live == 0) continue;
    const Instruction* pc = resume(warp);
    if (pc == nullptr) continue;
    progress = true;
    if (strict_ != nullptr && strict_->values().is_followed(warp)) {
      while (pc != nullptr) pc = strict_->values().step(warp, pc);
    } else {
      while (pc != nullptr) pc = pc->execute(warp, pc);
    }
    if (block_.fault) return false;
    const uint64_t issued = account(warp);
    const uint64_t limit = request_.instruction_limit;
    if (limit != 0 && issued > limit && warp.live != 0) {
      warp.active = warp.fragments[0].lanes;
      timeout_fault(warp, warp.fragments[0].at);
      return false;
    }
  }
  if (block_.live_threads == 0) return false;
  if (progress || let_waits_run_out(block_)) return true;
  deadlock_fault(block_);
  return false;
}

std::optional<Fault> BlockRunner::run(uint64_t number, bool counted) {
  start(number, counted);
  while (step()) {
  }
  return block_.fault;
}

}  // namespace kiln::emulator
