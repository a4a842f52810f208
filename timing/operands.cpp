#include <algorithm>
#include <cstring>

#include "machine.h"

namespace kiln::timing {

uint32_t Interpreter::Machine::constant(uint8_t bank, int64_t offset, bool& known) const {
  const std::string* bytes = bank == 0   ? &bank0_
                             : bank == 2 ? &facts_.constants
                             : bank == 3 ? (launch_.variables.empty() ? &facts_.variables : &launch_.variables)
                                         : nullptr;
  uint32_t word = 0;
  known = bytes != nullptr && offset >= 0 && static_cast<uint64_t>(offset) + sizeof word <= bytes->size();
  if (known) std::memcpy(&word, bytes->data() + offset, sizeof word);
  return word;
}

namespace {

Lanes spread(uint32_t value, bool known = true) {
  Lanes lanes;
  lanes.v.fill(value);
  lanes.unknown = known ? 0 : all_lanes;
  return lanes;
}

}  // namespace

// The register, or the one `next` behind it, without what stands before its name.
Lanes Interpreter::Machine::fetch_plain(const Warp& warp, const Operand& operand, uint32_t next) const {
  const uint32_t index = operand.index == zero_register ? operand.index : operand.index + next;
  if (index > zero_register) return spread(0, false);  // no register is behind the last
  switch (operand.kind) {
    case Operand::Kind::reg:
      return warp.registers[index];
    case Operand::Kind::uniform:
      return spread(warp.uniform[index].v[0], (warp.uniform[index].unknown & 1) == 0);
    case Operand::Kind::immediate:
      if (next != 0) return spread(operand.value < 0 ? all_lanes : 0);
      return spread(static_cast<uint32_t>(operand.value));
    case Operand::Kind::constant: {
      bool known = operand.base == zero_register && !operand.uniform_index;
      const uint32_t word = known ? constant(operand.bank, operand.value + int64_t{4} * next, known) : 0;
      return spread(word, known);
    }
    default:
      return spread(0, false);
  }
}

Lanes Interpreter::Machine::fetch(const Warp& warp, const Operand& operand, bool as_float) const {
  Lanes lanes = fetch_plain(warp, operand);
  if (operand.absolute) {
    for (uint32_t& v : lanes.v) v = as_float ? v & 0x7fffffff : static_cast<int32_t>(v) < 0 ? 0 - v : v;
  }
  if (operand.negated) {
    for (uint32_t& v : lanes.v) v = as_float ? v ^ 0x80000000 : 0 - v;
  }
  if (operand.inverted) {
    for (uint32_t& v : lanes.v) v = ~v;
  }
  return lanes;
}

Lanes Interpreter::Machine::fetch_high(const Warp& warp, const Operand& operand) const {
  return fetch_plain(warp, operand, 1);
}

Bits Interpreter::Machine::fetch_predicate(const Warp& warp, const Operand& operand) const {
  return fetch_predicate(warp, operand.kind == Operand::Kind::uniform_predicate, operand.index, operand.inverted);
}

Bits Interpreter::Machine::fetch_predicate(const Warp& warp, bool uniform, uint16_t index, bool inverted) const {
  Bits bits = uniform ? warp.uniform_predicates[index] : warp.predicates[index];
  if (uniform) {
    bits.value = (bits.value & 1) != 0 ? all_lanes : 0;
    bits.unknown = (bits.unknown & 1) != 0 ? all_lanes : 0;
  }
  if (inverted) bits.value = ~bits.value;
  return bits;
}

void Interpreter::Machine::put(Warp& warp, const Operand& operand, const Lanes& lanes, uint32_t active,
                               uint32_t next) const {
  if (operand.index == zero_register || operand.index + next >= zero_register) return;
  const bool uniform = operand.kind == Operand::Kind::uniform;
  Lanes& target = (uniform ? warp.uniform : warp.registers)[operand.index + next];
  if (uniform) active = 1;
  if (active == all_lanes) {
    target = lanes;
    return;
  }
  if ((lanes.unknown & active) != active) {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if ((active >> lane & 1) != 0) target.v[lane] = lanes.v[lane];
    }
  }
  target.unknown = (target.unknown & ~active) | (lanes.unknown & active);
}

void Interpreter::Machine::forget_register(Warp& warp, const Operand& operand, uint32_t active, uint32_t next) const {
  if (operand.index == zero_register || operand.index + next >= zero_register) return;
  const bool uniform = operand.kind == Operand::Kind::uniform;
  (uniform ? warp.uniform : warp.registers)[operand.index + next].unknown |= uniform ? 1 : active;
}

void Interpreter::Machine::put_predicate(Warp& warp, const Operand& operand, Bits bits, uint32_t active) const {
  if (operand.index == true_predicate) return;
  const bool uniform = operand.kind == Operand::Kind::uniform_predicate;
  Bits& target = (uniform ? warp.uniform_predicates : warp.predicates)[operand.index];
  if (uniform) active = 1;
  target.value = (target.value & ~active) | (bits.value & active);
  target.unknown = (target.unknown & ~active) | (bits.unknown & active);
}

}  // namespace kiln::timing
