// Control flow of the interpreter: guards, branches, calls, and barriers at which threads join again.
#include <bit>

#include "machine.h"

namespace kiln::timing {

uint32_t Interpreter::Machine::guard_of(const Warp& warp, const Instruction& instruction, uint32_t mask) {
  if (instruction.guard == true_predicate) return instruction.guard_inverted ? 0 : mask;
  const Bits bits = fetch_predicate(warp, instruction.guard_uniform, instruction.guard, instruction.guard_inverted);
  if ((bits.unknown & mask) != 0) {
    if (instruction.opcode == "BRA") return decided(instruction, bits, mask);
    if (instruction.opcode == "EXIT" || instruction.opcode == "BAR" || instruction.opcode.starts_with("BRX") ||
        (instruction.opcode == "CALL" && !returns(instruction)))
      fail_for_data(instruction);
    return mask & (bits.value | bits.unknown);
  }
  return bits.value & mask;
}

void Interpreter::Machine::fail_for_data(const Instruction& instruction) const {
  fail(instruction, "depends on data that is not known; give Launch::memory what the kernel reads there");
}

// Whether a call is of a function, as one through a register always is. Else it is a jump, which compilers write so if
// the way is long: the code that it leads to ends with the kernel.
bool Interpreter::Machine::returns(const Instruction& call) const {
  const Operand& target = last_operand(call);
  if (target.kind != Operand::Kind::label) return true;
  for (size_t i = sass_.index_of(target.value); i < decoded_.size(); ++i) {
    if (decoded_[i].op == Op::ret) return true;
    if (decoded_[i].op == Op::exit) return false;
  }
  return false;
}

// Whether a function is called before the next jump.
bool Interpreter::Machine::calls(size_t index) const {
  for (; index < decoded_.size(); ++index) {
    const Op op = decoded_[index].op;
    if (op == Op::call) return returns(sass_.instructions[index]);
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
      const Lanes place = fetch(warp, source(instruction, decoded, 0));
      if ((place.unknown & active) != 0) fail(instruction, "returns to a place that is not known");
      branch_by_register(warp, fragment, place, 0, active);
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

// `BRX R2 -0x410`: R2 was read from a table, and counts from what follows, less 0x410.
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
  branch_by_register(warp, fragment, place, instruction.address + instruction_bytes + distance, active);
}

// Each lane that is `taken` goes on where its register says, counted from `from`.
void Interpreter::Machine::branch_by_register(Warp& warp, Fragment& fragment, const Lanes& place, uint64_t from,
                                              uint32_t taken) {
  const uint32_t stays = fragment.mask & ~taken;
  if (stays != 0) warp.runnable.push_back({fragment.pc + 1, stays});
  for (uint32_t rest = taken; rest != 0; rest &= rest - 1) {
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

}  // namespace kiln::timing
