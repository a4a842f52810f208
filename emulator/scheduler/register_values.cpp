#include "register_values.h"

#include <cstring>

namespace kiln::emulator {
namespace {

void fill(Warp& warp, uint32_t offset, uint32_t bytes, uint32_t lane, uint64_t value) {
  std::memcpy(warp.registers + offset + size_t{lane} * bytes, &value, bytes);
}

bool depends_on_block(Special what) {
  return what == Special::ctaid_x || what == Special::ctaid_y || what == Special::ctaid_z;
}

// NOLINTNEXTLINE(readability-function-size): a table, one line a register
uint64_t value_of(Special what, const Warp& warp, uint32_t lane) {
  const Block& block = *warp.block;
  const LaunchRequest& launch = *block.launch;
  const uint32_t thread = warp.index * warp_lanes + lane;
  const uint64_t bit = uint64_t{1} << lane;
  switch (what) {
    case Special::tid_x:
      return thread % launch.block.x;
    case Special::tid_y:
      return thread / launch.block.x % launch.block.y;
    case Special::tid_z:
      return thread / (launch.block.x * launch.block.y);
    case Special::ntid_x:
      return launch.block.x;
    case Special::ntid_y:
      return launch.block.y;
    case Special::ntid_z:
      return launch.block.z;
    case Special::ctaid_x:
      return block.index.x;
    case Special::ctaid_y:
      return block.index.y;
    case Special::ctaid_z:
      return block.index.z;
    case Special::nctaid_x:
      return launch.grid.x;
    case Special::nctaid_y:
      return launch.grid.y;
    case Special::nctaid_z:
      return launch.grid.z;
    case Special::laneid:
      return lane;
    case Special::warpid:
      return warp.index;
    case Special::nwarpid:
      return block.warps.size();
    case Special::lanemask_eq:
      return bit;
    case Special::lanemask_le:
      return 2 * bit - 1;
    case Special::lanemask_lt:
      return bit - 1;
    case Special::lanemask_ge:
      return full_mask & ~(bit - 1);
    case Special::lanemask_gt:
      return full_mask & ~(2 * bit - 1);
    case Special::zero:
      return 0;
    case Special::one:
      return 1;
    case Special::dynamic_shared_bytes:
      return launch.dynamic_shared_bytes;
    case Special::total_shared_bytes:
      return block.shared_bytes;
    case Special::parameter_base:
      return reinterpret_cast<uint64_t>(block.parameters);
    case Special::shared_base:
      return reinterpret_cast<uint64_t>(block.shared);
    case Special::local_base:
      return reinterpret_cast<uint64_t>(block.local) + uint64_t{thread} * block.local_stride;
  }
  return 0;
}

void write(Warp& warp, const SpecialRegister& r) {
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    fill(warp, r.offset, r.bytes, lane, value_of(r.what, warp, lane));
  }
}

}  // namespace

void write_constants(Warp& warp) {
  const Code& code = *warp.block->code;
  *row<Mask>(warp, 0) = full_mask;
  for (const uint32_t offset : code.false_predicates) *row<Mask>(warp, offset) = 0;
  for (const ConstantRegister& r : code.constants) {
    for (uint32_t lane = 0; lane < warp_lanes; ++lane) fill(warp, r.offset, r.bytes, lane, r.bits);
  }
}

void write_special_registers(Warp& warp) {
  for (const SpecialRegister& r : warp.block->code->specials) {
    if (!depends_on_block(r.what)) write(warp, r);
  }
}

void write_block_index(Warp& warp) {
  for (const SpecialRegister& r : warp.block->code->specials) {
    if (depends_on_block(r.what)) write(warp, r);
  }
}

}  // namespace kiln::emulator
