// Cost of an instruction on the machine, known before anything runs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kiln/timing/card.h"
#include "kiln/timing/replay.h"
#include "kiln/timing/sass.h"

namespace kiln::timing {

/// Events that decide when the result of an instruction is there.
enum class Wait : uint8_t {
  fixed,
  shared_load,
  shared_store,
  load,
  store,
  local_load,
  local_store,
  constant,
  unit,
  copy,
  copies,
  transaction,   // of an mbarrier, or a copy in bulk
  bulk_stores,   // until those that the warp has asked for have read shared memory
  products,      // of a warpgroup: nobody waits
  product_group  // for all but a number of groups of products
};

struct Cost {
  Pipe pipe = Pipe::alu;
  Wait wait = Wait::fixed;
  uint32_t cycles = 1;             // the pipe is busy
  uint8_t fraction = 0;            // and so many 1/256 of a cycle: those of tensor instructions add up
  uint8_t extra = 0;               // cycles that wide accesses take longer
  std::array<uint8_t, 2> reads{};  // registers of a lane that it reads from each register bank
  bool is_barrier = false;
  bool ends_group = false;     // of products
  uint8_t groups_left = 0;     // WARPGROUP.DEPBAR: that need not be there
  uint16_t operand_bytes = 0;  // of shared memory that products of a warpgroup read
  bool bypasses_l1 = false;    // LDGSTS.BYPASS
  uint8_t counter = 8;         // DEPBAR: waits until this counter is at most `at_most`
  uint8_t at_most = 0;
  Control control;
  uint32_t line = 0;  // of the instruction cache
};

/// One for each instruction. Opcodes that no class is known of are added to `unknown`.
std::vector<Cost> costs_of(const Sass& sass, const Card& card, std::vector<std::string>& unknown);

}  // namespace kiln::timing
