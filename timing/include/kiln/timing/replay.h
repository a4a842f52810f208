// How long one SM takes for blocks whose paths are known: it issues their instructions by the compiler's control bits.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kiln/timing/address_ranges.h"
#include "kiln/timing/card.h"
#include "kiln/timing/interpret.h"
#include "kiln/timing/sass.h"

namespace kiln::timing {

enum class Pipe : uint8_t { fma, imad, alu, half, fp64, special, uniform, tensor, branch, memory, none };
inline constexpr size_t pipe_count = 11;

/// Why a warp did not issue.
enum class Stall : uint8_t { counted, global, shared, other_result, barrier, fetch, phase, products };
inline constexpr size_t stall_count = 8;

std::string_view to_string(Pipe pipe);
std::string_view to_string(Stall stall);

class ReplayTrace;

/// DRAM's share of the sectors that L1 lacks, of addresses from `begin` on.
struct DramShare {
  static constexpr uint32_t all = 1 << 16;
  uint64_t begin = 0;
  uint32_t share = all;  ///< Sectors from DRAM among `all`.
};

struct ReplaySetup {
  uint32_t resident_blocks = 1;
  uint32_t blocks = 1;                       ///< To run, one after the other in the places of the resident ones.
  uint32_t l1_bytes = 0;                     ///< Bytes of L1 that shared memory leaves.
  std::vector<DramShare> dram{DramShare{}};  ///< By operand, in the order of their addresses, the first from 0 on.
  /// SMs that have blocks, and share DRAM's rate, none of them getting more than L2 gives it. 0: all of the card's.
  uint32_t busy_sms = 0;
  uint32_t local_dram = 0;   ///< Sectors of local memory that L2 lacks too, among 256 that L1 lacks.
  uint32_t bulk_dram = 256;  ///< The same of the bytes that are copied in bulk.
  /// The first so many blocks begin with the launch: what they load for the first time is on its way from DRAM,
  /// whichever SM asked for it first, unless it lies in `in_l2`.
  uint32_t first_wave = 0;
  AddressRanges in_l2;
  /// The paths of the n-th block; called once for each, in order.
  std::function<std::shared_ptr<const BlockPath>(uint32_t n)> path;
  ReplayTrace* trace = nullptr;  ///< Records what happens, if there is one.
};

/// Counts of one SM.
struct ReplayResult {
  uint64_t cycles = 0;  ///< Until the last warp ends.
  uint64_t passed = 0;  ///< Until L2 and DRAM have passed all bytes too.
  uint64_t issued = 0;
  std::array<uint64_t, pipe_count> pipe_busy{};  ///< Cycles, of all four schedulers.
  std::array<uint64_t, stall_count> stalled{};   ///< Cycles, of all warps.
  uint64_t lsu_busy = 0;
  uint64_t fetch_busy = 0;         ///< The common instruction cache gives lines to those of the schedulers.
  uint64_t l1_sectors = 0;         ///< Asked of L1.
  uint64_t l2_sectors = 0;         ///< Asked of L2: those that L1 lacks, and those that bypass it.
  uint64_t bypassing_sectors = 0;  ///< Asked of L2 alone.
  uint64_t dram_bytes_read = 0, bytes_written = 0;
  uint64_t dram_bytes_written = 0;      ///< Fewer than those, where stores come in pieces of a sector.
  uint64_t bulk_bytes = 0;              ///< Bytes copied in bulk to shared memory.
  uint64_t l2_busy = 0, dram_busy = 0;  ///< Cycles.

  bool operator==(const ReplayResult&) const = default;
};

/// Deterministic to the bit. Throws Error(unsupported) if the warps wait for ever.
ReplayResult replay(const Sass& sass, const Card& card, const ReplaySetup& setup);

/// Opcodes that are timed as plain arithmetic since their class is not known.
std::vector<std::string> unclassified(const Sass& sass, const Card& card);

}  // namespace kiln::timing
