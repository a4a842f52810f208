// Where a memory access goes: from the address register to one offset per lane, for each state space.
#pragma once

#include <optional>

#include "checks/access.h"
#include "lanes.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {

/// The lanes' addresses: `base` plus an offset each.
template <class Offset>
struct Addresses {
  using Type = Offset;
  uintptr_t base = 0;
  Row<Offset> offset;
  std::byte* at(int lane) const { return reinterpret_cast<std::byte*>(base + offset.lane[lane]); }
};

/// Global and generic addresses are host addresses.
struct GlobalSpace {
  using Register = uint64_t;
  static constexpr ptx::Space space = ptx::Space::generic;
  using Offset = uint64_t;
  static void locate(const Warp& warp, const Instruction* i, Addresses<Offset>& to) {
    const uint64_t* const a = row<uint64_t>(warp, i->a);
    const uint64_t displacement = static_cast<uint64_t>(i->immediate);
    for (int lane = 0; lane < 32; ++lane) to.offset.lane[lane] = a[lane] + displacement;
  }
};

/// The same addresses of constants and kernel parameters, read through the constant cache.
struct ConstantSpace : GlobalSpace {
  static constexpr ptx::Space space = ptx::Space::constant;
};

/// Shared addresses are offsets into the block's memory, in registers of 32 or 64 bits.
template <class R>
struct SharedSpace {
  using Register = R;
  static constexpr ptx::Space space = ptx::Space::shared;
  using Offset = R;
  static void locate(const Warp& warp, const Instruction* i, Addresses<Offset>& to) {
    to.base = reinterpret_cast<uintptr_t>(warp.shared);
    const Register* const a = row<Register>(warp, i->a);
    const auto displacement = static_cast<Register>(i->immediate);
    for (int lane = 0; lane < 32; ++lane) to.offset.lane[lane] = a[lane] + displacement;
  }
};

/// Local addresses are offsets into each thread's own memory.
template <class R>
struct LocalSpace {
  using Register = R;
  static constexpr ptx::Space space = ptx::Space::local;
  using Offset = uint64_t;
  static void locate(const Warp& warp, const Instruction* i, Addresses<Offset>& to) {
    const Block& block = *warp.block;
    to.base = 0;
    const uintptr_t first = reinterpret_cast<uintptr_t>(block.local) + uintptr_t{warp.index} * 32 * block.local_stride;
    const Register* const a = row<Register>(warp, i->a);
    const auto displacement = static_cast<Register>(i->immediate);
    for (int lane = 0; lane < 32; ++lane) {
      const Register offset = a[lane] + displacement;  // of 32 bits wraps around: a sum may pass below 0 and come back
      to.offset.lane[lane] = first + static_cast<uint64_t>(lane) * block.local_stride + offset;
    }
  }
};

/// The lowest and the highest address of the lanes in `mask`, and which address bits they set.
struct Span {
  Reach reach;
  uint64_t bits = 0;
};
template <class Offset>
inline Span span_of(const Addresses<Offset>& addresses, Mask mask) {
  const Offset stand_in = addresses.offset.lane[__builtin_ctz(mask)];
  Offset lowest = stand_in, highest = stand_in, bits = stand_in;
  for (int lane = 0; lane < 32; ++lane) {
    const Offset offset = (mask >> lane & 1) != 0 ? addresses.offset.lane[lane] : stand_in;
    lowest = offset < lowest ? offset : lowest;
    highest = offset > highest ? offset : highest;
    bits |= offset;
  }
  return {{addresses.base + lowest, addresses.base + highest}, addresses.base | bits};
}

/// Whether the access is aligned and lies in memory that the block has met before.
inline bool is_known_good(const Block& block, const Span& span, uint32_t bytes) {
  // Only copies that fill with zeros have odd sizes; those are looked at in full.
  if ((bytes & (bytes - 1)) != 0 || (span.bits & (bytes - 1)) != 0) return false;
  for (const AddressWindow& window : block.windows) {
    if (window.covers(span.reach.lowest, span.reach.highest, bytes)) return true;
  }
  return false;
}

/// The lowest and the highest address of lanes that lie one behind the other, `bytes` apart, or are all the same.
inline std::optional<Reach> reach_of_line(const uint64_t* a, Mask mask, uint64_t bytes) {
  const int first = __builtin_ctz(mask), last = 31 - __builtin_clz(mask);
  const uint64_t stride = a[last] == a[first] ? 0 : bytes;
  const uint64_t start = a[first] - static_cast<uint64_t>(first) * stride;
  uint64_t off = 0;
  if (mask == full_mask) {
    for (uint64_t lane = 0; lane < 32; ++lane) off |= a[lane] ^ (start + lane * stride);
  } else {
    for (uint64_t lane = 0; lane < 32; ++lane) off |= (mask >> lane & 1) != 0 ? a[lane] ^ (start + lane * stride) : 0;
  }
  if (off != 0) return std::nullopt;
  return Reach{a[first], a[last]};
}

/// Whether weak loads of global memory, the most common pattern of all, can do without inspect().
inline bool is_settled_line(const Warp& warp, const Instruction* i, Mask mask, uint32_t bytes) {
  const std::optional<Reach> line = reach_of_line(row<uint64_t>(warp, i->a), mask, bytes);
  const auto displacement = static_cast<uint64_t>(i->immediate);
  return line && is_settled(*warp.block, {line->lowest + displacement, line->highest + displacement}, bytes);
}

/// Looks at the access if its block checks or counts. False: it must not happen, the block has a fault.
template <class Space>
bool inspect(Warp& warp, const Instruction* i, Mask mask, const Addresses<typename Space::Offset>& addresses,
             uint32_t bytes, AccessKind kind, const AccessDetails& details = {}) {
  const Block& block = *warp.block;
  Span span;
  bool known_good = false;
  if (mask != 0) {
    span = span_of(addresses, mask);
    known_good = block.recorder == nullptr && is_known_good(block, span, bytes);
    if (known_good && block.strict == nullptr) return true;
  }
  AccessRequest request;
  static_cast<AccessDetails&>(request) = details;
  request.is_known_good = known_good;
  request.space = Space::space;
  request.kind = kind;
  request.bytes = bytes;
  request.lanes = mask;
  request.reach = span.reach;
  for (int lane = 0; lane < 32; ++lane) request.address[lane] = addresses.base + addresses.offset.lane[lane];
  return inspect_access(warp, i, request);
}

template <class Space>
bool inspect(Warp& warp, const Instruction* i, Mask mask, uint32_t bytes, AccessKind kind,
             const AccessDetails& details = {}) {
  Addresses<typename Space::Offset> addresses;
  Space::locate(warp, i, addresses);
  return inspect<Space>(warp, i, mask, addresses, bytes, kind, details);
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
