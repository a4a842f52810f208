#include "kiln/timing/interpret.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kiln/base/error.h"
#include "machine.h"

namespace kiln::timing {
namespace {

constexpr uint32_t frame_pointer_offset = 0x28;  // of the bank: what R1 begins with

// Where the extents of the launch lie in constant bank 0.
struct BankLayout {
  uint32_t block, grid, frame_pointer;
};

BankLayout layout_of(int arch) {
  if (arch >= 100) return {0x360, 0x370, 0x37c};
  return {0x0, 0xc, frame_pointer_offset};
}

void put_word(std::string& bytes, uint32_t offset, uint32_t word) {
  if (bytes.size() < offset + sizeof word) bytes.resize(offset + sizeof word, '\0');
  std::memcpy(bytes.data() + offset, &word, sizeof word);
}

// CUDA's limits.
constexpr Extents most_block{1024, 1024, 64}, most_grid{(uint32_t{1} << 31) - 1, 65535, 65535};

bool is_within(const Extents& extents, const Extents& most) {
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 0 || extents[axis] > most[axis]) return false;
  }
  return true;
}

}  // namespace

Interpreter::Machine::Machine(const Sass& sass, const KernelFacts& facts, const Launch& launch)
    : sass_(sass), facts_(facts), launch_(launch) {
  const bool fits = is_within(launch.block, most_block) && launch.threads() <= most_block[0] &&
                    is_within(launch.grid, most_grid) && is_within(launch.cluster, most_grid);
  if (!fits) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} cannot be launched with {} blocks of {} threads",
                                                         sass.kernel, launch.blocks(), launch.threads()));
  }
  for (const Instruction& instruction : sass.instructions) decoded_.push_back(decode(instruction));
  stored.resize(decoded_.size());
  const BankLayout layout = layout_of(sass.arch);
  bank0_.assign(facts.parameter_base, '\0');
  for (uint32_t i = 0; i < 3; ++i) {
    put_word(bank0_, layout.block + 4 * i, launch.block[i]);
    put_word(bank0_, layout.grid + 4 * i, launch.grid[i]);
  }
  put_word(bank0_, layout.frame_pointer, facts.local_bytes);
  bank0_.resize(std::max<size_t>(bank0_.size(), facts.parameter_base), '\0');
  bank0_.replace(facts.parameter_base, std::min(bank0_.size() - facts.parameter_base, launch.parameters.size()),
                 launch.parameters);
  shared_base_ = sass.arch >= 90 ? 0x400 : 0;  // the system's part comes first
}

void Interpreter::Machine::fail(const Instruction& instruction, const std::string& what) const {
  throw Error(ErrorCode::unsupported,
              fmt::format("{} at {:#x} of {} {}", instruction.opcode, instruction.address, sass_.kernel, what));
}

void Interpreter::Machine::start(uint64_t index, uint32_t warps) {
  block_index_ = {static_cast<uint32_t>(index % launch_.grid[0]),
                  static_cast<uint32_t>(index / launch_.grid[0] % launch_.grid[1]),
                  static_cast<uint32_t>(index / launch_.grid[0] / launch_.grid[1])};
  const size_t words = (size_t{shared_base_} + facts_.shared_bytes + launch_.dynamic_shared_bytes + 3) / 4;
  shared_.value.assign(words, 0);
  shared_.known.assign(words, false);
  loops_.reset();
  phases_.clear();
  loads_asked_ = 0;
  was_cut_ = false;
  const Extents& cluster = launch_.cluster;
  rank_ = block_index_[0] % cluster[0] +
          cluster[0] * (block_index_[1] % cluster[1] + cluster[1] * (block_index_[2] % cluster[2]));
  warps_.assign(warps, Warp{});
  for (uint32_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp.number = w;
    const uint32_t threads = std::min(32U, launch_.threads() - w * 32);
    warp.live = threads == 32 ? all_lanes : (uint32_t{1} << threads) - 1;
    // Registers and the frame begin as zero, not as unknown: compilers set single bits of one that holds nothing, or
    // store a part of a word, and ask for those.
    warp.predicates[true_predicate].value = warp.uniform_predicates[true_predicate].value = all_lanes;
    warp.local.assign(facts_.local_bytes / 4, Lanes{});
    warp.runnable.push_back({0, warp.live});
  }
}

BlockPath Interpreter::Machine::run(uint64_t index, const Cut& cut) {
  start(index, launch_.warps());
  cut_ = cut;
  bool goes_on = true;
  while (goes_on) {
    goes_on = false;
    for (Warp& warp : warps_) {
      const uint64_t before = warp.issued;
      warp.runnable.insert(warp.runnable.end(), warp.polling.begin(), warp.polling.end());
      warp.polling.clear();
      if (!warp.waits) run_warp(warp);
      goes_on = goes_on || warp.issued != before;
    }
    goes_on = release_barriers() || goes_on;
  }
  for (auto& [address, barrier] : phases_) complete(barrier, true);
  BlockPath path;
  for (Warp& warp : warps_) {
    if (warp.live != 0 && !was_cut_) {  // those that wait for a warp whose path was cut end where they are
      throw Error(ErrorCode::unsupported,
                  fmt::format("warp {} of block {} of {} waits for ever", warp.number, index, sass_.kernel));
    }
    path.warps.push_back(std::move(warp.path));
  }
  return path;
}

LoopProfile Interpreter::Machine::profile(uint64_t index) {
  start(index, 1);
  cut_ = {};
  Warp& warp = warps_[0];
  loops_.emplace();
  run_alone(warp);
  LoopProfile profile;
  profile.instructions = warp.issued;
  for (const auto& [branch, loop] : *loops_) profile.loops.push_back(loop);
  loops_.reset();
  return profile;
}

WarpPath Interpreter::Machine::beginning(uint64_t index, uint64_t instructions) {
  start(index, 1);
  cut_ = {};
  cut_.issued = instructions;
  const InterpreterReport before = report;
  run_alone(warps_[0]);
  report = before;
  return std::move(warps_[0].path);
}

// Barriers do not stop it.
void Interpreter::Machine::run_alone(Warp& warp) {
  for (uint64_t before = 0; warp.live != 0; before = warp.issued) {
    warp.waits = false;
    run_warp(warp);
    if (warp.live != 0 && warp.issued == before) {
      throw Error(ErrorCode::unsupported, fmt::format("a warp of {} waits for ever", sass_.kernel));
    }
  }
}

void Interpreter::Machine::end_paths() {
  was_cut_ = true;
  for (Warp& warp : warps_) {
    warp.runnable.clear();
    warp.at_barrier.clear();
    warp.polling.clear();
    warp.live = 0;
  }
}

// Lets the warps of every barrier go on that is complete. False if there is none.
bool Interpreter::Machine::release_barriers() {
  bool any = false;
  for (uint32_t id = 0; id <= cluster_barrier; ++id) {
    uint32_t there = 0, needed = 0, live = 0;
    for (const Warp& warp : warps_) {
      if (warp.live != 0) ++live;
      if (!warp.waits || warp.barrier.id != id) continue;
      ++there;
      needed = warp.barrier.warps;
    }
    if (there == 0 || (needed == 0 && there < live)) continue;
    for (Warp& warp : warps_) {
      if (warp.waits && warp.barrier.id == id) warp.waits = false;
    }
    any = true;
  }
  return any;
}

// The threads that go next: those furthest behind, with all that are at the same place.
bool Interpreter::Machine::pick(Warp& warp, Fragment& fragment) {
  auto& runnable = warp.runnable;
  if (runnable.empty()) {
    if (warp.at_barrier.empty() || !warp.polling.empty()) return false;
    for (const Fragment& other : warp.at_barrier) runnable.push_back({other.pc + 1, other.mask});
    warp.at_barrier.clear();
    warp.waits = warp.barrier.waits;
    return false;
  }
  const auto least = std::min_element(runnable.begin(), runnable.end(),
                                      [](const Fragment& a, const Fragment& b) { return a.pc < b.pc; });
  fragment = {least->pc, 0};
  std::erase_if(runnable, [&](const Fragment& other) {
    if (other.pc != fragment.pc) return false;
    fragment.mask |= other.mask;
    return true;
  });
  return true;
}

void Interpreter::Machine::run_warp(Warp& warp) {
  Fragment fragment;
  while (pick(warp, fragment) || (!warp.waits && !warp.runnable.empty())) {
    while (fragment.mask != 0) {
      step(warp, fragment);
      // Others may be at the place that was reached.
      if (!warp.runnable.empty() && fragment.mask != 0) {
        warp.runnable.push_back(fragment);
        fragment.mask = 0;
      }
    }
  }
}

// Ends the interpretation where the code does, or a warp issues too much.
void Interpreter::Machine::count_step(Warp& warp, const Fragment& fragment) const {
  if (fragment.pc >= sass_.instructions.size()) {
    throw Error(ErrorCode::parse_error, fmt::format("{} runs past the end of its code", sass_.kernel));
  }
  if (++warp.issued > launch_.instruction_limit) {
    throw Error(ErrorCode::unsupported,
                fmt::format("a warp of {} issues more than {} instructions, and is at {:#x}", sass_.kernel,
                            launch_.instruction_limit, sass_.instructions[fragment.pc].address));
  }
}

// The fragment tries again when a phase is complete.
void Interpreter::Machine::put_off(Warp& warp, Fragment& fragment) {
  --warp.issued;
  warp.polling.push_back(fragment);
  fragment.mask = 0;
}

// True if the instruction gets values from where no operand says it: other lanes, constants, special registers.
bool Interpreter::Machine::exchanges(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                     uint32_t active) {
  switch (decoded.op) {
    case Op::elect:
      if (active != 0) elect(warp, decoded, instruction, active);
      return true;
    case Op::set_registers:
      for (const uint8_t i : decoded.out_predicates) {
        put_predicate(warp, instruction.operands[i], {all_lanes, 0}, active);
      }
      return true;
    case Op::s2r:
    case Op::cs2r:
      special(warp, decoded, instruction, active);
      return true;
    case Op::vote:
      vote(warp, decoded, instruction, active);
      return true;
    case Op::shfl:
      shuffle(warp, decoded, instruction, active);
      return true;
    case Op::p2r:
    case Op::r2p:
      pack_predicates(warp, decoded, instruction, active);
      return true;
    case Op::ldc:
      load_constant(warp, decoded, instruction, active);
      return true;
    case Op::bmov:
      move_barrier(warp, decoded, instruction, active);
      return true;
    default:
      return false;
  }
}

void Interpreter::Machine::step(Warp& warp, Fragment& fragment) {
  count_step(warp, fragment);
  const Instruction& instruction = sass_.instructions[fragment.pc];
  const Decoded& decoded = decoded_[fragment.pc];
  const bool meets = decoded.op == Op::bar || decoded.op == Op::cluster_wait;
  // Its other threads come to the barrier when their phase is complete.
  if (meets && !warp.polling.empty()) return put_off(warp, fragment);
  const uint32_t active = guard_of(warp, instruction, fragment.mask);
  Executed taken{fragment.pc, active, no_access};
  if (meets) {
    ask_for_barrier(warp, decoded, instruction);
    taken.access = static_cast<uint32_t>(warp.path.barriers.size() - 1);
  }
  switch (decoded.op) {
    case Op::load:
    case Op::store:
    case Op::atomic:
    case Op::matrix_load:
    case Op::matrix_store:
    case Op::copy:
      if (active != 0) taken.access = access(warp, decoded, instruction, active);
      break;
    case Op::nothing:
      break;
    case Op::syncs:
    case Op::bulk_copy:
      if (active != 0) taken.access = transact(warp, decoded, instruction, active);
      if (taken.access == phase_lacks) return put_off(warp, fragment);
      break;
    default:
      if (exchanges(warp, decoded, instruction, active)) break;
      if (decoded.op == Op::unknown) ++report.unknown_opcodes[instruction.opcode];
      if (control(warp, fragment, decoded, instruction, active)) {
        if (!loops_) warp.path.executed.push_back(taken);
        return;
      }
      if (active != 0) arithmetic(warp, decoded, instruction, active);
  }
  if (!loops_) warp.path.executed.push_back(taken);
  ++fragment.pc;
  const bool asked = cut_.loads != 0 && loads_asked_ >= cut_.loads;
  if (asked || (cut_.issued != 0 && warp.issued >= cut_.issued)) {
    end_paths();
    fragment.mask = 0;
  }
}

Interpreter::Interpreter(const Sass& sass, const KernelFacts& facts, const Launch& launch)
    : machine_(std::make_unique<Machine>(sass, facts, launch)) {}
Interpreter::~Interpreter() = default;
BlockPath Interpreter::run(uint64_t index, const Cut& cut) {
  return machine_->run(index, cut);
}
LoopProfile Interpreter::profile(uint64_t index) {
  return machine_->profile(index);
}
WarpPath Interpreter::beginning(uint64_t index, uint64_t instructions) {
  return machine_->beginning(index, instructions);
}
const InterpreterReport& Interpreter::report() const {
  return machine_->report;
}

AddressRanges Interpreter::stored() const {
  return united(machine_->stored);
}

}  // namespace kiln::timing
