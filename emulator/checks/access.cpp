#include "checks/access.h"

#include <fmt/format.h>

#include <bit>
#include <string>

#include "checks/fault.h"
#include "checks/memory_recorder.h"
#include "checks/strict.h"

namespace kiln::emulator {
namespace {

constexpr uint32_t widest_access = 32;

/// Alignment that an access of so many bytes needs. Copies that read less than they write may have any size.
uint32_t alignment_of(uint32_t bytes) {
  return std::has_single_bit(bytes) ? std::min(bytes, widest_access) : 1;
}

uint32_t alignment_of(const AccessRequest& request) {
  return request.is_bulk ? 1 : alignment_of(request.bytes);
}

/// Lowest and highest address and the bits below the alignment, over the lanes that take part.
struct Extent {
  uint64_t lowest = UINT64_MAX, highest = 0, misaligned = 0;
};

Extent extent_of(const AccessRequest& request) {
  const uint64_t stand_in = request.address[static_cast<size_t>(std::countr_zero(request.lanes))];
  const uint64_t low_bits = alignment_of(request) - 1;
  Extent extent;
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    const uint64_t a = (request.lanes >> lane & 1) != 0 ? request.address[lane] : stand_in;
    extent.lowest = a < extent.lowest ? a : extent.lowest;
    extent.highest = a > extent.highest ? a : extent.highest;
    extent.misaligned |= a & low_bits;
  }
  return extent;
}

uint64_t address_of(const std::byte* p) {
  return reinterpret_cast<uint64_t>(p);
}

/// The valid range that holds `address` for this lane; an empty one if there is none.
AddressWindow window_around(const Warp& warp, ptx::Space space, uint64_t address, uint32_t lane, bool& shareable) {
  const Block& block = *warp.block;
  const auto within = [&](const std::byte* begin, uint64_t bytes) -> std::optional<AddressWindow> {
    const AddressWindow window{address_of(begin), address_of(begin) + bytes};
    if (address < window.begin || address >= window.end) return std::nullopt;
    return window;
  };
  shareable = true;
  if (space == ptx::Space::shared) return {address_of(block.shared), address_of(block.shared) + block.shared_bytes};
  const std::byte* const own = block.local + (size_t{warp.index} * warp_lanes + lane) * block.local_stride;
  if (space == ptx::Space::local) {
    shareable = false;
    return {address_of(own), address_of(own) + block.local_stride};
  }
  if (const Region* const region = RegionFinder(block.launch->memory.get(), block.variables).find(address)) {
    return {region->begin, region->end, region->written, region->marks};
  }
  if (const auto window = within(block.shared, block.shared_bytes)) return *window;
  if (const auto window = within(block.parameters, block.parameter_bytes)) return *window;
  shareable = false;
  if (const auto window = within(own, block.local_stride)) return *window;
  return {};
}

std::string where(const Block& block, ptx::Space space, uint64_t address) {
  const auto offset_in = [&](const std::byte* begin) { return static_cast<int64_t>(address - address_of(begin)); };
  if (space == ptx::Space::shared) {
    return fmt::format("offset {} of the block's {} bytes of shared memory", offset_in(block.shared),
                       block.shared_bytes);
  }
  if (space == ptx::Space::local)
    return fmt::format("outside the thread's {} bytes of local memory", block.local_stride);
  if (block.launch->memory != nullptr) return block.launch->memory->describe(address);
  return "no memory is known to this launch";
}

void remember(Block& block, const AddressWindow& window) {
  for (const AddressWindow& known : block.windows) {
    if (known.begin == window.begin && known.end == window.end) return;
  }
  block.windows[block.next_window++ % block.windows.size()] = window;
}

/// Finds the first lane whose access is not valid and makes it the block's fault. True if there is none after all.
bool examine_lanes(Warp& warp, const Instruction* i, const AccessRequest& request) {
  Block& block = *warp.block;
  const uint64_t low_bits = alignment_of(request) - 1;
  for (Mask rest = request.lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint64_t address = request.address[lane];
    if ((address & low_bits) != 0) {
      fault_here(warp, i, FaultKind::misaligned_address, rest,
                 fmt::format("{} {} bytes at {:#x}, which is not aligned to {} bytes", verb(request.kind),
                             request.bytes, address, low_bits + 1));
      return false;
    }
    bool shareable = false;
    const AddressWindow window = window_around(warp, request.space, address, lane, shareable);
    if (!window.covers(address, address, request.bytes)) {
      fault_here(warp, i, FaultKind::illegal_address, rest,
                 fmt::format("{} {} bytes at {:#x}: {}", verb(request.kind), request.bytes, address,
                             where(block, request.space, address)));
      return false;
    }
    if (shareable) remember(block, window);
  }
  return true;
}

bool is_valid(Warp& warp, const Instruction* i, const AccessRequest& request) {
  const Extent extent = extent_of(request);
  if (extent.misaligned == 0) {
    for (const AddressWindow& window : warp.block->windows) {
      if (window.covers(extent.lowest, extent.highest, request.bytes)) return true;
    }
  }
  return examine_lanes(warp, i, request);
}

/// Local memory, constants and parameters are cached elsewhere, by whatever address they are reached.
void record(const Block& block, const AccessRequest& request) {
  if (request.space == ptx::Space::local || request.space == ptx::Space::constant) return;
  const uint64_t first = request.address[static_cast<size_t>(std::countr_zero(request.lanes))];
  const auto within = [&](const std::byte* begin, uint64_t bytes) { return first - address_of(begin) < bytes; };
  if (within(block.shared, block.shared_bytes)) {
    block.recorder->shared(request, address_of(block.shared));
  } else if (!within(block.local, local_bytes(block)) && !within(block.parameters, block.parameter_bytes)) {
    block.recorder->global(request);
  }
}

}  // namespace

bool is_settled(const Block& block, const Reach& reach, uint32_t bytes) {
  const bool wraps = reach.highest < reach.lowest;  // around the end of the address space
  if (block.recorder != nullptr || wraps || (reach.lowest & (alignment_of(bytes) - 1)) != 0) return false;
  for (const AddressWindow& window : block.windows) {
    if (!window.covers(reach.lowest, reach.highest, bytes)) continue;
    return block.strict == nullptr || block.strict->is_old_news(reach, bytes, window);
  }
  return false;
}

bool inspect_access(Warp& warp, const Instruction* i, const AccessRequest& request) {
  Block& block = *warp.block;
  if (block.recorder != nullptr && !request.is_part) block.recorder->note_issue(request.space);
  if (request.lanes == 0) return true;
  if (block.checking && !request.is_known_good && !is_valid(warp, i, request)) return false;
  if (request.is_unused) return true;
  if (block.strict != nullptr && !block.strict->access(warp, i, request)) return false;
  if (block.recorder != nullptr) record(block, request);
  return true;
}

}  // namespace kiln::emulator
