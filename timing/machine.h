// The state of the warps of one block, and what instructions do to it.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "decode.h"
#include "kiln/timing/interpret.h"

namespace kiln::timing {

inline constexpr uint32_t all_lanes = ~uint32_t{0};

/// A register of 32 lanes; a lane whose bit in `unknown` is set has no value.
struct Lanes {
  std::array<uint32_t, 32> v{};
  uint32_t unknown = 0;
};

/// A predicate of 32 lanes.
struct Bits {
  uint32_t value = 0;
  uint32_t unknown = 0;
};

/// Threads of a warp that are at the same place.
struct Fragment {
  uint32_t pc = 0;
  uint32_t mask = 0;
};

struct Warp {
  std::array<Lanes, 256> registers;  // the last is RZ
  std::array<Lanes, 256> uniform;    // lane 0 counts
  std::array<Bits, 8> predicates;    // the last is PT
  std::array<Bits, 8> uniform_predicates;
  std::array<uint32_t, 16> members{};  // of each convergence barrier
  std::array<uint32_t, 16> arrived{};
  std::array<uint32_t, 16> resume{};  // where the threads that arrived go on
  std::vector<Fragment> runnable, at_barrier;
  std::vector<Lanes> local;  // words of the frame
  uint32_t live = 0;
  uint32_t number = 0;
  bool waits = false;
  std::vector<Fragment> polling;  // that wait for phases which are not complete
  Barrier barrier;                // that it waits for
  uint64_t issued = 0;            // instructions so far
  uint64_t turns = 0;             // of the loop at which its path ends
  WarpPath path;
};

/// Shared memory of a block: words that are known.
struct SharedWords {
  std::vector<uint32_t> value;
  std::vector<bool> known;
};

/// An mbarrier. Nobody looks at it while a thread asks for the copies of a phase, so a phase is found complete when
/// somebody waits for it, or arrives for the next.
struct PhaseBarrier {
  uint16_t number = 0;
  uint32_t count = 0, pending = 0;                   // arrivals
  uint64_t phase = 0;                                // complete ones
  uint64_t expected = 0;                             // bytes
  std::vector<std::pair<uint32_t, uint32_t>> loads;  // of this phase: warp, place in its transactions
};

inline constexpr uint32_t phase_lacks = ~uint32_t{1};  // in place of a place in WarpPath::transactions

class Interpreter::Machine {
 public:
  Machine(const Sass& sass, const KernelFacts& facts, const Launch& launch);

  BlockPath run(uint64_t index, const Cut& cut);
  LoopProfile profile(uint64_t index);
  WarpPath beginning(uint64_t index, uint64_t instructions);
  InterpreterReport report;
  std::vector<AddressRange> stored;  // to global memory, by instruction

 private:
  // interpret.cpp: warps
  void start(uint64_t index, uint32_t warps);
  void run_alone(Warp& warp);
  void run_warp(Warp& warp);
  bool pick(Warp& warp, Fragment& fragment);
  void step(Warp& warp, Fragment& fragment);
  void count_step(Warp& warp, const Fragment& fragment) const;
  bool exchanges(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  static void put_off(Warp& warp, Fragment& fragment);
  void end_paths();
  bool release_barriers();
  [[noreturn]] void fail(const Instruction& instruction, const std::string& what) const;

  // control.cpp
  uint32_t guard_of(const Warp& warp, const Instruction& instruction, uint32_t mask);
  uint32_t decided(const Instruction& branch, const Bits& bits, uint32_t lanes);
  uint32_t guess(const Instruction& instruction);
  bool returns(const Instruction& call) const;
  bool calls(size_t index) const;
  [[noreturn]] void fail_for_data(const Instruction& instruction) const;
  bool control(Warp& warp, Fragment& fragment, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  bool pass(Warp& warp, uint32_t branch);
  void branch(Warp& warp, Fragment& fragment, uint32_t target, uint32_t taken);
  void branch_by_table(Warp& warp, Fragment& fragment, const Decoded& decoded, const Instruction& instruction,
                       uint32_t active);
  void branch_by_register(Warp& warp, Fragment& fragment, const Lanes& place, uint64_t from, uint32_t taken);
  void leave(Warp& warp, uint32_t mask);
  void arrive(Warp& warp, uint32_t barrier);
  void move_barrier(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void ask_for_barrier(Warp& warp, const Decoded& decoded, const Instruction& instruction);

  // operands.cpp
  Lanes fetch(const Warp& warp, const Operand& operand, bool as_float = false) const;
  Lanes fetch_high(const Warp& warp, const Operand& operand) const;  // the upper register of a pair
  Lanes fetch_plain(const Warp& warp, const Operand& operand, uint32_t next = 0) const;
  Bits fetch_predicate(const Warp& warp, const Operand& operand) const;
  Bits fetch_predicate(const Warp& warp, bool uniform, uint16_t index, bool inverted) const;
  uint32_t constant(uint8_t bank, int64_t offset, bool& known) const;
  void put(Warp& warp, const Operand& operand, const Lanes& lanes, uint32_t active, uint32_t next = 0) const;
  void forget_register(Warp& warp, const Operand& operand, uint32_t active, uint32_t next) const;
  void put_predicate(Warp& warp, const Operand& operand, Bits bits, uint32_t active) const;

  // arithmetic.cpp
  void arithmetic(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void forget(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void add(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void add_pairs(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void multiply(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void scale_and_add(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void logic(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void predicate_logic(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void funnel(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void compare(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void select(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void simple(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);

  // floating.cpp
  void floating(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void convert_pairs(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void compare_halves(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void half(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);

  // exchange.cpp
  void special(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void vote(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void shuffle(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  void pack_predicates(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);

  // memory.cpp
  struct Addresses {
    std::array<uint64_t, 32> v{};
    uint32_t unknown = 0;
  };
  Addresses addresses(const Warp& warp, const Operand& operand, MemorySpace space) const;
  uint32_t access(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  uint32_t copy(Warp& warp, const Decoded& decoded, const Instruction& instruction, const Addresses& to,
                uint32_t active);
  uint32_t record(Warp& warp, const Addresses& where, MemorySpace space, uint32_t bytes, uint32_t active);
  void load(Warp& warp, const Decoded& decoded, const Instruction& instruction, const Addresses& where,
            uint32_t active);
  void store(Warp& warp, const Decoded& decoded, const Instruction& instruction, const Addresses& where,
             uint32_t active);
  void note_stored(const Instruction& instruction, uint64_t address, uint64_t bytes);
  bool word_at(const Warp& warp, MemorySpace space, uint64_t address, uint32_t lane, uint32_t& word) const;
  void load_constant(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);

  // transactions.cpp
  uint32_t transact(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  uint32_t make_barrier(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  uint32_t arrive_at(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  uint32_t wait_for(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);
  uint32_t copy_in_bulk(Warp& warp, const Decoded& decoded, const Instruction& instruction);
  PhaseBarrier& barrier_at(const Instruction& instruction, uint64_t address);
  void complete(PhaseBarrier& barrier, bool at_end = false);
  uint32_t uniform(const Warp& warp, const Instruction& instruction, uint32_t index) const;
  uint32_t note(Warp& warp, const Transaction& transaction);
  void elect(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active);

  const Sass& sass_;
  const KernelFacts& facts_;
  const Launch& launch_;
  std::vector<Decoded> decoded_;
  std::string bank0_;
  uint32_t shared_base_ = 0;
  Extents block_index_{};
  std::vector<Warp> warps_;
  SharedWords shared_;
  std::map<uint32_t, PhaseBarrier> phases_;  // by address
  uint64_t loads_asked_ = 0;
  uint32_t rank_ = 0;  // of the block in its cluster
  Cut cut_;
  bool was_cut_ = false;
  std::optional<std::map<uint32_t, Loop>> loops_;  // counted in place of recording paths
};

}  // namespace kiln::timing
