#include <algorithm>
#include <cstring>

#include "machine.h"

namespace kiln::timing {

uint32_t Interpreter::Machine::constant(uint8_t bank, int64_t offset, bool& known) const {
  const std::string* bytes = bank == 0 ? &bank0_ : bank == 2 ? &facts_.constants : nullptr;
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

Lanes Interpreter::Machine::fetch(const Warp& warp, const Operand& operand, bool as_float) const {
  Lanes lanes;
  switch (operand.kind) {
    case Operand::Kind::reg:
      lanes = warp.registers[operand.index];
      break;
    case Operand::Kind::uniform: {
      const Lanes& source = warp.uniform[operand.index];
      lanes = spread(source.v[0], (source.unknown & 1) == 0);
      break;
    }
    case Operand::Kind::immediate:
      lanes = spread(static_cast<uint32_t>(operand.value));
      break;
    case Operand::Kind::constant: {
      bool known = operand.base == zero_register && !operand.uniform_index;
      uint32_t word = 0;
      if (known) word = constant(operand.bank, operand.value, known);
      lanes = spread(word, known);
      break;
    }
    default:
      lanes.unknown = all_lanes;
  }
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
  Operand upper = operand;
  upper.negated = upper.inverted = upper.absolute = false;
  const bool is_register = operand.kind == Operand::Kind::reg || operand.kind == Operand::Kind::uniform;
  if (is_register && operand.index != zero_register) ++upper.index;
  if (operand.kind == Operand::Kind::constant) upper.value += 4;
  if (operand.kind == Operand::Kind::immediate) upper.value = operand.value < 0 ? -1 : 0;
  return fetch(warp, upper);
}

Bits Interpreter::Machine::fetch_predicate(const Warp& warp, const Operand& operand) const {
  Bits bits = operand.kind == Operand::Kind::uniform_predicate ? warp.uniform_predicates[operand.index]
                                                               : warp.predicates[operand.index];
  if (operand.kind == Operand::Kind::uniform_predicate) {
    bits.value = (bits.value & 1) != 0 ? all_lanes : 0;
    bits.unknown = (bits.unknown & 1) != 0 ? all_lanes : 0;
  }
  if (operand.inverted) bits.value = ~bits.value;
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

void Interpreter::Machine::put_predicate(Warp& warp, const Operand& operand, Bits bits, uint32_t active) const {
  if (operand.index == true_predicate) return;
  const bool uniform = operand.kind == Operand::Kind::uniform_predicate;
  Bits& target = (uniform ? warp.uniform_predicates : warp.predicates)[operand.index];
  if (uniform) active = 1;
  target.value = (target.value & ~active) | (bits.value & active);
  target.unknown = (target.unknown & ~active) | (bits.unknown & active);
}

}  // namespace kiln::timing
