// Which way the warps of a block go through their machine code, and which memory they touch.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kiln/timing/address_ranges.h"
#include "kiln/timing/cubin.h"
#include "kiln/timing/sass.h"

namespace kiln::timing {

using Extents = std::array<uint32_t, 3>;

struct Launch {
  Extents grid{1, 1, 1};
  Extents block{1, 1, 1};
  Extents cluster{1, 1,
                  1};  ///< Blocks that run together; those of a cluster are taken to do the same at the same time.
  uint32_t dynamic_shared_bytes = 0;
  std::string parameters;  ///< As they lie in the constant bank.
  std::string variables;   ///< Bank 3 as the launch finds it; empty: as the module has it at first.
  /// Tells the 32-bit word at an address of global memory, where it is known. Unset: nothing is.
  std::function<bool(uint64_t address, uint32_t& word)> memory;
  /// Tells the bytes of a box of the tensor map at that address (of one among the parameters: its offset there). Unset
  /// or false: loads share what their barrier expects, and stores count as unknown addresses.
  std::function<bool(uint64_t map, uint32_t& bytes)> box_bytes;
  AddressRanges in_l2;                      ///< Ranges stored before the launch that L2 holds when it begins.
  uint64_t instruction_limit = 20'000'000;  ///< Instructions of one warp; more is an Error(unsupported).

  uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
  uint32_t threads() const { return block[0] * block[1] * block[2]; }
  uint32_t warps() const { return (threads() + 31) / 32; }
};

inline constexpr uint32_t no_access = ~uint32_t{0};

/// An instruction that a warp issued, also if no lane took part.
struct Executed {
  uint32_t instruction = 0;  ///< Index into Sass::instructions.
  uint32_t active = 0;       ///< Lanes whose guard held.
  /// Index into WarpPath::accesses; of a BAR into WarpPath::barriers, of what concerns mbarriers and bulk copies into
  /// WarpPath::transactions.
  uint32_t access = no_access;
};

inline constexpr uint64_t line_bytes = 128, sector_bytes = 32;  ///< Sizes in L1 and L2.

/// The sectors that are touched of a line.
struct Line {
  uint64_t address = 0;
  uint32_t sectors = 0;  ///< Bit 0: the first.
  uint32_t partial = 0;  ///< Sectors among these of which some bytes are not touched, in global memory.
};

struct Access {
  enum class Space : uint8_t { shared, global, local };
  Space space = Space::global;
  bool known = true;        ///< False: the address depends on data; taken for one that is spread evenly.
  uint16_t wavefronts = 1;  ///< Passes that the banks of shared memory and L1 need.
  uint32_t first_line = 0;  ///< Into WarpPath::lines; none for shared memory.
  uint32_t lines = 0;
};

inline constexpr uint32_t cluster_barrier = 16;

/// Operands of a BAR, or of the barrier of a cluster.
struct Barrier {
  uint32_t id = 0;
  uint32_t warps = 0;  ///< Warps that have to come; 0: all of the block.
  bool waits = true;   ///< False: BAR.ARV.
};

/// Operation on an mbarrier, a barrier in shared memory that counts arrivals and bytes, or order to the unit that
/// copies in bulk.
struct Transaction {
  enum class Kind : uint8_t { init, arrive, wait, load, store };
  Kind kind = Kind::init;
  bool remote = false;    ///< An arrival comes from another block of the cluster.
  uint8_t receivers = 1;  ///< load: blocks that get it. As many loads of the same size come from the others.
  uint16_t barrier = 0;   ///< Counts the barriers of a block.
  uint32_t arrivals = 0;  ///< init: arrivals that complete a phase.
  uint64_t bytes = 0;     ///< arrive: bytes expected; load and store: bytes moved.
  uint64_t phase = 0;     ///< wait: phases that have to be complete.
  uint64_t data = 0;      ///< load: equal for equal data.
  uint64_t address = 0;   ///< load: the data's address in global memory; 0: a tensor map says it.
};

/// Ends the paths of warps that go through a long loop: after so many turns of it.
struct Cut {
  uint32_t branch = 0;  ///< The instruction that goes back.
  uint64_t turns = 0;   ///< 0: paths are whole.
  uint64_t loads = 0;   ///< Ends all paths of a block that has asked for so many bulk loads; 0: does not.
  uint64_t issued = 0;  ///< Ends all paths when a warp has issued so many instructions; 0: does not.
};

struct Loop {
  uint32_t branch = 0;           ///< The instruction that goes back.
  uint64_t turns = 0;            ///< How often it did.
  uint64_t first = 0, last = 0;  ///< Instructions that the warp had issued when it did first and last.

  double instructions_of_turn() const {
    return turns < 2 ? 0 : static_cast<double>(last - first) / static_cast<double>(turns - 1);
  }
};

struct LoopProfile {
  uint64_t instructions = 0;  ///< Issued by the warp.
  std::vector<Loop> loops;
};

struct WarpPath {
  std::vector<Executed> executed;
  std::vector<Access> accesses;
  std::vector<Line> lines;
  std::vector<Barrier> barriers;
  std::vector<Transaction> transactions;
};

struct BlockPath {
  std::vector<WarpPath> warps;
};

/// Instructions that were met and not executed exactly, with their counts.
struct InterpreterReport {
  std::map<std::string, uint64_t> unknown_opcodes;  ///< Results were taken for unknown.
  uint64_t guessed_branches = 0;                    ///< Branches that depend on data: past calls, out of loops.
  uint64_t unknown_addresses = 0;                   ///< Accesses whose address depends on data.
};

/// Executes integer, predicate, move, single-precision and control instructions of whole blocks. What depends on data
/// that is not known has no value. One thread at a time.
class Interpreter {
 public:
  /// All three have to outlive it, so temporaries do not compile. Throws Error(invalid_argument) for a launch that
  /// cannot be.
  Interpreter(const Sass& sass, const KernelFacts& facts, const Launch& launch);
  Interpreter(const Sass&&, const KernelFacts&, const Launch&) = delete;
  Interpreter(const Sass&, const KernelFacts&&, const Launch&) = delete;
  Interpreter(const Sass&, const KernelFacts&, const Launch&&) = delete;
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// The paths of block `index`, in the order of blockIdx.x, then y, then z. Throws Error(unsupported) where a branch
  /// depends on data that is not known, and for control flow that it does not follow.
  BlockPath run(uint64_t index, const Cut& cut = {});

  /// The loops of the first warp of block `index`, which goes by itself: barriers do not stop it, and what other warps
  /// would write to shared memory is not known. Records no path. Throws as run().
  LoopProfile profile(uint64_t index);

  /// The first `instructions` of the first warp of block `index`, which goes by itself, as in profile(). Does not count
  /// in report(). Throws as run().
  WarpPath beginning(uint64_t index, uint64_t instructions);

  const InterpreterReport& report() const;

  /// Global memory that all instructions executed so far have stored to, in profiles too: for each instruction, the
  /// range from its lowest to its highest address. Excludes stores to unknown addresses, and those by tensor maps.
  AddressRanges stored() const;

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace kiln::timing
