// One decoded instruction, as the interpreter executes it, and the code of one kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/counters.h"

namespace kiln::emulator {

/// One bit per lane of a warp.
using Mask = uint32_t;
inline constexpr uint32_t warp_lanes = 32;
inline constexpr Mask full_mask = 0xFFFFFFFFu;

struct Warp;
struct Instruction;

/// Executes an instruction for the warp's running fragment and returns the one to execute next; null when the warp
/// cannot go on (blocked, finished, preempted or faulted).
using Handler = const Instruction* (*)(Warp&, const Instruction*);

/// A handler for blocks that check or count memory accesses, and one for those that do neither.
struct HandlerPair {
  Handler fast = nullptr, checked = nullptr;
};

/// Operands are byte offsets into the warp's register file, where a register holds its 32 lanes one after the other and
/// a predicate is one Mask. The handler decides what else the fields mean.
struct Instruction {
  Handler execute = nullptr;
  uint32_t d = 0, a = 0, b = 0, c = 0;
  int64_t immediate = 0;   ///< Displacement of an address, distance of a branch in instructions, ...
  uint16_t guard = 0;      ///< Index of the guard predicate; predicate 0 is always true.
  int16_t guard_flip = 0;  ///< -1 for @!p.
  uint32_t extra = 0;      ///< Usually an index into Code::lists.
};
static_assert(sizeof(Instruction) == 40);

/// Straight-line code between two labels: what one entry adds to the instruction mix.
struct BasicBlock {
  std::array<uint32_t, instruction_classes> mix{};
  uint32_t length = 0;         ///< instructions of the kernel
  uint64_t multiply_adds = 0;  ///< of its matrix products
};

/// Registers that hold something before the first instruction, by what they hold.
enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  zero,  ///< smid, gridid, envreg and cluster coordinates of an unclustered launch
  one,   ///< nsmid and cluster extents of an unclustered launch
  dynamic_shared_bytes,
  total_shared_bytes,
  parameter_base,  ///< host address of the parameter block (64 bits)
  shared_base,     ///< host address of the block's shared memory (64 bits)
  local_base,      ///< host address of the thread's local memory (64 bits)
};

struct SpecialRegister {
  Special what = Special::zero;
  uint32_t offset = 0;
  uint32_t bytes = 4;  ///< 2, 4 or 8 per lane
};

struct ConstantRegister {
  uint64_t bits = 0;
  uint32_t offset = 0;
  uint32_t bytes = 4;
};

struct SourcePosition {
  uint32_t line = 0;
  std::string_view text;  ///< into the program's PTX
};

/// Memory order of an access or a fence; bits of Code::order.
enum MemoryOrder : uint8_t {
  order_weak = 0,
  order_strong = 1,  ///< volatile, relaxed: races with no other strong access
  order_acquires = 2,
  order_releases = 4,
  order_in_block = 8,  ///< of scope cta: puts nothing in order between blocks
};

/// The code of one kernel with everything inlined. Immutable; shared by all host threads.
struct Code {
  // The same instructions twice; they differ in the handlers of memory accesses only, so that a place in one is a
  // place in the other. `checked` looks at bounds, alignment and memory counters; `fast` at none of them.
  std::vector<Instruction> fast, checked;
  std::vector<uint32_t> lists;         ///< operand lists too long for an Instruction
  std::vector<SourcePosition> source;  ///< of each instruction
  std::vector<uint8_t> order;          ///< of each instruction: MemoryOrder bits
  std::vector<BasicBlock> blocks;

  uint32_t register_bytes = 0;                        ///< of one warp's register file
  std::vector<std::pair<uint32_t, uint32_t>> zeroed;  ///< read before they are written, perhaps: (offset, bytes)
  std::vector<ConstantRegister> constants;
  std::vector<SpecialRegister> specials;
  std::vector<uint32_t> false_predicates;  ///< offsets of predicates that are constant false

  uint32_t static_shared_bytes = 0;
  uint32_t dynamic_shared_offset = 0;
  uint32_t local_bytes = 0;  ///< per thread, a multiple of 16

  uint32_t shared_piece_bytes = 16;    ///< the smallest access that may be to shared memory, at most 16
  uint32_t global_piece_bytes = 16;    ///< the same of global memory
  bool synchronises_in_parts = false;  ///< not only by barriers of the block and synchronisations of whole warps
};

}  // namespace kiln::emulator
