// Where a memory access goes: from the address register to one offset per lane, for each state space.
#pragma once

#include "checks/access.h"
#include "units/lanes.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {

/// Offset is what the lanes' addresses are added to `base` as. `range_*` is what checks compare offsets with: the
/// space's extent, or nothing known for global memory.
template <class Offset>
struct Addresses {
  using Type = Offset;
  uintptr_t base = 0;
  Row<Offset> offset;
  std::byte* at(int lane) const { return reinterpret_cast<std::byte*>(base + offset.lane[lane]); }
};

/// Global, generic, constant and parameter addresses are host addresses.
struct GlobalSpace {
  static constexpr ptx::Space space = ptx::Space::generic;
  using Offset = uint64_t;
  static void locate(const Warp& warp, const Instruction* i, Addresses<Offset>& to) {
    const uint64_t* const a = row<uint64_t>(warp, i->a);
    const uint64_t displacement = static_cast<uint64_t>(i->immediate);
    for (int lane = 0; lane < 32; ++lane) to.offset.lane[lane] = a[lane] + displacement;
  }
};

/// Shared addresses are offsets into the block's memory, in registers of 32 or 64 bits.
template <class Register>
struct SharedSpace {
  static constexpr ptx::Space space = ptx::Space::shared;
  using Offset = uint32_t;
  static void locate(const Warp& warp, const Instruction* i, Addresses<Offset>& to) {
    to.base = reinterpret_cast<uintptr_t>(warp.shared);
    const Register* const a = row<Register>(warp, i->a);
    const auto displacement = static_cast<uint32_t>(i->immediate);
    for (int lane = 0; lane < 32; ++lane) to.offset.lane[lane] = static_cast<uint32_t>(a[lane]) + displacement;
  }
};

/// Local addresses are offsets into each thread's own memory.
template <class Register>
struct LocalSpace {
  static constexpr ptx::Space space = ptx::Space::local;
  using Offset = uint64_t;
  static void locate(const Warp& warp, const Instruction* i, Addresses<Offset>& to) {
    const Block& block = *warp.block;
    to.base = 0;
    const uintptr_t first = reinterpret_cast<uintptr_t>(block.local) + uintptr_t{warp.index} * 32 * block.local_stride;
    const Register* const a = row<Register>(warp, i->a);
    const uint64_t displacement = static_cast<uint64_t>(i->immediate);
    for (int lane = 0; lane < 32; ++lane) {
      to.offset.lane[lane] = first + static_cast<uint64_t>(lane) * block.local_stride + (a[lane] + displacement);
    }
  }
};

/// Looks at the access if its block checks or counts. False: it must not happen, the block has a fault.
template <class Space>
bool inspect(Warp& warp, const Instruction* i, Mask mask, const Addresses<typename Space::Offset>& addresses,
             uint32_t bytes, AccessKind kind) {
  AccessRequest request;
  request.space = Space::space;
  request.kind = kind;
  request.bytes = bytes;
  request.lanes = mask;
  for (int lane = 0; lane < 32; ++lane) request.address[lane] = addresses.base + addresses.offset.lane[lane];
  return inspect_access(warp, i, request);
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
