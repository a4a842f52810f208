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

// Counts a turn of a loop. True if the path ends with it.
bool Interpreter::Machine::pass(Warp& warp, uint32_t branch) {
  if (loops_) {
    Loop& loop = (*loops_)[branch];
    if (loop.turns++ == 0) loop.first = warp.issued;
    loop.branch = branch;
    loop.last = warp.issued;
  }
  return cut_.turns != 0 && branch == cut_.branch && ++warp.turns == cut_.turns;
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

uint32_t Interpreter::Machine::guard_of(const Warp& warp, const Instruction& instruction, uint32_t mask) {
  if (instruction.guard == true_predicate) return instruction.guard_inverted ? 0 : mask;
  const Bits bits = fetch_predicate(warp, instruction.guard_uniform, instruction.guard, instruction.guard_inverted);
  if ((bits.unknown & mask) != 0) {
    if (instruction.opcode == "BRA") return decided(instruction, bits, mask);
    if (instruction.opcode == "EXIT" || instruction.opcode == "BAR" || instruction.opcode.starts_with("BRX"))
      fail_for_data(instruction);
    return mask & (bits.value | bits.unknown);
  }
  return bits.value & mask;
}

void Interpreter::Machine::fail_for_data(const Instruction& instruction) const {
  fail(instruction, "depends on data that is not known; give Launch::memory what the kernel reads there");
}

// Whether a call comes before the next jump.
bool Interpreter::Machine::calls(size_t index) const {
  for (; index < decoded_.size(); ++index) {
    const Op op = decoded_[index].op;
    if (op == Op::call) return true;
    if (op == Op::bra || op == Op::brx || op == Op::exit || op == Op::ret || op == Op::bsync) return false;
  }
  return false;
}

// Which of `lanes` a branch takes: by what is known, else by a guess.
uint32_t Interpreter::Machine::decided(const Instruction& branch, const Bits& bits, uint32_t lanes) {
  const uint32_t unknown = bits.unknown & lanes;
  if (unknown == 0) return bits.value & lanes;
  return (bits.value & lanes & ~unknown) | (guess(branch) & unknown);
}

// All lanes if a branch that depends on unknown data is likely to be taken, else none: the way to a call is not taken
// (the call heuristic of Ball and Larus, Branch Prediction for Free, PLDI 1993). The compiler calls what divisions and
// roots need for numbers that are out of the ordinary. With memory, a branch back is not taken either: what waits for
// other blocks does not wait.
uint32_t Interpreter::Machine::guess(const Instruction& instruction) {
  const size_t target = sass_.index_of(last_operand(instruction).value);
  const auto place = static_cast<size_t>(&instruction - sass_.instructions.data());
  const bool is_wait = launch_.memory && target <= place;
  const bool goes_on_to_call = !is_wait && calls(place + 1);
  if (!is_wait && calls(target) == goes_on_to_call) fail_for_data(instruction);
  ++report.guessed_branches;
  return goes_on_to_call ? all_lanes : 0;
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

// True if the instruction decides where the fragment goes on.
bool Interpreter::Machine::control(Warp& warp, Fragment& fragment, const Decoded& decoded,
                                   const Instruction& instruction, uint32_t active) {
  const auto barrier = [&] { return source(instruction, decoded, 0).index & 15; };
  switch (decoded.op) {
    case Op::bra: {
      uint32_t taken = active;
      for (const uint8_t i : decoded.predicates) {
        taken &= decided(instruction, fetch_predicate(warp, instruction.operands[i]), active);
      }
      if (instruction.has("DIV") && fragment.mask == warp.live) taken = 0;
      if (instruction.has("ANY") && taken != 0) taken = fragment.mask;
      const uint32_t target = sass_.index_of(last_operand(instruction).value);
      if (taken != 0 && target <= fragment.pc && pass(warp, fragment.pc)) {
        was_cut_ = true;
        warp.runnable.clear();
        warp.polling.clear();
        warp.live = fragment.mask = 0;
        return true;
      }
      branch(warp, fragment, target, taken);
      return true;
    }
    case Op::brx:
      branch_by_table(warp, fragment, decoded, instruction, active);
      return true;
    case Op::exit:
      leave(warp, active);
      fragment.mask &= ~active;
      ++fragment.pc;
      return true;
    case Op::bssy:
      warp.members[barrier()] = fragment.mask;
      return ++fragment.pc, true;
    case Op::brk:
      warp.members[barrier()] &= ~active;
      arrive(warp, barrier());
      return ++fragment.pc, true;
    case Op::bsync:
      warp.arrived[barrier()] |= active;
      warp.resume[barrier()] = ++fragment.pc;
      fragment.mask &= ~active;
      arrive(warp, barrier());
      return true;
    case Op::bar:
    case Op::cluster_wait:
      warp.at_barrier.push_back(fragment);
      fragment.mask = 0;
      return true;
    case Op::call:
      branch(warp, fragment, sass_.index_of(last_operand(instruction).value), active);
      return true;
    case Op::ret: {
      const Lanes target = fetch(warp, source(instruction, decoded, 0));
      if ((target.unknown & active) != 0) fail(instruction, "returns to a place that is not known");
      const int lane = std::countr_zero(active);
      branch(warp, fragment, active == 0 ? fragment.pc + 1 : sass_.index_of(target.v[lane]), active);
      return true;
    }
    default:
      return false;
  }
}

void Interpreter::Machine::branch(Warp& warp, Fragment& fragment, uint32_t target, uint32_t taken) {
  const uint32_t stays = fragment.mask & ~taken;
  if (stays != 0 && taken != 0) warp.runnable.push_back({fragment.pc + 1, stays});
  fragment = taken != 0 ? Fragment{target, taken} : Fragment{fragment.pc + 1, stays};
}

// Each lane goes on where its register says: `BRX R2 -0x410` is relative to what follows.
void Interpreter::Machine::branch_by_table(Warp& warp, Fragment& fragment, const Decoded& decoded,
                                           const Instruction& instruction, uint32_t active) {
  for (const uint8_t i : decoded.predicates) {
    const Bits bits = fetch_predicate(warp, instruction.operands[i]);
    if ((bits.unknown & active) != 0) fail_for_data(instruction);
    active &= bits.value;
  }
  const Lanes place = fetch(warp, source(instruction, decoded, 0));
  if ((place.unknown & active) != 0) fail_for_data(instruction);
  const auto distance = static_cast<uint64_t>(source(instruction, decoded, 1).value);
  const uint64_t from = instruction.address + instruction_bytes + distance;
  const uint32_t stays = fragment.mask & ~active;
  if (stays != 0) warp.runnable.push_back({fragment.pc + 1, stays});
  for (uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto offset = static_cast<int32_t>(place.v[static_cast<size_t>(lane)]);
    const auto target = static_cast<int64_t>(from + static_cast<uint64_t>(int64_t{offset}));
    warp.runnable.push_back({sass_.index_of(target), uint32_t{1} << lane});
  }
  fragment.mask = 0;
}

void Interpreter::Machine::leave(Warp& warp, uint32_t mask) {
  warp.live &= ~mask;
  for (uint32_t b = 0; b < warp.members.size(); ++b) arrive(warp, b);
}

// Lets the threads at a convergence barrier go on if no other is to come.
void Interpreter::Machine::arrive(Warp& warp, uint32_t barrier) {
  uint32_t& arrived = warp.arrived[barrier];
  if (arrived == 0 || (warp.members[barrier] & warp.live & ~arrived) != 0) return;
  warp.runnable.push_back({warp.resume[barrier], arrived});
  arrived = 0;
}

void Interpreter::Machine::move_barrier(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                        uint32_t active) {
  const Operand& target = destination(instruction, decoded);
  const Operand& from = source(instruction, decoded, 0);
  if (target.kind == Operand::Kind::barrier) {
    const Lanes mask = fetch(warp, from);
    if (active != 0) warp.members[target.index & 15] = mask.v[std::countr_zero(active)];
    return;
  }
  Lanes mask;
  mask.v.fill(warp.members[from.index & 15]);
  put(warp, target, mask, active);
}

void Interpreter::Machine::ask_for_barrier(Warp& warp, const Decoded& decoded, const Instruction& instruction) {
  Barrier asked;
  asked.waits = !instruction.has("ARV");
  if (decoded.op == Op::cluster_wait) asked.id = cluster_barrier;
  if (!decoded.sources.empty()) {
    const Lanes id = fetch(warp, source(instruction, decoded, 0));
    if ((id.unknown & 1) != 0) fail(instruction, "names a barrier that is not known");
    asked.id = id.v[0] & 15;
  }
  if (decoded.sources.size() > 1) {
    const Lanes count = fetch(warp, source(instruction, decoded, 1));
    if ((count.unknown & 1) != 0) fail(instruction, "counts threads that are not known");
    asked.warps = (count.v[0] + 31) / 32;
  }
  warp.barrier = asked;
  warp.path.barriers.push_back(asked);
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
